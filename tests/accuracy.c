/* How accurate the library is: its results against MPFR on many inputs, beside the bounds of docs/arithmetic.md.
 * `make accuracy` runs it; docs/accuracy.md has its results. Status 1 if a result was further off than its bound. */
#include "accuracy.h"
#include "exact_check.h"
#include <argp.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <unistd.h>

typedef struct settings {
    double results, hunt;
    uint64_t seed;
    const char *json, *folder;
    int quiet;
} settings;

static double number_of(const char *text, const char *name, struct argp_state *state) {
    char *end;
    double value = strtod(text, &end);
    if (*text == 0 || *end || !(value >= 0 && value <= 1e15))
        argp_error(state, "--%s: expected a number from 0 to 1e15, got '%s'", name, text);
    return value;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    settings *s = state->input;
    switch (key) {
    case 'n':
        s->results = number_of(text, "results", state);
        return 0;
    case 't':
        s->hunt = number_of(text, "hunt", state);
        return 0;
    case 's':
        s->seed = (uint64_t)number_of(text, "seed", state);
        return 0;
    case 'j':
        s->json = text;
        return 0;
    case 'e':
        s->folder = text;
        return 0;
    case 'q':
        s->quiet = 1;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"results", 'n', "N", 0, "results to compare with MPFR (default: 1e6)", 0},
    {"hunt", 't', "SECONDS", 0, "look for the worst inputs by hill climbing, that long (default: 10)", 0},
    {"seed", 's', "N", 0, "of the random numbers (default: 1)", 0},
    {"json", 'j', "FILE", 0, "write what was found, with histograms", 0},
    {"export", 'e', "FOLDER", 0, "write inputs and exact results as .npy files for other libraries, and end", 0},
    {"quiet", 'q', NULL, 0, "no progress", 0},
    {0}};

/* -- Operations of every kind, as test_exact draws them ----------------------------------------------------------- */

static void drawn(accuracy *a, int64_t until) {
    for (uint64_t i = 0; a->done < until; i++) {
        static const int passes[] = {4, 4, 2, 2, 2};
        int kind = (int)random_below(&a->random, 5);
        lnorm_pass pass = (lnorm_pass)random_below(&a->random, passes[kind]);
        enum lnorm_element element = (enum lnorm_element)random_below(&a->random, LNORM_ELEMENT_ABSENT);
        lnorm_arithmetic arithmetic = random_below(&a->random, 2) ? LNORM_FAST : LNORM_ACCURATE;
        exact_case c;
        exact_draw(&c, &a->random, arithmetic, (lnorm_kind)kind, pass, element);
        a->done += accuracy_compare(&c, &a->refused);
        exact_case_free(&c);
    }
}

/* -- Results ------------------------------------------------------------------------------------------------------- */

/* A bound is infinite where none was derived: null. */
static json_t *real_or_null(long double value) {
    return isfinite((double)value) ? json_real((double)value) : json_null();
}

static json_t *found_as_json(const exact_found *found) {
    json_t *histogram = json_array();
    for (int bin = 0; bin < EXACT_BINS; bin++)
        json_array_append_new(histogram, json_integer(found->histogram[bin]));
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "results", (json_int_t)found->results, "correct",
                     (json_int_t)found->correct, "worst_ulp", real_or_null(found->ulps), "worst_units",
                     real_or_null(found->units), "bound_units", real_or_null(found->allowed), "share_of_bound",
                     real_or_null(found->share), "histogram", histogram);
}

static int write_json(const char *path, const accuracy *a) {
    static const char *const arithmetics[] = {"accurate", "wide", "fast"};
    static const char *const elements[] = {"f64", "f32", "f16", "bf16"};
    json_t *root = json_pack("{s:I, s:I, s:o}", "results", (json_int_t)a->done, "beyond_bound",
                             (json_int_t)a->refused, "found", json_array());
    for (int arithmetic = 0; arithmetic < 3; arithmetic++)
        for (int operand = 0; operand < LNORM_OPERANDS; operand++)
            for (int element = 0; element < LNORM_ELEMENT_ABSENT; element++) {
                const exact_found *found = &exact_table[arithmetic][operand][element];
                if (!found->results)
                    continue;
                json_t *entry = found_as_json(found);
                json_object_set_new(entry, "arithmetic", json_string(arithmetics[arithmetic]));
                json_object_set_new(entry, "output", json_string(lnorm_operand_name((enum lnorm_operand)operand)));
                json_object_set_new(entry, "type", json_string(elements[element]));
                json_array_append_new(json_object_get(root, "found"), entry);
            }
    int failed = json_dump_file(root, path, JSON_INDENT(1));
    json_decref(root);
    if (failed)
        fprintf(stderr, "accuracy: --json: cannot write '%s'\n", path);
    return failed;
}

int main(int argc, char **argv) {
    const struct argp argp = {options, parse, NULL,
                              "Compares the library's results with MPFR, and with the bounds derived in "
                              "docs/arithmetic.md. Status 1: some result is beyond its bound.",
                              NULL, NULL, NULL};
    settings s = {.results = 1e6, .hunt = 10, .seed = 1};
    argp_parse(&argp, argc, argv, 0, NULL, &s);
    if (s.folder) {
        accuracy_export(s.folder);
        return 0;
    }
    accuracy a = {.random = {s.seed}, .wanted = (int64_t)s.results, .quiet = s.quiet || !isatty(2)};
    drawn(&a, a.wanted / 10);
    accuracy_rows(&a);
    exact_print_table();
    if (s.hunt > 0)
        accuracy_hunt(&a, s.hunt);
    printf("%lld results, %lld beyond their bound\n", (long long)a.done, (long long)a.refused);
    return (s.json && write_json(s.json, &a)) ? 2 : a.refused > 0;
}
