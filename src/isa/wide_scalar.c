#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_SCALAR
#define LNORM_ISA_SUFFIX wide_scalar
#include "../kernels/wide_names.h"
#include "../simd/vec_scalar.h"
#include "../kernels/wide_table.inc"
#endif
