/* The general form, group by group: statistics and y. Blocks of 256 elements are gathered to the stack, and go through
 * the same sums as those of contiguous rows. */
#include "kernels/loops.h"

/* -- Statistics --------------------------------------------------------------------------------------------------- */

void lnorm_given_statistics(const ln_bundle *b, ln_record *s, int lane) {
    s->c = b->problem->center ? ln_one(b, LNORM_MEAN, lane) : 0.0;
    s->t = s->v = 0.0;
    if (lnorm_has(b->problem, LNORM_RSTD))
        s->r = ln_one(b, LNORM_RSTD, lane);
    else
        s->r = ln_reciprocal_root(ln_one(b, LNORM_VARIANCE, lane), b->problem->eps);
}

/* The whole of a group lies in one piece. */
static int ln_group_is_contiguous(const ln_bundle *b) {
    const ln_walk walk = ln_walk_from(b, 0);
    return b->space->count > 0 && lnorm_lies_together(b, LNORM_X, &walk, b->space->count);
}

/* Sums over all blocks of every lane. */
static void ln_sum_lanes(const ln_bundle *b, const ln_record *s, enum ln_sum_of what, ln_pair *total) {
    const enum lnorm_element element = ln_element_of(b, LNORM_X);
    ln_block_order order[LNORM_BUNDLE];
    ln_tile x;
    ln_walk walk = ln_walk_from(b, 0);
    int64_t count = b->space->count, size = ln_element_size(element);
    for (int lane = 0; lane < b->lanes; lane++)
        lnorm_begin_blocks(&order[lane]);
    for (int64_t first = 0, n, each; first < count; first += n) {
        n = lnorm_piece(b, &walk, count - first);
        lnorm_gather(b, LNORM_X, &walk, n, &x);
        const int64_t soon = b->soon[0] && b->problem->pass == LNORM_BACKWARD ? 0 : n; /* else x has been asked for */
        for (int lane = 0; lane < b->lanes; lane++)
            for (int64_t i = 0; i < n; i += each) {
                union {
                    ln_block_sum run;
                    ln_pair pair[2];
                } sum;
                each = what == LN_SUM_OF_X && n - i >= 2 * LNORM_BLOCK ? 2 * LNORM_BLOCK : ln_block_length(n, i);
                b->loops->sum_block(element, what, x.at[lane] + i * size, each,
                                    what == LN_SUM_SHIFTED_X ? s[lane].c : 0.0, (soon - i) * size, &sum);
                lnorm_next_block(b->loops, &order[lane], what, &sum);
                if (each > LNORM_BLOCK)
                    lnorm_next_block(b->loops, &order[lane], what, &sum.pair[1]);
            }
        ln_walk_on(&walk, n);
    }
    for (int lane = 0; lane < b->lanes; lane++)
        total[lane] = lnorm_end_blocks(&order[lane]);
}

static void ln_accurate_statistics(const ln_bundle *b, ln_record *s) {
    ln_pair sum[LNORM_BUNDLE];
    int path_a[LNORM_BUNDLE], some_b = 0;
    ln_sum_lanes(b, s, LN_SUM_OF_X, sum);
    for (int lane = 0; lane < b->lanes; lane++) {
        path_a[lane] = ln_finish_moments(&s[lane], sum[lane], b->space->count, b->problem->center);
        some_b |= !path_a[lane];
    }
    if (some_b)
        ln_sum_lanes(b, s, LN_SUM_SHIFTED_X, sum);
    for (int lane = 0; lane < b->lanes; lane++) {
        if (!path_a[lane])
            ln_finish_shifted(&s[lane], sum[lane], b->space->count);
        s[lane].r = ln_reciprocal_root(s[lane].v, b->problem->eps);
    }
}

static void ln_statistics_by_runs(const ln_bundle *b, ln_record *s) {
    ln_record record[LNORM_BUNDLE];
    ln_pair sum[LNORM_BUNDLE];
    int good[LNORM_BUNDLE], all = 1;
    ln_sum_lanes(b, s, LN_SUM_RUNS, sum);
    for (int lane = 0; lane < b->lanes; lane++) {
        good[lane] = lnorm_fast_finish_runs(ln_element_of(b, LNORM_X), &record[lane], sum[lane], b->space->count,
                                            b->problem->eps, b->problem->center);
        all &= good[lane];
    }
    if (!all)
        ln_accurate_statistics(b, s);
    for (int lane = 0; lane < b->lanes; lane++)
        if (good[lane])
            s[lane] = record[lane];
}

