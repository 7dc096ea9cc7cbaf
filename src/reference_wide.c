/* The wide arithmetic, docs/arithmetic.md section 14: elements, statistics, the root, the forward pass. Written to be
 * read beside that document. Gradients are in reference_wide_gradients.c. */
#include "compact.inc"

#include "reference_wide.h"
#include <math.h>

/* -- Elements ----------------------------------------------------------------------------------------------------- */

void lnorm_wide_seek(lnorm_wide_run *run, const lnorm_space *space, int64_t index) {
    for (int i = space->axes; i-- > 0;) {
        int axis = space->axis[i];
        run->at[axis] = index % run->problem->extent[axis];
        index /= run->problem->extent[axis];
    }
}

lnorm_wide_run lnorm_wide_group(const lnorm_problem *problem, const lnorm_data *data, int64_t group) {
    lnorm_wide_run run = {problem, data, &problem->element, {0}};
    lnorm_wide_seek(&run, &problem->group, group);
    return run;
}

static int64_t wide_base(const lnorm_wide_run *run, enum lnorm_operand operand) {
    const int64_t *stride = run->problem->operand[operand].stride;
    int64_t base = 0;
    for (int axis = 0; axis < run->problem->axes; axis++)
        base += run->at[axis] * stride[axis];
    return base;
}

/* Elements that lie evenly spaced from `first` on, at most `count`, and where: element i is at offset + i*stride. */
static int wide_stretch(const lnorm_wide_run *run, enum lnorm_operand operand, int64_t first, int count,
                        int64_t *offset, int64_t *stride) {
    const lnorm_space *space = run->space;
    *offset = wide_base(run, operand);
    *stride = 0;
    if (space->axes == 0)
        return count;
    int last = space->axis[space->axes - 1];
    int64_t left = run->problem->extent[last] - first % run->problem->extent[last];
    *offset += lnorm_offset(run->problem, operand, space, first);
    *stride = run->problem->operand[operand].stride[last];
    return left < count ? (int)left : count;
}

static enum lnorm_element wide_element(const lnorm_wide_run *run, enum lnorm_operand operand) {
    return (enum lnorm_element)run->problem->operand[operand].element;
}

void lnorm_wide_read(const lnorm_wide_run *run, enum lnorm_operand operand, int64_t first, int count, double absent,
                     double *value) {
    enum lnorm_element element = wide_element(run, operand);
    const char *data = run->data->at[operand];
    for (int done = 0, length; done < count; done += length) {
        int64_t offset = 0, stride = 0;
        length = count;
        if (element != LNORM_ELEMENT_ABSENT)
            length = wide_stretch(run, operand, first + done, count - done, &offset, &stride);
        for (int i = 0; i < length; i++) {
            if (element == LNORM_ELEMENT_F64) /* as lnorm_load, without a call per element */
                memcpy(&value[done + i], data + (offset + i * stride) * (int64_t)sizeof *value, sizeof *value);
            else if (element == LNORM_ELEMENT_ABSENT)
                value[i] = absent;
            else
                value[done + i] = lnorm_load(element, data, offset + i * stride);
        }
    }
}

void lnorm_wide_write(const lnorm_wide_run *run, enum lnorm_operand operand, int64_t first, int count,
                      const double *value) {
    for (int done = 0, length; done < count; done += length) {
        int64_t offset, stride;
        length = wide_stretch(run, operand, first + done, count - done, &offset, &stride);
        for (int i = 0; i < length; i++)
            lnorm_store(wide_element(run, operand), run->data->at[operand], offset + i * stride, value[done + i]);
    }
}

void lnorm_wide_read_weight(const lnorm_wide_run *run, int64_t first, int count, double *weight) {
    lnorm_wide_read(run, LNORM_WEIGHT, first, count, 1.0, weight);
    if (run->problem->weight_offset && lnorm_has(run->problem, LNORM_WEIGHT))
        for (int i = 0; i < count; i++)
            weight[i] = 1.0 + weight[i];
}

double lnorm_wide_read_one(const lnorm_wide_run *run, enum lnorm_operand operand) {
    return lnorm_load(wide_element(run, operand), run->data->at[operand], wide_base(run, operand));
}

void lnorm_wide_write_one(const lnorm_wide_run *run, enum lnorm_operand operand, double value) {
    if (lnorm_has(run->problem, operand))
        lnorm_store(wide_element(run, operand), run->data->at[operand], wide_base(run, operand), value);
}

/* -- Root --------------------------------------------------------------------------------------------------------- */

/* r * 2^-j = 1/sqrt(v*2^2k + eps). j is k, or half the exponent of eps where that is larger: what then falls below
 * 2^-256 cannot be seen beside the other. */
