/* Eight f64 at a time: AVX-512 F, BW, DQ and VL, and F16C. The operations, and why the roundings are right, are
 * described in vec_avx2.h. */
#include "../access.h"
#include <math.h>

#if defined LNORM_SIMDE
#include "simde_avx512.h"
#else
#include <immintrin.h>
#define LNORM_TARGET_PUSHED 1 /* table.inc ends it */
#if defined __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,f16c")
#endif
#endif

#define VD_WIDTH 8
#define VD_TWO_BLOCKS 1
#define VD_UNROLL LNORM_UNROLL
#define VD_FEW_COPIES 0

typedef __m512d vd;

LNORM_INLINE vd vd_zero(void) {
    return _mm512_setzero_pd();
}

LNORM_INLINE vd vd_set1(double a) {
    return _mm512_set1_pd(a);
}

LNORM_INLINE vd vd_add(vd a, vd b) {
    return _mm512_add_pd(a, b);
}

LNORM_INLINE vd vd_sub(vd a, vd b) {
    return _mm512_sub_pd(a, b);
}

LNORM_INLINE vd vd_mul(vd a, vd b) {
    return _mm512_mul_pd(a, b);
}

LNORM_INLINE vd vd_and(vd a, vd b) {
    return _mm512_and_pd(a, b);
}

LNORM_INLINE vd vd_div(vd a, vd b) {
    return _mm512_div_pd(a, b);
}

LNORM_INLINE vd vd_drop_negative(vd a) {
    return _mm512_mask_mov_pd(a, _mm512_cmp_pd_mask(a, vd_zero(), _CMP_LT_OQ), vd_zero());
}

LNORM_INLINE vd vd_reciprocal_root(vd a) {
    vd root = _mm512_div_pd(vd_set1(1.0), _mm512_sqrt_pd(a));
    return _mm512_mask_mov_pd(root, _mm512_cmp_pd_mask(a, vd_zero(), _CMP_EQ_OQ), vd_zero());
}

/* The one fused operation: a has at most 24 significant bits, so a*a is exact. */
LNORM_INLINE vd vd_square_add(vd sum, vd a) {
    return _mm512_fmadd_pd(a, a, sum);
}

/* The first n lanes, 0 <= n <= 8. */
LNORM_INLINE uint8_t vd_mask(int64_t n) {
    return (uint8_t)((1u << n) - 1);
}

LNORM_INLINE vd vd_keep(vd a, int64_t n) {
    return _mm512_maskz_mov_pd(vd_mask(n < 0 ? 0 : n > VD_WIDTH ? VD_WIDTH : n), a);
}

LNORM_INLINE double vd_fold(vd lane[LNORM_LANES / VD_WIDTH]) {
    vd eight = _mm512_add_pd(lane[0], lane[1]);
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* Four such folds: sums of a and b, of c and d, side by side, then of all. */
LNORM_INLINE void vd_fold_four(const vd a[2], const vd b[2], const vd c[2], const vd d[2], double sum[4]) {
    vd p = _mm512_add_pd(a[0], a[1]), q = _mm512_add_pd(b[0], b[1]);
    vd r = _mm512_add_pd(c[0], c[1]), s = _mm512_add_pd(d[0], d[1]);
    p = _mm512_add_pd(_mm512_shuffle_f64x2(p, q, 0x44), _mm512_shuffle_f64x2(p, q, 0xee));
    r = _mm512_add_pd(_mm512_shuffle_f64x2(r, s, 0x44), _mm512_shuffle_f64x2(r, s, 0xee));
    p = _mm512_add_pd(_mm512_shuffle_f64x2(p, r, 0x88), _mm512_shuffle_f64x2(p, r, 0xdd));
    p = _mm512_add_pd(p, _mm512_permute_pd(p, 0x55));
    _mm256_storeu_pd(sum, _mm512_castpd512_pd256(_mm512_maskz_compress_pd(0x55, p)));
}

/* Quarters 0 and 2 of both, and 1 and 3: what is added to each other's */
LNORM_INLINE vd vd_add_quarters(vd a, vd b) {
    return _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x88), _mm512_shuffle_f64x2(a, b, 0xdd));
}

LNORM_INLINE vd vd_add_halves(vd a, vd b) {
    return _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x44), _mm512_shuffle_f64x2(a, b, 0xee));
}

