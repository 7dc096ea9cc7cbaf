/* Copying finished results to memory that will not be read soon: whole lines go past the caches, which neither fetches
 * a line before it is overwritten nor drives out what is needed still. */
#ifndef LNORM_STREAM_H
#define LNORM_STREAM_H

#include "arithmetic.h"
#include <string.h>
#if defined __SSE2__
#include <emmintrin.h>
#endif

enum {
    LNORM_LINE = 64, /* bytes of a line of the cache */
    /* Outputs from this size on are streamed. The two ways were equal between 9 and 13 MB on a Xeon with AVX-512; on a
     * Zen 1 with 8 MiB of last-level cache streaming lost by 3 % at 12.6 MB and won by 4 and 10 % at 200 and 270. */
    LNORM_STREAM_BYTES = 12 << 20
};

/* What is left of the first and the last line is stored as usual: a line that stays half written for long is slow. */
static inline void lnorm_stream(char *to, const char *from, int64_t bytes) {
#if defined __SSE2__
    int64_t head = (int64_t)(-(uintptr_t)to & (LNORM_LINE - 1));
    head = head < bytes ? head : bytes;
    if (head)
        memcpy(to, from, (size_t)head);
    for (to += head, from += head, bytes -= head; bytes >= LNORM_LINE; bytes -= LNORM_LINE) {
        for (int k = 0; k < LNORM_LINE; k += 16)
            _mm_stream_si128((__m128i *)(void *)(to + k), _mm_loadu_si128((const __m128i *)(const void *)(from + k)));
        to += LNORM_LINE;
        from += LNORM_LINE;
    }
#endif
    if (bytes)
        memcpy(to, from, (size_t)bytes);
}

/* Before another thread may hear that the results are there. */
static inline void lnorm_stream_end(void) {
#if defined __SSE2__
    _mm_sfence();
#endif
}

#endif
