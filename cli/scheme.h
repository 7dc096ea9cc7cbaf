/* What an operation does to an array of a given shape: which elements share statistics, what parameters there are. The
 * library's plan decides; this puts it in terms of the array's own axes. */
#ifndef LNORM_CLI_SCHEME_H
#define LNORM_CLI_SCHEME_H

#include "axes.h"
#include "problem.h"

/* Points into itself: not to be copied. What op points to is the caller's, and must live as long. */
typedef struct scheme {
    lnorm_op op;
    lnorm_dtype dtype;
    int32_t ndim;
    int64_t shape[LNORM_MAX_NDIM];
    uint32_t axes;                      /* bit a: axis a is normalised over; of group norm, axis 1 in parts */
    int32_t affine_ndim;                /* weight and bias */
    int64_t affine[LNORM_MAX_NDIM];
    lnorm_plan plan;
    const lnorm_problem *problem;       /* the plan's */
} scheme;

/* x needs no data. */
lnorm_status scheme_init(scheme *s, const lnorm_op *op, const lnorm_tensor *x, lnorm_error *error);

/* The group of the element with this number in row-major order. */
int64_t scheme_group(const scheme *s, int64_t element);

/* Whether axis 1 is divided into groups of several channels, and how many those are. */
int64_t scheme_channels(const scheme *s);

int64_t scheme_count(const scheme *s);

/* The elements of group `group` as an index expression, "x[2, :, 0:4]"; of group -1, any group: "x[i, :, 4g:4g+4]". */
typedef struct index_text {
    char at[LNORM_MAX_NDIM * 44 + 8];
} index_text;
index_text scheme_members(const scheme *s, int64_t group);

#endif