LNORM_INLINE vd vd_fold_rows(vd row[VD_WIDTH]) {
    vd even = vd_add_quarters(vd_add_halves(row[0], row[2]), vd_add_halves(row[4], row[6]));
    vd odd = vd_add_quarters(vd_add_halves(row[1], row[3]), vd_add_halves(row[5], row[7]));
    return _mm512_add_pd(_mm512_unpacklo_pd(even, odd), _mm512_unpackhi_pd(even, odd));
}

/* -- For the wide arithmetic --------------------------------------------------------------------------------------- */

#define VD_FMA 1

LNORM_INLINE vd vd_fma(vd a, vd b, vd c) {
    return _mm512_fmadd_pd(a, b, c);
}

LNORM_INLINE vd vd_fms(vd a, vd b, vd c) {
    return _mm512_fmsub_pd(a, b, c);
}

LNORM_INLINE vd vd_abs(vd a) {
    return _mm512_castsi512_pd(_mm512_andnot_si512(_mm512_castpd_si512(vd_set1(-0.0)), _mm512_castpd_si512(a)));
}

LNORM_INLINE vd vd_max(vd a, vd b) {
    return _mm512_max_pd(a, b);
}

LNORM_INLINE vd vd_min(vd a, vd b) {
    return _mm512_min_pd(a, b);
}

LNORM_INLINE vd vd_power(vd a) {
    __m512i field = _mm512_castpd_si512(vd_set1((double)INFINITY));
    return _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(a), field));
}

LNORM_INLINE vd vd_zero_below(vd a, vd m, vd limit) {
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(m, limit, _CMP_NLT_UQ), a);
}

LNORM_INLINE int vd_differ(vd a, vd b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ);
}

/* -- Loads -------------------------------------------------------------------------------------------------------- */

LNORM_INLINE vd vd_load_f64(const void *at) {
    return _mm512_loadu_pd(at);
}

LNORM_INLINE vd vd_load_f64_part(const void *at, int64_t n) {
    return _mm512_maskz_loadu_pd(vd_mask(n), at);
}

LNORM_INLINE vd vd_load_f32(const void *at) {
    return _mm512_cvtps_pd(_mm256_loadu_ps((const float *)at));
}

LNORM_INLINE vd vd_load_f32_part(const void *at, int64_t n) {
    return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(vd_mask(n), at));
}

/* Eight 16-bit elements, or the first n of them. */
LNORM_INLINE __m128i vd_halves(const void *at) {
    return _mm_loadu_si128((const __m128i *)at);
}

LNORM_INLINE __m128i vd_halves_part(const void *at, int64_t n) {
    return _mm_maskz_loadu_epi16(vd_mask(n), at);
}

LNORM_INLINE vd vd_widen_f16(__m128i halves) {
    return _mm512_cvtps_pd(_mm256_cvtph_ps(halves));
}

LNORM_INLINE vd vd_widen_bf16(__m128i halves) {
    return _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)));
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
    _mm512_storeu_pd(at, a);
}

LNORM_INLINE void vd_stream_f64(void *at, vd a) {
    _mm512_stream_ps((float *)at, _mm512_castpd_ps(a));
}

LNORM_INLINE void vd_store_f64_part(void *at, int64_t n, vd a) {
    _mm512_mask_storeu_pd(at, vd_mask(n), a);
}

LNORM_INLINE void vd_store_f32(void *at, vd a) {
    _mm256_storeu_ps((float *)at, _mm512_cvtpd_ps(a));
}

LNORM_INLINE void vd_stream_f32(void *at, vd a) {
    _mm256_stream_ps((float *)at, _mm512_cvtpd_ps(a));
}

LNORM_INLINE void vd_store_f32_part(void *at, int64_t n, vd a) {
    _mm256_mask_storeu_ps(at, vd_mask(n), _mm512_cvtpd_ps(a));
}

LNORM_INLINE void vd_put_halves(void *at, __m128i halves) {
    _mm_storeu_si128((__m128i *)at, halves);
}

LNORM_INLINE void vd_put_halves_part(void *at, int64_t n, __m128i halves) {
    _mm_mask_storeu_epi16(at, vd_mask(n), halves);
}

LNORM_INLINE __m512 vd_both_f32(__m256 a, __m256 b) {
    return _mm512_castpd_ps(_mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_castps_pd(a)), _mm256_castps_pd(b), 1));
}