void lnorm_pieces_statistics(const ln_bundle *b, const char *x, int64_t pitch, int groups, ln_record *s) {
    const lnorm_problem *problem = b->problem;
    const enum lnorm_element element = ln_element_of(b, LNORM_X);
    const lnorm_rows a = {.cols = problem->element.count, .eps = problem->eps, .center = problem->center};
    const int64_t fit = problem->fast && element != LNORM_ELEMENT_F32 ? LN_FAST_TILE / a.cols : LN_TILE_ROWS;
    const int most = fit < 1 ? 1 : fit < LN_TILE_ROWS ? (int)fit : LN_TILE_ROWS;
    for (int k = 0, n; k < groups; k += n) {
        n = groups - k < most ? groups - k : most;
        b->loops->statistics(problem->fast, element, s + k, x + k * pitch, pitch, n, &a);
    }
}

void lnorm_groups_statistics(const ln_bundle *b, ln_record *s) {
    const int64_t size = ln_size_of(b, LNORM_X);
    if (b->problem->statistics != LNORM_COMPUTED)
        for (int lane = 0; lane < b->lanes; lane++)
            lnorm_given_statistics(b, &s[lane], lane);
    else if (ln_group_is_contiguous(b))
        lnorm_pieces_statistics(b, b->data->at[LNORM_X] + b->base[LNORM_X] * size, ln_lane_stride(b, LNORM_X) * size,
                                b->lanes, s);
    else if (ln_by_runs(b->problem))
        ln_statistics_by_runs(b, s);
    else
        ln_accurate_statistics(b, s);
}

/* -- Forward ------------------------------------------------------------------------------------------------------ */

/* Running statistics of batch norm. An empty batch says nothing: they stay. */
void lnorm_update_running(const ln_bundle *b, const ln_record *s, int lane) {
    int64_t elements = b->problem->element.count;
    double q = b->problem->update, count = (double)elements;
    if (elements >= 1 && lnorm_has(b->problem, LNORM_RUNNING_MEAN)) {
        double old = ln_one(b, LNORM_RUNNING_MEAN, lane);
        ln_put_one(b, LNORM_RUNNING_MEAN, lane, (1.0 - q) * old + q * (s->c + s->t));
    }
    if (elements >= 2 && lnorm_has(b->problem, LNORM_RUNNING_VAR)) {
        double old = ln_one(b, LNORM_RUNNING_VAR, lane), unbiased = (s->v * count) / (count - 1.0);
        ln_put_one(b, LNORM_RUNNING_VAR, lane, (1.0 - q) * old + q * unbiased);
    }
}

/* n elements of a lane as f64, y where x was. */
static void ln_accurate_values(const ln_bundle *b, const ln_record *s, const char *x, const double *weight,
                              const double *bias, double *y, int64_t n) {
    b->loops->widen(ln_element_of(b, LNORM_X), x, y, n);
    b->loops->apply(y, s, weight, bias, -1, n);
}

/* The same in the fast arithmetic; what a last vector has too much is computed for nothing. */
static void ln_fast_values(const ln_bundle *b, const ln_record *s, const char *x, const double *weight,
                           const double *bias, double *y, int64_t n) {
    const ln_fast_form form = ln_fast_form_of(s);
    float value[LNORM_BLOCK] = {0.0f}, w[LNORM_BLOCK] = {0.0f}, c[LNORM_BLOCK] = {0.0f};
    b->loops->to_f32(ln_element_of(b, LNORM_X), x, value, n);
    for (int64_t i = 0; i < n; i++) { /* 1 + weight, too: f64 in between changes no bit */
        w[i] = weight ? (float)weight[i] : 1.0f;
        c[i] = bias ? (float)bias[i] : -0.0f;
    }
    if (form.regular)
        b->loops->apply_fast(value, &form, w, c, -1, n);
    for (int64_t i = 0; i < n && !form.regular; i++)
        value[i] = ln_irregular_element(s, (double)value[i], (double)w[i], (double)c[i]);
    b->loops->widen(LNORM_ELEMENT_F32, value, y, n);
}

static void ln_forward_blocks(const ln_bundle *b, const ln_record *s) {
    double weight_buffer[LNORM_BLOCK], bias_buffer[LNORM_BLOCK], y[LNORM_BLOCK];
    ln_tile tile;
    ln_walk walk = ln_walk_from(b, 0);
    int64_t count = b->space->count;
    for (int64_t first = 0; first < count; first += LNORM_BLOCK) {
        int64_t n = ln_block_length(count, first);
        lnorm_gather(b, LNORM_X, &walk, n, &tile);
        for (int lane = 0; lane < b->lanes; lane++) {
            const double *weight = lnorm_gather_affine(b, LNORM_WEIGHT, &walk, n, lane, weight_buffer);
            const double *bias = lnorm_gather_affine(b, LNORM_BIAS, &walk, n, lane, bias_buffer);
            if (b->problem->fast)
                ln_fast_values(b, &s[lane], tile.at[lane], weight, bias, y, n);
            else
                ln_accurate_values(b, &s[lane], tile.at[lane], weight, bias, y, n);
            lnorm_put_lane(b, LNORM_Y, &walk, n, lane, y, &tile);
        }
        lnorm_scatter(b, LNORM_Y, &walk, n, &tile);
        ln_walk_on(&walk, n);
    }
}

