#include "report.h"
#include "verb.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *current_verb;

static struct progress_state {
    const char *what; /* NULL: none under way */
    int64_t total;
    double begun, shown; /* seconds */
    int visible, off;
} line;

void report_verb(const char *name) {
    current_verb = name;
}

/* -- Messages ----------------------------------------------------------------------------------------------------- */

static void clear_line(void) {
    if (line.visible)
        fputs("\r\033[K", stderr);
    line.visible = 0;
}

/* U+0000 to U+001F, U+007F, or U+0080 to U+009F, which are 0xc2 and a byte below 0xa0. */
int is_control(const char *at, int first) {
    const unsigned char *byte = (const unsigned char *)at;
    return *byte < ' ' || *byte == 0x7f || (*byte == 0xc2 && byte[1] < 0xa0) ||
           (!first && byte[-1] == 0xc2 && *byte < 0xa0);
}

void print_text(FILE *stream, const char *text) {
    for (const char *at = text; *at; at++)
        fprintf(stream, is_control(at, at == text) ? "\\x%02x" : "%c", (unsigned char)*at);
}

/* As much of it as there is room for: a path, the longest that there is, and what is said of it. */
static void say(const char *format, va_list values) {
    char text[8192];
    clear_line();
    fprintf(stderr, current_verb ? "lnorm %s: " : "lnorm: ", current_verb);
    if (vsnprintf(text, sizeof text, format, values) >= 0)
        print_text(stderr, text);
    fputc('\n', stderr);
}

int report_failure(const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    return FAILED;
}

int report_usage(const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    if (current_verb)
        fprintf(stderr, "Try 'lnorm %s --help'.\n", current_verb);
    else
        fputs("Try 'lnorm --help'.\n", stderr);
    return USAGE;
}

int report_flush(int status) {
    errno = 0;
    if (fflush(stdout) || ferror(stdout))
        return report_failure("cannot write to standard output: %s", strerror(errno ? errno : EIO));
    return status;
}

int report_colour(FILE *stream) {
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return (!none || !*none) && terminal && strcmp(terminal, "dumb") && isatty(fileno(stream));
}

/* -- Progress ----------------------------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void progress_off(void) {
    line.off = 1;
}

void progress_begin(const char *what, int64_t total) {
    if (line.off || !isatty(STDERR_FILENO))
        return;
    line.what = what;
    line.total = total;
    line.begun = now();
    line.shown = line.begun + 0.9; /* with a tenth of a second between two, the first is shown after a second */
}

void progress(int64_t done) {
    const double pause = 0.1;
    double time;
    if (!line.what || line.total <= 0 || done <= 0 || (time = now()) < line.shown + pause)
        return;
    double seconds = time - line.begun, share = (double)done / (double)line.total;
    fprintf(stderr, "\r\033[K%s: %.0f %%, %.2f GB/s, %.0f s left", line.what, 100 * share,
            1e-9 * (double)done / seconds, seconds / share - seconds);
    fflush(stderr);
    line.shown = time;
    line.visible = 1;
}

void progress_end(void) {
    clear_line();
    line.what = NULL;
}
