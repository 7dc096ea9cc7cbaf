/* The core rounds from f64 to narrower types, too (src/access.c), but does not export it, and its normalisations are no
 * conversion: their wide arithmetic has other rules for infinities. */
#include "convert.h"

#include <string.h>

/* An IEEE 754 binary format: sign, exponent, fraction. */
typedef struct format {
    int exponent_bits, fraction_bits;
} format;

static format format_of(const lnorm_files_element *element) {
    const int bits = element->dtype.bits, bfloat = element->dtype.code == 4;
    const int exponent = bits == 64 ? 11 : bits == 32 || bfloat ? 8 : 5;
    return (format){exponent, bits - 1 - exponent};
}

static int bias_of(format f) {
    return (1 << (f.exponent_bits - 1)) - 1;
}

/* All ones in the exponent. */
static uint64_t infinity_of(format f) {
    return (((uint64_t)1 << f.exponent_bits) - 1) << f.fraction_bits;
}

/* m / 2^drop, 1 <= drop <= 64, to nearest even. */
static uint64_t rounded_shift(uint64_t m, int drop) {
    const uint64_t half = (uint64_t)1 << (drop - 1), kept = drop < 64 ? m >> drop : 0;
    const uint64_t rest = drop < 64 ? m - (kept << drop) : m;
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* The magnitude m*2^q, m > 0, in the format. With m's highest bit moved to bit 63 the number's exponent is q + 63. A
 * normal number keeps fraction_bits + 1 bits, the first of them adding 1 to the exponent field below it; a subnormal
 * one keeps fewer. A carry of the rounding goes into the exponent, where it belongs, up to infinity. */
static uint64_t pack(uint64_t m, int q, format f) {
    for (; !(m >> 63); m <<= 1)
        q--;
    const int exponent = q + 63 + bias_of(f);
    const int drop = 63 - f.fraction_bits + (exponent >= 1 ? 0 : 1 - exponent);
    if (drop > 64) /* less than half of the smallest number */
        return 0;
    if (exponent >= 1 << f.exponent_bits)
        return infinity_of(f);
    const uint64_t bits = rounded_shift(m, drop) + (exponent >= 1 ? (uint64_t)(exponent - 1) << f.fraction_bits : 0);
    return bits < infinity_of(f) ? bits : infinity_of(f);
}

static uint64_t convert(uint64_t bits, format from, format to) {
    const int sign_bit = from.exponent_bits + from.fraction_bits;
    const uint64_t sign = (bits >> sign_bit & 1) << (to.exponent_bits + to.fraction_bits);
    const uint64_t magnitude = bits & (((uint64_t)1 << sign_bit) - 1);
    const uint64_t fraction = bits & (((uint64_t)1 << from.fraction_bits) - 1);
    const int exponent = (int)(magnitude >> from.fraction_bits);
    if (magnitude > infinity_of(from)) /* a quiet NaN */
        return sign | infinity_of(to) | (uint64_t)1 << (to.fraction_bits - 1);
    if (magnitude == infinity_of(from))
        return sign | infinity_of(to);
    if (!magnitude)
        return sign;
    if (!exponent)
        return sign | pack(fraction, 1 - bias_of(from) - from.fraction_bits, to);
    return sign | pack(fraction | (uint64_t)1 << from.fraction_bits, exponent - bias_of(from) - from.fraction_bits, to);
}

static uint64_t load(const unsigned char *at, int32_t size) {
    uint64_t wide;
    uint32_t word;
    uint16_t half;
    if (size == 8)
        return memcpy(&wide, at, 8), wide;
    if (size == 4)
        return memcpy(&word, at, 4), word;
    return memcpy(&half, at, 2), half;
}

static void store(unsigned char *at, int32_t size, uint64_t bits) {
    const uint32_t word = (uint32_t)bits;
    const uint16_t half = (uint16_t)bits;
    memcpy(at, size == 8 ? (const void *)&bits : size == 4 ? (const void *)&word : &half, (size_t)size);
}

void lnorm_files_convert(void *to, const lnorm_files_element *to_element, const void *from,
                         const lnorm_files_element *from_element, int64_t count) {
    const format source = format_of(from_element), target = format_of(to_element);
    const int32_t from_size = from_element->size, to_size = to_element->size;
    for (int64_t i = 0; i < count; i++)
        store((unsigned char *)to + i * to_size, to_size,
              convert(load((const unsigned char *)from + i * from_size, from_size), source, target));
}
