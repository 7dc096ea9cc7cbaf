/* Tensors: bf16 activations of shape [B, T, H] with f32 parameters, run in three ways that give the same bits: on this
 * thread, as numbered tasks in an engine that has threads of its own, and through an executor. */
#include "lnorm.h"

#include <stdio.h>
#include <string.h>

enum { B = 2, T = 64, H = 256 };

static uint16_t x_data[B * T * H], y_data[B * T * H], again_data[B * T * H];
static float weight_data[H], bias_data[H];

static int fail(const char *message) {
    fprintf(stderr, "%s\n", message);
    return 1;
}

/* The upper half of an f32, cut off: good enough to make up input. */
static uint16_t bf16_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void fill(void) {
    uint32_t state = 1;
    for (int i = 0; i < B * T * H; i++) {
        state = state * 1664525u + 1013904223u;
        x_data[i] = bf16_of((float)(state >> 8) * 0x1p-22f - 1.0f);
    }
    for (int i = 0; i < H; i++) {
        weight_data[i] = 1.0f + 0.001f * (float)i;
        bias_data[i] = 0.5f;
    }
}

/* Inside an engine with its own threads: I am number ith of nth. Between two phases stands the engine's barrier. */
static void engine_thread(const lnorm_plan *plan, const lnorm_io *io, int phase, int ith, int nth) {
    for (int64_t i = ith; i < lnorm_plan_tasks(plan, phase); i += nth)
        lnorm_plan_run(plan, io, phase, i);
}

/* An executor: OpenMP's threads where the compiler was given -fopenmp, else a loop. */
static void parallel_for(void *context, int64_t count, void (*task)(void *argument, int64_t index), void *argument) {
    (void)context;
#if defined _OPENMP
#pragma omp parallel for
#endif
    for (int64_t i = 0; i < count; i++)
        task(argument, i);
}

/* Are the results those of the first run? Clears them for the next. */
static int same_bits(void) {
    int same = memcmp(y_data, again_data, sizeof y_data) == 0;
    memset(again_data, 0, sizeof again_data);
    return same;
}

int main(void) {
    const int64_t shape[3] = {B, T, H}, row[1] = {H};
    lnorm_tensor x = lnorm_dense(x_data, LNORM_BF16, 3, shape);
    lnorm_tensor y = lnorm_dense(y_data, LNORM_BF16, 3, shape);
    lnorm_tensor again = lnorm_dense(again_data, LNORM_BF16, 3, shape);
    lnorm_tensor weight = lnorm_dense(weight_data, LNORM_F32, 1, row);
    lnorm_tensor bias = lnorm_dense(bias_data, LNORM_F32, 1, row);
    fill();

    lnorm_op op = LNORM_OP_INIT; /* layer norm over the last axis, eps 1e-5 */
    lnorm_io io = LNORM_IO_INIT;
    io.x = &x, io.y = &y, io.weight = &weight, io.bias = &bias;
    lnorm_plan plan;
    lnorm_error error = LNORM_ERROR_INIT;
    if (lnorm_plan_init(&plan, &op, &io, &error) != LNORM_OK)
        return fail(error.message);
    if (lnorm_execute(&plan, &io, NULL) != LNORM_OK) /* NULL: this thread */
        return fail("lnorm_execute failed");

    /* The plan may run again on other memory of the same description. Here the three threads take turns. */
    io.y = &again;
    if (lnorm_plan_check(&plan, &io, &error) != LNORM_OK)
        return fail(error.message);
    for (int phase = 0; phase < lnorm_plan_phases(&plan); phase++)
        for (int ith = 0; ith < 3; ith++)
            engine_thread(&plan, &io, phase, ith, 3);
    if (!same_bits())
        return fail("tasks gave other bits");

    lnorm_executor executor = LNORM_EXECUTOR_INIT;
    executor.parallel_for = parallel_for;
    if (lnorm_execute(&plan, &io, &executor) != LNORM_OK || !same_bits())
        return fail("the executor gave other bits");
    printf("bf16 [%d, %d, %d], f32 parameters: one thread, tasks and an executor gave the same bits\n", B, T, H);

    /* What does not fit is refused, with a message. */
    const int64_t wrong[1] = {H + 1};
    op.normalized_shape = wrong;
    op.normalized_ndim = 1;
    if (lnorm_plan_init(&plan, &op, &io, &error) != LNORM_SHAPE_MISMATCH)
        return fail("a wrong shape was accepted");
    printf("refused: %s\n", error.message);
    return 0;
}