static void wide_root(lnorm_wide_record *record, lnorm_pair v, int k, double eps) {
    int e = lnorm_exponent(eps), half = (e - (e & 1)) / 2;
    int j = v.h == 0.0 || half > k ? half : k;
    lnorm_pair scaled = {lnorm_scale(v.h, 2 * (k - j)), lnorm_scale(v.l, 2 * (k - j))};
    lnorm_pair scaled_eps = {lnorm_scale(eps, -2 * j), 0.0};
    lnorm_pair radicand = lnorm_pair_norm(lnorm_pair_add(lnorm_pair_flush(scaled), lnorm_pair_flush(scaled_eps)));
    const lnorm_pair zero = {0.0, 0.0}, nan = {(double)NAN, 0.0};
    record->j = radicand.h == 0.0 ? k : j;
    if (radicand.h == 0.0)
        record->r = zero;
    else if (radicand.h < 0.0) /* a variance given below -eps */
        record->r = nan;
    else
        record->r = lnorm_pair_reciprocal_root(radicand);
}

void lnorm_wide_finish_root(lnorm_wide_record *record, double eps) {
    wide_root(record, record->v, record->k, eps);
    record->h = record->v.h == 0.0 ? 0 : record->k - record->j; /* <= 0; with no variance every xhat' is 0 */
}

/* -- Statistics --------------------------------------------------------------------------------------------------- */

typedef struct wide_range {
    double largest; /* of the finite magnitudes */
    int finite, same;
} wide_range;

static wide_range wide_range_of_x(const lnorm_wide_run *run) {
    wide_range range = {0.0, 1, 1};
    double x[LNORM_BLOCK], first_x = 0.0;
    for (int64_t first = 0; first < run->space->count; first += LNORM_BLOCK) {
        int length = lnorm_wide_length(run->space->count, first);
        lnorm_wide_read(run, LNORM_X, first, length, 0.0, x);
        if (first == 0)
            first_x = x[0];
        for (int i = 0; i < length; i++) {
            double magnitude = fabs(x[i]);
            range.same &= x[i] == first_x;
            range.finite &= magnitude <= DBL_MAX;
            if (magnitude > range.largest && magnitude <= DBL_MAX)
                range.largest = magnitude;
        }
    }
    return range;
}

/* Not below -1000, so that 2^-k exists; the smallest number then becomes 2^-74. */
int lnorm_wide_exponent(double largest) {
    int k = largest == 0.0 ? 0 : lnorm_exponent(largest);
    return k < -1000 ? -1000 : k;
}

/* x' of a block, 2^-k being `unit`. */
static int wide_read_scaled_x(const lnorm_wide_run *run, int64_t first, double unit, double *x) {
    int length = lnorm_wide_length(run->space->count, first);
    lnorm_wide_read(run, LNORM_X, first, length, 0.0, x);
    for (int i = 0; i < length; i++)
        x[i] = lnorm_flush(x[i] * unit);
    return length;
}

/* The mean as f64 sees it. What it misses is in t. */
static double wide_shift(const lnorm_wide_run *run, double unit) {
    lnorm_tree tree;
    lnorm_tree_clear(&tree);
    for (int64_t first = 0; first < run->space->count; first += LNORM_BLOCK) {
        double x[LNORM_BLOCK], lane[LNORM_LANES] = {0.0};
        int length = wide_read_scaled_x(run, first, unit, x);
        for (int i = 0; i < length; i++)
            lane[i % LNORM_LANES] = lane[i % LNORM_LANES] + x[i];
        lnorm_tree_push(&tree, lnorm_fold(lane));
    }
    return lnorm_flush(lnorm_tree_total(&tree) / (double)run->space->count);
}

/* t and v from the exact deviations from c; t is 0 where no mean is removed. */
static void wide_moments(const lnorm_wide_run *run, lnorm_wide_record *record, double unit) {
    double count = (double)run->space->count;
    lnorm_pair_tree sum, squares;
    lnorm_pair_tree_clear(&sum);
    lnorm_pair_tree_clear(&squares);
    for (int64_t first = 0; first < run->space->count; first += LNORM_BLOCK) {
        double x[LNORM_BLOCK];
        lnorm_pair d[LNORM_BLOCK], square[LNORM_BLOCK];
        int length = wide_read_scaled_x(run, first, unit, x);
        for (int i = 0; i < length; i++) {
            d[i] = lnorm_two_sum(x[i], -record->c);
            square[i] = lnorm_pair_mul(d[i], d[i]);
        }
        if (run->problem->center)
            lnorm_pair_tree_block(&sum, d, length);
        lnorm_pair_tree_block(&squares, square, length);
    }
    record->t = lnorm_pair_quo(lnorm_pair_tree_total(&sum), count);
    record->v = lnorm_pair_quo(lnorm_pair_tree_total(&squares), count);
    record->v = lnorm_pair_norm(lnorm_pair_sub(record->v, lnorm_pair_mul(record->t, record->t)));
}

