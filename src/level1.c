/* Level 1: contiguous rows. A call is a job of src/rows.h. Narrow types are run as they stand; f64, and gradients of
 * long rows, become the canonical problem [rows, cols], for another engine. */
#include "environment.h"
#include "access.h"
#include "rows.h"

/* An array of a call: what may not overlap what. */
typedef struct span {
    const void *at;
    uint64_t bytes;
} span;

enum { SPANS = 6 };

static int size_refused(int64_t rows, int64_t cols) {
    const int64_t most = INT64_MAX / 8;
    int64_t count;
    return rows < 0 || cols < 0 || rows > most || cols > most || __builtin_mul_overflow(rows, cols, &count) ||
           count > most;
}

/* An absent array, and one of no elements, overlaps nothing: it is at 0. */
static span span_of(const void *at, int64_t count, int64_t size) {
    span s = {count ? at : NULL, at ? (uint64_t)count * (uint64_t)size : 0};
    return s;
}

static int overlap(span a, span b) {
    uintptr_t at_a = (uintptr_t)a.at, at_b = (uintptr_t)b.at;
    return at_a < at_b + (uintptr_t)b.bytes && at_b < at_a + (uintptr_t)a.bytes;
}

/* `outputs` outputs, then inputs, those of x's shape last, from `same` on: the first output may be one of these. */
static int spans_refused(const span s[SPANS], int outputs, int same) {
    int refused = 0;
    for (int i = 0; i < outputs; i++)
        for (int k = i + 1; s[i].at && k < SPANS; k++)
            refused |= overlap(s[i], s[k]) && !(i == 0 && k >= same && s[i].at == s[k].at);
    return refused;
}

static lnorm_status check(const span s[SPANS], int outputs, int same, int64_t count) {
    for (int k = same; k < SPANS; k++)
        if (count && !s[k].at)
            return LNORM_INVALID_ARGUMENT;
    return spans_refused(s, outputs, same) ? LNORM_INVALID_ARGUMENT : LNORM_OK;
}

/* -- The canonical problem ---------------------------------------------------------------------------------------- */

typedef struct canonical_call {
    lnorm_problem problem;
    lnorm_data data;
} canonical_call;

/* A problem without operands. */
static void begin(canonical_call *call, lnorm_pass pass, const lnorm_rows_job *job) {
    lnorm_problem *problem = &call->problem;
    problem->pass = (uint8_t)pass;
    problem->statistics = LNORM_COMPUTED;
    problem->center = (uint8_t)job->a.center;
    problem->wide = job->a.element == LNORM_ELEMENT_F64;
    problem->fast = problem->weight_offset = problem->accumulate = 0;
    problem->eps = job->a.eps;
    problem->update = 0;
    problem->axes = 2;
    problem->extent[0] = job->rows;
    problem->extent[1] = job->a.cols;
    problem->reduced = problem->weight_axes = problem->bias_axes = 2;
    problem->group = (lnorm_space){.axes = 1, .axis = {0}, .count = job->rows};
    problem->element = (lnorm_space){.axes = 1, .axis = {1}, .count = job->a.cols};
    for (int i = 0; i < LNORM_OPERANDS; i++)
        problem->operand[i].element = LNORM_ELEMENT_ABSENT;
}

/* An operand of [rows, cols] where both strides are given, of [cols] or [rows] where one is 0; NULL: absent. */
static void place(canonical_call *call, enum lnorm_operand operand, enum lnorm_element element, const void *at,
                  int written, int64_t row_stride, int64_t col_stride) {
    lnorm_operand_form *form = &call->problem.operand[operand];
    if (!at && operand != LNORM_X && operand != LNORM_DY) /* of no rows or columns these may be anything */
        return;
    form->element = (uint8_t)element;
    form->read = (uint8_t)!written;
    form->written = (uint8_t)written;
    form->stride[0] = row_stride;
    form->stride[1] = col_stride;
    call->data.at[operand] = (char *)(uintptr_t)at;
}

static void place_all(canonical_call *call, lnorm_pass pass, const lnorm_rows_job *job) {
    const lnorm_rows *a = &job->a;
    const enum lnorm_element element = (enum lnorm_element)a->element;
    begin(call, pass, job);
    place(call, LNORM_X, element, a->x, 0, a->cols, 1);
    if (pass == LNORM_BACKWARD)
        place(call, LNORM_DY, element, a->dy, 0, a->cols, 1);
    place(call, LNORM_WEIGHT, element, a->weight, 0, 0, 1);
    place(call, LNORM_BIAS, element, a->bias, 0, 0, 1);
    place(call, LNORM_Y, element, a->y, 1, a->cols, 1);
    place(call, LNORM_DX, element, a->dx, 1, a->cols, 1);
    place(call, LNORM_MEAN, job->mean.element, job->mean.at, 1, 1, 0);
    place(call, LNORM_RSTD, job->rstd.element, job->rstd.at, 1, 1, 0);
    place(call, LNORM_DWEIGHT, element, job->dweight.at, 1, 0, 1);
    place(call, LNORM_DBIAS, element, job->dbias.at, 1, 0, 1);
}

