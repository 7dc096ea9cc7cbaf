/* What the columns kernel works on: compiled once, not per instruction set. */
#ifndef LNORM_KERNELS_COLUMNS_H
#define LNORM_KERNELS_COLUMNS_H

#include "../columns.h"
#include "../simd/isa_build.h"
#include "bundle.h"
#include "fast.h"

enum {
    LN_STAGE_ELEMENTS = 1 << 10, /* of a few rows that are widened: 8 KiB */
    LN_AHEAD_BYTES = 1 << 12,   /* of rows that lie next to each other, asked for ahead of time */
    LN_SET_BYTES = 1 << 10,     /* a pitch of a multiple of this leaves rows a few sets of the level 1 cache */
    LN_TURNED_BYTES = 52 << 10, /* of small groups, transposed as wholes */
    LN_WINDOW_ROWS = 256,       /* rows of larger groups that are transposed at once */
    LN_WINDOW_COLUMNS = 16,     /* and columns: a line of f32 */
    LN_WINDOW_PITCH = LNORM_BLOCK + LN_WINDOW_ROWS + 24, /* columns must not share a set of the cache */
    LN_WINDOW_SUMS = 36 << 10,  /* bytes of the sums of their blocks */
    LN_ROW_COLUMNS = 64,        /* or, row by row, of so many */
    LN_ROWS_TOGETHER = 32,      /* rows that are added side by side, lane by lane: two streams of memory */
    LN_STREAMED_BYTES = 1 << 14, /* where more than this is to come */
    LN_PHASES = 4               /* whose blocks begin in so many different rows at most: channels_rows.c */
};

/* A strip of columns. */
typedef struct ln_columns {
    ln_bundle b; /* column 0; walks rows. Its lanes are groups */
    lnorm_columns_form form;
    int groups, columns, padded; /* padded: to whole vectors of f32 */
    int corrected;       /* some t (fast: l) is not 0 */
    int stream;          /* y goes past the caches */
    int regular;         /* fast: every column is, and none is far */
    double c[LNORM_STRIP_COLUMNS], t[LNORM_STRIP_COLUMNS], v[LNORM_STRIP_COLUMNS], r[LNORM_STRIP_COLUMNS];
    double weight[LNORM_STRIP_COLUMNS], bias[LNORM_STRIP_COLUMNS];
    double c1[LNORM_GRADIENT_COLUMNS], c2[LNORM_GRADIENT_COLUMNS]; /* backward: means of g and of g*xhat */
    float c1_f32[LNORM_GRADIENT_COLUMNS], c2_f32[LNORM_GRADIENT_COLUMNS];
    float h[LNORM_STRIP_COLUMNS], l[LNORM_STRIP_COLUMNS], rho[LNORM_STRIP_COLUMNS]; /* fast */
    float weight_f32[LNORM_STRIP_COLUMNS], bias_f32[LNORM_STRIP_COLUMNS];
} ln_columns;

/* The 16 lanes of a block of rows, or of a block of runs, for every column of a strip. */
typedef struct ln_column_lanes {
    double a[LNORM_LANES][LNORM_SUM_COLUMNS], b[LNORM_LANES][LNORM_SUM_COLUMNS];
} ln_column_lanes;

/* Rows k, k + 16, k + 32, ... of a block, in f32: those that are there, then rows of +0. */
typedef struct ln_lane_rows {
    const char *row[LNORM_LANES];
    int count;
    int64_t ahead; /* bytes from each of them to where the next lane's are */
    int packed;    /* copies are wanted: the rows share a set of the cache, and will be read more than once */
    float none[LNORM_SUM_COLUMNS];
    float copy[LNORM_LANES][LNORM_SUM_COLUMNS];
} ln_lane_rows;

/* At most LNORM_BLOCK rows of f32, which are added to the lanes of each column, one after the other. */
typedef struct ln_row_sums {
    const char *x;
    int64_t pitch, step, rows; /* bytes from row to row, and from a lane's row to its next */
    int lane, lanes;           /* of the first row; those that have some, 1: rows of others are not here */
    int columns;               /* whole vectors */
    const double *shift;       /* of each column, where deviations are summed; or NULL */
    int64_t together;          /* rows that are added side by side, lane by lane */
    int64_t ahead;             /* bytes to what will be read soon */
} ln_row_sums;

