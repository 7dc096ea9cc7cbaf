/* Columns, backward: sums of the gradients over a strip, then dx, row by row. */
#include "compact.inc"

#include "kernels/loops.h"

/* -- Sums --------------------------------------------------------------------------------------------------------- */

/* A block of n rows into the lanes. */
static void ln_gradient_block(const ln_columns *s, const ln_walk *walk, int64_t n, int by_row, int sums,
                              ln_gradient_rows *rows, ln_gradient_lanes *lanes) {
    const char *x[LNORM_BLOCK], *dy[LNORM_BLOCK];
    double weight[LNORM_BLOCK];
    lnorm_find_rows(s, LNORM_X, walk, n, x);
    lnorm_find_rows(s, LNORM_DY, walk, n, dy);
    rows->x.packed = n > 1 && (x[1] - x[0]) % LN_SET_BYTES == 0;
    rows->dy.packed = n > 1 && (dy[1] - dy[0]) % LN_SET_BYTES == 0;
    if (by_row)
        lnorm_gather_affine(&s->b, LNORM_WEIGHT, walk, n, 0, weight);
    for (int lane = 0; lane < LNORM_LANES; lane++) {
        lnorm_rows_of_lane(s, LNORM_X, x, n, lane, &rows->x);
        lnorm_rows_of_lane(s, LNORM_DY, dy, n, lane, &rows->dy);
        for (int k = 0; by_row && k < rows->x.count; k++)
            rows->weight[k] = weight[lane + k * LNORM_LANES];
        s->b.loops->gradient_lane(s->b.problem->fast, s, rows, by_row, sums, lane, lanes);
    }
}

/* The lanes' sums go to the tops of the trees. */
static void ln_fold_gradients(const ln_columns *s, int sums, const ln_gradient_lanes *lanes, lnorm_strip *sum) {
    for (int k = 0; k < sums; k++) {
        s->b.loops->fold_lanes(lanes->at[k][0], LNORM_GRADIENT_COLUMNS, s->padded,
                               sum[k].sums + sum[k].height * sum[k].pitch);
        lnorm_strip_push(&sum[k], s->b.loops->add);
    }
}

/* Of every column, `count` sums. */
typedef double ln_gradient_totals[LN_GRADIENT_SUMS][LNORM_STRIP_SUMS / 2];

LNORM_OUT_OF_LINE static void ln_sum_gradients(const ln_columns *s, int by_row, int count, ln_gradient_totals sums) {
    const lnorm_problem *problem = s->b.problem;
    const int64_t block = problem->fast ? LNORM_BLOCK_RUNS * LNORM_BLOCK : LNORM_BLOCK;
    ln_walk walk = ln_walk_from(&s->b, 0);
    ln_gradient_rows rows;
    ln_gradient_lanes lanes;
    lnorm_strip sum[LN_GRADIENT_SUMS];
    memset(&rows, 0, sizeof rows);
    for (int k = 0; k < count; k++)
        sum[k] = (lnorm_strip){sums[k], s->padded, s->padded, 0, 0};
    for (int64_t first = 0, n; first < s->b.space->count; first += n) {
        n = ln_block_length(s->b.space->count, first);
        if (problem->fast && first % block == 0)
            memset(&lanes, 0, sizeof lanes);
        ln_gradient_block(s, &walk, n, by_row, count, &rows, &lanes);
        if ((first + n) % block == 0 || first + n == s->b.space->count)
            ln_fold_gradients(s, count, &lanes, sum);
        ln_walk_on(&walk, n);
    }
    for (int k = 0; k < count; k++)
        lnorm_strip_total(&sum[k], s->b.loops->add);
}

static void ln_set_column_means(ln_columns *s, int j, double c1, double c2) {
    s->c1[j] = c1;
    s->c2[j] = c2;
    s->c1_f32[j] = (float)c1;
    s->c2_f32[j] = (float)c2;
}

/* c1 and c2 of every column, of which the first is group number `group`; where there is a job, the partials, too. */
static void ln_column_gradients(ln_columns *s, int by_row, const lnorm_affine_job *job, int64_t group) {
    ln_gradient_totals sums;
    const lnorm_problem *problem = s->b.problem;
    const int count = job && lnorm_has(problem, LNORM_WEIGHT) ? LN_GRADIENT_SUMS : 2;
    const double rows = (double)s->b.space->count;
    ln_sum_gradients(s, by_row, count, sums);
    for (int j = 0; job && j < s->columns; j++) {
        const ln_pair partial = {sums[count - 2][j], sums[count - 1][j]};
        lnorm_put_partial(&s->b, job, group + j, 0, j, partial);
    }
    for (int j = 0; j < s->columns; j++) /* g - 0.0 is g */
        ln_set_column_means(s, j, problem->center ? sums[0][j] / rows : 0.0, sums[1][j] / rows);
}

