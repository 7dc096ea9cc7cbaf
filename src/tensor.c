
#include "tensor.h"
#include "access.h"
#include "message.h"

#include <stdlib.h>

enum { DEVICE_UNSET = 0, DEVICE_CPU = 1 };

enum lnorm_element lnorm_element_of(lnorm_dtype dtype) {
#define DTYPE(ID, name, code_, bits_) \
    if (dtype.code == code_ && dtype.bits == bits_ && dtype.lanes == 1) \
        return LNORM_ELEMENT_##ID;
#include "lists/dtypes.def"
#undef DTYPE
    return LNORM_ELEMENT_ABSENT;
}

static int64_t stride_of(const lnorm_tensor *tensor, int axis) {
    if (tensor->strides)
        return tensor->strides[axis];
    int64_t stride = 1;
    for (int i = tensor->ndim - 1; i > axis; i--)
        stride *= tensor->shape[i] > 0 ? tensor->shape[i] : 1;
    return stride;
}

/* Number of elements; -1 where the extents that are not 0 multiply to more than 2^63 bytes' worth of elements. */
static int64_t count_of(const lnorm_tensor *tensor) {
    int64_t product = 1;
    int empty = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] == 0)
            empty = 1;
        else if (__builtin_mul_overflow(product, tensor->shape[i], &product) || product > INT64_MAX / 8)
            return -1;
    }
    return empty ? 0 : product;
}

/* The bytes that the elements touch, [low, high) relative to the first; 0 where that leaves int64. */
static int span_of(const lnorm_tensor *tensor, int64_t size, int64_t *low, int64_t *high) {
    int64_t least = 0, most = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t reach;
        if (__builtin_mul_overflow(tensor->shape[i] - 1, stride_of(tensor, i), &reach))
            return 0;
        if (reach < 0 ? __builtin_add_overflow(least, reach, &least) : __builtin_add_overflow(most, reach, &most))
            return 0;
    }
    return !__builtin_mul_overflow(least, size, low) && !__builtin_mul_overflow(most, size, high) &&
           !__builtin_add_overflow(*high, size, high);
}

/* Whether no two elements share a place, and whether they leave no gap: by increasing |stride|, each axis steps beyond
 * all that the smaller ones reach, and not further than their end. */
typedef struct covering {
    int apart, dense;
} covering;

static covering covering_of(const lnorm_tensor *tensor) {
    covering result = {1, 1};
    int64_t reached = 1;
    int order[LNORM_MAX_NDIM], count = 0;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] > 1)
            order[count++] = i;
    for (int i = 1; i < count; i++)
        for (int k = i; k && llabs(stride_of(tensor, order[k - 1])) > llabs(stride_of(tensor, order[k])); k--) {
            int swap = order[k];
            order[k] = order[k - 1];
            order[k - 1] = swap;
        }
    for (int k = 0; k < count; k++) {
        int64_t stride = llabs(stride_of(tensor, order[k]));
        if (stride < reached)
            result.apart = 0;
        if (stride > reached)
            result.dense = 0;
        reached += stride * (tensor->shape[order[k]] - 1);
    }
    return result;
}

static lnorm_status check_form(const char *name, const lnorm_tensor *tensor, lnorm_error *error) {
    if (tensor->device.device_type != DEVICE_UNSET && tensor->device.device_type != DEVICE_CPU)
        return lnorm_fail(error, LNORM_UNSUPPORTED,
                          "%s: expected a tensor on the CPU (device type 1), got device type %d",
                          name, (int)tensor->device.device_type);
    if (tensor->ndim < 0 || tensor->ndim > LNORM_MAX_NDIM)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected 0 to %d dimensions, got %d", name,
                          (int)LNORM_MAX_NDIM, (int)tensor->ndim);
    if (tensor->ndim && !tensor->shape)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a shape of %d extents, got NULL", name,
                          (int)tensor->ndim);
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] < 0)
            return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected extents of at least 0, got shape %s", name,
                              lnorm_shape_text("", tensor->ndim, tensor->shape).at);
    return LNORM_OK;
}

lnorm_status lnorm_tensor_check(lnorm_operand_form *form, const char *name, const lnorm_tensor *tensor,
                                lnorm_error *error) {
    lnorm_status status = check_form(name, tensor, error);
    if (status)
        return status;
    form->element = (uint8_t)lnorm_element_of(tensor->dtype);
    if (form->element == LNORM_ELEMENT_ABSENT)
        return lnorm_fail(error, LNORM_UNSUPPORTED_DTYPE,
                          "%s: expected elements of float64, float32, float16 or bfloat16, got %s", name,
                          lnorm_dtype_text(tensor->dtype).at);
    int64_t count = count_of(tensor);
    if (count < 0)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected less than 2^63 bytes of elements, got shape %s",
                          name, lnorm_shape_text("", tensor->ndim, tensor->shape).at);
    form->low = form->high = 0;
    form->dense = 0;
    if (count == 0)
        return LNORM_OK;
    if (!span_of(tensor, (int64_t)lnorm_element_size(form->element), &form->low, &form->high))
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "%s: expected strides that stay within 2^63 bytes, got shape %s with strides %s", name,
                          lnorm_shape_text("", tensor->ndim, tensor->shape).at,
                          lnorm_shape_text("", tensor->ndim, tensor->strides).at);
    covering places = covering_of(tensor);
    form->dense = (uint8_t)places.dense;
    if (form->written && !places.apart)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "%s: expected strides that give each element of an output a place of its own, got shape %s "
                          "with strides %s", name, lnorm_shape_text("", tensor->ndim, tensor->shape).at,
                          lnorm_shape_text("", tensor->ndim, tensor->strides).at);
    return LNORM_OK;
}

