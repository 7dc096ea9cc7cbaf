/* Mean and variance of a group as a recipe computes them. */
#ifndef LNORM_CLI_MOMENTS_H
#define LNORM_CLI_MOMENTS_H

#include "group.h"
#include "recipe.h"

/* x - mean is (x - shift) - rest. */
typedef struct moments {
    double shift, rest, variance;
} moments;

moments moments_of(const group *g, const recipe *r);

/* What x - mean is multiplied by. */
double moments_rstd(const recipe *r, double variance);

static inline double moments_deviation(const moments *m, const recipe *r, double x) {
    return r->keeps_mean ? x : (x - m->shift) - m->rest;
}

#endif
