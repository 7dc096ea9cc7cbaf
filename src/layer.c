/* Level 3: a layer that owns weight, bias and their gradients. The only allocations of the library are here. */
#include "access.h"
#include "message.h"
#include "tensor.h"

#include <stdlib.h>

typedef struct parameter {
    lnorm_tensor value, grad;
} parameter;

struct lnorm_layer {
    lnorm_layer_config config; /* normalized_shape points to shape below */
    int64_t shape[LNORM_MAX_NDIM];
    int64_t count;
    enum lnorm_element element;
    parameter weight, bias;
    void *workspace;
    size_t workspace_size;
};

#include "compact.inc" /* all but what a step of training or inference calls */

static lnorm_status check_config(lnorm_layer *layer, lnorm_error *error) {
    lnorm_layer_config *config = &layer->config;
    lnorm_operand_form form = {0};
    if (config->kind != LNORM_LAYER_NORM && config->kind != LNORM_RMS_NORM)
        return lnorm_fail(error, LNORM_UNSUPPORTED, "config.kind: expected LNORM_LAYER_NORM or LNORM_RMS_NORM, got %d",
                          (int)config->kind);
    if (config->reserved)
        return lnorm_fail(error, LNORM_UNSUPPORTED, "config.reserved: expected 0, got %d", (int)config->reserved);
    if (!lnorm_eps_legal(config->eps))
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "config.eps: expected a finite number of at least 0, or LNORM_EPS_DEFAULT, got %g",
                          config->eps);
    if (!config->normalized_shape && config->normalized_size == -1)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "config: expected normalized_size or normalized_shape, got neither");
    if (config->normalized_shape && config->normalized_ndim < 1)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                          "element, but got normalized_shape = []");
    if (config->executor && lnorm_check_executor(config->executor, error))
        return error->status;
    lnorm_tensor like = lnorm_dense(NULL, config->dtype, config->normalized_shape ? config->normalized_ndim : 1,
                                    config->normalized_shape ? config->normalized_shape : &config->normalized_size);
    return lnorm_tensor_check(&form, "config.normalized_shape", &like, error);
}

static void copy_shape(lnorm_layer *layer) {
    lnorm_layer_config *config = &layer->config;
    if (!config->normalized_shape) {
        config->normalized_shape = &config->normalized_size;
        config->normalized_ndim = 1;
    }
    layer->count = 1;
    for (int i = 0; i < config->normalized_ndim; i++) {
        layer->shape[i] = config->normalized_shape[i];
        layer->count *= layer->shape[i];
    }
    config->normalized_shape = layer->shape;
}

static int allocate(lnorm_layer *layer, lnorm_tensor *tensor) {
    size_t size = lnorm_element_size(layer->element);
    int fits = (uint64_t)layer->count <= SIZE_MAX / size;
    void *data = fits ? malloc(layer->count ? (size_t)layer->count * size : 1) : NULL;
    *tensor = lnorm_dense(data, layer->config.dtype, layer->config.normalized_ndim, layer->shape);
    return data != NULL;
}

static void fill(const lnorm_layer *layer, const lnorm_tensor *tensor, double value) {
    for (int64_t i = 0; tensor->data && i < layer->count; i++)
        lnorm_store(layer->element, tensor->data, i, value);
}

lnorm_layer *lnorm_layer_create(const lnorm_layer_config *user, lnorm_error *user_error) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_layer *layer = calloc(1, sizeof *layer);
    int made;
    if (!layer) {
        lnorm_fail(&error, LNORM_OUT_OF_MEMORY, "lnorm_layer_create: no memory for a layer");
        lnorm_report(user_error, &error);
        return NULL;
    }
    if (lnorm_copy_struct(&layer->config, sizeof layer->config, user, "layer_config", &error) ||
        check_config(layer, &error)) {
        free(layer);
        lnorm_report(user_error, &error);
        return NULL;
    }
    copy_shape(layer);
    layer->element = lnorm_element_of(layer->config.dtype);
    int affine = layer->config.elementwise_affine;
    int bias = affine && layer->config.bias && layer->config.kind == LNORM_LAYER_NORM;
    made = (!affine || (allocate(layer, &layer->weight.value) && allocate(layer, &layer->weight.grad))) &&
           (!bias || (allocate(layer, &layer->bias.value) && allocate(layer, &layer->bias.grad)));
    if (!made) {
        lnorm_fail(&error, LNORM_OUT_OF_MEMORY, "lnorm_layer_create: no memory for parameters of shape %s",
                   lnorm_shape_text("", layer->config.normalized_ndim, layer->shape).at);
        lnorm_layer_destroy(layer);
        layer = NULL;
    } else {
        lnorm_layer_reset_parameters(layer);
        lnorm_layer_zero_grad(layer);
    }
    lnorm_report(user_error, &error);
    return layer;
}

