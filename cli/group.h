/* One group of a forward problem after the other, in f64: every element type widens exactly. */
#ifndef LNORM_CLI_GROUP_H
#define LNORM_CLI_GROUP_H

#include "problem.h"

typedef struct group {
    const lnorm_problem *problem;
    lnorm_data data;
    int64_t index, n;
    double *x, *y;                    /* [n] */
    double *weight, *bias;            /* [n], NULL where there is none; 1 + weight where the operation says so */
    double mean, variance;            /* given statistics */
    int64_t weight_base, bias_base;   /* which stretch of them was read last */
} group;

/* False where there is not enough memory. group_free in any case. */
int group_init(group *g, const lnorm_problem *problem, const lnorm_io *io);
void group_read(group *g, int64_t index);
void group_free(group *g);

/* Where element i of the group is in y, counted in elements. */
int64_t group_place(const group *g, int64_t i);

static inline double group_weight(const group *g, int64_t i) {
    return g->weight ? g->weight[i] : 1.0;
}

static inline double group_bias(const group *g, int64_t i) {
    return g->bias ? g->bias[i] : 0.0;
}

#endif
