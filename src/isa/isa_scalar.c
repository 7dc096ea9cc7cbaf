#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_SCALAR
#define LNORM_ISA_SUFFIX scalar
#include "../kernels/names.h"
#include "../simd/vec_scalar.h"
#include "../kernels/table.inc"
#endif
