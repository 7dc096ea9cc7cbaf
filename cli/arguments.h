/* The command line: one table of options (options.def) for all verbs, parsed by getopt_long into strings, and readers
 * that turn a string into a value or say what was expected. */
#ifndef LNORM_CLI_ARGUMENTS_H
#define LNORM_CLI_ARGUMENTS_H

#include "lnorm.h"

enum verb_bit {
    APPLY = 1,
    GRAD = 2,
    VERIFY = 4,
    EXPLAIN = 8,
    LIST = 16,
    INFO = 32,
    BENCH = 64,
    FORWARDS = APPLY | VERIFY,
    WRITING = APPLY | GRAD,
    COMPUTING = APPLY | GRAD | VERIFY,
    THREADED = APPLY | GRAD | BENCH,
    OPERATIONS = COMPUTING | EXPLAIN | BENCH,
    READING = COMPUTING | EXPLAIN,
    ALL = OPERATIONS | LIST | INFO
};

enum option_id {
#define OPTION(ID, letter, name, value, verbs, help) OPTION_##ID,
#include "options.def"
#undef OPTION
    OPTIONS
};

enum { MAX_POSITIONS = 2 };

struct verb;
typedef struct arguments {
    const struct verb *verb;
    const char *given[OPTIONS];         /* NULL: not given; flags: "" */
    const char *position[MAX_POSITIONS];
    int positions;
} arguments;

/* argv[0] is the verb. 1 to go on; 0 where everything has been said (help, or a wrong argument): exit with *status. */
int arguments_parse(arguments *a, const struct verb *verb, int argc, char **argv, int *status);

void arguments_help(const struct verb *verb);

/* Readers. An option that is not given leaves the value alone. False: a message has been printed, exit with USAGE. */
int arguments_integer(const arguments *a, enum option_id id, int64_t least, int64_t *value);
int arguments_number(const arguments *a, enum option_id id, double least, double *value); /* finite */
int arguments_list(const arguments *a, enum option_id id, int64_t least, int64_t list[LNORM_MAX_NDIM], int32_t *count);
int arguments_dtype(const arguments *a, enum option_id id, lnorm_dtype *dtype);

/* "4,2,3" or "768"; false: nothing printed. */
int parse_list(const char *text, int64_t least, int64_t list[LNORM_MAX_NDIM], int32_t *count);

/* Name of an element type: "f32". */
const char *dtype_name(lnorm_dtype dtype);

#endif
