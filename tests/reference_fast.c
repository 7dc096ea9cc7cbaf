/* The fast arithmetic, docs/arithmetic.md section 22, to be read beside it: f64 statistics, everything that is one per
 * element in f32.
 *
 * Each f32 operation is a function that assigns its result to a float. Where C evaluates such an expression in double
 * (FLT_EVAL_METHOD 1, s390x) the assignment rounds, and an f64 in between changes no bit of an f32 sum, difference or
 * product: 53 digits are at least 2*24 + 2. */
#include "compact.inc"

#include "access.h"
#include "reference_wide.h" /* its way to read elements */

/* What is kept of a group: its statistics, the same in f32, and means of the gradient. */
typedef struct fast_record {
    double c, t, v, r;
    float h, l, rho;
    float c1, c2;
    int32_t in_f32; /* xhat and the multiplication by r are f32 operations */
} fast_record;
_Static_assert(sizeof(fast_record) <= LNORM_RECORD_MAX && sizeof(fast_record) % 8 == 0, "the engine keeps records");

static float f32_add(float a, float b) {
    float sum = a + b;
    return sum;
}

static float f32_sub(float a, float b) {
    float difference = a - b;
    return difference;
}

static float f32_mul(float a, float b) {
    float product = a * b;
    return product;
}

static int has(const lnorm_wide_run *run, enum lnorm_operand operand) {
    return lnorm_has(run->problem, operand);
}

/* -- Sums --------------------------------------------------------------------------------------------------------- */

/* A sum in progress: runs of 256 terms enter f64 lanes, 16 runs make a block of the tree. */
typedef struct run_sum {
    lnorm_tree tree;
    double lane[LNORM_LANES];
    int runs;
} run_sum;

static void clear_lanes(run_sum *sum) {
    for (int k = 0; k < LNORM_LANES; k++)
        sum->lane[k] = 0.0;
    sum->runs = 0;
}

static run_sum empty_sum(void) {
    run_sum sum;
    lnorm_tree_clear(&sum.tree);
    clear_lanes(&sum);
    return sum;
}

static void fold_runs(run_sum *sum) {
    lnorm_tree_push(&sum->tree, lnorm_fold(sum->lane));
    clear_lanes(sum);
}

/* ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) */
static float sum_of_eight(const float term[8]) {
    float low = f32_add(f32_add(term[0], term[1]), f32_add(term[2], term[3]));
    return f32_add(low, f32_add(f32_add(term[4], term[5]), f32_add(term[6], term[7])));
}

/* Column k of a run that is eight rows of 32 terms; absent ones are +0. */
static float sum_of_column(const float *term, int count, int k) {
    float column[LNORM_RUN_ROWS];
    for (int row = 0; row < LNORM_RUN_ROWS; row++) {
        int i = row * LNORM_RUN_COLS + k;
        column[row] = i < count ? term[i] : 0.0f;
    }
    return sum_of_eight(column);
}

static void add_run(run_sum *sum, const float *term, int count) {
    for (int k = 0; k < LNORM_LANES; k++) {
        float both = f32_add(sum_of_column(term, count, k), sum_of_column(term, count, k + LNORM_LANES));
        sum->lane[k] = sum->lane[k] + (double)both;
    }
    if (++sum->runs == LNORM_BLOCK_RUNS)
        fold_runs(sum);
}

static double total_of(run_sum *sum) {
    if (sum->runs)
        fold_runs(sum);
    return lnorm_tree_total(&sum->tree);
}

/* -- Elements: a run of them at a time ---------------------------------------------------------------------------- */

static void read_f32(const lnorm_wide_run *run, enum lnorm_operand operand, int64_t first, int count, float *value) {
    double wide[LNORM_BLOCK];
    lnorm_wide_read(run, operand, first, count, 0.0, wide);
    for (int i = 0; i < count; i++)
        value[i] = (float)wide[i]; /* narrow types: exact */
}

