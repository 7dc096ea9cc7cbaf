/* Sums of the blocks of groups of several columns, row by row as they lie in memory, in f64. Vectors lie across
 * columns, and each column adds row k to its lane k mod 16.
 *
 * Blocks run on from channel to channel: a column's begin and end in some rows, its phase, not in its neighbours'.
 * Where a block of some columns ends, their lanes are folded and cleared, the others' are not. A fold
 * is the same for lanes that are turned: which of them is called the first does not matter within a channel. Across two
 * channels it does: a channel's last block begins the next one's lanes, for which its last rows are summed first. */
#include "compact.inc"

#include "channels.h"

typedef struct ln_phase {
    int64_t skip; /* the first row in which a block of these columns begins */
    uint64_t keep[LN_ROW_COLUMNS]; /* clears their lanes */
} ln_phase;

typedef struct ln_phases {
    const ln_window *w;
    int padded; /* columns, to whole vectors of f32 */
    int count;
    ln_phase of[LN_PHASES];
    double shift[LN_ROW_COLUMNS];
    ln_column_lanes lanes;
} ln_phases;

/* -- Phases ------------------------------------------------------------------------------------------------------- */

/* Channels that lie `period` apart have the same phase. Many phases, or few rows, would not pay; nor more than one
 * where rows have to be widened. */
int lnorm_row_phases(const ln_columns *s) {
    const int most = ln_element_of(&s->b, LNORM_X) == LNORM_ELEMENT_F32 ? LN_PHASES : 1;
    int64_t period = LNORM_BLOCK;
    for (int64_t rows = s->form.rows.count; period > 1 && rows % 2 == 0; rows /= 2)
        period /= 2;
    period = period < s->form.channels ? period : s->form.channels;
    return s->form.rows.count >= LNORM_BLOCK && period <= most ? (int)period : 0;
}

static int ln_phase_of(const ln_phases *p, int k) {
    return (int)(ln_channel_of(p->w, k) % p->count);
}

static void ln_set_phases(ln_phases *p) {
    const ln_columns *s = p->w->s;
    p->count = lnorm_row_phases(s);
    for (int k = 0; k < LN_ROW_COLUMNS; k++)
        p->shift[k] = k < p->w->columns ? s->c[p->w->first + k] : 0.0;
    for (int c = 0; c < p->count; c++) {
        p->of[c].skip = lnorm_parts(c * s->form.rows.count, LNORM_BLOCK) * LNORM_BLOCK - c * s->form.rows.count;
        for (int k = 0; k < LN_ROW_COLUMNS; k++)
            p->of[c].keep[k] = k < p->w->columns && ln_phase_of(p, k) == c ? 0 : UINT64_MAX;
    }
}

/* The first row from `row` on in which a block begins. */
static int64_t ln_border_from(const ln_phase *phase, int64_t row) {
    return phase->skip + (row > phase->skip ? lnorm_parts(row - phase->skip, LNORM_BLOCK) * LNORM_BLOCK : 0);
}

/* -- Sums --------------------------------------------------------------------------------------------------------- */

static void ln_fold(const ln_phases *p, ln_pair sum[LN_ROW_COLUMNS]) {
    double a[LN_ROW_COLUMNS], b[LN_ROW_COLUMNS];
    p->w->s->b.loops->fold_lanes(p->lanes.a[0], LNORM_SUM_COLUMNS, p->padded, a);
    p->w->s->b.loops->fold_lanes(p->lanes.b[0], LNORM_SUM_COLUMNS, p->padded, b);
    for (int k = 0; k < p->w->columns; k++)
        sum[k] = (ln_pair){a[k], b[k]};
}

