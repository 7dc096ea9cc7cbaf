/* Rows of columns, to where they are summed: where they lie, or copies. */
#include "compact.inc"

#include "kernels/loops.h"

/* Where the n rows from the walk on begin. */
void lnorm_find_rows(const ln_columns *s, enum lnorm_operand operand, const ln_walk *walk, int64_t n,
                     const char **row) {
    const int64_t size = ln_size_of(&s->b, operand);
    ln_cursor cursor = lnorm_cursor_at(&s->b, operand, walk);
    int64_t run;
    for (int64_t done = 0; done < n; done += run) {
        const char *at = s->b.data->at[operand] + cursor.offset * size;
        run = ln_run(&cursor, n - done);
        for (int64_t i = 0; i < run; i++)
            row[done + i] = at + i * cursor.run_stride * size;
        ln_run_on(&cursor, run);
    }
}

/* A row's columns as f32, while the one `ahead` bytes on is asked for. */
static void ln_copy_row(const ln_columns *s, enum lnorm_operand operand, const char *at, int64_t ahead, int columns,
                        float *to) {
    const enum lnorm_element element = ln_element_of(&s->b, operand);
    for (int64_t line = 0; line < columns * ln_element_size(element); line += LNORM_LINE)
        LNORM_PREFETCH(at, ahead + line);
    s->b.loops->to_f32(element, at, to, columns);
}

/* The rows of a lane: where they are, or copies where that is not f32 or ends within a vector. */
void lnorm_rows_of_lane(const ln_columns *s, enum lnorm_operand operand, const char *const *row, int64_t n,
                        int lane, ln_lane_rows *rows) {
    const enum lnorm_element element = ln_element_of(&s->b, operand);
    const int copied = rows->packed || element != LNORM_ELEMENT_F32 || s->columns < s->padded;
    rows->count = n > lane ? (int)lnorm_parts(n - lane, LNORM_LANES) : 0;
    rows->ahead = lane + 1 < LNORM_LANES && lane + 1 < n ? row[lane + 1] - row[lane] : 0;
    if (lane + 1 == LNORM_LANES && n == LNORM_BLOCK) /* the next block's lane 0, if rows go on like this */
        rows->ahead = (LNORM_BLOCK + 1 - LNORM_LANES) * (row[1] - row[0]);
    for (int k = 0; k < rows->count; k++) {
        const char *at = row[lane + k * LNORM_LANES];
        if (copied) {
            ln_copy_row(s, operand, at, rows->ahead, s->columns, rows->copy[k]);
            at = (const char *)rows->copy[k];
        }
        rows->row[k] = at;
    }
    if (copied)
        rows->ahead = 0;
    for (int k = rows->count; k < LNORM_LANES; k++)
        rows->row[k] = (const char *)rows->none;
}

/* Columns of rows that are not f32, or do not end with a vector: copies, lane by lane. */
static void ln_add_copies(const ln_columns *s, ln_row_sums f, int columns, ln_column_lanes *lanes) {
    float copy[LNORM_LANES][LNORM_SUM_COLUMNS];
    const int64_t rows = f.rows;
    const char *x = f.x;
    f.x = (const char *)copy;
    f.step = sizeof copy[0];
    f.lanes = 1;
    for (int64_t lane = 0; lane < rows && lane < LNORM_LANES; lane++, f.lane = (f.lane + 1) % LNORM_LANES) {
        f.rows = rows - lane;
        for (int64_t i = lane; i < rows; i += LNORM_LANES) {
            float *to = copy[i / LNORM_LANES];
            ln_copy_row(s, LNORM_X, x + i * f.pitch, f.ahead, columns, to);
            for (int k = columns; k < f.columns; k++)
                to[k] = 0.0f;
        }
        s->b.loops->sum_rows(&f, lanes);
    }
}

/* Rows that lie at one distance, `left` of them with those that follow. Where many have no gaps between them, few at a
 * time: streams whose next lines the machine sees coming, and lanes that go to the level 1 cache and back. Else a
 * lane's rows of a block at once. */
static void ln_add_run(const ln_columns *s, ln_row_sums f, int columns, int64_t left, ln_column_lanes *lanes) {
    const int64_t bytes = columns * ln_size_of(&s->b, LNORM_X);
    const int vector = s->b.loops->narrow_vector;
    const int copied = ln_element_of(&s->b, LNORM_X) != LNORM_ELEMENT_F32 || columns % vector != 0;
    const int streams = !copied && ln_distance(f.pitch) <= bytes && left * bytes > LN_STREAMED_BYTES;
    f.together = streams ? LN_ROWS_TOGETHER : LNORM_BLOCK;
    if (left - f.rows >= LN_ROWS_TOGETHER)
        f.ahead = streams ? LN_ROWS_TOGETHER * f.pitch : f.pitch;
    f.columns = (columns + vector - 1) / vector * vector;
    if (copied)
        ln_add_copies(s, f, columns, lanes);
    else
        s->b.loops->sum_rows(&f, lanes);
}

void lnorm_add_rows(const ln_columns *s, int first, int columns, const double *shift, int64_t row, int64_t n,
                    ln_column_lanes *lanes) {
    const int64_t size = ln_size_of(&s->b, LNORM_X);
    const ln_walk walk = ln_walk_from(&s->b, row);
    ln_cursor cursor = lnorm_cursor_at(&s->b, LNORM_X, &walk);
    for (int64_t run; n > 0; n -= run, row += run) {
        const char *x = s->b.data->at[LNORM_X] + (cursor.offset + first) * size;
        const int64_t left = ln_run(&cursor, INT64_MAX);
        ln_row_sums f = {.x = x, .pitch = cursor.run_stride * size, .lane = (int)(row % LNORM_LANES),
                         .lanes = LNORM_LANES, .shift = shift};
        f.step = f.pitch * LNORM_LANES;
        f.rows = run = left < n ? left : n;
        ln_add_run(s, f, columns, left, lanes);
        ln_run_on(&cursor, run);
    }
}

#include "compact_end.inc"
