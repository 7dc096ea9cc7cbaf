#include "axes.h"

int operation_chooses_axes(const lnorm_op *op) {
    return op->kind == LNORM_LAYER_NORM || op->kind == LNORM_RMS_NORM;
}

uint32_t operation_reduced(const lnorm_op *op, int ndim) {
    uint32_t all = (1u << ndim) - 1, axes = 0;
    if (!operation_chooses_axes(op))
        return all & ~(op->kind == LNORM_BATCH_NORM ? 2u : 3u);
    if (!op->axes)
        return all & ~(all >> (op->normalized_shape ? op->normalized_ndim : 1));
    for (int i = 0; i < op->axes_count; i++) {
        int64_t axis = op->axes[i] < 0 ? op->axes[i] + ndim : op->axes[i];
        if (axis >= 0 && axis < ndim)
            axes |= 1u << axis;
    }
    return axes;
}

uint32_t operation_affine(const lnorm_op *op, int ndim) {
    return operation_chooses_axes(op) ? operation_reduced(op, ndim) : 2u;
}
