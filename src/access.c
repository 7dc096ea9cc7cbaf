#include "access.h"

/* f16 is 1 sign bit, 5 exponent bits with bias 15, 10 fraction bits. */
double lnorm_widen_f16(uint16_t half) {
    uint64_t sign = (uint64_t)(half >> 15) << 63;
    uint64_t exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
    if (exponent == 0) { /* zeros and subnormals: fraction times 2^-24, a product that is exact */
        double magnitude = (double)fraction * 0x1p-24;
        return sign ? -magnitude : magnitude;
    }
    uint64_t wide = exponent == 0x1f ? 0x7ff : exponent + (1023 - 15);
    return lnorm_f64_of_bits(sign | wide << 52 | fraction << 42);
}

/* Rounds to a 16-bit format with `digits` fraction bits and an exponent bias of `bias`, to nearest even. Integers all
 * the way, so that neither the rounding mode nor flush-to-zero has a say, and no second rounding can happen.
 *
 * The significand is kept with its leading bit. Adding it to (field - 1) << digits lets that bit step the exponent, so
 * a carry out of the fraction moves to the next binade, from the largest subnormal to the smallest normal, and from the
 * largest finite number to infinity, by itself. */
static uint16_t round_to_16(double value, int digits, int bias) {
    uint64_t bits = lnorm_bits_of_f64(value);
    uint64_t sign = bits >> 63 << 15, infinity = 0x7fffu >> digits << digits;
    uint64_t fraction = bits & 0xfffffffffffffu;
    int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff && fraction)
        return (uint16_t)(sign | infinity | 1u << (digits - 1));
    if (exponent == 0) /* f64 subnormals are below half of either format's smallest number */
        return (uint16_t)sign;
    int field = exponent - 1023 + bias;
    if (field >= 2 * bias + 1) /* at least twice the largest power of two of the format, or infinite */
        return (uint16_t)(sign | infinity);

    uint64_t significand = fraction | 1ull << 52, base = 0;
    int shift = 52 - digits;
    if (field > 0)
        base = (uint64_t)(field - 1) << digits;
    else
        shift += 1 - field;
    if (shift > 54) /* below a quarter of the smallest subnormal: 0, as with 54 */
        shift = 54;
    uint64_t kept = significand >> shift, rest = significand & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    return (uint16_t)(sign | (base + kept));
}

uint16_t lnorm_round_f16(double value) {
    return round_to_16(value, 10, 15);
}

uint16_t lnorm_round_bf16(double value) {
    return round_to_16(value, 7, 127);
}

size_t lnorm_element_size(enum lnorm_element element) {
    switch (element) {
#define DTYPE(ID, name, code, bits)                                                                                   \
    case LNORM_ELEMENT_##ID:                                                                                          \
        return bits / 8;
#include "lists/dtypes.def"
#undef DTYPE
    default:
        return 0;
    }
}

/* Elements are copied, not dereferenced: the caller's memory may have any declared type. */
double lnorm_load(enum lnorm_element element, const void *data, int64_t index) {
    const char *at = (const char *)data + index * (int64_t)lnorm_element_size(element);
    double f64;
    float f32;
    uint16_t half;
    switch (element) {
    case LNORM_ELEMENT_F64:
        memcpy(&f64, at, sizeof f64);
        return f64;
    case LNORM_ELEMENT_F32:
        memcpy(&f32, at, sizeof f32);
        return (double)f32;
    case LNORM_ELEMENT_F16:
        memcpy(&half, at, sizeof half);
        return lnorm_widen_f16(half);
    case LNORM_ELEMENT_BF16:
        memcpy(&half, at, sizeof half);
        return lnorm_widen_bf16(half);
    default:
        return 0.0;
    }
}

void lnorm_store(enum lnorm_element element, void *data, int64_t index, double value) {
    char *at = (char *)data + index * (int64_t)lnorm_element_size(element);
    float f32;
    uint16_t half;
    switch (element) {
    case LNORM_ELEMENT_F64:
        memcpy(at, &value, sizeof value);
        return;
    case LNORM_ELEMENT_F32:
        f32 = (float)value;
        memcpy(at, &f32, sizeof f32);
        return;
    case LNORM_ELEMENT_F16:
        half = lnorm_round_f16(value);
        memcpy(at, &half, sizeof half);
        return;
    case LNORM_ELEMENT_BF16:
        half = lnorm_round_bf16(value);
        memcpy(at, &half, sizeof half);
        return;
    default:
        return;
    }
}
