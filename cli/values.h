/* The values of an array group by group: x, the statistics, y. */
#ifndef LNORM_CLI_VALUES_H
#define LNORM_CLI_VALUES_H

#include "scheme.h"

/* On standard output, in lines of at most `width` characters; of an array too large for a screen the first and the last
 * group. Returns an exit status. */
int values_print(const scheme *s, const lnorm_file *file, int width);

#endif
