/* The engine of few long rows. Rows are cut into segments: aligned runs of 2^k blocks, subtrees of the tree, so that
 * a row's sums can be added up from those of its segments, wherever and in whatever order these were summed.
 *
 * Phases: 0 sums of x and x*x by segment as the fast arithmetic adds them, 1 those of the accurate one, 2 sums of x - c
 * and its square for the rows that take path B, 3 (backward) sums of g and g*xhat, 4 y, or dx with dweight and dbias, by
 * segment. What a phase needs of the one before, each of its tasks computes from the sums in the workspace: a few
 * hundred additions. Without workspace a row (or, where dweight or dbias are wanted, everything) is one task of phase 4,
 * with the same sums on the stack. */
#include "long.h"
#include "access.h"
#include "grid.h"
#include "long_fast.h"

enum {
    LONG_ROWS = 63,      /* more rows make enough tasks as they are, and dweight would need more than one row block */
    SEGMENTS_MAX = 256,  /* of a row: they are added up on the stack, by each task anew */
    SEGMENT_LEAST = LNORM_TASK_ELEMENTS,
    CHUNK = 1024,        /* columns whose sums over rows pass through the stack at once */
    FAST_CHUNK = 512,    /* as many, whose terms in f32 are beside them in the level 1 cache */
    APPLY = LNORM_SUMS,  /* the phase after the sums */
    PHASES
};

_Static_assert((int)LONG_ROWS < (int)LNORM_ROW_BLOCK, "dweight and dbias are sums of a single row block");
_Static_assert((int)PHASES <= (int)LNORM_PHASES_MAX, "a plan keeps the tasks of every phase");
_Static_assert(SEGMENT_LEAST % (LNORM_BLOCK * LNORM_BLOCK_RUNS) == 0, "segments are whole blocks, of either tree");

/* -- What it takes ------------------------------------------------------------------------------------------------ */

/* What a parameter and its gradient are indexed by. */
static int runs_along_rows(const lnorm_problem *problem, uint32_t axes) {
    return (axes & problem->reduced) != 0;
}

/* Absent, or narrow, and contiguous along the row where it runs along it. */
static int fits(const lnorm_problem *problem, enum lnorm_operand operand, int runs) {
    const lnorm_operand_form *form = &problem->operand[operand];
    return !lnorm_has(problem, operand) || (form->element != LNORM_ELEMENT_F64 &&
                                            (!runs || form->stride[problem->element.axis[0]] == 1));
}

/* Axes of a parameter: those of the row alone, or none of them. */
static int affine_fits(const lnorm_problem *problem, enum lnorm_operand parameter, enum lnorm_operand gradient,
                       uint32_t axes) {
    return (!lnorm_has(problem, parameter) && !lnorm_has(problem, gradient)) || axes == problem->reduced ||
           !runs_along_rows(problem, axes);
}

static int operands_fit(const lnorm_problem *problem) {
    return fits(problem, LNORM_X, 1) && fits(problem, LNORM_Y, 1) && fits(problem, LNORM_DY, 1) &&
           fits(problem, LNORM_DX, 1) &&
           fits(problem, LNORM_WEIGHT, runs_along_rows(problem, problem->weight_axes)) &&
           fits(problem, LNORM_BIAS, runs_along_rows(problem, problem->bias_axes));
}

/* The fast kernels are those of rows. */
static int long_takes(const lnorm_problem *problem) {
    int saved = problem->statistics == LNORM_SAVED && problem->pass == LNORM_BACKWARD;
    if (problem->wide || (problem->fast && !lnorm_engine_rows.takes(problem)) ||
        (problem->pass != LNORM_FORWARD && problem->pass != LNORM_BACKWARD))
        return 0;
    if (problem->statistics != LNORM_COMPUTED && !saved)
        return 0;
    if (problem->element.axes != 1 || problem->group.axes > 1 || problem->element.count < LNORM_LONG_COLS ||
        problem->group.count < 1 || problem->group.count > LONG_ROWS)
        return 0;
    if (lnorm_has(problem, LNORM_RUNNING_MEAN) || lnorm_has(problem, LNORM_RUNNING_VAR))
        return 0;
    if (problem->weight_offset && lnorm_has(problem, LNORM_WEIGHT))
        return 0;
    return affine_fits(problem, LNORM_WEIGHT, LNORM_DWEIGHT, problem->weight_axes) &&
           affine_fits(problem, LNORM_BIAS, LNORM_DBIAS, problem->bias_axes) && operands_fit(problem);
}

