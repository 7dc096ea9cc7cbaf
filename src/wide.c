/* The engine of contiguous rows of f64: which problems it takes, tasks, weight and bias. The arithmetic is in
 * kernels/wide_*.inc. */
#include "compact.inc"

#include "wide.h"
#include "grid.h"
#include "reference_wide.h"
#include "access.h"
#include "stream.h"

enum {
    WIDE_ROWS = 64,            /* rows whose statistics pass through the stack at once */
    WIDE_STRIP_DOUBLES = 4096, /* column sums on the stack, for each gradient: 32 KiB */
    WIDE_STRIP_MAX = 256       /* columns of a strip at most, so that short rows still make tasks */
};

/* -- What it takes ------------------------------------------------------------------------------------------------ */

/* Absent, or f64 and contiguous along the reduced axis. */
static int in_rows(const lnorm_problem *problem, enum lnorm_operand operand) {
    const lnorm_operand_form *form = &problem->operand[operand];
    if (!lnorm_has(problem, operand))
        return 1;
    return form->element == LNORM_ELEMENT_F64 &&
           (problem->element.count <= 1 || form->stride[problem->element.axis[0]] == 1);
}

static int indexed_by_cols(const lnorm_problem *problem, enum lnorm_operand parameter, enum lnorm_operand gradient,
                           uint32_t axes) {
    return (!lnorm_has(problem, parameter) && !lnorm_has(problem, gradient)) || axes == problem->reduced;
}

static int wide_takes(const lnorm_problem *problem) {
    if (!problem->wide || problem->statistics != LNORM_COMPUTED ||
        (problem->pass != LNORM_FORWARD && problem->pass != LNORM_BACKWARD))
        return 0;
    if (problem->element.axes > 1 || problem->group.axes > 1 || problem->element.count == 0)
        return 0;
    if (lnorm_has(problem, LNORM_RUNNING_MEAN) || lnorm_has(problem, LNORM_RUNNING_VAR))
        return 0;
    return in_rows(problem, LNORM_X) && in_rows(problem, LNORM_Y) && in_rows(problem, LNORM_DY) &&
           in_rows(problem, LNORM_DX) && indexed_by_cols(problem, LNORM_WEIGHT, LNORM_DWEIGHT, problem->weight_axes) &&
           indexed_by_cols(problem, LNORM_BIAS, LNORM_DBIAS, problem->bias_axes);
}

/* -- Weight and bias ---------------------------------------------------------------------------------------------- */

static void read_cols(double *to, const char *from, int element, int64_t stride, int64_t first, int n) {
    if (element == LNORM_ELEMENT_F64 && stride == 1)
        memcpy(to, from + first * (int64_t)sizeof *to, (size_t)n * sizeof *to);
    else
        for (int i = 0; i < n; i++)
            to[i] = lnorm_load((enum lnorm_element)element, from, (first + i) * stride);
}

void lnorm_wide_read_affine(const lnorm_wide_rows *a, int64_t first, int n, double *weight, double *bias) {
    int padded = (n + LNORM_LANES - 1) / LNORM_LANES * LNORM_LANES;
    for (int i = a->weight ? n : 0; i < padded; i++)
        weight[i] = 1.0;
    for (int i = a->bias ? n : 0; i < padded; i++)
        bias[i] = 0.0;
    if (a->weight)
        read_cols(weight, a->weight, a->weight_element, a->weight_stride, first, n);
    for (int i = 0; i < n && a->weight && a->weight_offset; i++)
        weight[i] = 1.0 + weight[i];
    if (a->bias)
        read_cols(bias, a->bias, a->bias_element, a->bias_stride, first, n);
}

/* -- Rows --------------------------------------------------------------------------------------------------------- */

static int64_t pitch_of(const lnorm_problem *problem, enum lnorm_operand operand) {
    return problem->group.axes ? problem->operand[operand].stride[problem->group.axis[0]] : 0;
}

