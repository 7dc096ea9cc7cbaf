/* Two f64 at a time: SSE2, which every x86-64 machine has, so no target is switched on here. The operations are
 * described in vec_avx2.h. A part of a vector is always one element. */
#include "../access.h"
#include <math.h>
#include <emmintrin.h>

#define VD_WIDTH 2
#define VD_UNROLL /* none at first: table.inc */
#define VD_FEW_COPIES 1

typedef __m128d vd;

LNORM_INLINE vd vd_zero(void) {
    return _mm_setzero_pd();
}

LNORM_INLINE vd vd_set1(double a) {
    return _mm_set1_pd(a);
}

LNORM_INLINE vd vd_add(vd a, vd b) {
    return _mm_add_pd(a, b);
}

LNORM_INLINE vd vd_sub(vd a, vd b) {
    return _mm_sub_pd(a, b);
}

LNORM_INLINE vd vd_mul(vd a, vd b) {
    return _mm_mul_pd(a, b);
}

LNORM_INLINE vd vd_and(vd a, vd b) {
    return _mm_and_pd(a, b);
}

LNORM_INLINE vd vd_div(vd a, vd b) {
    return _mm_div_pd(a, b);
}

LNORM_INLINE vd vd_drop_negative(vd a) {
    return _mm_andnot_pd(_mm_cmplt_pd(a, _mm_setzero_pd()), a);
}

LNORM_INLINE vd vd_reciprocal_root(vd a) {
    vd root = _mm_div_pd(_mm_set1_pd(1.0), _mm_sqrt_pd(a));
    return _mm_andnot_pd(_mm_cmpeq_pd(a, _mm_setzero_pd()), root);
}

LNORM_INLINE vd vd_square_add(vd sum, vd a) {
    return _mm_add_pd(sum, _mm_mul_pd(a, a));
}

LNORM_INLINE vd vd_keep(vd a, int64_t n) {
    __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32((int)n), _mm_set_epi32(1, 1, 0, 0));
    return _mm_and_pd(a, _mm_castsi128_pd(mask));
}

LNORM_INLINE double vd_fold(vd lane[LNORM_LANES / VD_WIDTH]) {
    vd even = _mm_add_pd(_mm_add_pd(lane[0], lane[4]), _mm_add_pd(lane[2], lane[6]));
    vd odd = _mm_add_pd(_mm_add_pd(lane[1], lane[5]), _mm_add_pd(lane[3], lane[7]));
    vd two = _mm_add_pd(even, odd);
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

LNORM_INLINE vd vd_fold_rows(vd row[VD_WIDTH]) {
    return _mm_add_pd(_mm_unpacklo_pd(row[0], row[1]), _mm_unpackhi_pd(row[0], row[1]));
}

/* -- For the wide arithmetic --------------------------------------------------------------------------------------- */

LNORM_INLINE vd vd_abs(vd a) {
    return _mm_andnot_pd(_mm_set1_pd(-0.0), a);
}

LNORM_INLINE vd vd_max(vd a, vd b) {
    return _mm_max_pd(a, b);
}

LNORM_INLINE vd vd_min(vd a, vd b) {
    return _mm_min_pd(a, b);
}

LNORM_INLINE vd vd_power(vd a) {
    return _mm_and_pd(a, _mm_set1_pd((double)INFINITY));
}

LNORM_INLINE vd vd_zero_below(vd a, vd m, vd limit) {
    return _mm_and_pd(a, _mm_cmpnlt_pd(m, limit));
}

LNORM_INLINE int vd_differ(vd a, vd b) {
    return _mm_movemask_pd(_mm_cmpneq_pd(a, b));
}

/* -- Loads -------------------------------------------------------------------------------------------------------- */

LNORM_INLINE vd vd_load_f64(const void *at) {
    return _mm_loadu_pd((const double *)at);
}

LNORM_INLINE vd vd_load_f64_part(const void *at, int64_t n) {
    (void)n;
    return _mm_load_sd((const double *)at);
}

LNORM_INLINE vd vd_load_f32(const void *at) {
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)at)));
}

LNORM_INLINE vd vd_load_f32_part(const void *at, int64_t n) {
    (void)n;
    return _mm_cvtps_pd(_mm_load_ss((const float *)at));
}

/* Two 16-bit elements, or the first one of them. */
LNORM_INLINE __m128i vd_halves(const void *at) {
    int bits;
    memcpy(&bits, at, sizeof bits);
    return _mm_cvtsi32_si128(bits);
}

