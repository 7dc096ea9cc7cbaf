/* A program of the days of version 0.1.0: compiled with that version's header, linked with today's shared library. Rows
 * of 1 and 3 have results that are exact: mean 2, variance 1, rstd 1 at eps 0. */
#include "lnorm-0.1.0.h"

#include "layout.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int right, const char *what) {
    if (!right)
        printf("%s\n", what);
    failures += !right;
}

static void compare_layouts(void) {
    for (int i = 0; i < layout_count; i++) {
        const layout_entry *then = &layout_then[i], *now = &layout_now[i];
        int same = now->value == then->value || (then->may_grow && now->value > then->value);
        if (strcmp(then->name, now->name) || !same)
            printf("%s was %zu, %s is %zu\n", then->name, then->value, now->name, now->value);
        failures += !same;
    }
}

static void use_level_1(void) {
    const float x[] = {1, 3, 3, 1}, weight[] = {2, 4}, bias[] = {10, 20};
    float y[4], mean[2], rstd[2], dx[4], dweight[2], dbias[2];
    expect(!lnorm_layer_norm_f32(y, mean, rstd, x, weight, bias, 2, 2, 0), "lnorm_layer_norm_f32 failed");
    expect(y[0] == 8 && y[1] == 24 && y[2] == 12 && y[3] == 16, "lnorm_layer_norm_f32: y");
    expect(mean[0] == 2 && rstd[1] == 1, "lnorm_layer_norm_f32: statistics");
    expect(!lnorm_layer_norm_backward_f32(dx, dweight, dbias, x, x, weight, 2, 2, 0, NULL, 0), "backward failed");
    expect(dweight[0] == 2 && dweight[1] == 2 && dbias[0] == 4 && dbias[1] == 4, "backward: dweight, dbias");
}

static void use_a_plan(void) {
    const int64_t shape[] = {2, 2}, axes[] = {0};
    const double x[] = {1, 3, 3, 1};
    double y[4];
    unsigned char workspace[4096];
    const lnorm_tensor in = lnorm_dense(x, LNORM_F64, 2, shape), out = lnorm_dense(y, LNORM_F64, 2, shape);
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    struct {
        lnorm_plan plan;
        unsigned char after[64]; /* a plan that has grown would write here */
    } kept;
    memset(&kept, 0x5A, sizeof kept);
    op.eps = 0;
    op.axes = axes;
    op.axes_count = 1;
    io.x = &in;
    io.y = &out;
    expect(!lnorm_plan_init(&kept.plan, &op, &io, &error), "lnorm_plan_init failed");
    expect(lnorm_plan_workspace(&kept.plan) <= sizeof workspace, "a workspace of more than 4096 bytes");
    io.workspace = workspace;
    io.workspace_size = sizeof workspace;
    expect(!lnorm_execute(&kept.plan, &io, NULL), "lnorm_execute failed");
    expect(y[0] == -1 && y[1] == 1 && y[2] == 1 && y[3] == -1, "lnorm_execute: y");
    for (size_t i = 0; i < sizeof kept.after; i++)
        expect(kept.after[i] == 0x5A, "the library writes past an lnorm_plan");
    op.groups = -1;
    op.kind = LNORM_GROUP_NORM;
    expect(lnorm_run(&op, &io, NULL, &error) == LNORM_INVALID_ARGUMENT && error.message[0], "a refusal");
}

static void use_a_layer(void) {
    const int64_t shape[] = {3, 2};
    const float x[] = {1, 3, 3, 1, -3, -1};
    float y[6];
    const lnorm_tensor in = lnorm_dense(x, LNORM_F32, 2, shape), out = lnorm_dense(y, LNORM_F32, 2, shape);
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    config.normalized_size = 2;
    config.eps = 0;
    lnorm_layer *layer = lnorm_layer_create(&config, NULL);
    expect(layer != NULL, "lnorm_layer_create failed");
    expect(layer && !lnorm_layer_forward(layer, &out, &in, NULL), "lnorm_layer_forward failed");
    expect(y[0] == -1 && y[1] == 1 && y[4] == -1 && y[5] == 1, "lnorm_layer_forward: y");
    expect(layer && !lnorm_layer_backward(layer, &out, &in, &in, NULL), "lnorm_layer_backward failed");
    expect(layer && ((float *)lnorm_layer_bias_grad(layer)->data)[1] == 3, "lnorm_layer_backward: dbias");
    lnorm_layer_destroy(layer);
}

int main(void) {
    compare_layouts();
    use_level_1();
    use_a_plan();
    use_a_layer();
    return failures != 0;
}
