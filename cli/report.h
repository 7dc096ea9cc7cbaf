/* What the program says to a person: messages, colour, progress. All of it on standard error. */
#ifndef LNORM_CLI_REPORT_H
#define LNORM_CLI_REPORT_H

#include <stdint.h>
#include <stdio.h>

#if defined __GNUC__
#define PRINTS(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTS(text, first)
#endif

/* The verb that messages begin with ("lnorm apply: ..."); NULL: "lnorm: ...". */
void report_verb(const char *name);

/* Whether a byte of UTF-8 text, the first of it or not, is of a control character, which may move the cursor. */
int is_control(const char *at, int first);

/* Text that may come from anywhere, as the name of a file does: control characters are escaped. */
void print_text(FILE *stream, const char *text);

/* One line, control characters escaped. Both return the exit status: FAILED; or USAGE, after a second line that points
 * at --help. */
int report_failure(const char *format, ...) PRINTS(1, 2);
int report_usage(const char *format, ...) PRINTS(1, 2);

/* Ends a run whose results went to standard output: `status`, or FAILED with a message where not everything could be
 * written there. */
int report_flush(int status);

/* Whether to colour what is written to the stream: a terminal, TERM not "dumb", NO_COLOR not set (or empty). */
int report_colour(FILE *stream);

/* A line "apply: 42 %, 1.2 GB/s, 12 s left" that is rewritten in place: on a terminal only, not in the first second,
 * and removed at the end. `done` and `total` in bytes. Messages above clear it first. */
void progress_begin(const char *what, int64_t total);
void progress(int64_t done);
void progress_end(void);
void progress_off(void); /* --quiet */

#endif
