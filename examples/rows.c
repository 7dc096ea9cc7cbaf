/* Contiguous rows of floats: layer norm, RMS norm, and the gradients of a layer norm. */
#include "lnorm.h"

#include <stdio.h>

enum { ROWS = 2, COLS = 4 };

static void print_rows(const char *name, const float *value, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        printf("%-12s", r == 0 ? name : "");
        for (int64_t c = 0; c < cols; c++)
            printf(" %10.6f", (double)value[r * cols + c]);
        printf("\n");
    }
}

static int failed(const char *what, lnorm_status status) {
    if (status != LNORM_OK)
        fprintf(stderr, "%s: %s\n", what, lnorm_status_string(status));
    return status != LNORM_OK;
}

int main(void) {
    const float x[ROWS * COLS] = {1.0f, 2.0f, 3.0f, 4.0f, -1.0f, 0.0f, 1.0f, 8.0f};
    const float weight[COLS] = {1.0f, 1.0f, 2.0f, 2.0f}, bias[COLS] = {0.0f, 0.5f, 0.0f, 0.5f};
    float y[ROWS * COLS];

    if (failed("layer norm", lnorm_layer_norm_f32(y, NULL, NULL, x, weight, bias, ROWS, COLS, 1e-5))) /* that is all */
        return 1;
    print_rows("layer norm", y, ROWS, COLS);

    if (failed("RMS norm", lnorm_rms_norm_f32(y, NULL, x, weight, ROWS, COLS, LNORM_EPS_DEFAULT)))
        return 1;
    print_rows("RMS norm", y, ROWS, COLS);

    /* The gradients: nothing was saved by the forward pass. The workspace makes large ones faster; NULL, 0 will do. */
    const float dy[ROWS * COLS] = {1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f, 0.0f, -1.0f};
    float dx[ROWS * COLS], dweight[COLS], dbias[COLS];
    if (failed("backward",
               lnorm_layer_norm_backward_f32(dx, dweight, dbias, dy, x, weight, ROWS, COLS, 1e-5, NULL, 0)))
        return 1;
    print_rows("dx", dx, ROWS, COLS);
    print_rows("dweight", dweight, 1, COLS);
    print_rows("dbias", dbias, 1, COLS);
    return 0;
}
