/* Transposing squares of elements as they are: of 4 x 4 by SSE2, which every x86 instruction set of
 * ours contains, of 8 x 8 by AVX. */

/* The first n, 1 to 4, elements of a row of f32. */
LNORM_INLINE void vd_put_row(char *at, __m128 row, int64_t n) {
    if (n == 4) {
        _mm_storeu_ps((float *)(void *)at, row);
        return;
    }
    if (n >= 2) {
        _mm_storel_pi((__m64 *)(void *)at, row);
        row = _mm_movehl_ps(row, row);
        at += 8;
    }
    if (n != 2) {
        const float one = _mm_cvtss_f32(row);
        memcpy(at, &one, sizeof one);
    }
}

LNORM_INLINE void vd_turn_32(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {
    __m128i row[4], pair[4];
    VD_UNROLL
    for (int k = 0; k < 4; k++)
        row[k] = _mm_loadu_si128((const __m128i *)(from + k * from_pitch));
    pair[0] = _mm_unpacklo_epi32(row[0], row[1]);
    pair[1] = _mm_unpackhi_epi32(row[0], row[1]);
    pair[2] = _mm_unpacklo_epi32(row[2], row[3]);
    pair[3] = _mm_unpackhi_epi32(row[2], row[3]);
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi64(pair[0], pair[2]));
    _mm_storeu_si128((__m128i *)(to + to_pitch), _mm_unpackhi_epi64(pair[0], pair[2]));
    _mm_storeu_si128((__m128i *)(to + 2 * to_pitch), _mm_unpacklo_epi64(pair[1], pair[3]));
    _mm_storeu_si128((__m128i *)(to + 3 * to_pitch), _mm_unpackhi_epi64(pair[1], pair[3]));
}

LNORM_INLINE void vd_turn_16(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {
    __m128i row[4], low, high;
    VD_UNROLL
    for (int k = 0; k < 4; k++)
        row[k] = _mm_loadl_epi64((const __m128i *)(from + k * from_pitch));
    low = _mm_unpacklo_epi16(row[0], row[1]);
    high = _mm_unpacklo_epi16(row[2], row[3]);
    row[0] = _mm_unpacklo_epi32(low, high);
    row[1] = _mm_unpackhi_epi32(low, high);
    _mm_storel_epi64((__m128i *)to, row[0]);
    _mm_storel_epi64((__m128i *)(to + to_pitch), _mm_unpackhi_epi64(row[0], row[0]));
    _mm_storel_epi64((__m128i *)(to + 2 * to_pitch), row[1]);
    _mm_storel_epi64((__m128i *)(to + 3 * to_pitch), _mm_unpackhi_epi64(row[1], row[1]));
}

#if VD_WIDTH >= 4

/* Two squares, one in each half. */
LNORM_INLINE void vd_turn_halves(__m256 row[4]) {
    __m256d low = _mm256_castps_pd(_mm256_unpacklo_ps(row[0], row[1]));
    __m256d high = _mm256_castps_pd(_mm256_unpackhi_ps(row[0], row[1]));
    __m256d low2 = _mm256_castps_pd(_mm256_unpacklo_ps(row[2], row[3]));
    __m256d high2 = _mm256_castps_pd(_mm256_unpackhi_ps(row[2], row[3]));
    row[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low, low2));
    row[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low, low2));
    row[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high, high2));
    row[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high, high2));
}

#define VD_SQUARE 8

LNORM_INLINE void vd_turn_square(char *to, int64_t to_pitch, const char *from, int64_t from_pitch) {
    __m256 row[VD_SQUARE];
    VD_UNROLL
    for (int k = 0; k < VD_SQUARE; k++)
        row[k] = _mm256_loadu_ps((const float *)(const void *)(from + k * from_pitch));
    vd_turn_halves(row);
    vd_turn_halves(row + 4);
    VD_UNROLL
    for (int k = 0; k < 4; k++, to += to_pitch) {
        _mm256_storeu_ps((float *)(void *)to, _mm256_permute2f128_ps(row[k], row[k + 4], 0x20));
        _mm256_storeu_ps((float *)(void *)(to + 4 * to_pitch), _mm256_permute2f128_ps(row[k], row[k + 4], 0x31));
    }
}

#else
#define VD_SQUARE 4
#endif
