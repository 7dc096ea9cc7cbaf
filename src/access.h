/* Reading and writing single elements of any type. Widening is exact; narrowing is one rounding, to nearest even. */
#ifndef LNORM_ACCESS_H
#define LNORM_ACCESS_H

#include "problem.h"
#include <string.h>

static inline double lnorm_f64_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t lnorm_bits_of_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double lnorm_widen_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

double lnorm_widen_f16(uint16_t half);
/* f64 to f16 or bf16 in one rounding, to nearest even; NaN stays NaN; subnormals are kept; overflow gives infinity. */
uint16_t lnorm_round_f16(double value);
uint16_t lnorm_round_bf16(double value);

size_t lnorm_element_size(enum lnorm_element element);
double lnorm_load(enum lnorm_element element, const void *data, int64_t index);
void lnorm_store(enum lnorm_element element, void *data, int64_t index, double value);

#endif
