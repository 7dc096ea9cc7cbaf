/* A number of the exact computation: its exact value, and how far the f64 evaluation of docs/arithmetic.md may be
 * from it.
 *
 * `error` is in units of u = 2^-53 and is a rigorous running bound: with a' and b' the computed operands, |a' - a|
 * <= u*ea and |b' - b| <= u*eb, one f64 operation (relative error at most u, and at most 2^-1075 more where a
 * product or quotient underflows) gives
 *
 *     sum         |s' - s| <= u*(p + |s| + u*p)            with p = ea + eb
 *     product     |s' - s| <= u*(p + |s| + u*p) + 2^-1075  with p = |a|*eb + |b|*ea + u*ea*eb
 *
 * and a zero known to be exact loses nothing: x + 0 and x*0 are exact. A sum of n terms in a tree whose longest
 * chain is L additions gives u*(p + L*(sum|t| + u*p)) with p = sum(et), where L*u is small enough for (1+u)^L - 1 <=
 * L*u*(1 + 2^-40). The wide arithmetic does not use these bounds, but "error = 0" means there, too, that the value
 * must come out exactly. */
#ifndef LNORM_EXACT_NUMBER_H
#define LNORM_EXACT_NUMBER_H

#include <math.h>
#include <mpfr.h>
#include <stdint.h>

/* long double holds sizes and errors for its exponents: r*r*v*g of f64 input is far outside double's range. */
#define EXACT_U 0x1p-53L
#define EXACT_UNDERFLOW 0x1p-1022L /* 2^-1075 in units of u */
#define EXACT_SECOND_ORDER (1 + 0x1p-40L)

typedef struct number {
    mpfr_t value;
    long double size; /* |value|, relative error 2^-53 */
    long double error;
} number;

static inline long double exact_size(const mpfr_t value) {
    long exponent = 0;
    if (!mpfr_regular_p(value))
        return mpfr_zero_p(value) ? 0 : mpfr_inf_p(value) ? (long double)INFINITY : (long double)NAN;
    double fraction = mpfr_get_d_2exp(&exponent, value, MPFR_RNDN);
    return ldexpl(fabsl((long double)fraction), (int)exponent);
}

static inline void number_set(number *n, double value) {
    mpfr_set_d(n->value, value, MPFR_RNDN);
    n->size = fabsl((long double)value);
    n->error = 0;
}

static inline void number_copy(number *out, const number *a) {
    if (out == a)
        return;
    mpfr_set(out->value, a->value, MPFR_RNDN);
    out->size = a->size;
    out->error = a->error;
}

static inline int number_is_exact_zero(const number *a) {
    return a->size == 0 && a->error == 0;
}

/* Takes over the new value and the error `p` that it inherits, and adds that of one rounding. */
static inline void number_round(number *out, long double p) {
    out->size = exact_size(out->value);
    out->error = p + out->size + EXACT_U * p;
}

static inline void number_sum(number *out, const number *a, const number *b, int subtract) {
    int exact = number_is_exact_zero(a) || number_is_exact_zero(b);
    long double p = a->error + b->error;
    if (subtract)
        mpfr_sub(out->value, a->value, b->value, MPFR_RNDN);
    else
        mpfr_add(out->value, a->value, b->value, MPFR_RNDN);
    number_round(out, p);
    if (exact)
        out->error = p;
}

static inline void number_add(number *out, const number *a, const number *b) {
    number_sum(out, a, b, 0);
}

static inline void number_sub(number *out, const number *a, const number *b) {
    number_sum(out, a, b, 1);
}

static inline void number_mul(number *out, const number *a, const number *b) {
    int exact = number_is_exact_zero(a) || number_is_exact_zero(b);
    long double p = a->size * b->error + b->size * a->error + EXACT_U * a->error * b->error;
    mpfr_mul(out->value, a->value, b->value, MPFR_RNDN);
    number_round(out, p);
    out->error = exact ? 0 : out->error + EXACT_UNDERFLOW;
}

/* Division by a count, which is exact in f64. */
static inline void number_div(number *out, const number *a, int64_t count) {
    int exact = number_is_exact_zero(a);
    long double p = a->error / (long double)count;
    mpfr_div_si(out->value, a->value, (long)count, MPFR_RNDN);
    number_round(out, p);
    out->error = exact ? 0 : out->error + EXACT_UNDERFLOW;
}

/* 1/sqrt(a) by a square root and a division; 0 where a is 0. A relative error e of a gives at most (e/2)*(1 + e) in the
 * root for e <= 1/4; beyond that no bound is claimed. */
static inline void number_rsqrt(number *out, const number *a) {
    long double relative = a->size > 0 ? a->error / a->size : 0;
    if (mpfr_zero_p(a->value)) {
        number_set(out, 0.0);
        out->error = a->error == 0 ? 0 : (long double)INFINITY;
        return;
    }
    mpfr_rec_sqrt(out->value, a->value, MPFR_RNDN);
    out->size = exact_size(out->value);
    out->error = EXACT_U * relative > 0.25L
                     ? (long double)INFINITY
                     : out->size * (relative / 2 * (1 + EXACT_U * relative) + 2) * EXACT_SECOND_ORDER;
}

/* A sum in progress. */
typedef struct number_sums {
    mpfr_t value;
    long double size, error; /* of the terms: sum|t|, sum(et) */
} number_sums;

static inline void sums_clear(number_sums *s) {
    mpfr_set_zero(s->value, 1);
    s->size = s->error = 0;
}

static inline void sums_push(number_sums *s, const number *term) {
    mpfr_add(s->value, s->value, term->value, MPFR_RNDN);
    s->size += term->size;
    s->error += term->error;
}

static inline void sums_total(number *out, const number_sums *s, int chain) {
    mpfr_set(out->value, s->value, MPFR_RNDN);
    out->size = exact_size(out->value);
    out->error = s->error + (long double)chain * EXACT_SECOND_ORDER * (s->size + EXACT_U * s->error);
}

static inline void sums_mean(number *out, const number_sums *s, int chain, int64_t count) {
    sums_total(out, s, chain);
    number_div(out, out, count);
}

#endif
