/* Columns, forward: statistics of a strip, then y, row by row. */
#include "kernels/loops.h"

/* -- Rows of any type, by way of the stack ------------------------------------------------------------------------- */

/* Some column is not regular, or far. */
static void ln_sweep_irregular(const ln_columns *s, const ln_sweep *f, int64_t rows) {
    const enum lnorm_element element = ln_element_of(&s->b, LNORM_X);
    for (int64_t k = 0; k < rows; k++)
        for (int j = 0; j < s->columns; j++) {
            const ln_record record = {s->c[j], s->t[j], s->v[j], s->r[j], 0.0, 0.0};
            float value = ln_irregular_element(&record, lnorm_load(element, f->x + k * f->x_row, j),
                                               f->weight ? f->weight[k] : s->weight[j],
                                               f->weight ? f->bias[k] : s->bias[j]);
            lnorm_store(element, f->y + k * f->y_row, j, (double)value);
        }
}

static void ln_sweep_fast_copies(const ln_columns *s, const ln_sweep *f, int64_t rows) {
    float copy[LN_STAGE_ELEMENTS];
    const enum lnorm_element element = ln_element_of(&s->b, LNORM_X);
    const int64_t pitch = s->padded * (int64_t)sizeof *copy;
    const ln_sweep inner = {(const char *)copy, (char *)copy, pitch, pitch, f->weight, f->bias};
    memset(copy, 0, (size_t)(rows * pitch));
    for (int64_t k = 0; k < rows; k++)
        s->b.loops->to_f32(element, f->x + k * f->x_row, copy + k * s->padded, s->columns);
    s->b.loops->sweep(1, LNORM_ELEMENT_F32, s, &inner, rows);
    for (int64_t k = 0; k < rows; k++)
        s->b.loops->from_f32(element, copy + k * s->padded, f->y + k * f->y_row, s->columns);
}

static void ln_sweep_copies(const ln_columns *s, const ln_sweep *f, int64_t rows) {
    double copy[LN_STAGE_ELEMENTS];
    const enum lnorm_element element = ln_element_of(&s->b, LNORM_X);
    const int64_t pitch = s->padded * (int64_t)sizeof *copy;
    const ln_sweep inner = {(const char *)copy, (char *)copy, pitch, pitch, f->weight, f->bias};
    memset(copy, 0, (size_t)(rows * pitch));
    for (int64_t k = 0; k < rows; k++)
        s->b.loops->widen(element, f->x + k * f->x_row, copy + k * s->padded, s->columns);
    s->b.loops->sweep(0, LNORM_ELEMENT_F64, s, &inner, rows);
    for (int64_t k = 0; k < rows; k++)
        s->b.loops->narrow(element, copy + k * s->padded, f->y + k * f->y_row, s->columns);
}

static void ln_sweep_any(const ln_columns *s, const ln_sweep *f, int64_t rows) {
    const lnorm_loops *const loops = s->b.loops;
    const int whole = s->columns % (s->b.problem->fast ? loops->narrow_vector : loops->wide_vector) == 0;
    if (s->b.problem->fast && !s->regular)
        ln_sweep_irregular(s, f, rows);
    else if (whole && ln_element_of(&s->b, LNORM_X) == LNORM_ELEMENT_F32)
        loops->sweep(s->b.problem->fast, LNORM_ELEMENT_F32, s, f, rows);
    else if (s->b.problem->fast)
        ln_sweep_fast_copies(s, f, rows);
    else
        ln_sweep_copies(s, f, rows);
}

/* A few rows by way of the stack. */
static void ln_sweep_streamed(const ln_columns *s, const ln_sweep *f, int64_t rows, int64_t bytes) {
    char stage[LN_STAGE_BYTES];
    ln_sweep staged = *f;
    staged.y = stage;
    staged.y_row = bytes;
    ln_sweep_any(s, &staged, rows);
    if (f->y_row == bytes)
        s->b.loops->stream(f->y, stage, rows * bytes);
    else
        for (int64_t k = 0; k < rows; k++)
            s->b.loops->stream(f->y + k * f->y_row, stage + k * bytes, bytes);
}

/* -- Blocks of rows ------------------------------------------------------------------------------------------------ */

/* n of the `left` rows from here on, a few at a time, so that their lines are still in the cache when the next
 * vector of columns wants them. */
static void ln_sweep_run(const ln_columns *s, ln_sweep f, int64_t n, int64_t left) {
    const int64_t bytes = s->columns * ln_size_of(&s->b, LNORM_X);
    const int streamed = s->stream && (f.y_row == bytes || bytes >= 2 * LNORM_LINE);
    const int64_t staged = LN_STAGE_BYTES / bytes, copied = LN_STAGE_ELEMENTS / s->padded;
    const int64_t each = staged < copied ? staged : copied;
    /* Those of the next line, whose sums in f64 keep pace with memory; or (0) these, which are near already. */
    const int64_t next = s->form.lines > 1 && !s->b.problem->fast ? s->form.rows.count * bytes : 0;
    for (int64_t rows; n > 0; n -= rows, left -= rows) {
        rows = n < each ? n : each;
        if (f.x_row != bytes)
            ln_prefetch_rows(f.x, f.x_row, rows, left, bytes);
        for (int64_t line = 0; streamed && f.x_row == bytes && line < rows * bytes; line += LNORM_LINE)
            if (next)
                LNORM_PREFETCH_FAR(f.x, next + line);
            else
                LNORM_PREFETCH(f.x, LN_AHEAD_BYTES + line);
        if (streamed) {
            ln_sweep_streamed(s, &f, rows, bytes);
        } else {
            ln_prefetch_rows(f.y, f.y_row, rows, left, bytes);
            ln_sweep_any(s, &f, rows);
        }
        f.x += rows * f.x_row;
        f.y += rows * f.y_row;
        if (f.weight) {
            f.weight += rows;
            f.bias += rows;
        }
    }
}