static int64_t col_stride(const lnorm_problem *problem, enum lnorm_operand operand) {
    return problem->element.axes ? problem->operand[operand].stride[problem->element.axis[0]] : 0;
}

static double *row_at(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand operand, int64_t row) {
    return lnorm_has(problem, operand)
               ? (double *)(void *)data->at[operand] + row * pitch_of(problem, operand)
               : NULL;
}

static lnorm_wide_rows rows_from(const lnorm_problem *problem, const lnorm_data *data, int64_t row) {
    lnorm_wide_rows a = {.x = row_at(problem, data, LNORM_X, row),
                         .dy = row_at(problem, data, LNORM_DY, row),
                         .y = row_at(problem, data, LNORM_Y, row),
                         .dx = row_at(problem, data, LNORM_DX, row),
                         .x_pitch = pitch_of(problem, LNORM_X),
                         .y_pitch = pitch_of(problem, LNORM_Y),
                         .cols = problem->element.count,
                         .weight = lnorm_has(problem, LNORM_WEIGHT) ? data->at[LNORM_WEIGHT] : NULL,
                         .bias = lnorm_has(problem, LNORM_BIAS) ? data->at[LNORM_BIAS] : NULL,
                         .weight_stride = col_stride(problem, LNORM_WEIGHT),
                         .bias_stride = col_stride(problem, LNORM_BIAS),
                         .weight_element = problem->operand[LNORM_WEIGHT].element,
                         .bias_element = problem->operand[LNORM_BIAS].element,
                         .weight_offset = problem->weight_offset,
                         .center = problem->center,
                         .stream = problem->group.count * problem->element.count * 8 >= LNORM_STREAM_BYTES &&
                                   data->at[LNORM_Y] != data->at[LNORM_X],
                         .eps = problem->eps};
    return a;
}

static void store_statistics(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand operand,
                             int64_t row, int64_t count, const double *values) {
    if (!lnorm_has(problem, operand))
        return;
    for (int64_t i = 0; i < count; i++)
        lnorm_store((enum lnorm_element)problem->operand[operand].element, data->at[operand],
                    (row + i) * pitch_of(problem, operand), values[i]);
}

static void forward_range(const lnorm_problem *problem, const lnorm_data *data, const lnorm_wide_kernels *kernels,
                          int64_t begin, int64_t end) {
    double mean[WIDE_ROWS], rstd[WIDE_ROWS];
    for (int64_t row = begin; row < end; row += WIDE_ROWS) {
        int64_t count = end - row < WIDE_ROWS ? end - row : WIDE_ROWS;
        lnorm_wide_rows a = rows_from(problem, data, row);
        a.mean = lnorm_has(problem, LNORM_MEAN) ? mean : NULL;
        a.rstd = lnorm_has(problem, LNORM_RSTD) ? rstd : NULL;
        kernels->forward(&a, count);
        store_statistics(problem, data, LNORM_MEAN, row, count, mean);
        store_statistics(problem, data, LNORM_RSTD, row, count, rstd);
    }
}

/* -- Backward ----------------------------------------------------------------------------------------------------- */

static int wants_affine(const lnorm_problem *problem) {
    return lnorm_has(problem, LNORM_DWEIGHT) || lnorm_has(problem, LNORM_DBIAS);
}

static void record_rows(const lnorm_problem *problem, const lnorm_data *data, const lnorm_wide_kernels *kernels,
                        int64_t begin, int64_t end, lnorm_wide_record *record) {
    for (int64_t row = begin; row < end; row++)
        kernels->statistics(record + (row - begin), row_at(problem, data, LNORM_X, row), problem->element.count,
                            problem->center, problem->eps);
}

