/* The exact y of every element of a group, against Y: by pairs of f64 with a bound of their error, and by MPFR where
 * the bound leaves something open. */
#ifndef LNORM_CLI_EXACT_Y_H
#define LNORM_CLI_EXACT_Y_H

#include "exact_mpfr.h"
#include "statistics.h"

typedef struct exact_y {
    exact_mpfr *mpfr;
    const group *g;
    double limit; /* verdicts say for certain whether ulps are above this, and above 1 */
    enum { PAIRS, MPFR_ONLY, ALL_NAN, BIAS_OR_NAN } regime;
    pair_statistics statistics;
    lnorm_pair rstd;
    double rstd_error, mean_error; /* relative; absolute */
    int64_t by_mpfr;               /* elements that MPFR decided */
} exact_y;

/* False where there is not enough memory. exact_y_free in any case. */
int exact_y_init(exact_y *e, double limit);
void exact_y_free(exact_y *e);

void exact_y_begin(exact_y *e, const group *g);
void exact_y_judge(exact_y *e, int64_t i, verdict *v);

/* Of an element that was MEASURED. */
void exact_y_show(exact_y *e, int64_t i, exact_texts *texts);

#endif
