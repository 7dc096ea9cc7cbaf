/* Four f64 at a time: AVX2, FMA and F16C. FMA is used where a comment says so, nowhere else (arithmetic.h keeps
 * compilers from it). This is the header to read first; the others have the same:
 *
 *   vd_zero vd_set1 vd_add vd_sub vd_mul vd_div, and bit by bit vd_and
 *   vd_square_add(sum, a)      sum + a*a, where a is a widened f32, f16 or bf16: a*a is exact, so fused or not is one
 *   vd_keep(a, n)              the first n lanes of a, the others +0.0; n may be any number
 *   vd_drop_negative(a)        +0.0 where a < 0; a NaN stays
 *   vd_reciprocal_root(a)      1/sqrt(a), +0.0 where a is 0
 *   vd_fold_rows(row)          the folds of VD_WIDTH vectors, that of row[k] in lane k; uses up `row`
 *   vd_fold(lane)              the 16 lanes of a block, lane k += k+8, +4, +2, +1; uses up `lane`
 *   vd_fold_four(a, b, c, d, sum)  four of them at once; where VD_TWO_BLOCKS says that the lanes of
 *                              two blocks have room in the registers
 *   vd_load_T(at)              VD_WIDTH elements, widened exactly; `at` needs no alignment
 *   vd_store_T(at, a)          one rounding, to nearest even
 *   vd_load_T_part(at, n)      0 < n < VD_WIDTH elements, absent lanes +0.0; touches n elements of memory and no more
 *   vd_store_T_part(at, n, a)  the same
 *   vd_stream_f32(at, a)       vd_store_f32 past the caches, as vf_stream_T below
 *   vd_stream_f64(at, a)       the same, where VD_FMA is defined
 *   vd_load_pair_T(at, a)      for 16-bit types: 2*VD_WIDTH elements into a[0] and a[1]
 *   vd_store_pair_T(at, a)     the same
 *   vd_turn_32(to, p, from, q) transposes a square of 4 x 4 elements of 32 bits; p and q: pitches in bytes
 *   vd_turn_square(to, p, from, q) the same for VD_SQUARE x VD_SQUARE elements, where that is more than 4 x 4
 *   vd_turn_16(to, p, from, q) 4 x 4 elements of 16 bits
 *                              rows of `to` may overlap: they are written in increasing order
 *   vd_turn_in(column, from, p) VD_WIDTH rows of 4 f32 as 4 columns, widened; p: pitch in bytes
 *   vd_turn_out(to, p, column, n) and back, rounded; of the last row n elements. Rows may overlap, as above
 *
 * and, for the wide arithmetic only:
 *
 *   vd_fma(a, b, c)            a*b + c in one rounding, vd_fms(a, b, c) a*b - c; where VD_FMA is defined
 *   vd_abs vd_max vd_min       where one of the two is a NaN, the result is any
 *   vd_power(a)                the power of two of a's exponent field: 0 for zero and subnormals, infinite for a NaN
 *   vd_zero_below(a, m, limit) a, and +0.0 where m < limit
 *   vd_differ(a, b)            true where some lanes differ as numbers, or are NaN
 *
 * VF_WIDTH = 2*VD_WIDTH f32 (scalar: one), for the fast arithmetic. Each operation is rounded to f32:
 *   vf_set1 vf_add vf_sub vf_mul
 *   vf_load_T(at)              VF_WIDTH elements of 32 or 16 bits
 *   vf_store_T(at, a)          one rounding; a is the result of an operation
 *   vf_stream_T(at, a)         past the caches, where there is such a store; `at` is aligned to the vector
 *   VF_ROUNDS_BF16             1: there are registers enough to round bf16 beside other work
 *   VF_STREAMS_16              1: vf_stream_T of 16 bits is more than vf_store_T
 *   vf_widen(a, wide)          to VF_WIDTH/VD_WIDTH vectors of f64
 *
 * and, where VF_BRACKETS is 1, for y of 16 bits (rows_half.inc); a vl is a line of them, of two vectors of f32:
 *   vf_fma(a, b, c)            a*b + c in one rounding, vf_fnma(a, b, c) c - a*b
 *   vf_larger(a, b)            the larger magnitude, with a's sign; no NaN
 *   vf_extend(extent, a)       a, too; vf_no_extent(): nothing so far
 *   vf_usual(extent)           true where all were 0 or of magnitude VF_USUAL_LEAST to VF_USUAL_MOST
 *   vl_load vl_store vl_stream vl_load_part(at, n) vl_store_part(at, n, a)
 *   vl_split_T(a, two)         widened; f16 in the usual order, bf16 in the one that vf_split_order(two) makes of it
 *   vf_usual_order(two)        back from that order
 *   vf_plain(a)                a; a NaN without a payload
 *   vl_round_T(two)            rounded, as a line, in that order; NaNs have nothing in their lower half
 *   vl_join_T(at)              two vectors of 16-bit elements in that order, as they were stored, to a line
 *   vl_between_T(a, b, doubt)  |a| <= |b| unless their signs differ: b rounded, as a line, and whether some a rounds to
 *                              something else. bf16: rounded half up, after two steps of f32 away from the other;
 *                              vf_steps_of() holds what that takes
 *
 * VD_UNROLL stands before loops over a few vectors. VD_FEW_COPIES, 0 or 1: small code counts for more than speed.
 */
