/* The picture and the facts as an SVG file. */
#ifndef LNORM_CLI_SVG_H
#define LNORM_CLI_SVG_H

#include "facts.h"
#include "picture.h"

/* Complete, or not there: by the rules of lnorm_file_create. '-' is standard output. Returns an exit status. */
int svg_write(const char *path, const picture *p, const facts *f);

#endif
