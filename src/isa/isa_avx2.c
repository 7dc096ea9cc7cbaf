#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_AVX2
#define LNORM_ISA_SUFFIX avx2
#include "../kernels/names.h"
#include "../simd/vec_avx2.h"
#include "../kernels/table.inc"
#endif
