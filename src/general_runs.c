/* The general form, backward, where elements lie in runs (channels first): x, dy and dx are contiguous along the last
 * axis, and the weight is one number along it. A group is walked run by run, and nothing is gathered: in the accurate
 * arithmetic sums go on from one run to the next (blocks.c), and in the fast one blocks that runs share are put together
 * on the stack. 16 bits are widened to the stack, a few blocks at a time. */
#include "kernels/loops.h"

/* -- What it takes ------------------------------------------------------------------------------------------------- */

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
           ln_narrow_run(problem, LNORM_DX, last) && ln_constant_along(problem, LNORM_WEIGHT, last) &&
           (!job || ln_partials_in_order(job));
}

/* -- Walking a group ----------------------------------------------------------------------------------------------- */

enum { LN_RUN_X, LN_RUN_DY, LN_RUN_DX, LN_RUN_WEIGHT, LN_RUN_OPERANDS };

static const enum lnorm_operand ln_run_operand[LN_RUN_OPERANDS] = {LNORM_X, LNORM_DY, LNORM_DX, LNORM_WEIGHT};

/* Where a walk is: at element `at` of a run. The weight's distances are elements, others bytes. */
typedef struct ln_runs {
    const ln_bundle *b;
    int64_t at, length;
    int64_t size[LN_RUN_OPERANDS], begin[LN_RUN_OPERANDS]; /* of an element; where the run begins */
    int64_t index[LNORM_MAX_AXES];                         /* along the axes before the last */
    double weight;
} ln_runs;

LNORM_OUT_OF_LINE static void ln_set_run_weight(ln_runs *runs) {
    runs->weight = ln_affine_at(runs->b, LNORM_WEIGHT, runs->begin[LN_RUN_WEIGHT], 1.0);
}

static void ln_begin_runs(ln_runs *runs, const ln_bundle *b, int lane) {
    const lnorm_space *element = &b->problem->element;
    runs->b = b;
    runs->at = 0;
    runs->length = b->problem->extent[element->axis[element->axes - 1]];
    memset(runs->index, 0, sizeof runs->index);
    for (int k = 0; k < LN_RUN_OPERANDS; k++) {
        const enum lnorm_operand operand = ln_run_operand[k];
        runs->size[k] = k == LN_RUN_WEIGHT ? 1 : ln_size_of(b, operand);
        runs->begin[k] = 0;
        if (lnorm_has(b->problem, operand))
            runs->begin[k] = (b->base[operand] + lane * ln_lane_stride(b, operand)) * runs->size[k];
    }
    ln_set_run_weight(runs);
}

static int64_t ln_left(const ln_runs *runs) {
    return runs->length - runs->at;
}

LNORM_OUT_OF_LINE static void ln_next_run_of_group(ln_runs *runs) {
    const lnorm_problem *problem = runs->b->problem;
    runs->at = 0;
    for (int i = problem->element.axes - 1; i-- > 0;) {
        const int axis = problem->element.axis[i];
        const int64_t extent = problem->extent[axis], steps = ++runs->index[i] < extent ? 1 : 1 - extent;
        for (int k = 0; k < LN_RUN_OPERANDS; k++)
            runs->begin[k] += steps * problem->operand[ln_run_operand[k]].stride[axis] * runs->size[k];
        if (steps == 1)
            break;
        runs->index[i] = 0;
    }
    ln_set_run_weight(runs);
}

/* n elements further, at most to the end of the run. */
static inline void ln_runs_on(ln_runs *runs, int64_t n) {
    runs->at += n;
    if (runs->at == runs->length)
        ln_next_run_of_group(runs);
}

static char *ln_run_at(const ln_runs *runs, int k) {
    return runs->b->data->at[ln_run_operand[k]] + runs->begin[k] + runs->at * runs->size[k];
}

/* -- What the general form shares ---------------------------------------------------------------------------------- */

