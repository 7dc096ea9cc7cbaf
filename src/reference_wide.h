/* The wide arithmetic: what its two files share. See docs/arithmetic.md, section 14. */
#ifndef LNORM_REFERENCE_WIDE_H
#define LNORM_REFERENCE_WIDE_H

#include "pairs.h"
#include "reference.h"

/* A direction w (dy*weight, v or x_tangent) over a group: w' = w / 2^k, M(w') and M(w' * xhat'). */
typedef struct lnorm_wide_means {
    lnorm_pair mean, product;
    int32_t k;
    int32_t padding;
} lnorm_wide_means;

/* What is kept of a group. Computed statistics are those of x' = x / 2^k: the deviation is (x' - c) - t, the variance
 * v * 2^2k. Given ones: c is the mean as it is, t = 0, k is not used. rstd is r * 2^-j. Gradients see xhat as
 * xhat' * 2^h; `square` is 2^2h. */
typedef struct lnorm_wide_record {
    double c, square;
    lnorm_pair t, v, r;
    int32_t k, j, h, padding;
    lnorm_wide_means along_v; /* double backward */
} lnorm_wide_record;
_Static_assert(sizeof(lnorm_wide_record) <= LNORM_RECORD_MAX, "the engine keeps a record on its stack");

/* A run of elements: those of a group, or those of a group that share an entry of dweight or dbias. */
typedef struct lnorm_wide_run {
    const lnorm_problem *problem;
    const lnorm_data *data;
    const lnorm_space *space;   /* the axes along which it runs */
    int64_t at[LNORM_MAX_AXES]; /* where it is on the others; 0 on its own */
} lnorm_wide_run;

lnorm_wide_run lnorm_wide_group(const lnorm_problem *problem, const lnorm_data *data, int64_t group);
void lnorm_wide_seek(lnorm_wide_run *run, const lnorm_space *space, int64_t index);

/* Reads `count` elements from index `first` on, or writes them. An absent operand reads as `absent`. */
void lnorm_wide_read(const lnorm_wide_run *run, enum lnorm_operand operand, int64_t first, int count, double absent,
                     double *value);
void lnorm_wide_write(const lnorm_wide_run *run, enum lnorm_operand operand, int64_t first, int count,
                      const double *value);
/* Weight as it is used: 1 where there is none, 1 + weight where the operation says so. */
void lnorm_wide_read_weight(const lnorm_wide_run *run, int64_t first, int count, double *weight);

/* One element per group; absent operands are not written. */
double lnorm_wide_read_one(const lnorm_wide_run *run, enum lnorm_operand operand);
void lnorm_wide_write_one(const lnorm_wide_run *run, enum lnorm_operand operand, double value);

static inline int lnorm_wide_length(int64_t count, int64_t first) {
    return (int)(count - first < LNORM_BLOCK ? count - first : LNORM_BLOCK);
}

static inline double lnorm_wide_square(int h) {
    return 2 * h < -1000 ? 0.0 : lnorm_power(2 * h);
}

static inline lnorm_scaled lnorm_wide_mean_of(const lnorm_wide_record *record) {
    lnorm_scaled mean = {lnorm_two_sum(record->c, record->t.h), record->k};
    mean.p.l = mean.p.l + record->t.l;
    return mean;
}

static inline lnorm_scaled lnorm_wide_rstd_of(const lnorm_wide_record *record) {
    lnorm_scaled rstd = {record->r, -record->j};
    return rstd;
}

/* Pieces that the vector kernels share. Computed statistics: k from the largest |x|; r, j and h from v and k; a group
 * that is spoilt as a whole. y of at most LNORM_BLOCK elements, weight and bias as they are used. */
int lnorm_wide_exponent(double largest);
void lnorm_wide_finish_root(lnorm_wide_record *record, double eps);
void lnorm_wide_spoil(lnorm_wide_record *record);
lnorm_pair lnorm_wide_mean(const lnorm_pair_tree *sum, int64_t count); /* m or n of a direction */
void lnorm_wide_y(const lnorm_wide_record *record, const double *x, const double *weight, const double *bias,
                  int count, double *y);

/* xhat' and its exponent, of `count` elements. */
void lnorm_wide_xhat(const lnorm_problem *problem, const lnorm_wide_record *record, const double *x, int count,
                     lnorm_scaled *xhat);

/* reference_wide_gradients.c */
void lnorm_wide_prepare_gradients(const lnorm_wide_run *run, lnorm_wide_record *record);
void lnorm_wide_finish_gradients(const lnorm_wide_run *run, const lnorm_wide_record *record);
void lnorm_wide_affine(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand which, int64_t entry,
                       const char *records);

#endif
