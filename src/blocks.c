/* Blocks of 256 elements, whose sums are added up in their order. */
#include "kernels/loops.h"

void lnorm_begin_blocks(ln_block_order *order) {
    ln_clear_trees(&order->tree);
    order->runs = 0;
}

/* lnorm_fold, unrolled: in memory, each of its steps would wait for the one before. */
static double fold(const double lanes[LNORM_LANES]) {
    double lane[LNORM_LANES];
    LNORM_UNROLL
    for (int k = 0; k < LNORM_LANES; k++)
        lane[k] = lanes[k];
    LNORM_UNROLL
    for (int half = LNORM_LANES / 2; half; half /= 2) {
        LNORM_UNROLL
        for (int k = 0; k < half; k++)
            lane[k] = lane[k] + lane[k + half];
    }
    return lane[0];
}

static void fold_runs(ln_block_order *order) {
    ln_pair sum;
    sum.a = fold(order->lanes[0]);
    sum.b = fold(order->lanes[1]);
    ln_push_pair(&order->tree, sum);
    order->runs = 0;
}

void lnorm_next_block(const lnorm_loops *loops, ln_block_order *order, enum ln_sum_of what, const void *sum) {
    if (what == LN_SUM_RUNS) {
        if (order->runs == 0)
            memset(order->lanes, 0, sizeof order->lanes);
        loops->add_run(order->lanes[0], ((const ln_block_sum *)sum)->run[0]);
        if (++order->runs == LNORM_BLOCK_RUNS)
            fold_runs(order);
    } else {
        ln_pair pair;
        memcpy(&pair, sum, sizeof pair);
        ln_push_pair(&order->tree, pair);
    }
}

ln_pair lnorm_end_blocks(ln_block_order *order) {
    if (order->runs)
        fold_runs(order);
    return ln_total_of(&order->tree);
}

ln_pair lnorm_sum_contiguous(const lnorm_loops *loops, enum lnorm_element element, enum ln_sum_of what, const char *x,
                             int64_t count, double c) {
    ln_block_order order;
    lnorm_begin_blocks(&order);
    for (int64_t first = 0; first < count; first += LNORM_BLOCK) {
        ln_block_sum sum;
        loops->sum_block(element, what, x + first * ln_element_size(element), ln_block_length(count, first), c, 0,
                         &sum);
        lnorm_next_block(loops, &order, what, &sum);
    }
    return lnorm_end_blocks(&order);
}
