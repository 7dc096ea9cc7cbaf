#include "checks.h"
#include "report.h"
#include "verb.h"

#include <string.h>

typedef struct input {
    const char *name; /* NULL: a file without an option */
    const char *path; /* NULL: not given */
} input;

int inputs_check(const arguments *a) {
    const input inputs[] = {{NULL, a->position[0]},
                            {NULL, a->position[1]},
                            {"weight", a->given[OPTION_WEIGHT]},
                            {"bias", a->given[OPTION_BIAS]},
                            {"running-mean", a->given[OPTION_RUNNING_MEAN]},
                            {"running-var", a->given[OPTION_RUNNING_VAR]}};
    int found = 0;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        if (!inputs[i].path || strcmp(inputs[i].path, "-"))
            continue;
        if (found++)
            return report_usage("%s%s: is standard input, which is read already; expected a file",
                                inputs[i].name ? "--" : "", inputs[i].name ? inputs[i].name : "-");
    }
    return DONE;
}

/* How the library's messages begin, and what of the command line each is about. `word` is not repeated. */
static const struct {
    const char *beginning, *word;
    int option, position; /* -1: none */
    const char *name;     /* of the option */
} subjects[] = {{"Given normalized_shape", "", OPTION_SHAPE, 0, "normalized-shape"},
                {"Expected normalized_shape", "", OPTION_SHAPE, 0, "normalized-shape"},
                {"op.axes: ", "op.axes: ", OPTION_AXES, 0, "axes"},
                {"op.groups: ", "op.groups: ", OPTION_GROUPS, 0, "groups"},
                {"Expected num groups", "", OPTION_GROUPS, 0, "groups"},
                {"Expected number of channels", "", OPTION_GROUPS, 0, "groups"},
                {"Expected weight", "", OPTION_WEIGHT, -1, "weight"},
                {"Expected bias", "", OPTION_BIAS, -1, "bias"},
                {"mean: ", "mean: ", OPTION_RUNNING_MEAN, -1, "running-mean"},
                {"variance: ", "variance: ", OPTION_RUNNING_VAR, -1, "running-var"},
                {"Expected at least 2 dimensions", "", -1, 0, NULL},
                {"x: ", "x: ", -1, 0, NULL},
                {"dy: ", "dy: ", -1, 1, NULL}};

int report_refused(const lnorm_error *error, const arguments *a) {
    const char *message = error->message;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        int option = subjects[i].option, position = subjects[i].position;
        if (strncmp(message, subjects[i].beginning, strlen(subjects[i].beginning)))
            continue;
        message += strlen(subjects[i].word);
        if (option >= 0 && a->given[option])
            return report_failure("--%s %s: %s", subjects[i].name, a->given[option], message);
        if ((option == OPTION_WEIGHT || option == OPTION_BIAS) && a->given[OPTION_MODEL])
            return report_failure("--model %s: %s", a->given[OPTION_MODEL], message);
        if (position >= 0)
            return report_failure("'%s': %s", a->position[position], message);
    }
    return report_failure("%s", message);
}
