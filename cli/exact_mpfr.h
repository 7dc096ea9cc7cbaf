/* The exact y of an element by MPFR, where pairs of f64 cannot decide, and for showing it. */
#ifndef LNORM_CLI_EXACT_MPFR_H
#define LNORM_CLI_EXACT_MPFR_H

#include "group.h"
#include "verdict.h"

/* Sums are exact: SUM bits are as many as the exponents of the group ask for, see exact_mpfr.c. All else is rounded
 * at WORK bits, a relative error of some 2^-317 in weight*xhat. Values are then rounded to SNAP bits, so that what is
 * a short number (a midpoint between two floats, a power of two) becomes that number again: weight*xhat is a rational
 * number or a square root of one, and does not come that near to a short number without being it, unless the group's
 * exponents are spread on purpose. */
enum { WORK = 320, SNAP = 256 };

typedef struct exact_mpfr exact_mpfr;

exact_mpfr *exact_mpfr_create(void); /* NULL: no memory */
void exact_mpfr_free(exact_mpfr *e);

/* The group that follows: finite elements and statistics. Its sums are computed when they are first needed. */
void exact_mpfr_begin(exact_mpfr *e, const group *g);

/* The verdict on y[i]; operands are finite, y[i] is not NaN. */
void exact_mpfr_judge(exact_mpfr *e, int64_t i, verdict *v);

/* Decimal texts of the exact y and of the group's statistics. */
typedef struct exact_texts {
    char y[64], mean[64], variance[64], rstd[64];
} exact_texts;
void exact_mpfr_show(exact_mpfr *e, int64_t i, exact_texts *texts);

#endif