LNORM_INLINE __m256 vd_toward_zero(vd a) {
    return _mm512_cvt_roundpd_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

LNORM_INLINE uint8_t vd_inexact(vd a) {
    return _mm512_test_epi64_mask(_mm512_castpd_si512(a), _mm512_set1_epi64(0x1fffffff));
}

/* To odd (vec_avx2.h), by rounding toward zero and setting the last bit where something was dropped. */
LNORM_INLINE __m256i vd_round_pair_f16(vd a, vd b) {
    uint16_t inexact = (uint16_t)_mm512_kunpackb(vd_inexact(b), vd_inexact(a));
    __m512i bits = _mm512_castps_si512(vd_both_f32(vd_toward_zero(a), vd_toward_zero(b)));
    bits = _mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1));
    return _mm512_cvtps_ph(_mm512_castsi512_ps(bits), _MM_FROUND_TO_NEAREST_INT);
}

LNORM_INLINE __m128i vd_round_f16(vd a) {
    return _mm256_castsi256_si128(vd_round_pair_f16(a, a));
}

LNORM_INLINE void vd_store_f16(void *at, vd a) {
    vd_put_halves(at, vd_round_f16(a));
}

LNORM_INLINE void vd_store_f16_part(void *at, int64_t n, vd a) {
    vd_put_halves_part(at, n, vd_round_f16(a));
}

/* Rare, and therefore out of the way. */
LNORM_OUT_OF_LINE static void vd_store_slowly_bf16(void *at, int64_t n, vd a) {
    double lane[VD_WIDTH];
    vd_store_f64(lane, a);
    for (int64_t k = 0; k < n; k++) {
        uint16_t half = lnorm_round_bf16(lane[k]);
        memcpy((char *)at + 2 * k, &half, sizeof half);
    }
}

LNORM_INLINE void vd_store_bf16_part(void *at, int64_t n, vd a) {
    __m256 f = _mm512_cvtpd_ps(a);
    __m256i up = _mm256_add_epi32(_mm256_castps_si256(f), _mm256_set1_epi32(0x8000));
    __m256i halfway = _mm256_cmpeq_epi32(_mm256_slli_epi32(up, 16), _mm256_setzero_si256());
    __m256 unusual = _mm256_or_ps(_mm256_castsi256_ps(halfway), _mm256_cmp_ps(f, f, _CMP_UNORD_Q));
    if (_mm256_movemask_ps(unusual)) {
        vd_store_slowly_bf16(at, n, a);
    } else {
        __m256i high = _mm256_srli_epi32(up, 16);
        __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
        if (n < VD_WIDTH)
            vd_put_halves_part(at, n, halves);
        else
            vd_put_halves(at, halves);
    }
}

LNORM_INLINE void vd_store_bf16(void *at, vd a) {
    vd_store_bf16_part(at, VD_WIDTH, a);
}

LNORM_INLINE void vd_load_pair_f16(const void *at, vd a[2]) {
    a[0] = vd_load_f16(at);
    a[1] = vd_load_f16((const char *)at + 2 * VD_WIDTH);
}

LNORM_INLINE void vd_load_pair_bf16(const void *at, vd a[2]) {
    a[0] = vd_load_bf16(at);
    a[1] = vd_load_bf16((const char *)at + 2 * VD_WIDTH);
}

LNORM_INLINE void vd_store_pair_f16(void *at, const vd a[2]) {
    _mm256_storeu_si256((__m256i *)at, vd_round_pair_f16(a[0], a[1]));
}

/* f32 whose rounding to bf16 is that of a and b: to odd, also where a subnormal loses bits; NaNs without a payload. */
LNORM_INLINE __m512i vd_pair_to_odd(vd a, vd b) {
    __m256 low = vd_toward_zero(a), high = vd_toward_zero(b);
    __m512 both = vd_both_f32(low, high);
    uint16_t nan = _mm512_cmp_ps_mask(both, both, _CMP_UNORD_Q);
    uint16_t inexact = (uint16_t)_mm512_kunpackb(_mm512_cmp_pd_mask(_mm512_cvtps_pd(high), b, _CMP_NEQ_UQ),
                                                 _mm512_cmp_pd_mask(_mm512_cvtps_pd(low), a, _CMP_NEQ_UQ));
    __m512i bits = _mm512_castps_si512(both);
    bits = _mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1));
    return _mm512_mask_and_epi32(bits, nan, bits, _mm512_set1_epi32((int32_t)0xffc00000u));
}

