#include "../kernels.h"
#include "../simd/isa_build.h"
#if LNORM_BUILD_SSE2
#define LNORM_ISA_SUFFIX sse2
#include "../kernels/names.h"
#include "../compact.inc"
#include "../simd/vec_sse2.h"
#include "../kernels/table.inc"
#include "../compact_end.inc"
#endif
