/* The element types as sets of numbers: their spacing, and rounding to them. */
#ifndef LNORM_CLI_ULP_H
#define LNORM_CLI_ULP_H

#include "pairs.h"

typedef struct format {
    int digits; /* bits of the significand */
    int lowest; /* the smallest number above 0 is 2^lowest */
    int top;    /* the largest is just below 2^top */
    int shown;  /* decimal digits that tell neighbours apart, and a few more to see fractions of an ulp */
} format;

extern const format formats[LNORM_ELEMENT_ABSENT];

/* The spacing ("ulp") of the type's numbers at a magnitude from 2^exponent to 2^(exponent+1), as a power of two. Beyond
 * the type's range it stays what it was below. */
static inline int spacing_at(const format *f, int exponent) {
    int spacing = (exponent < f->top ? exponent : f->top - 1) - f->digits + 1;
    return spacing > f->lowest ? spacing : f->lowest;
}

static inline int spacing_of(const format *f, double value) {
    return spacing_at(f, lnorm_exponent(value));
}

/* |y|, one of the type's numbers, is a power of two with closer neighbours below than above. */
static inline int begins_binade(const format *f, double y) {
    uint64_t fraction = lnorm_bits_of_f64(y) & 0xfffffffffffffu;
    return fraction == 0 && lnorm_exponent(y) > f->lowest + f->digits - 1;
}

/* The last bit of y, one of the type's numbers, is 0. */
int ends_even(const format *f, double y);

/* The nearest number of the type, ties to even. */
double round_to(enum lnorm_element element, double value);

#endif
