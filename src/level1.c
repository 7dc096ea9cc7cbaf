/* Level 1: contiguous rows. Each call is the canonical problem [rows, cols] written down directly. */
#include "access.h"
#include "environment.h"
#include "kernels.h"
#include "message.h"

typedef struct rows_call {
    lnorm_problem problem;
    lnorm_data data;
} rows_call;

static int size_refused(int64_t rows, int64_t cols) {
    const int64_t most = INT64_MAX / 8;
    return rows < 0 || cols < 0 || rows > most || cols > most || (cols && rows > most / cols);
}

/* A problem without operands. */
static void begin(rows_call *call, lnorm_pass pass, int center, enum lnorm_element element, int64_t rows, int64_t cols,
                  double eps) {
    lnorm_problem *problem = &call->problem;
    problem->pass = (uint8_t)pass;
    problem->statistics = LNORM_COMPUTED;
    problem->center = (uint8_t)center;
    problem->wide = element == LNORM_ELEMENT_F64;
    problem->weight_offset = problem->accumulate = 0;
    problem->eps = lnorm_eps_value(eps, center, element);
    problem->update = 0;
    problem->axes = 2;
    problem->extent[0] = rows;
    problem->extent[1] = cols;
    problem->reduced = problem->weight_axes = problem->bias_axes = 2;
    problem->group = (lnorm_space){.axes = 1, .axis = {0}, .count = rows};
    problem->element = (lnorm_space){.axes = 1, .axis = {1}, .count = cols};
    for (int i = 0; i < LNORM_OPERANDS; i++)
        problem->operand[i].element = LNORM_ELEMENT_ABSENT;
}

/* An operand of [rows, cols] where both strides are given, of [cols] or [rows] where one is 0. */
static void place(rows_call *call, enum lnorm_operand operand, enum lnorm_element element, const void *at, int written,
                  int64_t row_stride, int64_t col_stride) {
    const lnorm_problem *problem = &call->problem;
    lnorm_operand_form *form = &call->problem.operand[operand];
    int64_t count = (row_stride ? problem->extent[0] : 1) * (col_stride ? problem->extent[1] : 1);
    form->element = (uint8_t)element;
    form->read = (uint8_t)!written;
    form->written = (uint8_t)written;
    form->dense = 1;
    form->low = 0;
    form->high = count * (int64_t)lnorm_element_size(element);
    form->stride[0] = row_stride;
    form->stride[1] = col_stride;
    call->data.at[operand] = (char *)(uintptr_t)at;
}

/* The three shapes of level 1; an absent (NULL) operand is left out, but for x and dy, whose NULL is an error. */
static void place_rows(rows_call *call, enum lnorm_operand operand, enum lnorm_element element, const void *at,
                       int written) {
    if (at || operand == LNORM_X || operand == LNORM_DY)
        place(call, operand, element, at, written, call->problem.extent[1], 1);
}

static void place_cols(rows_call *call, enum lnorm_operand operand, enum lnorm_element element, const void *at,
                       int written) {
    if (at)
        place(call, operand, element, at, written, 0, 1);
}

static void place_statistic(rows_call *call, enum lnorm_operand operand, enum lnorm_element element, void *at) {
    if (at)
        place(call, operand, element == LNORM_ELEMENT_F64 ? LNORM_ELEMENT_F64 : LNORM_ELEMENT_F32, at, 1, 1, 0);
}

static lnorm_status finish(rows_call *call, void *workspace, size_t workspace_size) {
    const lnorm_problem *problem = &call->problem;
    const lnorm_kernels *kernels = lnorm_dispatch();
    const lnorm_engine *engine = problem->wide ? &lnorm_engine_reference : &lnorm_engine_rows;
    size_t needed = lnorm_padded_workspace(engine->workspace(problem));
    lnorm_status status = lnorm_problem_check(problem, &call->data, NULL);
    if (status)
        return status;
    if (workspace && workspace_size < needed)
        return LNORM_INVALID_ARGUMENT;
    if (!kernels)
        return LNORM_NOT_AVAILABLE;
    call->data.workspace = lnorm_align_workspace(workspace, needed);
    lnorm_environment caller = lnorm_environment_enter();
    for (int phase = 0; phase < lnorm_phases(problem); phase++)
        for (int64_t task = 0, tasks = lnorm_tasks(engine, problem, phase); task < tasks; task++)
            engine->run(problem, &call->data, kernels, phase, task);
    lnorm_environment_leave(caller);
    return LNORM_OK;
}

