#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_NEON
#define LNORM_ISA_SUFFIX wide_neon
#include "../kernels/wide_names.h"
#include "../simd/vec_neon.h"
#include "../kernels/wide_table.inc"
#endif