#include "../access.h"
#include <immintrin.h>
#include <math.h>

#define LNORM_TARGET_PUSHED 1 /* table.inc ends it */
#if defined __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#define VD_WIDTH 4
#define VD_UNROLL LNORM_UNROLL
#define VD_FEW_COPIES 0

typedef __m256d vd;

LNORM_INLINE vd vd_zero(void) {
    return _mm256_setzero_pd();
}

LNORM_INLINE vd vd_set1(double a) {
    return _mm256_set1_pd(a);
}

LNORM_INLINE vd vd_add(vd a, vd b) {
    return _mm256_add_pd(a, b);
}

LNORM_INLINE vd vd_sub(vd a, vd b) {
    return _mm256_sub_pd(a, b);
}

LNORM_INLINE vd vd_mul(vd a, vd b) {
    return _mm256_mul_pd(a, b);
}

LNORM_INLINE vd vd_and(vd a, vd b) {
    return _mm256_and_pd(a, b);
}

LNORM_INLINE vd vd_div(vd a, vd b) {
    return _mm256_div_pd(a, b);
}

LNORM_INLINE vd vd_drop_negative(vd a) {
    return _mm256_andnot_pd(_mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_LT_OQ), a);
}

LNORM_INLINE vd vd_reciprocal_root(vd a) {
    vd root = _mm256_div_pd(_mm256_set1_pd(1.0), _mm256_sqrt_pd(a));
    return _mm256_andnot_pd(_mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_EQ_OQ), root);
}

/* The one fused operation: a has at most 24 significant bits, so a*a is exact. */
LNORM_INLINE vd vd_square_add(vd sum, vd a) {
    return _mm256_fmadd_pd(a, a, sum);
}

/* All bits set in the first n lanes. */
LNORM_INLINE __m256i vd_mask64(int64_t n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_set_epi64x(3, 2, 1, 0));
}

LNORM_INLINE vd vd_keep(vd a, int64_t n) {
    return _mm256_and_pd(a, _mm256_castsi256_pd(vd_mask64(n)));
}

