/* oneDNN behind implementation.h: the C API of versions 2 and 3. Weight and bias are f32 there, whatever x is; the
 * statistics that a backward pass reads come from a forward pass that is not timed. */
#include "implementation.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_LEAST(major, minor) (DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR >= (major) * 100 + (minor))

/* Version 2 describes memory by a struct, version 3 by a handle. */
#if AT_LEAST(3, 0)
typedef dnnl_memory_desc_t descriptor;
#define REFERENCE(descriptor) (descriptor)
#define DESCRIBE dnnl_memory_desc_create_with_strides
#else
typedef dnnl_memory_desc_t descriptor;
#define REFERENCE(descriptor) (&(descriptor))
#define DESCRIBE dnnl_memory_desc_init_by_strides
#endif

enum { MAX_ARGUMENTS = 9, MAX_MEMORIES = 4 * BENCH_MAX_SETS + 6 };

struct state {
    const struct bench_context *context;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    descriptor x, y, statistics, parameters;
    unsigned flags;
    dnnl_primitive_desc_t forward, backward;
    dnnl_primitive_t primitive;
    dnnl_memory_t mean, variance, memories[MAX_MEMORIES];
    int memories_count, arguments_count;
    dnnl_exec_arg_t arguments[BENCH_MAX_SETS][MAX_ARGUMENTS];
    char *remark;
};

/* False, and a remark unless there is one already, where a call failed. */
static bool succeed(struct state *state, dnnl_status_t status, const char *call) {
    if (status != dnnl_success && !state->remark[0])
        snprintf(state->remark, BENCH_MESSAGE, status == dnnl_unimplemented ? "%s: not implemented" : "%s: status %d",
                 call, (int)status);
    return status == dnnl_success;
}

static bool describe(struct state *state, descriptor *made, int ndim, const int64_t *shape, const int64_t *strides,
                     enum bench_dtype dtype) {
    static const dnnl_data_type_t types[BENCH_DTYPES] = {dnnl_f32, dnnl_data_type_undef, dnnl_f16, dnnl_bf16};
    dnnl_dims_t extents, steps;
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; step *= shape[i--]) {
        extents[i] = shape[i];
        steps[i] = strides ? strides[i] : step;
    }
    return succeed(state, DESCRIBE(made, ndim, extents, types[dtype], steps), "memory descriptor");
}

/* oneDNN normalises over the last axis: a norm over axis 0 is one of the transposed array, its strides exchanged. */
static bool describe_all(struct state *state) {
    const struct bench_problem *p = state->context->problem;
    const int64_t *shape = p->shape;
    int64_t extents[4] = {shape[0], shape[1], shape[2], shape[3]};
    int64_t x_strides[4] = {p->stride, 1}, y_strides[4] = {shape[1], 1};
    if (p->op == BENCH_COLUMNS) {
        extents[0] = shape[1];
        extents[1] = shape[0];
        x_strides[0] = y_strides[0] = 1;
        x_strides[1] = y_strides[1] = shape[1];
    } else if (p->op == BENCH_GROUP) {
        int64_t pixel = p->channels_last ? shape[1] : 1;
        x_strides[0] = shape[1] * shape[2] * shape[3];
        x_strides[1] = p->channels_last ? 1 : shape[2] * shape[3];
        x_strides[2] = shape[3] * pixel;
        x_strides[3] = pixel;
        memcpy(y_strides, x_strides, sizeof y_strides);
    }
    int64_t groups[2] = {extents[0], p->groups};
    return describe(state, &state->x, p->ndim, extents, x_strides, p->dtype) &&
           describe(state, &state->y, p->ndim, extents, y_strides, p->dtype) &&
           describe(state, &state->statistics, p->op == BENCH_GROUP ? 2 : 1, groups, NULL, BENCH_F32) &&
           describe(state, &state->parameters, 1, &p->parameters, NULL, BENCH_F32);
}

#if AT_LEAST(3, 0)
static bool describe_forward(struct state *s, const struct bench_problem *p, dnnl_prop_kind_t kind) {
    if (p->op != BENCH_GROUP)
        return succeed(s, dnnl_layer_normalization_forward_primitive_desc_create(&s->forward, s->engine, kind, s->x,
                       s->y, s->statistics, (float)BENCH_EPS, s->flags, NULL), "layer normalization");
#if AT_LEAST(3, 3)
    return succeed(s, dnnl_group_normalization_forward_primitive_desc_create(&s->forward, s->engine, kind, s->x, s->y,
                   p->groups, (float)BENCH_EPS, s->flags, NULL), "group normalization");
#else
    snprintf(s->remark, BENCH_MESSAGE, "group normalization came with version 3.3");
    return false;
#endif
}