/* One rounding from the f32. */
static void write_f32(const lnorm_wide_run *run, enum lnorm_operand operand, int64_t first, int count,
                      const float *value) {
    double wide[LNORM_BLOCK];
    for (int i = 0; i < count; i++)
        wide[i] = (double)value[i];
    lnorm_wide_write(run, operand, first, count, wide);
}

/* a[i] = a[i]*weight; no operation where there is no weight. */
static void times_weight(const lnorm_wide_run *run, int64_t first, int count, float *a) {
    float weight[LNORM_BLOCK];
    if (!has(run, LNORM_WEIGHT))
        return;
    read_f32(run, LNORM_WEIGHT, first, count, weight);
    for (int i = 0; i < count; i++)
        a[i] = f32_mul(a[i], run->problem->weight_offset ? f32_add(1.0f, weight[i]) : weight[i]);
}

static void read_xhat(const lnorm_wide_run *run, const fast_record *s, int64_t first, int count, float *xhat) {
    double x[LNORM_BLOCK];
    lnorm_wide_read(run, LNORM_X, first, count, 0.0, x);
    for (int i = 0; i < count; i++)
        xhat[i] = s->in_f32 ? f32_mul(f32_sub(f32_sub((float)x[i], s->h), s->l), s->rho)
                            : (float)(((x[i] - s->c) - s->t) * s->r);
}

static void read_g(const lnorm_wide_run *run, int64_t first, int count, float *g) {
    read_f32(run, LNORM_DY, first, count, g);
    times_weight(run, first, count, g);
}

/* -- Statistics --------------------------------------------------------------------------------------------------- */

static void in_f32(fast_record *s) {
    s->in_f32 = fabs(s->c) <= 0x1p100 && (s->r == 0.0 || (s->r >= 0x1p-100 && s->r <= 0x1p100));
    s->h = s->l = s->rho = 0.0f;
    if (!s->in_f32)
        return;
    s->h = (float)s->c;
    s->l = (float)((s->c - (double)s->h) + s->t);
    s->rho = (float)s->r;
}

/* Statistics from sums in runs. False where they are not good enough. */
static int statistics_by_runs(const lnorm_wide_run *run, fast_record *s) {
    run_sum sum_x = empty_sum(), sum_x_x = empty_sum();
    int64_t count = run->space->count;
    for (int64_t first = 0; first < count; first += LNORM_BLOCK) {
        float x[LNORM_BLOCK], x_x[LNORM_BLOCK];
        int length = lnorm_wide_length(count, first);
        read_f32(run, LNORM_X, first, length, x);
        for (int i = 0; i < length; i++)
            x_x[i] = f32_mul(x[i], x[i]);
        add_run(&sum_x, x, length);
        add_run(&sum_x_x, x_x, length);
    }
    double m = total_of(&sum_x) / (double)count, q = total_of(&sum_x_x) / (double)count;
    double kappa = run->problem->operand[LNORM_X].element == LNORM_ELEMENT_F32 ? LNORM_KAPPA_F32 : LNORM_KAPPA;
    int center = run->problem->center;
    s->c = center ? (double)(float)m : 0.0;
    s->t = 0.0;
    s->v = center ? q - m * m : q;
    double radicand = s->v + run->problem->eps;
    s->r = radicand > 0.0 ? 1.0 / sqrt(radicand) : 0.0;
    return (!center || s->v * kappa >= m * m) && radicand >= 0x1p-100 && radicand <= 0x1p100;
}

static void statistics(const lnorm_wide_run *run, int64_t group, fast_record *s) {
    if (run->problem->statistics != LNORM_COMPUTED || !statistics_by_runs(run, s)) {
        lnorm_statistics_narrow narrow = lnorm_reference_statistics(run->problem, run->data, group);
        s->c = narrow.c;
        s->t = narrow.t;
        s->v = narrow.v;
        s->r = narrow.r;
    }
    in_f32(s);
}

/* -- Groups ------------------------------------------------------------------------------------------------------- */

