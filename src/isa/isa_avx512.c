#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_AVX512
#define LNORM_ISA_SUFFIX avx512
#include "../kernels/names.h"
#include "../simd/vec_avx512.h"
#include "../kernels/table.inc"
#endif
