/* Pairs: unevaluated sums h + l of two f64, about twice f64's precision, and pairs with an exponent of their own.
 *
 * Nothing here overflows or loses a bit to underflow as long as products that are not 0 stay between 2^-900 and 2^900:
 * docs/arithmetic.md, section 14, shows that they do. There, Dekker's split and a fused multiply-add give the same
 * error of a product, and either may be used. */
#ifndef LNORM_PAIRS_H
#define LNORM_PAIRS_H

#include "access.h"
#include <math.h>

typedef struct lnorm_pair {
    double h, l;
} lnorm_pair;

/* p * 2^e, p normalised or nearly; zero has e = LNORM_NO_EXPONENT, so that it never sets a scale. */
typedef struct lnorm_scaled {
    lnorm_pair p;
    int e;
} lnorm_scaled;

enum { LNORM_NO_EXPONENT = -(1 << 20) };

/* Scaled values below this are taken as 0: far below an ulp of anything of size 1, far above underflow. */
#define LNORM_TINY 0x1p-256

static inline lnorm_pair lnorm_two_sum(double a, double b) { /* Knuth: a + b exactly */
    double sum = a + b, b_part = sum - a;
    lnorm_pair result = {sum, (a - (sum - b_part)) + (b - b_part)};
    return result;
}

static inline lnorm_pair lnorm_two_product(double a, double b) { /* a * b exactly; an error of zero is +0 */
    double p = a * b;
#ifdef __FP_FAST_FMA
    lnorm_pair result = {p, fma(a, b, -p)};
#else
    double a_big = 0x8000001p0 * a, b_big = 0x8000001p0 * b; /* Veltkamp: upper 26 bits, lower 26 bits and a sign */
    double a_high = a_big - (a_big - a), b_high = b_big - (b_big - b);
    double a_low = a - a_high, b_low = b - b_high;
    lnorm_pair result = {p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low}; /* Dekker */
#endif
    return result;
}

static inline lnorm_pair lnorm_pair_add(lnorm_pair a, lnorm_pair b) {
    lnorm_pair sum = lnorm_two_sum(a.h, b.h);
    sum.l = (a.l + b.l) + sum.l;
    return sum;
}

static inline lnorm_pair lnorm_pair_negate(lnorm_pair a) {
    lnorm_pair result = {-a.h, -a.l};
    return result;
}

static inline lnorm_pair lnorm_pair_sub(lnorm_pair a, lnorm_pair b) {
    return lnorm_pair_add(a, lnorm_pair_negate(b));
}

static inline lnorm_pair lnorm_pair_mul(lnorm_pair a, lnorm_pair b) {
    lnorm_pair product = lnorm_two_product(a.h, b.h);
    product.l = (a.h * b.l + a.l * b.h) + product.l;
    return product;
}

static inline lnorm_pair lnorm_pair_quo(lnorm_pair a, double n) {
    double q = a.h / n;
    lnorm_pair product = lnorm_two_product(q, n);
    lnorm_pair result = {q, (((a.h - product.h) - product.l) + a.l) / n};
    return result;
}

/* The same sum with l at most half an ulp of h. Sums need it after a cancellation, which can leave h = 0 and all in l;
 * products and quotients of such pairs are near enough to it. */
static inline lnorm_pair lnorm_pair_norm(lnorm_pair a) {
    return lnorm_two_sum(a.h, a.l);
}

/* 1/sqrt(a) for a.h > 0: one Newton step on the exact residual of the f64 root leaves about 2^-103. */
static inline lnorm_pair lnorm_pair_reciprocal_root(lnorm_pair a) {
    lnorm_pair root = {1.0 / sqrt(a.h), 0.0};
    lnorm_pair square = lnorm_two_product(root.h, root.h), one = lnorm_two_product(a.h, square.h);
    double residual = ((1.0 - one.h) - one.l) - (a.h * square.l + a.l * square.h);
    if (root.h > 0.0) /* not where a is infinite */
        root.l = root.h * (0.5 * residual);
    return root;
}

static inline lnorm_pair lnorm_pair_times(lnorm_pair a, double power_of_two) {
    lnorm_pair result = {a.h * power_of_two, a.l * power_of_two};
    return result;
}

static inline double lnorm_flush(double a) {
    return fabs(a) < LNORM_TINY ? 0.0 : a; /* NaN stays */
}

static inline lnorm_pair lnorm_pair_flush(lnorm_pair a) { /* a as lnorm_pair_norm leaves it, or nearly */
    lnorm_pair zero = {0.0, 0.0};
    return fabs(a.h) < LNORM_TINY ? zero : a;
}

/* 2^e for -1022 <= e <= 1023. */
static inline double lnorm_power(int e) {
    return lnorm_f64_of_bits((uint64_t)(e + 1023) << 52);
}

/* a * 2^e for any e, rounded once. Downwards the first steps keep 53 bits of room: where one of them falls among the
 * subnormals, the steps still due take the value to 0, so nothing is rounded twice. */