static lnorm_status forward(enum lnorm_element element, int center, void *y, void *mean, void *rstd, const void *x,
                            const void *weight, const void *bias, int64_t rows, int64_t cols, double eps) {
    rows_call call;
    if (size_refused(rows, cols) || !lnorm_eps_legal(eps))
        return LNORM_INVALID_ARGUMENT;
    begin(&call, LNORM_FORWARD, center, element, rows, cols, eps);
    place_rows(&call, LNORM_Y, element, y, 1);
    place_statistic(&call, LNORM_MEAN, element, mean);
    place_statistic(&call, LNORM_RSTD, element, rstd);
    place_rows(&call, LNORM_X, element, x, 0);
    place_cols(&call, LNORM_WEIGHT, element, weight, 0);
    place_cols(&call, LNORM_BIAS, element, bias, 0);
    return finish(&call, NULL, 0);
}

static void begin_backward(rows_call *call, enum lnorm_element element, int center, void *dx, void *dweight,
                           void *dbias, const void *dy, const void *x, const void *weight, int64_t rows, int64_t cols,
                           double eps) {
    begin(call, LNORM_BACKWARD, center, element, rows, cols, eps);
    place_rows(call, LNORM_DX, element, dx, 1);
    place_cols(call, LNORM_DWEIGHT, element, dweight, 1);
    place_cols(call, LNORM_DBIAS, element, dbias, 1);
    place_rows(call, LNORM_DY, element, dy, 0);
    place_rows(call, LNORM_X, element, x, 0);
    place_cols(call, LNORM_WEIGHT, element, weight, 0);
}

static lnorm_status backward(enum lnorm_element element, int center, void *dx, void *dweight, void *dbias,
                             const void *dy, const void *x, const void *weight, int64_t rows, int64_t cols, double eps,
                             void *workspace, size_t workspace_size) {
    rows_call call;
    if (size_refused(rows, cols) || !lnorm_eps_legal(eps))
        return LNORM_INVALID_ARGUMENT;
    begin_backward(&call, element, center, dx, dweight, dbias, dy, x, weight, rows, cols, eps);
    return finish(&call, workspace, workspace_size);
}

size_t lnorm_backward_workspace(int64_t rows, int64_t cols) {
    rows_call call;
    char any = 0; /* marks operands as present; no element is touched */
    size_t narrow, wide;
    if (size_refused(rows, cols))
        return 0;
    begin_backward(&call, LNORM_ELEMENT_F32, 1, &any, &any, &any, &any, &any, &any, rows, cols, 0);
    narrow = lnorm_engine_rows.workspace(&call.problem);
    begin_backward(&call, LNORM_ELEMENT_F64, 1, &any, &any, &any, &any, &any, &any, rows, cols, 0);
    wide = lnorm_engine_reference.workspace(&call.problem);
    return lnorm_padded_workspace(narrow > wide ? narrow : wide);
}

#define LEVEL1(name, ID, type, statistic)                                                                             \
    lnorm_status lnorm_layer_norm_##name(type *y, statistic *mean, statistic *rstd, const type *x, const type *weight, \
                                         const type *bias, int64_t rows, int64_t cols, double eps) {                  \
        return forward(LNORM_ELEMENT_##ID, 1, y, mean, rstd, x, weight, bias, rows, cols, eps);                       \
    }                                                                                                                 \
    lnorm_status lnorm_rms_norm_##name(type *y, statistic *rstd, const type *x, const type *weight, int64_t rows,     \
                                       int64_t cols, double eps) {                                                    \
        return forward(LNORM_ELEMENT_##ID, 0, y, NULL, rstd, x, weight, NULL, rows, cols, eps);                       \
    }                                                                                                                 \
    lnorm_status lnorm_layer_norm_backward_##name(type *dx, type *dweight, type *dbias, const type *dy,               \
                                                  const type *x, const type *weight, int64_t rows, int64_t cols,      \
                                                  double eps, void *workspace, size_t workspace_size) {               \
        return backward(LNORM_ELEMENT_##ID, 1, dx, dweight, dbias, dy, x, weight, rows, cols, eps, workspace,         \
                        workspace_size);                                                                              \
    }                                                                                                                 \
    lnorm_status lnorm_rms_norm_backward_##name(type *dx, type *dweight, const type *dy, const type *x,               \
                                                const type *weight, int64_t rows, int64_t cols, double eps,           \
                                                void *workspace, size_t workspace_size) {                             \
        return backward(LNORM_ELEMENT_##ID, 0, dx, dweight, NULL, dy, x, weight, rows, cols, eps, workspace,          \
                        workspace_size);                                                                              \
    }
LEVEL1(f64, F64, double, double)
LEVEL1(f32, F32, float, float)
LEVEL1(f16, F16, uint16_t, float)
LEVEL1(bf16, BF16, uint16_t, float)
#undef LEVEL1
