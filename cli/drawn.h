/* What is written to a stream, kept in memory. */
#ifndef LNORM_CLI_DRAWN_H
#define LNORM_CLI_DRAWN_H

#include <stdio.h>

/* What draw(context, to) writes, *count bytes, which the caller frees. NULL: not enough memory, or of what is written
 * more than DRAWN_ROOM, which no picture and no list of values comes near: both are bounded, some 20 KB. */
enum { DRAWN_ROOM = 1 << 20 };
char *drawn(void (*draw)(void *context, FILE *to), void *context, size_t *count);

#endif
