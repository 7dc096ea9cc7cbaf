/* Text broken into lines at its blanks. */
#ifndef LNORM_CLI_WRAP_H
#define LNORM_CLI_WRAP_H

enum { WRAP_ROOM = 1200 }; /* longer texts are cut */

/* Calls put(context, label, line) for each line, none longer than `width` bytes unless a single word is; the label is
 * "" from the second line on. */
void wrap(const char *label, const char *text, int width,
          void (*put)(void *context, const char *label, const char *line), void *context);

#endif
