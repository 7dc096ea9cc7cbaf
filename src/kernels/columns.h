/* What the columns kernel works on: compiled once, not per instruction set. */
#ifndef LNORM_KERNELS_COLUMNS_H
#define LNORM_KERNELS_COLUMNS_H

#include "../columns.h"
#include "bundle.h"

enum {
    LN_TILE_ROW_BYTES = 128, /* of columns that are summed at once: 32 KiB at 256 rows */
    LN_PANEL_GAP = 4,        /* rows between panels, so that their beginnings do not share a set of the cache */
    LN_STAGE_BYTES = 1 << 11, /* of a few rows of y: LNORM_STRIP_COLUMNS of f32 are 1 KiB */
    LN_NARROW_BYTES = 64,    /* rows so close to each other that 256 of them stay in the cache */
    LN_FEW_ROWS = 8,         /* rows of which a line each stays in the cache, wherever they are */
    LN_TURNED_BYTES = 52 << 10, /* of small groups, transposed as wholes */
    LN_WINDOW_ROWS = 1 << 10,   /* rows of a larger group that are transposed at once */
    LN_WINDOW_CHANNELS = 8      /* and its columns: half a line of f32 */
};

/* A strip of columns. */
typedef struct ln_columns {
    ln_bundle b; /* column 0; walks rows. Its lanes are groups */
    lnorm_columns_form form;
    int groups, columns, padded; /* padded: to whole vectors */
    int corrected;       /* some t is not 0 */
    int stream;          /* y goes past the caches */
    double c[LNORM_STRIP_COLUMNS], t[LNORM_STRIP_COLUMNS], v[LNORM_STRIP_COLUMNS], r[LNORM_STRIP_COLUMNS];
    double weight[LNORM_STRIP_COLUMNS], bias[LNORM_STRIP_COLUMNS];
} ln_columns;

/* A block of n rows of a strip: its columns' sums go to `a` and `b`. Shifted: of d and d*d, d = x - c; else x and
 * x*x. */
typedef struct ln_column_block {
    const ln_walk *walk;
    int64_t n;
    int shifted;
    double *a, *b;
} ln_column_block;

/* Rows of x, and where those of y go; weight and bias by row, or NULL: by column. */
typedef struct ln_sweep {
    const char *x;
    char *y;
    int64_t x_row, y_row; /* bytes */
    const double *weight, *bias;
} ln_sweep;

#endif
