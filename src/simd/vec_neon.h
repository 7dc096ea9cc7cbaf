/* Two f64 at a time: the vectors of AArch64, which every such machine has. The operations are described in
 * vec_avx2.h. A part of a vector is always one element. Memory is accessed as bytes: no alignment is assumed. */
#include "../access.h"
#include <arm_neon.h>

#define VD_WIDTH 2
#define VD_UNROLL LNORM_UNROLL
#define VD_FEW_COPIES 0

typedef float64x2_t vd;

LNORM_INLINE vd vd_zero(void) {
    return vdupq_n_f64(0.0);
}

LNORM_INLINE vd vd_set1(double a) {
    return vdupq_n_f64(a);
}

LNORM_INLINE vd vd_add(vd a, vd b) {
    return vaddq_f64(a, b);
}

LNORM_INLINE vd vd_sub(vd a, vd b) {
    return vsubq_f64(a, b);
}

LNORM_INLINE vd vd_mul(vd a, vd b) {
    return vmulq_f64(a, b);
}

LNORM_INLINE vd vd_and(vd a, vd b) {
    return vreinterpretq_f64_u64(vandq_u64(vreinterpretq_u64_f64(a), vreinterpretq_u64_f64(b)));
}

LNORM_INLINE vd vd_div(vd a, vd b) {
    return vdivq_f64(a, b);
}

LNORM_INLINE vd vd_drop_negative(vd a) {
    return vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(a), vcltzq_f64(a)));
}

LNORM_INLINE vd vd_reciprocal_root(vd a) {
    vd root = vdivq_f64(vdupq_n_f64(1.0), vsqrtq_f64(a));
    return vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(root), vceqzq_f64(a)));
}

/* The product is exact, so fused or not is one. */
LNORM_INLINE vd vd_square_add(vd sum, vd a) {
    return vfmaq_f64(sum, a, a);
}

LNORM_INLINE vd vd_keep(vd a, int64_t n) {
    int64x2_t index = vcombine_s64(vcreate_s64(0), vcreate_s64(1));
    uint64x2_t mask = vcgtq_s64(vdupq_n_s64(n), index);
    return vreinterpretq_f64_u64(vandq_u64(vreinterpretq_u64_f64(a), mask));
}

LNORM_INLINE double vd_fold(vd lane[LNORM_LANES / VD_WIDTH]) {
    vd even = vaddq_f64(vaddq_f64(lane[0], lane[4]), vaddq_f64(lane[2], lane[6]));
    vd odd = vaddq_f64(vaddq_f64(lane[1], lane[5]), vaddq_f64(lane[3], lane[7]));
    return vpaddd_f64(vaddq_f64(even, odd));
}

LNORM_INLINE vd vd_fold_rows(vd row[VD_WIDTH]) {
    return vpaddq_f64(row[0], row[1]);
}

/* -- For the wide arithmetic --------------------------------------------------------------------------------------- */

#define VD_FMA 1

LNORM_INLINE vd vd_fma(vd a, vd b, vd c) {
    return vfmaq_f64(c, a, b);
}

LNORM_INLINE vd vd_fms(vd a, vd b, vd c) {
    return vfmaq_f64(vnegq_f64(c), a, b);
}

LNORM_INLINE vd vd_abs(vd a) {
    return vabsq_f64(a);
}

LNORM_INLINE vd vd_max(vd a, vd b) {
    return vmaxq_f64(a, b);
}

LNORM_INLINE vd vd_min(vd a, vd b) {
    return vminq_f64(a, b);
}

LNORM_INLINE vd vd_power(vd a) {
    return vreinterpretq_f64_u64(vandq_u64(vreinterpretq_u64_f64(a), vdupq_n_u64((uint64_t)0x7ff << 52)));
}

LNORM_INLINE vd vd_zero_below(vd a, vd m, vd limit) {
    return vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(a), vcltq_f64(m, limit)));
}

LNORM_INLINE int vd_differ(vd a, vd b) {
    uint64x2_t same = vceqq_f64(a, b);
    return !(vgetq_lane_u64(same, 0) & vgetq_lane_u64(same, 1));
}

/* -- Loads -------------------------------------------------------------------------------------------------------- */

LNORM_INLINE vd vd_load_f64(const void *at) {
    return vreinterpretq_f64_u8(vld1q_u8((const uint8_t *)at));
}