/* Sums over the rows of a backward pass, in this order: of g and g*xhat, of dy and dy*xhat. */
enum { LN_GRADIENT_SUMS = 4 };

typedef struct ln_gradient_lanes {
    double at[LN_GRADIENT_SUMS][LNORM_LANES][LNORM_GRADIENT_COLUMNS];
} ln_gradient_lanes;

/* A lane's rows. */
typedef struct ln_gradient_rows {
    ln_lane_rows x, dy;
    double weight[LNORM_LANES]; /* by row */
} ln_gradient_rows;

/* Rows of x and dy, and where those of dx go; weight by row, or NULL: by column. */
typedef struct ln_gradient_sweep {
    const char *x, *dy;
    char *dx;
    int64_t x_row, dy_row, dx_row; /* bytes */
    const double *weight;
} ln_gradient_sweep;

/* Rows of x, and where those of y go; weight and bias by row, or NULL: by column. In the kernels x and y are f32, or
 * widened ones. */
typedef struct ln_sweep {
    const char *x;
    char *y;
    int64_t x_row, y_row; /* bytes */
    const double *weight, *bias;
} ln_sweep;

/* Of the `left` rows from here on, asks for those that `rows` rows will reach LN_AHEAD rows later, unless the machine
 * sees by itself what comes. */
LNORM_INLINE void ln_prefetch_rows(const char *at, int64_t stride, int64_t rows, int64_t left, int64_t bytes) {
    for (int64_t k = 0; k < rows && LN_AHEAD + k < left && ln_distance(stride) > bytes; k++)
        for (int64_t line = 0; line < bytes; line += LNORM_LINE)
            LNORM_PREFETCH(at, (LN_AHEAD + k) * stride + line);
}

/* -- A strip, step by step ----------------------------------------------------------------------------------------- */

/* Where the n rows from the walk on begin. */
void lnorm_find_rows(const ln_columns *s, enum lnorm_operand operand, const ln_walk *walk, int64_t n,
                     const char **row);

/* The rows of a lane: where they are, or copies where that is not f32 or ends within a vector. */
void lnorm_rows_of_lane(const ln_columns *s, enum lnorm_operand operand, const char *const *row, int64_t n, int lane,
                        ln_lane_rows *rows);

/* `rows` rows of `columns` columns from column `first` on become `columns` rows, `pitch` bytes apart; the walk stands at
 * the first of them. */
void lnorm_turn_rows(const ln_columns *s, enum lnorm_operand operand, const ln_walk *walk, int64_t rows, int64_t first,
                     int64_t columns, char *to, int64_t pitch);

/* What belongs to a group to all of its columns. */
void lnorm_set_columns(ln_columns *s, int group, const ln_record *record);

/* Rows row, row + 1, ..., in f64, to the lanes of the columns `first` and on; row k to lane k mod 16. `shift`: of each
 * column, where deviations are summed, or NULL. */
void lnorm_add_rows(const ln_columns *s, int first, int columns, const double *shift, int64_t row, int64_t n,
                    ln_column_lanes *lanes);

/* Statistics where groups have several columns (channels.c). */
void lnorm_computed_channels(ln_columns *s);

/* Statistics, computed or given, of every column; mean, rstd and running statistics that are wanted. */
void lnorm_columns_statistics(ln_columns *s);

/* c, t and r as the fast arithmetic uses them. */
void lnorm_columns_in_f32(ln_columns *s);

/* weight or bias of every column, `missing` where there is none. */
void lnorm_column_affine(const ln_columns *s, enum lnorm_operand operand, double missing, double *values);

void lnorm_columns_forward(ln_columns *s);

/* `group`: that of column 0. */
void lnorm_columns_backward(ln_columns *s, int64_t group, int phase);

#endif
