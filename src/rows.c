/* The engine of contiguous rows: which problems it takes, tasks, workspace; the arithmetic is in kernels/rows_*.inc.
 *
 * Backward, where dweight or dbias is wanted. With workspace, phase 0 sweeps once over the rows: each of at most 32
 * tasks takes an aligned run of 2^k blocks of 64 rows, writes their dx, and leaves the run's column sums in a slice of
 * its own; phase 1 adds the slices. Without, phase 1 goes strip by strip of columns, each over all rows, and phase 2
 * writes dx. */
#include "rows.h"
#include "access.h"
#include "grid.h"
#include "stream.h"

enum {
    ROWS_TASKS_MAX = 32,  /* runs of row blocks, each with a slice of the workspace */
    STRIP_DOUBLES = 2048, /* column sums on the stack, for each gradient: 16 KiB */
    STATISTICS_TILE = 64, /* rows whose statistics pass through the stack at once, to be converted: a row block */
    LARGE_ELEMENTS = 3 << 20, /* of x, of 16 bits; f32 does not ask */
    TASKS_ENOUGH = 256    /* over rows, for the threads there are */
};

/* -- What it takes ------------------------------------------------------------------------------------------------ */

/* Very short rows of y, and of 16-bit dx, are bound by arithmetic; 16-bit y gains in rows that have whole lines. The
 * kernels decide of the others. */
int lnorm_rows_stream(enum lnorm_element element, int backward, int64_t rows, int64_t cols) {
    const int f32 = element == LNORM_ELEMENT_F32;
    return (f32 && backward ? 1 : f32 || backward ? cols > LNORM_SHORT : cols >= LNORM_BLOCK) &&
           rows * cols >= LNORM_STREAM_BYTES / (int64_t)lnorm_element_size(element);
}

/* Absent, or of this element type and contiguous along the reduced axis. */
static int lies_in_rows(const lnorm_problem *problem, enum lnorm_operand operand, int element) {
    const lnorm_operand_form *form = &problem->operand[operand];
    if (!lnorm_has(problem, operand))
        return 1;
    return form->element == element && (problem->element.count <= 1 || form->stride[problem->element.axis[0]] == 1);
}

/* The set of axes matters only where something is indexed by it. */
static int affine_fits(const lnorm_problem *problem, enum lnorm_operand parameter, enum lnorm_operand gradient,
                       uint32_t axes) {
    return (!lnorm_has(problem, parameter) && !lnorm_has(problem, gradient)) || axes == problem->reduced;
}

/* The element type of weight and bias: x's, where there are none. */
static int affine_element(const lnorm_problem *problem) {
    if (lnorm_has(problem, LNORM_WEIGHT))
        return problem->operand[LNORM_WEIGHT].element;
    return problem->operand[lnorm_has(problem, LNORM_BIAS) ? LNORM_BIAS : LNORM_X].element;
}

/* One element type of x, y, dy and dx, and one of weight and bias, any narrow ones. */
static int elements_fit(const lnorm_problem *problem) {
    int element = problem->operand[LNORM_X].element, affine = affine_element(problem);
    return lies_in_rows(problem, LNORM_X, element) && lies_in_rows(problem, LNORM_Y, element) &&
           lies_in_rows(problem, LNORM_DY, element) && lies_in_rows(problem, LNORM_DX, element) &&
           lies_in_rows(problem, LNORM_WEIGHT, affine) && lies_in_rows(problem, LNORM_BIAS, affine);
}

static int rows_takes(const lnorm_problem *problem) {
    int saved = problem->statistics == LNORM_SAVED && problem->pass == LNORM_BACKWARD;
    if (problem->wide || (problem->pass != LNORM_FORWARD && problem->pass != LNORM_BACKWARD))
        return 0;
    if (problem->statistics != LNORM_COMPUTED && !saved)
        return 0;
    if (problem->element.axes > 1 || problem->group.axes > 1)
        return 0;
    if (lnorm_has(problem, LNORM_RUNNING_MEAN) || lnorm_has(problem, LNORM_RUNNING_VAR))
        return 0;
    if (problem->weight_offset && lnorm_has(problem, LNORM_WEIGHT))
        return 0;
    return affine_fits(problem, LNORM_WEIGHT, LNORM_DWEIGHT, problem->weight_axes) &&
           affine_fits(problem, LNORM_BIAS, LNORM_DBIAS, problem->bias_axes) && elements_fit(problem);
}

