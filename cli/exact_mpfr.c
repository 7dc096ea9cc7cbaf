#include "ulp.h"
#include "exact_mpfr.h"

#include <mpfr.h>
#include <stdlib.h>

struct exact_mpfr {
    const group *g;
    int begun;                  /* the sums are this group's */
    mpfr_t sum, squares;        /* of x: exact */
    mpfr_t spread, root;        /* n^2*variance, sqrt(n^2*(variance + eps)); given statistics: without n^2 */
    mpfr_t number, square;      /* 53 and 106 bits: an f64 and its square, exact */
    mpfr_t product, bias, work; /* WORK bits: weight*xhat */
    mpfr_t wx, y, scale;        /* SNAP bits */
};

exact_mpfr *exact_mpfr_create(void) {
    exact_mpfr *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    mpfr_inits2(WORK, e->sum, e->squares, e->spread, e->root, e->product, e->bias, e->work, (mpfr_ptr)NULL);
    mpfr_inits2(SNAP, e->wx, e->y, e->scale, (mpfr_ptr)NULL);
    mpfr_init2(e->number, 53);
    mpfr_init2(e->square, 106);
    return e;
}

void exact_mpfr_free(exact_mpfr *e) {
    if (!e)
        return;
    mpfr_clears(e->sum, e->squares, e->spread, e->root, e->product, e->bias, e->work, e->wx, e->y, e->scale, e->number,
                e->square, (mpfr_ptr)NULL);
    mpfr_free_cache();
    free(e);
}

void exact_mpfr_begin(exact_mpfr *e, const group *g) {
    e->g = g;
    e->begun = 0;
}

/* -- Statistics --------------------------------------------------------------------------------------------------- */

/* Exponents of the elements' highest and lowest bits that are not 0. */
static void bit_range(const group *g, int *lowest, int *highest) {
    *lowest = *highest = 0;
    for (int64_t i = 0, seen = 0; i < g->n; i++) {
        if (g->x[i] == 0.0)
            continue;
        int high, low;
        double part = ldexp(frexp(g->x[i], &high), 53); /* an integer of 53 bits */
        low = high - 53 + __builtin_ctzll((unsigned long long)fabs(part));
        *lowest = !seen || low < *lowest ? low : *lowest;
        *highest = !seen || high > *highest ? high : *highest;
        seen = 1;
    }
}

/* With all elements multiples of 2^l and below 2^h, a sum of n squares is a multiple of 2^2l and below n*2^2h: it has
 * 2*(h - l) + log2(n) bits at most. f32: 2*(128 + 149) + 40 < 600; f64: 2*(1024 + 1074) + 40, when its whole range is
 * there, and mostly some 200. */
static void sum_exactly(exact_mpfr *e, const group *g) {
    int lowest, highest, count;
    bit_range(g, &lowest, &highest);
    frexp((double)g->n, &count);
    mpfr_prec_t precision = 2 * (highest - lowest) + count + 2;
    mpfr_set_prec(e->sum, precision);
    mpfr_set_prec(e->squares, precision);
    mpfr_set_zero(e->sum, 1);
    mpfr_set_zero(e->squares, 1);
    int narrow = g->problem->operand[LNORM_X].element != LNORM_ELEMENT_F64; /* x*x is an f64 */
    for (int64_t i = 0; i < g->n; i++) {
        mpfr_add_d(e->sum, e->sum, g->x[i], MPFR_RNDN);
        if (narrow) {
            mpfr_add_d(e->squares, e->squares, g->x[i] * g->x[i], MPFR_RNDN);
        } else {
            mpfr_set_d(e->number, g->x[i], MPFR_RNDN);
            mpfr_sqr(e->square, e->number, MPFR_RNDN);
            mpfr_add(e->squares, e->squares, e->square, MPFR_RNDN);
        }
    }
    if (!g->problem->center)
        mpfr_set_zero(e->sum, 1);
}

/* n^2*variance = n*squares - sum^2, exact but for one rounding; n^2*eps has 53 + 2*53 bits at most. */
static void compute_spread(exact_mpfr *e, const group *g) {
    sum_exactly(e, g);
    mpfr_set_d(e->number, (double)g->n, MPFR_RNDN);
    mpfr_fmms(e->spread, e->number, e->squares, e->sum, e->sum, MPFR_RNDN);
}

/* n; 1 where statistics are given */
static double factor(const group *g) {
    return g->problem->statistics == LNORM_CONSTANT ? 1.0 : (double)g->n;
}

static void begin(exact_mpfr *e) {
    const group *g = e->g;
    if (e->begun)
        return;
    if (g->problem->statistics == LNORM_CONSTANT) {
        mpfr_set_d(e->spread, g->variance, MPFR_RNDN);
        mpfr_set_d(e->sum, g->mean, MPFR_RNDN);
    } else {
        compute_spread(e, g);
    }
    mpfr_set_d(e->root, g->problem->eps, MPFR_RNDN);
    mpfr_mul_d(e->root, e->root, factor(g), MPFR_RNDN);
    mpfr_mul_d(e->root, e->root, factor(g), MPFR_RNDN);
    mpfr_add(e->root, e->root, e->spread, MPFR_RNDN);
    mpfr_sqrt(e->root, e->root, MPFR_RNDN);
    e->begun = 1;
}

/* -- y ------------------------------------------------------------------------------------------------------------ */

/* weight*xhat with xhat = (n*x - sum)/root, which is 0 where root is: the definition of rstd; and y. After a
 * cancellation against the bias a remainder below SNAP bits is 0. */