static bool describe_backward(struct state *s) {
    return succeed(s, dnnl_layer_normalization_backward_primitive_desc_create(&s->backward, s->engine, dnnl_backward,
                   s->x, s->x, s->x, s->statistics, (float)BENCH_EPS, s->flags, s->forward, NULL),
                   "layer normalization, backward");
}
#else
static bool describe_forward(struct state *s, const struct bench_problem *p, dnnl_prop_kind_t kind) {
    dnnl_layer_normalization_desc_t d;
    if (p->op == BENCH_GROUP || p->stride != p->shape[p->ndim - 1]) {
        snprintf(s->remark, BENCH_MESSAGE, "version 2 has no group normalization, and the same strides for x and y");
        return false;
    }
    return succeed(s, dnnl_layer_normalization_forward_desc_init(&d, kind, &s->x, &s->statistics, (float)BENCH_EPS,
                   s->flags), "layer normalization") &&
           succeed(s, dnnl_primitive_desc_create(&s->forward, &d, NULL, s->engine, NULL), "layer normalization");
}

static bool describe_backward(struct state *s) {
    dnnl_layer_normalization_desc_t d;
    return succeed(s, dnnl_layer_normalization_backward_desc_init(&d, dnnl_backward, &s->x, &s->x, &s->statistics,
                   (float)BENCH_EPS, s->flags), "layer normalization, backward") &&
           succeed(s, dnnl_primitive_desc_create(&s->backward, &d, NULL, s->engine, s->forward),
                   "layer normalization, backward");
}
#endif

/* Memory objects outlive the primitives; all are destroyed by close. */
static dnnl_memory_t view(struct state *state, descriptor d, void *data) {
    dnnl_memory_t made = NULL;
    if (succeed(state, dnnl_memory_create(&made, REFERENCE(d), state->engine, data), "memory"))
        state->memories[state->memories_count++] = made;
    return made;
}

/* Names the implementation that oneDNN chose. False where that is its reference, which is hundreds of times slower than
 * a plain loop: nobody's peer, and minutes on the large cases. */
static bool accept_implementation(struct state *state, dnnl_primitive_desc_t chosen) {
    const char *name = "";
    dnnl_primitive_desc_query(chosen, dnnl_query_impl_info_str, 0, (void *)&name);
    if (strstr(name, "ref")) {
        snprintf(state->remark, BENCH_MESSAGE, "only its reference implementation does this: %.200s", name);
        return false;
    }
    snprintf(state->remark, BENCH_MESSAGE, "weight and bias in f32; %.200s", name);
    return true;
}

static bool run_forward_once(struct state *state, const dnnl_exec_arg_t *inputs, int count) {
    dnnl_primitive_t primitive = NULL;
    bool right = succeed(state, dnnl_primitive_create(&primitive, state->forward), "primitive") &&
                 succeed(state, dnnl_primitive_execute(primitive, state->stream, count, inputs), "forward") &&
                 succeed(state, dnnl_stream_wait(state->stream), "wait");
    dnnl_primitive_destroy(primitive);
    return right;
}

static bool prepare_forward(struct state *state, dnnl_memory_t weight, dnnl_memory_t bias) {
    const struct bench_memory *m = state->context->memory;
    for (int i = 0; i < state->context->problem->sets; i++) {
        dnnl_exec_arg_t *a = state->arguments[i];
        a[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, view(state, state->x, m->sets[i].x)};
        a[1] = (dnnl_exec_arg_t){DNNL_ARG_DST, view(state, state->y, m->sets[i].y)};
        a[2] = (dnnl_exec_arg_t){DNNL_ARG_SCALE, weight};
        a[3] = (dnnl_exec_arg_t){DNNL_ARG_SHIFT, bias};
    }
    state->arguments_count = bias ? 4 : 3;
    return succeed(state, dnnl_primitive_create(&state->primitive, state->forward), "primitive");
}