/* Whether another engine than that of rows has the job: sums of the columns of few long rows are no use to it. */
static int is_canonical(lnorm_pass pass, const lnorm_rows_job *job) {
    return job->a.element == LNORM_ELEMENT_F64 || (pass == LNORM_BACKWARD && job->a.cols >= LNORM_LONG_COLS);
}

static const lnorm_engine *engine_of(const lnorm_problem *problem) {
    static const lnorm_engine *const engines[] = {&lnorm_engine_long, &lnorm_engine_rows, &lnorm_engine_wide,
                                                  &lnorm_engine_reference};
    const lnorm_engine *const *engine = engines;
    while (!(*engine)->takes(problem))
        engine++;
    return *engine;
}

/* Without a workspace, which the caller has given or not. */
static canonical_call call_of(lnorm_pass pass, const lnorm_rows_job *job) {
    canonical_call call;
    place_all(&call, pass, job);
    call.data.workspace = NULL;
    call.data.in_order = 1;
    return call;
}

static size_t canonical_workspace(const lnorm_rows_job *job) {
    canonical_call call = call_of(LNORM_BACKWARD, job);
    return engine_of(&call.problem)->workspace(&call.problem);
}

static void run_canonical(lnorm_pass pass, const lnorm_rows_job *job, const lnorm_kernels *kernels) {
    canonical_call call = call_of(pass, job);
    const lnorm_engine *engine = engine_of(&call.problem);
    call.data.workspace = job->workspace;
    for (int phase = 0; phase < engine->phases(&call.problem); phase++)
        for (int64_t task = 0, tasks = lnorm_tasks(engine, &call.problem, phase); task < tasks; task++)
            engine->run(&call.problem, &call.data, kernels, phase, task);
}

/* -- Calls -------------------------------------------------------------------------------------------------------- */

/* Member by member: clearing all of it first would cost as much as a short row, and a structure that is copied waits
 * for the pieces it was just written in. */
static inline void begin_rows(lnorm_rows *a, enum lnorm_element element, int center, const void *x, const void *weight,
                              int64_t rows, int64_t cols, double eps) {
    a->x = x;
    a->weight = weight;
    a->bias = a->dy = NULL;
    a->y = a->dx = NULL;
    a->x_pitch = a->y_pitch = a->dy_pitch = a->dx_pitch = a->cols = cols;
    a->eps = lnorm_eps_value(eps, center, element);
    a->element = a->affine = (uint8_t)element;
    a->center = center;
    a->stream = lnorm_rows_stream(element, 0, rows, cols);
    a->mean = a->rstd = NULL;
}

static inline void set_vector(lnorm_vector *vector, void *at, enum lnorm_element element) {
    vector->at = (char *)at;
    vector->stride = 1;
    vector->element = element;
}

/* Of what is not in `a`. */
static inline void begin_job(lnorm_rows_job *job, int64_t rows, enum lnorm_element element) {
    job->rows = rows;
    job->fast = 0;
    job->saved = job->accumulate = 0;
    set_vector(&job->mean, NULL, element);
    set_vector(&job->rstd, NULL, element);
    set_vector(&job->dweight, NULL, element);
    set_vector(&job->dbias, NULL, element);
    job->workspace = NULL;
}

/* With statistics, or of f64: job->a is there. */
static void forward_job(lnorm_rows_job *job, int64_t rows, void *mean, void *rstd, const lnorm_kernels *kernels) {
    const enum lnorm_element element = (enum lnorm_element)job->a.element;
    begin_job(job, rows, element == LNORM_ELEMENT_F64 ? element : LNORM_ELEMENT_F32);
    job->mean.at = mean;
    job->rstd.at = rstd;
    if (is_canonical(LNORM_FORWARD, job))
        run_canonical(LNORM_FORWARD, job, kernels);
    else
        lnorm_rows_forward_all(job, kernels);
}