LNORM_INLINE double vd_fold(vd lane[LNORM_LANES / VD_WIDTH]) {
    vd four = _mm256_add_pd(_mm256_add_pd(lane[0], lane[2]), _mm256_add_pd(lane[1], lane[3]));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

LNORM_INLINE vd vd_fold_rows(vd row[VD_WIDTH]) {
    vd p = _mm256_add_pd(_mm256_permute2f128_pd(row[0], row[2], 0x20), _mm256_permute2f128_pd(row[0], row[2], 0x31));
    vd q = _mm256_add_pd(_mm256_permute2f128_pd(row[1], row[3], 0x20), _mm256_permute2f128_pd(row[1], row[3], 0x31));
    return _mm256_add_pd(_mm256_unpacklo_pd(p, q), _mm256_unpackhi_pd(p, q));
}

/* -- For the wide arithmetic --------------------------------------------------------------------------------------- */

#define VD_FMA 1

LNORM_INLINE vd vd_fma(vd a, vd b, vd c) {
    return _mm256_fmadd_pd(a, b, c);
}

LNORM_INLINE vd vd_fms(vd a, vd b, vd c) {
    return _mm256_fmsub_pd(a, b, c);
}

LNORM_INLINE vd vd_abs(vd a) {
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
}

LNORM_INLINE vd vd_max(vd a, vd b) {
    return _mm256_max_pd(a, b);
}

LNORM_INLINE vd vd_min(vd a, vd b) {
    return _mm256_min_pd(a, b);
}

LNORM_INLINE vd vd_power(vd a) {
    return _mm256_and_pd(a, _mm256_set1_pd((double)INFINITY));
}

LNORM_INLINE vd vd_zero_below(vd a, vd m, vd limit) {
    return _mm256_and_pd(a, _mm256_cmp_pd(m, limit, _CMP_NLT_UQ));
}

LNORM_INLINE int vd_differ(vd a, vd b) {
    return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_NEQ_UQ));
}

/* -- Loads -------------------------------------------------------------------------------------------------------- */

LNORM_INLINE vd vd_load_f64(const void *at) {
    return _mm256_loadu_pd((const double *)at);
}

/* Parts in pieces: masked loads and stores take ten cycles and more on some machines. */
LNORM_INLINE vd vd_load_f64_part(const void *at, int64_t n) {
    const double *from = (const double *)at;
    __m128d low = n > 1 ? _mm_loadu_pd(from) : _mm_load_sd(from);
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(low), n > 2 ? _mm_load_sd(from + 2) : _mm_setzero_pd(), 1);
}

LNORM_INLINE vd vd_load_f32(const void *at) {
    return _mm256_cvtps_pd(_mm_loadu_ps((const float *)at));
}

LNORM_INLINE vd vd_load_f32_part(const void *at, int64_t n) {
    const float *from = (const float *)at;
    __m128 low = n > 1 ? _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)at)) : _mm_load_ss(from);
    return _mm256_cvtps_pd(n > 2 ? _mm_movelh_ps(low, _mm_load_ss(from + 2)) : low);
}

/* Four 16-bit elements, or the first n of them. */
LNORM_INLINE __m128i vd_halves(const void *at) {
    return _mm_loadl_epi64((const __m128i *)at);
}

LNORM_INLINE __m128i vd_halves_part(const void *at, int64_t n) {
    uint64_t bits = 0;
    for (int64_t k = 0; k < n; k++) {
        uint16_t half;
        memcpy(&half, (const char *)at + 2 * k, sizeof half);
        bits |= (uint64_t)half << 16 * k;
    }
    return _mm_cvtsi64_si128((int64_t)bits);
}

LNORM_INLINE vd vd_widen_f16(__m128i halves) {
    return _mm256_cvtps_pd(_mm_cvtph_ps(halves));
}

LNORM_INLINE vd vd_widen_bf16(__m128i halves) {
    return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), halves)));
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

LNORM_INLINE void vd_load_pair_f16(const void *at, vd a[2]) {
    __m256 eight = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)at));
    a[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(eight));
    a[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(eight, 1));
}

LNORM_INLINE void vd_load_pair_bf16(const void *at, vd a[2]) {
    __m128i eight = _mm_loadu_si128((const __m128i *)at), zero = _mm_setzero_si128();
    a[0] = _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpacklo_epi16(zero, eight)));
    a[1] = _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpackhi_epi16(zero, eight)));
}

/* -- Stores ------------------------------------------------------------------------------------------------------- */

LNORM_INLINE void vd_store_f64(void *at, vd a) {
    _mm256_storeu_pd((double *)at, a);
}

LNORM_INLINE void vd_stream_f64(void *at, vd a) {
    _mm256_stream_pd((double *)at, a);
}