/* c1 = M(g), c2 = M(g*xhat) */
static void means_of_g(const lnorm_wide_run *run, fast_record *s) {
    run_sum sum_g = empty_sum(), sum_g_xhat = empty_sum();
    int64_t count = run->space->count;
    for (int64_t first = 0; first < count; first += LNORM_BLOCK) {
        float g[LNORM_BLOCK], g_xhat[LNORM_BLOCK];
        int length = lnorm_wide_length(count, first);
        read_g(run, first, length, g);
        read_xhat(run, s, first, length, g_xhat);
        for (int i = 0; i < length; i++)
            g_xhat[i] = f32_mul(g[i], g_xhat[i]);
        add_run(&sum_g, g, length);
        add_run(&sum_g_xhat, g_xhat, length);
    }
    s->c1 = (float)(total_of(&sum_g) / (double)count);
    s->c2 = (float)(total_of(&sum_g_xhat) / (double)count);
}

static void prepare(const lnorm_problem *problem, const lnorm_data *data, int64_t group, void *record) {
    lnorm_wide_run run = lnorm_wide_group(problem, data, group);
    fast_record local = {0};
    statistics(&run, group, &local);
    if (lnorm_has(problem, LNORM_DX) && problem->statistics != LNORM_CONSTANT)
        means_of_g(&run, &local);
    memcpy(record, &local, sizeof local);
}

static void finish_forward(const lnorm_wide_run *run, const fast_record *s, int64_t group) {
    if (run->problem->statistics == LNORM_COMPUTED) {
        const lnorm_statistics_narrow narrow = {s->c, s->t, s->v, s->r};
        lnorm_reference_put_statistics(run->problem, run->data, group, narrow);
    }
    for (int64_t first = 0; has(run, LNORM_Y) && first < run->space->count; first += LNORM_BLOCK) {
        float y[LNORM_BLOCK], bias[LNORM_BLOCK];
        int length = lnorm_wide_length(run->space->count, first);
        read_xhat(run, s, first, length, y);
        times_weight(run, first, length, y);
        if (has(run, LNORM_BIAS))
            read_f32(run, LNORM_BIAS, first, length, bias);
        for (int i = 0; has(run, LNORM_BIAS) && i < length; i++)
            y[i] = f32_add(y[i], bias[i]);
        write_f32(run, LNORM_Y, first, length, y);
    }
}

/* dx = r*((g - c1) - xhat*c2); RMS omits c1, constant statistics both. */
static float dx_of(const lnorm_problem *problem, const fast_record *s, float g, float xhat) {
    if (problem->statistics != LNORM_CONSTANT) {
        if (problem->center)
            g = f32_sub(g, s->c1);
        g = f32_sub(g, f32_mul(xhat, s->c2));
    }
    return s->in_f32 ? f32_mul(g, s->rho) : (float)((double)g * s->r);
}

static void finish_backward(const lnorm_wide_run *run, const fast_record *s) {
    for (int64_t first = 0; first < run->space->count; first += LNORM_BLOCK) {
        float dx[LNORM_BLOCK], xhat[LNORM_BLOCK];
        int length = lnorm_wide_length(run->space->count, first);
        read_g(run, first, length, dx);
        read_xhat(run, s, first, length, xhat);
        for (int i = 0; i < length; i++)
            dx[i] = dx_of(run->problem, s, dx[i], xhat[i]);
        write_f32(run, LNORM_DX, first, length, dx);
    }
}

static void finish(const lnorm_problem *problem, const lnorm_data *data, int64_t group, const void *record) {
    lnorm_wide_run run = lnorm_wide_group(problem, data, group);
    fast_record local;
    memcpy(&local, record, sizeof local);
    if (problem->pass == LNORM_FORWARD)
        finish_forward(&run, &local, group);
    else
        finish_backward(&run, &local);
}

/* -- Affine gradients --------------------------------------------------------------------------------------------- */

typedef struct affine_sum {
    lnorm_wide_run run; /* along the inner axes */
    lnorm_space outer;
    enum lnorm_operand which;
    const char *records;
} affine_sum;