/* Unusual are a lower half of 0x8000, and an upper one, without its sign, of 0x7fff: a NaN that a carry would spoil.
 * They are rounded in place: a call would cost the loops around it their registers. */
LNORM_INLINE void vd_store_pair_bf16(void *at, const vd a[2]) {
    const __m512i half = _mm512_set1_epi32(0x8000), unusual = _mm512_set1_epi32(0x7fff8000);
    const __m512i relevant = _mm512_set1_epi32(0x7fffffff);
    const __m512i upper = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31, 29, 27, 25, 23, 21, 19,
                                           17, 15, 13, 11, 9, 7, 5, 3, 1);
    __m512i bits = _mm512_castps_si512(vd_both_f32(_mm512_cvtpd_ps(a[0]), _mm512_cvtpd_ps(a[1])));
    if (_mm512_cmpeq_epi16_mask(_mm512_and_si512(bits, relevant), unusual)) {
        const __m512i last = _mm512_set1_epi32(0x10000);
        bits = vd_pair_to_odd(a[0], a[1]);
        bits = _mm512_sub_epi32(bits, _mm512_srli_epi32(_mm512_andnot_si512(bits, last), 16));
    }
    bits = _mm512_permutexvar_epi16(upper, _mm512_add_epi32(bits, half));
    _mm256_storeu_si256((__m256i *)at, _mm512_castsi512_si256(bits));
}

/* -- Squares ------------------------------------------------------------------------------------------------------ */

#include "turn_x86.h"

LNORM_INLINE void vd_turn_in(vd column[4], const char *from, int64_t pitch) {
    __m256 row[4];
    VD_UNROLL
    for (int k = 0; k < 4; k++) {
        const char *at = from + k * pitch;
        row[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)(const void *)at)),
                                      _mm_loadu_ps((const float *)(const void *)(at + 4 * pitch)), 1);
    }
    vd_turn_halves(row);
    VD_UNROLL
    for (int k = 0; k < 4; k++)
        column[k] = _mm512_cvtps_pd(row[k]);
}

LNORM_INLINE void vd_turn_out(char *to, int64_t pitch, const vd column[4], int64_t n) {
    __m256 row[4];
    VD_UNROLL
    for (int k = 0; k < 4; k++)
        row[k] = _mm512_cvtpd_ps(column[k]);
    vd_turn_halves(row);
    VD_UNROLL
    for (int k = 0; k < 4; k++)
        _mm_storeu_ps((float *)(void *)(to + k * pitch), _mm256_castps256_ps128(row[k]));
    VD_UNROLL
    for (int k = 0; k < 3; k++)
        _mm_storeu_ps((float *)(void *)(to + (k + 4) * pitch), _mm256_extractf128_ps(row[k], 1));
    vd_put_row(to + 7 * pitch, _mm256_extractf128_ps(row[3], 1), n);
}

/* -- f32 ----------------------------------------------------------------------------------------------------------- */

#define VF_WIDTH 16
#if defined LNORM_SIMDE
#define VF_BRACKETS 0
#define VF_ROUNDS_BF16 1
#define VF_STREAMS_16 1
#else
#define VF_BRACKETS 1
#define VF_ROUNDS_BF16 0 /* rows_fast_lines.inc does */
#define VF_STREAMS_16 0
#endif

typedef __m512 vf;

LNORM_INLINE vf vf_set1(float a) {
    return _mm512_set1_ps(a);
}

LNORM_INLINE vf vf_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}

LNORM_INLINE vf vf_sub(vf a, vf b) {
    return _mm512_sub_ps(a, b);
}

LNORM_INLINE vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}

LNORM_INLINE void vf_widen(vf a, vd wide[2]) {
    wide[0] = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
    wide[1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
}

LNORM_INLINE vf vf_load_f32(const void *at) {
    return _mm512_loadu_ps(at);
}

LNORM_INLINE vf vf_load_f16(const void *at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)at));
}

/* Element k is the upper half of f32 k. */
LNORM_INLINE __m512i vf_upper_halves(void) {
    const __m512i k = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_slli_epi32(k, 16);
}

LNORM_INLINE vf vf_load_bf16(const void *at) {
    __m512i halves = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)at));
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaau, vf_upper_halves(), halves));
}

