/* A picture in characters. Cells stand in a lattice of lines, each one character thin; a horizontal one that has no
 * piece of an outline is left out. */
#include "picture.h"

#include <string.h>

/* What lines meet in a point of the lattice. */
enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8 };

static const struct glyphs {
    const char *join[16], *elision[ELISION_CELL], *elision_down;
} sets[2] = {{{" ", "|", "|", "|", "-", "+", "+", "+", "-", "+", "+", "+", "-", "+", "+", "+"}, {".", ".", "."}, ":"},
             {{" ", "│", "│", "│", "─", "┘", "┐", "┤", "─", "└", "┌", "├", "─", "┴", "┬", "┼"}, {" ", "…", " "}, "⋮"}};

/* Backgrounds of the 256-colour palette on which black is read well, and which differ in lightness or between blue and
 * yellow, not only between red and green. */
static const unsigned char backgrounds[] = {153, 222, 115, 175, 229, 110, 216, 250};
enum { BACKGROUNDS = sizeof backgrounds };

/* Vertical neighbours in a row of 8 groups differ, too. */
static int background(int64_t group) {
    return backgrounds[(group + group / BACKGROUNDS) % BACKGROUNDS];
}

/* A line of the screen, a glyph and a group for each place. */
typedef struct line {
    int length;
    struct spot {
        const char *glyph;
        char own[2]; /* a glyph of one byte */
        int64_t group;
    } at[MAX_WIDTH + 1];
} line;

static void add(line *l, int64_t group, const char *glyph, int times) {
    for (; times > 0 && l->length <= MAX_WIDTH; times--)
        l->at[l->length++] = (struct spot){.glyph = glyph, .group = group};
}

static void overlay(line *l, int first, const char *text) {
    for (int i = first; *text && i < l->length; i++, text++) {
        l->at[i].own[0] = *text;
        l->at[i].glyph = l->at[i].own;
    }
}

/* No blanks at the end, unless they are of a colour. */
static void flush(FILE *to, const line *l, int colour) {
    int64_t painted = NO_GROUP;
    int length = l->length;
    while (length && l->at[length - 1].glyph[0] == ' ' && (!colour || l->at[length - 1].group == NO_GROUP))
        length--;
    for (int i = 0; i < length; i++) {
        int64_t group = colour ? l->at[i].group : NO_GROUP;
        if (group != painted && group == NO_GROUP)
            fputs("\033[0m", to);
        else if (group != painted)
            fprintf(to, "\033[30;48;5;%dm", background(group));
        painted = group;
        fputs(l->at[i].glyph, to);
    }
    fputs(painted == NO_GROUP ? "\n" : "\033[0m\n", to);
}

static int width_of(const picture *p, int column) {
    static const int narrow[] = {[TRACK_GAP] = GAP_CELL, [TRACK_ELISION] = ELISION_CELL};
    return p->column[column].kind == TRACK_ELEMENT ? p->cell : narrow[p->column[column].kind];
}

/* The line of the lattice above a row. */
static void print_lattice(FILE *to, const picture *p, const struct glyphs *glyphs, int row, int colour) {
    line l = {0};
    int any = 0;
    for (int column = 0; column <= p->columns; column++) {
        int meet = (picture_edge_left(p, row - 1, column) ? UP : 0) | (picture_edge_left(p, row, column) ? DOWN : 0) |
                   (picture_edge_above(p, row, column - 1) ? LEFT : 0) |
                   (picture_edge_above(p, row, column) ? RIGHT : 0);
        add(&l, meet ? NO_GROUP : picture_group(p, row, column), glyphs->join[meet], 1);
        if (column == p->columns)
            break;
        int edge = picture_edge_above(p, row, column);
        add(&l, edge ? NO_GROUP : picture_group(p, row, column), glyphs->join[edge ? LEFT | RIGHT : 0],
            width_of(p, column));
        any |= edge;
    }
    if (any)
        flush(to, &l, colour);
}

static void add_cell(line *l, const picture *p, const struct glyphs *glyphs, int row, int column) {
    const int width = width_of(p, column), first = l->length;
    const int64_t group = p->group[row][column];
    const int in_element = p->column[column].kind == TRACK_ELEMENT;
    char number[24];
    add(l, group, " ", width);
    if (p->row[row].kind == TRACK_GAP)
        return;
    if (p->column[column].kind == TRACK_ELISION) {
        for (int i = 0; i < width; i++)
            l->at[first + i].glyph = glyphs->elision[i];
    } else if (in_element && p->row[row].kind == TRACK_ELISION) {
        l->at[first + width / 2].glyph = glyphs->elision_down;
    } else if (in_element) {
        int length = snprintf(number, sizeof number, "%lld", (long long)group);
        overlay(l, first + (width - length) / 2, number);
    }
}

static void print_row(FILE *to, const picture *p, const struct glyphs *glyphs, int row, int colour) {
    line l = {0};
    int begin[MAX_COLUMNS];
    for (int column = 0; column <= p->columns; column++) {
        int edge = picture_edge_left(p, row, column);
        add(&l, edge ? NO_GROUP : picture_group(p, row, column), glyphs->join[edge ? UP | DOWN : 0], 1);
        if (column == p->columns)
            break;
        begin[column] = l.length;
        add_cell(&l, p, glyphs, row, column);
    }
    for (int column = 0; column < p->columns; column++)
        overlay(&l, begin[column], picture_label(p, row, column).at);
    flush(to, &l, colour);
}

void picture_print(FILE *to, const picture *p, int utf8, int colour) {
    for (int row = 0; row <= p->rows; row++) {
        print_lattice(to, p, &sets[utf8], row, colour);
        if (row < p->rows)
            print_row(to, p, &sets[utf8], row, colour);
    }
}
