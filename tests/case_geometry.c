#include "case_geometry.h"

int64_t case_shape_count(const case_shape *shape) {
    int64_t count = 1;
    for (int i = 0; i < shape->ndim; i++)
        count *= shape->extent[i];
    return count;
}

static void append(case_shape *shape, int64_t extent) {
    shape->present = 1;
    shape->extent[shape->ndim++] = extent;
}

/* Marks the axes that layer norm and RMS norm reduce. 0: not a set of axes of x, or not the tail of its shape. */
static int reduced_axes(const layer_case *item, int *reduced) {
    const case_shape *tail = &item->normalized_shape, *x = &item->shape;
    if (item->axes.present) {
        for (int i = 0; i < item->axes.ndim; i++) {
            int64_t axis = item->axes.extent[i] + (item->axes.extent[i] < 0 ? x->ndim : 0);
            if (axis < 0 || axis >= x->ndim || reduced[axis])
                return 0;
            reduced[axis] = 1;
        }
        return item->axes.ndim > 0;
    }
    int first = x->ndim - tail->ndim;
    if (tail->ndim < 1 || first < 0)
        return 0;
    for (int i = 0; i < tail->ndim; i++) {
        if (tail->extent[i] != x->extent[first + i])
            return 0;
        reduced[first + i] = 1;
    }
    return 1;
}

static case_geometry layer_geometry(const layer_case *item) {
    case_geometry geometry = {0};
    int reduced[LNORM_MAX_NDIM] = {0};
    geometry.valid = reduced_axes(item, reduced);
    geometry.trailing = geometry.valid;
    for (int i = 0; i < item->shape.ndim; i++) {
        append(reduced[i] ? &geometry.affine : &geometry.statistic, item->shape.extent[i]);
        if (i > 0 && reduced[i - 1] && !reduced[i])
            geometry.trailing = 0;
    }
    geometry.groups = case_shape_count(&geometry.statistic);
    geometry.group_size = case_shape_count(&geometry.affine);
    return geometry;
}

/* x = [N, C, *]: group, instance and batch norm. */
static case_geometry channel_geometry(const layer_case *item) {
    case_geometry geometry = {0};
    const case_shape *x = &item->shape;
    if (x->ndim < 2)
        return geometry;
    int64_t n = x->extent[0], channels = x->extent[1], inner = 1;
    for (int i = 2; i < x->ndim; i++)
        inner *= x->extent[i];
    int64_t groups = item->kind == LNORM_GROUP_NORM ? item->groups : channels;
    if (groups < 1 || channels % groups)
        return geometry;
    geometry.valid = 1;
    append(&geometry.affine, channels);
    if (item->kind != LNORM_BATCH_NORM)
        append(&geometry.statistic, n);
    append(&geometry.statistic, groups);
    geometry.groups = case_shape_count(&geometry.statistic);
    geometry.group_size = channels / groups * inner * (item->kind == LNORM_BATCH_NORM ? n : 1);
    return geometry;
}

case_geometry case_geometry_of(const layer_case *item) {
    return item->kind == LNORM_LAYER_NORM || item->kind == LNORM_RMS_NORM ? layer_geometry(item)
                                                                          : channel_geometry(item);
}

case_shape case_affine_shape(const layer_case *item, const case_geometry *geometry, enum case_slot slot) {
    int64_t count = item->input[slot].count;
    if (item->weight_shape.present)
        return item->weight_shape;
    if (geometry->valid && case_shape_count(&geometry->affine) == count)
        return geometry->affine;
    case_shape shape = {0};
    append(&shape, count);
    return shape;
}
