#include "case_number.h"

#include <math.h>
#include <string.h>

/* Bits and exponent range of each IEEE type. */
static const struct format {
    int bits, mantissa, bias;
} formats[] = {[CASE_F64] = {64, 52, 1023},
               [CASE_F32] = {32, 23, 127},
               [CASE_F16] = {16, 10, 15},
               [CASE_BF16] = {16, 7, 127},
               [CASE_I64] = {64, 0, 0}};

size_t case_element_size(enum case_element element) {
    return (size_t)formats[element].bits / 8;
}

lnorm_dtype case_dtype(enum case_element element) {
    switch (element) {
    case CASE_F64: return LNORM_F64;
    case CASE_F32: return LNORM_F32;
    case CASE_F16: return LNORM_F16;
    case CASE_BF16: return LNORM_BF16;
    default: return LNORM_DTYPE(0, 64); /* DLPack's signed integer: refused by the library */
    }
}

static uint64_t sign_bit(enum case_element element) {
    return UINT64_C(1) << (formats[element].bits - 1);
}

/* The magnitude bits of infinity; what is above is NaN. */
static uint64_t infinity_bits(enum case_element element) {
    const struct format *f = &formats[element];
    return ((UINT64_C(1) << (f->bits - 1 - f->mantissa)) - 1) << f->mantissa;
}

static uint64_t magnitude(enum case_element element, uint64_t bits) {
    return bits & (sign_bit(element) - 1);
}

static int is_nan(enum case_element element, uint64_t bits) {
    return magnitude(element, bits) > infinity_bits(element);
}

double case_decode(enum case_element element, uint64_t bits) {
    const struct format *f = &formats[element];
    if (element == CASE_I64)
        return (double)(int64_t)bits;
    uint64_t size = magnitude(element, bits);
    double value;
    if (size >= infinity_bits(element))
        value = size == infinity_bits(element) ? (double)INFINITY : (double)NAN;
    else {
        int exponent = (int)(size >> f->mantissa);
        uint64_t fraction = size & ((UINT64_C(1) << f->mantissa) - 1);
        if (exponent)
            fraction |= UINT64_C(1) << f->mantissa;
        else
            exponent = 1; /* subnormal */
        value = ldexp((double)fraction, exponent - f->bias - f->mantissa);
    }
    return bits & sign_bit(element) ? -value : value;
}

int case_encode(enum case_element element, double value, uint64_t *bits) {
    const struct format *f = &formats[element];
    uint64_t wide;
    memcpy(&wide, &value, sizeof wide);
    if (element == CASE_I64) {
        *bits = (uint64_t)(int64_t)value;
        return (double)(int64_t)value == value;
    }
    uint64_t sign = wide >> 63 ? sign_bit(element) : 0;
    if (value == 0.0 || isnan(value) || isinf(value)) {
        *bits = sign | (value == 0.0 ? 0 : infinity_bits(element) + (isnan(value) ? 1u : 0u));
        return 1;
    }
    int exponent = (int)(wide >> 52 & 2047) - 1023 + f->bias; /* biased for the type; f64 subnormals: <= 0 in all */
    if (exponent < 1)
        exponent = 1;
    /* In steps of the type's numbers at this exponent the value is an integer, below 2^(mantissa + 1). */
    double steps = ldexp(fabs(value), f->bias + f->mantissa - exponent);
    if (exponent > 2 * f->bias || steps >= ldexp(1.0, f->mantissa + 1) || steps != floor(steps))
        return 0;
    *bits = sign | (((uint64_t)(exponent - 1) << f->mantissa) + (uint64_t)steps);
    return 1;
}

uint64_t case_load(enum case_element element, const char *data, int64_t index) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (case_element_size(element)) {
    case 2: memcpy(&two, data + index * 2, 2); return two;
    case 4: memcpy(&four, data + index * 4, 4); return four;
    default: memcpy(&eight, data + index * 8, 8); return eight;
    }
}

void case_store(enum case_element element, char *data, int64_t index, uint64_t bits) {
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;
    switch (case_element_size(element)) {
    case 2: memcpy(data + index * 2, &two, 2); break;
    case 4: memcpy(data + index * 4, &four, 4); break;
    default: memcpy(data + index * 8, &bits, 8); break;
    }
}

/* Magnitudes of one sign follow each other as their bits do. */
uint64_t case_distance(enum case_element element, uint64_t a, uint64_t b) {
    uint64_t low = magnitude(element, a), high = magnitude(element, b);
    if ((a ^ b) & sign_bit(element))
        return low + high;
    return low < high ? high - low : low - high;
}

uint64_t case_move(enum case_element element, uint64_t bits, int64_t steps) {
    int64_t position = (int64_t)magnitude(element, bits);
    position = (bits & sign_bit(element) ? -position : position) + steps;
    return position < 0 ? sign_bit(element) | (uint64_t)-position : (uint64_t)position;
}

/* From the magnitude of a finite value to the next larger one; at the type's largest value to the one below. */
static long double step(enum case_element element, uint64_t bits) {
    uint64_t at = magnitude(element, bits);
    uint64_t next = at + 1 == infinity_bits(element) ? at - 1 : at + 1;
    return fabsl((long double)case_decode(element, next) - (long double)case_decode(element, at));
}

int case_passes(enum case_element element, uint64_t expected, uint64_t got, int ulp, double absolute) {
    if (is_nan(element, expected) || is_nan(element, got))
        return is_nan(element, expected) && is_nan(element, got);
    uint64_t distance = case_distance(element, expected, got);
    /* Infinity is not "one step" above the largest value: its absolute error would be infinite. */
    if (magnitude(element, expected) == infinity_bits(element) || magnitude(element, got) == infinity_bits(element))
        return distance == 0;
    if (distance <= (uint64_t)ulp)
        return 1;
    if (absolute < 0)
        return 0;
    long double error = fabsl((long double)case_decode(element, got) - (long double)case_decode(element, expected));
    return error <= (long double)absolute + ulp * step(element, expected);
}

uint64_t case_digest(enum case_element element, const char *data, int64_t count) {
    uint64_t digest = UINT64_C(0xCBF29CE484222325);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = case_load(element, data, i);
        if (is_nan(element, bits))
            bits = infinity_bits(element) + 1;
        digest = (digest ^ bits) * UINT64_C(0x100000001B3);
        digest ^= digest >> 32;
    }
    return digest;
}