LNORM_INLINE vd vd_load_f64_part(const void *at, int64_t n) {
    (void)n;
    return vreinterpretq_f64_u8(vcombine_u8(vld1_u8((const uint8_t *)at), vdup_n_u8(0)));
}

LNORM_INLINE vd vd_load_f32(const void *at) {
    return vcvt_f64_f32(vreinterpret_f32_u8(vld1_u8((const uint8_t *)at)));
}

LNORM_INLINE vd vd_load_f32_part(const void *at, int64_t n) {
    uint32_t bits;
    (void)n;
    memcpy(&bits, at, sizeof bits);
    return vcvt_f64_f32(vreinterpret_f32_u64(vcreate_u64(bits)));
}

/* Two 16-bit elements, or the first one of them. */
LNORM_INLINE uint16x4_t vd_halves(const void *at) {
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return vcreate_u16(bits);
}

LNORM_INLINE uint16x4_t vd_halves_part(const void *at, int64_t n) {
    uint16_t bits;
    (void)n;
    memcpy(&bits, at, sizeof bits);
    return vcreate_u16(bits);
}

LNORM_INLINE vd vd_widen_f16(uint16x4_t halves) {
    return vcvt_f64_f32(vget_low_f32(vcvt_f32_f16(vreinterpret_f16_u16(halves))));
}

LNORM_INLINE vd vd_widen_bf16(uint16x4_t halves) {
    return vcvt_f64_f32(vreinterpret_f32_u32(vget_low_u32(vshll_n_u16(halves, 16))));
}

LNORM_INLINE vd vd_load_f16(const void *at) {
    return vd_widen_f16(vd_halves(at));
}

LNORM_INLINE vd vd_load_f16_part(const void *at, int64_t n) {
    return vd_widen_f16(vd_halves_part(at, n));
}

LNORM_INLINE vd vd_load_bf16(const void *at) {
    return vd_widen_bf16(vd_halves(at));
}

LNORM_INLINE vd vd_load_bf16_part(const void *at, int64_t n) {
    return vd_widen_bf16(vd_halves_part(at, n));
}

/* -- Stores ------------------------------------------------------------------------------------------------------- */

LNORM_INLINE void vd_store_f64(void *at, vd a) {
    vst1q_u8((uint8_t *)at, vreinterpretq_u8_f64(a));
}

LNORM_INLINE void vd_stream_f64(void *at, vd a) {
    vd_store_f64(at, a);
}

LNORM_INLINE void vd_store_f64_part(void *at, int64_t n, vd a) {
    (void)n;
    vst1_u8((uint8_t *)at, vreinterpret_u8_f64(vget_low_f64(a)));
}

LNORM_INLINE void vd_store_f32(void *at, vd a) {
    vst1_u8((uint8_t *)at, vreinterpret_u8_f32(vcvt_f32_f64(a)));
}

LNORM_INLINE void vd_stream_f32(void *at, vd a) {
    vd_store_f32(at, a);
}

LNORM_INLINE void vd_store_f32_part(void *at, int64_t n, vd a) {
    float value = vget_lane_f32(vcvt_f32_f64(a), 0);
    (void)n;
    memcpy(at, &value, sizeof value);
}

/* The first two of four halves, or the first one. */
LNORM_INLINE void vd_put_halves(void *at, uint16x4_t halves) {
    uint32_t bits = vget_lane_u32(vreinterpret_u32_u16(halves), 0);
    memcpy(at, &bits, sizeof bits);
}

LNORM_INLINE void vd_put_halves_part(void *at, int64_t n, uint16x4_t halves) {
    uint16_t bits = vget_lane_u16(halves, 0);
    (void)n;
    memcpy(at, &bits, sizeof bits);
}

/* To f32, rounded to odd, which this machine has an instruction for; then to f16 to nearest even. 24 bits are two more
 * than f16's 11 and to spare, so the second rounding decides as one would. */
LNORM_INLINE uint16x4_t vd_round_f16(vd a) {
    float32x2_t odd = vcvtx_f32_f64(a);
    return vreinterpret_u16_f16(vcvt_f16_f32(vcombine_f32(odd, odd)));
}

/* To bf16's 8 significant bits on the f64's own bits, to nearest even, then exactly to f32. Not for what vd_unusual
 * finds. */