void lnorm_set_statistics(const ln_bundle *b, const ln_record *s, ln_terms *f) {
    f->s = s;
    if (b->problem->fast)
        f->form = ln_fast_form_of(s);
}

/* In the fast arithmetic numbers in f32. */
void lnorm_set_means(const ln_bundle *b, ln_pair sum, ln_record *s) {
    const double count = (double)b->space->count;
    s->c1 = b->problem->center ? sum.a / count : 0.0; /* g - 0.0 is g */
    s->c2 = sum.b / count;
    if (b->problem->fast) {
        s->c1 = (double)(float)s->c1;
        s->c2 = (double)(float)s->c2;
    }
}

/* What is missing in a block is 0 times a weight: that of the others, if they have one, which may be infinite. */
static int ln_absent_are_zero(const ln_terms *f) {
    return f->weight_step || f->weight_f32[0] - f->weight_f32[0] == 0.0f;
}

void lnorm_sum_of_terms(const ln_bundle *b, ln_terms *f, ln_term_sums *of_g, ln_term_sums *of_dy) {
    if (!b->problem->fast) {
        lnorm_add_terms(b->loops, f, of_g, of_dy);
        return;
    }
    while (f->n > 0) {
        int64_t n = f->n < LNORM_BLOCK ? f->n : LNORM_BLOCK;
        if (f->form.regular && !ln_fast_is_far(&f->form) && (n == LNORM_BLOCK || ln_absent_are_zero(f)))
            n = b->loops->sum_terms(1, f, of_g, NULL);
        else
            lnorm_irregular_sums(b, f, n, of_g);
        lnorm_next_runs(of_g, (n + LNORM_BLOCK - 1) & -LNORM_BLOCK);
        ln_terms_on(f, 1, n);
    }
}

/* -- Terms --------------------------------------------------------------------------------------------------------- */

/* Elements as f32, and the weight: one, or those of a block. */
typedef struct ln_run_terms {
    float x[LN_TERMS + LNORM_LANES], dy[LN_TERMS + LNORM_LANES], weight_f32[LNORM_BLOCK + LNORM_LANES];
} ln_run_terms;

static int ln_runs_are_f32(const ln_bundle *b) {
    return ln_element_of(b, LNORM_X) == LNORM_ELEMENT_F32 && ln_element_of(b, LNORM_DY) == LNORM_ELEMENT_F32;
}

/* The next n of a run, at `first` in a copy. */
static void ln_copy_terms(const ln_runs *runs, int64_t n, ln_run_terms *copy, int64_t first) {
    const ln_bundle *b = runs->b;
    if (ln_runs_are_f32(b)) {
        memcpy(copy->x + first, ln_run_at(runs, LN_RUN_X), (size_t)n * sizeof *copy->x);
        memcpy(copy->dy + first, ln_run_at(runs, LN_RUN_DY), (size_t)n * sizeof *copy->dy);
        return;
    }
    b->loops->to_f32(ln_element_of(b, LNORM_X), ln_run_at(runs, LN_RUN_X), copy->x + first, n);
    b->loops->to_f32(ln_element_of(b, LNORM_DY), ln_run_at(runs, LN_RUN_DY), copy->dy + first, n);
}

static void ln_take_terms(const ln_runs *runs, int64_t n, ln_run_terms *copy, ln_terms *f) {
    f->n = n;
    f->x = copy->x;
    f->dy = copy->dy;
    f->weight = &runs->weight;
    f->weight_f32 = copy->weight_f32;
    copy->weight_f32[0] = (float)runs->weight; /* 1 + weight, too: f64 in between changes no bit */
    if (ln_runs_are_f32(runs->b)) {
        f->x = (const float *)(const void *)ln_run_at(runs, LN_RUN_X);
        f->dy = (const float *)(const void *)ln_run_at(runs, LN_RUN_DY);
    } else {
        ln_copy_terms(runs, n, copy, 0);
        memset(copy->x + n, 0, LNORM_LANES * sizeof *copy->x);
        memset(copy->dy + n, 0, LNORM_LANES * sizeof *copy->dy);
    }
}

