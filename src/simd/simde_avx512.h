/* Tests only (LNORM_SIMDE): AVX-512 intrinsics from SIMDe, and the few that its version 0.7.4 lacks, one element at a
 * time. Compile with -Wno-psabi: wide vectors are passed between functions, of this one file. */
#ifndef LNORM_SIMDE_AVX512_H
#define LNORM_SIMDE_AVX512_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <math.h>

#if !defined __AVX512F__
/* immintrin.h declares these whatever the target; the names are taken over. */
#define _mm512_cvtps_pd lnorm_mm512_cvtps_pd
#define _mm512_cvtpd_ps lnorm_mm512_cvtpd_ps
#undef _mm512_fmadd_pd
#undef _mm512_fmsub_pd
#define _mm512_fmadd_pd lnorm_mm512_fmadd_pd
#define _mm512_fmsub_pd lnorm_mm512_fmsub_pd
#define _mm512_cvtph_ps lnorm_mm512_cvtph_ps
#define _mm512_cvtps_ph lnorm_mm512_cvtps_ph
#define _mm512_cvtepu16_epi32 lnorm_mm512_cvtepu16_epi32
#define _mm512_cvtepi32_epi16 lnorm_mm512_cvtepi32_epi16
#define _mm512_stream_ps _mm512_storeu_ps
#define _mm512_extractf32x8_ps lnorm_mm512_extractf32x8_ps
#define _mm512_shuffle_f64x2 lnorm_mm512_shuffle_f64x2
#define _mm512_permute_pd lnorm_mm512_permute_pd
#define _mm512_cmpeq_epi16_mask lnorm_mm512_cmpeq_epi16_mask
#define _mm512_cvt_roundpd_ps lnorm_mm512_cvt_roundpd_ps
#define _mm512_kunpackb lnorm_mm512_kunpackb
#undef _MM_FROUND_NO_EXC
#define _MM_FROUND_NO_EXC SIMDE_MM_FROUND_NO_EXC
#define _mm512_maskz_loadu_pd lnorm_mm512_maskz_loadu_pd
#define _mm256_maskz_loadu_ps lnorm_mm256_maskz_loadu_ps
#define _mm_maskz_loadu_epi16 lnorm_mm_maskz_loadu_epi16
#define _mm512_mask_storeu_pd lnorm_mm512_mask_storeu_pd
#define _mm256_mask_storeu_ps lnorm_mm256_mask_storeu_ps
#define _mm_mask_storeu_epi16 lnorm_mm_mask_storeu_epi16

static inline void lnorm_copy_marked(void *to, const void *from, unsigned int mask, size_t size) {
    for (size_t k = 0; k < 8; k++)
        if (mask >> k & 1)
            memcpy((char *)to + k * size, (const char *)from + k * size, size);
}

static inline __m512d lnorm_mm512_cvtps_pd(__m256 a) {
    __m256d half[2] = {_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))};
    return _mm512_loadu_pd(half);
}

static inline __m256 lnorm_mm512_cvtpd_ps(__m512d a) {
    __m256d half[2];
    _mm512_storeu_pd(half, a);
    return _mm256_set_m128(_mm256_cvtpd_ps(half[1]), _mm256_cvtpd_ps(half[0]));
}

/* SIMDe's round twice. */
static inline __m512d lnorm_mm512_fmadd_pd(__m512d a, __m512d b, __m512d c) {
    double lane[3][8];
    _mm512_storeu_pd(lane[0], a);
    _mm512_storeu_pd(lane[1], b);
    _mm512_storeu_pd(lane[2], c);
    for (int k = 0; k < 8; k++)
        lane[0][k] = fma(lane[0][k], lane[1][k], lane[2][k]);
    return _mm512_loadu_pd(lane[0]);
}

static inline __m512d lnorm_mm512_fmsub_pd(__m512d a, __m512d b, __m512d c) {
    return lnorm_mm512_fmadd_pd(a, b, _mm512_sub_pd(_mm512_set1_pd(-0.0), c));
}

static inline __m512d lnorm_mm512_shuffle_f64x2(__m512d a, __m512d b, int pairs) {
    double from[2][8], to[8];
    _mm512_storeu_pd(from[0], a);
    _mm512_storeu_pd(from[1], b);
    for (int k = 0; k < 8; k++)
        to[k] = from[k / 4][(pairs >> k / 2 * 2 & 3) * 2 + k % 2];
    return _mm512_loadu_pd(to);
}

