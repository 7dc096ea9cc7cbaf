/* Long rows in the fast arithmetic: what the engine (long.c) asks of a part of a row, columns first .. first+count-1. */
#ifndef LNORM_LONG_FAST_H
#define LNORM_LONG_FAST_H

#include "kernels/fast.h"

typedef struct lnorm_long_part {
    const lnorm_problem *problem; /* one that the rows engine takes, too */
    const lnorm_data *data;
    const lnorm_kernels *kernels;
    int64_t row, first, count;
} lnorm_long_part;

/* LNORM_SUM_RUNS or LNORM_SUM_GRADIENT, of whole blocks of the tree of runs but for the row's last. */
ln_pair lnorm_long_fast_sum(const lnorm_long_part *part, enum lnorm_sum which, const ln_record *s);

/* All of a row, forward: first is 0, count all. s->c and s->r become what mean and rstd are. */
void lnorm_long_fast_row(const lnorm_long_part *part, ln_record *s);

/* y, or dx. */
void lnorm_long_fast_apply(const lnorm_long_part *part, const ln_record *s);

/* dx, if wanted, and the sums over all rows, from +0.0 on; part->row is 0. */
void lnorm_long_fast_columns(const lnorm_long_part *part, int64_t rows, const ln_record *s, double *dweight,
                             double *dbias);

#endif