/* -- A problem as this engine sees it ----------------------------------------------------------------------------- */

typedef struct gradient_form {
    int columns; /* an entry per column, a sum over rows */
    int whole;   /* an entry per row, or a single one: a sum over rows' columns by the tree */
} gradient_form;

typedef struct long_form {
    const lnorm_problem *problem;
    const lnorm_data *data;
    const lnorm_long *kernels;
    const lnorm_kernels *all;
    int64_t rows, cols, segment, segments; /* columns of a segment; segments of a row */
    gradient_form dweight, dbias;
    int means;                             /* dx is wanted: the means of g and g*xhat are needed */
    int with_columns, with_whole;          /* dweight or dbias is of that kind */
    int first_sum;                         /* an lnorm_sum: those before it are not needed */
    ln_pair *sums;                         /* [from first_sum on][rows][segments], or NULL */
} long_form;

enum { SUM_OF_DY = LNORM_SUMS, WORKSPACE_SUMS }; /* besides lnorm_sum: of dy and dy*xhat, as no weight were there */

static gradient_form gradient_of(const lnorm_problem *problem, enum lnorm_operand which, uint32_t axes) {
    gradient_form form = {lnorm_has(problem, which), lnorm_has(problem, which)};
    form.columns = form.columns && runs_along_rows(problem, axes);
    form.whole = form.whole && !form.columns;
    return form;
}

static long_form form_of(const lnorm_problem *problem) {
    long_form form = {.problem = problem, .rows = problem->group.count, .cols = problem->element.count};
    form.segment = SEGMENT_LEAST;
    while (lnorm_parts(form.cols, form.segment) > SEGMENTS_MAX)
        form.segment *= 2;
    form.segments = lnorm_parts(form.cols, form.segment);
    form.dweight = gradient_of(problem, LNORM_DWEIGHT, problem->weight_axes);
    form.dbias = gradient_of(problem, LNORM_DBIAS, problem->bias_axes);
    form.means = lnorm_has(problem, LNORM_DX);
    form.first_sum = problem->fast ? LNORM_SUM_RUNS : LNORM_SUM_MOMENTS;
    form.with_columns = form.dweight.columns || form.dbias.columns;
    form.with_whole = form.dweight.whole || form.dbias.whole;
    return form;
}

static int backward(const long_form *form) {
    return form->problem->pass == LNORM_BACKWARD;
}

/* xhat is needed for y, dx and dweight; statistics also for their own sake. */
static int needs_statistics(const long_form *form) {
    return form->problem->statistics == LNORM_COMPUTED &&
           (!backward(form) || form->means || form->dweight.columns || form->dweight.whole);
}

static size_t long_workspace(const lnorm_problem *problem) {
    long_form form = form_of(problem);
    int sums = !backward(&form) ? LNORM_SUM_SHIFTED + 1 : form.with_whole ? WORKSPACE_SUMS : LNORM_SUMS;
    return (size_t)((sums - form.first_sum) * form.rows * form.segments) * sizeof(ln_pair);
}

static int long_phases(const lnorm_problem *problem) {
    (void)problem;
    return PHASES;
}

static int64_t long_tasks(const lnorm_problem *problem, int phase) {
    long_form form = form_of(problem);
    int64_t all = form.rows * form.segments;
    switch (phase) {
    case LNORM_SUM_RUNS:
        return problem->fast && needs_statistics(&form) ? all : 0;
    case LNORM_SUM_MOMENTS:
        return needs_statistics(&form) ? all : 0;
    case LNORM_SUM_SHIFTED:
        return needs_statistics(&form) && problem->center ? all : 0;
    case LNORM_SUM_GRADIENT:
        return backward(&form) && (form.means || form.with_whole) ? all : 0;
    default:
        return form.with_columns ? form.segments : all;
    }
}

/* -- Parts of rows ------------------------------------------------------------------------------------------------ */

/* Stride along the one outer axis. */
static int64_t pitch_of(const lnorm_problem *problem, enum lnorm_operand operand) {
    return problem->group.axes ? problem->operand[operand].stride[problem->group.axis[0]] : 0;
}