/* Groups of several columns: a column's sums of dy and dy*xhat are a partial. */
static void ln_channel_partials(const ln_columns *s, const lnorm_affine_job *job, int64_t group) {
    ln_gradient_totals sums;
    ln_bundle part = s->b;
    ln_sum_gradients(s, 0, 2, sums);
    for (int channel = 0; channel < s->form.channels; channel++) {
        for (int k = 0; k < s->groups; k++) {
            const int j = k * (int)s->form.channels + channel;
            const ln_pair partial = {sums[0][j], sums[1][j]};
            lnorm_put_partial(&part, job, group + k, channel, k, partial);
        }
        if (job->dweight)
            part.base[LNORM_DWEIGHT] += s->b.problem->operand[LNORM_DWEIGHT].stride[s->form.channel_axis];
        if (job->dbias)
            part.base[LNORM_DBIAS] += s->b.problem->operand[LNORM_DBIAS].stride[s->form.channel_axis];
    }
}

/* Their c1 and c2 are sums over all elements in their order, channel by channel: the general form's. */
static void ln_channel_means(ln_columns *s, int64_t group) {
    const int channels = (int)s->form.channels;
    ln_bundle b;
    for (int first = 0; first < s->groups; first += b.lanes) {
        ln_record record[LNORM_BUNDLE];
        b = lnorm_bundle_of_groups(s->b.loops, s->b.problem, s->b.data, group + first, group + s->groups);
        for (int lane = 0; lane < b.lanes; lane++) {
            const int j = (first + lane) * channels;
            record[lane] = (ln_record){s->c[j], s->t[j], s->v[j], s->r[j], 0.0, 0.0};
        }
        lnorm_groups_means(&b, record);
        for (int j = 0; j < b.lanes * channels; j++)
            ln_set_column_means(s, first * channels + j, record[j / channels].c1, record[j / channels].c2);
    }
}

/* -- Sums of groups of several columns that the stack holds --------------------------------------------------------- */

static void ln_turn_columns(const ln_columns *s, enum lnorm_operand operand, int64_t first, int64_t columns, char *to) {
    const int64_t rows = s->form.rows.count;
    const ln_walk walk = ln_walk_from(&s->b, 0);
    lnorm_turn_rows(s, operand, &walk, rows, first, columns, to, rows * ln_size_of(&s->b, operand));
}

/* How many groups' x and dy the stack holds, a line of their columns at most. */
static int ln_groups_that_fit(const ln_columns *s) {
    const int64_t size = ln_size_of(&s->b, LNORM_X) + ln_size_of(&s->b, LNORM_DY), channels = s->form.channels;
    const int64_t fit = LN_TURNED_BYTES / size / s->form.rows.count / channels;
    const int64_t line = channels < LNORM_LANES ? LNORM_LANES / channels : 1;
    return (int)(fit < line ? fit : line);
}

/* What is turned is a problem of its own, whose channels come first. */
static void ln_turned_problem(const ln_columns *s, lnorm_problem *turned) {
    static const enum lnorm_operand operands[2] = {LNORM_X, LNORM_DY};
    *turned = *s->b.problem;
    for (int k = 0; k < 2; k++) {
        int64_t dense = 1;
        for (int i = turned->element.axes; i-- > 0; dense *= turned->extent[turned->element.axis[i]])
            turned->operand[operands[k]].stride[turned->element.axis[i]] = dense;
    }
    turned->operand[LNORM_DX].element = LNORM_ELEMENT_ABSENT;
}

/* Partials where there is a job, c1 and c2 of groups first .. first + groups - 1 of the strip. */
LNORM_OUT_OF_LINE static void ln_turned_sums(ln_columns *s, const lnorm_problem *turned, const lnorm_affine_job *job,
                                             int64_t group, int first, int groups) {
    _Alignas(LNORM_LINE) char copy[LN_TURNED_BYTES + LNORM_LINE];
    const int channels = (int)s->form.channels;
    const int64_t elements = turned->element.count, bytes = groups * elements * ln_size_of(&s->b, LNORM_X);
    lnorm_data data = *s->b.data;
    ln_bundle b = s->b;
    b.problem = turned;
    b.data = &data;
    b.space = &turned->element;
    data.at[LNORM_X] = copy;
    data.at[LNORM_DY] = copy + (bytes + LNORM_LINE - 1) / LNORM_LINE * LNORM_LINE;
    ln_turn_columns(s, LNORM_X, first * channels, groups * channels, data.at[LNORM_X]);
    ln_turn_columns(s, LNORM_DY, first * channels, groups * channels, data.at[LNORM_DY]);
    for (int k = first; k < first + groups; k++) {
        static const lnorm_space none = {0, {0}, 1};
        const int j = k * channels;
        ln_record record = {s->c[j], s->t[j], s->v[j], s->r[j], 0.0, 0.0};
        ln_set_base(&b, &turned->group, group + k, &none, 0);
        b.base[LNORM_X] = b.base[LNORM_DY] = (k - first) * elements;
        lnorm_runs_sums(&b, job, group + k, &record);
        for (int i = 0; i < channels; i++)
            ln_set_column_means(s, j + i, record.c1, record.c2);
    }
}

