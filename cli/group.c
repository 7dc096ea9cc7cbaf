#include "group.h"
#include "access.h"

#include <stdlib.h>

static double *doubles(int64_t n) {
    return malloc((size_t)(n ? n : 1) * sizeof(double));
}

int group_init(group *g, const lnorm_problem *problem, const lnorm_io *io) {
    int with_weight = lnorm_has(problem, LNORM_WEIGHT), with_bias = lnorm_has(problem, LNORM_BIAS);
    memset(g, 0, sizeof *g);
    g->problem = problem;
    g->n = problem->element.count;
    g->weight_base = g->bias_base = -1;
    lnorm_problem_data(problem, io, 0, &g->data);
    g->x = doubles(g->n);
    g->y = doubles(g->n);
    g->weight = with_weight ? doubles(g->n) : NULL;
    g->bias = with_bias ? doubles(g->n) : NULL;
    return g->x && g->y && (g->weight || !with_weight) && (g->bias || !with_bias);
}

void group_free(group *g) {
    free(g->x);
    free(g->y);
    free(g->weight);
    free(g->bias);
    memset(g, 0, sizeof *g);
}

/* The group's elements of an operand that lie from `base` on. */
static void gather(const group *g, enum lnorm_operand operand, int64_t base, double *to) {
    const lnorm_problem *p = g->problem;
    const lnorm_space *space = &p->element;
    enum lnorm_element element = (enum lnorm_element)p->operand[operand].element;
    int64_t run = 1, step = 0;
    if (space->axes) {
        int last = space->axis[space->axes - 1];
        run = p->extent[last];
        step = p->operand[operand].stride[last];
    }
    for (int64_t first = 0; first < g->n; first += run) {
        int64_t at = base + lnorm_offset(p, operand, space, first);
        for (int64_t i = 0; i < run; i++)
            to[first + i] = lnorm_load(element, g->data.at[operand], at + i * step);
    }
}

static int64_t base_of(const group *g, enum lnorm_operand operand) {
    return lnorm_offset(g->problem, operand, &g->problem->group, g->index);
}

static double single(const group *g, enum lnorm_operand operand) {
    return lnorm_load((enum lnorm_element)g->problem->operand[operand].element, g->data.at[operand],
                      base_of(g, operand));
}

/* Parameters are mostly the same for all groups: read when they change. */
static void read_parameters(group *g) {
    int64_t base;
    if (g->weight && (base = base_of(g, LNORM_WEIGHT)) != g->weight_base) {
        gather(g, LNORM_WEIGHT, base, g->weight);
        g->weight_base = base;
        for (int64_t i = 0; g->problem->weight_offset && i < g->n; i++)
            g->weight[i] = 1.0 + g->weight[i];
    }
    if (g->bias && (base = base_of(g, LNORM_BIAS)) != g->bias_base) {
        gather(g, LNORM_BIAS, base, g->bias);
        g->bias_base = base;
    }
}

void group_read(group *g, int64_t index) {
    g->index = index;
    if (!g->n)
        return;
    gather(g, LNORM_X, base_of(g, LNORM_X), g->x);
    gather(g, LNORM_Y, base_of(g, LNORM_Y), g->y);
    read_parameters(g);
    if (g->problem->statistics != LNORM_CONSTANT)
        return;
    g->mean = g->problem->center ? single(g, LNORM_MEAN) : 0.0;
    g->variance = single(g, LNORM_VARIANCE);
}

int64_t group_place(const group *g, int64_t i) {
    return base_of(g, LNORM_Y) + lnorm_offset(g->problem, LNORM_Y, &g->problem->element, i);
}