static inline __m512d lnorm_mm512_permute_pd(__m512d a, int odd) {
    double from[8], to[8];
    _mm512_storeu_pd(from, a);
    for (int k = 0; k < 8; k++)
        to[k] = from[k / 2 * 2 + (odd >> k & 1)];
    return _mm512_loadu_pd(to);
}

static inline uint32_t lnorm_mm512_cmpeq_epi16_mask(__m512i a, __m512i b) {
    uint16_t lane[2][32];
    uint32_t equal = 0;
    _mm512_storeu_si512(lane[0], a);
    _mm512_storeu_si512(lane[1], b);
    for (int k = 0; k < 32; k++)
        equal |= (uint32_t)(lane[0][k] == lane[1][k]) << k;
    return equal;
}

/* Toward zero: the one rounding asked for. */
static inline __m256 lnorm_mm512_cvt_roundpd_ps(__m512d a, int rounding) {
    double from[8];
    float to[8];
    (void)rounding;
    _mm512_storeu_pd(from, a);
    for (int k = 0; k < 8; k++) {
        to[k] = (float)from[k];
        if (fabs((double)to[k]) > fabs(from[k]))
            to[k] = nextafterf(to[k], 0.0f);
    }
    return _mm256_loadu_ps(to);
}

static inline unsigned int lnorm_mm512_kunpackb(unsigned int high, unsigned int low) {
    return high << 8 | low;
}

static inline __m512d lnorm_mm512_maskz_loadu_pd(unsigned int mask, const void *at) {
    double lane[8] = {0};
    lnorm_copy_marked(lane, at, mask, sizeof *lane);
    return _mm512_loadu_pd(lane);
}

static inline __m256 lnorm_mm256_maskz_loadu_ps(unsigned int mask, const void *at) {
    float lane[8] = {0};
    lnorm_copy_marked(lane, at, mask, sizeof *lane);
    return _mm256_loadu_ps(lane);
}

static inline __m128i lnorm_mm_maskz_loadu_epi16(unsigned int mask, const void *at) {
    uint16_t lane[8] = {0};
    lnorm_copy_marked(lane, at, mask, sizeof *lane);
    return _mm_loadu_si128((const __m128i *)lane);
}

static inline __m512 lnorm_mm512_cvtph_ps(__m256i a) {
    __m256 half[2] = {_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))};
    return _mm512_loadu_ps(half);
}

static inline __m256i lnorm_mm512_cvtps_ph(__m512 a, int rounding) {
    __m256 half[2];
    (void)rounding;
    _mm512_storeu_ps(half, a);
    return _mm256_set_m128i(_mm256_cvtps_ph(half[1], 0), _mm256_cvtps_ph(half[0], 0));
}

static inline __m512i lnorm_mm512_cvtepu16_epi32(__m256i a) {
    __m256i half[2] = {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)),
                       _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))};
    return _mm512_loadu_si512(half);
}

static inline __m256i lnorm_mm512_cvtepi32_epi16(__m512i a) {
    uint32_t wide[16];
    uint16_t narrow[16];
    _mm512_storeu_si512(wide, a);
    for (int k = 0; k < 16; k++)
        narrow[k] = (uint16_t)wide[k];
    return _mm256_loadu_si256((const __m256i *)narrow);
}

static inline __m256 lnorm_mm512_extractf32x8_ps(__m512 a, int half) {
    __m256 halves[2];
    _mm512_storeu_ps(halves, a);
    return halves[half];
}

static inline void lnorm_mm512_mask_storeu_pd(void *at, unsigned int mask, __m512d a) {
    double lane[8];
    _mm512_storeu_pd(lane, a);
    lnorm_copy_marked(at, lane, mask, sizeof *lane);
}

static inline void lnorm_mm256_mask_storeu_ps(void *at, unsigned int mask, __m256 a) {
    float lane[8];
    _mm256_storeu_ps(lane, a);
    lnorm_copy_marked(at, lane, mask, sizeof *lane);
}

static inline void lnorm_mm_mask_storeu_epi16(void *at, unsigned int mask, __m128i a) {
    uint16_t lane[8];
    _mm_storeu_si128((__m128i *)lane, a);
    lnorm_copy_marked(at, lane, mask, sizeof *lane);
}

#endif

#endif
