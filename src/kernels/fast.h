/* The fast arithmetic (docs/arithmetic.md, section 22) as far as it needs no vectors: compiled once, not per
 * instruction set. An operation in f32 is assigned to a float: C may evaluate it in a wider type. */
#ifndef LNORM_KERNELS_FAST_H
#define LNORM_KERNELS_FAST_H

#include "../access.h"
#include "tiles.h"

enum {
    LN_FAST_COLS = 4096,                           /* columns of weight and bias at once */
    LN_FAST_TILE = LNORM_BLOCK * LNORM_BLOCK_RUNS, /* f32 that 16-bit rows are widened to: a block of the tree */
    LN_FAST_WIDE = 2 * LN_FAST_TILE,               /* f32 of 16-bit rows that go together */
    LN_LINE_COLS = LNORM_LINE / 4
};

#define VF_PER_LINE (LN_LINE_COLS / VF_WIDTH)

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

/* xhat of an x of +0 may be infinite: where sums are continued by such elements, 0*xhat would make them NaN. (l adds
 * next to nothing to h.) Only of rows that are one number, with a tiny eps, and of statistics that are given. */
static inline int ln_fast_is_far(const ln_fast_form *f) {
    return fabsf(f->h) * f->rho > 0x1p126f;
}

/* What runs of fewer than 256 elements need: a row of nothing, and the last row of each of a tile's runs, of which what
 * is beyond the elements stays +0. All +0 at first. */
typedef struct ln_run_rest {
    _Alignas(64) float last[LN_TILE_ROWS][LNORM_RUN_COLS], none[LNORM_RUN_COLS];
} ln_run_rest;

/* Rows whose sums are wanted; pitch in bytes. */
typedef struct ln_fast_source {
    enum lnorm_element element;
    int rows;
    const char *x;
    int64_t pitch, cols;
    const char *next; /* what will be read next, in rows at the same pitch, or NULL */
} ln_fast_source;

/* Whether the statistics that runs give, the mean m, v and v + eps, will do. Then the row is regular. */
static inline int ln_runs_suffice(enum lnorm_element element, int center, double m, double v, double radicand) {
    const double kappa = element == LNORM_ELEMENT_F32 ? LNORM_KAPPA_F32 : LNORM_KAPPA;
    return (!center || v * kappa >= m * m) && radicand >= 0x1p-100 && radicand <= 0x1p100;
}

/* From the sums of x and x*x in runs (blocks.c). False where those of the accurate arithmetic are due. */
int lnorm_fast_finish_runs(enum lnorm_element element, ln_record *s, ln_pair sum, int64_t count, double eps,
                           int center);

/* n elements of a row that is not regular. bias NULL: no addition. */
static inline void ln_fast_irregular(float *y, const float *x, const float *weight, const float *bias,
                                     const ln_record *s, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float value = (float)((((double)x[i] - s->c) - s->t) * s->r);
        value = value * weight[i];
        if (bias)
            value = value + bias[i];
        y[i] = value;
    }
}

/* -- Forward ------------------------------------------------------------------------------------------------------- */

/* What an element of y takes: the same bits as all of ((x - h) - l)*rho*weight + bias. */
enum ln_fast_what {
    LN_FAST_SCALED,  /* x*rho*weight: RMS without bias */
    LN_FAST_SHIFTED, /* h is subtracted; l is +0 */
    LN_FAST_SHIFTED_TWICE
};

/* Columns of rows: at least as many as a vector has. A missing weight is 1 and a missing bias -0. y may be x. */
typedef struct ln_fast_rows {
    char *y[2], *far[2];        /* far: where y goes from there, or NULL */
    enum lnorm_element element; /* of y */
    const float *x[2], *weight, *bias;
    int streams;   /* y goes past the caches: one usual row */
    const char *next; /* then: what will be read next */
    ln_fast_form form[2];
} ln_fast_rows;

