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

/* -- Terms -------------------------------------------------------------------------------------------------------- */

void lnorm_begin_terms(ln_term_sums *sums, int fast) {
    ln_clear_trees(&sums->tree);
    memset(sums->lanes, 0, sizeof sums->lanes);
    sums->left = sums->whole = fast ? LNORM_BLOCK_RUNS * LNORM_BLOCK : LNORM_BLOCK;
    sums->blocks = 0;
}

static void next_terms(ln_term_sums *sums) {
    for (int i = 0; i < sums->blocks; i++)
        ln_push_pair(&sums->tree, sums->block[i]);
    sums->blocks = 0;
}

LNORM_OUT_OF_LINE static void fold_terms(ln_term_sums *sums) {
    ln_pair sum;
    sum.a = fold(sums->lanes[0]);
    sum.b = fold(sums->lanes[1]);
    ln_push_pair(&sums->tree, sum);
    memset(sums->lanes, 0, sizeof sums->lanes);
    sums->left = sums->whole;
}

void lnorm_next_runs(ln_term_sums *sums, int64_t n) {
    sums->left -= n;
    if (sums->left == 0)
        fold_terms(sums);
}

/* What the loops leave: fewer than LNORM_LANES. */
static void add_few(const ln_terms *f, int n, int lane, ln_term_sums *of_g, ln_term_sums *of_dy) {
    for (int i = 0; i < n; i++) {
        const double dy = (double)f->dy[i], g = dy * f->weight[f->weight_step * i];
        double xhat = (double)f->x[i] - f->s->c;
        xhat = (xhat - f->s->t) * f->s->r;
        of_g->lanes[0][lane + i] = of_g->lanes[0][lane + i] + g;
        of_g->lanes[1][lane + i] = of_g->lanes[1][lane + i] + g * xhat;
        of_dy->lanes[0][lane + i] = of_dy->lanes[0][lane + i] + dy;
        of_dy->lanes[1][lane + i] = of_dy->lanes[1][lane + i] + dy * xhat;
    }
    lnorm_next_runs(of_g, n);
    lnorm_next_runs(of_dy, n);
}

/* The lanes are those of g's blocks. Those of dy's begin in any lane: a fold adds lanes at a distance of 8, 4, 2 and 1, in
 * a circle, and gives the same sum wherever the circle begins. */
void lnorm_add_terms(const lnorm_loops *loops, ln_terms *f, ln_term_sums *of_g, ln_term_sums *of_dy) {
    while (f->n > 0) {
        const int lane = (int)(-of_g->left & (LNORM_LANES - 1));
        int64_t n = lane ? 0 : loops->sum_terms(0, f, of_g, of_dy);
        next_terms(of_g);
        next_terms(of_dy);
        if (n == 0) {
            n = ln_least(ln_least(f->n, LNORM_LANES - lane), ln_least(of_g->left, of_dy->left));
            add_few(f, (int)n, lane, of_g, of_dy);
        }
        ln_terms_on(f, 0, n);
    }
}

ln_pair lnorm_end_terms(ln_term_sums *sums) {
    if (sums->left != sums->whole)
        fold_terms(sums);
    return ln_total_of(&sums->tree);
}

int lnorm_fast_finish_runs(enum lnorm_element element, ln_record *s, ln_pair sum, int64_t count, double eps,
                           int center) {
    double n = (double)count, m = sum.a / n, q = sum.b / n, radicand;
    s->c = center ? (double)(float)m : 0.0;
    s->t = 0.0;
    s->v = center ? q - m * m : q;
    radicand = s->v + eps;
    s->r = radicand > 0.0 ? 1.0 / sqrt(radicand) : 0.0;
    return ln_runs_suffice(element, center, m, s->v, radicand);
}
