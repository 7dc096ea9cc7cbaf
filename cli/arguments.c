#include "report.h"
#include "verb.h"
#include "wrap.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct option_form {
    char letter;
    const char *name, *value;
    unsigned verbs;
    const char *help;
} option_form;

static const option_form forms[OPTIONS] = {
#define OPTION(ID, letter, name, value, verbs, help) {letter, name, value, verbs, help},
#include "options.def"
#undef OPTION
};

/* Long options are returned as FIRST_LONG + enum option_id, letters as themselves. */
enum { FIRST_LONG = 256 };

static int allowed(const verb *v, int id) {
    return (forms[id].verbs & v->bit) != 0;
}

/* The tables that getopt_long wants: the verb's own options. */
static void fill_tables(const verb *v, struct option table[OPTIONS + 1], char letters[2 * OPTIONS + 2]) {
    size_t count = 0, length = 0;
    letters[length++] = ':'; /* first: a missing value is reported as ':' */
    for (int id = 0; id < OPTIONS; id++) {
        if (!allowed(v, id))
            continue;
        table[count++] = (struct option){forms[id].name, forms[id].value ? required_argument : no_argument, NULL,
                                         FIRST_LONG + id};
        if (!forms[id].letter)
            continue;
        letters[length++] = forms[id].letter;
        if (forms[id].value)
            letters[length++] = ':';
    }
    table[count] = (struct option){0};
    letters[length] = '\0';
}

static int option_of(int found) {
    for (int id = 0; id < OPTIONS; id++)
        if (found == FIRST_LONG + id || (forms[id].letter && found == forms[id].letter))
            return id;
    return -1;
}

/* The argument that getopt_long has just refused, as the user wrote it. */
static const char *refused(char **argv, char letter[3]) {
    if (optopt && optopt < FIRST_LONG) {
        letter[0] = '-';
        letter[1] = (char)optopt;
        letter[2] = '\0';
        return letter;
    }
    return argv[optind - 1];
}

/* Whether so many mistakes make one word of the other: a letter more, less or another, or two that changed places. */
static int mistyped(const char *a, const char *b, int mistakes) {
    for (; *a && *a == *b; b++)
        a++;
    if (!*a && !*b)
        return 1;
    if (!mistakes--)
        return 0;
    return (*a && mistyped(a + 1, b, mistakes)) || (*b && mistyped(a, b + 1, mistakes)) ||
           (*a && *b && mistyped(a + 1, b + 1, mistakes)) ||
           (*a && *b && a[0] == b[1] && a[1] == b[0] && mistyped(a + 2, b + 2, mistakes));
}

/* The verb's option that was probably meant by --word or --word=VALUE: a letter in three may be wrong. Or NULL. */
static const char *meant(const verb *v, const char *refused) {
    char word[24];
    size_t length = strcspn(refused, "=");
    if (strncmp(refused, "--", 2) || length - 2 >= sizeof word)
        return NULL;
    length -= 2;
    memcpy(word, refused + 2, length);
    word[length] = '\0';
    for (int mistakes = 1; mistakes <= (int)length / 3; mistakes++)
        for (int id = 0; id < OPTIONS; id++)
            if (allowed(v, id) && mistyped(word, forms[id].name, mistakes))
                return forms[id].name;
    return NULL;
}

static int report_unknown(const verb *v, const char *word) {
    const char *other = meant(v, word);
    if (other)
        return report_usage("%s: no such option; perhaps --%s", word, other);
    return report_usage("%s: no such option, or the beginning of several", word);
}

static int parse_options(arguments *a, int argc, char **argv) {
    struct option table[OPTIONS + 1];
    char letters[2 * OPTIONS + 2], letter[3];
    int found;
    fill_tables(a->verb, table, letters);
    optind = 1;
    opterr = 0;
    while ((found = getopt_long(argc, argv, letters, table, NULL)) != -1) {
        if (found == '?' && optopt >= FIRST_LONG)
            return report_usage("%s: takes no value", argv[optind - 1]);
        if (found == '?')
            return report_unknown(a->verb, refused(argv, letter));
        if (found == ':')
            return report_usage("%s: expected a value (%s) after it", argv[optind - 1],
                                forms[option_of(optopt)].value);
        int id = option_of(found);
        if (a->given[id])
            return report_usage("--%s: given twice", forms[id].name);
        a->given[id] = forms[id].value ? optarg : "";
    }
    return DONE;
}

