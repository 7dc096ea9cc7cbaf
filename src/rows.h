/* Contiguous rows, described for the rows kernels: what level 1 has at once, and the rows engine takes from a problem.
 * src/rows.c runs it. */
#ifndef LNORM_ROWS_H
#define LNORM_ROWS_H

#include "kernels.h"

/* Elements of any type at a stride; `at` NULL: absent. */
typedef struct lnorm_vector {
    char *at;
    int64_t stride;
    enum lnorm_element element;
} lnorm_vector;

typedef struct lnorm_rows_job {
    lnorm_rows a; /* of row 0, without mean and rstd */
    int64_t rows;
    int fast;                   /* the arithmetic */
    int saved;                  /* backward: mean and rstd are given; else they are outputs, of a forward pass only */
    int accumulate;
    lnorm_vector mean, rstd;      /* one per row */
    lnorm_vector dweight, dbias;  /* one per column */
    void *workspace;              /* NULL, or lnorm_rows_workspace bytes aligned to 64 */
} lnorm_rows_job;

/* lnorm_rows.stream: whether y, or dx, of this size is written past the caches. */
int lnorm_rows_stream(enum lnorm_element element, int backward, int64_t rows, int64_t cols);

/* Columns first .. first+count-1 of row `row`, and what is in the same columns of the rows after it, of a problem that
 * the rows engine takes. */
lnorm_rows lnorm_rows_part(const lnorm_problem *problem, const lnorm_data *data, int64_t row, int64_t first,
                           int64_t count);

/* What a backward pass of this job has use for. */
size_t lnorm_rows_workspace(const lnorm_rows_job *job);

/* The whole of a job, in the calling thread and in an environment that lnorm_environment_enter has set. */
void lnorm_rows_forward_all(const lnorm_rows_job *job, const lnorm_kernels *kernels);
void lnorm_rows_backward_all(const lnorm_rows_job *job, const lnorm_kernels *kernels);

#endif
