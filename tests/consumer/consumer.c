/* A user's C program: one call of each level. Prints "lnorm VERSION"; any wrong result is a failure. */
#include <lnorm.h>
#include <stdio.h>
#include <string.h>

static const float x[2][3] = {{1, 2, 3}, {5, 5, 5}};
static const float expected[2][3] = {{-1, 0, 1}, {0, 0, 0}}; /* times 1/sqrt(2/3), with eps = 0 */

static int wrong(float y[2][3]) {
    for (int row = 0; row < 2; row++)
        for (int col = 0; col < 3; col++)
            if (y[row][col] != expected[row][col] * 1.22474487f)
                return 1;
    return 0;
}

static int level1(float y[2][3]) {
    return lnorm_layer_norm_f32(y[0], NULL, NULL, x[0], NULL, NULL, 2, 3, 0.0) != LNORM_OK || wrong(y);
}

static int level2(float y[2][3]) {
    const int64_t shape[] = {2, 3};
    lnorm_tensor input = lnorm_dense(x, LNORM_F32, 2, shape), output = lnorm_dense(y, LNORM_F32, 2, shape);
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    op.eps = 0.0;
    io.x = &input;
    io.y = &output;
    return lnorm_run(&op, &io, NULL, &error) != LNORM_OK || wrong(y);
}

static int level3(float y[2][3]) {
    const int64_t shape[] = {2, 3};
    lnorm_tensor input = lnorm_dense(x, LNORM_F32, 2, shape), output = lnorm_dense(y, LNORM_F32, 2, shape);
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    lnorm_layer *layer;
    int failed;
    config.normalized_size = 3;
    config.eps = 0.0;
    layer = lnorm_layer_create(&config, NULL);
    failed = layer == NULL || lnorm_layer_forward(layer, &output, &input, NULL) != LNORM_OK || wrong(y);
    lnorm_layer_destroy(layer);
    return failed;
}

int main(void) {
    float y[3][2][3];
    if (strcmp(lnorm_version(), LNORM_VERSION_STRING) != 0 || level1(y[0]) || level2(y[1]) || level3(y[2])) {
        fprintf(stderr, "wrong result\n");
        return 1;
    }
    printf("lnorm %s\n", lnorm_version());
    return 0;
}
