/* Where everything lies in the structs that callers and the library share, as the header that was included before says:
 * program.c compares that of an older header with today's. */
#ifndef LAYOUT_H
#define LAYOUT_H

#include <stddef.h>

typedef struct layout_entry {
    const char *name;
    size_t value;
    int may_grow; /* the size of a struct that begins with its size */
} layout_entry;

extern const layout_entry layout_then[], layout_now[];
extern const int layout_count;

#define LAYOUT_SIZE(type, may_grow) {"sizeof(" #type ")", sizeof(type), may_grow}
#define LAYOUT_PLACE(type, member) {#type "." #member, offsetof(type, member), 0}
#define LAYOUT                                                                                                        \
    LAYOUT_SIZE(lnorm_status, 0), LAYOUT_SIZE(lnorm_dtype, 0), LAYOUT_SIZE(lnorm_device, 0),                          \
        LAYOUT_SIZE(lnorm_tensor, 0), LAYOUT_SIZE(lnorm_plan, 0), LAYOUT_SIZE(lnorm_error, 1),                        \
        LAYOUT_SIZE(lnorm_op, 1), LAYOUT_SIZE(lnorm_io, 1), LAYOUT_SIZE(lnorm_executor, 1),                           \
        LAYOUT_SIZE(lnorm_layer_config, 1), LAYOUT_PLACE(lnorm_error, status), LAYOUT_PLACE(lnorm_error, message),    \
        LAYOUT_PLACE(lnorm_dtype, bits), LAYOUT_PLACE(lnorm_dtype, lanes), LAYOUT_PLACE(lnorm_tensor, device),        \
        LAYOUT_PLACE(lnorm_tensor, ndim), LAYOUT_PLACE(lnorm_tensor, dtype), LAYOUT_PLACE(lnorm_tensor, shape),       \
        LAYOUT_PLACE(lnorm_tensor, strides), LAYOUT_PLACE(lnorm_tensor, byte_offset), LAYOUT_PLACE(lnorm_op, kind),   \
        LAYOUT_PLACE(lnorm_op, pass), LAYOUT_PLACE(lnorm_op, statistics), LAYOUT_PLACE(lnorm_op, arithmetic),         \
        LAYOUT_PLACE(lnorm_op, eps), LAYOUT_PLACE(lnorm_op, normalized_shape), LAYOUT_PLACE(lnorm_op, axes),          \
        LAYOUT_PLACE(lnorm_op, normalized_ndim), LAYOUT_PLACE(lnorm_op, axes_count), LAYOUT_PLACE(lnorm_op, groups),  \
        LAYOUT_PLACE(lnorm_op, affine_broadcast), LAYOUT_PLACE(lnorm_op, weight_offset),                              \
        LAYOUT_PLACE(lnorm_op, accumulate), LAYOUT_PLACE(lnorm_op, momentum), LAYOUT_PLACE(lnorm_op, batches),        \
        LAYOUT_PLACE(lnorm_io, x), LAYOUT_PLACE(lnorm_io, running_mean), LAYOUT_PLACE(lnorm_io, dy),                  \
        LAYOUT_PLACE(lnorm_io, v), LAYOUT_PLACE(lnorm_io, x_tangent), LAYOUT_PLACE(lnorm_io, rstd_tangent),           \
        LAYOUT_PLACE(lnorm_io, workspace), LAYOUT_PLACE(lnorm_io, workspace_size),                                    \
        LAYOUT_PLACE(lnorm_executor, context), LAYOUT_PLACE(lnorm_executor, parallel_for),                            \
        LAYOUT_PLACE(lnorm_layer_config, kind), LAYOUT_PLACE(lnorm_layer_config, normalized_shape),                   \
        LAYOUT_PLACE(lnorm_layer_config, normalized_size), LAYOUT_PLACE(lnorm_layer_config, eps),                     \
        LAYOUT_PLACE(lnorm_layer_config, elementwise_affine), LAYOUT_PLACE(lnorm_layer_config, bias),                 \
        LAYOUT_PLACE(lnorm_layer_config, dtype), LAYOUT_PLACE(lnorm_layer_config, executor)

#endif
