/* Layer norm of a row in about twice the precision of double, to judge f32 results by: how far is each from the exact
 * value, and is it the exact value rounded once?
 *
 * Numbers are "double-double": the unevaluated sum hi + lo of two doubles, |lo| <= ulp(hi)/2. With u = 2^-53 the
 * algorithms below have these relative errors, terms in u^3 left aside (M. Joldes, J.-M. Muller, V. Popescu, Tight and
 * rigorous error bounds for basic building blocks of double-word arithmetic, ACM TOMS 44(2), 2017, and for the root
 * V. Lefevre, N. Louvet, J.-M. Muller, J. Picot, L. Rideau, Accurate calculation of Euclidean norms using double-word
 * arithmetic, ACM TOMS 49(1), 2023):
 *
 *     sum 3 u^2    product 7 u^2    quotient 15 u^2    root 25/8 u^2
 *
 * They need |values| far from overflow and underflow, which activations are, and no contraction of a*b + c. */
#ifndef LNORM_EXAMPLES_EXACT_H
#define LNORM_EXAMPLES_EXACT_H

#if defined __FAST_MATH__
#error "compile without -ffast-math: it would optimise the error terms away"
#endif
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2
#error "double must be evaluated as double: on i386 use -msse2 -mfpmath=sse"
#endif

typedef struct exact {
    double hi, lo;
} exact;

/* hi + lo = a + b exactly; |a| >= |b| or a = 0 (Dekker). */
static inline exact exact_fast_two_sum(double a, double b) {
    double sum = a + b;
    return (exact){sum, b - (sum - a)};
}

/* hi + lo = a + b exactly (Knuth). */
static inline exact exact_two_sum(double a, double b) {
    double sum = a + b, b_part = sum - a, a_part = sum - b_part;
    return (exact){sum, (a - a_part) + (b - b_part)};
}

/* The upper 26 bits of a; what is left has 26, so that products of halves are exact (Veltkamp). */
static inline double exact_upper(double a) {
    double scaled = 134217729.0 * a; /* 2^27 + 1 */
    return scaled - (scaled - a);
}

/* hi + lo = a * b exactly (Dekker). */
static inline exact exact_two_product(double a, double b) {
    double product = a * b, a_hi = exact_upper(a), b_hi = exact_upper(b), a_lo = a - a_hi, b_lo = b - b_hi;
    return (exact){product, a_lo * b_lo - (((product - a_hi * b_hi) - a_lo * b_hi) - a_hi * b_lo)};
}

static inline exact exact_of(double a) {
    return (exact){a, 0.0};
}

static inline exact exact_add(exact a, exact b) {
    exact high = exact_two_sum(a.hi, b.hi), low = exact_two_sum(a.lo, b.lo);
    exact sum = exact_fast_two_sum(high.hi, high.lo + low.hi);
    return exact_fast_two_sum(sum.hi, low.lo + sum.lo);
}

static inline exact exact_subtract(exact a, exact b) {
    return exact_add(a, (exact){-b.hi, -b.lo});
}

static inline exact exact_multiply(exact a, exact b) {
    exact product = exact_two_product(a.hi, b.hi);
    double cross = a.hi * b.lo + a.lo * b.hi;
    return exact_fast_two_sum(product.hi, product.lo + cross);
}

static inline exact exact_divide(exact a, exact b) {
    double quotient = a.hi / b.hi;
    exact product = exact_two_product(b.hi, quotient);
    exact back = exact_fast_two_sum(product.hi, b.lo * quotient + product.lo);
    double rest = (a.hi - back.hi) + (a.lo - back.lo);
    return exact_fast_two_sum(quotient, rest / b.hi);
}

/* a > 0 */
static inline exact exact_root(exact a) {
    double root = sqrt(a.hi);
    exact square = exact_two_product(root, root);
    double rest = ((a.hi - square.hi) - square.lo) + a.lo;
    return exact_fast_two_sum(root, rest / (2.0 * root));
}

/* What a row's values have in common. */
typedef struct exact_row {
    exact mean, deviation;  /* deviation = sqrt(variance + eps) */
    double mean_magnitude;  /* mean of |x| */
    int64_t cols;
} exact_row;

