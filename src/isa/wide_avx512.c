#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_AVX512
#define LNORM_ISA_SUFFIX wide_avx512
#include "../kernels/wide_names.h"
#include "../simd/vec_avx512.h"
#include "../kernels/wide_table.inc"
#endif
