/* Plain loops, for rows. This file is compiled with every liberty the compiler knows (cmake/bench.cmake), among them
 * other bits on another machine: what a program gets that has a layer norm of its own. Once more it is compiled for
 * AVX2, where that is: BENCH_LOOP is what its functions are called, BENCH_LOOP_FLAGS says how it is compiled. */
#include "implementations.h"
#include "threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN(first, second) first##_##second
#define JOIN_EXPANDED(first, second) JOIN(first, second)
#define LOOP(function) JOIN_EXPANDED(BENCH_LOOP, function)

struct loop {
    const struct bench_context *context;
    void (*forward)(const struct loop *loop, int64_t first, int64_t end, int set);
    void (*backward)(const struct loop *loop, int64_t first, int64_t end, int set, void *partial);
    void (*add_partials)(const struct loop *loop);
    int64_t rows, cols, stride;
    int64_t slices; /* the rows are cut into so many, for the threads */
    int set;
    size_t real_size;
    void *partials; /* backward: per slice dweight and dbias */
};

static inline float bf16_load(uint16_t element) {
    uint32_t bits = (uint32_t)element << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To nearest, ties to even; no NaN comes here. */
static inline uint16_t bf16_store(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define NAME(function) f32_##function
#define TYPE float
#define REAL float
#define LOAD(element) (element)
#define STORE(real) (real)
#include "plain_loop.inc"

#define NAME(function) f64_##function
#define TYPE double
#define REAL double
#define LOAD(element) (element)
#define STORE(real) (real)
#include "plain_loop.inc"

#define NAME(function) bf16_##function
#define TYPE uint16_t
#define REAL float
#define LOAD(element) bf16_load(element)
#define STORE(real) bf16_store(real)
#include "plain_loop.inc"

#if defined __FLT16_MANT_DIG__
__extension__ typedef _Float16 half;
#define NAME(function) f16_##function
#define TYPE half
#define REAL float
#define LOAD(element) ((float)(element))
#define STORE(real) ((half)(real))
#include "plain_loop.inc"
#define F16_LOOPS {f16_layer, f16_rms, f16_layer_backward, f16_add_partials, sizeof(float)}
#else
#define F16_LOOPS {NULL, NULL, NULL, NULL, 0}
#endif

static const struct {
    void (*layer)(const struct loop *loop, int64_t first, int64_t end, int set);
    void (*rms)(const struct loop *loop, int64_t first, int64_t end, int set);
    void (*layer_backward)(const struct loop *loop, int64_t first, int64_t end, int set, void *partial);
    void (*add_partials)(const struct loop *loop);
    size_t real_size;
} loops[BENCH_DTYPES] = {
    {f32_layer, f32_rms, f32_layer_backward, f32_add_partials, sizeof(float)},
    {f64_layer, f64_rms, f64_layer_backward, f64_add_partials, sizeof(double)},
    F16_LOOPS,
    {bf16_layer, bf16_rms, bf16_layer_backward, bf16_add_partials, sizeof(float)},
};

const char *LOOP(version)(void) {
    return BENCH_LOOP_FLAGS;
}

void *LOOP(open)(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    const struct bench_problem *p = context->problem;
    bool rms = p->op == BENCH_RMS;
    if (p->op == BENCH_GROUP || p->op == BENCH_COLUMNS || (rms && p->backward)) {
        snprintf(remark, BENCH_MESSAGE, "written for rows of layer norm, and RMS norm forward");
        return NULL;
    }
    if (!loops[p->dtype].layer) {
        snprintf(remark, BENCH_MESSAGE, "this compiler has no _Float16");
        return NULL;
    }
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    loop->context = context;
    loop->forward = rms ? loops[p->dtype].rms : loops[p->dtype].layer;
    loop->backward = p->backward ? loops[p->dtype].layer_backward : NULL;
    loop->add_partials = loops[p->dtype].add_partials;
    loop->rows = p->shape[0];
    loop->cols = p->shape[1];
    loop->stride = p->stride;
    loop->slices = context->executor ? context->threads : 1;
    loop->real_size = loops[p->dtype].real_size;
    if (p->backward && !(loop->partials = malloc(2 * (size_t)(loop->slices * loop->cols) * loop->real_size))) {
        snprintf(remark, BENCH_MESSAGE, "too little memory");
        free(loop);
        return NULL;
    }
    return loop;
}

static void run_slice(void *argument, int64_t slice) {
    const struct loop *loop = argument;
    int64_t first = loop->rows * slice / loop->slices, end = loop->rows * (slice + 1) / loop->slices;
    if (loop->backward)
        loop->backward(loop, first, end, loop->set,
                       (unsigned char *)loop->partials + 2 * (size_t)(slice * loop->cols) * loop->real_size);
    else
        loop->forward(loop, first, end, loop->set);
}

bool LOOP(run)(void *state, int set) {
    struct loop *loop = state;
    loop->set = set;
    if (loop->slices == 1)
        run_slice(loop, 0);
    else
        bench_for(loop->context->executor, loop->slices, run_slice, loop);
    if (loop->backward)
        loop->add_partials(loop);
    return true;
}

void LOOP(close)(void *state) {
    struct loop *loop = state;
    free(loop->partials);
    free(loop);
}
