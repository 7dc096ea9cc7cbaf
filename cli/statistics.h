/* Mean and variance of a group to about 90 bits, in pairs of f64 (pairs.h). */
#ifndef LNORM_CLI_STATISTICS_H
#define LNORM_CLI_STATISTICS_H

#include "pairs.h"

/* Relative error of one operation on pairs: at most some 10 units of 2^-106. That of a sum, relative to the sum of its
 * terms' magnitudes: where no term passes more than L = 64 + 40 additions, the low part is at most (L + 1)*u of that
 * sum, each addition rounds it twice, which makes 2*L*(L + 1)*u^2 < 2^-91, and the terms' own errors on top. */
#define PAIR_ERROR 0x1p-100
#define SUM_ERROR 0x1p-90

/* Elements whose magnitudes lie in here (or are 0) keep all products of the formulas far from overflow and
 * underflow. */
#define LEAST_MAGNITUDE 0x1p-250
#define LARGEST_MAGNITUDE 0x1p250

static inline int in_pair_range(double value) {
    double magnitude = fabs(value);
    return magnitude == 0.0 || (magnitude >= LEAST_MAGNITUDE && magnitude <= LARGEST_MAGNITUDE);
}

typedef struct pair_statistics {
    int finite, in_range, constant; /* of the elements; nothing else is set where they are not finite and in range */
    double shift;                   /* the mean is shift + rest: rest has an error of at most SUM_ERROR*sqrt(square) */
    lnorm_pair rest;
    lnorm_pair variance;            /* error at most 4*SUM_ERROR*square */
    double square;                  /* the mean of (x - shift)^2 */
} pair_statistics;

/* about_mean 0: the mean of squares; shift and rest are 0. All is exact for a constant group about its mean. n > 0. */
void statistics_of(pair_statistics *s, const double *x, int64_t n, int about_mean);

/* x - mean */
static inline lnorm_pair deviation(const pair_statistics *s, double x) {
    return lnorm_pair_norm(lnorm_pair_sub(lnorm_two_sum(x, -s->shift), s->rest));
}

#endif
