/* The arrays that a verb writes: opened after everything has been checked, and committed together at the end. */
#ifndef LNORM_CLI_RESULTS_H
#define LNORM_CLI_RESULTS_H

#include "arguments.h"
#include "lnorm_files.h"

typedef struct result {
    const char *option; /* "output" */
    const char *path;   /* NULL: not wanted */
    lnorm_dtype dtype;
    int32_t ndim;
    int64_t shape[LNORM_MAX_NDIM];
    lnorm_file_writer *writer;
} result;

/* Paths: at least one is given, none twice; '-' is not a terminal. Functions that can fail return an exit status. */
int results_check(const result *results, int count);

/* The array that a result is. */
lnorm_tensor result_tensor(const result *r, void *data);

int results_open(result *results, int count);

/* One after the other; after a failure the rest is given up. */
int results_commit(result *results, int count);
void results_abort(result *results, int count);

#endif