LNORM_INLINE void vd_store_f64_part(void *at, int64_t n, vd a) {
    double *to = (double *)at;
    if (n > 1)
        _mm_storeu_pd(to, _mm256_castpd256_pd128(a));
    else
        _mm_store_sd(to, _mm256_castpd256_pd128(a));
    if (n > 2)
        _mm_store_sd(to + 2, _mm256_extractf128_pd(a, 1));
}

LNORM_INLINE void vd_store_f32(void *at, vd a) {
    _mm_storeu_ps((float *)at, _mm256_cvtpd_ps(a));
}

LNORM_INLINE void vd_stream_f32(void *at, vd a) {
    _mm_stream_ps((float *)at, _mm256_cvtpd_ps(a));
}

/* By memcpy: one f32 need not be aligned, either. */
LNORM_INLINE void vd_store_f32_part(void *at, int64_t n, vd a) {
    const __m128 f = _mm256_cvtpd_ps(a);
    const float first = _mm_cvtss_f32(f), third = _mm_cvtss_f32(_mm_movehl_ps(f, f));
    if (n > 1)
        _mm_storel_epi64((__m128i *)at, _mm_castps_si128(f));
    else
        memcpy(at, &first, sizeof first);
    if (n > 2)
        memcpy((char *)at + 8, &third, sizeof third);
}

LNORM_INLINE void vd_put_halves(void *at, __m128i halves) {
    _mm_storel_epi64((__m128i *)at, halves);
}

LNORM_INLINE void vd_put_halves_part(void *at, int64_t n, __m128i halves) {
    uint64_t bits = (uint64_t)_mm_cvtsi128_si64(halves);
    for (int64_t k = 0; k < n; k++, bits >>= 16) {
        uint16_t half = (uint16_t)bits;
        memcpy((char *)at + 2 * k, &half, sizeof half);
    }
}

/* Rounding to 16 bits goes by way of f32, f = f32(a), where that provably gives what one rounding gives. A number
 * halfway between two neighbouring f16 or bf16 (subnormals, and the threshold of infinity, included) is an f32: call it
 * h. Rounding is monotonic, so a < h gives f <= h and a > h gives f >= h: unless f = h, f lies on the same side of
 * every h as a does, and goes to the same neighbour. Only f = h may have been another a: then, and for some more that
 * are cheaper to ask for, the rounding is done by one of the functions "slowly".
 *
 * bf16: f = h where the lower 16 bits are 0x8000. Otherwise adding 0x8000 steps the upper 16 to the nearer neighbour. A
 * NaN could become a zero in that way, and goes slowly, too.
 * f16: f = h where the lower 13 bits are 0x1000, if f16 is normal, from 2^-14 on. What is less goes slowly. */

LNORM_INLINE __m256 vd_both_f32(__m128 a, __m128 b) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
}

LNORM_INLINE __m128i vd_halfway_bf16(__m128i up) { /* f + 0x8000 in, all bits set out */
    return _mm_cmpeq_epi32(_mm_slli_epi32(up, 16), _mm_setzero_si128());
}

LNORM_OUT_OF_LINE static void vd_store_slowly_bf16(void *at, int64_t n, vd a, vd b) {
    double lane[2 * VD_WIDTH];
    vd_store_f64(lane, a);
    vd_store_f64(lane + VD_WIDTH, b);
    for (int64_t k = 0; k < n; k++) {
        uint16_t half = lnorm_round_bf16(lane[k]);
        memcpy((char *)at + 2 * k, &half, sizeof half);
    }
}

LNORM_INLINE void vd_store_bf16_part(void *at, int64_t n, vd a) {
    __m128 f = _mm256_cvtpd_ps(a);
    __m128i up = _mm_add_epi32(_mm_castps_si128(f), _mm_set1_epi32(0x8000));
    if (_mm_movemask_ps(_mm_or_ps(_mm_castsi128_ps(vd_halfway_bf16(up)), _mm_cmpunord_ps(f, f))))
        vd_store_slowly_bf16(at, n, a, a);
    else if (n < VD_WIDTH)
        vd_put_halves_part(at, n, _mm_packus_epi32(_mm_srli_epi32(up, 16), _mm_setzero_si128()));
    else
        vd_put_halves(at, _mm_packus_epi32(_mm_srli_epi32(up, 16), _mm_setzero_si128()));
}