LNORM_INLINE __m128i vd_halves_part(const void *at, int64_t n) {
    uint16_t bits;
    (void)n;
    memcpy(&bits, at, sizeof bits);
    return _mm_cvtsi32_si128(bits);
}

/* Exponent and fraction in an f32's place are the magnitude times 2^-112, subnormals included, and the product with
 * 2^112 is exact. Infinities and NaNs, whose exponent is 31 there, get that of f32. */
LNORM_INLINE __m128 vf_widen_f16(__m128i halves) {
    __m128i bits = _mm_unpacklo_epi16(halves, _mm_setzero_si128());
    __m128i magnitude = _mm_and_si128(bits, _mm_set1_epi32(0x7fff));
    __m128i sign = _mm_slli_epi32(_mm_xor_si128(bits, magnitude), 16);
    __m128i special = _mm_and_si128(_mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7bff)), _mm_set1_epi32(0x7f800000));
    __m128 scaled = _mm_mul_ps(_mm_castsi128_ps(_mm_slli_epi32(magnitude, 13)), _mm_set1_ps(0x1p112f));
    return _mm_or_ps(scaled, _mm_castsi128_ps(_mm_or_si128(sign, special)));
}

LNORM_INLINE vd vd_widen_f16(__m128i halves) {
    return _mm_cvtps_pd(vf_widen_f16(halves));
}

LNORM_INLINE vd vd_widen_bf16(__m128i halves) {
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), halves)));
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
    _mm_storeu_pd((double *)at, a);
}

LNORM_INLINE void vd_store_f64_part(void *at, int64_t n, vd a) {
    (void)n;
    _mm_store_sd((double *)at, a);
}

LNORM_INLINE void vd_store_f32(void *at, vd a) {
    _mm_storel_epi64((__m128i *)at, _mm_castps_si128(_mm_cvtpd_ps(a)));
}

LNORM_INLINE void vd_stream_f32(void *at, vd a) {
    _mm_stream_si64((long long *)at, _mm_cvtsi128_si64(_mm_castps_si128(_mm_cvtpd_ps(a))));
}

LNORM_INLINE void vd_store_f32_part(void *at, int64_t n, vd a) {
    const float first = _mm_cvtss_f32(_mm_cvtpd_ps(a));
    (void)n;
    memcpy(at, &first, sizeof first);
}

/* There is no conversion to f16 before F16C. */
LNORM_INLINE void vd_store_f16(void *at, vd a) {
    uint16_t half[VD_WIDTH] = {lnorm_round_f16(_mm_cvtsd_f64(a)),
                               lnorm_round_f16(_mm_cvtsd_f64(_mm_unpackhi_pd(a, a)))};
    memcpy(at, half, sizeof half);
}

LNORM_INLINE void vd_store_f16_part(void *at, int64_t n, vd a) {
    uint16_t half = lnorm_round_f16(_mm_cvtsd_f64(a));
    (void)n;
    memcpy(at, &half, sizeof half);
}

/* To bf16's 8 significant bits on the f64's own bits, to nearest even, then exactly to f32. Not for what vd_unusual
 * finds. The two halves are the lower 32 bits. */
LNORM_INLINE int vd_round_bf16(vd a) {
    const __m128i one = _mm_set1_epi64x(1), below_half = _mm_set1_epi64x(0xfffffffffff);
    const __m128i dropped = _mm_set1_epi64x(0x1fffffffffff);
    __m128i bits = _mm_castpd_si128(a);
    __m128i even = _mm_and_si128(_mm_srli_epi64(bits, 45), one);
    __m128i up = _mm_add_epi64(bits, _mm_add_epi64(below_half, even));
    __m128i f32 = _mm_castps_si128(_mm_cvtpd_ps(_mm_castsi128_pd(_mm_andnot_si128(dropped, up))));
    __m128i halves = _mm_srli_epi32(f32, 16);
    return _mm_cvtsi128_si32(_mm_or_si128(halves, _mm_srli_epi64(halves, 16)));
}

