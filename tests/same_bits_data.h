/* Inputs and results of same_bits.c as bit patterns: element types, values, strided tensors, hashes. */
#ifndef LNORM_SAME_BITS_DATA_H
#define LNORM_SAME_BITS_DATA_H

#include "lnorm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- element types --------------------------------------------------------------------------------------------- */

enum { F64, F32, F16, BF16 };
static const struct {
    uint8_t code, bits;
    int mantissa;
} formats[] = {{2, 64, 52}, {2, 32, 23}, {2, 16, 10}, {4, 16, 7}};

static uint64_t top_exponent(int format) {
    return (UINT64_C(1) << (formats[format].bits - 1 - formats[format].mantissa)) - 1;
}

static uint64_t load_bits(int format, const unsigned char *at) {
    uint64_t wide;
    uint32_t single;
    uint16_t half;
    switch (formats[format].bits) {
    case 64:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case 32:
        memcpy(&single, at, sizeof single);
        return single;
    default:
        memcpy(&half, at, sizeof half);
        return half;
    }
}

static void store_bits(int format, unsigned char *at, uint64_t bits) {
    uint32_t single = (uint32_t)bits;
    uint16_t half = (uint16_t)bits;
    switch (formats[format].bits) {
    case 64:
        memcpy(at, &bits, sizeof bits);
        break;
    case 32:
        memcpy(at, &single, sizeof single);
        break;
    default:
        memcpy(at, &half, sizeof half);
    }
}

