/* What there is to show and to say of an operation on an array: picture, facts, values. The program's `explain` and the
 * Python package draw it from here. */
#ifndef LNORM_CLI_EXPLANATION_H
#define LNORM_CLI_EXPLANATION_H

#include "facts.h"
#include "picture.h"
#include "values.h"

enum { DEFAULT_WIDTH = 80 };

/* Some 90 kB: not for the stack. Points into itself: not to be copied. */
typedef struct explanation {
    scheme scheme;
    picture picture; /* of the last text or SVG */
    facts facts;
} explanation;

typedef struct style {
    int width; /* characters in a line; MIN_WIDTH at least */
    int utf8, colour;
} style;

/* x needs no data. What op points to must live as long. */
lnorm_status explanation_init(explanation *e, const lnorm_op *op, const lnorm_tensor *x, lnorm_error *error);

/* `values`: where the elements are, NULL where there are none but a shape. On an error some of it has been written. */
lnorm_status explanation_text(explanation *e, FILE *to, const style *style, const elements *values,
                              lnorm_error *error);

/* The same picture, however wide the text is. */
void explanation_svg(explanation *e, FILE *to);

#endif
