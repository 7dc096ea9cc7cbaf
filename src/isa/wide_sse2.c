#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_SSE2
#define LNORM_ISA_SUFFIX wide_sse2
#include "../kernels/wide_names.h"
#include "../compact.inc"
#include "../simd/vec_sse2.h"
#include "../kernels/wide_table.inc"
#include "../compact_end.inc"
#endif
