/* A layer that owns its parameters, trained by gradient descent until it reproduces another layer's weight and bias. */
#include "lnorm.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 16, COLS = 8, STEPS = 100 };

static const float rate = 0.1f;

static void fill(float *x, int count) {
    uint32_t state = 7;
    for (int i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-22f - 1.0f;
    }
}

/* loss = sum((y - target)^2)/(2 ROWS) and its gradient dy. */
static double loss_of(float *dy, const float *y, const float *target) {
    double loss = 0.0;
    for (int i = 0; i < ROWS * COLS; i++) {
        float difference = y[i] - target[i];
        loss += 0.5 * (double)difference * (double)difference / ROWS;
        dy[i] = difference / (float)ROWS;
    }
    return loss;
}

static void descend(const lnorm_tensor *parameter, const lnorm_tensor *gradient) {
    float *value = parameter->data;
    const float *slope = gradient->data;
    for (int i = 0; i < COLS; i++)
        value[i] -= rate * slope[i];
}

static int train(lnorm_layer *norm) {
    const int64_t shape[2] = {ROWS, COLS};
    float x_data[ROWS * COLS], y_data[ROWS * COLS], dy_data[ROWS * COLS], target[ROWS * COLS];
    float target_weight[COLS] = {2, 1, 0.5f, 1, 3, 1, 1, -1}, target_bias[COLS] = {0, 0, 1, -1, 0, 0.5f, 0, 0};
    lnorm_tensor x = lnorm_dense(x_data, LNORM_F32, 2, shape);
    lnorm_tensor y = lnorm_dense(y_data, LNORM_F32, 2, shape);
    lnorm_tensor dy = lnorm_dense(dy_data, LNORM_F32, 2, shape);
    lnorm_error error = LNORM_ERROR_INIT;
    double loss = INFINITY;
    fill(x_data, ROWS * COLS);
    if (lnorm_layer_norm_f32(target, NULL, NULL, x_data, target_weight, target_bias, ROWS, COLS, 1e-5) != LNORM_OK)
        return 1;

    for (int step = 0; step <= STEPS; step++) {
        lnorm_layer_zero_grad(norm);
        if (lnorm_layer_forward(norm, &y, &x, &error) != LNORM_OK)
            break;
        loss = loss_of(dy_data, y_data, target);
        if (step % 20 == 0)
            printf("step %3d  loss %.3e\n", step, loss);
        /* Adds into the gradients. dx is NULL: nothing lies before this layer. */
        if (lnorm_layer_backward(norm, NULL, &dy, &x, &error) != LNORM_OK)
            break;
        descend(lnorm_layer_weight(norm), lnorm_layer_weight_grad(norm));
        descend(lnorm_layer_bias(norm), lnorm_layer_bias_grad(norm));
    }
    if (error.status != LNORM_OK)
        fprintf(stderr, "%s\n", error.message);
    return error.status != LNORM_OK || !(loss < 1e-4);
}

int main(void) {
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    config.normalized_size = COLS;
    lnorm_layer *norm = lnorm_layer_create(&config, &error); /* weight = 1, bias = 0 */
    if (!norm) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int failed = train(norm);
    lnorm_layer_destroy(norm);
    return failed;
}