static void evaluate(exact_mpfr *e, int64_t i) {
    const group *g = e->g;
    begin(e);
    mpfr_set_d(e->number, g->x[i], MPFR_RNDN);
    mpfr_mul_d(e->product, e->number, factor(g), MPFR_RNDN);
    mpfr_sub(e->product, e->product, e->sum, MPFR_RNDN);
    if (mpfr_zero_p(e->root))
        mpfr_set_zero(e->product, 1);
    else
        mpfr_div(e->product, e->product, e->root, MPFR_RNDN);
    mpfr_mul_d(e->product, e->product, group_weight(g, i), MPFR_RNDN);
    mpfr_set_d(e->bias, group_bias(g, i), MPFR_RNDN);
    mpfr_add(e->work, e->product, e->bias, MPFR_RNDN);
    if (!mpfr_zero_p(e->work) && !mpfr_zero_p(e->bias) && mpfr_get_exp(e->work) < mpfr_get_exp(e->bias) - SNAP)
        mpfr_set_zero(e->work, 1);
    mpfr_set(e->y, e->work, MPFR_RNDN);
    mpfr_set(e->wx, e->product, MPFR_RNDN);
}

/* max(|y|, |weight|, |weight*xhat|, |bias|) */
static void set_scale(exact_mpfr *e, int64_t i) {
    mpfr_set_d(e->scale, fabs(group_weight(e->g, i)), MPFR_RNDN);
    mpfr_srcptr others[] = {e->y, e->wx, e->bias};
    for (int k = 0; k < 3; k++)
        if (mpfr_cmpabs(others[k], e->scale) > 0)
            mpfr_abs(e->scale, others[k], MPFR_RNDN);
}

/* The distance, which is in e->work, in ulps of the type at a magnitude. */
static double in_ulps(exact_mpfr *e, const format *f, mpfr_srcptr magnitude) {
    int spacing = mpfr_zero_p(magnitude) ? f->lowest : spacing_at(f, (int)mpfr_get_exp(magnitude) - 1);
    mpfr_mul_2si(e->product, e->work, -spacing, MPFR_RNDN);
    double ulps = mpfr_get_d(e->product, MPFR_RNDN);
    return ulps < MOST_ULPS ? ulps : MOST_ULPS;
}

/* Leaves |y - Y| in e->work. Y is nearest to y if y is not beyond the midpoint between Y and the neighbour on that
 * side; a midpoint belongs to the even one. */
static void judge_number(exact_mpfr *e, const format *f, double y, verdict *v) {
    mpfr_sub_d(e->work, e->y, y, MPFR_RNDN);
    int inwards = mpfr_sgn(e->work) * (signbit(y) ? -1 : 1) < 0;
    int half = spacing_of(f, y) - (inwards && begins_binade(f, y) ? 2 : 1);
    mpfr_abs(e->work, e->work, MPFR_RNDN);
    int order = mpfr_cmp_ui_2exp(e->work, 1, half);
    v->correct = order < 0 || (order == 0 && ends_even(f, y));
}

/* Y is infinite: right from half an ulp below 2^top on, where y rounds to it; down to a whole ulp it is taken for
 * 2^top, the number that would follow the largest; below that it is not due. */
static void judge_infinity(exact_mpfr *e, const format *f, double y, verdict *v) {
    mpfr_set_ui_2exp(e->work, 1, f->top, MPFR_RNDN);
    mpfr_abs(e->product, e->y, MPFR_RNDN);
    mpfr_sub(e->work, e->work, e->product, MPFR_RNDN);
    int same = (mpfr_signbit(e->y) != 0) == (signbit(y) != 0);
    v->correct = same && mpfr_cmp_si_2exp(e->work, 1, f->top - f->digits - 1) <= 0;
    if (!same || mpfr_cmp_si_2exp(e->work, 1, f->top - f->digits) > 0)
        v->finding = NAN_UNEXPECTED;
    if (v->correct)
        mpfr_set_zero(e->work, 1);
}

void exact_mpfr_judge(exact_mpfr *e, int64_t i, verdict *v) {
    const format *f = &formats[e->g->problem->operand[LNORM_Y].element];
    double y = e->g->y[i];
    evaluate(e, i);
    set_scale(e, i);
    v->finding = MEASURED;
    if (isinf(y))
        judge_infinity(e, f, y, v);
    else
        judge_number(e, f, y, v);
    v->ulps = in_ulps(e, f, e->scale);
    v->own_ulps = in_ulps(e, f, e->y);
}

/* -- Texts -------------------------------------------------------------------------------------------------------- */

void exact_mpfr_show(exact_mpfr *e, int64_t i, exact_texts *texts) {
    const group *g = e->g;
    int digits = formats[g->problem->operand[LNORM_Y].element].shown;
    evaluate(e, i);
    mpfr_snprintf(texts->y, sizeof texts->y, "%.*Rg", digits, e->y);
    mpfr_div_d(e->work, e->sum, factor(g), MPFR_RNDN);
    mpfr_snprintf(texts->mean, sizeof texts->mean, "%.*Rg", digits, e->work);
    mpfr_div_d(e->work, e->spread, factor(g), MPFR_RNDN);
    mpfr_div_d(e->work, e->work, factor(g), MPFR_RNDN);
    mpfr_snprintf(texts->variance, sizeof texts->variance, "%.*Rg", digits, e->work);
    mpfr_set_zero(e->work, 1);
    if (!mpfr_zero_p(e->root))
        mpfr_d_div(e->work, factor(g), e->root, MPFR_RNDN);
    mpfr_snprintf(texts->rstd, sizeof texts->rstd, "%.*Rg", digits, e->work);
}
