/* The operation that the options describe, and the tensors it reads, from files: shared by apply, grad and verify. */
#ifndef LNORM_CLI_OPERATION_H
#define LNORM_CLI_OPERATION_H

#include "arguments.h"
#include "axes.h"
#include "lnorm_files.h"

/* Points into itself: not to be copied. */
typedef struct operation {
    lnorm_op op;
    int64_t shape[LNORM_MAX_NDIM], axes[LNORM_MAX_NDIM];
} operation;

/* An array that is held in memory, dense, row-major: weight, bias, given statistics. */
typedef struct array {
    lnorm_tensor tensor; /* data NULL: absent */
    int64_t shape[LNORM_MAX_NDIM];
} array;

typedef struct parameters {
    array weight, bias, mean, variance;
} parameters;

/* From --op, --normalized-shape, --axes, --groups, --eps, --weight-offset. Returns an exit status. */
int operation_parse(operation *o, const arguments *a);

/* Weight and bias from --weight and --bias, or --model and --name; given statistics from --running-mean and
 * --running-var, which make op.statistics LNORM_CONSTANT. Returns an exit status; what was loaded is freed by
 * parameters_free in any case. */
int parameters_load(parameters *p, operation *o, const arguments *a);
void parameters_free(parameters *p);

/* Puts those that are there into io. */
void parameters_place(const parameters *p, lnorm_io *io);

/* Opens X; --bf16 and what else concerns reading comes from `a`. NULL: a message has been printed. */
lnorm_file *input_open(const char *path, const arguments *a);

/* The whole array in memory, row-major. Returns an exit status. */
int array_read(array *to, const lnorm_file *file);
void array_free(array *a);

#endif
