/* What an instruction set exports: one constant table. Everything else in its object is static. */
#ifndef LNORM_KERNELS_H
#define LNORM_KERNELS_H

#include "kernels/statistics.h"
#include "problem.h"

/* Contiguous rows. Pitches in elements of the operand's own type. Absent operands are NULL.
 * Row r of the call is at x + r*x_pitch and so on. */
typedef struct lnorm_rows {
    const void *x, *weight, *bias, *dy; /* weight and bias: contiguous */
    void *y, *dx;
    int64_t x_pitch, y_pitch, dy_pitch, dx_pitch;
    int64_t cols;
    int64_t after; /* rows of a backward pass, columns of a part of a long row: so many follow, and may be asked for */
    double eps;
    uint8_t element, affine; /* narrow types: of x, y, dy and dx; of weight and bias */
    int center;         /* 0: RMS */
    int stream;         /* y or dx is too large for the caches (stream.h) */
    int large;          /* backward: x, dy and dx together are, or nearly */
    double *mean, *rstd; /* forward: [rows] outputs or NULL. Backward: NULL (computed), or given (saved). An rstd has a
                          * mean beside it; one that nobody wants may be rstd, which is written after it */
} lnorm_rows;

/* y (or only statistics where y is NULL) of `rows` rows. */
typedef void lnorm_rows_forward(const lnorm_rows *a, int64_t rows);

/* dx of `rows` rows where a->dx is not NULL, and, in increasing row order, adds dy*xhat to dweight[j - first] and dy
 * to dbias[j - first] for columns first <= j < first + count; dweight or dbias may be NULL. With dx, all columns:
 * first is 0 and count is cols, whatever is passed. Fast arithmetic: the same for groups of eight rows, of which the
 * first begins with the call's first row. */
typedef void lnorm_rows_backward(const lnorm_rows *a, int64_t rows, double *dweight, double *dbias, int64_t first,
                                 int64_t count);

/* The same for x, y, dy and dx in f64: the wide arithmetic. weight and bias are of any element type and stride; kernels
 * read them through lnorm_wide_read_affine (wide.c). */
typedef struct lnorm_wide_rows {
    const double *x, *dy;
    double *y, *dx;
    int64_t x_pitch, y_pitch, cols; /* cols >= 1 */
    const char *weight, *bias;      /* or NULL */
    int64_t weight_stride, bias_stride;
    uint8_t weight_element, bias_element, weight_offset, center;
    uint8_t stream; /* y is too large for the caches, and not x */
    double eps;
    double *mean, *rstd; /* [rows] or NULL */
} lnorm_wide_rows;

/* Some columns of x and dy, and their sums: pairs, the low parts `width` after the high ones. */
typedef struct lnorm_wide_columns {
    const double *x, *dy;
    int64_t x_pitch, dy_pitch;
    int64_t count, width;    /* columns, and those of the buffers: a multiple of 8 */
    double *dweight, *dbias; /* or NULL */
    double *most, *least;    /* of the |dy| > 0 in a column so far */
} lnorm_wide_columns;

struct lnorm_wide_record;
typedef struct lnorm_wide_kernels {
    /* y (or only statistics where y is NULL) of `rows` rows. */
    void (*forward)(const lnorm_wide_rows *a, int64_t rows);
    /* The record that the reference would make of a row. */
    void (*statistics)(struct lnorm_wide_record *record, const double *x, int64_t cols, int center, double eps);
    /* dx of one row; false, with nothing written, where its exponents are such that the reference has to do it. */
    int (*gradient)(const lnorm_wide_rows *a, const struct lnorm_wide_record *record);
    /* Adds dy*xhat to dweight, dy to dbias, row by row; false where the sums are not the definition's. */
    int (*columns)(const lnorm_wide_columns *c, const struct lnorm_wide_record *record, int64_t rows);
    /* count/2 pairs: sum = sum + term */
    void (*add)(double *sum, const double *term, int64_t count);
} lnorm_wide_kernels;

#define ISA(name, built, runs) extern const lnorm_wide_kernels lnorm_kernels_wide_##name;
#include "lists/isas.def"
#undef ISA

enum {
    LNORM_LONG_COLS = 1 << 17, /* from here on it pays to cut a row into segments */
    LNORM_LONG_CHUNK = 512     /* columns of a long row that are converted at once */
};

