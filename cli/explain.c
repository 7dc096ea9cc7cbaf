#include "checks.h"
#include "drawn.h"
#include "explanation.h"
#include "operation.h"
#include "report.h"
#include "verb.h"

#include "../files/output.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int terminal_width(void) {
    struct winsize size;
    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        return size.ws_col < MIN_WIDTH ? MIN_WIDTH : size.ws_col;
    return DEFAULT_WIDTH;
}

/* By what the variables say, not by setlocale: a locale that is not installed says what the terminal shows, too. */
static int utf8_wanted(void) {
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return 0;
}

/* -- Values and files --------------------------------------------------------------------------------------------- */

static lnorm_status read_file(const void *where, void *to, int64_t first, int64_t count, lnorm_error *error) {
    return lnorm_file_read(where, to, first, count, error);
}

static int save(const char *path, const char *bytes, size_t count) {
    lnorm_output output;
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_status status = lnorm_output_open(&output, path, &error);
    if (status)
        return report_failure("--svg: %s", error.message);
    status = lnorm_output_write(&output, bytes, 0, (int64_t)count, &error);
    if (status)
        lnorm_output_abort(&output);
    else
        status = lnorm_output_commit(&output, &error);
    return status ? report_failure("--svg: %s", error.message) : DONE;
}

static void draw_svg(void *context, FILE *to) {
    explanation_svg(context, to);
}

/* Complete, or not there: by the rules of lnorm_file_create; '-' is standard output. Signals wait until the temporary
 * file is renamed or removed: it is small. */
static int write_svg(const char *path, explanation *e) {
    size_t count = 0;
    char *bytes = drawn(draw_svg, e, &count);
    if (!bytes)
        return report_failure("--svg: not enough memory");
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, &before);
    int status = save(path, bytes, count);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(bytes);
    return status;
}

/* -- The verb ----------------------------------------------------------------------------------------------------- */

/* file: NULL where only a shape is given. */
static int explain(const arguments *a, const lnorm_tensor *x, const lnorm_file *file) {
    static explanation e; /* not on the stack */
    static operation o;
    const char *svg = a->given[OPTION_SVG];
    const int silent = svg && !strcmp(svg, "-");
    const style style = {terminal_width(), utf8_wanted(), report_colour(stdout)};
    const elements values = {file, read_file, "'lnorm apply' has --mean and --rstd."};
    lnorm_error error = LNORM_ERROR_INIT;
    int status = operation_parse(&o, a);
    if (status)
        return status;
    if (explanation_init(&e, &o.op, x, &error))
        return report_refused(&error, a);
    if (!silent && explanation_text(&e, stdout, &style, file ? &values : NULL, &error))
        status = report_failure("%s", error.message);
    if ((status = report_flush(status)) || !svg)
        return status;
    return write_svg(svg, &e);
}

static int looks_like_a_shape(const char *text) {
    return *text && text[strspn(text, "0123456789,")] == '\0';
}

/* As 4,a,3 or [4, 2]: begins with a number, and is no file's name by its look and none that is there. */
static int meant_as_a_shape(const char *text) {
    const char *first = text + strspn(text, "([ -");
    return *first >= '0' && *first <= '9' && !strchr(text, '.') && access(text, F_OK);
}

static int run(const arguments *a) {
    const char *what = a->position[0];
    if (looks_like_a_shape(what)) {
        int64_t shape[LNORM_MAX_NDIM];
        int32_t ndim;
        if (!parse_list(what, 0, shape, &ndim))
            return report_usage("SHAPE: expected at most %d integers, as 4,2,3, got '%s'; a file of that name is ./%s",
                                LNORM_MAX_NDIM, what, what);
        lnorm_tensor x = lnorm_dense(NULL, LNORM_F32, ndim, shape);
        return explain(a, &x, NULL);
    }
    if (meant_as_a_shape(what))
        return report_usage("'%s': expected a shape of digits and commas, as 4,2,3, or a file; no file has that name",
                            what);
    lnorm_file *file = input_open(what, a);
    if (!file)
        return FAILED;
    int status = explain(a, lnorm_file_tensor(file), file);
    lnorm_file_close(file);
    return status;
}

const verb verb_explain = {
    EXPLAIN,
    "explain",
    "SHAPE|FILE [OPTION]...",
    "show which elements share a mean and a variance",
    "Draws the array: elements in one outline, or with the same number, form a\n"
    "group, normalised together. Below that in words: how many groups and statistics\n"
    "there are, the formula, the parameters, and what depends on the batch.\n"
    "\n"
    "SHAPE is digits and commas only, as 4,2,3. Anything else is a FILE: .npy, '-'\n"
    "for standard input, or one tensor of a model, as\n"
    "model.safetensors:encoder.weight. Of a FILE the values are shown, too: each\n"
    "group's elements, mean, variance and result (without weight and bias); of one\n"
    "too large for a screen, those of the first and the last group.\n"
    "\n"
    "The picture is as wide as the terminal (80 columns elsewhere), drawn in UTF-8\n"
    "where LC_ALL, LC_CTYPE or LANG says so, otherwise in ASCII; in colour on a\n"
    "terminal, unless NO_COLOR is set. With --svg=- the SVG alone goes to standard\n"
    "output.",
    "  lnorm explain 4,2,3 --normalized-shape 2,3\n"
    "  lnorm explain 2,4,3,3 --op group --groups 2 --svg groups.svg\n"
    "  lnorm explain x.npy --op rms",
    1,
    1,
    run};
