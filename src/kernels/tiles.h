/* What the rows kernels share: compiled once, not per instruction set. */
#ifndef LNORM_KERNELS_TILES_H
#define LNORM_KERNELS_TILES_H

#include "../kernels.h"
#include "../stream.h"
#include "statistics.h"

enum {
    LN_TILE_ROWS = 8,
    LN_TILE_ELEMENTS = 1 << 15, /* of a tile's rows together: the second reading should find them in the level 2 cache */
    LN_PANEL = 1024 + LNORM_LANES, /* columns of weight and bias that are widened for all rows of a call */
    LN_WIDE_ELEMENTS = 4096 + 2 * LNORM_LANES, /* of rows of 16 bits that are widened together */
    LN_WIDE_ONE = 8192 + 2 * LNORM_LANES, /* of a lone one: level 1 still holds it */
    LN_SWEEP_PAIRS = 2             /* of vectors of y that are computed side by side */
};

/* Rows of a call that go together. */
static inline int ln_tile_of(int64_t rows_left, int64_t cols) {
    int64_t rows = cols > LN_TILE_ELEMENTS / LN_TILE_ROWS ? LN_TILE_ELEMENTS / cols : LN_TILE_ROWS;
    rows = rows < rows_left ? rows : rows_left;
    return rows < 1 ? 1 : (int)rows;
}

/* Where y goes past the caches, x of a tile is to stay in level 1, and what is read next beside it. */
static inline int ln_streamed_of(int rows, int64_t cols) {
    enum { ELEMENTS = 6144 };
    return rows * cols <= ELEMENTS ? rows : cols > ELEMENTS ? 1 : (int)(ELEMENTS / cols);
}

/* mean and rstd of rows row, row + 1, ..., where they are wanted. */
static inline void ln_give_statistics(const lnorm_rows *a, int64_t row, int64_t rows, const ln_record *s) {
    for (int64_t k = 0; k < rows && a->rstd; k++) {
        a->mean[row + k] = s[k].c + s[k].t;
        a->rstd[row + k] = s[k].r;
    }
}

/* What is subtracted from x: nothing (RMS), c (path A), or c and t. Leaving out +0 changes no bit. */
enum ln_shift { LN_SHIFT_NONE, LN_SHIFT_C, LN_SHIFT_C_T };

static inline enum ln_shift ln_shift_of(const ln_record *s, int center) {
    if (!center)
        return LN_SHIFT_NONE;
    return s->t != 0.0 ? LN_SHIFT_C_T : LN_SHIFT_C; /* true for a NaN; a zero is +0, as sums start at +0 */
}

enum {
    LN_BACKWARD_PANEL = 1024, /* columns of a row that does not fit the tile as a whole */
    LN_BACKWARD_TILE = 2176,  /* two rows of half as many columns, each with some to spare, or one */
    LN_BACKWARD_TOGETHER = 1088, /* more rows than two: the level 1 cache has to hold the sums of columns, too */
    LN_BACK_WIDE_COLS = 560     /* pitch of rows of f32 whose tile leaves room there for x, dy and dx, too */
};

/* What the sweep of a backward pass finds in the tile as f64; the rest it converts again. */
enum ln_back_keep { LN_BACK_NEITHER, LN_BACK_XHAT, LN_BACK_BOTH };

/* How the rows of a backward pass lie in its tile. */
typedef struct ln_backward_form {
    int rows, whole;      /* rows together; whether they fit */
    int64_t panel, pitch; /* columns at a time; from row to row */
} ln_backward_form;

/* For n columns, whole only where 1 or 2 rows fit. The spare ones make room for whole lanes, and keep rows from sharing
 * a line of the cache. */
static inline ln_backward_form ln_backward_form_of(int64_t n, int least_rows) {
    ln_backward_form form = {2, 0, LN_BACKWARD_PANEL, LN_BACKWARD_TILE / 2};
    const int64_t pitch = (n + LNORM_LANES - 1) / LNORM_LANES * LNORM_LANES + LNORM_LANES;
    if (pitch > LN_BACKWARD_TILE / least_rows)
        return form;
    form.whole = 1;
    form.panel = n;
    form.pitch = pitch;
    form.rows = LN_BACKWARD_TOGETHER / pitch < LN_TILE_ROWS ? (int)(LN_BACKWARD_TOGETHER / pitch) & ~1 : LN_TILE_ROWS;
    if (form.rows == 0)
        form.rows = pitch <= LN_BACKWARD_TILE / 2 ? 2 : 1;
    return form;
}

/* Sets of rows of a block, backward: their xhat is to stay in the level 1 cache, with x and dy. */
enum {
    LN_BACK_SET_ROWS = 16,
    LN_BACK_SET_ELEMENTS = 1 << 11 /* eight rows of a block */
};

/* 16-bit rows that go together backward in the fast arithmetic, by lines: no row waits for another's divisions. */
enum { LN_LINES_ELEMENTS = 3 << 12 };

