#include "ulp.h"

const format formats[LNORM_ELEMENT_ABSENT] = {
    {53, -1074, 1024, 21}, {24, -149, 128, 13}, {11, -24, 16, 9}, {8, -133, 128, 8}};

int ends_even(const format *f, double y) {
    return fmod(ldexp(y, -spacing_of(f, y)), 2.0) == 0.0;
}

double round_to(enum lnorm_element element, double value) {
    switch (element) {
    case LNORM_ELEMENT_F32:
        return (double)(float)value;
    case LNORM_ELEMENT_F16:
        return lnorm_widen_f16(lnorm_round_f16(value));
    case LNORM_ELEMENT_BF16:
        return lnorm_widen_bf16(lnorm_round_bf16(value));
    default:
        return value;
    }
}
