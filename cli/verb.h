/* The verbs of the program. Each is a file of its own that ends in a constant description and a run function. */
#ifndef LNORM_CLI_VERB_H
#define LNORM_CLI_VERB_H

#include "arguments.h"

/* Exit statuses. */
enum { DONE = 0, FAILED = 1, USAGE = 2 };

typedef struct verb {
    unsigned bit;            /* its bit in the masks of options.def */
    const char *name;
    const char *synopsis;    /* what follows the name: "X.npy -o Y.npy [OPTION]..." */
    const char *summary;     /* one line */
    const char *description; /* paragraphs, wrapped at 79 columns */
    const char *examples;    /* command lines, one each, indented by two spaces */
    int least, most;         /* positional arguments */
    int (*run)(const arguments *arguments);
} verb;

extern const verb verb_apply, verb_grad, verb_verify, verb_explain, verb_list, verb_info, verb_bench;

/* All of them, in the order of --help; NULL at index `count` and beyond. */
const verb *verb_at(int index);

#endif
