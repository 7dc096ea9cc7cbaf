#include "moments.h"
#include "statistics.h"
#include "ulp.h"

static float sum_in_tree(const double *x, int64_t n, int squares) {
    if (n == 1)
        return squares ? (float)x[0] * (float)x[0] : (float)x[0];
    return sum_in_tree(x, n / 2, squares) + sum_in_tree(x + n / 2, n - n / 2, squares);
}

/* E[x^2] - E[x]^2 in f32 */
static moments f32_squares(const group *g, int in_tree) {
    float sum = 0.0f, squares = 0.0f, n = (float)g->n;
    for (int64_t i = 0; !in_tree && i < g->n; i++) {
        float x = (float)g->x[i];
        sum += x;
        squares += x * x;
    }
    if (in_tree) {
        sum = sum_in_tree(g->x, g->n, 0);
        squares = sum_in_tree(g->x, g->n, 1);
    }
    float mean = sum / n, variance = squares / n - mean * mean;
    moments m = {(double)mean, 0.0, (double)variance};
    return m;
}

/* Sums kept in a 16-bit type, element after element. */
static moments half_sums(const group *g, const recipe *r) {
    double sum = 0.0, squares = 0.0, n = (double)g->n;
    moments m = {0.0, 0.0, 0.0};
    for (int64_t i = 0; i < g->n; i++)
        sum = round_to(r->half, sum + g->x[i]);
    m.shift = round_to(r->half, sum / n);
    double centre = r->about_zero ? 0.0 : m.shift;
    for (int64_t i = 0; i < g->n; i++) {
        double d = round_to(r->half, g->x[i] - centre);
        squares = round_to(r->half, squares + round_to(r->half, d * d));
    }
    m.variance = round_to(r->half, squares / n);
    return m;
}

/* Outside the pairs' range, as it comes. */
static moments plain(const double *x, int64_t n, int about_zero) {
    moments m = {0.0, 0.0, 0.0};
    for (int64_t i = 0; i < n; i++)
        m.shift += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double d = x[i] - (about_zero ? 0.0 : m.shift);
        m.variance += d * d / (double)n;
    }
    return m;
}

static moments accurate(const group *g, const recipe *r) {
    pair_statistics s, squares;
    statistics_of(&s, g->x, g->n, 1);
    if (!s.finite || !s.in_range)
        return plain(g->x, g->n, r->about_zero);
    moments m = {s.shift, s.rest.h, s.variance.h};
    if (r->about_zero) {
        statistics_of(&squares, g->x, g->n, 0);
        m.variance = squares.variance.h;
    }
    return m;
}

moments moments_of(const group *g, const recipe *r) {
    moments m = {g->mean, 0.0, g->variance};
    if (g->problem->statistics != LNORM_CONSTANT)
        m = r->sums == ACCURATE        ? accurate(g, r)
            : r->sums == HALF_IN_ORDER ? half_sums(g, r)
                                       : f32_squares(g, r->sums == F32_SQUARES_IN_TREE);
    double n = (double)g->n;
    if (r->divisor != BY_N)
        m.variance *= r->divisor == BY_1 ? n : n / (n - 1.0);
    if (r->statistics_rounded != LNORM_ELEMENT_ABSENT) {
        m.shift = round_to(r->statistics_rounded, m.shift + m.rest);
        m.rest = 0.0;
        m.variance = round_to(r->statistics_rounded, m.variance);
    }
    return m;
}

double moments_rstd(const recipe *r, double variance) {
    if (r->root == EPS_OUTSIDE)
        return 1.0 / (sqrt(variance) + r->eps);
    return r->root == NO_ROOT ? 1.0 / (variance + r->eps) : 1.0 / sqrt(variance + r->eps);
}