int arguments_parse(arguments *a, const verb *v, int argc, char **argv, int *status) {
    memset(a, 0, sizeof *a);
    a->verb = v;
    if ((*status = parse_options(a, argc, argv)))
        return 0;
    if (a->given[OPTION_HELP]) {
        arguments_help(v);
        *status = report_flush(DONE);
        return 0;
    }
    for (; optind < argc; optind++) {
        if (a->positions == v->most) {
            *status = report_usage("%s: one argument too many; expected %s", argv[optind], v->synopsis);
            return 0;
        }
        a->position[a->positions++] = argv[optind];
    }
    if (a->positions < v->least) {
        *status = report_usage("an argument is missing; expected %s", v->synopsis);
        return 0;
    }
    return 1;
}

/* -- Help --------------------------------------------------------------------------------------------------------- */

enum { HELP_INDENT = 31, HELP_WIDTH = 79 };

static void put_help(void *context, const char *label, const char *line) {
    (void)context;
    printf("  %-*s%s\n", HELP_INDENT - 2, label, line);
}

void arguments_help(const verb *v) {
    printf("Usage: lnorm %s %s\n%s\n\n%s\n\nOptions:\n", v->name, v->synopsis, v->summary, v->description);
    for (int id = 0; id < OPTIONS; id++) {
        char left[64];
        const option_form *form = &forms[id];
        if (!allowed(v, id))
            continue;
        int used = form->letter ? snprintf(left, sizeof left, "-%c, ", form->letter)
                                : snprintf(left, sizeof left, "    ");
        snprintf(left + used, sizeof left - (size_t)used, "--%s%s%s", form->name, form->value ? "=" : "",
                 form->value ? form->value : "");
        wrap(left, form->help, HELP_WIDTH - HELP_INDENT, put_help, NULL);
    }
    if (v->examples)
        printf("\nExamples:\n%s\n", v->examples);
}

/* -- Values ------------------------------------------------------------------------------------------------------- */

static int parse_integer(const char *text, const char **end, int64_t *value) {
    char *after;
    if (*text == ' ' || *text == '\t' || *text == '+')
        return 0;
    errno = 0;
    long long number = strtoll(text, &after, 10);
    *end = after;
    *value = number;
    return after != text && !errno;
}

int parse_list(const char *text, int64_t least, int64_t list[LNORM_MAX_NDIM], int32_t *count) {
    const char *end = text;
    for (*count = 0; *count < LNORM_MAX_NDIM; text = end + 1) {
        if (!parse_integer(text, &end, &list[*count]) || list[*count] < least || (*end && *end != ','))
            return 0;
        ++*count;
        if (!*end)
            return 1;
    }
    return 0;
}

int arguments_integer(const arguments *a, enum option_id id, int64_t least, int64_t *value) {
    const char *text = a->given[id], *end;
    if (!text || (parse_integer(text, &end, value) && !*end && *value >= least))
        return 1;
    report_usage("--%s: expected an integer from %lld on, got '%s'", forms[id].name, (long long)least, text);
    return 0;
}

int arguments_number(const arguments *a, enum option_id id, double least, double *value) {
    const char *text = a->given[id];
    char *end;
    if (!text)
        return 1;
    double number = strtod(text, &end);
    if (end != text && !*end && isfinite(number) && number >= least) {
        *value = number;
        return 1;
    }
    report_usage("--%s: expected a number from %g on, got '%s'", forms[id].name, least, text);
    return 0;
}

int arguments_list(const arguments *a, enum option_id id, int64_t least, int64_t list[LNORM_MAX_NDIM],
                   int32_t *count) {
    if (!a->given[id] || parse_list(a->given[id], least, list, count))
        return 1;
    report_usage("--%s: expected at most %d integers%s, as 2,3, got '%s'", forms[id].name, LNORM_MAX_NDIM,
                 least == 0 ? " >= 0" : "", a->given[id]);
    return 0;
}

static const struct {
    const char *name, *other;
    lnorm_dtype dtype;
} dtypes[] = {{"f64", "float64", {2, 64, 1}},
              {"f32", "float32", {2, 32, 1}},
              {"f16", "float16", {2, 16, 1}},
              {"bf16", "bfloat16", {4, 16, 1}}};

int arguments_dtype(const arguments *a, enum option_id id, lnorm_dtype *dtype) {
    const char *text = a->given[id];
    if (!text)
        return 1;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(text, dtypes[i].name) || !strcmp(text, dtypes[i].other)) {
            *dtype = dtypes[i].dtype;
            return 1;
        }
    report_usage("--%s: expected f64, f32, f16 or bf16, got '%s'", forms[id].name, text);
    return 0;
}

const char *dtype_name(lnorm_dtype dtype) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtype.code == dtypes[i].dtype.code && dtype.bits == dtypes[i].dtype.bits)
            return dtypes[i].name;
    return "?";
}