/* A block of n rows. weight and bias by row, or NULL. */
static void ln_sweep_block(const ln_columns *s, const ln_walk *walk, int64_t n, const double *weight,
                           const double *bias) {
    int64_t size = ln_size_of(&s->b, LNORM_X), run;
    ln_cursor x = lnorm_cursor_at(&s->b, LNORM_X, walk), y = lnorm_cursor_at(&s->b, LNORM_Y, walk);
    for (int64_t done = 0; done < n; done += run) {
        ln_sweep f = {s->b.data->at[LNORM_X] + x.offset * size, s->b.data->at[LNORM_Y] + y.offset * size,
                      x.run_stride * size, y.run_stride * size, weight ? weight + done : NULL,
                      bias ? bias + done : NULL};
        const int64_t left = ln_run(&x, INT64_MAX);
        run = left < n - done ? left : n - done;
        ln_sweep_run(s, f, run, left);
        ln_run_on(&x, run);
        ln_run_on(&y, run);
    }
}

/* weight or bias of every column, `missing` where there is none. Columns of no elements need neither, and what broadcasts
 * over such an x may have no element itself. */
void lnorm_column_affine(const ln_columns *s, enum lnorm_operand operand, double missing, double *values) {
    const int64_t *stride = s->b.problem->operand[operand].stride;
    const int columns = lnorm_has(s->b.problem, operand) && s->b.space->count ? s->columns : 0;
    int64_t channel = 0, offset = s->b.base[operand];
    ln_fill(values, missing, s->padded);
    for (int j = 0; j < columns; j++) {
        int64_t aside = s->form.channel_axis < 0 ? 0 : channel * stride[s->form.channel_axis];
        values[j] = ln_affine_at(&s->b, operand, offset + aside, missing);
        if (++channel == s->form.channels) {
            channel = 0;
            offset += ln_lane_stride(&s->b, operand);
        }
    }
}

static void ln_columns_by_column(ln_columns *s) {
    ln_walk walk = ln_walk_from(&s->b, 0);
    int64_t count = s->b.space->count;
    lnorm_column_affine(s, LNORM_WEIGHT, 1.0, s->weight);
    lnorm_column_affine(s, LNORM_BIAS, -0.0, s->bias);
    for (int j = 0; j < s->padded; j++) {
        s->weight_f32[j] = (float)s->weight[j]; /* 1 + weight, too: f64 in between changes no bit */
        s->bias_f32[j] = (float)s->bias[j];
    }
    for (int64_t first = 0; first < count; first += LNORM_BLOCK) {
        ln_sweep_block(s, &walk, ln_block_length(count, first), NULL, NULL);
        ln_walk_on(&walk, LNORM_BLOCK);
    }
}

static void ln_columns_by_row(const ln_columns *s) {
    double weight_buffer[LNORM_BLOCK], bias_buffer[LNORM_BLOCK];
    ln_walk walk = ln_walk_from(&s->b, 0);
    int64_t count = s->b.space->count;
    ln_fill(weight_buffer, 1.0, LNORM_BLOCK);
    ln_fill(bias_buffer, -0.0, LNORM_BLOCK);
    for (int64_t first = 0; first < count; first += LNORM_BLOCK) {
        int64_t n = ln_block_length(count, first);
        lnorm_gather_affine(&s->b, LNORM_WEIGHT, &walk, n, 0, weight_buffer);
        lnorm_gather_affine(&s->b, LNORM_BIAS, &walk, n, 0, bias_buffer);
        ln_sweep_block(s, &walk, n, weight_buffer, bias_buffer);
        ln_walk_on(&walk, LNORM_BLOCK);
    }
}

/* -- A strip ------------------------------------------------------------------------------------------------------- */

/* c, t and r as the fast arithmetic uses them. A NaN among them makes all results NaN in either way. */
void lnorm_columns_in_f32(ln_columns *s) {
    s->corrected = 0;
    s->regular = 1;
    for (int j = 0; j < s->columns; j++) {
        const ln_record record = {s->c[j], s->t[j], s->v[j], s->r[j], 0.0, 0.0};
        ln_fast_form form = ln_fast_form_of(&record);
        if (!form.regular && (s->c[j] != s->c[j] || s->r[j] != s->r[j])) {
            form.rho = (float)NAN;
            form.regular = 1;
        }
        s->h[j] = form.h;
        s->l[j] = form.l;
        s->rho[j] = form.rho;
        s->regular &= form.regular && !ln_fast_is_far(&form);
        s->corrected |= ln_fast_corrected(&form);
    }
}

void lnorm_columns_forward(ln_columns *s) {
    lnorm_columns_statistics(s);
    if (!lnorm_has(s->b.problem, LNORM_Y))
        return;
    if (s->b.problem->fast)
        lnorm_columns_in_f32(s);
    if (lnorm_affine_by(s->b.problem, &s->form, 0))
        ln_columns_by_column(s);
    else
        ln_columns_by_row(s);
}
