/* What a C worker can run: one line of a table per implementation. */
#ifndef LNORM_BENCH_IMPLEMENTATION_H
#define LNORM_BENCH_IMPLEMENTATION_H

#include "problem.h"

#include <lnorm.h>

struct bench_context {
    const struct bench_problem *problem;
    const struct bench_memory *memory;
    const lnorm_executor *executor; /* NULL: one thread */
    int threads;
};

struct bench_implementation {
    const char *name;
    const char *(*version)(void);
    /* Gets ready for a case, with everything that a program does once and not per call. What it gives is handed to run
     * and close. NULL where the case is not for this implementation: `remark` then says why. Otherwise `remark`, which
     * begins empty, may say how the work differs from lnorm's. The context outlives close. */
    void *(*open)(const struct bench_context *context, char remark[BENCH_MESSAGE]);
    /* The operation, once, on memory->sets[set]. Only this is timed. False: it failed. */
    bool (*run)(void *state, int set);
    void (*close)(void *state);
    bool f32_parameters; /* weight and bias are f32 whatever the case's element type is */
    bool no_results;     /* nothing to compare: the copies */
};

/* The table of this program, up to a line without a name. */
extern const struct bench_implementation bench_implementations[];

#endif