/* Column `first` of a row; NULL where the operand is absent. */
static char *place_of(const long_form *form, enum lnorm_operand operand, int64_t row, int64_t first) {
    const lnorm_operand_form *operand_form = &form->problem->operand[operand];
    int64_t offset;
    if (!lnorm_has(form->problem, operand)) /* then its strides are nothing */
        return NULL;
    offset = row * pitch_of(form->problem, operand) + first * operand_form->stride[form->problem->element.axis[0]];
    return form->data->at[operand] + offset * (int64_t)lnorm_element_size((enum lnorm_element)operand_form->element);
}

/* A parameter that is absent or the same for the whole row, as the kernels read it. */
typedef struct constant_block {
    float at[LNORM_LONG_CHUNK];
} constant_block;

static lnorm_parameter constant(double value, constant_block *block) {
    const lnorm_parameter p = {(const char *)block->at, LNORM_ELEMENT_F32, 0};
    for (int j = 0; j < LNORM_LONG_CHUNK; j++)
        block->at[j] = (float)value;
    return p;
}

/* weight_axes or bias_axes in `axes`; `absent` stands for one that is not there. */
static lnorm_parameter parameter_of(const long_form *form, enum lnorm_operand operand, uint32_t axes, double absent,
                                    int64_t row, int64_t first, constant_block *block) {
    const lnorm_problem *problem = form->problem;
    const uint8_t element = problem->operand[operand].element;
    if (!lnorm_has(problem, operand))
        return constant(absent, block);
    if (!runs_along_rows(problem, axes))
        return constant(lnorm_load((enum lnorm_element)element, place_of(form, operand, row, 0), 0), block);
    return (lnorm_parameter){place_of(form, operand, row, first), element, 1};
}

typedef struct part {
    lnorm_segment segment;
    constant_block weight, bias;
} part;

/* An output that is larger than the caches, and not where an input was. */
static int streams(const long_form *form) {
    const lnorm_problem *problem = form->problem;
    const enum lnorm_operand which = backward(form) ? LNORM_DX : LNORM_Y;
    const char *out = form->data->at[which];
    return lnorm_has(problem, which) &&
           form->rows * form->cols >= LNORM_STREAM_BYTES / (int64_t)lnorm_element_size(
                                          (enum lnorm_element)problem->operand[which].element) &&
           out != form->data->at[LNORM_X] && out != form->data->at[LNORM_DY];
}

/* Columns first .. first+count-1 of a row, for a kernel. */
static void open_part(const long_form *form, part *p, int64_t row, int64_t first, int64_t count, const ln_record *s) {
    const lnorm_problem *problem = form->problem;
    lnorm_segment *a = &p->segment;
    a->x = place_of(form, LNORM_X, row, first);
    a->dy = place_of(form, LNORM_DY, row, first);
    a->weight = parameter_of(form, LNORM_WEIGHT, problem->weight_axes, 1.0, row, first, &p->weight);
    a->bias = parameter_of(form, LNORM_BIAS, problem->bias_axes, -0.0, row, first, &p->bias);
    a->y = place_of(form, LNORM_Y, row, first);
    a->dx = place_of(form, LNORM_DX, row, first);
    a->x_element = problem->operand[LNORM_X].element;
    a->dy_element = problem->operand[LNORM_DY].element;
    a->y_element = problem->operand[LNORM_Y].element;
    a->dx_element = problem->operand[LNORM_DX].element;
    a->count = count;
    a->after = form->cols - first - count;
    a->stream = streams(form);
    a->begins = 0;
    a->s = s;
}

static int64_t segment_count(const long_form *form, int64_t segment) {
    int64_t left = form->cols - segment * form->segment;
    return left < form->segment ? left : form->segment;
}

/* Each sweep goes the other way than the one before: what that left in the caches is read first. */
static int64_t segment_of(const long_form *form, int phase, int64_t number) {
    int falling = phase == LNORM_SUM_GRADIENT || (phase == APPLY && !backward(form));
    return falling ? form->segments - 1 - number : number;
}

/* -- Sums of a row ------------------------------------------------------------------------------------------------ */

static lnorm_long_part fast_part(const long_form *form, int64_t row, int64_t first, int64_t count) {
    return (lnorm_long_part){form->problem, form->data, form->all, row, first, count};
}

