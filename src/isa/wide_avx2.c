#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_AVX2
#define LNORM_ISA_SUFFIX wide_avx2
#include "../kernels/wide_names.h"
#include "../simd/vec_avx2.h"
#include "../kernels/wide_table.inc"
#endif