LNORM_INLINE void vf_store_f32(void *at, vf a) {
    _mm512_storeu_ps(at, a);
}

LNORM_INLINE void vf_stream_f32(void *at, vf a) {
    _mm512_stream_ps(at, a);
}

LNORM_INLINE void vf_store_f16(void *at, vf a) {
    _mm256_storeu_si256((__m256i *)at, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

LNORM_INLINE void vf_stream_f16(void *at, vf a) {
    _mm256_stream_si256((__m256i *)at, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

/* As in vec_avx2.h: 0x7fff is added, and 1 more where the last bit kept is 1. */
LNORM_INLINE __m256i vf_round_bf16(vf a) {
    const __m512i upper = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 31, 29, 27, 25, 23,
                                           21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    __m512i bits = _mm512_castps_si512(a);
    uint16_t number = _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q);
    uint16_t odd = _mm512_mask_test_epi32_mask(number, bits, _mm512_set1_epi32(0x10000));
    bits = _mm512_mask_add_epi32(bits, number, bits, _mm512_set1_epi32(0x7fff));
    bits = _mm512_mask_sub_epi32(bits, odd, bits, _mm512_set1_epi32(-1));
    return _mm512_castsi512_si256(_mm512_permutexvar_epi16(upper, bits));
}

LNORM_INLINE void vf_store_bf16(void *at, vf a) {
    _mm256_storeu_si256((__m256i *)at, vf_round_bf16(a));
}

LNORM_INLINE void vf_stream_bf16(void *at, vf a) {
    _mm256_stream_si256((__m256i *)at, vf_round_bf16(a));
}

/* -- 16 bits by way of f32 ----------------------------------------------------------------------------------------- */

#if VF_BRACKETS

typedef __m512i vl;

typedef struct vf_extent {
    __m512i least, most; /* of the bits of magnitudes: of those that are not 0, less 1; of all */
} vf_extent;

typedef struct vf_steps {
    __m512i up, down, upper; /* what rounds bf16 half up, two steps of f32 from the other bound; the upper half */
} vf_steps;

LNORM_INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}

LNORM_INLINE vf vf_fnma(vf a, vf b, vf c) {
    return _mm512_fnmadd_ps(a, b, c);
}

LNORM_INLINE vf vf_larger(vf a, vf b) {
    return _mm512_range_ps(a, b, 3);
}

LNORM_INLINE vf_extent vf_no_extent(void) {
    vf_extent extent = {_mm512_set1_epi32(-1), _mm512_setzero_si512()};
    return extent;
}

/* Magnitudes by their bits: in the order of the numbers, and 0 less 1 is more than all. */
LNORM_INLINE void vf_extend(vf_extent *extent, vf a) {
    __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7fffffff));
    extent->most = _mm512_max_epu32(extent->most, magnitude);
    extent->least = _mm512_min_epu32(extent->least, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
}

LNORM_INLINE int vf_usual(const vf_extent *extent) {
    const __m512i least = _mm512_castps_si512(vf_set1(VF_USUAL_LEAST));
    const __m512i most = _mm512_castps_si512(vf_set1(VF_USUAL_MOST));
    return !(_mm512_cmplt_epu32_mask(extent->least, _mm512_sub_epi32(least, _mm512_set1_epi32(1))) |
             _mm512_cmpgt_epu32_mask(extent->most, most));
}

LNORM_INLINE vl vl_load(const void *at) {
    return _mm512_loadu_si512(at);
}

LNORM_INLINE vl vl_load_part(const void *at, int n) {
    return _mm512_maskz_loadu_epi16((UINT32_C(1) << n) - 1, at);
}

LNORM_INLINE void vl_store(void *at, vl a) {
    _mm512_storeu_si512(at, a);
}

LNORM_INLINE void vl_store_part(void *at, int n, vl a) {
    _mm512_mask_storeu_epi16(at, (UINT32_C(1) << n) - 1, a);
}

LNORM_INLINE void vl_stream(void *at, vl a) {
    _mm512_stream_si512((__m512i *)at, a);
}

LNORM_INLINE void vl_split_f16(vl a, vf two[2]) {
    two[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(a));
    two[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(a, 1));
}

/* Those of even number, and of odd: no element has to cross a quarter. */
LNORM_INLINE void vl_split_bf16(vl a, vf two[2]) {
    two[0] = _mm512_castsi512_ps(_mm512_slli_epi32(a, 16));
    two[1] = _mm512_castsi512_ps(_mm512_and_si512(a, _mm512_set1_epi32((int32_t)0xffff0000u)));
}

LNORM_INLINE void vf_split_order(vf two[2]) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512 low = two[0], high = two[1];
    two[0] = _mm512_permutex2var_ps(low, even, high);
    two[1] = _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
}