LNORM_OUT_OF_LINE static void ln_begin_run_terms(const ln_bundle *b, const ln_record *s, ln_run_terms *copy,
                                                 ln_terms *f) {
    f->weight_step = 0;
    f->soon[0] = f->soon[1] = (const char *)copy->x;
    f->soon_size[0] = f->soon_size[1] = 0;
    lnorm_set_statistics(b, s, f);
}

/* -- Sums ---------------------------------------------------------------------------------------------------------- */

/* Where partials go. */
typedef struct ln_run_partials {
    const lnorm_affine_job *job; /* or NULL */
    int64_t group, each;
    int lane;
} ln_run_partials;

static void ln_put_run_partial(const ln_bundle *b, ln_run_partials *to, ln_pair partial) {
    if (to->job->outer.axes || to->job->each.axes == 0)
        lnorm_put_partial(b, to->job, to->group + to->lane, to->each, to->lane, partial);
    else
        lnorm_put_entry(b, to->job, to->group, to->each, to->lane, partial);
    to->each++;
}

/* The sums of g and g*xhat over a group; with them partials. */
static ln_pair ln_accurate_sums(const ln_bundle *b, const ln_record *s, ln_runs runs, ln_run_partials *to) {
    ln_run_terms copy;
    ln_terms f;
    ln_term_sums of_g, of_dy;
    const int64_t count = b->problem->element.count, part = to->job ? to->job->inner.count : count;
    ln_begin_run_terms(b, s, &copy, &f);
    lnorm_begin_terms(&of_g, 0);
    for (int64_t first = 0, n; first < count; first += n) {
        if (first % part == 0)
            lnorm_begin_terms(&of_dy, 0);
        n = ln_least(ln_left(&runs), LN_TERMS);
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
    f->weight_f32 = copy->weight_f32;
    f->weight_step = weighted && ln_left(runs) < n;
    for (int64_t done = 0, part; done < n; done += part) {
        part = ln_least(ln_left(runs), n - done);
        ln_copy_terms(runs, part, copy, done);
        ln_fill_f32(copy->weight_f32 + done, weighted ? (float)runs->weight : 1.0f, f->weight_step ? part : 1);
        ln_runs_on(runs, part);
    }
    ln_fill_f32(copy->x + n, 0.0f, LNORM_BLOCK - n);
    ln_fill_f32(copy->dy + n, 0.0f, LNORM_BLOCK - n);
    if (f->weight_step)
        ln_fill_f32(copy->weight_f32 + n, 1.0f, LNORM_BLOCK - n);
}

/* Over the next `count` elements, in runs of the fast arithmetic: several at once where they lie together. */
static ln_pair ln_fast_sums(const ln_bundle *b, const ln_record *s, ln_runs *runs, int64_t count, int weighted) {
    ln_run_terms copy;
    ln_terms f;
    ln_term_sums sums;
    ln_begin_run_terms(b, s, &copy, &f);
    lnorm_begin_terms(&sums, 1);
    for (int64_t first = 0, n; first < count; first += n) {
        n = ln_least(ln_least(ln_left(runs), count - first), LN_TERMS) & -LNORM_BLOCK;
        if (n) {
            f.weight_step = 0;
            ln_take_terms(runs, n, &copy, &f);
            if (!weighted)
                copy.weight_f32[0] = 1.0f;
            ln_runs_on(runs, n);
        } else {
            n = ln_least(count - first, LNORM_BLOCK);
            ln_join_runs(runs, n, weighted, &copy, &f);
        }
        lnorm_sum_of_terms(b, &f, &sums, NULL);
    }
    return lnorm_end_terms(&sums);
}

static ln_pair ln_fast_sums_of_group(const ln_bundle *b, const ln_record *s, const ln_runs *all, ln_run_partials *to,
                                     int means) {
    const int64_t count = b->problem->element.count;
    ln_runs runs = *all;
    ln_pair sum = {0.0, 0.0};
    for (int64_t i = 0; to->job && i < to->job->each.count; i++) {
        sum = ln_fast_sums(b, s, &runs, to->job->inner.count, 0);
        ln_put_run_partial(b, to, sum);
    }
    if (means && (!to->job || to->job->each.count > 1 || lnorm_has(b->problem, LNORM_WEIGHT))) { /* else g is dy */
        runs = *all;
        sum = ln_fast_sums(b, s, &runs, count, 1);
    }
    return sum;
}

/* -- dx ------------------------------------------------------------------------------------------------------------ */

/* What is asked for: of the next group, or of this one. */
static void ln_ask_soon(const ln_runs *runs, int n, ln_terms *f) {
    const int64_t soon = runs->b->soon[n];
    f->soon[n] = ln_run_at(runs, n) + soon * runs->size[n];
    f->soon_size[n] = soon ? runs->size[n] : 0;
}

/* The last n < LNORM_LANES elements of a run. */
LNORM_OUT_OF_LINE static void ln_dx_rest(const ln_bundle *b, ln_terms *f, int64_t n, char *to) {
    float copy[3][LNORM_LANES];
    const int is_f32 = ln_element_of(b, LNORM_DX) == LNORM_ELEMENT_F32;
    memset(copy, 0, sizeof copy);
    f->n = n;
    f->dy = memcpy(copy[1], f->dy, (size_t)n * sizeof *f->dy);
    if (f->x)
        f->x = memcpy(copy[0], f->x, (size_t)n * sizeof *f->x);
    lnorm_dx_block(b, f, is_f32 ? (char *)copy[2] : to, is_f32);
    if (is_f32)
        memcpy(to, copy[2], (size_t)n * sizeof copy[2][0]);
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

static void ln_runs_dx(const ln_bundle *b, const ln_record *s, ln_runs runs) {
    const int direct = ln_runs_are_f32(b) && ln_element_of(b, LNORM_DX) == LNORM_ELEMENT_F32;
    const int64_t count = b->problem->element.count, most = direct ? count : LNORM_BLOCK;
    ln_run_terms copy;
    ln_terms f;
    ln_begin_run_terms(b, s, &copy, &f);
    for (int64_t first = 0, n; first < count; first += n) {
        n = ln_least(ln_left(&runs), most);
        ln_dx_of_run(&runs, direct, &f, n, &copy);
        ln_runs_on(&runs, n);
    }
}

/* The sums of a group: partials if there is a job, and its c1 and c2. */
static void ln_runs_sums(const ln_bundle *b, const ln_runs *runs, ln_run_partials *to, int means, ln_record *s) {
    const ln_pair sum = b->problem->fast ? ln_fast_sums_of_group(b, s, runs, to, means)
                                         : ln_accurate_sums(b, s, *runs, to);
    lnorm_set_means(b, sum, s);
}

void lnorm_runs_sums(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, ln_record *s) {
    ln_run_partials to = {job, group, 0, 0};
    ln_runs runs;
    ln_begin_runs(&runs, b, 0);
    ln_runs_sums(b, &runs, &to, 1, s);
}

void lnorm_runs_gradients(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, ln_record *s) {
    const int dx = lnorm_has(b->problem, LNORM_DX), means = dx && b->problem->statistics != LNORM_CONSTANT;
    for (int lane = 0; lane < b->lanes; lane++) {
        ln_run_partials to = {job, group, 0, lane};
        ln_runs runs;
        ln_begin_runs(&runs, b, lane);
        if (job || means)
            ln_runs_sums(b, &runs, &to, means, &s[lane]);
        if (dx)
            ln_runs_dx(b, &s[lane], runs);
    }
}
