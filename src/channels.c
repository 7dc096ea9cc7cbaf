/* Statistics of groups of several columns, the channels of a channels-last group norm. Elements are numbered channel by
 * channel, while memory has them row by row: they are transposed to the stack, a line of columns at once.
 *
 * Small groups are transposed as wholes. Of larger ones a window of rows is, and blocks are summed as soon as all of
 * their rows are there; the few that begin in one channel and end in the next are gathered by themselves. Or, in f64,
 * rows are summed as they are (channels_rows.c). The tree wants the blocks in order: their sums wait for that. */

#include "channels.h"

void lnorm_turn_rows(const ln_columns *s, enum lnorm_operand operand, const ln_walk *walk, int64_t rows, int64_t first,
                     int64_t columns, char *to, int64_t pitch) {
    const int64_t size = ln_size_of(&s->b, operand);
    ln_cursor cursor = lnorm_cursor_at(&s->b, operand, walk);
    int64_t run;
    for (int64_t done = 0; done < rows; done += run, to += run * size) {
        const char *from = s->b.data->at[operand] + (cursor.offset + first) * size;
        run = ln_run(&cursor, rows - done);
        s->b.loops->turn(size, to, pitch, from, cursor.run_stride * size, run, columns);
        ln_run_on(&cursor, run);
    }
}

/* -- Small groups ------------------------------------------------------------------------------------------------- */

/* Groups from `group` on, as many as fit; how many that was. */
LNORM_OUT_OF_LINE static int ln_small_groups(ln_columns *s, int group) {
    char turned[LN_TURNED_BYTES];
    ln_record record[LNORM_STRIP_COLUMNS / 2];
    const int64_t size = ln_size_of(&s->b, LNORM_X), rows = s->form.rows.count;
    const int64_t bytes = s->b.problem->element.count * size;
    const int64_t fit = LN_TURNED_BYTES / bytes, left = s->groups - group;
    const int groups = (int)(fit < left ? fit : left);
    const ln_walk walk = ln_walk_from(&s->b, 0);
    lnorm_turn_rows(s, LNORM_X, &walk, rows, group * s->form.channels, groups * s->form.channels, turned, rows * size);
    lnorm_pieces_statistics(&s->b, turned, bytes, groups, record);
    for (int k = 0; k < groups; k++)
        lnorm_set_columns(s, group + k, &record[k]);
    return groups;
}

/* -- Larger groups ------------------------------------------------------------------------------------------------ */

static double ln_shift_of_column(const ln_window *w, int column) {
    return w->what == LN_SUM_SHIFTED_X ? w->s->c[column] : 0.0;
}

#include "compact.inc"

/* A block that no single channel has all elements of; all of a column. */
static void ln_sum_edge(const ln_window *w, int column, int64_t block, void *sum) {
    const ln_columns *s = w->s;
    const int64_t count = s->b.problem->element.count, n = ln_block_length(count, block * LNORM_BLOCK);
    ln_bundle b = s->b;
    ln_tile tile;
    b.space = &s->b.problem->element;
    b.base[LNORM_X] += column / s->form.channels * s->form.channels;
    const ln_walk walk = ln_walk_from(&b, block * LNORM_BLOCK);
    lnorm_gather(&b, LNORM_X, &walk, n, &tile);
    s->b.loops->sum_block(ln_element_of(&b, LNORM_X), w->what, tile.at[0], n, ln_shift_of_column(w, column), 0,
                          sum);
}

LNORM_OUT_OF_LINE static void ln_sum_edges(const ln_window *w, int k) {
    const int64_t channel = ln_channel_of(w, k), begins = channel * w->s->form.rows.count;
    const int64_t before = ln_blocks_before(w->s, channel), end = ln_blocks_before(w->s, channel + 1);
    for (int64_t block = before; block < end; block++)
        if (block * LNORM_BLOCK < begins || (block + 1) * LNORM_BLOCK > begins + w->s->form.rows.count)
            ln_sum_edge(w, w->first + k, block, ln_slot_of(w, k, block - before));
}