/* False where no group fits. */
static int ln_small_gradients(ln_columns *s, const lnorm_affine_job *job, int64_t group) {
    const int fit = ln_groups_that_fit(s);
    lnorm_problem turned;
    if (fit < 1 || s->b.problem->element.axis[0] != s->form.channel_axis)
        return 0;
    ln_turned_problem(s, &turned);
    if (!lnorm_in_runs(&turned, job))
        return 0;
    for (int first = 0; first < s->groups; first += fit)
        ln_turned_sums(s, &turned, job, group, first, s->groups - first < fit ? s->groups - first : fit);
    return 1;
}

/* -- dx ----------------------------------------------------------------------------------------------------------- */

LNORM_OUT_OF_LINE static void ln_dx_copies(const ln_columns *s, const ln_gradient_sweep *f, int64_t rows) {
    float x[LN_STAGE_ELEMENTS], dy[LN_STAGE_ELEMENTS];
    double dx[LN_STAGE_ELEMENTS];
    const int64_t pitch = s->padded;
    ln_gradient_sweep inner = {(const char *)x, (const char *)dy, (char *)dx, pitch * 4, pitch * 4, pitch * 8,
                               f->weight};
    memset(x, 0, (size_t)(rows * pitch) * sizeof *x);
    memset(dy, 0, (size_t)(rows * pitch) * sizeof *dy);
    for (int64_t k = 0; k < rows; k++) {
        s->b.loops->to_f32(ln_element_of(&s->b, LNORM_X), f->x + k * f->x_row, x + k * pitch, s->columns);
        s->b.loops->to_f32(ln_element_of(&s->b, LNORM_DY), f->dy + k * f->dy_row, dy + k * pitch, s->columns);
    }
    if (s->b.problem->fast) {
        inner.dx = (char *)x;
        inner.dx_row = pitch * 4;
        s->b.loops->dx(1, LNORM_ELEMENT_F32, s, &inner, rows);
        for (int64_t k = 0; k < rows; k++)
            s->b.loops->from_f32(ln_element_of(&s->b, LNORM_DX), x + k * pitch, f->dx + k * f->dx_row, s->columns);
        return;
    }
    s->b.loops->dx(0, LNORM_ELEMENT_F64, s, &inner, rows);
    for (int64_t k = 0; k < rows; k++)
        s->b.loops->narrow(ln_element_of(&s->b, LNORM_DX), dx + k * pitch, f->dx + k * f->dx_row, s->columns);
}

/* n rows, a few at a time. */
static void ln_dx_run(const ln_columns *s, ln_gradient_sweep f, int64_t n, int64_t left) {
    const int fast = s->b.problem->fast;
    const int direct = s->columns % (fast ? s->b.loops->narrow_vector : s->b.loops->wide_vector) == 0 &&
                       ln_element_of(&s->b, LNORM_X) == LNORM_ELEMENT_F32 &&
                       ln_element_of(&s->b, LNORM_DY) == LNORM_ELEMENT_F32 &&
                       ln_element_of(&s->b, LNORM_DX) == LNORM_ELEMENT_F32;
    const int64_t few = f.x_row % LN_SET_BYTES ? LN_STAGE_ELEMENTS / 2 : LN_STAGE_ELEMENTS / 8;
    const int64_t each = few < 2 * s->padded ? 2 : few / s->padded, bytes = s->columns * 4;
    for (int64_t rows; n > 0; n -= rows, left -= rows) {
        rows = n < each ? n : each;
        ln_prefetch_rows(f.x, f.x_row, rows, left, bytes);
        ln_prefetch_rows(f.dy, f.dy_row, rows, left, bytes);
        ln_prefetch_rows(f.dx, f.dx_row, rows, left, bytes);
        if (direct)
            s->b.loops->dx(fast, LNORM_ELEMENT_F32, s, &f, rows);
        else
            ln_dx_copies(s, &f, rows);
        f.x += rows * f.x_row;
        f.dy += rows * f.dy_row;
        f.dx += rows * f.dx_row;
        if (f.weight)
            f.weight += rows;
    }
}