static lnorm_status forward(enum lnorm_element element, int center, void *y, void *mean, void *rstd, const void *x,
                            const void *weight, const void *bias, int64_t rows, int64_t cols, double eps) {
    const enum lnorm_element statistic = element == LNORM_ELEMENT_F64 ? element : LNORM_ELEMENT_F32;
    const int64_t size = (int64_t)lnorm_element_size(element), statistic_size = (int64_t)lnorm_element_size(statistic);
    const lnorm_kernels *kernels = lnorm_dispatch();
    if (size_refused(rows, cols) || !lnorm_eps_legal(eps))
        return LNORM_INVALID_ARGUMENT;
    const int64_t count = rows * cols;
    const span to = span_of(y, count, size), from = span_of(x, count, size);
    const span scale = span_of(weight, cols, size), shift = span_of(bias, cols, size);
    lnorm_status status;
    if (mean || rstd) {
        const span spans[SPANS] = {
            to, span_of(mean, rows, statistic_size), span_of(rstd, rows, statistic_size), scale, shift, from};
        status = check(spans, 3, 5, count);
    } else { /* the same of y alone, in fewer steps */
        int refused = (count && !x) || overlap(to, scale) || overlap(to, shift) || (x != y && overlap(to, from));
        status = refused ? LNORM_INVALID_ARGUMENT : LNORM_OK;
    }
    if (status || !kernels)
        return status ? status : LNORM_NOT_AVAILABLE;
    lnorm_rows_job job;
    begin_rows(&job.a, element, center, x, weight, rows, cols, eps);
    job.a.y = y;
    job.a.bias = bias;
    lnorm_environment caller = lnorm_environment_enter();
    if (element == LNORM_ELEMENT_F64 || mean || rstd)
        forward_job(&job, rows, mean, rstd, kernels);
    else if (cols)
        kernels->rows_forward[0](&job.a, rows);
    lnorm_environment_leave(caller);
    return LNORM_OK;
}

static void begin_backward(lnorm_rows_job *job, enum lnorm_element element, int center, void *dx, void *dweight,
                           void *dbias, const void *dy, const void *x, const void *weight, int64_t rows, int64_t cols,
                           double eps) {
    begin_rows(&job->a, element, center, x, weight, rows, cols, eps);
    begin_job(job, rows, element);
    job->a.stream = lnorm_rows_stream(element, 1, rows, cols);
    job->a.dx = dx;
    job->a.dy = dy;
    job->dweight.at = dweight;
    job->dbias.at = dbias;
}

static size_t workspace_of_call(const lnorm_rows_job *job) {
    return lnorm_padded_workspace(is_canonical(LNORM_BACKWARD, job) ? canonical_workspace(job)
                                                                    : lnorm_rows_workspace(job));
}

static lnorm_status backward(enum lnorm_element element, int center, void *dx, void *dweight, void *dbias,
                             const void *dy, const void *x, const void *weight, int64_t rows, int64_t cols, double eps,
                             void *workspace, size_t workspace_size) {
    const int64_t size = (int64_t)lnorm_element_size(element);
    const lnorm_kernels *kernels = lnorm_dispatch();
    if (size_refused(rows, cols) || !lnorm_eps_legal(eps))
        return LNORM_INVALID_ARGUMENT;
    const span spans[SPANS] = {span_of(dx, rows * cols, size), span_of(dweight, cols, size),
                               span_of(dbias, cols, size),     span_of(weight, cols, size),
                               span_of(x, rows * cols, size),  span_of(dy, rows * cols, size)};
    lnorm_rows_job job;
    begin_backward(&job, element, center, dx, dweight, dbias, dy, x, weight, rows, cols, eps);
    size_t needed = workspace_of_call(&job);
    if (check(spans, 3, 4, rows * cols) || (workspace && workspace_size < needed))
        return LNORM_INVALID_ARGUMENT;
    if (!kernels)
        return LNORM_NOT_AVAILABLE;
    job.workspace = lnorm_align_workspace(workspace, needed);
    lnorm_environment caller = lnorm_environment_enter();
    if (is_canonical(LNORM_BACKWARD, &job))
        run_canonical(LNORM_BACKWARD, &job, kernels);
    else
        lnorm_rows_backward_all(&job, kernels);
    lnorm_environment_leave(caller);
    return LNORM_OK;
}

size_t lnorm_backward_workspace(int64_t rows, int64_t cols) {
    char any = 0; /* marks operands as present; no element is touched */
    lnorm_rows_job job;
    size_t narrow, full;
    if (size_refused(rows, cols))
        return 0;
    begin_backward(&job, LNORM_ELEMENT_F32, 1, &any, &any, &any, &any, &any, &any, rows, cols, 0);
    narrow = workspace_of_call(&job);
    job.a.element = LNORM_ELEMENT_F64;
    full = workspace_of_call(&job);
    return narrow > full ? narrow : full;
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