/* The same in the fast arithmetic. A panel is a whole number of runs. */
enum {
    LN_FAST_PANELS = 2048, /* columns of the weight, and of the terms of dweight and dbias */
    LN_FAST_BACKWARD_TILE = 2 * (LN_FAST_PANELS + LNORM_LANES)
};

static inline ln_backward_form ln_fast_form_for(int64_t n) {
    ln_backward_form form = {2, n <= LN_FAST_PANELS, LN_BACKWARD_PANEL, LN_FAST_BACKWARD_TILE / 2};
    if (n <= 2 * LNORM_BLOCK) {
        form.rows = n <= LNORM_BLOCK ? 8 : 4;
        form.pitch = n <= LNORM_BLOCK ? LNORM_BLOCK + LNORM_LANES : 2 * LNORM_BLOCK + LNORM_LANES;
    }
    return form;
}

/* How dx, where it is too large for the caches, goes past them: rows of whole lines as the sweep's vectors, others by a
 * copy, which short ones lose by. */
enum ln_dx_way { LN_DX_STORED, LN_DX_STREAMED, LN_DX_COPIED };

static inline enum ln_dx_way ln_dx_way_of(const lnorm_rows *a) {
    const uintptr_t edges = (uintptr_t)a->dx | (uintptr_t)(a->dx_pitch * 4) | (uintptr_t)(a->cols * 4);
    if (!a->stream || !a->dx || a->element != LNORM_ELEMENT_F32)
        return LN_DX_STORED;
    if (edges % LNORM_LINE == 0)
        return LN_DX_STREAMED;
    return a->cols < LNORM_BLOCK ? LN_DX_STORED : LN_DX_COPIED;
}

/* -- 16-bit rows by way of f32 (rows_half.inc) -------------------------------------------------------------------- */

enum {
    LN_HALF_LINE = LNORM_LINE / 2, /* columns of a line of y */
    LN_HALF_COLS = 4096            /* columns of weight and bias at a time */
};

#define VF_USUAL_MOST 1099511627776.0f /* 2^40 */
#define VF_USUAL_LEAST (1.0f / VF_USUAL_MOST)

/* Weight and bias. All usual: 0, or of magnitude VF_USUAL_LEAST to VF_USUAL_MOST; weight is then times 2^-64. */
typedef struct ln_half_panel {
    _Alignas(64) float weight[LN_HALF_COLS], bias[LN_HALF_COLS]; /* the order: see vf_split_order */
    int64_t first; /* column; below 0: none yet */
    int usual;
} ln_half_panel;

/* How a row is done, in f32 and by the definition. r goes with the weight as the panel has it. */
typedef struct ln_half_row {
    float h, k, rho;
    int usual; /* otherwise y has to come from the definition */
    double c, t, r;
} ln_half_row;

/* Which lines of y are in doubt, a bit of each, in their order. */
typedef struct ln_half_doubts {
    uint64_t bits, word[LN_TILE_ROWS * LN_HALF_COLS / LN_HALF_LINE / 64]; /* bits: of the last 64 lines */
    int lines;
} ln_half_doubts;

/* bits: not 0 */
static inline int ln_lowest_bit(uint64_t bits) {
#if defined __GNUC__
    return __builtin_ctzll(bits);
#else
    int k = 0;
    for (; !(bits & 1); bits >>= 1)
        k++;
    return k;
#endif
}

/* Rows, and `cols` columns of them. Column j of row k has weight and bias number k*affine_pitch + (j & affine_columns). */
typedef struct ln_half_rows {
    const float *weight, *bias;
    int64_t affine_pitch, affine_columns;
    const char *x[LN_TILE_ROWS];
    char *y[LN_TILE_ROWS];
    int64_t cols;
    int64_t ahead; /* y goes past the caches, in whole lines: bytes from x to what is asked for; else below 0 */
    int rows;
    ln_half_row row[LN_TILE_ROWS];
} ln_half_rows;

static inline ln_half_row ln_half_row_at(int usual, double c, double t, double r) {
    const double scale = 18446744073709551616.0 /* 2^64 */, most = (double)VF_USUAL_MOST;
    ln_half_row row = {0.0f, 0.0f, 0.0f, 0, c, t, usual ? r * scale : r};
    if (usual && t == 0.0 && r * most >= 1.0 && r <= most) {
        row.h = (float)c;
        row.rho = (float)row.r;
        row.k = (float)-((c - (double)row.h) * (double)row.rho);
        row.usual = c == (double)row.h || row.k >= VF_USUAL_LEAST || row.k <= -VF_USUAL_LEAST; /* no underflow */
    }
    return row;
}

enum { LN_LONG_AHEAD = 1024 }; /* columns from those of a long row that are swept to those that are asked for */

/* Columns to go over, first .. end-1, and where the sums of column `first` and those after it are; NULL: not wanted. */
typedef struct ln_column_sums {
    double *dweight, *dbias;
    int64_t first, end;
} ln_column_sums;

#endif
