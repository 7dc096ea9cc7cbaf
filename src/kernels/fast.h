/* The fast arithmetic (docs/arithmetic.md, section 22) as far as it needs no vectors: compiled once, not per instruction
 * set. */
#ifndef LNORM_KERNELS_FAST_H
#define LNORM_KERNELS_FAST_H

#include "../access.h"
#include "tiles.h"

enum { LN_FAST_COLS = 1024 /* columns of weight and bias that are widened at once */ };

/* Statistics as the elements use them: xhat = ((x - h) - l)*rho where the row is regular. */
typedef struct ln_fast_form {
    float h, l, rho;
    int regular;
} ln_fast_form;

static inline ln_fast_form ln_fast_form_of(const ln_record *s) {
    ln_fast_form f = {0.0f, 0.0f, 0.0f, 0};
    f.regular = fabs(s->c) <= 0x1p100 && (s->r == 0.0 || (s->r >= 0x1p-100 && s->r <= 0x1p100));
    if (f.regular) {
        f.h = (float)s->c;
        f.l = (float)((s->c - (double)f.h) + s->t);
        f.rho = (float)s->r;
    }
    return f;
}

/* The eight rows of a run, where each of them begins. */
typedef struct ln_run_rows {
    const char *row[LNORM_RUN_ROWS];
} ln_run_rows;

/* From the sums of x and x*x in runs. False where those of the accurate arithmetic are due. */
static inline int ln_fast_finish_runs(ln_record *s, ln_pair sum, int64_t count, double eps, int center) {
    double n = (double)count, m = sum.a / n, q = sum.b / n, radicand;
    s->c = center ? (double)(float)m : 0.0;
    s->t = 0.0;
    s->v = center ? q - m * m : q;
    radicand = s->v + eps;
    s->r = radicand > 0.0 ? 1.0 / sqrt(radicand) : 0.0;
    return (!center || s->v * LNORM_KAPPA >= m * m) && radicand >= 0x1p-100 && radicand <= 0x1p100;
}

/* n elements of a row that is not regular. */
static inline void ln_fast_irregular(enum lnorm_element element, char *y, const char *x, const float *weight,
                                     const float *bias, const ln_record *s, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float value = (float)(((lnorm_load(element, x, i) - s->c) - s->t) * s->r);
        float w = (float)lnorm_load(LNORM_ELEMENT_F32, weight, i), b = (float)lnorm_load(LNORM_ELEMENT_F32, bias, i);
        value = value * w;
        value = value + b;
        lnorm_store(element, y, i, (double)value);
    }
}

#endif
