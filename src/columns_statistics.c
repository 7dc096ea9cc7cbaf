/* Statistics of columns. Vectors lie across columns: each of them has 16 lanes (vectors) of its own over its rows, and
 * the trees are trees of vectors.
 *
 * Lane k of a block is the rows k, k + 16, ..., k + 240, which the strip's columns go through side by side: every line
 * of memory is read once, as a whole, and rows that lie a power of two apart do not fight for the same few places of a
 * cache. In runs (docs/arithmetic.md, section 22) the same sixteen rows are the columns k and k + 16 of the run. */
#include "kernels/loops.h"

/* -- Sums --------------------------------------------------------------------------------------------------------- */

static void ln_clear_columns(ln_column_lanes *lanes, int columns) {
    for (int lane = 0; lane < LNORM_LANES; lane++) {
        memset(lanes->a[lane], 0, (size_t)columns * sizeof(double));
        memset(lanes->b[lane], 0, (size_t)columns * sizeof(double));
    }
}

/* The n rows from row `first` on, a run's, to the lanes. */
static void ln_add_runs(const ln_columns *s, int64_t first, int64_t n, ln_lane_rows *rows, ln_column_lanes *lanes) {
    const char *row[LNORM_BLOCK];
    const ln_walk walk = ln_walk_from(&s->b, first);
    lnorm_find_rows(s, LNORM_X, &walk, n, row);
    for (int lane = 0; lane < LNORM_LANES; lane++) {
        lnorm_rows_of_lane(s, LNORM_X, row, n, lane, rows);
        s->b.loops->sum_runs(s->padded, rows, lanes->a[lane], lanes->b[lane]);
    }
}

/* Sums over all rows: those of each column are left in `a` and `b`. */
LNORM_OUT_OF_LINE static void ln_sum_columns(const ln_columns *s, enum ln_sum_of what, lnorm_strip *a,
                                             lnorm_strip *b) {
    const lnorm_loops *const loops = s->b.loops;
    const int64_t count = s->b.space->count;
    const int64_t block = what == LN_SUM_RUNS ? LNORM_BLOCK_RUNS * LNORM_BLOCK : LNORM_BLOCK;
    ln_column_lanes lanes;
    ln_lane_rows rows;
    if (what == LN_SUM_RUNS)
        memset(&rows, 0, sizeof rows);
    *a = (lnorm_strip){a->sums, s->padded, s->padded, 0, 0};
    *b = (lnorm_strip){b->sums, s->padded, s->padded, 0, 0};
    for (int64_t first = 0, n; first < count; first += n) {
        n = ln_block_length(count, first);
        if (first % block == 0)
            ln_clear_columns(&lanes, s->padded);
        if (what == LN_SUM_RUNS)
            ln_add_runs(s, first, n, &rows, &lanes);
        else
            lnorm_add_rows(s, 0, s->columns, what == LN_SUM_SHIFTED_X ? s->c : NULL, first, n, &lanes);
        if ((first + n) % block == 0 || first + n == count) {
            loops->fold_lanes(lanes.a[0], LNORM_SUM_COLUMNS, s->padded, a->sums + a->height * a->pitch);
            loops->fold_lanes(lanes.b[0], LNORM_SUM_COLUMNS, s->padded, b->sums + b->height * b->pitch);
            lnorm_strip_push(a, loops->add);
            lnorm_strip_push(b, loops->add);
        }
    }
    lnorm_strip_total(a, loops->add);
    lnorm_strip_total(b, loops->add);
}

/* -- Statistics --------------------------------------------------------------------------------------------------- */

static int ln_keeps_path_a(const ln_columns *s, int j) {
    return !s->b.problem->center ||
           (s->b.space->count > LNORM_SHORT && s->v[j] * LNORM_KAPPA >= s->c[j] * s->c[j]);
}

static int ln_all_path_a(const ln_columns *s) {
    int all = 1;
    for (int j = 0; j < s->columns && all; j++)
        all = ln_keeps_path_a(s, j);
    return all;
}

/* t and v of path B, for the columns that take it. */
static void ln_columns_shifted(ln_columns *s, const double *sum_a, const double *sum_b) {
    double t[LNORM_SUM_COLUMNS], v[LNORM_SUM_COLUMNS];
    s->b.loops->moments(1, 1, s->b.space->count, s->padded, sum_a, sum_b, t, v);
    s->corrected = 1;
    for (int j = 0; j < s->columns; j++)
        if (!ln_keeps_path_a(s, j)) {
            s->t[j] = t[j];
            s->v[j] = v[j];
        }
}