void lnorm_layer_destroy(lnorm_layer *layer) {
    if (!layer)
        return;
    free(layer->weight.value.data);
    free(layer->weight.grad.data);
    free(layer->bias.value.data);
    free(layer->bias.grad.data);
    free(layer->workspace);
    free(layer);
}

void lnorm_layer_reset_parameters(lnorm_layer *layer) {
    fill(layer, &layer->weight.value, 1.0);
    fill(layer, &layer->bias.value, 0.0);
}

void lnorm_layer_zero_grad(lnorm_layer *layer) {
    fill(layer, &layer->weight.grad, 0.0);
    fill(layer, &layer->bias.grad, 0.0);
}

static const lnorm_tensor *present(const lnorm_tensor *tensor) {
    return tensor->data ? tensor : NULL;
}

const lnorm_tensor *lnorm_layer_weight(const lnorm_layer *layer) {
    return present(&layer->weight.value);
}

const lnorm_tensor *lnorm_layer_bias(const lnorm_layer *layer) {
    return present(&layer->bias.value);
}

const lnorm_tensor *lnorm_layer_weight_grad(const lnorm_layer *layer) {
    return present(&layer->weight.grad);
}

const lnorm_tensor *lnorm_layer_bias_grad(const lnorm_layer *layer) {
    return present(&layer->bias.grad);
}

#include "compact_end.inc"

static lnorm_op op_of(const lnorm_layer *layer, lnorm_pass pass) {
    lnorm_op op = LNORM_OP_INIT;
    op.kind = layer->config.kind;
    op.pass = pass;
    op.eps = layer->config.eps;
    op.normalized_shape = layer->shape;
    op.normalized_ndim = layer->config.normalized_ndim;
    op.accumulate = 1;
    return op;
}

static lnorm_status missing(const char *name, const char *expected, lnorm_error *user) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_fail(&error, LNORM_INVALID_ARGUMENT, "%s: expected %s, got NULL", name, expected);
    return lnorm_report(user, &error);
}

lnorm_status lnorm_layer_forward(const lnorm_layer *layer, const lnorm_tensor *y, const lnorm_tensor *x,
                                 lnorm_error *error) {
    lnorm_op op;
    lnorm_io io = LNORM_IO_INIT;
    if (!layer)
        return missing("layer", "what lnorm_layer_create gave", error);
    if (!y)
        return missing("y", "a tensor (the output)", error);
    op = op_of(layer, LNORM_FORWARD);
    io.x = x;
    io.y = y;
    io.weight = lnorm_layer_weight(layer);
    io.bias = lnorm_layer_bias(layer);
    return lnorm_run(&op, &io, layer->config.executor, error);
}

/* A workspace of at least `size` bytes, or NULL: then the pass does without. */
static void *grown_workspace(lnorm_layer *layer, size_t size) {
    if (size > layer->workspace_size) {
        free(layer->workspace);
        layer->workspace = malloc(size);
        layer->workspace_size = layer->workspace ? size : 0;
    }
    return layer->workspace;
}

lnorm_status lnorm_layer_backward(lnorm_layer *layer, const lnorm_tensor *dx, const lnorm_tensor *dy,
                                  const lnorm_tensor *x, lnorm_error *error) {
    lnorm_op op;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_plan plan;
    lnorm_status status;
    if (!layer)
        return missing("layer", "what lnorm_layer_create gave", error);
    op = op_of(layer, LNORM_BACKWARD);
    io.x = x;
    io.dy = dy;
    io.dx = dx;
    io.weight = lnorm_layer_weight(layer);
    io.dweight = lnorm_layer_weight_grad(layer);
    io.dbias = lnorm_layer_bias_grad(layer);
    if ((status = lnorm_plan_init(&plan, &op, &io, error)))
        return status;
    io.workspace = grown_workspace(layer, lnorm_plan_workspace(&plan));
    io.workspace_size = layer->workspace_size;
    if ((status = lnorm_plan_check(&plan, &io, error)))
        return status;
    return lnorm_execute(&plan, &io, layer->config.executor);
}
