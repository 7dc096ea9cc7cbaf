/* The exact results of any canonical problem, computed with MPFR straight from the formulas of lnorm.h: for every
 * output element its value, the scale its error is judged on, and a bound of the error that the f64 arithmetic may
 * have made before the last rounding. Shares nothing with the library but the description of the problem. */
#ifndef LNORM_EXACT_H
#define LNORM_EXACT_H

#include "problem.h"
#include "exact_number.h"

/* docs/arithmetic.md's constants, written out anew: a wrong one in the library is to be found. */
enum { EXACT_LANES = 16, EXACT_BLOCK = 256, EXACT_ROW_BLOCK = 64, EXACT_SHORT = 16, EXACT_KAPPA = 64 };

/* One output: elements in logical (row-major) order of the axes (bits) that index it.
 *
 * scale, where M(a) is the mean of |a| over the group, |weight| is 1 without weight, and X = max(1, |xhat|), because an
 * error of the mean is an absolute error of xhat:
 *
 *     y             max(|y|, |weight|, |weight*xhat|, |bias|)
 *     mean, rstd    max(|mean|, M(x)); rstd
 *     running_mean  |(1-q)*old| + q*max(|mean|, M(x));   running_var: the same sum with the unbiased variance
 *     dx            r*(|g| + M(g) + X*M(g*X)); with constant statistics r*|g|
 *     dx, wide      max(|dx|, r*|g|, r*M(g), r*|xhat|*M(g*xhat)); with constant statistics r*|g|
 *     dweight       sum |dy|*X;   dbias: sum |dy|;   accumulate: + |old|
 *     ddy           |weight|*U with U = max(|u|, r*|v|, r*M(v), r*|xhat|*M(v*xhat)), the wide scale of dx with v for g
 *     2nd dweight   sum |dy|*r*(|v| + M(v) + X*M(v*X)), the magnitudes of u's terms
 *     2nd dx        r^2*(X*(M(v*g) + M(v)*M(g) + M(v*X)*M(g*X)) + (|v| + M(v) + X*M(v*X))*M(g*X)
 *                   + (|g| + M(g) + X*M(g*X))*M(v*X)), the magnitudes of its terms
 *     y_tangent     max(|y_tangent|, |weight|*U with x_tangent for v, |weight_tangent|*X, |bias_tangent|)
 *     mean_tangent  M(x_tangent);   rstd_tangent: r^2*M(x_tangent*X)
 *
 * Fast: X is at least |mean|*r*2^-23, too, where statistics are given, and y has |weight|*X for |weight|.
 *
 * error is in units of 2^-53 (exact_number.h); 0 says that the arithmetic, wide or not, must give the value itself. */
typedef struct exact_result {
    uint32_t axes;
    int64_t count;
    mpfr_t *value;
    long double *scale, *error;
} exact_result;

typedef struct exact {
    exact_result result[LNORM_OPERANDS]; /* count 0 where the operand is not an output of the problem */
    int64_t groups;
    long double *kappa; /* [groups] mean^2/variance where both are computed; NaN for 0/0 */
    uint8_t *constant;  /* [groups] all elements of x are equal and finite */
} exact;

/* Reads the problem's inputs, and the outputs that are read, too (accumulate, running statistics): to be called before
 * the library has run. Never NULL: ends the program when there is no memory. */
exact *exact_compute(const lnorm_problem *problem, const lnorm_data *data);
void exact_free(exact *e);

/* Offset in elements of index `index` of the axes (bits) for an operand. */
int64_t exact_offset(const lnorm_problem *problem, enum lnorm_operand operand, uint32_t axes, int64_t index);

/* An element's value, decoded from its bits. */
double exact_load(enum lnorm_element element, const void *data, int64_t index);

#endif
