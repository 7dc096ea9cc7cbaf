/* The element types' numbers as the tests understand them, written apart from the library's own conversions, and the
 * comparison of tests/cases/README.md, "Tolerances". */
#ifndef CASE_NUMBER_H
#define CASE_NUMBER_H

#include "case_file.h"

#include <stdint.h>

size_t case_element_size(enum case_element element);
lnorm_dtype case_dtype(enum case_element element);

/* The bits of a value of the type. 0: the value is not one of this type (nothing is rounded here). */
int case_encode(enum case_element element, double value, uint64_t *bits);
double case_decode(enum case_element element, uint64_t bits);

uint64_t case_load(enum case_element element, const char *data, int64_t index);
void case_store(enum case_element element, char *data, int64_t index, uint64_t bits);

/* How many representable values lie from one to the other; both zeros are one. Neither is NaN. */
uint64_t case_distance(enum case_element element, uint64_t a, uint64_t b);

/* The representable value `steps` above (below, where negative) a finite one. */
uint64_t case_move(enum case_element element, uint64_t bits, int64_t steps);

/* Does `got` pass as `expected`? NaN passes for NaN only, an infinity for the same infinity only. `absolute` < 0: there
 * is no tolerance_abs. */
int case_passes(enum case_element element, uint64_t expected, uint64_t got, int ulp, double absolute);

/* A digest of elements in which every NaN is the same. */
uint64_t case_digest(enum case_element element, const char *data, int64_t count);

#endif