/* Some lane is a NaN, or is not zero but below 2^-126. */
LNORM_INLINE int vd_unusual(vd a) {
    vd magnitude = _mm_andnot_pd(_mm_set1_pd(-0.0), a);
    vd small = _mm_cmpnge_pd(magnitude, _mm_set1_pd(0x1p-126));
    return _mm_movemask_pd(_mm_and_pd(small, _mm_cmpneq_pd(a, _mm_setzero_pd())));
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

LNORM_INLINE void vd_store_bf16(void *at, vd a) {
    int halves;
    if (vd_unusual(a)) {
        vd_store_unusual_bf16(at, VD_WIDTH, &a);
        return;
    }
    halves = vd_round_bf16(a);
    memcpy(at, &halves, sizeof halves);
}

LNORM_INLINE void vd_store_bf16_part(void *at, int64_t n, vd a) {
    vd_store_unusual_bf16(at, n, &a);
}

#include "pairs_of_vectors.h"

/* -- Squares ------------------------------------------------------------------------------------------------------ */

#include "turn_x86.h"

LNORM_INLINE void vd_turn_in(vd column[4], const char *from, int64_t pitch) {
    __m128 row = _mm_loadu_ps((const float *)(const void *)from);
    __m128 next = _mm_loadu_ps((const float *)(const void *)(from + pitch));
    __m128 low = _mm_unpacklo_ps(row, next), high = _mm_unpackhi_ps(row, next);
    column[0] = _mm_cvtps_pd(low);
    column[1] = _mm_cvtps_pd(_mm_movehl_ps(low, low));
    column[2] = _mm_cvtps_pd(high);
    column[3] = _mm_cvtps_pd(_mm_movehl_ps(high, high));
}

LNORM_INLINE void vd_turn_out(char *to, int64_t pitch, const vd column[4], int64_t n) {
    __m128 low = _mm_unpacklo_ps(_mm_cvtpd_ps(column[0]), _mm_cvtpd_ps(column[1]));
    __m128 high = _mm_unpacklo_ps(_mm_cvtpd_ps(column[2]), _mm_cvtpd_ps(column[3]));
    _mm_storeu_ps((float *)(void *)to, _mm_movelh_ps(low, high));
    vd_put_row(to + pitch, _mm_movehl_ps(high, low), n);
}

/* -- f32 ----------------------------------------------------------------------------------------------------------- */

#define VF_WIDTH 4
#define VF_ROUNDS_BF16 0
#define VF_STREAMS_16 0
#define VF_BRACKETS 0

typedef __m128 vf;

LNORM_INLINE vf vf_set1(float a) {
    return _mm_set1_ps(a);
}

LNORM_INLINE vf vf_add(vf a, vf b) {
    return _mm_add_ps(a, b);
}

LNORM_INLINE vf vf_sub(vf a, vf b) {
    return _mm_sub_ps(a, b);
}

LNORM_INLINE vf vf_mul(vf a, vf b) {
    return _mm_mul_ps(a, b);
}

LNORM_INLINE void vf_widen(vf a, vd wide[2]) {
    wide[0] = _mm_cvtps_pd(a);
    wide[1] = _mm_cvtps_pd(_mm_movehl_ps(a, a));
}

LNORM_INLINE vf vf_load_f32(const void *at) {
    return _mm_loadu_ps((const float *)at);
}

LNORM_INLINE vf vf_load_f16(const void *at) {
    return vf_widen_f16(_mm_loadl_epi64((const __m128i *)at));
}

LNORM_INLINE vf vf_load_bf16(const void *at) {
    return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)at)));
}

LNORM_INLINE void vf_store_f32(void *at, vf a) {
    _mm_storeu_ps((float *)at, a);
}

LNORM_INLINE void vf_stream_f32(void *at, vf a) {
    _mm_stream_ps((float *)at, a);
}

LNORM_INLINE void vf_store_f16(void *at, vf a) {
    vd wide[2];
    vf_widen(a, wide);
    vd_store_f16(at, wide[0]);
    vd_store_f16((char *)at + 2 * VD_WIDTH, wide[1]);
}

/* As in vec_avx2.h. The packing saturates signed numbers: the sign is shifted in, and there is nothing to saturate. */
LNORM_INLINE void vf_store_bf16(void *at, vf a) {
    __m128i bits = _mm_castps_si128(a), nan = _mm_castps_si128(_mm_cmpunord_ps(a, a));
    __m128i even = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
    __m128i up = _mm_andnot_si128(nan, _mm_add_epi32(even, _mm_set1_epi32(0x7fff)));
    __m128i half = _mm_srai_epi32(_mm_add_epi32(bits, up), 16);
    _mm_storel_epi64((__m128i *)at, _mm_packs_epi32(half, half));
}

LNORM_INLINE void vf_stream_f16(void *at, vf a) {
    vf_store_f16(at, a);
}

LNORM_INLINE void vf_stream_bf16(void *at, vf a) {
    vf_store_bf16(at, a);
}