LNORM_INLINE void vf_usual_order(vf two[2]) {
    const __m512i turns = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512 even = two[0], odd = two[1];
    two[0] = _mm512_permutex2var_ps(even, turns, odd);
    two[1] = _mm512_permutex2var_ps(even, _mm512_add_epi32(turns, _mm512_set1_epi32(8)), odd);
}

LNORM_INLINE vf vf_plain(vf a) {
    return _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), _mm512_set1_ps(NAN));
}

LNORM_INLINE vl vl_round_f16(const vf two[2]) {
    __m512i low = _mm512_castsi256_si512(_mm512_cvtps_ph(two[0], _MM_FROUND_TO_NEAREST_INT));
    return _mm512_inserti64x4(low, _mm512_cvtps_ph(two[1], _MM_FROUND_TO_NEAREST_INT), 1);
}

/* The upper halves, and what is carried to them from the lower ones if 0x7fff and their last bit is added. */
LNORM_INLINE vl vl_round_bf16(const vf two[2]) {
    const __m512i even = _mm512_castps_si512(two[0]), odd = _mm512_castps_si512(two[1]);
    const __m512i upper = _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(even, 16), odd);
    const __m512i lower = _mm512_mask_blend_epi16(0xaaaaaaaau, even, _mm512_slli_epi32(odd, 16));
    const __m512i one = _mm512_set1_epi16(1), most = _mm512_set1_epi16(0x7ffe);
    const __m512i carry = _mm512_avg_epu16(lower, _mm512_ternarylogic_epi32(upper, one, most, 0xea));
    return _mm512_add_epi16(upper, _mm512_srli_epi16(carry, 15));
}

/* By halves, as they were stored: a load of both would wait until all stores so far are in the cache. */
LNORM_INLINE vl vl_join_f16(const void *at) {
    __m512i low = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)at));
    return _mm512_inserti64x4(low, _mm256_loadu_si256((const __m256i *)at + 1), 1);
}

LNORM_INLINE vl vl_join_bf16(const void *at) {
    __m512i even = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)at));
    __m512i odd = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)at + 1));
    return _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
}

LNORM_INLINE vf_steps vf_steps_of(void) {
    vf_steps steps = {_mm512_set1_epi32(0x8002), _mm512_set1_epi32(0x7ffe), _mm512_set1_epi32((int32_t)0xffff0000u)};
    LNORM_HOLD(steps.up); /* else they are made anew each time */
    LNORM_HOLD(steps.down);
    LNORM_HOLD(steps.upper);
    return steps;
}

LNORM_INLINE vl vl_between_f16(const vf near[2], const vf far[2], int *in_doubt) {
    __m256i result[2];
    uint16_t differ[2];
    VD_UNROLL
    for (int i = 0; i < 2; i++) {
        result[i] = _mm512_cvtps_ph(far[i], _MM_FROUND_TO_NEAREST_INT);
        differ[i] = _mm256_cmpneq_epi16_mask(_mm512_cvtps_ph(near[i], _MM_FROUND_TO_NEAREST_INT), result[i]);
    }
    *in_doubt = (differ[0] | differ[1]) != 0;
    return _mm512_inserti64x4(_mm512_castsi256_si512(result[0]), result[1], 1);
}

LNORM_INLINE vl vl_between_bf16(const vf near[2], const vf far[2], const vf_steps *steps, int *in_doubt) {
    __m512i result[2], differ[2];
    VD_UNROLL
    for (int i = 0; i < 2; i++) {
        result[i] = _mm512_add_epi32(_mm512_castps_si512(far[i]), steps->up);
        differ[i] = _mm512_xor_si512(result[i], _mm512_add_epi32(_mm512_castps_si512(near[i]), steps->down));
    }
    *in_doubt = _mm512_test_epi32_mask(_mm512_or_si512(differ[0], differ[1]), steps->upper) != 0;
    return _mm512_or_si512(_mm512_srli_epi32(result[0], 16), _mm512_and_si512(result[1], steps->upper));
}

#endif