static uint64_t canonical(int format, uint64_t bits) {
    int mantissa = formats[format].mantissa;
    uint64_t infinity = top_exponent(format) << mantissa;
    uint64_t magnitude = bits & ~(UINT64_C(1) << (formats[format].bits - 1));
    return magnitude > infinity ? infinity | UINT64_C(1) << (mantissa - 1) : bits;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Kinds of rows. HARD takes the finite ones in turn, POISON puts a NaN or an infinity into some rows. */
enum { NORMAL, CONSTANT, LARGE_MEAN, SUBNORMAL, LARGEST, MINUS_ZERO, OUTLIERS, EXPONENTS, FINITE_KINDS };
enum { HARD = FINITE_KINDS, POISON, POSITIVE, LIMITS };
static const char *const fill_names[] = {
    [NORMAL] = "normal", [HARD] = "hard", [POISON] = "poison", [LIMITS] = "limits"};

static uint64_t finite_value(int format, int kind, int64_t column, uint64_t random) {
    int mantissa = formats[format].mantissa;
    uint64_t top = top_exponent(format), one = top >> 1; /* the exponent fields of infinity and of 1.0 */
    uint64_t sign = random >> 63 << (formats[format].bits - 1);
    uint64_t fraction = (random >> 8) & ((UINT64_C(1) << mantissa) - 1);
    switch (kind) {
    case CONSTANT: /* 0.1, cut to the format */
        return (one - 4) << mantissa | UINT64_C(0x999999999999A) >> (52 - mantissa);
    case LARGE_MEAN: /* 1024 and a few units in the last place */
        return (one + 10) << mantissa | (fraction & 7);
    case SUBNORMAL:
        return sign | fraction;
    case LARGEST:
        return sign | (top - 1) << mantissa | fraction;
    case MINUS_ZERO:
        return UINT64_C(1) << (formats[format].bits - 1);
    case OUTLIERS: /* +4096, -4096, then 0.125 .. 4 */
        if (column < 2)
            return (uint64_t)column << (formats[format].bits - 1) | (one + 12) << mantissa;
        break;
    case EXPONENTS:
        return sign | (random >> 3) % top << mantissa | fraction;
    default:
        break;
    }
    return sign | (one - 3 + (random >> 3) % 5) << mantissa | fraction;
}

/* Rows at both sides of what the arithmetic compares with: mean^2/variance about 75, 62, 53; a mean about 2^99, 2^100;
 * a spread about 2^scale. */
enum { LIMIT_KINDS = 15 };
static uint64_t limit_value(int format, int64_t row, uint64_t random) {
    static const struct {
        int scale, sixteenths; /* numbers from 2^scale upwards by this part of it; 0: of either sign, three exponents */
    } kinds[LIMIT_KINDS] = {{3, 8},   {3, 9},   {3, 10}, {99, 5}, {100, 5}, {-1000, 0}, {-101, 0}, {-100, 0},
                            {-51, 0}, {-50, 0}, {49, 0}, {50, 0}, {99, 0},  {100, 0},   {1000, 0}};
    int mantissa = formats[format].mantissa, sixteenths = kinds[row % LIMIT_KINDS].sixteenths;
    int64_t largest = (int64_t)top_exponent(format) - 1;
    int64_t exponent = largest / 2 + kinds[row % LIMIT_KINDS].scale;
    uint64_t sign = random >> 63 << (formats[format].bits - 1);
    uint64_t fraction = (random >> 8) & ((UINT64_C(1) << mantissa) - 1);
    if (sixteenths) {
        sign = 0;
        fraction %= (UINT64_C(1) << mantissa) / 16 * (uint64_t)sixteenths;
    } else
        exponent += (int64_t)((random >> 3) % 3) - 1;
    exponent = exponent < 0 ? 0 : exponent > largest ? largest : exponent;
    return sign | (uint64_t)exponent << mantissa | fraction;
}

static uint64_t value(int format, int fill, int64_t row, int64_t column, int64_t columns, uint64_t random) {
    uint64_t sign = UINT64_C(1) << (formats[format].bits - 1);
    if (fill == HARD)
        return finite_value(format, (int)((row + columns) % FINITE_KINDS), column, random);
    if (fill == LIMITS)
        return limit_value(format, row, random);
    if (fill == POSITIVE)
        return finite_value(format, NORMAL, column, random) & ~sign;
    if (fill == POISON && row % 2 && column == columns / 2) {
        uint64_t infinity = top_exponent(format) << formats[format].mantissa;
        return row % 4 == 1 ? infinity | 1 : infinity | (row % 8 == 7 ? sign : 0);
    }
    return finite_value(format, NORMAL, column, random);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

enum { MAX_NDIM = 4, MAX_TENSORS = 24 };
enum layout { DENSE, PADDED, BACKWARDS, COLUMN_MAJOR };

typedef struct view {
    lnorm_tensor tensor;
    int format;
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
} view;

static _Alignas(64) unsigned char arena[1 << 20];
static size_t arena_used;

static void *take(size_t bytes) {
    unsigned char *at = arena + arena_used;
    arena_used += (bytes + 63) / 64 * 64;
    if (arena_used > sizeof arena) {
        fprintf(stderr, "same_bits: the arena is too small\n");
        exit(2);
    }
    return at;
}

static void make_view(view *v, int format, int ndim, const int64_t *shape, enum layout layout) {
    int64_t size = formats[format].bits / 8, step = 1, first = 0;
    memset(v, 0, sizeof *v);
    for (int i = 0; i < ndim; i++) {
        int axis = layout == COLUMN_MAJOR ? i : ndim - 1 - i;
        v->shape[axis] = shape[axis];
        v->strides[axis] = layout == BACKWARDS ? -step : step;
        if (layout == BACKWARDS && shape[axis] > 0)
            first += step * (shape[axis] - 1);
        step *= shape[axis] + (layout == PADDED && i == 0 ? 3 : 0);
    }
    v->format = format;
    v->tensor = lnorm_dense(take((size_t)(step * size)), LNORM_F32, ndim, v->shape);
    v->tensor.dtype.code = formats[format].code;
    v->tensor.dtype.bits = formats[format].bits;
    v->tensor.byte_offset = (uint64_t)(first * size);
    v->tensor.strides = layout == DENSE ? NULL : v->strides;
}

static int64_t elements(const view *v) {
    int64_t count = 1;
    for (int axis = 0; axis < v->tensor.ndim; axis++)
        count *= v->shape[axis];
    return count;
}

static unsigned char *element(const view *v, int64_t index) {
    int64_t offset = 0;
    for (int axis = v->tensor.ndim; axis-- > 0; index /= v->shape[axis])
        offset += index % v->shape[axis] * v->strides[axis];
    return (unsigned char *)v->tensor.data + v->tensor.byte_offset + offset * (formats[v->format].bits / 8);
}

static void fill_view(const view *v, int fill, int64_t columns, uint64_t seed) {
    for (int64_t i = 0, count = elements(v); i < count; i++) {
        uint64_t bits = value(v->format, fill, i / columns, i % columns, columns, splitmix64(&seed));
        store_bits(v->format, element(v, i), bits);
    }
}

static const uint64_t hash_start = UINT64_C(0xCBF29CE484222325);

static uint64_t hash_byte(uint64_t hash, unsigned byte) {
    return (hash ^ byte) * UINT64_C(0x100000001B3);
}

static uint64_t hash_view(uint64_t hash, const view *v) {
    for (int64_t i = 0, count = elements(v); i < count; i++) {
        uint64_t bits = canonical(v->format, load_bits(v->format, element(v, i)));
        for (int shift = 0; shift < formats[v->format].bits; shift += 8)
            hash = hash_byte(hash, (unsigned)(bits >> shift & 255));
    }
    return hash;
}

static uint64_t hash_text(const char *text) {
    uint64_t hash = hash_start;
    for (; *text; text++)
        hash = hash_byte(hash, (unsigned char)*text);
    return hash;
}

#endif
