/* Copying an array from one order of axes into another, in square pieces: however the two orders differ, no call moves
 * fewer than about a thousand elements. (A piece of 16 MB has 2000 rows and columns and more.) */
#ifndef LNORM_CLI_RELAY_H
#define LNORM_CLI_RELAY_H

#include "box.h"

/* Elements of the same size. `to` is written at any place. An exit status. Adds the bytes moved to *done, for the
 * progress line. */
int relay(const frame *f, const view *to, const view *from, int64_t *done);

#endif