static ln_pair sum_segment(const long_form *form, int which, int64_t row, int64_t segment, const ln_record *s) {
    const int64_t first = segment * form->segment, count = segment_count(form, segment);
    part p;
    if (form->problem->fast && (which == LNORM_SUM_RUNS || which == LNORM_SUM_GRADIENT)) {
        const lnorm_long_part fast = fast_part(form, row, first, count);
        return lnorm_long_fast_sum(&fast, (enum lnorm_sum)which, s);
    }
    open_part(form, &p, row, first, count, s);
    if (which == SUM_OF_DY)
        p.segment.weight = constant(1.0, &p.weight);
    return form->kernels->sum(&p.segment, which == SUM_OF_DY ? LNORM_SUM_GRADIENT : (enum lnorm_sum)which);
}

static ln_pair *kept(const long_form *form, int which, int64_t row) {
    return form->sums + ((int64_t)(which - form->first_sum) * form->rows + row) * form->segments;
}

/* Neighbours are added, pairs of them, and so on; one that is left over goes up unchanged. That is the tree: the left
 * part of every sum is a full power of two. */
static ln_pair add_up(ln_pair *sum, int64_t count) {
    for (int64_t half; count > 1; count = half + count % 2) {
        half = count / 2;
        for (int64_t i = 0; i < half; i++) {
            sum[i].a = sum[2 * i].a + sum[2 * i + 1].a;
            sum[i].b = sum[2 * i].b + sum[2 * i + 1].b;
        }
        if (count % 2)
            sum[half] = sum[count - 1];
    }
    return sum[0];
}

static ln_pair sum_row(const long_form *form, int which, int64_t row, const ln_record *s) {
    ln_pair sum[SEGMENTS_MAX];
    for (int64_t i = 0; i < form->segments; i++) {
        int64_t segment = segment_of(form, which, i);
        sum[segment] = form->sums ? kept(form, which, row)[segment] : sum_segment(form, which, row, segment, s);
    }
    return add_up(sum, form->segments);
}

static double statistic(const long_form *form, enum lnorm_operand operand, int64_t row) {
    const lnorm_problem *problem = form->problem;
    return lnorm_load((enum lnorm_element)problem->operand[operand].element, form->data->at[operand],
                      row * pitch_of(problem, operand));
}

/* Computed statistics as far as the sums before `phase` give them. Returns the sum they end with. */
static int row_statistics(const long_form *form, int64_t row, int phase, ln_record *s) {
    const lnorm_problem *problem = form->problem;
    int last = LNORM_SUM_MOMENTS;
    if (problem->fast && lnorm_fast_finish_runs((enum lnorm_element)problem->operand[LNORM_X].element, s,
                                                sum_row(form, LNORM_SUM_RUNS, row, s), form->cols, problem->eps,
                                                problem->center))
        return LNORM_SUM_RUNS;
    if (phase <= last)
        return last;
    if (!ln_finish_moments(s, sum_row(form, LNORM_SUM_MOMENTS, row, s), form->cols, problem->center)) {
        last = LNORM_SUM_SHIFTED; /* path B */
        if (phase > last)
            ln_finish_shifted(s, sum_row(form, LNORM_SUM_SHIFTED, row, s), form->cols);
    }
    s->r = ln_reciprocal_root(s->v, problem->eps);
    return last;
}

/* The row's record as far as the sums before `phase` give it. Returns the last sum that its statistics need. */
static int row_record(const long_form *form, int64_t row, int phase, ln_record *s) {
    int last = LNORM_SUM_MOMENTS;
    double n = (double)form->cols;
    *s = (ln_record){0};
    if (form->problem->statistics == LNORM_SAVED) {
        s->c = form->problem->center ? statistic(form, LNORM_MEAN, row) : 0.0;
        s->r = statistic(form, LNORM_RSTD, row);
    } else if (needs_statistics(form)) {
        last = row_statistics(form, row, phase, s);
    }
    if (form->means && phase > LNORM_SUM_GRADIENT) {
        ln_pair sum = sum_row(form, LNORM_SUM_GRADIENT, row, s);
        s->c1 = form->problem->center ? sum.a / n : 0.0; /* g - 0.0 is g */
        s->c2 = sum.b / n;
    }
    return last;
}

