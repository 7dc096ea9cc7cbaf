#include "exact_y.h"
#include "ulp.h"

#include <stdio.h>

int exact_y_init(exact_y *e, double limit) {
    memset(e, 0, sizeof *e);
    e->limit = limit;
    e->mpfr = exact_mpfr_create();
    return e->mpfr != NULL;
}

void exact_y_free(exact_y *e) {
    exact_mpfr_free(e->mpfr);
    e->mpfr = NULL;
}

void exact_y_show(exact_y *e, int64_t i, exact_texts *texts) {
    int digits = formats[e->g->problem->operand[LNORM_Y].element].shown;
    exact_texts infinite = {"", "nan", "inf", "0"};
    if (e->regime != BIAS_OR_NAN) {
        exact_mpfr_show(e->mpfr, i, texts);
        return;
    }
    *texts = infinite;
    snprintf(texts->y, sizeof texts->y, "%.*g", digits, group_bias(e->g, i));
}

/* -- Statistics --------------------------------------------------------------------------------------------------- */

/* 1/sqrt(a): one step from r0 = 1/sqrt(ah)*(1 + f), |f| <= 2^-51, in which e = 1 - a*r0^2 is known to 2^-100 and
 * r = r0*(1 + e/2 + 3*e^2/8): what is left out, 5*e^3/16, is below 2^-148. */
static lnorm_pair reciprocal_root(lnorm_pair a) {
    double r = 1.0 / sqrt(a.h);
    lnorm_pair square = lnorm_pair_mul(a, lnorm_two_product(r, r));
    double e = (1.0 - square.h) - square.l;
    return lnorm_two_sum(r, r * (e * 0.5 + 0.375 * e * e));
}

static void take_root(exact_y *e, lnorm_pair variance, double variance_error) {
    lnorm_pair eps = {e->g->problem->eps, 0.0}, zero = {0.0, 0.0};
    lnorm_pair radicand = lnorm_pair_norm(lnorm_pair_add(variance, eps));
    e->rstd = zero;
    e->rstd_error = 0.0;
    if (radicand.h == 0.0 && variance_error == 0.0)
        return;
    if (!(radicand.h > 0x1p-600 && radicand.h < 0x1p600)) {
        e->regime = MPFR_ONLY;
        return;
    }
    e->rstd = reciprocal_root(radicand);
    e->rstd_error = variance_error / radicand.h + 4 * PAIR_ERROR;
}

static void take_given(exact_y *e) {
    const group *g = e->g;
    pair_statistics *s = &e->statistics;
    lnorm_pair variance = {g->variance, 0.0}, zero = {0.0, 0.0};
    s->shift = g->mean;
    s->rest = zero;
    e->mean_error = 0.0;
    if (isnan(g->variance + g->problem->eps) || g->variance + g->problem->eps < 0.0 || !isfinite(g->mean))
        e->regime = ALL_NAN;
    else if (isinf(g->variance))
        e->regime = BIAS_OR_NAN;
    else if (!in_pair_range(g->mean) || !in_pair_range(g->variance))
        e->regime = MPFR_ONLY;
    else
        take_root(e, variance, 0.0);
}

/* RMS norm: an infinity makes rstd 0, so that the finite elements of its group are the bias. */
static int has_nan(const group *g) {
    for (int64_t i = 0; i < g->n; i++)
        if (isnan(g->x[i]))
            return 1;
    return 0;
}

static void take_computed(exact_y *e) {
    const group *g = e->g;
    pair_statistics *s = &e->statistics;
    statistics_of(s, g->x, g->n, g->problem->center);
    if (!s->finite) {
        e->regime = g->problem->center || has_nan(g) ? ALL_NAN : BIAS_OR_NAN;
        return;
    }
    if (!s->in_range) {
        e->regime = MPFR_ONLY;
        return;
    }
    e->mean_error = g->problem->center ? SUM_ERROR * sqrt(s->square) : 0.0;
    take_root(e, s->variance, 4 * SUM_ERROR * s->square);
}

void exact_y_begin(exact_y *e, const group *g) {
    e->g = g;
    e->regime = PAIRS;
    if (!g->n)
        return;
    exact_mpfr_begin(e->mpfr, g);
    if (g->problem->statistics == LNORM_CONSTANT)
        take_given(e);
    else
        take_computed(e);
}

/* -- Elements ----------------------------------------------------------------------------------------------------- */

/* y and |weight*xhat|, each with an absolute error of at most `bound`. */
typedef struct estimate {
    lnorm_pair y;
    double wx, bound;
} estimate;

/* The bound, with W the weight's magnitude: an error of the mean reaches y as W*rstd*(mean_error + that of two pair
 * operations on x - shift and rest); that of rstd and of two products in proportion to weight*xhat; that of the sum. A
 * deviation of 0 without an error of the mean is exactly 0, and so is all that follows. */
