/* One group of the exact computation: its inputs, its numbers, and the sums over all groups it adds to. */
#ifndef LNORM_EXACT_ROW_H
#define LNORM_EXACT_ROW_H

#include "exact.h"

typedef struct exact_affine {
    int64_t count;
    number_sums *sum;
    long double *scale;
} exact_affine;

enum { EXACT_TEMPORARIES = 6, EXACT_SUMS = 3 };

/* The means of a group, by the names of DESIGN section 3: mean, variance, r; then c1 c2 of g, a1 a2 of w (v or
 * x_tangent), b of v*g. */
enum { EXACT_MEAN, EXACT_VARIANCE, EXACT_R, EXACT_C1, EXACT_C2, EXACT_A1, EXACT_A2, EXACT_B, EXACT_MEANS };

typedef struct exact_row {
    exact *e;
    const lnorm_problem *problem;
    const lnorm_data *data;
    int64_t n, group;
    double *in[LNORM_OPERANDS]; /* [n] each operand that has elements */
    double one[LNORM_OPERANDS]; /* each operand that has one element per group */
    struct exact_position {
        int64_t element, weight, bias; /* index in y; in dweight; in dbias */
    } *at;
    number *xhat, *g, *w; /* [n] */
    number *temporary, *mean;
    number_sums sum[EXACT_SUMS];
    long double mean_abs_x; /* M(x) */
    /* M(g), M(g*xhat), M(g*X) and the same of w, where M is the mean of magnitudes and X = max(1, |xhat|) */
    struct exact_magnitudes {
        long double one, xhat, wide;
    } of_g, of_w;
    exact_affine dweight, dbias;
    long double least_x;             /* X is at least this: 1, fast with given statistics also |mean|*r*2^-23 */
    long double reach, reach_of_all; /* the largest |xhat| or 1, of the group and of all groups so far */
} exact_row;

void *exact_memory(int64_t count, size_t size);
int exact_chain(int64_t count);
void exact_store(exact_row *row, enum lnorm_operand operand, int64_t index, const number *n, long double scale);

/* exact_fast.c: what X is at least, and the bound that takes the place of `error`. INFINITY: any result will do. */
long double exact_fast_reach(const exact_row *row);
long double exact_fast_error(const exact_row *row, enum lnorm_operand operand, long double scale, long double error);

void exact_row_compute(exact_row *row);

#endif