void lnorm_tensor_on_axes(lnorm_operand_form *form, const lnorm_tensor *tensor, const uint8_t *on,
                          const lnorm_axes *axes) {
    for (int a = 0; a < axes->count; a++) {
        form->stride[a] = 0;
        for (int i = 0; i < tensor->ndim; i++)
            if (on[i] == axes->source[a] && tensor->shape[i] != 1)
                form->stride[a] = (int64_t)((uint64_t)stride_of(tensor, i) * (uint64_t)axes->scale[a]);
    }
}

lnorm_status lnorm_tensor_as_x(lnorm_operand_form *form, const char *name, const lnorm_tensor *tensor,
                               const lnorm_axes *axes, lnorm_error *error) {
    uint8_t on[LNORM_MAX_NDIM];
    if (!lnorm_same_shape(tensor->ndim, tensor->shape, axes->x->ndim, axes->x->shape))
        return lnorm_fail(error, LNORM_SHAPE_MISMATCH, "%s: expected the shape of x, %s, got %s", name,
                          lnorm_shape_text("", axes->x->ndim, axes->x->shape).at,
                          lnorm_shape_text("", tensor->ndim, tensor->shape).at);
    for (int i = 0; i < tensor->ndim; i++)
        on[i] = (uint8_t)i;
    lnorm_tensor_on_axes(form, tensor, on, axes);
    return LNORM_OK;
}

/* The groups' extents: those of the axes that are not reduced. */
static int group_extents(const lnorm_axes *axes, int64_t *extent, int64_t *count) {
    int ndim = 0;
    *count = 1;
    for (int a = 0; a < axes->count; a++)
        if (!(axes->reduced >> a & 1)) {
            extent[ndim++] = axes->extent[a];
            *count *= axes->extent[a];
        }
    return ndim;
}

/* Lays the tensor's axes of extents other than 1 on the groups' in order; 0 where they do not correspond. */
static int match_groups(lnorm_operand_form *form, const lnorm_tensor *tensor, const lnorm_axes *axes) {
    int i = 0;
    for (int a = 0; a < axes->count; a++) {
        form->stride[a] = 0;
        if (axes->reduced >> a & 1 || axes->extent[a] == 1)
            continue;
        while (i < tensor->ndim && tensor->shape[i] == 1)
            i++;
        if (i == tensor->ndim || tensor->shape[i] != axes->extent[a])
            return 0;
        form->stride[a] = stride_of(tensor, i++);
    }
    while (i < tensor->ndim && tensor->shape[i] == 1)
        i++;
    return i == tensor->ndim;
}

lnorm_status lnorm_tensor_as_statistic(lnorm_operand_form *form, const char *name, const lnorm_tensor *tensor,
                                       const lnorm_axes *axes, lnorm_error *error) {
    int64_t extent[LNORM_MAX_AXES], groups;
    int ndim = group_extents(axes, extent, &groups);
    if (match_groups(form, tensor, axes))
        return LNORM_OK;
    if (tensor->ndim != 1 || tensor->shape[0] != groups)
        return lnorm_fail(error, LNORM_SHAPE_MISMATCH,
                          "%s: expected one element for each of the %lld groups, shape %s (or [%lld]), got %s", name,
                          (long long)groups, lnorm_shape_text("", ndim, extent).at, (long long)groups,
                          lnorm_shape_text("", tensor->ndim, tensor->shape).at);
    int64_t stride = stride_of(tensor, 0);
    for (int a = axes->count; a-- > 0;) {
        form->stride[a] = 0;
        if (axes->reduced >> a & 1)
            continue;
        form->stride[a] = stride;
        stride = (int64_t)((uint64_t)stride * (uint64_t)axes->extent[a]);
    }
    return LNORM_OK;
}

lnorm_status lnorm_tensor_broadcast(lnorm_operand_form *form, const char *name, const lnorm_tensor *tensor,
                                    const lnorm_axes *axes, uint32_t *used, lnorm_error *error) {
    const lnorm_tensor *x = axes->x;
    uint8_t on[LNORM_MAX_NDIM];
    int fits = tensor->ndim <= x->ndim;
    for (int i = 0; fits && i < tensor->ndim; i++) {
        on[i] = (uint8_t)(x->ndim - tensor->ndim + i);
        fits = tensor->shape[i] == 1 || tensor->shape[i] == x->shape[on[i]];
    }
    if (!fits)
        return lnorm_fail(error, LNORM_SHAPE_MISMATCH,
                          "%s: expected a shape that broadcasts over x (aligned at the last axis, each extent 1 or "
                          "x's), "
                          "got %s for x of shape %s", name, lnorm_shape_text("", tensor->ndim, tensor->shape).at,
                          lnorm_shape_text("", x->ndim, x->shape).at);
    lnorm_tensor_on_axes(form, tensor, on, axes);
    *used = 0;
    for (int a = 0; a < axes->count; a++)
        for (int i = 0; i < tensor->ndim; i++)
            if (on[i] == axes->source[a] && tensor->shape[i] != 1)
                *used |= 1u << a;
    return LNORM_OK;
}