/* A group that is spoilt as a whole: by an element that is not finite, by having none. */
void lnorm_wide_spoil(lnorm_wide_record *record) {
    const lnorm_pair nan = {(double)NAN, (double)NAN};
    record->c = (double)NAN;
    record->h = 0;
    record->t = record->v = record->r = nan;
}

static void wide_compute_statistics(const lnorm_wide_run *run, lnorm_wide_record *record) {
    wide_range range = wide_range_of_x(run);
    if (!range.finite || run->space->count == 0) {
        lnorm_wide_spoil(record);
        return;
    }
    record->k = lnorm_wide_exponent(range.largest);
    double unit = lnorm_scale(1.0, -record->k);
    if (run->problem->center && range.same) {
        double x[LNORM_BLOCK];
        wide_read_scaled_x(run, 0, unit, x);
        record->c = x[0];
    } else {
        if (run->problem->center)
            record->c = wide_shift(run, unit);
        wide_moments(run, record, unit);
    }
    lnorm_wide_finish_root(record, run->problem->eps);
}

/* -- Given statistics ---------------------------------------------------------------------------------------------- */

static void wide_given_root(const lnorm_wide_run *run, lnorm_wide_record *record) {
    if (lnorm_has(run->problem, LNORM_RSTD)) {
        lnorm_scaled rstd = lnorm_scaled_of(lnorm_wide_read_one(run, LNORM_RSTD));
        record->r = rstd.p;
        record->j = -rstd.e;
        return;
    }
    double variance = lnorm_wide_read_one(run, LNORM_VARIANCE);
    int e = variance == 0.0 ? 0 : lnorm_exponent(variance), half = (e - (e & 1)) / 2;
    lnorm_pair v = {lnorm_scale(variance, -2 * half), 0.0};
    wide_root(record, v, half, run->problem->eps);
}

/* Statistics that are given may be any numbers: each xhat has an exponent of its own. Gradients through saved ones need
 * one for the whole group, the largest; saved ones are those of this x, so that xhat is moderate. Where they make it
 * larger than 2^300 they are not, and the gradients are NaN. */
static void wide_take_statistics(const lnorm_wide_run *run, lnorm_wide_record *record) {
    enum { LARGEST = 300 };
    record->c = run->problem->center ? lnorm_wide_read_one(run, LNORM_MEAN) : 0.0;
    wide_given_root(run, record);
    if (run->problem->statistics == LNORM_CONSTANT || run->problem->pass == LNORM_FORWARD)
        return;
    int h = LNORM_NO_EXPONENT;
    for (int64_t first = 0; first < run->space->count; first += LNORM_BLOCK) {
        double x[LNORM_BLOCK];
        lnorm_scaled xhat[LNORM_BLOCK];
        int length = lnorm_wide_length(run->space->count, first);
        lnorm_wide_read(run, LNORM_X, first, length, 0.0, x);
        lnorm_wide_xhat(run->problem, record, x, length, xhat);
        for (int i = 0; i < length; i++)
            h = xhat[i].e > h ? xhat[i].e : h;
    }
    record->h = h == LNORM_NO_EXPONENT ? 0 : h;
    if (h > LARGEST)
        lnorm_wide_spoil(record);
}

static void wide_prepare(const lnorm_problem *problem, const lnorm_data *data, int64_t group, void *record) {
    const lnorm_wide_record empty = {0};
    lnorm_wide_run run = lnorm_wide_group(problem, data, group);
    lnorm_wide_record local = empty;
    if (problem->statistics == LNORM_COMPUTED)
        wide_compute_statistics(&run, &local);
    else
        wide_take_statistics(&run, &local);
    local.square = lnorm_wide_square(local.h);
    lnorm_wide_prepare_gradients(&run, &local);
    memcpy(record, &local, sizeof local);
}

/* -- xhat ---------------------------------------------------------------------------------------------------------- */

static lnorm_scaled wide_xhat(const lnorm_wide_record *record, double x, double c, int k) {
    lnorm_pair d = lnorm_pair_norm(lnorm_pair_sub(lnorm_two_sum(x, -c), record->t));
    return lnorm_scaled_pair(lnorm_pair_mul(d, record->r), k - record->j);
}

static void wide_computed_xhat(const lnorm_wide_record *record, const double *x, int count, lnorm_scaled *xhat) {
    double unit = lnorm_scale(1.0, -record->k);
    for (int i = 0; i < count; i++)
        xhat[i] = wide_xhat(record, lnorm_flush(x[i] * unit), record->c, record->k);
}