static bool prepare_backward(struct state *state, dnnl_memory_t weight, dnnl_memory_t bias) {
    const struct bench_memory *m = state->context->memory;
    dnnl_memory_t dweight = view(state, state->parameters, m->dweight);
    dnnl_memory_t dbias = view(state, state->parameters, m->dbias);
    state->mean = view(state, state->statistics, DNNL_MEMORY_ALLOCATE);
    state->variance = view(state, state->statistics, DNNL_MEMORY_ALLOCATE);
    for (int i = 0; i < state->context->problem->sets; i++) {
        dnnl_exec_arg_t *a = state->arguments[i];
        a[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, view(state, state->x, m->sets[i].x)};
        a[1] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_SRC, view(state, state->x, m->sets[i].dx)};
        a[2] = (dnnl_exec_arg_t){DNNL_ARG_SCALE, weight};
        a[3] = (dnnl_exec_arg_t){DNNL_ARG_MEAN, state->mean};
        a[4] = (dnnl_exec_arg_t){DNNL_ARG_VARIANCE, state->variance};
        a[5] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_DST, view(state, state->x, m->sets[i].dy)};
        a[6] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_SCALE, dweight};
        a[7] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_SHIFT, dbias};
        a[8] = (dnnl_exec_arg_t){DNNL_ARG_SHIFT, bias};
    }
    state->arguments_count = 9;
    const dnnl_exec_arg_t *a = state->arguments[0];
    const dnnl_exec_arg_t forward[6] = {a[0], {DNNL_ARG_DST, a[1].memory}, a[2], a[8], a[3], a[4]};
    return run_forward_once(state, forward, 6) && describe_backward(state) &&
           accept_implementation(state, state->backward) &&
           succeed(state, dnnl_primitive_create(&state->primitive, state->backward), "primitive");
}

static bool set_flags(struct state *state, const struct bench_problem *p) {
    state->flags = dnnl_use_scale | (p->op == BENCH_RMS ? 0 : dnnl_use_shift);
    if (p->op != BENCH_RMS)
        return true;
#if AT_LEAST(3, 12)
    state->flags |= dnnl_rms_norm;
    return true;
#else
    snprintf(state->remark, BENCH_MESSAGE, "no RMS norm in this version");
    return false;
#endif
}

static bool prepare(struct state *state) {
    const struct bench_problem *p = state->context->problem;
    const struct bench_memory *m = state->context->memory;
    bool row_gradients = p->op == BENCH_LAYER && p->stride == p->shape[1];
    if (p->dtype == BENCH_F64 || (p->backward && !row_gradients)) {
        snprintf(state->remark, BENCH_MESSAGE, p->dtype == BENCH_F64 ? "no f64" : "gradients: of dense rows only");
        return false;
    }
    if (!set_flags(state, p) || !succeed(state, dnnl_engine_create(&state->engine, dnnl_cpu, 0), "engine") ||
        !succeed(state, dnnl_stream_create(&state->stream, state->engine, dnnl_stream_default_flags), "stream") ||
        !describe_all(state) ||
        !describe_forward(state, p, p->backward ? dnnl_forward_training : dnnl_forward_inference) ||
        (!p->backward && !accept_implementation(state, state->forward)))
        return false;
    dnnl_memory_t weight = view(state, state->parameters, m->weight);
    dnnl_memory_t bias = p->op == BENCH_RMS ? NULL : view(state, state->parameters, m->bias);
    return (p->backward ? prepare_backward : prepare_forward)(state, weight, bias);
}

static void destroy(void *opened) {
    struct state *state = opened;
    dnnl_primitive_destroy(state->primitive);
    dnnl_primitive_desc_destroy(state->backward);
    dnnl_primitive_desc_destroy(state->forward);
    for (int i = 0; i < state->memories_count; i++)
        dnnl_memory_destroy(state->memories[i]);
#if AT_LEAST(3, 0)
    dnnl_memory_desc_destroy(state->x);
    dnnl_memory_desc_destroy(state->y);
    dnnl_memory_desc_destroy(state->statistics);
    dnnl_memory_desc_destroy(state->parameters);
#endif
    dnnl_stream_destroy(state->stream);
    dnnl_engine_destroy(state->engine);
    free(state);
}

static void *open_case(const struct bench_context *context, char remark[BENCH_MESSAGE]) {
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->context = context;
    state->remark = remark;
    if (prepare(state))
        return state;
    destroy(state);
    return NULL;
}

static bool run(void *opened, int set) {
    struct state *state = opened;
    return dnnl_primitive_execute(state->primitive, state->stream, state->arguments_count, state->arguments[set]) ==
               dnnl_success &&
           dnnl_stream_wait(state->stream) == dnnl_success;
}

static const char *version(void) {
    static char text[100];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

const struct bench_implementation bench_implementations[] = {
    {"onednn", version, open_case, run, destroy, true, false},
    {NULL, NULL, NULL, NULL, NULL, false, false},
};
