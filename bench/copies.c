#include "implementations.h"
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>
#define HAVE_STREAM 1
#else
#define HAVE_STREAM 0
#endif

typedef void copy(unsigned char *to, const unsigned char *from, size_t bytes);

struct state {
    const struct bench_context *context;
    copy *copy;
    size_t bytes, piece;
    int set;
};

static void copy_plain(unsigned char *to, const unsigned char *from, size_t bytes) {
    memcpy(to, from, bytes);
}

#if HAVE_STREAM
/* `to` is 64-byte aligned: the arrays are, and so are the pieces' sizes. Whole lines are streamed, the rest copied. */
__attribute__((target("avx2"))) static void stream_avx2(unsigned char *to, const unsigned char *from, size_t bytes) {
    size_t i = 0;
    for (; i + 64 <= bytes; i += 64) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
        __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(from + i + 32));
        _mm256_stream_si256((__m256i *)(void *)(to + i), low);
        _mm256_stream_si256((__m256i *)(void *)(to + i + 32), high);
    }
    memcpy(to + i, from + i, bytes - i);
    _mm_sfence();
}

static void stream_sse2(unsigned char *to, const unsigned char *from, size_t bytes) {
    size_t i = 0;
    for (; i + 64 <= bytes; i += 64) {
        for (size_t part = i; part < i + 64; part += 16) {
            __m128i element = _mm_loadu_si128((const __m128i *)(const void *)(from + part));
            _mm_stream_si128((__m128i *)(void *)(to + part), element);
        }
    }
    memcpy(to + i, from + i, bytes - i);
    _mm_sfence();
}

static copy *find_stream(void) {
    return __builtin_cpu_supports("avx2") ? stream_avx2 : stream_sse2;
}
#else
static copy *find_stream(void) {
    return NULL;
}
#endif

const char *bench_copy_version(void) {
#if defined __GLIBC__
    static char text[40];
    snprintf(text, sizeof text, "glibc %d.%d", __GLIBC__, __GLIBC_MINOR__);
    return text;
#else
    return "C library";
#endif
}

static void *open_with(const struct bench_context *context, copy *function, char remark[BENCH_MESSAGE]) {
    struct state *state = function ? calloc(1, sizeof *state) : NULL;
    if (!state) {
        snprintf(remark, BENCH_MESSAGE, "written for x86-64 only");
        return NULL;
    }
    const struct bench_problem *p = context->problem;
    state->context = context;
    state->copy = function;
    state->bytes = (size_t)p->count * bench_item_size(p->dtype);
    /* Four pieces per thread, of whole pages, none so small that starting it costs more than copying it. */
    size_t pieces = 4 * (size_t)context->threads;
    state->piece = (state->bytes / pieces + 4095) / 4096 * 4096;
    if (!context->executor || state->piece < 32768)
        state->piece = state->bytes;
    return state;
}

void *bench_memcpy_open(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    return open_with(context, copy_plain, remark);
}

void *bench_stream_open(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    return open_with(context, find_stream(), remark);
}

static void copy_piece(void *argument, int64_t index) {
    const struct state *s = argument;
    const struct bench_set *set = &s->context->memory->sets[s->set];
    size_t first = (size_t)index * s->piece, left = s->bytes - first;
    unsigned char *to = s->context->problem->backward ? set->dx : set->y;
    s->copy(to + first, (const unsigned char *)set->x + first, left < s->piece ? left : s->piece);
}

bool bench_copy_run(void *state, int set) {
    struct state *s = state;
    s->set = set;
    if (s->piece == s->bytes)
        copy_piece(s, 0);
    else
        bench_for(s->context->executor, (int64_t)((s->bytes + s->piece - 1) / s->piece), copy_piece, s);
    return true;
}

void bench_copy_close(void *state) {
    free(state);
}