static inline double lnorm_scale(double a, int e) {
    for (; e > 1023 && a - a == 0.0 && a != 0.0; e -= 1023)
        a *= 0x1p1023;
    for (; e < -1022 && a != 0.0; e += 969)
        a *= 0x1p-969;
    return a == 0.0 || a - a != 0.0 ? a : a * lnorm_power(e);
}

/* The exponent of the largest power of two that is not above |a|; 0 for what is not finite. */
static inline int lnorm_exponent(double a) {
    int biased = (int)(lnorm_bits_of_f64(a) >> 52) & 0x7ff;
    if (biased == 0x7ff)
        return 0;
    if (biased == 0)
        return a == 0.0 ? LNORM_NO_EXPONENT : lnorm_exponent(a * 0x1p54) - 54;
    return biased - 1023;
}

/* A significand from 1 to 2 and its exponent; zero and what is not finite stay as they are. */
static inline lnorm_scaled lnorm_scaled_of(double a) {
    uint64_t bits = lnorm_bits_of_f64(a), biased = bits >> 52 & 0x7ff;
    lnorm_scaled result = {{a, 0.0}, lnorm_exponent(a)};
    if (biased != 0 && biased != 0x7ff)
        result.p.h = lnorm_f64_of_bits((bits & ~((uint64_t)0x7ff << 52)) | (uint64_t)1023 << 52);
    else if (biased == 0 && a != 0.0)
        result.p.h = lnorm_scale(a, -result.e);
    return result;
}

static inline lnorm_scaled lnorm_scaled_pair(lnorm_pair p, int e) {
    lnorm_scaled result = {p, p.h == 0.0 && p.l == 0.0 ? LNORM_NO_EXPONENT : e};
    return result;
}

static inline lnorm_scaled lnorm_scaled_mul(lnorm_scaled a, lnorm_scaled b) {
    return lnorm_scaled_pair(lnorm_pair_mul(a.p, b.p), a.e + b.e);
}

/* a / 2^k as a pair, for k >= a.e; 0 below LNORM_TINY. */
static inline lnorm_pair lnorm_scaled_at(lnorm_scaled a, int k) {
    int shift = a.e - k;
    return lnorm_pair_flush(lnorm_pair_times(a.p, lnorm_power(shift < -1000 ? -1000 : shift)));
}

static inline double lnorm_scaled_round(lnorm_scaled a) {
    return lnorm_scale(a.p.h + a.p.l, a.e);
}

/* The sum of a few terms, rounded once. A term that is not finite decides by its high part. */
static inline double lnorm_scaled_sum(const lnorm_scaled *term, int count) {
    int k = term[0].e;
    for (int i = 1; i < count; i++)
        k = term[i].e > k ? term[i].e : k;
    lnorm_pair sum = lnorm_scaled_at(term[0], k);
    for (int i = 1; i < count; i++)
        sum = lnorm_pair_add(sum, lnorm_scaled_at(term[i], k));
    return sum.h - sum.h == 0.0 ? lnorm_scale(sum.h + sum.l, k) : sum.h;
}

/* The tree of arithmetic.h with pairs. */
typedef struct lnorm_pair_tree {
    lnorm_pair level[63];
    uint64_t count;
} lnorm_pair_tree;

static inline void lnorm_pair_tree_clear(lnorm_pair_tree *tree) {
    tree->count = 0;
}

static inline void lnorm_pair_tree_push(lnorm_pair_tree *tree, lnorm_pair term) {
    int k = 0;
    for (uint64_t count = tree->count; count & 1; count >>= 1)
        term = lnorm_pair_add(tree->level[k++], term);
    tree->level[k] = term;
    tree->count++;
}

static inline lnorm_pair lnorm_pair_tree_total(const lnorm_pair_tree *tree) {
    lnorm_pair total = {0.0, 0.0};
    int k = 0, started = 0;
    for (uint64_t count = tree->count; count; count >>= 1, k++)
        if (count & 1) {
            total = started ? lnorm_pair_add(tree->level[k], total) : tree->level[k];
            started = 1;
        }
    return total;
}

/* Sums a block of at most LNORM_BLOCK terms in lanes and pushes it. Lanes that no term reaches are +0 and adding them
 * changes nothing, so they are left out. */
static inline void lnorm_pair_tree_block(lnorm_pair_tree *tree, const lnorm_pair *term, int count) {
    lnorm_pair lane[LNORM_LANES] = {{0.0, 0.0}};
    for (int i = 0; i < count; i++)
        lane[i % LNORM_LANES] = lnorm_pair_add(lane[i % LNORM_LANES], term[i]);
    for (int half = LNORM_LANES / 2; half; half /= 2)
        for (int k = 0; k < half && k + half < count; k++)
            lane[k] = lnorm_pair_add(lane[k], lane[k + half]);
    lnorm_pair_tree_push(tree, lane[0]);
}

#endif
