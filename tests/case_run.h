/* Runs a case through the library in every way that fits it. */
#ifndef CASE_RUN_H
#define CASE_RUN_H

#include "case_buffer.h"
#include "case_geometry.h"

/* Counts over the cases of a file. */
typedef struct case_totals {
    const char *file;
    int quiet; /* 1: failures are counted, not printed */
    int run, level_1, aliased;
    int not_run; /* cases above the size asked for, or without memory */
    int64_t compared; /* values held against an expectation */
    int failures;
} case_totals;

/* Runs `item`, the `number`th of its file, and adds to `totals`. Cases larger than `largest` are only counted. */
void case_run(const layer_case *item, int number, enum case_size largest, case_totals *totals);

/* One call at level 1: outputs that are NULL are not asked for. */
typedef struct case_level_1 {
    lnorm_kind kind;
    enum case_element element;
    void *out[CASE_SLOTS];
    const void *in[CASE_FIRST_RESULT];
    int64_t rows, cols;
    double eps;
    void *workspace;
    size_t workspace_size;
} case_level_1;

/* Has level 1 a function for this case? */
int case_fits_level_1(const layer_case *item, const case_geometry *geometry);
lnorm_status case_level_1_forward(const case_level_1 *call);
lnorm_status case_level_1_backward(const case_level_1 *call);

#endif
