/* What the rows kernels share: compiled once, not per instruction set. */
#ifndef LNORM_KERNELS_TILES_H
#define LNORM_KERNELS_TILES_H

#include "../kernels.h"
#include "statistics.h"

enum {
    LN_TILE_ROWS = 4,
    LN_TILE_COLS = 16384 /* longer rows go one by one: a tile's second reading should find it in the level 2 cache */
};

typedef struct ln_forward_tile {
    const void *x[LN_TILE_ROWS];
    void *y[LN_TILE_ROWS];
    ln_record s[LN_TILE_ROWS];
} ln_forward_tile;

/* What is subtracted from x: nothing (RMS), c (path A everywhere), or c and t. Leaving out +0 changes no bit. */
enum ln_shift { LN_SHIFT_NONE, LN_SHIFT_C, LN_SHIFT_C_T };

enum { LN_BACKWARD_TILE_COLS = LN_TILE_COLS / 2 }; /* x and dy */

typedef struct ln_backward_tile {
    const void *x[LN_TILE_ROWS], *dy[LN_TILE_ROWS];
    void *dx[LN_TILE_ROWS];
    ln_record s[LN_TILE_ROWS];
} ln_backward_tile;

/* Columns to go over, first .. end-1, and where the sums of column `first` and those after it are; NULL: not wanted. */
typedef struct ln_column_sums {
    double *dweight, *dbias;
    int64_t first, end;
} ln_column_sums;

#endif
