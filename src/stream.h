/* Finished results to memory that will not be read soon: whole lines go past the caches, which neither fetches a line
 * before it is overwritten nor drives out what is needed still. */
#ifndef LNORM_STREAM_H
#define LNORM_STREAM_H

#include "arithmetic.h"
#if defined __SSE2__
#include <emmintrin.h>
#endif

enum {
    LNORM_LINE = 64, /* bytes of a line of the cache */
    /* Outputs from this size on are streamed. The two ways were equal between 9 and 13 MB on a Xeon with AVX-512; on a
     * Zen 1 with 8 MiB of last-level cache streaming lost by 3 % at 12.6 MB and won by 4 and 10 % at 200 and 270. */
    LNORM_STREAM_BYTES = 12 << 20
};

/* Before another thread may hear that the results are there. */
static inline void lnorm_stream_end(void) {
#if defined __SSE2__
    _mm_sfence();
#endif
}

#endif