/* dx of rows whose records are at hand (record), or not (NULL). */
static void gradient_range(const lnorm_problem *problem, const lnorm_data *data, const lnorm_wide_kernels *kernels,
                           int64_t begin, int64_t end, const lnorm_wide_record *record) {
    for (int64_t row = begin; row < end; row++) {
        lnorm_wide_rows a = rows_from(problem, data, row);
        lnorm_wide_record own;
        if (record)
            own = record[row];
        else
            record_rows(problem, data, kernels, row, row + 1, &own);
        if (!kernels->gradient(&a, &own))
            lnorm_definition_wide.finish(problem, data, row, &own);
    }
}

/* A strip of columns over all rows: the tree of section 9, on pairs. */
typedef struct affine_strip {
    double sums[2][WIDE_STRIP_DOUBLES];
    double most[WIDE_STRIP_MAX], least[WIDE_STRIP_MAX];
    lnorm_wide_record record[LNORM_ROW_BLOCK]; /* without workspace */
    lnorm_strip dweight, dbias;
    lnorm_wide_columns columns;
} affine_strip;

static int64_t strip_width(const lnorm_problem *problem) {
    int64_t blocks = lnorm_parts(problem->group.count, LNORM_ROW_BLOCK);
    int64_t width = WIDE_STRIP_DOUBLES / 2 / lnorm_strip_levels(blocks) / 8 * 8;
    return width < WIDE_STRIP_MAX ? width : WIDE_STRIP_MAX;
}

/* False where some sum is not the definition's. */
static int sum_strip(const lnorm_problem *problem, const lnorm_data *data, const lnorm_wide_kernels *kernels,
                     affine_strip *s, int64_t first) {
    const lnorm_wide_record *records = data->workspace;
    const int64_t rows = problem->group.count;
    const int needs_records = lnorm_has(problem, LNORM_DWEIGHT);
    int fits = 1;
    for (int64_t begin = 0; begin < rows && fits; begin += LNORM_ROW_BLOCK) {
        int64_t end = rows - begin < LNORM_ROW_BLOCK ? rows : begin + LNORM_ROW_BLOCK;
        if (!records && needs_records)
            record_rows(problem, data, kernels, begin, end, s->record);
        s->columns.x = row_at(problem, data, LNORM_X, begin) + first;
        s->columns.dy = row_at(problem, data, LNORM_DY, begin) + first;
        s->columns.dweight = needs_records ? lnorm_strip_block(&s->dweight) : NULL;
        s->columns.dbias = lnorm_has(problem, LNORM_DBIAS) ? lnorm_strip_block(&s->dbias) : NULL;
        fits = kernels->columns(&s->columns, records ? records + begin : s->record, end - begin);
        if (s->columns.dweight)
            lnorm_strip_push(&s->dweight, kernels->add);
        if (s->columns.dbias)
            lnorm_strip_push(&s->dbias, kernels->add);
    }
    return fits;
}

/* |dy| of a column within the bounds of kernels/wide_backward.inc. */
static int columns_fit(const lnorm_wide_columns *c) {
    int fits = 1;
    for (int64_t j = 0; j < c->count; j++)
        fits &= c->most[j] == 0.0 ||
                (c->most[j] >= 0x1p-300 && c->most[j] <= 0x1p400 && c->least[j] >= c->most[j] * 0x1p-110);
    return fits;
}

static void store_gradient(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand which,
                           const double *sums, const lnorm_wide_columns *c, int64_t first) {
    enum lnorm_element element = (enum lnorm_element)problem->operand[which].element;
    for (int64_t j = 0; j < c->count; j++) {
        int64_t offset = (first + j) * col_stride(problem, which);
        double value = sums[j] + sums[c->width + j];
        if (problem->accumulate)
            value = lnorm_load(element, data->at[which], offset) + value;
        lnorm_store(element, data->at[which], offset, value);
    }
}