/* What belongs to a group to all of its columns. */
void lnorm_set_columns(ln_columns *s, int group, const ln_record *record) {
    const int first = group * (int)s->form.channels, end = first + (int)s->form.channels;
    for (int j = first; j < end; j++) {
        s->c[j] = record->c;
        s->t[j] = record->t;
        s->v[j] = record->v;
        s->r[j] = record->r;
    }
    s->corrected |= record->t != 0.0; /* true for a NaN */
}

static void ln_accurate_columns(ln_columns *s, lnorm_strip *a, lnorm_strip *b) {
    ln_sum_columns(s, LN_SUM_OF_X, a, b);
    s->b.loops->moments(s->b.problem->center, 0, s->b.space->count, s->padded, a->sums, b->sums, s->c, s->v);
    memset(s->t, 0, (size_t)s->padded * sizeof *s->t);
    if (!ln_all_path_a(s)) {
        ln_sum_columns(s, LN_SUM_SHIFTED_X, a, b);
        ln_columns_shifted(s, a->sums, b->sums);
    }
    s->b.loops->roots(s->v, s->b.problem->eps, s->padded, s->r);
}

/* From sums in runs; columns for which they are not good enough have those of the accurate arithmetic. */
static void ln_columns_by_runs(ln_columns *s, lnorm_strip *a, lnorm_strip *b) {
    const enum lnorm_element element = ln_element_of(&s->b, LNORM_X);
    ln_record record[LNORM_SUM_COLUMNS];
    int good[LNORM_SUM_COLUMNS], all = 1;
    ln_sum_columns(s, LN_SUM_RUNS, a, b);
    for (int j = 0; j < s->columns; j++) {
        const ln_pair sum = {a->sums[j], b->sums[j]};
        good[j] = lnorm_fast_finish_runs(element, &record[j], sum, s->b.space->count, s->b.problem->eps,
                                         s->b.problem->center);
        all &= good[j];
    }
    if (!all)
        ln_accurate_columns(s, a, b);
    for (int j = 0; j < s->columns; j++)
        if (good[j])
            lnorm_set_columns(s, j, &record[j]);
}

LNORM_OUT_OF_LINE static void ln_computed_columns(ln_columns *s) {
    double sums[2][LNORM_STRIP_SUMS];
    lnorm_strip a = {.sums = sums[0]}, b = {.sums = sums[1]};
    if (ln_by_runs(s->b.problem))
        ln_columns_by_runs(s, &a, &b);
    else
        ln_accurate_columns(s, &a, &b);
}

static void ln_given_columns(ln_columns *s) {
    for (int group = 0; group < s->groups; group++) {
        ln_record record;
        lnorm_given_statistics(&s->b, &record, group);
        lnorm_set_columns(s, group, &record);
    }
}

static int ln_writes_statistics(const lnorm_problem *problem) {
    return lnorm_has(problem, LNORM_MEAN) || lnorm_has(problem, LNORM_RSTD) ||
           lnorm_has(problem, LNORM_RUNNING_MEAN) || lnorm_has(problem, LNORM_RUNNING_VAR);
}

static void ln_put_columns(const ln_columns *s) {
    ln_bundle b = s->b;
    b.space = &b.problem->element;
    for (int group = 0; group < s->groups; group++) {
        const int j = group * (int)s->form.channels;
        const ln_record record = {s->c[j], s->t[j], s->v[j], s->r[j], 0.0, 0.0};
        ln_put_one(&b, LNORM_MEAN, group, record.c + record.t);
        ln_put_one(&b, LNORM_RSTD, group, record.r);
        lnorm_update_running(&b, &record, group);
    }
}

void lnorm_columns_statistics(ln_columns *s) {
    if (s->b.problem->statistics != LNORM_COMPUTED) {
        ln_given_columns(s);
        return;
    }
    if (s->form.channels == 1)
        ln_computed_columns(s);
    else
        lnorm_computed_channels(s);
    if (ln_writes_statistics(s->b.problem))
        ln_put_columns(s);
}