/* -- A job from a problem ----------------------------------------------------------------------------------------- */

/* Stride along the one outer axis, and along the reduced one. */
static int64_t pitch_of(const lnorm_problem *problem, enum lnorm_operand operand) {
    return problem->group.axes ? problem->operand[operand].stride[problem->group.axis[0]] : 0;
}

static int64_t step_of(const lnorm_problem *problem, enum lnorm_operand operand) {
    return problem->element.axes ? problem->operand[operand].stride[problem->element.axis[0]] : 0;
}

static char *at_of(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand operand) {
    return lnorm_has(problem, operand) ? data->at[operand] : NULL;
}

static lnorm_vector vector_of(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand operand,
                              int64_t stride) {
    lnorm_vector vector = {at_of(problem, data, operand), stride,
                           (enum lnorm_element)problem->operand[operand].element};
    return vector;
}

static lnorm_rows rows_of(const lnorm_problem *problem, const lnorm_data *data) {
    lnorm_rows a = {.x = at_of(problem, data, LNORM_X),
                    .weight = at_of(problem, data, LNORM_WEIGHT),
                    .bias = at_of(problem, data, LNORM_BIAS),
                    .dy = at_of(problem, data, LNORM_DY),
                    .y = at_of(problem, data, LNORM_Y),
                    .dx = at_of(problem, data, LNORM_DX),
                    .x_pitch = pitch_of(problem, LNORM_X),
                    .y_pitch = pitch_of(problem, LNORM_Y),
                    .dy_pitch = pitch_of(problem, LNORM_DY),
                    .dx_pitch = pitch_of(problem, LNORM_DX),
                    .cols = problem->element.count,
                    .eps = problem->eps,
                    .element = problem->operand[LNORM_X].element,
                    .affine = (uint8_t)affine_element(problem),
                    .center = problem->center};
    a.stream = lnorm_rows_stream((enum lnorm_element)a.element, problem->pass == LNORM_BACKWARD, problem->group.count,
                                 problem->element.count);
    return a;
}

static lnorm_rows_job job_of(const lnorm_problem *problem, const lnorm_data *data) {
    lnorm_rows_job job = {.a = rows_of(problem, data),
                          .rows = problem->group.count,
                          .fast = problem->fast,
                          .saved = problem->statistics == LNORM_SAVED,
                          .accumulate = problem->accumulate,
                          .mean = vector_of(problem, data, LNORM_MEAN, pitch_of(problem, LNORM_MEAN)),
                          .rstd = vector_of(problem, data, LNORM_RSTD, pitch_of(problem, LNORM_RSTD)),
                          .dweight = vector_of(problem, data, LNORM_DWEIGHT, step_of(problem, LNORM_DWEIGHT)),
                          .dbias = vector_of(problem, data, LNORM_DBIAS, step_of(problem, LNORM_DBIAS)),
                          .workspace = data->workspace};
    return job;
}

/* -- Arguments of a kernel call ----------------------------------------------------------------------------------- */

/* The call that starts at `row`; statistics are left out. */
static lnorm_rows rows_from(const lnorm_rows_job *job, int64_t row) {
    const int64_t bytes = (int64_t)lnorm_element_size((enum lnorm_element)job->a.element);
    lnorm_rows a = job->a;
    a.x = (const char *)a.x + row * a.x_pitch * bytes;
    if (a.dy)
        a.dy = (const char *)a.dy + row * a.dy_pitch * bytes;
    if (a.y)
        a.y = (char *)a.y + row * a.y_pitch * bytes;
    if (a.dx)
        a.dx = (char *)a.dx + row * a.dx_pitch * bytes;
    return a;
}