static void reference_strip(const lnorm_problem *problem, const lnorm_data *data, int64_t first, int64_t count) {
    for (int64_t entry = first; entry < first + count; entry++) {
        if (lnorm_has(problem, LNORM_DWEIGHT))
            lnorm_definition_wide.affine(problem, data, LNORM_DWEIGHT, entry, data->workspace);
        if (lnorm_has(problem, LNORM_DBIAS))
            lnorm_definition_wide.affine(problem, data, LNORM_DBIAS, entry, data->workspace);
    }
}

static void run_strip(const lnorm_problem *problem, const lnorm_data *data, const lnorm_wide_kernels *kernels,
                      int64_t task) {
    affine_strip s;
    int64_t width = strip_width(problem), first = task * width, left = problem->element.count - first;
    const lnorm_strip strip = {s.sums[0], 2 * width, 2 * width, 0, 0};
    s.dweight = s.dbias = strip;
    s.dbias.sums = s.sums[1];
    s.columns = (lnorm_wide_columns){.x_pitch = pitch_of(problem, LNORM_X),
                                     .dy_pitch = pitch_of(problem, LNORM_DY),
                                     .count = left < width ? left : width,
                                     .width = width,
                                     .most = s.most,
                                     .least = s.least};
    for (int64_t j = 0; j < width; j++) {
        s.most[j] = 0.0;
        s.least[j] = DBL_MAX;
    }
    if (!sum_strip(problem, data, kernels, &s, first) || !columns_fit(&s.columns)) {
        reference_strip(problem, data, first, s.columns.count);
        return;
    }
    if (lnorm_has(problem, LNORM_DWEIGHT))
        store_gradient(problem, data, LNORM_DWEIGHT, lnorm_strip_total(&s.dweight, kernels->add), &s.columns, first);
    if (lnorm_has(problem, LNORM_DBIAS))
        store_gradient(problem, data, LNORM_DBIAS, lnorm_strip_total(&s.dbias, kernels->add), &s.columns, first);
}

/* -- The engine --------------------------------------------------------------------------------------------------- */

/* The reference's own: a record per row, which it is handed where a strip does not fit. */
static size_t wide_workspace(const lnorm_problem *problem) {
    return problem->pass == LNORM_BACKWARD ? lnorm_engine_reference.workspace(problem) : 0;
}

static lnorm_grid grid_of_rows(const lnorm_problem *problem) {
    return lnorm_grid_of(problem->group.count, problem->element.count, 4);
}

/* Phases of a backward pass: 0 records into the workspace, 1 dweight and dbias in strips of columns, 2 dx. */
static int64_t wide_tasks(const lnorm_problem *problem, int phase) {
    if (problem->pass == LNORM_FORWARD)
        return phase == 0 ? lnorm_grid_tasks(grid_of_rows(problem)) : 0;
    if (phase == 0)
        return wants_affine(problem) ? lnorm_grid_tasks(grid_of_rows(problem)) : 0;
    if (phase == 1)
        return wants_affine(problem) ? lnorm_parts(problem->element.count, strip_width(problem)) : 0;
    return lnorm_has(problem, LNORM_DX) ? lnorm_grid_tasks(grid_of_rows(problem)) : 0;
}

static void wide_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                     int phase, int64_t task) {
    const lnorm_wide_kernels *wide = kernels->wide;
    lnorm_grid grid = grid_of_rows(problem);
    lnorm_wide_record *record = data->workspace;
    int64_t begin = lnorm_grid_begin(grid, task), end = lnorm_grid_end(grid, task);
    if (problem->pass == LNORM_FORWARD)
        forward_range(problem, data, wide, begin, end);
    else if (phase == 1)
        run_strip(problem, data, wide, task);
    else if (phase == 2)
        gradient_range(problem, data, wide, begin, end, wants_affine(problem) ? record : NULL);
    else if (record)
        record_rows(problem, data, wide, begin, end, record + begin);
}

const lnorm_engine lnorm_engine_wide = {"wide", wide_takes, wide_workspace, lnorm_phases, wide_tasks, wide_run};

#include "compact_end.inc"