#include "compact_end.inc"

/* While column k is summed, its share of the next window's rows, which begin where the walk stands. */
LNORM_INLINE void ln_ask_for_rows(const ln_window *w, const ln_walk *walk, int k) {
    const int64_t size = ln_size_of(&w->s->b, LNORM_X), each = LN_WINDOW_ROWS / LN_WINDOW_COLUMNS;
    const ln_cursor cursor = lnorm_cursor_at(&w->s->b, LNORM_X, walk);
    const char *at = w->s->b.data->at[LNORM_X] + (cursor.offset + w->first) * size;
    for (int64_t row = k * each; row < (k + 1) * each; row++)
        LNORM_PREFETCH(at, row * cursor.run_stride * size);
}

/* The sums of a window. Each is preceded by the LNORM_BLOCK rows before it. */
LNORM_OUT_OF_LINE static void ln_sum_window(const ln_window *w) {
    char turned[LN_WINDOW_COLUMNS * LN_WINDOW_PITCH * 4];
    const ln_columns *s = w->s;
    const enum lnorm_element element = ln_element_of(&s->b, LNORM_X);
    const int64_t size = ln_element_size(element), rows = s->form.rows.count, before = LNORM_BLOCK * size;
    const int64_t pitch = LN_WINDOW_PITCH * size;
    int64_t block[LN_WINDOW_COLUMNS]; /* each column's next */
    ln_walk walk = ln_walk_from(&s->b, 0);
    for (int k = 0; k < w->columns; k++)
        block[k] = lnorm_parts(ln_channel_of(w, k) * rows, LNORM_BLOCK);
    for (int64_t row = 0, n; row < rows; row += n) {
        n = rows - row < LN_WINDOW_ROWS ? rows - row : LN_WINDOW_ROWS;
        lnorm_turn_rows(s, LNORM_X, &walk, n, w->first, w->columns, turned + before, pitch);
        ln_walk_on(&walk, n);
        for (int k = 0; k < w->columns; k++) {
            const int64_t channel = ln_channel_of(w, k), begins = channel * rows;
            char *column = turned + k * pitch;
            ln_ask_for_rows(w, &walk, k);
            for (int64_t at; (at = block[k] * LNORM_BLOCK - begins) + LNORM_BLOCK <= row + n; block[k]++)
                s->b.loops->sum_block(element, w->what, column + before + (at - row) * size, LNORM_BLOCK,
                                      ln_shift_of_column(w, w->first + k), 0,
                                      ln_slot_of(w, k, block[k] - ln_blocks_before(s, channel)));
            if (row + n < rows) { /* the rows that are left, to before the next window's */
                const int64_t left = row + n - (block[k] * LNORM_BLOCK - begins);
                memcpy(column + before - left * size, column + before + (n - left) * size, (size_t)(left * size));
            }
        }
    }
    for (int k = 0; k < w->columns; k++)
        ln_sum_edges(w, k);
}

/* Columns that go together, at most: fewer where their blocks are too many. */
static int ln_window_columns(const ln_window *w, int most) {
    const int64_t fit = LN_WINDOW_SUMS / ln_block_bytes(w->what) / w->blocks;
    const int left = w->s->columns - w->first;
    most = fit >= most ? most : fit >= LN_WINDOW_COLUMNS ? (int)(fit - fit % LN_WINDOW_COLUMNS) : (int)fit;
    return most < left ? most : left;
}

