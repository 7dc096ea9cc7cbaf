/* One case of the benchmark as a worker sees it, and its arrays. */
#ifndef LNORM_BENCH_PROBLEM_H
#define LNORM_BENCH_PROBLEM_H

#include "data.h"

#include <stdbool.h>

/* Layer and RMS norm of rows [rows, cols]; layer norm of [rows, cols] over axis 0; group norm of [N, C, H, W]. */
enum bench_op { BENCH_LAYER, BENCH_RMS, BENCH_COLUMNS, BENCH_GROUP };

enum { BENCH_MAX_SETS = 16, BENCH_MESSAGE = 300 };

/* eps of every case and every implementation: the f32 next to 1e-5, as some take an f32. */
#define BENCH_EPS 0x1.4f8b58p-17

struct bench_problem {
    enum bench_op op;
    enum bench_dtype dtype;
    bool backward;
    bool channels_last;    /* group norm: x lies in memory as [N, H, W, C] */
    int ndim;              /* 2, for group norm 4 */
    int64_t shape[4];
    int64_t stride;        /* from row to row of x, in elements; cols where rows are dense */
    int64_t groups;        /* group norm */
    int sets;              /* so many copies of the large arrays, used in turn */
    /* derived */
    int64_t count;         /* elements of y, dx */
    int64_t stored;        /* elements of x, dy: count, more where rows have a stride */
    int64_t parameters;    /* elements of weight, bias and their gradients */
};

/* y of a forward pass, dy and dx of a backward pass: the others are NULL. */
struct bench_set {
    void *x, *y, *dy, *dx;
};

struct bench_memory {
    struct bench_set sets[BENCH_MAX_SETS];
    void *weight, *bias, *dweight, *dbias;
};

/* A case line: words KEY=VALUE of op, pass, dtype, shape (2x3), stride, groups, layout (first, last), sets. false, with
 * a message that names the word, where it is none. */
bool bench_parse(struct bench_problem *problem, const char *line, char message[BENCH_MESSAGE]);

/* All arrays of a problem, filled; weight, bias and their gradients are of the type `parameters`. false where memory
 * does not suffice; release is for either. */
bool bench_memory_create(struct bench_memory *memory, const struct bench_problem *problem, enum bench_dtype parameters);
void bench_memory_release(struct bench_memory *memory);

#endif