void lnorm_wide_xhat(const lnorm_problem *problem, const lnorm_wide_record *record, const double *x, int count,
                     lnorm_scaled *xhat) {
    double mean = fabs(record->c);
    if (problem->statistics == LNORM_COMPUTED) {
        wide_computed_xhat(record, x, count, xhat);
        return;
    }
    for (int i = 0; i < count; i++) {
        int k = lnorm_wide_exponent(fabs(x[i]) > mean ? fabs(x[i]) : mean);
        double unit = lnorm_scale(1.0, -k);
        xhat[i] = wide_xhat(record, lnorm_flush(x[i] * unit), lnorm_flush(record->c * unit), k);
    }
}

/* -- The forward pass ---------------------------------------------------------------------------------------------- */

/* (1 - q)*old + q*value, every product a pair, rounded once. */
static void wide_update_running(const lnorm_wide_run *run, enum lnorm_operand operand, lnorm_pair value, int e) {
    if (!lnorm_has(run->problem, operand))
        return;
    double q = run->problem->update;
    lnorm_scaled keep = {lnorm_two_sum(1.0, -q), 0}, fresh = {value, e};
    lnorm_scaled term[2] = {lnorm_scaled_mul(keep, lnorm_scaled_of(lnorm_wide_read_one(run, operand))),
                            lnorm_scaled_mul(fresh, lnorm_scaled_of(q))};
    lnorm_wide_write_one(run, operand, lnorm_scaled_sum(term, 2));
}

static void wide_finish_statistics(const lnorm_wide_run *run, const lnorm_wide_record *record) {
    int64_t count = run->space->count;
    lnorm_scaled mean = lnorm_wide_mean_of(record), rstd = lnorm_wide_rstd_of(record);
    lnorm_wide_write_one(run, LNORM_MEAN, lnorm_scaled_round(mean));
    lnorm_wide_write_one(run, LNORM_RSTD, lnorm_scaled_round(rstd));
    if (count >= 1) /* an empty batch says nothing, one of one element nothing about the variance */
        wide_update_running(run, LNORM_RUNNING_MEAN, mean.p, mean.e);
    if (count >= 2) {
        lnorm_pair factor = {(double)count, 0.0};
        lnorm_pair unbiased = lnorm_pair_quo(lnorm_pair_mul(record->v, factor), (double)(count - 1));
        wide_update_running(run, LNORM_RUNNING_VAR, unbiased, 2 * record->k);
    }
}

static void wide_apply(const lnorm_scaled *xhat, const double *weight, const double *bias, int count, double *y) {
    for (int i = 0; i < count; i++) {
        lnorm_scaled term[2] = {lnorm_scaled_mul(xhat[i], lnorm_scaled_of(weight[i])), lnorm_scaled_of(bias[i])};
        y[i] = lnorm_scaled_sum(term, 2);
    }
}

void lnorm_wide_y(const lnorm_wide_record *record, const double *x, const double *weight, const double *bias,
                  int count, double *y) {
    lnorm_scaled xhat[LNORM_BLOCK];
    wide_computed_xhat(record, x, count, xhat);
    wide_apply(xhat, weight, bias, count, y);
}

static void wide_finish_forward(const lnorm_wide_run *run, const lnorm_wide_record *record) {
    double x[LNORM_BLOCK], weight[LNORM_BLOCK], bias[LNORM_BLOCK], y[LNORM_BLOCK];
    lnorm_scaled xhat[LNORM_BLOCK];
    if (run->problem->statistics == LNORM_COMPUTED)
        wide_finish_statistics(run, record);
    for (int64_t first = 0; first < run->space->count && lnorm_has(run->problem, LNORM_Y); first += LNORM_BLOCK) {
        int length = lnorm_wide_length(run->space->count, first);
        lnorm_wide_read(run, LNORM_X, first, length, 0.0, x);
        lnorm_wide_read_weight(run, first, length, weight);
        lnorm_wide_read(run, LNORM_BIAS, first, length, 0.0, bias);
        lnorm_wide_xhat(run->problem, record, x, length, xhat);
        wide_apply(xhat, weight, bias, length, y);
        lnorm_wide_write(run, LNORM_Y, first, length, y);
    }
}

static void wide_finish(const lnorm_problem *problem, const lnorm_data *data, int64_t group, const void *record) {
    lnorm_wide_run run = lnorm_wide_group(problem, data, group);
    lnorm_wide_record local;
    memcpy(&local, record, sizeof local);
    if (problem->pass == LNORM_FORWARD)
        wide_finish_forward(&run, &local);
    else
        lnorm_wide_finish_gradients(&run, &local);
}

const lnorm_definition lnorm_definition_wide = {sizeof(lnorm_wide_record), wide_prepare, wide_finish,
                                                lnorm_wide_affine};

#include "compact_end.inc"
