/* What a program that holds only a part of a long row in memory needs to know. */
#ifndef LNORM_LONG_H
#define LNORM_LONG_H

#include "lnorm.h"

/* True where a task touches elements first .. first+count-1 of row `row` and no others: of x, y, dy and dx, and, where
 * they run along the row, of weight, bias, dweight and dbias. The rest of these arrays need not be in memory then; the
 * workspace must be given, and statistics and parameters that do not run along the row are touched as always. False
 * for a plan that is not cut into segments, and for a task that sums over several rows. */
int lnorm_plan_segment(const lnorm_plan *plan, int phase, int64_t task, int64_t *row, int64_t *first, int64_t *count);

#endif