lnorm_rows lnorm_rows_part(const lnorm_problem *problem, const lnorm_data *data, int64_t row, int64_t first,
                           int64_t count) {
    const lnorm_rows_job job = job_of(problem, data);
    const int64_t skipped = first * (int64_t)lnorm_element_size((enum lnorm_element)job.a.element);
    const int64_t affine = first * (int64_t)lnorm_element_size((enum lnorm_element)job.a.affine);
    lnorm_rows a = rows_from(&job, row);
    a.x = (const char *)a.x + skipped;
    if (a.dy)
        a.dy = (const char *)a.dy + skipped;
    if (a.y)
        a.y = (char *)a.y + skipped;
    if (a.dx)
        a.dx = (char *)a.dx + skipped;
    if (a.weight)
        a.weight = (const char *)a.weight + affine;
    if (a.bias)
        a.bias = (const char *)a.bias + affine;
    a.cols = count;
    a.after = problem->element.count - first - count;
    return a;
}

static void load_values(const lnorm_vector *vector, int64_t first, int64_t count, double *values) {
    if (!vector->at)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = lnorm_load(vector->element, vector->at, (first + i) * vector->stride);
}

static void store_values(const lnorm_vector *vector, int64_t first, int64_t count, const double *values) {
    if (!vector->at)
        return;
    if (vector->element == LNORM_ELEMENT_F32 && vector->stride == 1) { /* as nearly always */
        char *to = vector->at + first * (int64_t)sizeof(float);
        for (int64_t i = 0; i < count; i++, to += sizeof(float)) {
            const float value = (float)values[i];
            memcpy(to, &value, sizeof value);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++)
        lnorm_store(vector->element, vector->at, (first + i) * vector->stride, values[i]);
}

/* Where kernels read and write numbers themselves: aligned f64, one beside the other. */
static double *doubles_at(const lnorm_vector *vector, int64_t row) {
    const int fit = vector->element == LNORM_ELEMENT_F64 && vector->stride == 1;
    if (!vector->at || !fit || (uintptr_t)vector->at % _Alignof(double))
        return NULL;
    return (double *)(void *)vector->at + row;
}

/* Whether the kernel itself has to do with the statistics from `row` on: there are none, or f64. It gives a row's mean
 * before its rstd, so that one that is not wanted may go to the same place. */
static int statistics_at_once(const lnorm_rows_job *job, int64_t row, lnorm_rows *a) {
    if (!job->rstd.at)
        return !job->mean.at;
    a->rstd = doubles_at(&job->rstd, row);
    a->mean = job->mean.at ? doubles_at(&job->mean, row) : a->rstd;
    return a->mean && a->rstd;
}

/* -- Forward ------------------------------------------------------------------------------------------------------ */

static void forward_range(const lnorm_rows_job *job, lnorm_rows_forward *kernel, int64_t begin, int64_t end) {
    double mean[STATISTICS_TILE], rstd[STATISTICS_TILE];
    lnorm_rows all = rows_from(job, begin);
    int64_t count;
    if (statistics_at_once(job, begin, &all)) {
        kernel(&all, end - begin);
        return;
    }
    for (int64_t row = begin; row < end; row += count) {
        lnorm_rows a = rows_from(job, row);
        count = end - row < STATISTICS_TILE ? end - row : STATISTICS_TILE;
        a.mean = mean;
        a.rstd = rstd;
        kernel(&a, count);
        store_values(&job->mean, row, count, mean);
        store_values(&job->rstd, row, count, rstd);
    }
}

/* Rows of no elements have statistics (NaN) and nothing else. */
void lnorm_rows_forward_all(const lnorm_rows_job *job, const lnorm_kernels *kernels) {
    lnorm_rows_forward *kernel = kernels->rows_forward[job->fast];
    if (job->mean.at || job->rstd.at)
        forward_range(job, kernel, 0, job->rows);
    else if (job->a.cols)
        kernel(&job->a, job->rows);
}

/* -- Backward ----------------------------------------------------------------------------------------------------- */

/* A wish for dx is left to the caller: `with_dx`. */
static void backward_range(const lnorm_rows_job *job, lnorm_rows_backward *kernel, int with_dx, int64_t begin,
                           int64_t end, double *dweight, double *dbias, int64_t first, int64_t width) {
    double mean[STATISTICS_TILE], rstd[STATISTICS_TILE];
    int64_t count;
    for (int64_t row = begin; row < end; row += count) {
        lnorm_rows a = rows_from(job, row);
        const int at_once = !job->saved || statistics_at_once(job, row, &a);
        count = at_once || end - row < STATISTICS_TILE ? end - row : STATISTICS_TILE;
        a.after = job->rows - row - count;
        a.large = job->rows * job->a.cols >= LARGE_ELEMENTS;
        if (!with_dx)
            a.dx = NULL;
        if (!at_once) {
            load_values(&job->mean, row, count, mean);
            load_values(&job->rstd, row, count, rstd);
            a.mean = mean;
            a.rstd = rstd;
        }
        kernel(&a, count, dweight, dbias, first, width);
    }
}

typedef struct affine_form {
    int dweight, dbias;        /* wanted */
    int64_t rows, cols;
    int64_t blocks;            /* of 64 rows */
    int64_t run;               /* blocks of a task of phase 0: a power of two */
    int64_t slices;            /* tasks of phase 0 */
    int64_t levels;            /* of the tree over a run */
    int64_t pitch;             /* of column sums in the workspace: whole lines of the cache */
    int64_t strip;             /* columns of a task of phase 1 */
} affine_form;

static affine_form affine_form_of(int64_t rows, int64_t cols, int dweight, int dbias) {
    affine_form form = {.dweight = dweight, .dbias = dbias, .rows = rows, .cols = cols};
    form.blocks = lnorm_parts(form.rows, LNORM_ROW_BLOCK);
    form.run = 1;
    while (lnorm_parts(form.blocks, form.run) > ROWS_TASKS_MAX)
        form.run *= 2;
    form.slices = lnorm_parts(form.blocks, form.run);
    form.levels = lnorm_strip_levels(form.run);
    form.pitch = lnorm_parts(form.cols, 8) * 8;
    form.strip = STRIP_DOUBLES / lnorm_strip_levels(form.blocks);
    return form;
}

static affine_form affine_of(const lnorm_rows_job *job) {
    return affine_form_of(job->rows, job->a.cols, job->dweight.at != NULL, job->dbias.at != NULL);
}

static affine_form affine_of_problem(const lnorm_problem *problem) {
    return affine_form_of(problem->group.count, problem->element.count, lnorm_has(problem, LNORM_DWEIGHT),
                          lnorm_has(problem, LNORM_DBIAS));
}

static int wants_affine(const affine_form *form) {
    return form->dweight || form->dbias;
}

/* Doubles of a slice: for each gradient wanted, the levels of a tree. */
static int64_t slice_doubles(const affine_form *form) {
    return form->pitch * form->levels * (form->dweight + form->dbias);
}

/* 0 where none is of use, or where there would be more bytes than a size_t can say. */
static size_t workspace_of(const affine_form *form) {
    uint64_t per_column = (uint64_t)(form->slices * form->levels * (form->dweight + form->dbias)) * sizeof(double);
    if (!per_column || (uint64_t)form->pitch > SIZE_MAX / 2 / per_column)
        return 0;
    return (size_t)((uint64_t)form->pitch * per_column);
}

size_t lnorm_rows_workspace(const lnorm_rows_job *job) {
    affine_form form = affine_of(job);
    return workspace_of(&form);
}

static int64_t affine_tasks(const affine_form *form) {
    return wants_affine(form) ? lnorm_parts(form->cols, form->strip) : 0;
}

/* Blocks of 64 rows from `first_block`, `count` of them, into the trees of the gradients that are wanted. */
static void sum_blocks(const lnorm_rows_job *job, const lnorm_kernels *kernels, int with_dx, int64_t first_block,
                       int64_t count, lnorm_strip *dweight, lnorm_strip *dbias, int64_t first) {
    lnorm_rows_backward *kernel = kernels->rows_backward[job->fast];
    int64_t width = dweight ? dweight->width : dbias->width;
    for (int64_t block = first_block; block < first_block + count; block++) {
        int64_t begin = block * LNORM_ROW_BLOCK, end = begin + LNORM_ROW_BLOCK;
        backward_range(job, kernel, with_dx, begin, end < job->rows ? end : job->rows,
                       dweight ? lnorm_strip_block(dweight) : NULL, dbias ? lnorm_strip_block(dbias) : NULL, first,
                       width);
        if (dweight)
            lnorm_strip_push(dweight, kernels->add);
        if (dbias)
            lnorm_strip_push(dbias, kernels->add);
    }
}

/* Columns first .. first+width-1 of dweight or dbias. */
static void store_gradient(const lnorm_vector *gradient, int accumulate, const double *sums, int64_t first,
                           int64_t width, const lnorm_kernels *kernels) {
    const int64_t step = gradient->stride * (int64_t)lnorm_element_size(gradient->element);
    char *to = gradient->at + first * step;
    if (gradient->stride == 1)
        kernels->store(gradient->element, to, sums, width, accumulate, 0);
    else
        for (int64_t j = 0; j < width; j++)
            kernels->store(gradient->element, to + j * step, sums + j, 1, accumulate, 0);
}

/* Phase 0 with workspace: a run of row blocks. */
static void run_slice(const lnorm_rows_job *job, const lnorm_kernels *kernels, int64_t slice) {
    affine_form form = affine_of(job);
    int64_t first = slice * form.run, rest = form.blocks - first;
    double *sums = (double *)job->workspace + slice * slice_doubles(&form);
    lnorm_strip dweight = {sums, form.cols, form.pitch, 0, 0}, dbias = dweight;
    if (form.dweight)
        dbias.sums += form.pitch * form.levels;
    sum_blocks(job, kernels, job->a.dx != NULL, first, rest < form.run ? rest : form.run,
               form.dweight ? &dweight : NULL, form.dbias ? &dbias : NULL, 0);
    if (form.dweight)
        lnorm_strip_total(&dweight, kernels->add);
    if (form.dbias)
        lnorm_strip_total(&dbias, kernels->add);
}

#include "compact.inc" /* calls, and few of them */

/* Phase 1 with workspace: the slices' sums (at the lowest level of each), columns first .. first+width-1, by the binary
 * tree, in place. */
static double *add_slices(const affine_form *form, double *sums, const lnorm_kernels *kernels, int64_t width) {
    int64_t pitch = slice_doubles(form);
    for (int64_t step = 1; step < form->slices; step *= 2)
        for (int64_t slice = 0; slice + step < form->slices; slice += 2 * step)
            kernels->add(sums + slice * pitch, sums + (slice + step) * pitch, width);
    return sums;
}

static void run_combine(const lnorm_rows_job *job, const lnorm_kernels *kernels, int64_t task) {
    affine_form form = affine_of(job);
    int64_t first = task * form.strip, rest = form.cols - first, width = rest < form.strip ? rest : form.strip;
    double *dweight = (double *)job->workspace + first, *dbias = dweight;
    if (form.dweight)
        dbias += form.pitch * form.levels;
    if (form.dweight)
        store_gradient(&job->dweight, job->accumulate, add_slices(&form, dweight, kernels, width), first, width,
                       kernels);
    if (form.dbias)
        store_gradient(&job->dbias, job->accumulate, add_slices(&form, dbias, kernels, width), first, width, kernels);
}

/* Phase 1 without workspace: a strip of columns over all rows. */
static void run_strip(const lnorm_rows_job *job, const lnorm_kernels *kernels, int64_t task) {
    affine_form form = affine_of(job);
    double sums[2][STRIP_DOUBLES];
    int64_t first = task * form.strip, rest = form.cols - first, width = rest < form.strip ? rest : form.strip;
    lnorm_strip dweight = {sums[0], width, form.strip, 0, 0}, dbias = {sums[1], width, form.strip, 0, 0};
    sum_blocks(job, kernels, 0, 0, form.blocks, form.dweight ? &dweight : NULL, form.dbias ? &dbias : NULL, first);
    if (form.dweight)
        store_gradient(&job->dweight, job->accumulate, lnorm_strip_total(&dweight, kernels->add), first, width,
                       kernels);
    if (form.dbias)
        store_gradient(&job->dbias, job->accumulate, lnorm_strip_total(&dbias, kernels->add), first, width, kernels);
}

/* Phase 1 of either way. */
static void run_affine(const lnorm_rows_job *job, const lnorm_kernels *kernels, int swept, int64_t task) {
    if (swept && job->rows)
        run_combine(job, kernels, task);
    else
        run_strip(job, kernels, task);
}

#include "compact_end.inc"

void lnorm_rows_backward_all(const lnorm_rows_job *job, const lnorm_kernels *kernels) {
    affine_form form = affine_of(job);
    int swept = job->workspace && workspace_of(&form) > 0;
    if (!form.cols)
        return;
    for (int64_t task = 0; swept && task < form.slices; task++)
        run_slice(job, kernels, task);
    for (int64_t task = 0, tasks = affine_tasks(&form); task < tasks; task++)
        run_affine(job, kernels, swept, task);
    if (!swept && job->a.dx)
        backward_range(job, kernels->rows_backward[job->fast], 1, 0, job->rows, NULL, NULL, 0, 0);
}

/* -- The engine --------------------------------------------------------------------------------------------------- */

static size_t rows_workspace(const lnorm_problem *problem) {
    if (problem->pass != LNORM_BACKWARD)
        return 0;
    affine_form form = affine_of_problem(problem);
    return workspace_of(&form);
}

/* Each task prepares weight and bias, and finds its first row in memory where it has asked for those after it: of many
 * rows it has more. */
static lnorm_grid grid_of_rows(const lnorm_problem *problem) {
    lnorm_grid grid = lnorm_grid_of(problem->group.count, problem->element.count, 4);
    const int64_t least = problem->group.count / TASKS_ENOUGH / 4 * 4;
    if (grid.each < least)
        grid.each = least;
    return grid;
}

static int64_t rows_tasks(const lnorm_problem *problem, int phase) {
    if (problem->pass == LNORM_FORWARD)
        return phase == 0 ? lnorm_grid_tasks(grid_of_rows(problem)) : 0;
    affine_form form = affine_of_problem(problem);
    if (phase == 0)
        return wants_affine(&form) ? form.slices : 0;
    if (phase == 1)
        return affine_tasks(&form);
    return lnorm_has(problem, LNORM_DX) ? lnorm_grid_tasks(grid_of_rows(problem)) : 0;
}

/* Rows of a task without sums. One thread alone does all of them in the first, which prepares weight and bias once. */
static lnorm_grid rows_of_task(const lnorm_problem *problem, const lnorm_data *data, int64_t task) {
    lnorm_grid grid = grid_of_rows(problem);
    if (data->in_order)
        grid.each = task ? 0 : grid.count;
    return grid;
}

static void rows_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                     int phase, int64_t task) {
    lnorm_rows_job job = job_of(problem, data);
    int swept = data->workspace && rows_workspace(problem) > 0;
    lnorm_grid grid = rows_of_task(problem, data, task);
    int64_t begin = lnorm_grid_begin(grid, task), end = lnorm_grid_end(grid, task);
    if (problem->pass == LNORM_FORWARD && begin < end)
        forward_range(&job, kernels->rows_forward[job.fast], begin, end);
    else if (phase == 0 && swept)
        run_slice(&job, kernels, task);
    else if (phase == 1)
        run_affine(&job, kernels, swept, task);
    else if (phase == 2 && !swept && begin < end)
        backward_range(&job, kernels->rows_backward[job.fast], 1, begin, end, NULL, NULL, 0, 0);
}

const lnorm_engine lnorm_engine_rows = {"rows", rows_takes, rows_workspace, lnorm_phases, rows_tasks, rows_run};
