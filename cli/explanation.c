#include "explanation.h"
#include "svg.h"
#include "wrap.h"

#include <string.h>

/* Longer lines of prose are hard to read. */
enum { PROSE_WIDTH = 100, LABEL = 13 };

lnorm_status explanation_init(explanation *e, const lnorm_op *op, const lnorm_tensor *x, lnorm_error *error) {
    memset(e, 0, sizeof *e);
    lnorm_status status = scheme_init(&e->scheme, op, x, error);
    if (!status)
        facts_collect(&e->facts, &e->scheme);
    return status;
}

/* Of an array without elements there is no picture: no rows. */
static void lay_out(explanation *e, int width) {
    if (scheme_count(&e->scheme))
        picture_init(&e->picture, &e->scheme, width);
}

typedef struct column {
    FILE *to;
    int indent;
} column;

static void put_line(void *context, const char *label, const char *line) {
    const column *c = context;
    fprintf(c->to, "%-*s%s\n", c->indent, label, line);
}

static void print_wrapped(FILE *to, const char *label, const char *text, int indent, int width) {
    column c = {to, indent};
    wrap(label, text, width - indent, put_line, &c);
}

lnorm_status explanation_text(explanation *e, FILE *to, const style *style, const elements *values,
                              lnorm_error *error) {
    const facts *f = &e->facts;
    const int width = style->width, prose = width < PROSE_WIDTH ? width : PROSE_WIDTH;
    lay_out(e, width);
    print_wrapped(to, "", f->title, 0, width);
    fputc('\n', to);
    if (e->picture.rows) {
        print_wrapped(to, "", f->layout, 0, width);
        if (e->picture.partial)
            print_wrapped(to, "", "Only a part is shown: dots stand for what is left out.", 0, width);
        picture_print(to, &e->picture, style->utf8, style->colour);
        fputc('\n', to);
    } else {
        fputs("The array has no elements.\n\n", to);
    }
    for (int i = 0; i < f->count; i++)
        print_wrapped(to, f->at[i].label, f->at[i].text, LABEL, prose);
    return values && scheme_count(&e->scheme) ? values_print(to, &e->scheme, values, width, error) : LNORM_OK;
}

void explanation_svg(explanation *e, FILE *to) {
    lay_out(e, DEFAULT_WIDTH);
    svg_draw(to, &e->picture, &e->facts);
}
