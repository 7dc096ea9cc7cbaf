#include "case_run.h"

/* Contiguous trailing groups, one element type (of what is there), and the statistics' type of that level. */
int case_fits_level_1(const layer_case *item, const case_geometry *geometry) {
    const enum case_element *element = item->element, x = element[CASE_X];
    if (item->kind != LNORM_LAYER_NORM && item->kind != LNORM_RMS_NORM)
        return 0;
    if (!geometry->valid || !geometry->trailing || item->double_backward || item->broadcast ||
        item->strides.present || item->weight_shape.present)
        return 0;
    for (int slot = CASE_WEIGHT; slot <= CASE_BIAS; slot++)
        if (item->input[slot].present &&
            (element[slot] != x || item->input[slot].count != geometry->group_size))
            return 0;
    return x != CASE_I64 && element[CASE_Y] == x && element[CASE_RSTD] == (x == CASE_F64 ? CASE_F64 : CASE_F32);
}

/* The functions of one element type; void * converts to its pointers. */
#define LEVEL_1(name)                                                                                                 \
    static lnorm_status forward_##name(const case_level_1 *c) {                                                       \
        return c->kind == LNORM_RMS_NORM                                                                              \
                   ? lnorm_rms_norm_##name(c->out[CASE_Y], c->out[CASE_RSTD], c->in[CASE_X], c->in[CASE_WEIGHT],      \
                                           c->rows, c->cols, c->eps)                                                  \
                   : lnorm_layer_norm_##name(c->out[CASE_Y], c->out[CASE_MEAN], c->out[CASE_RSTD], c->in[CASE_X],     \
                                             c->in[CASE_WEIGHT], c->in[CASE_BIAS], c->rows, c->cols, c->eps);         \
    }                                                                                                                 \
    static lnorm_status backward_##name(const case_level_1 *c) {                                                      \
        return c->kind == LNORM_RMS_NORM                                                                              \
                   ? lnorm_rms_norm_backward_##name(c->out[CASE_DX], c->out[CASE_DWEIGHT], c->in[CASE_DY],            \
                                                    c->in[CASE_X], c->in[CASE_WEIGHT], c->rows, c->cols, c->eps,      \
                                                    c->workspace, c->workspace_size)                                  \
                   : lnorm_layer_norm_backward_##name(c->out[CASE_DX], c->out[CASE_DWEIGHT], c->out[CASE_DBIAS],      \
                                                      c->in[CASE_DY], c->in[CASE_X], c->in[CASE_WEIGHT], c->rows,     \
                                                      c->cols, c->eps, c->workspace, c->workspace_size);              \
    }
LEVEL_1(f64)
LEVEL_1(f32)
LEVEL_1(f16)
LEVEL_1(bf16)

lnorm_status case_level_1_forward(const case_level_1 *call) {
    switch (call->element) {
    case CASE_F64: return forward_f64(call);
    case CASE_F32: return forward_f32(call);
    case CASE_F16: return forward_f16(call);
    case CASE_BF16: return forward_bf16(call);
    default: return LNORM_UNSUPPORTED_DTYPE;
    }
}

lnorm_status case_level_1_backward(const case_level_1 *call) {
    switch (call->element) {
    case CASE_F64: return backward_f64(call);
    case CASE_F32: return backward_f32(call);
    case CASE_F16: return backward_f16(call);
    case CASE_BF16: return backward_bf16(call);
    default: return LNORM_UNSUPPORTED_DTYPE;
    }
}
