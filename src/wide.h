/* What the wide kernels ask of wide.c. */
#ifndef LNORM_WIDE_H
#define LNORM_WIDE_H

#include "kernels.h"

/* Weight and bias as they are used, of n columns from `first` on, in buffers of LNORM_BLOCK: weight + 1 where the
 * operation says so, 1 and 0 where there is none. What the last vector of columns lacks is that, too. */
void lnorm_wide_read_affine(const lnorm_wide_rows *a, int64_t first, int n, double *weight, double *bias);

#endif