/* A segment in a phase that sums. */
static void keep_sum(const long_form *form, int phase, int64_t row, int64_t segment) {
    ln_record s = {0};
    if (phase > LNORM_SUM_RUNS && row_record(form, row, phase, &s) < phase && phase < LNORM_SUM_GRADIENT)
        return;
    if (phase != LNORM_SUM_GRADIENT || form->means)
        kept(form, phase, row)[segment] = sum_segment(form, phase, row, segment, &s);
    if (phase == LNORM_SUM_GRADIENT && form->with_whole)
        kept(form, SUM_OF_DY, row)[segment] = sum_segment(form, SUM_OF_DY, row, segment, &s);
}

/* -- y, dx, dweight and dbias ------------------------------------------------------------------------------------- */

static void put(const long_form *form, enum lnorm_operand operand, int64_t row, double value, int accumulate) {
    const lnorm_problem *problem = form->problem;
    enum lnorm_element element = (enum lnorm_element)problem->operand[operand].element;
    int64_t offset = row * pitch_of(problem, operand);
    if (!lnorm_has(problem, operand))
        return;
    if (accumulate)
        value = lnorm_load(element, form->data->at[operand], offset) + value;
    lnorm_store(element, form->data->at[operand], offset, value);
}

/* dweight or dbias of a row, or, on behalf of all rows, of the first: a row block that begins at +0.0. */
static void put_whole(const long_form *form, enum lnorm_operand which, uint32_t axes, int64_t row,
                      const ln_record *records) {
    int each = (axes & ~form->problem->reduced) != 0; /* an entry per row */
    int64_t end = each ? row + 1 : form->rows;
    double total = 0.0;
    if (!each && row > 0)
        return;
    for (int64_t r = row; r < end; r++) {
        ln_pair sum = sum_row(form, SUM_OF_DY, r, records + (r - row));
        total = total + (which == LNORM_DWEIGHT ? sum.b : sum.a);
    }
    put(form, which, row, total, form->problem->accumulate);
}

/* What is written once per row. */
static void put_row(const long_form *form, int64_t row, const ln_record *records) {
    const lnorm_problem *problem = form->problem;
    if (!backward(form)) {
        put(form, LNORM_MEAN, row, records->c + records->t, 0);
        put(form, LNORM_RSTD, row, records->r, 0);
    }
    if (form->dweight.whole)
        put_whole(form, LNORM_DWEIGHT, problem->weight_axes, row, records);
    if (form->dbias.whole)
        put_whole(form, LNORM_DBIAS, problem->bias_axes, row, records);
}

static void put_columns(const long_form *form, enum lnorm_operand which, const double *sums, int64_t first,
                        int64_t count) {
    const lnorm_problem *problem = form->problem;
    const lnorm_operand_form *operand = &problem->operand[which];
    int64_t stride = operand->stride[problem->element.axis[0]];
    int64_t step = stride * (int64_t)lnorm_element_size((enum lnorm_element)operand->element);
    char *to = place_of(form, which, 0, first);
    if (stride == 1)
        form->all->store((enum lnorm_element)operand->element, to, sums, count, problem->accumulate,
                         form->cols >= LNORM_STREAM_BYTES / 4);
    else
        for (int64_t j = 0; j < count; j++)
            form->all->store((enum lnorm_element)operand->element, to + j * step, sums + j, 1, problem->accumulate,
                             0);
}

/* All rows' columns first .. first+count-1 with their sums, which begin with the first row; rows in increasing order. */
static void sweep_columns(const long_form *form, int64_t first, int64_t count, const ln_record *records,
                          double *dweight, double *dbias) {
    part p;
    if (form->problem->fast) {
        const lnorm_long_part fast = fast_part(form, 0, first, count);
        lnorm_long_fast_columns(&fast, form->rows, records, dweight, dbias);
        return;
    }
    for (int64_t row = 0; row < form->rows; row++) {
        open_part(form, &p, row, first, count, &records[row]);
        p.segment.begins = row == 0;
        form->kernels->backward(&p.segment, dweight, dbias);
    }
}

/* Columns of all rows, with dweight and dbias. */
static void apply_columns(const long_form *form, int64_t first, int64_t count, const ln_record *records) {
    const int64_t chunk = form->problem->fast ? FAST_CHUNK : CHUNK;
    double dweight[CHUNK], dbias[CHUNK];
    for (int64_t end = first + count, n; first < end; first += n) {
        n = end - first < chunk ? end - first : chunk;
        sweep_columns(form, first, n, records, form->dweight.columns ? dweight : NULL,
                      form->dbias.columns ? dbias : NULL);
        if (form->dweight.columns)
            put_columns(form, LNORM_DWEIGHT, dweight, first, n);
        if (form->dbias.columns)
            put_columns(form, LNORM_DBIAS, dbias, first, n);
    }
}

