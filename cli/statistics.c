#include "statistics.h"

enum { RUN = 64 };

static void survey(pair_statistics *s, const double *x, int64_t n) {
    double low = x[0], high = x[0];
    int finite = 1, in_range = 1;
    for (int64_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
        in_range &= in_pair_range(x[i]);
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    s->finite = finite;
    s->in_range = in_range;
    s->constant = low == high;
}

/* Sums of x - shift and of its square, or of the first alone. */
static void sum(const double *x, int64_t n, double shift, lnorm_pair *ones, lnorm_pair *squares) {
    lnorm_pair_tree one, square;
    lnorm_pair_tree_clear(&one);
    lnorm_pair_tree_clear(&square);
    for (int64_t first = 0; first < n; first += RUN) {
        int64_t end = n - first < RUN ? n : first + RUN;
        lnorm_pair a = {0.0, 0.0}, b = {0.0, 0.0};
        for (int64_t i = first; i < end; i++) {
            lnorm_pair d = lnorm_two_sum(x[i], -shift);
            a = lnorm_pair_add(a, d);
            if (squares)
                b = lnorm_pair_add(b, lnorm_pair_mul(d, d));
        }
        lnorm_pair_tree_push(&one, a);
        lnorm_pair_tree_push(&square, b);
    }
    *ones = lnorm_pair_norm(lnorm_pair_tree_total(&one));
    if (squares)
        *squares = lnorm_pair_norm(lnorm_pair_tree_total(&square));
}

/* The variance is M(d^2) - M(d)^2 with d = x - shift, where shift is the mean to f64's precision: M(d) is below an ulp
 * of the mean, and what cancels is little unless the spread is that small, too. `square` shows when it is. */
void statistics_of(pair_statistics *s, const double *x, int64_t n, int about_mean) {
    lnorm_pair total, squares, zero = {0.0, 0.0};
    double count = (double)n;
    survey(s, x, n);
    if (!s->finite || !s->in_range)
        return;
    s->shift = s->square = 0.0;
    s->rest = s->variance = zero;
    s->constant &= about_mean;
    if (s->constant) {
        s->shift = x[0];
        return;
    }
    if (about_mean) {
        sum(x, n, 0.0, &total, NULL);
        s->shift = lnorm_pair_quo(total, count).h;
    }
    sum(x, n, s->shift, &total, &squares);
    s->variance = lnorm_pair_quo(squares, count);
    s->square = s->variance.h;
    if (!about_mean)
        return;
    s->rest = lnorm_pair_norm(lnorm_pair_quo(total, count));
    s->variance = lnorm_pair_norm(lnorm_pair_sub(s->variance, lnorm_pair_mul(s->rest, s->rest)));
}