/* -- Runs: contiguous along the last axis, weight and bias constant along it --------------------------------------- */

static int ln_forward_runs_fit(const lnorm_problem *problem) {
    const lnorm_operand_form *x = &problem->operand[LNORM_X], *y = &problem->operand[LNORM_Y];
    int last = problem->element.axes ? problem->element.axis[problem->element.axes - 1] : 0;
    return problem->element.axes && y->element == x->element && x->stride[last] == 1 && y->stride[last] == 1 &&
           ln_constant_along(problem, LNORM_WEIGHT, last) && ln_constant_along(problem, LNORM_BIAS, last);
}

/* Runs, gathered until there are enough of them. */
typedef struct ln_some_runs {
    const ln_bundle *b;
    int count, streams;
    ln_channel_run run[LN_CHANNEL_RUNS];
} ln_some_runs;

static void ln_do_runs(ln_some_runs *some) {
    some->b->loops->channel_runs(some->b->problem->fast, ln_element_of(some->b, LNORM_X), some->run, some->count,
                                 some->streams);
    some->count = 0;
}

/* n elements of every lane, from where the walk stands. Where x has been read for its statistics, the next groups' is
 * asked for; else the next run, which is likely to follow. */
static void ln_take_runs(ln_some_runs *some, const ln_walk *walk, const ln_record *s, const ln_fast_form *form,
                         int64_t n) {
    static const enum lnorm_operand operand[4] = {LNORM_X, LNORM_Y, LNORM_WEIGHT, LNORM_BIAS};
    const ln_bundle *b = some->b;
    const int64_t size = ln_size_of(b, LNORM_X), ahead = b->problem->statistics == LNORM_COMPUTED ? b->soon[0] : n;
    int64_t at[4], stride[4];
    for (int k = 0; k < 4; k++) {
        const int there = lnorm_has(b->problem, operand[k]);
        at[k] = there ? ln_offset_at(b, operand[k], walk) : 0;
        stride[k] = there ? ln_lane_stride(b, operand[k]) : 0;
    }
    for (int lane = 0; lane < b->lanes; lane++) {
        ln_channel_run *run = &some->run[some->count];
        for (int k = 0; k < 4; k++)
            at[k] += lane ? stride[k] : 0; /* beyond the last lane there may be no number for it */
        run->x = b->data->at[LNORM_X] + at[0] * size;
        run->next = run->x + ahead * size;
        run->y = b->data->at[LNORM_Y] + at[1] * size;
        run->n = n;
        run->s = &s[lane];
        run->form = &form[lane];
        run->weight = ln_affine_at(b, LNORM_WEIGHT, at[2], 1.0);
        run->bias = ln_affine_at(b, LNORM_BIAS, at[3], -0.0);
        if (++some->count == LN_CHANNEL_RUNS)
            ln_do_runs(some);
    }
}

static void ln_forward_runs(const ln_bundle *b, const ln_record *s, const ln_fast_form *form) {
    const int last = b->space->axis[b->space->axes - 1];
    const int64_t count = b->space->count, run = b->problem->extent[last];
    ln_walk walk = ln_walk_from(b, 0);
    ln_some_runs some;
    some.b = b;
    some.count = 0;
    some.streams = lnorm_streams_y(b->problem, b->data) &&
                   (uintptr_t)b->data->at[LNORM_Y] % (uintptr_t)ln_size_of(b, LNORM_Y) == 0;
    for (int64_t done = 0; done < count; done += run) {
        ln_take_runs(&some, &walk, s, form, run);
        ln_walk_on(&walk, run);
    }
    if (some.count)
        ln_do_runs(&some);
    if (some.streams)
        lnorm_stream_end();
}

static int ln_all_regular(const ln_bundle *b, const ln_record *s, ln_fast_form *form) {
    int regular = 1;
    for (int lane = 0; lane < b->lanes; lane++) {
        form[lane] = ln_fast_form_of(&s[lane]);
        regular &= form[lane].regular;
    }
    return regular;
}

void lnorm_groups_forward(const ln_bundle *b) {
    ln_record s[LNORM_BUNDLE];
    ln_fast_form form[LNORM_BUNDLE];
    lnorm_groups_statistics(b, s);
    for (int lane = 0; b->problem->statistics == LNORM_COMPUTED && lane < b->lanes; lane++) {
        ln_put_one(b, LNORM_MEAN, lane, s[lane].c + s[lane].t);
        ln_put_one(b, LNORM_RSTD, lane, s[lane].r);
        lnorm_update_running(b, &s[lane], lane);
    }
    if (ln_forward_runs_fit(b->problem) && (!b->problem->fast || ln_all_regular(b, s, form)))
        ln_forward_runs(b, s, form);
    else if (lnorm_has(b->problem, LNORM_Y))
        ln_forward_blocks(b, s);
}
