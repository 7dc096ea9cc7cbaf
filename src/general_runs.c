/* The general form, backward, where elements lie in runs (channels first): x, dy and dx are contiguous along the last
 * axis, and the weight is one number along it. A group is walked run by run, and nothing is gathered: sums go on from
 * one run to the next in the accurate arithmetic, whose lanes turn for that, and in the fast one blocks that runs share
 * are put together on the stack. 16 bits are widened to the stack, a few blocks at a time. */
#include "kernels/loops.h"

/* -- What it takes ------------------------------------------------------------------------------------------------- */

static int ln_is_constant_along(const lnorm_problem *problem, enum lnorm_operand operand, int axis) {
    return !lnorm_has(problem, operand) || problem->operand[operand].stride[axis] == 0;
}

static int ln_narrow_run(const lnorm_problem *problem, enum lnorm_operand operand, int axis) {
    const lnorm_operand_form *form = &problem->operand[operand];
    return !lnorm_has(problem, operand) || (form->element != LNORM_ELEMENT_F64 && form->stride[axis] == 1);
}

/* The axes that partials are numbered by come before those that a partial sums over. */
static int ln_partials_in_order(const lnorm_affine_job *job) {
    return job->inner.axes > 0 && (job->each.axes == 0 || job->each.axis[job->each.axes - 1] < job->inner.axis[0]);
}

int lnorm_in_runs(const lnorm_problem *problem, const lnorm_affine_job *job) {
    const int last = problem->element.axes ? problem->element.axis[problem->element.axes - 1] : -1;
    return last >= 0 && problem->element.count > 0 && lnorm_has(problem, LNORM_X) &&
           ln_narrow_run(problem, LNORM_X, last) && ln_narrow_run(problem, LNORM_DY, last) &&
           ln_narrow_run(problem, LNORM_DX, last) && ln_is_constant_along(problem, LNORM_WEIGHT, last) &&
           (!job || ln_partials_in_order(job));
}

/* -- Walking a group ----------------------------------------------------------------------------------------------- */

enum { LN_RUN_X, LN_RUN_DY, LN_RUN_DX, LN_RUN_WEIGHT, LN_RUN_OPERANDS };

static const enum lnorm_operand ln_run_operand[LN_RUN_OPERANDS] = {LNORM_X, LNORM_DY, LNORM_DX, LNORM_WEIGHT};

/* Where a walk is: `left` elements of a run from `offset` on. */
typedef struct ln_runs {
    const ln_bundle *b;
    int64_t left, length;
    int64_t offset[LN_RUN_OPERANDS], at[LNORM_MAX_AXES];
} ln_runs;

static ln_runs ln_runs_of(const ln_bundle *b, int lane) {
    const lnorm_space *element = &b->problem->element;
    const int64_t length = b->problem->extent[element->axis[element->axes - 1]];
    ln_runs runs = {b, length, length, {0}, {0}};
    for (int k = 0; k < LN_RUN_OPERANDS; k++)
        if (lnorm_has(b->problem, ln_run_operand[k]))
            runs.offset[k] = b->base[ln_run_operand[k]] + lane * ln_lane_stride(b, ln_run_operand[k]);
    return runs;
}

/* n <= left elements further; from the end of a run to the begin of the next. */
static void ln_runs_on(ln_runs *runs, int64_t n) {
    const lnorm_problem *problem = runs->b->problem;
    runs->left -= n;
    for (int k = 0; k < LN_RUN_WEIGHT; k++)
        runs->offset[k] += runs->left ? n : n - runs->length;
    if (runs->left)
        return;
    runs->left = runs->length;
    for (int i = problem->element.axes - 1; i-- > 0;) {
        const int axis = problem->element.axis[i];
        const int64_t extent = problem->extent[axis], steps = ++runs->at[i] < extent ? 1 : 1 - extent;
        for (int k = 0; k < LN_RUN_OPERANDS; k++)
            if (lnorm_has(problem, ln_run_operand[k]))
                runs->offset[k] += steps * problem->operand[ln_run_operand[k]].stride[axis];
        if (steps == 1)
            return;
        runs->at[i] = 0;
    }
}

static char *ln_run_at(const ln_runs *runs, int k) {
    return runs->b->data->at[ln_run_operand[k]] + runs->offset[k] * ln_size_of(runs->b, ln_run_operand[k]);
}

static double ln_run_weight(const ln_runs *runs) {
    const lnorm_problem *problem = runs->b->problem;
    double value;
    if (!lnorm_has(problem, LNORM_WEIGHT))
        return 1.0;
    value = lnorm_load(ln_element_of(runs->b, LNORM_WEIGHT), runs->b->data->at[LNORM_WEIGHT],
                       runs->offset[LN_RUN_WEIGHT]);
    return problem->weight_offset ? 1.0 + value : value;
}

/* -- Terms --------------------------------------------------------------------------------------------------------- */

/* Elements as f32, and one weight or (fast) those of a block. */
typedef struct ln_run_terms {
    float x[LN_TERMS + LNORM_LANES], dy[LN_TERMS + LNORM_LANES], weight_f32[LNORM_BLOCK + LNORM_LANES];
    double weight;
} ln_run_terms;

