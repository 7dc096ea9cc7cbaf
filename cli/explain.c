#include "facts.h"
#include "picture.h"
#include "report.h"
#include "svg.h"
#include "values.h"
#include "verb.h"
#include "wrap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Longer lines of prose are hard to read. */
enum { PIPE_WIDTH = 80, PROSE_WIDTH = 100, LABEL = 13 };

static int terminal_width(void) {
    struct winsize size;
    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        return size.ws_col < MIN_WIDTH ? MIN_WIDTH : size.ws_col;
    return PIPE_WIDTH;
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

static void put_line(void *context, const char *label, const char *line) {
    printf("%-*s%s\n", *(const int *)context, label, line);
}

static void print_wrapped(const char *label, const char *text, int indent, int width) {
    wrap(label, text, width - indent, put_line, &indent);
}

static void print_explanation(const facts *f, const picture *p, int width) {
    print_wrapped("", f->title, 0, width);
    putchar('\n');
    if (p->rows) {
        print_wrapped("", f->layout, 0, width);
        if (p->partial)
            print_wrapped("", "Only a part is shown: dots stand for what is left out.", 0, width);
        picture_print(p, utf8_wanted(), report_colour(stdout));
        putchar('\n');
    } else {
        puts("The array has no elements.\n");
    }
    for (int i = 0; i < f->count; i++)
        print_wrapped(f->at[i].label, f->at[i].text, LABEL, width < PROSE_WIDTH ? width : PROSE_WIDTH);
}

/* file: NULL where only a shape is given. */
static int explain(const arguments *a, const lnorm_tensor *x, const lnorm_file *file) {
    static scheme s; /* with the picture, some 70 kB: not on the stack */
    static picture p;
    static facts f;
    const char *svg = a->given[OPTION_SVG];
    const int width = terminal_width(), silent = svg && !strcmp(svg, "-");
    int status = scheme_init(&s, a, x);
    if (status)
        return status;
    facts_collect(&f, &s);
    if (!silent) {
        if (scheme_count(&s))
            picture_init(&p, &s, width);
        print_explanation(&f, &p, width);
        if (file && scheme_count(&s))
            status = values_print(&s, file, width);
    }
    if ((status = report_flush(status)) || !svg)
        return status;
    if (scheme_count(&s))
        picture_init(&p, &s, PIPE_WIDTH);
    return svg_write(svg, &p, &f);
}

static int looks_like_a_shape(const char *text) {
    return *text && text[strspn(text, "0123456789,")] == '\0';
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