/* The sums of every group. */
LNORM_OUT_OF_LINE static void ln_sum_large_groups(const ln_columns *s, enum ln_sum_of what, ln_pair *sum) {
    _Alignas(8) char sums[LN_WINDOW_SUMS];
    const int by_rows = what != LN_SUM_RUNS && lnorm_row_phases(s) > 0;
    ln_window w = {s, what, 0, 0, lnorm_parts(s->form.rows.count, LNORM_BLOCK) + 1, sums, {{0.0}}};
    ln_block_order order;
    lnorm_begin_blocks(&order);
    for (; w.first < s->columns; w.first += w.columns) {
        w.columns = ln_window_columns(&w, by_rows ? LN_ROW_COLUMNS : LN_WINDOW_COLUMNS);
        if (by_rows)
            lnorm_sum_by_rows(&w);
        else
            ln_sum_window(&w);
        for (int k = 0; k < w.columns; k++) {
            const int64_t channel = ln_channel_of(&w, k);
            const int64_t blocks = ln_blocks_before(s, channel + 1) - ln_blocks_before(s, channel);
            for (int64_t i = 0; i < blocks; i++)
                lnorm_next_block(s->b.loops, &order, what, ln_slot_of(&w, k, i));
            if (channel + 1 == s->form.channels) {
                sum[(w.first + k) / s->form.channels] = lnorm_end_blocks(&order);
                lnorm_begin_blocks(&order);
            }
        }
    }
}

#include "compact.inc"

/* The accurate arithmetic's; `done` (or NULL): groups that have theirs. */
static void ln_accurate_groups(ln_columns *s, const int *done) {
    const lnorm_problem *problem = s->b.problem;
    ln_record record[LNORM_STRIP_COLUMNS / 2];
    ln_pair sum[LNORM_STRIP_COLUMNS / 2];
    int path_a[LNORM_STRIP_COLUMNS / 2], all = 1;
    const int64_t count = problem->element.count;
    ln_sum_large_groups(s, LN_SUM_OF_X, sum);
    for (int group = 0; group < s->groups; group++) {
        path_a[group] = ln_finish_moments(&record[group], sum[group], count, problem->center);
        record[group].r = 0.0;
        all &= path_a[group] || (done && done[group]);
        if (!done || !done[group])
            lnorm_set_columns(s, group, &record[group]);
    }
    if (!all)
        ln_sum_large_groups(s, LN_SUM_SHIFTED_X, sum);
    for (int group = 0; group < s->groups; group++) {
        if (done && done[group])
            continue;
        if (!path_a[group])
            ln_finish_shifted(&record[group], sum[group], count);
        record[group].r = ln_reciprocal_root(record[group].v, problem->eps);
        lnorm_set_columns(s, group, &record[group]);
    }
}

static void ln_large_groups(ln_columns *s) {
    const lnorm_problem *problem = s->b.problem;
    ln_pair sum[LNORM_STRIP_COLUMNS / 2];
    int good[LNORM_STRIP_COLUMNS / 2], all = 1;
    if (!ln_by_runs(problem)) {
        ln_accurate_groups(s, NULL);
        return;
    }
    ln_sum_large_groups(s, LN_SUM_RUNS, sum);
    for (int group = 0; group < s->groups; group++) {
        ln_record record;
        good[group] = lnorm_fast_finish_runs(ln_element_of(&s->b, LNORM_X), &record, sum[group], problem->element.count,
                                             problem->eps, problem->center);
        all &= good[group];
        if (good[group])
            lnorm_set_columns(s, group, &record);
    }
    if (!all)
        ln_accurate_groups(s, good);
}

/* Groups are small where the stack holds a line of their columns, or each as a whole is a few lines; and where they had
 * better not be summed by rows, which is worth most where all columns are of one phase. */
void lnorm_computed_channels(ln_columns *s) {
    const int64_t size = ln_size_of(&s->b, LNORM_X), channels = s->form.channels;
    const int64_t together = channels < LN_WINDOW_COLUMNS && channels < s->columns ? LN_WINDOW_COLUMNS : channels;
    if (together * s->form.rows.count > LN_TURNED_BYTES / size || lnorm_row_phases(s) == 1)
        ln_large_groups(s);
    else
        for (int group = 0; group < s->groups;)
            group += ln_small_groups(s, group);
}

#include "compact_end.inc"