static void apply_row(const long_form *form, int64_t row, int64_t first, int64_t count, const ln_record *record) {
    part p;
    if (form->problem->fast) {
        const lnorm_long_part fast = fast_part(form, row, first, count);
        lnorm_long_fast_apply(&fast, record);
        return;
    }
    open_part(form, &p, row, first, count, record);
    if (p.segment.y)
        form->kernels->forward(&p.segment);
    else if (p.segment.dx)
        form->kernels->backward(&p.segment, NULL, NULL);
}

/* Rows of a task, and its segments in the order above. */
typedef struct task_form {
    int64_t row, rows, number, segments;
} task_form;

static task_form task_of(const long_form *form, int phase, int64_t task) {
    task_form t = {task / form->segments, 1, task % form->segments, 1};
    int together = phase == APPLY && (form->with_columns || (!form->sums && form->with_whole));
    if (together) {
        t.row = 0;
        t.rows = form->rows;
    }
    if (phase == APPLY && !form->sums) { /* the first task does it all */
        t.segments = t.number == 0 && (!together || task == 0) ? form->segments : 0;
        t.number = 0;
    }
    return t;
}

static void run_apply(const long_form *form, task_form t) {
    ln_record records[LONG_ROWS];
    int64_t begin = segment_of(form, APPLY, t.number), end = segment_of(form, APPLY, t.number + t.segments - 1);
    int one_sweep = form->problem->fast && !backward(form) && !form->sums; /* as well by the rows' kernel: a whole row */
    int once = begin == 0 || end == 0, sweeps = lnorm_has(form->problem, LNORM_Y) || form->means;
    if (!t.segments || (!once && !sweeps && !form->with_columns))
        return;
    for (int64_t row = 0; row < t.rows; row++)
        if (one_sweep) {
            const lnorm_long_part whole = fast_part(form, t.row, 0, form->cols);
            lnorm_long_fast_row(&whole, &records[row]);
        } else {
            row_record(form, t.row + row, APPLY, &records[row]);
        }
    for (int64_t row = 0; once && row < t.rows; row++)
        put_row(form, t.row + row, &records[row]);
    for (int64_t i = t.number; !one_sweep && i < t.number + t.segments; i++) {
        int64_t segment = segment_of(form, APPLY, i), first = segment * form->segment;
        if (form->with_columns)
            apply_columns(form, first, segment_count(form, segment), records);
        else
            for (int64_t row = 0; row < t.rows; row++)
                apply_row(form, t.row + row, first, segment_count(form, segment), &records[row]);
    }
    lnorm_stream_end();
}

/* -- The engine --------------------------------------------------------------------------------------------------- */

static void long_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                     int phase, int64_t task) {
    long_form form = form_of(problem);
    form.data = data;
    form.all = kernels;
    form.kernels = &kernels->long_rows;
    form.sums = data->in_order ? NULL : data->workspace; /* one thread goes row by row, which stay in the caches */
    if (phase == APPLY)
        run_apply(&form, task_of(&form, phase, task));
    else if (form.sums)
        keep_sum(&form, phase, task / form.segments, segment_of(&form, phase, task % form.segments));
}

const lnorm_engine lnorm_engine_long = {"long", long_takes, long_workspace, long_phases, long_tasks, long_run};

int lnorm_plan_segment(const lnorm_plan *plan, int phase, int64_t task, int64_t *row, int64_t *first, int64_t *count) {
    const lnorm_plan_form *view = (const lnorm_plan_form *)plan;
    long_form form;
    task_form t;
    ln_pair any;
    if (task < 0 || task >= lnorm_plan_tasks(plan, phase) || view->engine != &lnorm_engine_long)
        return 0;
    form = form_of(&view->problem);
    form.sums = &any; /* a workspace is given */
    t = task_of(&form, phase, task);
    if (t.rows > 1)
        return 0;
    *row = t.row;
    *first = segment_of(&form, phase, t.number) * form.segment;
    *count = segment_count(&form, segment_of(&form, phase, t.number));
    return 1;
}
