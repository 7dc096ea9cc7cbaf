/* Checks of single tensors and how they lie on x's axes. Every function that can fail fills `error` and returns its
 * status; `name` is the argument's name in the message. */
#ifndef LNORM_TENSOR_H
#define LNORM_TENSOR_H

#include "problem.h"

/* x's axes as the operation sees them: group norm's channel axis is two axes here. */
typedef struct lnorm_axes {
    int count;
    int64_t extent[LNORM_MAX_AXES];
    uint8_t source[LNORM_MAX_AXES];  /* which axis of x */
    int64_t scale[LNORM_MAX_AXES];   /* its stride is x's times this */
    uint32_t reduced;
    const lnorm_tensor *x;
} lnorm_axes;

/* The element type of a dtype; ABSENT for one that is not supported. */
enum lnorm_element lnorm_element_of(lnorm_dtype dtype);

/* Device, rank, extents, element type, count and span below 2^63 bytes. Fills everything of `form` but the strides. */
lnorm_status lnorm_tensor_check(lnorm_operand_form *form, const char *name, const lnorm_tensor *tensor,
                                lnorm_error *error);

/* Strides for a tensor of x's shape. */
lnorm_status lnorm_tensor_as_x(lnorm_operand_form *form, const char *name, const lnorm_tensor *tensor,
                               const lnorm_axes *axes, lnorm_error *error);

/* Strides for a tensor of one element per group. */
lnorm_status lnorm_tensor_as_statistic(lnorm_operand_form *form, const char *name, const lnorm_tensor *tensor,
                                       const lnorm_axes *axes, lnorm_error *error);

/* Strides for a tensor whose axis i lies on x's axis on[i]. Shapes have been compared. */
void lnorm_tensor_on_axes(lnorm_operand_form *form, const lnorm_tensor *tensor, const uint8_t *on,
                          const lnorm_axes *axes);

/* Strides for a tensor that broadcasts over x; `used` receives the axes of `axes` that it is indexed by. */
lnorm_status lnorm_tensor_broadcast(lnorm_operand_form *form, const char *name, const lnorm_tensor *tensor,
                                    const lnorm_axes *axes, uint32_t *used, lnorm_error *error);

static inline int lnorm_same_shape(int ndim_a, const int64_t *a, int ndim_b, const int64_t *b) {
    int same = ndim_a == ndim_b;
    for (int i = 0; same && i < ndim_a; i++)
        same = a[i] == b[i];
    return same;
}

#endif
