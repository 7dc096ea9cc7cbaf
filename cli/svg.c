#include "svg.h"
#include "wrap.h"

#include <string.h>

/* Lengths in pixels. A character of the monospaced text is taken as CHARACTER wide. */
enum { MARGIN = 24, CELL = 36, ROW = 30, GAP = 26, NARROW = 22, TITLE = 30, LINE = 19, CHARACTER = 8, FACT_WIDTH = 76,
       LABEL_WIDTH = 12 };

/* Tints of the palette of Okabe and Ito, made for colour-blind readers: black text stands on all of them. */
static const char *const tints[] = {"#8fc7ee", "#f5c26b", "#7fd0b5", "#e2b2cf", "#f3ea8c", "#6fa8d6", "#f0a27a",
                                    "#c9cdd2"};
enum { TINTS = sizeof tints / sizeof *tints };

/* A length at most INT_MAX, in any case: the canvas has less than 200 tracks. */
static int column_width(const picture *p, int column) {
    int wide = (p->cell + 1) * CHARACTER;
    if (p->column[column].kind == TRACK_ELEMENT)
        return wide > CELL ? wide : CELL;
    return p->column[column].kind == TRACK_GAP ? GAP : NARROW;
}

static int row_height(const picture *p, int row) {
    return p->row[row].kind == TRACK_ELEMENT ? ROW : p->row[row].kind == TRACK_GAP ? GAP : NARROW;
}

/* Places of the canvas's lattice. */
typedef struct drawing {
    const picture *p;
    FILE *to;
    int x[MAX_COLUMNS + 1], y[MAX_ROWS + 1];
} drawing;

static void measure(drawing *d) {
    d->x[0] = MARGIN;
    d->y[0] = MARGIN + TITLE + LINE;
    for (int column = 0; column < d->p->columns; column++)
        d->x[column + 1] = d->x[column] + column_width(d->p, column);
    for (int row = 0; row < d->p->rows; row++)
        d->y[row + 1] = d->y[row] + row_height(d->p, row);
}

static void draw_fill(const drawing *d, int row, int column) {
    const picture *p = d->p;
    const int element = p->row[row].kind == TRACK_ELEMENT && p->column[column].kind == TRACK_ELEMENT;
    int64_t group = p->group[row][column];
    if (group == NO_GROUP)
        return;
    fprintf(d->to, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n",
            element ? "element" : "between", d->x[column], d->y[row], d->x[column + 1] - d->x[column],
            d->y[row + 1] - d->y[row], tints[(group + group / TINTS) % TINTS]);
}

static void draw_text(const drawing *d, int row, int column) {
    const picture *p = d->p;
    const int number = p->row[row].kind == TRACK_ELEMENT && p->column[column].kind == TRACK_ELEMENT;
    const int on_tint = p->group[row][column] != NO_GROUP;
    label_text label = picture_label(p, row, column);
    int x = (d->x[column] + d->x[column + 1]) / 2, y = (d->y[row] + d->y[row + 1]) / 2 + 5;
    if (label.at[0])
        fprintf(d->to, "<text class=\"label%s\" x=\"%d\" y=\"%d\">%s</text>\n", on_tint ? " on" : "", d->x[column] + 3,
                y, label.at);
    else if (number)
        fprintf(d->to, "<text class=\"on number\" x=\"%d\" y=\"%d\">%lld</text>\n", x, y,
                (long long)p->group[row][column]);
    else if (p->row[row].kind != TRACK_GAP && p->column[column].kind != TRACK_GAP)
        fprintf(d->to, "<text class=\"number%s\" x=\"%d\" y=\"%d\">%s</text>\n", on_tint ? " on" : "", x, y,
                p->column[column].kind == TRACK_ELISION ? "…" : "⋮");
}

/* Each outline's pieces as one path; neighbours along a line are one piece. */
static void draw_outlines(const drawing *d) {
    const picture *p = d->p;
    fputs("<path class=\"outline\" d=\"", d->to);
    for (int row = 0; row <= p->rows; row++)
        for (int column = 0, end; column < p->columns; column = end + 1) {
            for (end = column; end < p->columns && picture_edge_above(p, row, end); end++)
                ;
            if (end > column)
                fprintf(d->to, "M%d %dH%d", d->x[column], d->y[row], d->x[end]);
        }
    for (int column = 0; column <= p->columns; column++)
        for (int row = 0, end; row < p->rows; row = end + 1) {
            for (end = row; end < p->rows && picture_edge_left(p, end, column); end++)
                ;
            if (end > row)
                fprintf(d->to, "M%d %dV%d", d->x[column], d->y[row], d->y[end]);
        }
    fputs("\"/>\n", d->to);
}