static int64_t group_of(const lnorm_wide_run *run) {
    const lnorm_problem *problem = run->problem;
    int64_t group = 0;
    for (int axis = 0; axis < problem->axes; axis++)
        if (!(problem->reduced >> axis & 1))
            group = group * problem->extent[axis] + run->at[axis];
    return group;
}

/* The record of the group that outer index `outer` is in, as far as the terms read it. */
static fast_record enter_group(affine_sum *sum, int64_t outer) {
    fast_record s = {0};
    lnorm_wide_seek(&sum->run, &sum->outer, outer);
    if (sum->which == LNORM_DBIAS)
        return s;
    int64_t group = group_of(&sum->run);
    if (sum->records) {
        memcpy(&s, sum->records + group * (int64_t)sizeof s, sizeof s);
    } else {
        lnorm_wide_run whole = lnorm_wide_group(sum->run.problem, sum->run.data, group);
        statistics(&whole, group, &s);
    }
    return s;
}

/* dy, for dweight dy*xhat */
static void read_terms(const affine_sum *sum, const fast_record *s, int64_t first, int count, float *term) {
    float xhat[LNORM_BLOCK];
    read_f32(&sum->run, LNORM_DY, first, count, term);
    if (sum->which == LNORM_DBIAS)
        return;
    read_xhat(&sum->run, s, first, count, xhat);
    for (int i = 0; i < count; i++)
        term[i] = f32_mul(term[i], xhat[i]);
}

/* The partial of one outer index: its terms in runs. */
static double partial_by_runs(affine_sum *sum, int64_t outer) {
    fast_record s = enter_group(sum, outer);
    run_sum partial = empty_sum();
    int64_t count = sum->run.space->count;
    for (int64_t first = 0; first < count; first += LNORM_BLOCK) {
        float term[LNORM_BLOCK];
        int length = lnorm_wide_length(count, first);
        read_terms(sum, &s, first, length, term);
        add_run(&partial, term, length);
    }
    return total_of(&partial);
}

/* One inner index: eight outer ones, the first of them a multiple of eight; absent ones are +0. */
static double partial_of_eight(affine_sum *sum, int64_t first) {
    float term[LNORM_ROW_GROUP] = {0.0f};
    for (int i = 0; i < LNORM_ROW_GROUP && first + i < sum->outer.count; i++) {
        fast_record s = enter_group(sum, first + i);
        read_terms(sum, &s, 0, 1, &term[i]);
    }
    return (double)sum_of_eight(term);
}

static double affine_total(affine_sum *sum) {
    int eight = sum->run.space->count == 1;
    lnorm_tree tree;
    lnorm_tree_clear(&tree);
    for (int64_t first = 0; first < sum->outer.count; first += LNORM_ROW_BLOCK) {
        double block = 0.0;
        for (int64_t i = first; i < sum->outer.count && i < first + LNORM_ROW_BLOCK; i += eight ? LNORM_ROW_GROUP : 1)
            block = block + (eight ? partial_of_eight(sum, i) : partial_by_runs(sum, i));
        lnorm_tree_push(&tree, block);
    }
    return lnorm_tree_total(&tree);
}

static void affine(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand which, int64_t entry,
                   const char *records) {
    uint32_t own = which == LNORM_DWEIGHT ? problem->weight_axes : problem->bias_axes;
    uint32_t others = ((1u << problem->axes) - 1) & ~own;
    lnorm_space entries = lnorm_space_of(problem, own), inner = lnorm_space_of(problem, others & problem->reduced);
    lnorm_space outer = lnorm_space_of(problem, others & ~problem->reduced);
    affine_sum sum = {{problem, data, &inner, {0}}, outer, which, records};
    lnorm_wide_seek(&sum.run, &entries, entry);
    double total = affine_total(&sum);
    if (problem->accumulate)
        total = lnorm_wide_read_one(&sum.run, which) + total;
    lnorm_wide_write_one(&sum.run, which, total);
}

const lnorm_definition lnorm_definition_fast = {sizeof(fast_record), prepare, finish, affine};

#include "compact_end.inc"