static estimate estimate_y(const exact_y *e, int64_t i) {
    const group *g = e->g;
    const pair_statistics *s = &e->statistics;
    double weight = group_weight(g, i), size = fabs(weight);
    lnorm_pair d = deviation(s, g->x[i]), w = {weight, 0.0}, b = {group_bias(g, i), 0.0};
    lnorm_pair wx = lnorm_pair_mul(lnorm_pair_mul(d, e->rstd), w);
    estimate result = {lnorm_pair_norm(lnorm_pair_add(wx, b)), fabs(wx.h), 0.0};
    if (d.h == 0.0 && e->mean_error == 0.0)
        return result;
    double deviations = fabs(g->x[i] - s->shift) + fabs(s->rest.h);
    double in_mean = size * e->rstd.h * (e->mean_error + 2 * PAIR_ERROR * deviations);
    result.bound = in_mean + result.wx * (e->rstd_error + 4 * PAIR_ERROR) + PAIR_ERROR * fabs(b.h) + 0x1p-900;
    return result;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* 2^-spacing where a magnitude between low and high decides the spacing; 0 if it does not. */
static double units(const format *f, double low, double high) {
    int spacing = spacing_of(f, high);
    return spacing_of(f, larger(low, 0.0)) == spacing && spacing > -900 ? lnorm_power(-spacing) : 0.0;
}

/* 1 or 0, whether Y is nearest to y (judge_number in exact_mpfr.c says how); -1: open. */
static int nearest(const format *f, double y, double difference, double margin) {
    int inwards = difference * (signbit(y) ? -1.0 : 1.0) < 0.0;
    int half = spacing_of(f, y) - (inwards && begins_binade(f, y) ? 2 : 1);
    double distance = fabs(difference);
    if (half < -900)
        return -1;
    return distance + margin < lnorm_power(half) ? 1 : distance - margin > lnorm_power(half) ? 0 : -1;
}

/* False where the bound leaves something open. Errors are shown, not only compared: 2^-24 ulp is enough for that. */
static int judge_by_pairs(const exact_y *e, int64_t i, verdict *v) {
    const group *g = e->g;
    const format *f = &formats[g->problem->operand[LNORM_Y].element];
    double y = g->y[i], weight = fabs(group_weight(g, i)), bias = fabs(group_bias(g, i));
    if (!in_pair_range(y) || !in_pair_range(weight) || !in_pair_range(bias))
        return 0;
    estimate t = estimate_y(e, i);
    lnorm_pair difference = lnorm_two_sum(t.y.h, -y);
    double d = difference.h + (difference.l + t.y.l), size = fabs(t.y.h), bound = t.bound;
    double exact = larger(weight, bias), computed = larger(size, t.wx), margin = bound + fabs(d) * 0x1p-48;
    double unit = units(f, larger(exact, computed - bound), larger(exact, computed + bound));
    double own = units(f, size - bound, size + bound);
    v->finding = MEASURED;
    v->ulps = fabs(d) * unit;
    v->own_ulps = fabs(d) * own;
    v->correct = nearest(f, y, d, margin);
    return unit > 0.0 && own > 0.0 && v->correct >= 0 && bound * unit < 0x1p-24 &&
           fabs(v->ulps - e->limit) > margin * unit && fabs(v->ulps - 1.0) > margin * unit;
}

static int undefined(const exact_y *e, int64_t i) {
    const group *g = e->g;
    return e->regime == ALL_NAN || !isfinite(g->x[i]) || !isfinite(group_weight(g, i)) || !isfinite(group_bias(g, i)) ||
           (e->regime == BIAS_OR_NAN && !isfinite(g->y[i]));
}

/* rstd is 0 because of an infinity: y is the bias, an f64, and so is the distance but for one rounding. */
static void judge_bias(const exact_y *e, int64_t i, verdict *v) {
    const group *g = e->g;
    enum lnorm_element element = (enum lnorm_element)g->problem->operand[LNORM_Y].element;
    const format *f = &formats[element];
    double bias = group_bias(g, i), distance = fabs(g->y[i] - bias);
    v->finding = MEASURED;
    v->ulps = fmin(ldexp(distance, -spacing_of(f, larger(fabs(bias), fabs(group_weight(g, i))))), MOST_ULPS);
    v->own_ulps = fmin(ldexp(distance, -spacing_of(f, bias)), MOST_ULPS);
    v->correct = g->y[i] == round_to(element, bias);
}

void exact_y_judge(exact_y *e, int64_t i, verdict *v) {
    double y = e->g->y[i];
    memset(v, 0, sizeof *v);
    if (undefined(e, i)) {
        v->finding = isfinite(y) ? NAN_MISSING : NAN_DUE;
    } else if (isnan(y)) {
        v->finding = NAN_UNEXPECTED;
    } else if (e->regime == BIAS_OR_NAN) {
        judge_bias(e, i, v);
    } else if (e->regime == MPFR_ONLY || !judge_by_pairs(e, i, v)) {
        exact_mpfr_judge(e->mpfr, i, v);
        e->by_mpfr++;
    }
}
