/* The picture and the facts as SVG. */
#ifndef LNORM_CLI_SVG_H
#define LNORM_CLI_SVG_H

#include "facts.h"
#include "picture.h"

void svg_draw(FILE *to, const picture *p, const facts *f);

#endif
