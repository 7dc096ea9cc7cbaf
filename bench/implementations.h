/* The functions behind the table in lnorm_worker.c; what each has to do is said in implementation.h. */
#ifndef LNORM_BENCH_IMPLEMENTATIONS_H
#define LNORM_BENCH_IMPLEMENTATIONS_H

#include "implementation.h"

/* lnorm_level1.c: one call of level 1 where that computes the case (dense rows, one thread), otherwise a ready plan. */
const char *bench_lnorm_version(void);
void *bench_lnorm_open(const struct bench_context *context, char remark[BENCH_MESSAGE]);
bool bench_lnorm_run(void *state, int set);
void bench_lnorm_close(void *state);

/* lnorm_plan.c: level 2 with a ready plan; the accurate arithmetic and the fast one. The last two, for backward passes
 * of layer norm, are given mean and rstd, as PyTorch and oneDNN are; the first two compute them anew. */
void *bench_plan_open(const struct bench_context *context, char remark[BENCH_MESSAGE]);
void *bench_fast_open(const struct bench_context *context, char remark[BENCH_MESSAGE]);
void *bench_saved_open(const struct bench_context *context, char remark[BENCH_MESSAGE]);
void *bench_fast_saved_open(const struct bench_context *context, char remark[BENCH_MESSAGE]);
bool bench_plan_run(void *state, int set);
void bench_plan_close(void *state);

/* copies.c: as many bytes as x has, from x to y. */
const char *bench_copy_version(void);
void *bench_memcpy_open(const struct bench_context *context, char remark[BENCH_MESSAGE]);
void *bench_stream_open(const struct bench_context *context, char remark[BENCH_MESSAGE]);
bool bench_copy_run(void *state, int set);
void bench_copy_close(void *state);

/* plain_loop.c: the formula as loops, for the compiler to make fast with every liberty, for this machine and, on x86-64,
 * for one with AVX2 and no more. */
#define BENCH_DECLARE_LOOP(name)                                                                                       \
    const char *name##_version(void);                                                                                  \
    void *name##_open(const struct bench_context *context, char remark[BENCH_MESSAGE]);                                \
    bool name##_run(void *state, int set);                                                                             \
    void name##_close(void *state)
BENCH_DECLARE_LOOP(bench_loop);
BENCH_DECLARE_LOOP(bench_loop_avx2);

#endif
