/* For the tests of refused arguments. */
#ifndef REFUSAL_H
#define REFUSAL_H

#include "helpers.h"

#define SHAPE(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
#define INVALID LNORM_INVALID_ARGUMENT
#define MISMATCH LNORM_SHAPE_MISMATCH

void assert_error(const lnorm_error *error, lnorm_status status, const char *message);
/* The plan's queries answer 0, and every way of running it gives `status`. */
void assert_unusable(const lnorm_plan *plan, const lnorm_io *io, lnorm_status status);

/* A scene of one kind and pass on x = [4, 2, 3], two groups, everything f32, which is accepted as it is. */
void begin(scene *s, lnorm_kind kind, lnorm_pass pass, lnorm_statistics statistics);
void accepted(const lnorm_op *op, const lnorm_io *io);

/* op and io, whose outputs are those of the scene, are refused with exactly this message by every function that plans;
 * no output is written; the plan stays unusable. The others: the scene with one thing changed. */
void refused(const scene *s, const lnorm_op *op, const lnorm_io *io, lnorm_status status, const char *message);
void refused_op(const scene *s, lnorm_op op, lnorm_status status, const char *message);
void refused_tensor(const scene *s, int operand, lnorm_tensor bad, lnorm_status status, const char *message);
void refused_shape(const scene *s, int operand, int ndim, const int64_t *shape, lnorm_status status,
                   const char *message);

#endif