static inline exact_row exact_statistics(const float *x, int64_t cols, double eps) {
    exact sum = exact_of(0.0), squares = exact_of(0.0), count = exact_of((double)cols);
    double magnitude = 0.0;
    for (int64_t i = 0; i < cols; i++) {
        sum = exact_add(sum, exact_of((double)x[i]));
        magnitude += fabs((double)x[i]);
    }
    exact mean = exact_divide(sum, count);
    for (int64_t i = 0; i < cols; i++) {
        exact d = exact_subtract(exact_of((double)x[i]), mean);
        squares = exact_add(squares, exact_multiply(d, d));
    }
    exact variance = exact_divide(squares, count);
    return (exact_row){mean, exact_root(exact_add(variance, exact_of(eps))), magnitude / (double)cols, cols};
}

/* One exact result: the value, a bound of its error, and the scale whose ulp lnorm's promise is in. */
typedef struct exact_value {
    exact y;
    double bound, scale;
} exact_value;

/* y = (x - mean)/deviation*weight + bias and a bound of its error. With N elements in a row, A = mean|x|, xhat the
 * normalised value and r = 1/deviation, in units of u^2, terms of higher order covered by rounding the constants up:
 *
 *   mean      N sums of partial sums <= N*A and one quotient:     (3N + 15)*A         absolute, called e
 *   x - mean  inherits e, one sum:                                e + 3|x - mean|     absolute
 *   variance  rounding: 2*3 (deviations) + 7 (square) + 3N (sums) + 15 (quotient) + 3 (eps): (3N + 31) relative;
 *             inherited: 2 e mean|x - mean| <= 2 e / r, relative to variance + eps = 1/r^2:  2 e r
 *   root      half of both, and 25/8:                             (1.5N + 19) + e r   relative
 *   xhat      with x - mean and the quotient:                     (1.5N + 37)|xhat| + e r (1 + |xhat|)  absolute
 *   y         times |weight|, 7 for the product, 3|y| for the sum.
 *
 * For a row of 384 activations with A*r about 1 and |xhat| < 20 that is below 2^15 u^2 = 2^-91 of the weight, while the
 * floats near it are 2^-24 of it apart: only a value within the bound of a midpoint between two floats is undecidable,
 * about one in 2^66. Such cases are counted nevertheless, not guessed. */
static inline exact_value exact_normalise(const exact_row *row, float x, float weight, float bias) {
    const double u2 = 0x1p-106, n = (double)row->cols;
    exact xhat = exact_divide(exact_subtract(exact_of((double)x), row->mean), row->deviation);
    exact scaled = exact_multiply(xhat, exact_of((double)weight));
    exact y = exact_add(scaled, exact_of((double)bias));
    double size = fabs(xhat.hi), inherited = (3.0 * n + 20.0) * row->mean_magnitude / row->deviation.hi;
    double bound = fabs((double)weight) * (inherited * (1.0 + size) + (1.5 * n + 64.0) * size) + 4.0 * fabs(y.hi);
    double scale = fmax(fmax(fabs(y.hi), fabs(scaled.hi)), fmax(fabs((double)weight), fabs((double)bias)));
    return (exact_value){y, bound * u2, scale};
}

/* Distance of a result from the exact value in ulps of f32 at the value's scale. */
static inline double exact_error_ulp(const exact_value *value, float got) {
    int exponent = value->scale > 0x1p-126 ? ilogb(value->scale) : -126;
    return fabs(exact_subtract(exact_of((double)got), value->y).hi) / ldexp(1.0, exponent - 23);
}

typedef enum exact_verdict { EXACT_ROUNDED_WRONGLY, EXACT_ROUNDED_CORRECTLY, EXACT_UNDECIDED } exact_verdict;

/* Is `got` the float nearest to the exact value, that is: does the value lie between the midpoints to its neighbours?
 * Midpoints have 25 bits: exact in double. A value on a midpoint would be undecided. */
static inline exact_verdict exact_judge(const exact_value *value, float got) {
    if (!(fabsf(got) < FLT_MAX))
        return EXACT_ROUNDED_WRONGLY;
    double lower = 0.5 * ((double)got + (double)nextafterf(got, -INFINITY));
    double upper = 0.5 * ((double)got + (double)nextafterf(got, INFINITY));
    double inside = fmin(exact_subtract(value->y, exact_of(lower)).hi, exact_subtract(exact_of(upper), value->y).hi);
    if (inside > value->bound)
        return EXACT_ROUNDED_CORRECTLY;
    return inside < -value->bound ? EXACT_ROUNDED_WRONGLY : EXACT_UNDECIDED;
}

#endif
