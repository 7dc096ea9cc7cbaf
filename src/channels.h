/* Blocks of groups of several columns, where these are too large to be transposed as wholes: shared by channels.c and
 * channels_rows.c. */
#ifndef LNORM_CHANNELS_H
#define LNORM_CHANNELS_H

#include "kernels/loops.h"

/* Some columns of a strip, and the sums of the blocks that end in each of them. */
typedef struct ln_window {
    const ln_columns *s;
    enum ln_sum_of what;
    int first, columns;
    int64_t blocks; /* of a column, at most */
    char *sums;
    double carry[2][LNORM_LANES]; /* by rows: what the column before `first` leaves of a block */
} ln_window;

static inline int64_t ln_block_bytes(enum ln_sum_of what) {
    return what == LN_SUM_RUNS ? (int64_t)sizeof(ln_block_sum) : (int64_t)sizeof(ln_pair);
}

static inline int64_t ln_channel_of(const ln_window *w, int k) {
    return (w->first + k) % w->s->form.channels;
}

/* The blocks of a group that end before its channel `channel` begins; `channels`: all. */
static inline int64_t ln_blocks_before(const ln_columns *s, int64_t channel) {
    const int64_t elements = channel * s->form.rows.count;
    return channel == s->form.channels ? lnorm_parts(elements, LNORM_BLOCK) : elements / LNORM_BLOCK;
}

/* The sum of the block that is number i of those that end in column k. */
static inline void *ln_slot_of(const ln_window *w, int k, int64_t i) {
    return w->sums + (k * w->blocks + i) * ln_block_bytes(w->what);
}

/* In how many different rows the blocks of columns begin, where these can be summed row by row; 0 where not. */
int lnorm_row_phases(const ln_columns *s);

/* The sums of a window, in f64, row by row. */
void lnorm_sum_by_rows(ln_window *w);

#endif