/* The blocks of some columns that end before row `row`. */
static void ln_end_blocks(ln_phases *p, const ln_phase *phase, int64_t row, int wanted) {
    const int64_t block = (row - phase->skip) / LNORM_BLOCK - (phase->skip == 0);
    const lnorm_loops *const loops = p->w->s->b.loops;
    ln_pair sum[LN_ROW_COLUMNS];
    if (wanted && block >= 0) {
        ln_fold(p, sum);
        for (int k = 0; k < p->w->columns; k++)
            if (!phase->keep[k])
                memcpy(ln_slot_of(p->w, k, block), &sum[k], sizeof sum[k]);
    }
    loops->keep_lanes(p->lanes.a[0], LNORM_SUM_COLUMNS, p->padded, phase->keep);
    loops->keep_lanes(p->lanes.b[0], LNORM_SUM_COLUMNS, p->padded, phase->keep);
}

/* The last of each group, where it is not a whole one. */
static void ln_end_groups(const ln_phases *p) {
    const ln_window *w = p->w;
    const ln_columns *s = w->s;
    const int64_t last = s->form.channels - 1, blocks = ln_blocks_before(s, last + 1) - ln_blocks_before(s, last);
    ln_pair sum[LN_ROW_COLUMNS];
    ln_fold(p, sum);
    for (int k = 0; k < w->columns && s->b.problem->element.count % LNORM_BLOCK; k++)
        if (ln_channel_of(w, k) == last)
            memcpy(ln_slot_of(w, k, blocks - 1), &sum[k], sizeof sum[k]);
}

/* The rows from `from` up to `to`; blocks that end there, too. */
static void ln_sum_between(ln_phases *p, int64_t from, int64_t to, int wanted) {
    for (int64_t next; ; from = next) {
        next = to;
        for (int c = 0; c < p->count; c++) {
            const ln_phase *phase = &p->of[c];
            int64_t border = ln_border_from(phase, from);
            if (border == from) {
                ln_end_blocks(p, phase, from, wanted);
                border += LNORM_BLOCK;
            }
            next = border < next ? border : next;
        }
        if (from == to)
            return;
        lnorm_add_rows(p->w->s, p->w->first, p->w->columns, p->w->what == LN_SUM_SHIFTED_X ? p->shift : NULL, from,
                       next - from, &p->lanes);
    }
}

/* The lanes that the last rows of a channel leave become those that the next one begins with: a column on, and turned,
 * as that one's first row adds to the lane after. */
static void ln_pass_on(const ln_phases *p, double lanes[LNORM_LANES][LNORM_SUM_COLUMNS], double carry[LNORM_LANES]) {
    const int columns = p->w->columns;
    const int64_t rows = p->w->s->form.rows.count;
    double turned[LNORM_LANES][LN_ROW_COLUMNS] = {{0.0}};
    for (int k = 0; k < LNORM_LANES; k++) {
        const double *from = lanes[(k + rows) % LNORM_LANES];
        turned[k][0] = carry[k];
        memcpy(turned[k] + 1, from, (size_t)(columns - 1) * sizeof *from);
        carry[k] = from[columns - 1];
    }
    for (int k = 0; k < LNORM_LANES; k++)
        memcpy(lanes[k], turned[k], sizeof turned[k]);
}

void lnorm_sum_by_rows(ln_window *w) {
    const int64_t rows = w->s->form.rows.count;
    const int vector = w->s->b.loops->narrow_vector;
    int64_t last = rows;
    ln_phases p;
    p.w = w;
    p.padded = (w->columns + vector - 1) / vector * vector;
    ln_set_phases(&p);
    memset(&p.lanes, 0, sizeof p.lanes);
    for (int c = 0; c < p.count && p.count > 1 && c + 1 < w->s->form.channels; c++) {
        const int64_t border = ln_border_from(&p.of[c], rows - LNORM_BLOCK + 1);
        last = border < last ? border : last;
    }
    ln_sum_between(&p, last, rows, 0);
    ln_pass_on(&p, p.lanes.a, w->carry[0]);
    ln_pass_on(&p, p.lanes.b, w->carry[1]);
    ln_sum_between(&p, 0, rows, 1);
    ln_end_groups(&p);
}

#include "compact_end.inc"
