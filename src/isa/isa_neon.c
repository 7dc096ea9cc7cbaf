#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_NEON
#define LNORM_ISA_SUFFIX neon
#include "../kernels/names.h"
#include "../simd/vec_neon.h"
#include "../kernels/table.inc"
#endif
