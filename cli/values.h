/* The values of an array group by group: x, the statistics, y. */
#ifndef LNORM_CLI_VALUES_H
#define LNORM_CLI_VALUES_H

#include "scheme.h"

#include <stdio.h>

/* Where the elements of a scheme's x come from. `first` is counted as x's strides count, from element [0, 0, ...];
 * read(where, to, first, count, error) copies those and the next ones in memory. */
typedef struct elements {
    const void *where;
    lnorm_status (*read)(const void *where, void *to, int64_t first, int64_t count, lnorm_error *error);
    const char *elsewhere; /* a sentence: what computes the statistics of a group that is too large to be read here */
} elements;

/* In lines of at most `width` characters; of an array too large for a screen the first and the last group. */
lnorm_status values_print(FILE *to, const scheme *s, const elements *from, int width, lnorm_error *error);

#endif