/* What a call keeps on the stack. Columns go LN_FAST_COLS at a time, the last ones with up to 32 more, so that there
 * are never fewer than a line of 16-bit elements has. */
enum { LN_FAST_PITCH = LN_FAST_COLS + LNORM_LINE / 2 };
typedef struct ln_fast_tile {
    _Alignas(64) float wide[LN_FAST_WIDE]; /* 16-bit rows, whole or some columns; y that is rounded later */
    float weight[LN_FAST_PITCH], bias[LN_FAST_PITCH];
    const float *weight_at, *bias_at;
    const lnorm_rows *a;
    int64_t row;
    int rows, whole; /* rows together; `wide` holds them from beginning to end */
    int streams;     /* y goes past the caches */
    int64_t ahead;   /* bytes from x of the tile to that of the next, or 0 */
    ln_record s[LN_TILE_ROWS];
    ln_fast_form form[LN_TILE_ROWS];
    ln_run_rest rest;
} ln_fast_tile;

/* What the next tile is, of the rows that are left (fast_elements.c). */
void lnorm_fast_begin(ln_fast_tile *tile, int64_t row, int64_t rows_left);

/* Whether there is neither a mean nor a bias, and that is made use of. */
static inline int ln_fast_scales(const lnorm_rows *a) {
    return !a->center && !a->bias && !a->stream && a->element == LNORM_ELEMENT_F32;
}

/* Regular, and l is +0. */
static inline int ln_fast_is_usual(const ln_fast_form *form) {
    uint32_t bits;
    memcpy(&bits, &form->l, sizeof bits);
    return form->regular && !bits;
}

static inline enum ln_fast_what ln_fast_what_of(const ln_fast_form *form, const lnorm_rows *a) {
    if (!ln_fast_is_usual(form))
        return LN_FAST_SHIFTED_TWICE;
    return ln_fast_scales(a) ? LN_FAST_SCALED : LN_FAST_SHIFTED;
}

/* -- Backward ------------------------------------------------------------------------------------------------------ */

_Static_assert((int)LN_TILE_ROWS >= (int)LNORM_ROW_GROUP, "statistics of a group are computed as those of a tile");

typedef struct ln_fast_group {
    const char *x[LNORM_ROW_GROUP], *dy[LNORM_ROW_GROUP], *weight;
    char *dx[LNORM_ROW_GROUP];
    ln_record s[LNORM_ROW_GROUP];
    ln_fast_form form[LNORM_ROW_GROUP];
    float c1[LNORM_ROW_GROUP], c2[LNORM_ROW_GROUP];
    int rows, by_vectors; /* all of them are regular, and none is far */
    enum lnorm_element element, affine;
} ln_fast_group;

/* What becomes of a group's terms of dweight and dbias, two rows at a time */
enum ln_fast_step {
    LN_FAST_ANY,   /* stored, or added to what is there; any of dx, dweight, dbias may be missing */
    LN_FAST_FIRST, /* stored: rows 0 and 1, or 4 and 5 */
    LN_FAST_NEXT,  /* added to those */
    LN_FAST_LAST   /* added to those, then to what the other four rows have, then to the sums */
};

/* One element at a time, any row (fast_elements.c): column j of a group; the sums of g and g*xhat of row k. */
void lnorm_fast_column(const ln_fast_group *group, ln_column_sums sums, int64_t j);
void lnorm_fast_begin_column(ln_column_sums sums, int64_t j);
ln_pair lnorm_fast_sums(const ln_fast_group *group, int k, int64_t cols);

/* What the sums of a lone row's runs give, and its mean and rstd where they are wanted; false where they will not do. */
int lnorm_fast_row(const lnorm_rows *a, ln_pair sum, ln_fast_form *form);

/* Once the forms are known. */
void lnorm_fast_group_way(ln_fast_group *group);

/* What a group has of its rows' records. */
void lnorm_fast_group_records(ln_fast_group *group, const ln_record *s);

#endif