/* weight or bias of some columns. One that does not run along the row is the same for all of them: `at` is a block of
 * equal f32. One that is absent is such a block, too, of 1.0 or -0.0: the same bits as without the multiplication or
 * addition. */
typedef struct lnorm_parameter {
    const char *at;
    uint8_t element, runs;
} lnorm_parameter;

/* Columns of one row, contiguous, each operand of a narrow type of its own; pointers are to the first of them. */
typedef struct lnorm_segment {
    const char *x, *dy;
    lnorm_parameter weight, bias;
    char *y, *dx;
    int64_t count, after; /* columns; those of the row that come after them */
    uint8_t x_element, dy_element, y_element, dx_element;
    int stream;         /* y or dx is not going to be read soon: write it past the caches */
    int begins;         /* the sums of columns begin with this row: what is there is not read */
    const ln_record *s; /* the row's statistics, and the means of its gradients */
} lnorm_segment;

/* What is summed over a row, in this order: each needs what the one before gave. */
enum lnorm_sum {
    LNORM_SUM_RUNS,     /* x and x*x as the fast arithmetic adds them; where that will do, the next two are not needed */
    LNORM_SUM_MOMENTS,  /* x and x*x */
    LNORM_SUM_SHIFTED,  /* d and d*d, d = x - s->c */
    LNORM_SUM_GRADIENT, /* g and g*xhat, g = dy*weight */
    LNORM_SUMS
};

/* A segment that is summed begins at a multiple of its length, a power of two times LNORM_BLOCK: its
 * sum is a subtree. */
typedef struct lnorm_long {
    ln_pair (*sum)(const lnorm_segment *a, enum lnorm_sum which);
    void (*forward)(const lnorm_segment *a); /* y */
    /* dx where it is not NULL; adds dy*xhat to dweight[j] and dy to dbias[j], which may be NULL, from +0.0 on where the
     * segment begins them */
    void (*backward)(const lnorm_segment *a, double *dweight, double *dbias);
} lnorm_long;

/* The same in the fast arithmetic, for what lnorm_rows describes: a part of a row (or, backward, of the first eight of
 * some), and its columns in place of all. */
typedef struct lnorm_long_fast {
    ln_pair (*moments)(const lnorm_rows *a);
    ln_pair (*gradient)(const lnorm_rows *a, const ln_record *s);
    void (*forward)(const lnorm_rows *a, const ln_record *s);
    void (*backward)(const lnorm_rows *a, int64_t rows, const ln_record *s, double *dweight, double *dbias, int begins);
} lnorm_long_fast;

typedef struct lnorm_kernels {
    const char *name;
    /* in the accurate arithmetic, and in the fast one */
    lnorm_rows_forward *rows_forward[2];
    lnorm_rows_backward *rows_backward[2];
    lnorm_long long_rows;
    lnorm_long_fast long_fast;
    void (*add)(double *sum, const double *term, int64_t count); /* sum[j] = sum[j] + term[j] */
    /* to[j] = sum[j], or to[j] + sum[j] where `accumulate`, in the element type; past the caches where `stream` */
    void (*store)(enum lnorm_element element, void *to, const double *sum, int64_t count, int accumulate, int stream);
    const struct lnorm_loops *loops; /* of columns and of the general form: kernels/loops.h */
    const lnorm_wide_kernels *wide;
    int (*contracts)(void); /* does this build fuse products with sums? Then its bits are not the defined ones. */
} lnorm_kernels;

#define ISA(name, built, runs) extern const lnorm_kernels lnorm_kernels_##name;
#include "lists/isas.def"
#undef ISA

/* The table in use: the widest this machine runs, or what LNORM_ISA asks for; NULL where that is not available, or
 * where the build contracts. Decided once; after that one atomic load. */
const lnorm_kernels *lnorm_dispatch(void);

/* Whether the code of a table, or what is compiled for no instruction set in particular, fuses products with sums. */
int lnorm_contracts(const lnorm_kernels *kernels);

/* All tables of this build, narrowest first, and whether this machine runs them; NULL past the end (for tests). */
const lnorm_kernels *lnorm_kernels_at(int index, int *runs);

#endif