static int ln_runs_are_f32(const ln_bundle *b) {
    return ln_element_of(b, LNORM_X) == LNORM_ELEMENT_F32 && ln_element_of(b, LNORM_DY) == LNORM_ELEMENT_F32;
}

/* The next n of a run, at `first` in a copy. */
static void ln_copy_terms(const ln_runs *runs, int64_t n, ln_run_terms *copy, int64_t first) {
    const ln_bundle *b = runs->b;
    b->loops->to_f32(ln_element_of(b, LNORM_X), ln_run_at(runs, LN_RUN_X), copy->x + first, n);
    b->loops->to_f32(ln_element_of(b, LNORM_DY), ln_run_at(runs, LN_RUN_DY), copy->dy + first, n);
}

static void ln_take_terms(const ln_runs *runs, int64_t n, ln_run_terms *copy, ln_terms *f) {
    f->n = n;
    f->x = copy->x;
    f->dy = copy->dy;
    copy->weight = ln_run_weight(runs);
    copy->weight_f32[0] = (float)copy->weight; /* 1 + weight, too: f64 in between changes no bit */
    if (ln_runs_are_f32(runs->b)) {
        f->x = (const float *)(const void *)ln_run_at(runs, LN_RUN_X);
        f->dy = (const float *)(const void *)ln_run_at(runs, LN_RUN_DY);
    } else {
        ln_copy_terms(runs, n, copy, 0);
        memset(copy->x + n, 0, LNORM_LANES * sizeof *copy->x);
        memset(copy->dy + n, 0, LNORM_LANES * sizeof *copy->dy);
    }
}

static void ln_begin_run_terms(const ln_bundle *b, const ln_record *s, ln_run_terms *copy, ln_terms *f) {
    *f = (ln_terms){.weight = &copy->weight, .weight_f32 = copy->weight_f32};
    f->soon[0] = f->soon[1] = (const char *)copy->x;
    lnorm_set_statistics(b, s, f);
}

static int64_t ln_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* -- Sums ---------------------------------------------------------------------------------------------------------- */

/* Where partials go. */
typedef struct ln_run_partials {
    const lnorm_affine_job *job; /* or NULL */
    int64_t group, each;
    int lane;
} ln_run_partials;

static void ln_put_run_partial(const ln_bundle *b, ln_run_partials *to, ln_pair partial) {
    ln_bundle part = *b;
    if (!to->job->outer.axes && to->job->each.axes)
        ln_set_base(&part, &b->problem->group, to->group, &to->job->each, to->each);
    lnorm_put_partial(&part, to->job, to->group + to->lane, to->each++, to->lane, partial);
}

/* The sums of g and g*xhat over a group; with them partials. */
static ln_pair ln_accurate_sums(const ln_bundle *b, const ln_record *s, ln_run_partials *to) {
    ln_runs runs = ln_runs_of(b, to->lane);
    ln_run_terms copy;
    ln_terms f;
    ln_term_sums of_g, of_dy;
    const int64_t count = b->problem->element.count, part = to->job ? to->job->inner.count : count;
    ln_begin_run_terms(b, s, &copy, &f);
    lnorm_begin_terms(&of_g, 0);
    for (int64_t first = 0, n; first < count; first += n) {
        if (first % part == 0)
            lnorm_begin_terms(&of_dy, 0);
        n = ln_least(runs.left, LN_TERMS);
        ln_take_terms(&runs, n, &copy, &f);
        lnorm_sum_of_terms(b, &f, &of_g, &of_dy);
        ln_runs_on(&runs, n);
        if (to->job && (first + n) % part == 0)
            ln_put_run_partial(b, to, lnorm_end_terms(&of_dy));
    }
    return lnorm_end_terms(&of_g);
}

/* n values; what follows them up to a multiple of LNORM_LANES may change. */
static void ln_fill_f32(float *values, float value, int64_t n) {
    for (int64_t i = 0; i < n; i += LNORM_LANES)
        for (int k = 0; k < LNORM_LANES; k++)
            values[i + k] = value;
}

/* n elements put together, of which the last may be missing in a block. */
static void ln_join_runs(ln_runs *runs, int64_t n, int weighted, ln_run_terms *copy, ln_terms *f) {
    f->n = n;
    f->x = copy->x;
    f->dy = copy->dy;
    f->weight_step = weighted && runs->left < n;
    for (int64_t done = 0, part; done < n; done += part) {
        part = ln_least(runs->left, n - done);
        ln_copy_terms(runs, part, copy, done);
        ln_fill_f32(copy->weight_f32 + done, weighted ? (float)ln_run_weight(runs) : 1.0f, f->weight_step ? part : 1);
        ln_runs_on(runs, part);
    }
    memset(copy->x + n, 0, (size_t)(LNORM_BLOCK - n) * sizeof *copy->x);
    memset(copy->dy + n, 0, (size_t)(LNORM_BLOCK - n) * sizeof *copy->dy);
    if (f->weight_step)
        ln_fill_f32(copy->weight_f32 + n, 1.0f, LNORM_BLOCK - n);
}

