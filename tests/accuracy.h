/* The parts of the program `accuracy`, which looks for errors beyond the bounds on far more inputs than a test can. */
#ifndef LNORM_ACCURACY_H
#define LNORM_ACCURACY_H

#include "exact_draw.h"

/* What all parts count. */
typedef struct accuracy {
    exact_random random;
    int64_t wanted, done; /* results compared with MPFR */
    int64_t refused;      /* of them, further off than the bound allows */
    int quiet;
} accuracy;

/* One dense operation on rows: x [rows, cols], weight and bias [cols], and every output of the pass. */
typedef struct rows_form {
    lnorm_arithmetic arithmetic;
    lnorm_kind kind; /* layer or RMS norm */
    lnorm_pass pass; /* forward or backward */
    enum lnorm_element input, output;
    int64_t rows, cols;
    double eps;
} rows_form;

/* How the values of a row are distributed. */
typedef enum spread { NORMAL, UNIFORM, HEAVY_TAILS, ONE_SIDED, OUTLIER_PAIR, ALL_EXPONENTS, SPREADS } spread;
extern const char *const spread_name[SPREADS];

/* exact_case_free frees it. Values are those of the last fill. */
void rows_open(exact_case *c, const rows_form *form);
/* x: `offset` spreads from 0, about `scale` wide; the other inputs around 1. */
void rows_fill(exact_case *c, exact_random *random, spread spread, double offset, double scale);

/* Runs the library and compares every result; the number of results, of which *refused were too far off. */
int64_t accuracy_compare(const exact_case *c, int64_t *refused);

void accuracy_rows(accuracy *a);
/* Hill climbing: changes inputs so that some output uses more and more of what its bound allows. */
void accuracy_hunt(accuracy *a, double seconds);
/* Inputs and exact results of y as .npy files, for other libraries: tools/accuracy.py. */
void accuracy_export(const char *folder);

#endif