static void draw_picture(const drawing *d) {
    for (int row = 0; row < d->p->rows; row++)
        for (int column = 0; column < d->p->columns; column++)
            draw_fill(d, row, column);
    draw_outlines(d);
    for (int row = 0; row < d->p->rows; row++)
        for (int column = 0; column < d->p->columns; column++)
            draw_text(d, row, column);
}

/* -- Text --------------------------------------------------------------------------------------------------------- */

static void escape(FILE *to, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        default: fputc(*text, to);
        }
}

typedef struct lines {
    FILE *to; /* NULL: only counts */
    int y, longest;
} lines;

static void put_line(void *context, const char *label, const char *text) {
    lines *l = context;
    int length = (int)strlen(text);
    l->longest = length > l->longest ? length : l->longest;
    l->y += LINE;
    if (!l->to)
        return;
    if (*label)
        fprintf(l->to, "<text class=\"what\" x=\"%d\" y=\"%d\">%s</text>\n", MARGIN, l->y, label);
    fprintf(l->to, "<text class=\"fact\" x=\"%d\" y=\"%d\">", MARGIN + LABEL_WIDTH * CHARACTER, l->y);
    escape(l->to, text);
    fputs("</text>\n", l->to);
}

static void put_facts(lines *l, const facts *f) {
    for (int i = 0; i < f->count; i++)
        wrap(f->at[i].label, f->at[i].text, FACT_WIDTH, put_line, l);
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

static void write_head(FILE *to, const facts *f, int width, int height) {
    fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
                "role=\"img\">\n", width, height, width, height);
    fputs("<title>", to);
    escape(to, f->title);
    fputs("</title>\n<desc>", to);
    escape(to, f->layout);
    fputs("</desc>\n"
          "<style>\n"
          ".page { fill: #ffffff }\n"
          "text { fill: #1b1f24; font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace }\n"
          ".title { font: 600 17px system-ui, 'DejaVu Sans', sans-serif }\n"
          ".layout { font: 13px system-ui, 'DejaVu Sans', sans-serif }\n"
          ".number { text-anchor: middle }\n"
          ".label { font-size: 12px }\n"
          ".what { font-weight: 600 }\n"
          ".layout, .label, .what { fill: #57606a }\n"
          ".on { fill: #101418 }\n"
          ".element { stroke: #ffffff; stroke-opacity: 0.7 }\n"
          ".between { fill-opacity: 0.55 }\n"
          ".outline { fill: none; stroke: #1b1f24; stroke-width: 2; stroke-linecap: round }\n"
          "@media (prefers-color-scheme: dark) {\n"
          "  .page { fill: #14171c }\n"
          "  text { fill: #e6e9ee }\n"
          "  .layout, .label, .what { fill: #a3adba }\n"
          "  .on { fill: #101418 }\n"
          "  .between { fill-opacity: 0.8 }\n"
          "  .outline { stroke: #e6e9ee }\n"
          "}\n"
          "</style>\n", to);
    fprintf(to, "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

static void write_heading(FILE *to, const char *class, int y, const char *text) {
    fprintf(to, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, MARGIN, y);
    escape(to, text);
    fputs("</text>\n", to);
}

void svg_draw(FILE *to, const picture *p, const facts *f) {
    drawing d = {.p = p, .to = to};
    measure(&d);
    lines counted = {NULL, d.y[p->rows] + LINE / 2, 0}, written = {to, counted.y, 0};
    put_facts(&counted, f);
    int text = MARGIN + (LABEL_WIDTH + counted.longest) * CHARACTER;
    int headings = MARGIN + larger((int)strlen(f->title) * 10, (int)strlen(f->layout) * 7);
    write_head(to, f, larger(d.x[p->columns], larger(text, headings)) + MARGIN, counted.y + MARGIN);
    write_heading(to, "title", MARGIN + 14, f->title);
    write_heading(to, "layout", MARGIN + 14 + LINE, f->layout);
    draw_picture(&d);
    put_facts(&written, f);
    fputs("</svg>\n", to);
}