LNORM_INLINE void vd_store_bf16(void *at, vd a) {
    vd_store_bf16_part(at, VD_WIDTH, a);
}

/* Unusual are a lower half of 0x8000, and an upper one, without its sign, of 0x7fff: a NaN that the carry would spoil. */
LNORM_INLINE void vd_store_pair_bf16(void *at, const vd a[2]) {
    const __m256i upper = _mm256_broadcastsi128_si256(_mm_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, -1, -1, -1, -1, -1, -1,
                                                                    -1, -1));
    __m256i bits = _mm256_castps_si256(vd_both_f32(_mm256_cvtpd_ps(a[0]), _mm256_cvtpd_ps(a[1])));
    __m256i relevant = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi16(relevant, _mm256_set1_epi32(0x7fff8000)))) {
        vd_store_slowly_bf16(at, 2 * VD_WIDTH, a[0], a[1]);
    } else {
        __m256i half = _mm256_shuffle_epi8(_mm256_add_epi32(bits, _mm256_set1_epi32(0x8000)), upper);
        _mm_storeu_si128((__m128i *)at, _mm256_castsi256_si128(_mm256_permute4x64_epi64(half, 0x08)));
    }
}

/* To 24 significant bits, to odd: where bits are dropped the last one kept is set. The f32 that results (exactly) is
 * then rounded to f16's 11 bits or fewer, which gives what one rounding would, since 24 >= 11 + 2. Below f32's normal
 * range the conversion to f32 does round, but f16 makes a zero of everything below 2^-25. A NaN stays one. */
LNORM_INLINE __m128i vd_round_f16(vd a) {
    const __m256i dropped = _mm256_set1_epi64x(0x1fffffff), last = _mm256_set1_epi64x(0x20000000);
    __m256i bits = _mm256_castpd_si256(a);
    __m256i exact = _mm256_cmpeq_epi64(_mm256_and_si256(bits, dropped), _mm256_setzero_si256());
    __m256i odd = _mm256_or_si256(_mm256_andnot_si256(dropped, bits), _mm256_andnot_si256(exact, last));
    return _mm_cvtps_ph(_mm256_cvtpd_ps(_mm256_castsi256_pd(odd)), _MM_FROUND_TO_NEAREST_INT);
}

LNORM_INLINE void vd_store_f16(void *at, vd a) {
    vd_put_halves(at, vd_round_f16(a));
}

LNORM_INLINE void vd_store_f16_part(void *at, int64_t n, vd a) {
    vd_put_halves_part(at, n, vd_round_f16(a));
}

LNORM_OUT_OF_LINE static void vd_store_slowly_f16(void *at, vd a, vd b) {
    vd_store_f16(at, a);
    vd_store_f16((char *)at + 2 * VD_WIDTH, b);
}

LNORM_INLINE void vd_store_pair_f16(void *at, const vd a[2]) {
    const __m256i smallest = _mm256_set1_epi32(0x38800000); /* 2^-14 */
    __m256 f = vd_both_f32(_mm256_cvtpd_ps(a[0]), _mm256_cvtpd_ps(a[1]));
    __m256i bits = _mm256_castps_si256(f), magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    __m256i halfway = _mm256_cmpeq_epi32(_mm256_slli_epi32(bits, 19), _mm256_set1_epi32(INT32_MIN));
    if (_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_or_si256(halfway, _mm256_cmpgt_epi32(smallest, magnitude)))))
        vd_store_slowly_f16(at, a[0], a[1]);
    else
        _mm_storeu_si128((__m128i *)at, _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT));
}

/* -- Squares ------------------------------------------------------------------------------------------------------ */

#include "turn_x86.h"

LNORM_INLINE void vd_turn_in(vd column[4], const char *from, int64_t pitch) {
    __m128 row[4];
    VD_UNROLL
    for (int k = 0; k < 4; k++)
        row[k] = _mm_loadu_ps((const float *)(const void *)(from + k * pitch));
    _MM_TRANSPOSE4_PS(row[0], row[1], row[2], row[3]);
    VD_UNROLL
    for (int k = 0; k < 4; k++)
        column[k] = _mm256_cvtps_pd(row[k]);
}

