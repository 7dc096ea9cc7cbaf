/* One f64 at a time, plain C: what every machine has. The operations are described in vec_avx2.h. */
#include "../access.h"
#include <math.h>

#define VD_WIDTH 1
#define VD_UNROLL /* none: 16 lanes do not fit the registers, and compilers may pair them */
#define VD_FEW_COPIES 0

typedef double vd;

LNORM_INLINE vd vd_zero(void) {
    return 0.0;
}

LNORM_INLINE vd vd_set1(double a) {
    return a;
}

LNORM_INLINE vd vd_add(vd a, vd b) {
    return a + b;
}

LNORM_INLINE vd vd_sub(vd a, vd b) {
    return a - b;
}

LNORM_INLINE vd vd_mul(vd a, vd b) {
    return a * b;
}

LNORM_INLINE vd vd_and(vd a, vd b) {
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x &= y;
    memcpy(&a, &x, sizeof a);
    return a;
}

LNORM_INLINE vd vd_div(vd a, vd b) {
    return a / b;
}

LNORM_INLINE vd vd_drop_negative(vd a) {
    return a < 0.0 ? 0.0 : a;
}

LNORM_INLINE vd vd_reciprocal_root(vd a) {
    return a == 0.0 ? 0.0 : 1.0 / sqrt(a);
}

LNORM_INLINE vd vd_square_add(vd sum, vd a) {
    double square = a * a;
    return sum + square;
}

LNORM_INLINE vd vd_keep(vd a, int64_t n) {
    return n > 0 ? a : 0.0;
}

LNORM_INLINE double vd_fold(vd lane[LNORM_LANES]) {
    return lnorm_fold(lane);
}

LNORM_INLINE vd vd_fold_rows(vd row[VD_WIDTH]) {
    return row[0];
}

LNORM_INLINE vd vd_abs(vd a) {
    return fabs(a);
}

LNORM_INLINE vd vd_max(vd a, vd b) {
    return a > b ? a : b;
}

LNORM_INLINE vd vd_min(vd a, vd b) {
    return a < b ? a : b;
}

LNORM_INLINE vd vd_power(vd a) {
    return lnorm_f64_of_bits(lnorm_bits_of_f64(a) & (uint64_t)0x7ff << 52);
}

LNORM_INLINE vd vd_zero_below(vd a, vd m, vd limit) {
    return m < limit ? 0.0 : a;
}

LNORM_INLINE int vd_differ(vd a, vd b) {
    return a != b;
}

LNORM_INLINE vd vd_load_f64(const void *at) {
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

LNORM_INLINE vd vd_load_f32(const void *at) {
    float value;
    memcpy(&value, at, sizeof value);
    return (double)value;
}

LNORM_INLINE vd vd_load_f16(const void *at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return lnorm_widen_f16(half);
}

LNORM_INLINE vd vd_load_bf16(const void *at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return lnorm_widen_bf16(half);
}

LNORM_INLINE void vd_store_f64(void *at, vd a) {
    memcpy(at, &a, sizeof a);
}

LNORM_INLINE void vd_store_f32(void *at, vd a) {
    float value = (float)a;
    memcpy(at, &value, sizeof value);
}

LNORM_INLINE void vd_store_f16(void *at, vd a) {
    uint16_t half = lnorm_round_f16(a);
    memcpy(at, &half, sizeof half);
}

LNORM_INLINE void vd_store_bf16(void *at, vd a) {
    uint16_t half = lnorm_round_bf16(a);
    memcpy(at, &half, sizeof half);
}

#include "pairs_of_vectors.h"

/* -- Squares: nothing to gain -------------------------------------------------------------------------------------- */

#define VD_SQUARE 4

LNORM_INLINE void vd_turn_32(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 4; i++)
            memcpy(to + k * to_pitch + i * 4, from + i * from_pitch + k * 4, 4);
}

LNORM_INLINE void vd_turn_16(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 4; i++)
            memcpy(to + k * to_pitch + i * 2, from + i * from_pitch + k * 2, 2);
}

LNORM_INLINE void vd_turn_in(vd column[4], const char *from, int64_t pitch) {
    (void)pitch;
    for (int k = 0; k < 4; k++)
        column[k] = vd_load_f32(from + 4 * k);
}

LNORM_INLINE void vd_turn_out(char *to, int64_t pitch, const vd column[4], int64_t n) {
    (void)pitch;
    for (int k = 0; k < n; k++)
        vd_store_f32(to + 4 * k, column[k]);
}

/* A part of one element is no element: these are here for elements.inc to compile. */

LNORM_INLINE vd vd_load_f64_part(const void *at, int64_t n) {
    (void)at, (void)n;
    return vd_zero();
}

LNORM_INLINE void vd_store_f64_part(void *at, int64_t n, vd a) {
    (void)at, (void)n, (void)a;
}

LNORM_INLINE vd vd_load_f32_part(const void *at, int64_t n) {
    (void)at, (void)n;
    return vd_zero();
}

LNORM_INLINE void vd_stream_f32(void *at, vd a) {
    vd_store_f32(at, a);
}

LNORM_INLINE void vd_store_f32_part(void *at, int64_t n, vd a) {
    (void)at, (void)n, (void)a;
}

LNORM_INLINE vd vd_load_f16_part(const void *at, int64_t n) {
    (void)at, (void)n;
    return vd_zero();
}

LNORM_INLINE void vd_store_f16_part(void *at, int64_t n, vd a) {
    (void)at, (void)n, (void)a;
}

LNORM_INLINE vd vd_load_bf16_part(const void *at, int64_t n) {
    (void)at, (void)n;
    return vd_zero();
}

LNORM_INLINE void vd_store_bf16_part(void *at, int64_t n, vd a) {
    (void)at, (void)n, (void)a;
}

/* -- f32 ----------------------------------------------------------------------------------------------------------- */

#define VF_WIDTH 1
#define VF_ROUNDS_BF16 0
#define VF_STREAMS_16 0
#define VF_BRACKETS 0

typedef float vf;

LNORM_INLINE vf vf_set1(float a) {
    return a;
}

/* The assignments round where C evaluates in a wider type. */
LNORM_INLINE vf vf_add(vf a, vf b) {
    vf sum = a + b;
    return sum;
}

LNORM_INLINE vf vf_sub(vf a, vf b) {
    vf difference = a - b;
    return difference;
}

LNORM_INLINE vf vf_mul(vf a, vf b) {
    vf product = a * b;
    return product;
}

LNORM_INLINE void vf_widen(vf a, vd wide[1]) {
    wide[0] = (double)a;
}

LNORM_INLINE vf vf_load_f32(const void *at) {
    float value;
    memcpy(&value, at, sizeof value);
    return value;
}

LNORM_INLINE vf vf_load_f16(const void *at) {
    return (float)vd_load_f16(at);
}

LNORM_INLINE vf vf_load_bf16(const void *at) {
    return (float)vd_load_bf16(at);
}

LNORM_INLINE void vf_store_f32(void *at, vf a) {
    memcpy(at, &a, sizeof a);
}

LNORM_INLINE void vf_stream_f32(void *at, vf a) {
    vf_store_f32(at, a);
}

LNORM_INLINE void vf_store_f16(void *at, vf a) {
    vd_store_f16(at, (double)a);
}

LNORM_INLINE void vf_store_bf16(void *at, vf a) {
    vd_store_bf16(at, (double)a);
}

LNORM_INLINE void vf_stream_f16(void *at, vf a) {
    vf_store_f16(at, a);
}

LNORM_INLINE void vf_stream_bf16(void *at, vf a) {
    vf_store_bf16(at, a);
}