LNORM_INLINE uint16x4_t vd_round_bf16(vd a) {
    const uint64x2_t below_half = vdupq_n_u64(0xfffffffffff), dropped = vdupq_n_u64(0x1fffffffffff);
    uint64x2_t bits = vreinterpretq_u64_f64(a);
    uint64x2_t even = vandq_u64(vshrq_n_u64(bits, 45), vdupq_n_u64(1));
    uint64x2_t up = vaddq_u64(bits, vaddq_u64(below_half, even));
    uint32x2_t f32 = vreinterpret_u32_f32(vcvt_f32_f64(vreinterpretq_f64_u64(vbicq_u64(up, dropped))));
    return vshrn_n_u32(vcombine_u32(f32, f32), 16);
}

/* Some lane is a NaN, or is not zero but below 2^-126. */
LNORM_INLINE int vd_unusual(vd a) {
    uint64x2_t usual = vcgeq_f64(vabsq_f64(a), vdupq_n_f64(0x1p-126));
    usual = vorrq_u64(usual, vceqzq_f64(a));
    return !(vgetq_lane_u64(usual, 0) & vgetq_lane_u64(usual, 1));
}

/* Rare, and therefore out of the way. */
LNORM_OUT_OF_LINE static void vd_store_unusual_bf16(void *at, int64_t n, const vd *a) {
    double lane[VD_WIDTH];
    vd_store_f64(lane, *a);
    for (int64_t k = 0; k < n; k++) {
        uint16_t half = lnorm_round_bf16(lane[k]);
        memcpy((char *)at + 2 * k, &half, sizeof half);
    }
}

LNORM_INLINE void vd_store_f16(void *at, vd a) {
    vd_put_halves(at, vd_round_f16(a));
}

LNORM_INLINE void vd_store_f16_part(void *at, int64_t n, vd a) {
    vd_put_halves_part(at, n, vd_round_f16(a));
}

LNORM_INLINE void vd_store_bf16(void *at, vd a) {
    if (vd_unusual(a))
        vd_store_unusual_bf16(at, VD_WIDTH, &a);
    else
        vd_put_halves(at, vd_round_bf16(a));
}

LNORM_INLINE void vd_store_bf16_part(void *at, int64_t n, vd a) {
    vd_store_unusual_bf16(at, n, &a);
}

#include "pairs_of_vectors.h"

/* -- Squares ------------------------------------------------------------------------------------------------------ */

LNORM_INLINE uint32x4_t vd_row_32(const char *at) {
    return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)at));
}

LNORM_INLINE void vd_put_row_32(char *at, uint64x2_t row) {
    vst1q_u8((uint8_t *)at, vreinterpretq_u8_u64(row));
}

#define VD_SQUARE 4

