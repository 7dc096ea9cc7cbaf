/* A formula for y, right or wrong, evaluated in f64 and rounded to Y's type: how near does it come to Y? */
#ifndef LNORM_CLI_RECIPE_H
#define LNORM_CLI_RECIPE_H

#include "operation.h"
#include "problem.h"

/* What Y is compared with. weight and bias have an extent for every axis of x, 1 along those that do not index them, so
 * that they stay where they are when the formula normalises over other axes. */
typedef struct subject {
    const lnorm_tensor *x, *y;
    const lnorm_op *op;                      /* as asked for, with affine_broadcast */
    lnorm_tensor weight, bias;               /* ndim -1: absent */
    int64_t weight_shape[LNORM_MAX_NDIM], bias_shape[LNORM_MAX_NDIM];
    const lnorm_tensor *mean, *variance;     /* given statistics, or NULL */
    enum lnorm_element x_element, y_element;
    double eps;                              /* the right one */
    int64_t n;                               /* elements of a group */
    int64_t worst;                           /* the group with the worst element: always among those compared */
    uint32_t axes;                           /* normalised over, bits; 0 for group norm, which splits one */
} subject;

enum layout { ROW_MAJOR, COLUMN_MAJOR, LAST_TWO_SWAPPED };
enum sums { ACCURATE, F32_SQUARES_IN_ORDER, F32_SQUARES_IN_TREE, HALF_IN_ORDER };
enum root { EPS_INSIDE, EPS_OUTSIDE, NO_ROOT };
enum divisor { BY_N, BY_N_LESS_1, BY_1 };
enum parameter { OWN, NONE, OTHER };
enum fitted { NOTHING, STATISTICS, PARAMETERS };

/* The right formula is all zeros but eps and the three `rounded`, which are LNORM_ELEMENT_ABSENT. */
typedef struct recipe {
    double eps;
    uint32_t axes;                 /* other than the right ones */
    enum layout x_layout, y_layout;
    enum sums sums;
    enum lnorm_element half;       /* f16 or bf16, for HALF_IN_ORDER */
    enum root root;
    enum divisor divisor;
    enum parameter weight, bias;
    int other_offset;              /* 1 + weight where weight is right, and the reverse */
    int keeps_mean, about_zero;    /* the mean is not removed; x^2 instead of (x - mean)^2 is averaged. RMS: both */
    int computes_statistics;       /* from x, although they are given */
    enum lnorm_element statistics_rounded, xhat_rounded, y_rounded; /* to a narrower type on the way */
    enum fitted fitted;            /* to Y: mean and variance of each group; or weight and bias */
} recipe;

/* weight and bias as broadcast tensors, n, axes and x_element; the rest is the caller's. */
void subject_init(subject *s, const lnorm_problem *problem, const lnorm_op *op, const lnorm_io *io);

recipe right_recipe(const subject *s);

/* Evaluates it on a sample of at most some 2^17 elements, spread over all groups. `distance`: the mean of |Y - recipe|
 * in ulps of the largest of both and of weight and bias, differences beyond 2^30 ulps counted as that. `noise`: how
 * many ulps arithmetic in f32 (for Y of f64: f64) may cost there, on average: the mean is |mean|/deviation times larger
 * than what is left of x after it has been removed. Infinite where the recipe cannot be evaluated. */
typedef struct fit {
    double distance, noise;
    double variance_off, mean_off; /* STATISTICS: the most that they differ, relative; in deviations */
} fit;
fit recipe_fit(const recipe *r, const subject *s);

#endif