/* Over the next `count` elements, in runs of the fast arithmetic. */
static ln_pair ln_fast_sums(const ln_bundle *b, const ln_record *s, ln_runs *runs, int64_t count, int weighted) {
    ln_run_terms copy;
    ln_terms f;
    ln_term_sums sums;
    ln_begin_run_terms(b, s, &copy, &f);
    lnorm_begin_terms(&sums, 1);
    for (int64_t first = 0, n; first < count; first += n) {
        n = ln_block_length(count, first);
        if (runs->left >= LNORM_BLOCK && n == LNORM_BLOCK) {
            f.weight_step = 0;
            ln_take_terms(runs, n, &copy, &f);
            if (!weighted)
                copy.weight_f32[0] = 1.0f;
            ln_runs_on(runs, n);
        } else {
            ln_join_runs(runs, n, weighted, &copy, &f);
        }
        lnorm_sum_of_terms(b, &f, &sums, NULL);
    }
    return lnorm_end_terms(&sums);
}

static ln_pair ln_fast_sums_of_group(const ln_bundle *b, const ln_record *s, ln_run_partials *to, int means) {
    const int64_t count = b->problem->element.count;
    ln_runs runs = ln_runs_of(b, to->lane);
    ln_pair sum = {0.0, 0.0};
    for (int64_t i = 0; to->job && i < to->job->each.count; i++) {
        sum = ln_fast_sums(b, s, &runs, to->job->inner.count, 0);
        ln_put_run_partial(b, to, sum);
    }
    if (means && (!to->job || to->job->each.count > 1 || lnorm_has(b->problem, LNORM_WEIGHT))) { /* else g is dy */
        runs = ln_runs_of(b, to->lane);
        sum = ln_fast_sums(b, s, &runs, count, 1);
    }
    return sum;
}

/* -- dx ------------------------------------------------------------------------------------------------------------ */

/* What is asked for: of the next group, or of this one. */
static void ln_ask_soon(const ln_runs *runs, int n, ln_terms *f) {
    const int64_t soon = runs->b->soon[n];
    f->soon[n] = ln_run_at(runs, n) + soon * ln_size_of(runs->b, ln_run_operand[n]);
    f->soon_step[n] = soon ? LNORM_LANES * ln_size_of(runs->b, ln_run_operand[n]) : 0;
}

/* The last n < LNORM_LANES elements of a run. */
static void ln_dx_rest(const ln_bundle *b, ln_terms *f, int64_t n, char *to) {
    float copy[2][LNORM_LANES];
    const float *x = f->x, *dy = f->dy;
    f->n = n;
    memset(copy, 0, sizeof copy);
    f->dy = memcpy(copy[1], dy, (size_t)n * sizeof *dy);
    if (x)
        f->x = memcpy(copy[0], x, (size_t)n * sizeof *x);
    lnorm_dx_block(b, f, to, 0);
}

static void ln_dx_of_run(const ln_runs *runs, int direct, ln_terms *f, int64_t n, ln_run_terms *copy) {
    const ln_bundle *b = runs->b;
    const int64_t whole = ln_runs_are_f32(b) ? n / LNORM_LANES * LNORM_LANES : n; /* there is room in a copy */
    char *to = ln_run_at(runs, LN_RUN_DX);
    ln_take_terms(runs, n, copy, f);
    if (b->problem->statistics == LNORM_CONSTANT)
        f->x = NULL;
    ln_ask_soon(runs, 0, f);
    ln_ask_soon(runs, 1, f);
    f->n = whole;
    if (whole)
        lnorm_dx_block(b, f, to, direct);
    if (n > whole) {
        f->x = f->x ? f->x + whole : NULL;
        f->dy += whole;
        ln_dx_rest(b, f, n - whole, to + whole * ln_size_of(b, LNORM_DX));
    }
}

static void ln_runs_dx(const ln_bundle *b, const ln_record *s, int lane) {
    const int direct = ln_runs_are_f32(b) && ln_element_of(b, LNORM_DX) == LNORM_ELEMENT_F32;
    const int64_t count = b->problem->element.count, most = direct ? count : LNORM_BLOCK;
    ln_runs runs = ln_runs_of(b, lane);
    ln_run_terms copy;
    ln_terms f;
    ln_begin_run_terms(b, s, &copy, &f);
    for (int64_t first = 0, n; first < count; first += n) {
        n = ln_least(runs.left, most);
        ln_dx_of_run(&runs, direct, &f, n, &copy);
        ln_runs_on(&runs, n);
    }
}

void lnorm_runs_gradients(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, ln_record *s) {
    const int dx = lnorm_has(b->problem, LNORM_DX), means = dx && b->problem->statistics != LNORM_CONSTANT;
    for (int lane = 0; lane < b->lanes; lane++) {
        ln_run_partials to = {job, group, 0, lane};
        ln_pair sum;
        if (job || means) {
            sum = b->problem->fast ? ln_fast_sums_of_group(b, &s[lane], &to, means)
                                   : ln_accurate_sums(b, &s[lane], &to);
            lnorm_set_means(b, sum, &s[lane]);
        }
        if (dx)
            ln_runs_dx(b, &s[lane], lane);
    }
}