LNORM_INLINE void vd_turn_32(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {
    uint32x4_t a = vd_row_32(from), b = vd_row_32(from + from_pitch);
    uint32x4_t c = vd_row_32(from + 2 * from_pitch), d = vd_row_32(from + 3 * from_pitch);
    uint64x2_t ab_low = vreinterpretq_u64_u32(vzip1q_u32(a, b)), ab_high = vreinterpretq_u64_u32(vzip2q_u32(a, b));
    uint64x2_t cd_low = vreinterpretq_u64_u32(vzip1q_u32(c, d)), cd_high = vreinterpretq_u64_u32(vzip2q_u32(c, d));
    vd_put_row_32(to, vzip1q_u64(ab_low, cd_low));
    vd_put_row_32(to + to_pitch, vzip2q_u64(ab_low, cd_low));
    vd_put_row_32(to + 2 * to_pitch, vzip1q_u64(ab_high, cd_high));
    vd_put_row_32(to + 3 * to_pitch, vzip2q_u64(ab_high, cd_high));
}

LNORM_INLINE uint16x4_t vd_row_16(const char *at) {
    return vreinterpret_u16_u8(vld1_u8((const uint8_t *)at));
}

LNORM_INLINE void vd_put_row_16(char *at, uint32x2_t row) {
    vst1_u8((uint8_t *)at, vreinterpret_u8_u32(row));
}

LNORM_INLINE void vd_turn_16(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {
    uint16x4_t a = vd_row_16(from), b = vd_row_16(from + from_pitch);
    uint16x4_t c = vd_row_16(from + 2 * from_pitch), d = vd_row_16(from + 3 * from_pitch);
    uint32x2_t ab_low = vreinterpret_u32_u16(vzip1_u16(a, b)), ab_high = vreinterpret_u32_u16(vzip2_u16(a, b));
    uint32x2_t cd_low = vreinterpret_u32_u16(vzip1_u16(c, d)), cd_high = vreinterpret_u32_u16(vzip2_u16(c, d));
    vd_put_row_16(to, vzip1_u32(ab_low, cd_low));
    vd_put_row_16(to + to_pitch, vzip2_u32(ab_low, cd_low));
    vd_put_row_16(to + 2 * to_pitch, vzip1_u32(ab_high, cd_high));
    vd_put_row_16(to + 3 * to_pitch, vzip2_u32(ab_high, cd_high));
}

LNORM_INLINE void vd_turn_in(vd column[4], const char *from, int64_t pitch) {
    float32x4_t row = vreinterpretq_f32_u32(vd_row_32(from)), next = vreinterpretq_f32_u32(vd_row_32(from + pitch));
    float32x4_t low = vzip1q_f32(row, next), high = vzip2q_f32(row, next);
    column[0] = vcvt_f64_f32(vget_low_f32(low));
    column[1] = vcvt_high_f64_f32(low);
    column[2] = vcvt_f64_f32(vget_low_f32(high));
    column[3] = vcvt_high_f64_f32(high);
}

LNORM_INLINE void vd_turn_out(char *to, int64_t pitch, const vd column[4], int64_t n) {
    float32x4_t even = vcvt_high_f32_f64(vcvt_f32_f64(column[0]), column[2]);
    float32x4_t odd = vcvt_high_f32_f64(vcvt_f32_f64(column[1]), column[3]);
    float32x4_t row = vtrn1q_f32(even, odd), next = vtrn2q_f32(even, odd);
    uint8_t last[16];
    vst1q_u8((uint8_t *)to, vreinterpretq_u8_f32(row));
    if (n == 4) {
        vst1q_u8((uint8_t *)(to + pitch), vreinterpretq_u8_f32(next));
        return;
    }
    vst1q_u8(last, vreinterpretq_u8_f32(next));
    memcpy(to + pitch, last, (size_t)n * 4);
}

/* -- f32 ----------------------------------------------------------------------------------------------------------- */

#define VF_WIDTH 4
#define VF_ROUNDS_BF16 1
#define VF_STREAMS_16 0
#define VF_BRACKETS 0

typedef float32x4_t vf;

LNORM_INLINE vf vf_set1(float a) {
    return vdupq_n_f32(a);
}

LNORM_INLINE vf vf_add(vf a, vf b) {
    return vaddq_f32(a, b);
}

LNORM_INLINE vf vf_sub(vf a, vf b) {
    return vsubq_f32(a, b);
}

LNORM_INLINE vf vf_mul(vf a, vf b) {
    return vmulq_f32(a, b);
}

LNORM_INLINE void vf_widen(vf a, vd wide[2]) {
    wide[0] = vcvt_f64_f32(vget_low_f32(a));
    wide[1] = vcvt_high_f64_f32(a);
}

LNORM_INLINE vf vf_load_f32(const void *at) {
    return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)at));
}

LNORM_INLINE vf vf_load_f16(const void *at) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t *)at)));
}

LNORM_INLINE vf vf_load_bf16(const void *at) {
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8((const uint8_t *)at)), 16));
}

LNORM_INLINE void vf_store_f32(void *at, vf a) {
    vst1q_u8((uint8_t *)at, vreinterpretq_u8_f32(a));
}

LNORM_INLINE void vf_stream_f32(void *at, vf a) {
    vf_store_f32(at, a);
}

LNORM_INLINE void vf_store_f16(void *at, vf a) {
    vst1_u8((uint8_t *)at, vreinterpret_u8_f16(vcvt_f16_f32(a)));
}

/* As in vec_avx2.h. */
LNORM_INLINE void vf_store_bf16(void *at, vf a) {
    uint32x4_t bits = vreinterpretq_u32_f32(a), number = vceqq_f32(a, a);
    uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t up = vaddq_u32(bits, vaddq_u32(even, vdupq_n_u32(0x7fff)));
    vst1_u8((uint8_t *)at, vreinterpret_u8_u16(vshrn_n_u32(vbslq_u32(number, up, bits), 16)));
}

LNORM_INLINE void vf_stream_f16(void *at, vf a) {
    vf_store_f16(at, a);
}

LNORM_INLINE void vf_stream_bf16(void *at, vf a) {
    vf_store_bf16(at, a);
}
