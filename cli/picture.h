/* A picture of which elements of an array share their statistics: a canvas of cells in rows and columns. Matrices (the
 * last two axes) are its blocks: the third axis from the end runs to the right, the axes before it, as one list,
 * downwards. A cell between blocks, or in the place of what is left out, belongs to a group where everything around it
 * does. So the outlines are where two neighbouring cells belong to different groups, for every operation alike. */
#ifndef LNORM_CLI_PICTURE_H
#define LNORM_CLI_PICTURE_H

#include "scheme.h"

#include <stdio.h>

enum track_kind { TRACK_GAP, TRACK_ELEMENT, TRACK_ELISION };

/* A row or a column of cells, and the places beside it, whether these are shown or not; of an element, its own place.
 * block is -1 where there is none. */
typedef struct track {
    uint8_t kind;
    struct place {
        int64_t block, index;
    } before, after;
} track;

enum { MIN_WIDTH = 40, MAX_WIDTH = 240, MAX_COLUMNS = 128, MAX_ROWS = 64, MAX_SHOWN = 80, NO_GROUP = -1 };

typedef struct picture {
    int rows, columns;
    track row[MAX_ROWS], column[MAX_COLUMNS];
    int64_t group[MAX_ROWS][MAX_COLUMNS];
    int cell;                                     /* characters in an element's cell */
    int partial;                                  /* something is left out */
    int32_t leading;                              /* axes named in the labels above the blocks */
    int64_t extent[4], above[LNORM_MAX_NDIM];     /* blocks down, blocks to the right, rows, columns */
} picture;

/* Characters between the lines of a gap's and of an elision's column. */
enum { GAP_CELL = 2, ELISION_CELL = 3 };

/* As much of the array as fits into `width` characters (MIN_WIDTH at least, MAX_WIDTH at most) and a screen's height.
 * The array must have elements. */
void picture_init(picture *p, const scheme *s, int width);

/* The group of a cell; NO_GROUP also outside of the canvas. */
int64_t picture_group(const picture *p, int row, int column);

/* Whether an outline runs above or left of a cell: another group is there. */
int picture_edge_above(const picture *p, int row, int column);
int picture_edge_left(const picture *p, int row, int column);

/* The label "[1,0]" that begins in this cell of a gap; "" for other cells. */
typedef struct label_text {
    char at[LNORM_MAX_NDIM * 20 + 4];
} label_text;
label_text picture_label(const picture *p, int row, int column);

/* The first and the last of 0 .. extent-1, at most `most` (>= 2) entries, with -1 for all that are left out between
 * them. Returns their number. */
int picture_pick(int64_t extent, int most, int64_t *entries);

/* Number of decimal digits. */
int picture_digits(int64_t value);

/* Writes it in characters: UTF-8 or ASCII, in colour or not. */
void picture_print(FILE *to, const picture *p, int utf8, int colour);

#endif
