#include "implementations.h"

#include <stdio.h>
#include <stdlib.h>

struct state;
typedef lnorm_status call(const struct state *state, const struct bench_set *set);

/* One function of level 1 and its arguments; or, where `function` is NULL, a plan. */
struct state {
    call *function;
    const struct bench_memory *memory;
    int64_t rows, cols;
    void *workspace;
    size_t workspace_size;
    void *plan;
};

/* The four calls of an element type, in the order of the table below. */
#define CALLS(type)                                                                                                   \
    static lnorm_status layer_##type(const struct state *s, const struct bench_set *a) {                             \
        return lnorm_layer_norm_##type(a->y, NULL, NULL, a->x, s->memory->weight, s->memory->bias, s->rows, s->cols, \
                                       BENCH_EPS);                                                                   \
    }                                                                                                                \
    static lnorm_status layer_backward_##type(const struct state *s, const struct bench_set *a) {                    \
        return lnorm_layer_norm_backward_##type(a->dx, s->memory->dweight, s->memory->dbias, a->dy, a->x,            \
                                                s->memory->weight, s->rows, s->cols, BENCH_EPS, s->workspace,        \
                                                s->workspace_size);                                                  \
    }                                                                                                                \
    static lnorm_status rms_##type(const struct state *s, const struct bench_set *a) {                               \
        return lnorm_rms_norm_##type(a->y, NULL, a->x, s->memory->weight, s->rows, s->cols, BENCH_EPS);              \
    }                                                                                                                \
    static lnorm_status rms_backward_##type(const struct state *s, const struct bench_set *a) {                      \
        return lnorm_rms_norm_backward_##type(a->dx, s->memory->dweight, a->dy, a->x, s->memory->weight, s->rows,    \
                                              s->cols, BENCH_EPS, s->workspace, s->workspace_size);                  \
    }
CALLS(f32)
CALLS(f64)
CALLS(f16)
CALLS(bf16)

static call *const calls[BENCH_DTYPES][4] = {
    {layer_f32, layer_backward_f32, rms_f32, rms_backward_f32},
    {layer_f64, layer_backward_f64, rms_f64, rms_backward_f64},
    {layer_f16, layer_backward_f16, rms_f16, rms_backward_f16},
    {layer_bf16, layer_backward_bf16, rms_bf16, rms_backward_bf16},
};

const char *bench_lnorm_version(void) {
    static char text[200];
    const char *isa = lnorm_isa();
    snprintf(text, sizeof text, "%s, %s, %s", lnorm_version(), isa ? isa : "no instruction set",
#if defined __clang__
             "clang " __clang_version__
#else
             "gcc " __VERSION__
#endif
    );
    return text;
}

void *bench_lnorm_open(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    const struct bench_problem *p = context->problem;
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    bool rows = (p->op == BENCH_LAYER || p->op == BENCH_RMS) && p->stride == p->shape[1];
    if (!rows || context->executor) {
        state->plan = bench_plan_open(context, remark);
        if (state->plan)
            return state;
        free(state);
        return NULL;
    }
    state->function = calls[p->dtype][(p->op == BENCH_RMS ? 2 : 0) + (p->backward ? 1 : 0)];
    state->memory = context->memory;
    state->rows = p->shape[0];
    state->cols = p->shape[1];
    if (p->backward) {
        state->workspace_size = lnorm_backward_workspace(state->rows, state->cols);
        state->workspace = malloc(state->workspace_size);
    }
    return state;
}

bool bench_lnorm_run(void *state, int set) {
    const struct state *s = state;
    return s->function ? s->function(s, &s->memory->sets[set]) == LNORM_OK : bench_plan_run(s->plan, set);
}

void bench_lnorm_close(void *state) {
    struct state *s = state;
    if (s->plan)
        bench_plan_close(s->plan);
    free(s->workspace);
    free(s);
}
