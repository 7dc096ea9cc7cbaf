/* mmap and madvise; glibc hides madvise from strict C11. */
#define _DEFAULT_SOURCE
#include "data.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* Numbers repeat after this many elements: a prime, so that no two rows of a case are equal. */
#define PERIOD INT64_C(1048573)

size_t bench_item_size(enum bench_dtype dtype) {
    static const size_t sizes[BENCH_DTYPES] = {4, 8, 2, 2};
    return sizes[dtype];
}

/* In front of every array, so that release needs the pointer only. */
struct header {
    void *mapping;
    size_t bytes;
};

#define HUGE_PAGE ((size_t)1 << 21)
#define COLOURS 32
#define COLOUR_STEP ((size_t)17 * 64) /* an odd number of lines: 32 colours are 32 places modulo 4096 */

void *bench_allocate(size_t bytes, int colour) {
    /* Small arrays in huge pages of their own would cost more to get than to compute on. */
    size_t alignment = bytes < HUGE_PAGE ? 4096 : HUGE_PAGE;
    size_t total = alignment + COLOURS * COLOUR_STEP + 64 + bytes;
    unsigned char *mapping = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
#if defined MADV_HUGEPAGE
    if (alignment == HUGE_PAGE)
        madvise(mapping, total, MADV_HUGEPAGE); /* a wish: without huge pages the benchmark still runs */
#endif
    size_t to_aligned = (alignment - (uintptr_t)mapping % alignment) % alignment;
    unsigned char *array = mapping + to_aligned + 64 + (size_t)(colour % COLOURS) * COLOUR_STEP;
    struct header *header = (struct header *)(void *)(array - 64);
    header->mapping = mapping;
    header->bytes = total;
    memset(array, 0, bytes);
    return array;
}

void bench_release(void *array) {
    if (!array)
        return;
    struct header header;
    memcpy(&header, (unsigned char *)array - 64, sizeof header);
    munmap(header.mapping, header.bytes);
}

/* splitmix64 (G. Steele, D. Lea, C. Flood, 2014): a 64-bit hash of a counter. */
static uint64_t hash(uint64_t counter) {
    uint64_t z = (counter + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* An element in units of 1/64. Magnitudes below 256 take 8 bits, so that the value is exact in every element type and
 * all workers, and all element types, compute on the same numbers. x and dy: the sum of four uniform numbers, close to
 * a normal distribution of deviation 1.15; weight: 0.5 to 1.5; bias: -1 to 1. */
static int number(enum bench_role role, int64_t index) {
    uint64_t h = hash((uint64_t)role << 32 | (uint64_t)index);
    if (role == BENCH_WEIGHT)
        return (int)(h & 63) + 32;
    if (role == BENCH_BIAS)
        return (int)(h & 127) - 64;
    return (int)((h & 127) + (h >> 7 & 127) + (h >> 14 & 127) + (h >> 21 & 127)) - 254;
}

static uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Exact: the numbers have few bits, and none is subnormal in binary16 (the least is 2^-6). */
static uint16_t f16_bits(float value) {
    uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000;
    return (uint16_t)(value == 0 ? sign : sign | ((bits & 0x7fffffff) - (UINT32_C(112) << 23)) >> 13);
}

static void store(void *array, enum bench_dtype dtype, int64_t index, int sixty_fourths) {
    float value = (float)sixty_fourths / 64;
    switch (dtype) {
    case BENCH_F32: ((float *)array)[index] = value; break;
    case BENCH_F64: ((double *)array)[index] = value; break;
    case BENCH_F16: ((uint16_t *)array)[index] = f16_bits(value); break;
    default: ((uint16_t *)array)[index] = (uint16_t)(float_bits(value) >> 16); break;
    }
}

void bench_fill(void *array, enum bench_dtype dtype, enum bench_role role, int64_t count) {
    size_t size = bench_item_size(dtype);
    if (role == BENCH_OUTPUT) {
        memset(array, 0, (size_t)count * size);
        return;
    }
    int64_t first = count < PERIOD ? count : PERIOD;
    for (int64_t i = 0; i < first; i++)
        store(array, dtype, i, number(role, i));
    for (int64_t i = first; i < count; i += PERIOD) {
        int64_t n = count - i < PERIOD ? count - i : PERIOD;
        memcpy((unsigned char *)array + (size_t)i * size, array, (size_t)n * size);
    }
}

/* An element as f64; NaN for whatever is not finite. */
static double load(const void *array, enum bench_dtype dtype, int64_t index) {
    double value;
    uint16_t bits;
    switch (dtype) {
    case BENCH_F32: value = (double)((const float *)array)[index]; break;
    case BENCH_F64: value = ((const double *)array)[index]; break;
    case BENCH_F16: /* the exponent moves by 112; a product, so that subnormals come out right */
        bits = ((const uint16_t *)array)[index];
        value = (double)bits_float((uint32_t)(bits & 0x7fff) << 13) * 0x1p112;
        if ((bits & 0x7c00) == 0x7c00)
            value = NAN;
        else if (bits & 0x8000)
            value = -value;
        break;
    default: value = (double)bits_float((uint32_t)((const uint16_t *)array)[index] << 16); break;
    }
    return isfinite(value) ? value : (double)NAN;
}

void bench_digest(struct bench_digest *digest, const void *array, enum bench_dtype dtype, int64_t count) {
    memset(digest, 0, sizeof *digest);
    digest->count = count;
    for (int64_t i = 0; i < count; i++) {
        double value = load(array, dtype, i);
        if (isnan(value))
            digest->not_finite++;
        else
            digest->magnitude += fabs(value);
    }
    int64_t n = digest->samples_count = count < BENCH_SAMPLES ? count : BENCH_SAMPLES;
    int64_t gaps = n > 1 ? n - 1 : 1, whole = (count - 1) / gaps, rest = (count - 1) % gaps;
    for (int64_t i = 0; i < n; i++) {
        double value = load(array, dtype, i * whole + i * rest / gaps);
        digest->samples[i] = isnan(value) ? 0 : value;
    }
}