LNORM_INLINE void vd_turn_out(char *to, int64_t pitch, const vd column[4], int64_t n) {
    __m128 row[4];
    VD_UNROLL
    for (int k = 0; k < 4; k++)
        row[k] = _mm256_cvtpd_ps(column[k]);
    _MM_TRANSPOSE4_PS(row[0], row[1], row[2], row[3]);
    VD_UNROLL
    for (int k = 0; k < 3; k++)
        _mm_storeu_ps((float *)(void *)(to + k * pitch), row[k]);
    vd_put_row(to + 3 * pitch, row[3], n);
}

/* -- f32 ----------------------------------------------------------------------------------------------------------- */

#define VF_WIDTH 8
#define VF_ROUNDS_BF16 0
#define VF_STREAMS_16 1
#define VF_BRACKETS 0

typedef __m256 vf;

LNORM_INLINE vf vf_set1(float a) {
    return _mm256_set1_ps(a);
}

LNORM_INLINE vf vf_add(vf a, vf b) {
    return _mm256_add_ps(a, b);
}

LNORM_INLINE vf vf_sub(vf a, vf b) {
    return _mm256_sub_ps(a, b);
}

LNORM_INLINE vf vf_mul(vf a, vf b) {
    return _mm256_mul_ps(a, b);
}

LNORM_INLINE void vf_widen(vf a, vd wide[2]) {
    wide[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    wide[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
}

LNORM_INLINE vf vf_load_f32(const void *at) {
    return _mm256_loadu_ps((const float *)at);
}

LNORM_INLINE vf vf_load_f16(const void *at) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)at));
}

/* The eight elements in both halves; of each, four go to where an f32 has its upper 16 bits. */
LNORM_INLINE vf vf_load_bf16(const void *at) {
    const __m256i upper = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7, -1, -1, 8, 9, -1, -1,
                                           10, 11, -1, -1, 12, 13, -1, -1, 14, 15);
    __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)at));
    return _mm256_castsi256_ps(_mm256_shuffle_epi8(twice, upper));
}

LNORM_INLINE void vf_store_f32(void *at, vf a) {
    _mm256_storeu_ps((float *)at, a);
}

LNORM_INLINE void vf_stream_f32(void *at, vf a) {
    _mm256_stream_ps((float *)at, a);
}

LNORM_INLINE void vf_store_f16(void *at, vf a) {
    _mm_storeu_si128((__m128i *)at, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

LNORM_INLINE void vf_stream_f16(void *at, vf a) {
    _mm_stream_si128((__m128i *)at, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

/* Nearest even: 0x8000 is added, less 1 where the last bit kept is 0, and a carry steps the exponent. A NaN stays one:
 * nothing is added to it, and as the result of an operation it is quiet, by its highest fraction bit. */
LNORM_INLINE __m128i vf_round_bf16(vf a) {
    __m256i bits = _mm256_castps_si256(a), nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i last = _mm256_set1_epi32(0x10000);
    const __m256i upper = _mm256_broadcastsi128_si256(_mm_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, -1, -1, -1, -1, -1, -1,
                                                                    -1, -1));
    __m256i even = _mm256_cmpeq_epi32(_mm256_and_si256(bits, last), _mm256_setzero_si256());
    __m256i up = _mm256_andnot_si256(nan, _mm256_add_epi32(even, _mm256_set1_epi32(0x8000)));
    __m256i half = _mm256_shuffle_epi8(_mm256_add_epi32(bits, up), upper);
    return _mm_unpacklo_epi64(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

LNORM_INLINE void vf_store_bf16(void *at, vf a) {
    _mm_storeu_si128((__m128i *)at, vf_round_bf16(a));
}

LNORM_INLINE void vf_stream_bf16(void *at, vf a) {
    _mm_stream_si128((__m128i *)at, vf_round_bf16(a));
}
