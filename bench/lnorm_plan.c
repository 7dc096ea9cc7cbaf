#include "implementations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Level 2 as an engine would use it: everything but lnorm_execute happens once. */
struct state {
    lnorm_plan plan;
    const lnorm_executor *executor;
    lnorm_tensor large[BENCH_MAX_SETS][3], parameters[4]; /* x, y or dx, dy; weight, bias, dweight, dbias */
    lnorm_io io[BENCH_MAX_SETS];
    int64_t strides[4];
    void *workspace;
    double *saved[BENCH_MAX_SETS]; /* mean, then rstd, of each row of x; NULL: computed anew */
    int64_t saved_shape[2];
    lnorm_tensor statistics[BENCH_MAX_SETS][2];
};

static lnorm_dtype dtype_of(enum bench_dtype dtype) {
    switch (dtype) {
    case BENCH_F32: return LNORM_F32;
    case BENCH_F64: return LNORM_F64;
    case BENCH_F16: return LNORM_F16;
    default: return LNORM_BF16;
    }
}

/* Dense in the order of the shape, but for rows of x and dy with a stride and for channels that come last. */
static lnorm_tensor tensor(struct state *state, const struct bench_problem *p, void *data, bool output) {
    const int64_t *shape = p->shape;
    lnorm_tensor t = lnorm_dense(data, dtype_of(p->dtype), p->ndim, shape);
    if (p->op == BENCH_GROUP && p->channels_last) {
        const int64_t strides[4] = {shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
        memcpy(state->strides, strides, sizeof strides);
        t.strides = state->strides;
    } else if (p->op != BENCH_GROUP && !output) {
        state->strides[0] = p->stride;
        state->strides[1] = 1;
        t.strides = state->strides;
    }
    return t;
}

static void describe(struct state *state, const struct bench_context *context) {
    const struct bench_problem *p = context->problem;
    const struct bench_memory *m = context->memory;
    void *const data[4] = {m->weight, p->op == BENCH_RMS ? NULL : m->bias, m->dweight,
                           p->op == BENCH_RMS ? NULL : m->dbias};
    for (int i = 0; i < 4; i++)
        state->parameters[i] = lnorm_dense(data[i], dtype_of(p->dtype), 1, &p->parameters);
    for (int i = 0; i < p->sets; i++) {
        const struct bench_set *set = &m->sets[i];
        lnorm_tensor *large = state->large[i];
        lnorm_io *io = &state->io[i];
        *io = (lnorm_io)LNORM_IO_INIT;
        large[0] = tensor(state, p, set->x, false);
        large[1] = tensor(state, p, p->backward ? set->dx : set->y, true);
        large[2] = tensor(state, p, set->dy, false);
        io->x = &large[0];
        io->weight = &state->parameters[0];
        io->bias = data[1] ? &state->parameters[1] : NULL;
        if (p->backward) {
            io->dy = &large[2];
            io->dx = &large[1];
            io->dweight = &state->parameters[2];
            io->dbias = data[3] ? &state->parameters[3] : NULL;
        } else {
            io->y = &large[1];
        }
    }
}

static lnorm_op operation(const struct bench_problem *p, lnorm_arithmetic arithmetic) {
    static const int64_t axis_0[1] = {0};
    lnorm_op op = LNORM_OP_INIT;
    op.kind = p->op == BENCH_RMS ? LNORM_RMS_NORM : p->op == BENCH_GROUP ? LNORM_GROUP_NORM : LNORM_LAYER_NORM;
    op.pass = p->backward ? LNORM_BACKWARD : LNORM_FORWARD;
    op.arithmetic = arithmetic;
    op.eps = BENCH_EPS;
    op.groups = p->groups;
    if (p->op == BENCH_COLUMNS) {
        op.axes = axis_0;
        op.axes_count = 1;
    }
    return op;
}

/* What a forward pass gives a backward one: mean and rstd of the rows of each x, in f64. False: it failed. */
static bool save_statistics(struct state *state, const struct bench_problem *p, lnorm_op op) {
    const int64_t rows = p->shape[0];
    state->saved_shape[0] = rows;
    state->saved_shape[1] = 1;
    op.pass = LNORM_FORWARD;
    for (int i = 0; i < p->sets; i++) {
        double *saved = state->saved[i] = malloc(2 * (size_t)rows * sizeof *saved);
        lnorm_tensor *statistics = state->statistics[i];
        lnorm_io io = LNORM_IO_INIT;
        if (!saved)
            return false;
        for (int k = 0; k < 2; k++)
            statistics[k] = lnorm_dense(saved + k * rows, LNORM_F64, 2, state->saved_shape);
        io.x = &state->large[i][0];
        io.mean = state->io[i].mean = &statistics[0];
        io.rstd = state->io[i].rstd = &statistics[1];
        if (lnorm_run(&op, &io, NULL, NULL))
            return false;
    }
    return true;
}

enum statistics { COMPUTED, GIVEN };

static void *open_with(const struct bench_context *context, lnorm_arithmetic arithmetic, enum statistics statistics,
                       char remark[BENCH_MESSAGE]) {
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->executor = context->executor;
    describe(state, context);
    lnorm_op op = operation(context->problem, arithmetic);
    lnorm_error error = LNORM_ERROR_INIT;
    bool ready = statistics == COMPUTED || save_statistics(state, context->problem, op);
    if (statistics == GIVEN)
        op.statistics = LNORM_SAVED;
    if (!ready || lnorm_plan_init(&state->plan, &op, &state->io[0], &error)) {
        snprintf(remark, BENCH_MESSAGE, "%.250s", ready ? error.message : "no statistics");
        bench_plan_close(state);
        return NULL;
    }
    size_t size = lnorm_plan_workspace(&state->plan);
    state->workspace = malloc(size ? size : 1);
    for (int i = 0; i < context->problem->sets; i++) {
        state->io[i].workspace = state->workspace;
        state->io[i].workspace_size = state->workspace ? size : 0;
    }
    return state;
}

void *bench_plan_open(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    return open_with(context, LNORM_ACCURATE, COMPUTED, remark);
}

void *bench_fast_open(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    return open_with(context, LNORM_FAST, COMPUTED, remark);
}

void *bench_saved_open(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    return open_with(context, LNORM_ACCURATE, GIVEN, remark);
}

void *bench_fast_saved_open(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    return open_with(context, LNORM_FAST, GIVEN, remark);
}

bool bench_plan_run(void *state, int set) {
    const struct state *s = state;
    return lnorm_execute(&s->plan, &s->io[set], s->executor) == LNORM_OK;
}

void bench_plan_close(void *state) {
    struct state *s = state;
    for (int i = 0; i < BENCH_MAX_SETS; i++)
        free(s->saved[i]);
    free(s->workspace);
    free(s);
}