static ln_gradient_sweep ln_gradient_sweep_at(const ln_columns *s, const ln_cursor at[3], const double *weight) {
    const enum lnorm_operand operand[3] = {LNORM_X, LNORM_DY, LNORM_DX};
    char *begin[3];
    int64_t row[3];
    for (int k = 0; k < 3; k++) {
        const int64_t size = ln_size_of(&s->b, operand[k]);
        begin[k] = s->b.data->at[operand[k]] + at[k].offset * size;
        row[k] = at[k].run_stride * size;
    }
    return (ln_gradient_sweep){begin[0], begin[1], begin[2], row[0], row[1], row[2], weight};
}

static void ln_column_dx(const ln_columns *s, int by_row) {
    const int64_t count = s->b.space->count;
    const ln_walk begin = ln_walk_from(&s->b, 0);
    ln_walk walk = begin;
    ln_cursor at[3] = {lnorm_cursor_at(&s->b, LNORM_X, &begin), lnorm_cursor_at(&s->b, LNORM_DY, &begin),
                       lnorm_cursor_at(&s->b, LNORM_DX, &begin)};
    for (int64_t first = 0, n; first < count; first += n) {
        double weight[LNORM_BLOCK];
        const int64_t left = ln_run(&at[0], INT64_MAX);
        n = ln_block_length(count, first);
        n = left < n ? left : n;
        if (by_row)
            lnorm_gather_affine(&s->b, LNORM_WEIGHT, &walk, n, 0, weight);
        ln_dx_run(s, ln_gradient_sweep_at(s, at, by_row ? weight : NULL), n, left);
        for (int k = 0; k < 3; k++)
            ln_run_on(&at[k], n);
        ln_walk_on(&walk, n);
    }
}

/* -- A strip ------------------------------------------------------------------------------------------------------ */

/* Fast, and some column is not regular, or far: as the general form does it. */
static void ln_columns_one_by_one(const ln_columns *s, int64_t group, const lnorm_affine_job *job) {
    const int64_t end = group + s->groups;
    ln_record record[LNORM_BUNDLE];
    ln_bundle b;
    for (; group < end; group += b.lanes) {
        b = lnorm_bundle_of_groups(s->b.loops, s->b.problem, s->b.data, group, end);
        if (job) {
            lnorm_groups_gradients(&b, job, group);
        } else {
            lnorm_groups_statistics(&b, record);
            lnorm_groups_backward(&b, record);
        }
    }
}

static void ln_set_weights(ln_columns *s, int ones) {
    if (ones)
        ln_fill(s->weight, 1.0, s->padded);
    else
        lnorm_column_affine(s, LNORM_WEIGHT, 1.0, s->weight);
    for (int j = 0; j < s->padded; j++)
        s->weight_f32[j] = (float)s->weight[j];
}

static void ln_channel_gradients(ln_columns *s, const lnorm_affine_job *job, int64_t group) {
    if (ln_small_gradients(s, job, group))
        return;
    if (job) {
        ln_set_weights(s, 1);
        ln_channel_partials(s, job, group);
    }
    if (lnorm_has(s->b.problem, LNORM_DX))
        ln_channel_means(s, group);
}

void lnorm_columns_backward(ln_columns *s, int64_t group, int phase) {
    const lnorm_problem *problem = s->b.problem;
    const int by_row = !lnorm_affine_is(problem, &s->form, LNORM_WEIGHT, 0);
    lnorm_affine_job job;
    const int partials = lnorm_has_partials(problem, &job) && (s->b.data->workspace || !job.outer.axes);
    ln_record *kept = partials || !s->b.data->workspace ? NULL : (ln_record *)s->b.data->workspace + group;
    if (partials ? phase == 2 : phase == 0 && !kept)
        return;
    if (phase == 2 && kept)
        for (int j = 0; j < s->columns; j++)
            lnorm_set_columns(s, j, &kept[j]);
    else
        lnorm_columns_statistics(s);
    if (phase == 0 && kept) {
        for (int j = 0; j < s->columns; j++)
            kept[j] = (ln_record){s->c[j], s->t[j], s->v[j], s->r[j], 0.0, 0.0};
        return;
    }
    if (problem->fast) {
        lnorm_columns_in_f32(s);
        if (!s->regular) {
            ln_columns_one_by_one(s, group, partials ? &job : NULL);
            return;
        }
    }
    if (s->form.channels > 1) {
        ln_channel_gradients(s, partials ? &job : NULL, group);
        ln_set_weights(s, 0);
    } else {
        ln_set_weights(s, by_row);
        ln_column_gradients(s, by_row, partials ? &job : NULL, group);
    }
    if (lnorm_has(problem, LNORM_DX))
        ln_column_dx(s, by_row);
}

#include "compact_end.inc"
