/* Comparing the library's results with the exact ones, and what was found. */
#ifndef LNORM_EXACT_CHECK_H
#define LNORM_EXACT_CHECK_H

#include "exact.h"

/* What was found of one output in one element type. Narrow results with a type below f64 show the last rounding; narrow
 * results in f64 show the error before it. */
enum { EXACT_BINS = 64 };

typedef struct exact_found {
    int64_t results, correct;   /* correct: the exact value rounded once */
    long double ulps;           /* worst error in ulps of the scale */
    long double units, allowed; /* worst error and worst derived bound in 2^-53 of the scale (narrow, f64 result) */
    long double share;          /* worst error over what is allowed */
    int64_t histogram[EXACT_BINS]; /* of errors in ulps of the scale: exact_bin */
} exact_found;

extern exact_found exact_table[3][LNORM_OPERANDS][LNORM_ELEMENT_ABSENT]; /* [0: narrow, 1: wide, 2: fast] */

/* Compares every output of the problem; returns the number of results that are too far off and prints the first few. */
int64_t exact_check(const lnorm_problem *problem, const lnorm_data *data, const exact *e);

/* Whether `got` is near enough to element i of an exact result. */
int exact_accepts(const lnorm_problem *problem, enum lnorm_operand operand, double got, const exact_result *exact,
                  int64_t i);

/* The worst error of an output over what is allowed. */
long double exact_worst_share(const lnorm_problem *problem, const lnorm_data *data, const exact *e,
                              enum lnorm_operand operand);

/* Bins 0 .. 15 are the 32nds below 0.5; 16: to 0.501; 17: to 1; 18 + k: to 2^(k+1). */
int exact_bin(long double ulps);

/* The spacing of the type's numbers at a magnitude; beyond the largest number it goes on growing. */
long double exact_spacing(enum lnorm_element element, long double magnitude);

void exact_print_table(void);

#endif
