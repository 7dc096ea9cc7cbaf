/* A fixed set of calls whose instructions tests/instructions.sh counts, under callgrind. Each is made by a function of
 * its own, count_NAME, which that script tells callgrind to look at; everything else is not counted.
 *
 *     instructions            makes the calls
 *     instructions compiler   prints the compiler, such as gcc-12.2, and stops
 *
 * Status 77 where LNORM_ISA names an instruction set that this machine lacks. */
#include <lnorm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENTS = 1 << 16 };

/* Large enough for every call; f32 elements, or 16-bit ones in half of it. */
static float x[MAX_ELEMENTS], dy[MAX_ELEMENTS], y[MAX_ELEMENTS];
static float weight[MAX_ELEMENTS], bias[MAX_ELEMENTS], dweight[MAX_ELEMENTS], dbias[MAX_ELEMENTS];
static unsigned char workspace[8 << 20];

/* The call that is being made, and the first that failed. (The assignment also keeps compilers from making one function
 * of two that do the same.) */
static const char *volatile call;
static const char *failed;

static void check(lnorm_status status) {
    if (status && !failed)
        failed = call;
}

/* Numbers of about deviation 1 in either type: bf16 is the upper half of f32. Quarter steps are exact in both. */
static void fill(lnorm_dtype dtype) {
    unsigned state = 1;
    for (int i = 0; i < MAX_ELEMENTS; i++) {
        float *const arrays[4] = {x, dy, weight, bias};
        for (int a = 0; a < 4; a++) {
            state = state * 1103515245u + 12345u;
            float value = (float)((int)(state >> 16 & 15) - 7) / 4;
            unsigned bits;
            memcpy(&bits, &value, sizeof bits);
            if (dtype.bits == 32)
                arrays[a][i] = value;
            else
                ((uint16_t *)(void *)arrays[a])[i] = (uint16_t)(bits >> 16);
        }
    }
}

/* The count begins where such a function is entered: it must not be inlined. */
#if defined __GNUC__
#define COUNTED __attribute__((noinline))
#else
#define COUNTED
#endif

/* CALL(level 1 function suffix, dtype, rows, cols): what is counted at level 1. */
#define LEVEL1(CALL)                                                                                                  \
    CALL(f32, LNORM_F32, 1, 64)                                                                                       \
    CALL(f32, LNORM_F32, 1, 768)                                                                                      \
    CALL(f32, LNORM_F32, 16, 768)                                                                                     \
    CALL(f32, LNORM_F32, 64, 64)                                                                                      \
    CALL(f32, LNORM_F32, 512, 8)                                                                                      \
    CALL(f32, LNORM_F32, 1024, 3)                                                                                     \
    CALL(bf16, LNORM_BF16, 1, 64)                                                                                     \
    CALL(bf16, LNORM_BF16, 16, 768)

#define COUNT(name, expression)                                                                                       \
    static COUNTED void count_##name(void) {                                                                          \
        call = #name;                                                                                                 \
        check(expression);                                                                                            \
    }

#define DEFINE_LEVEL1(type, dtype, rows, cols)                                                                        \
    COUNT(layer_##type##_##rows##x##cols,                                                                             \
          lnorm_layer_norm_##type((void *)y, NULL, NULL, (void *)x, (void *)weight, (void *)bias, rows, cols, 1e-5))  \
    COUNT(rms_##type##_##rows##x##cols,                                                                               \
          lnorm_rms_norm_##type((void *)y, NULL, (void *)x, (void *)weight, rows, cols, 1e-5))                        \
    COUNT(backward_##type##_##rows##x##cols,                                                                          \
          lnorm_layer_norm_backward_##type((void *)y, (void *)dweight, (void *)dbias, (void *)dy, (void *)x,          \
                                           (void *)weight, rows, cols, 1e-5, workspace, sizeof workspace))
LEVEL1(DEFINE_LEVEL1)

#define RUN_LEVEL1(type, dtype, rows, cols)                                                                           \
    fill(dtype);                                                                                                      \
    count_layer_##type##_##rows##x##cols();                                                                           \
    count_rms_##type##_##rows##x##cols();                                                                             \
    count_backward_##type##_##rows##x##cols();

/* Level 2: making a plan and running it are counted apart. */
static lnorm_plan plan;
static lnorm_op op;
static lnorm_io io;

COUNT(plan_init_f32_1x64, lnorm_plan_init(&plan, &op, &io, NULL))
COUNT(execute_f32_1x64, lnorm_execute(&plan, &io, NULL))
COUNT(execute_columns_f32_64x48, lnorm_execute(&plan, &io, NULL))
COUNT(execute_group_f32_2x8x64, lnorm_execute(&plan, &io, NULL))
COUNT(execute_bf16_f32_16x768, lnorm_execute(&plan, &io, NULL))

static void make_plan(void) {
    call = "lnorm_plan_init";
    check(lnorm_plan_init(&plan, &op, &io, NULL));
}

/* A short row, columns, images, and bf16 with parameters of f32. */
static void run_level2(void) {
    static const int64_t short_row[2] = {1, 64}, columns[2] = {64, 48}, images[3] = {2, 8, 64}, mixed[2] = {16, 768};
    static const int64_t axis_0[1] = {0};
    lnorm_tensor tensors[4] = {lnorm_dense(x, LNORM_F32, 2, short_row), lnorm_dense(y, LNORM_F32, 2, short_row),
                               lnorm_dense(weight, LNORM_F32, 1, &short_row[1]),
                               lnorm_dense(bias, LNORM_F32, 1, &short_row[1])};
    op = (lnorm_op)LNORM_OP_INIT;
    io = (lnorm_io)LNORM_IO_INIT;
    io.x = &tensors[0];
    io.y = &tensors[1];
    io.weight = &tensors[2];
    io.bias = &tensors[3];
    fill(LNORM_F32);
    count_plan_init_f32_1x64();
    count_execute_f32_1x64();

    op.axes = axis_0;
    op.axes_count = 1;
    tensors[0].shape = tensors[1].shape = columns;
    tensors[2].shape = tensors[3].shape = &columns[0];
    make_plan();
    count_execute_columns_f32_64x48();

    op = (lnorm_op)LNORM_OP_INIT;
    op.kind = LNORM_GROUP_NORM;
    op.groups = 4;
    tensors[0].ndim = tensors[1].ndim = 3;
    tensors[0].shape = tensors[1].shape = images;
    tensors[2].shape = tensors[3].shape = &images[1];
    make_plan();
    count_execute_group_f32_2x8x64();

    op = (lnorm_op)LNORM_OP_INIT;
    fill(LNORM_BF16);
    tensors[0] = lnorm_dense(x, LNORM_BF16, 2, mixed);
    tensors[1] = lnorm_dense(y, LNORM_BF16, 2, mixed);
    memset(weight, 0, sizeof weight);
    memset(bias, 0, sizeof bias);
    tensors[2].shape = tensors[3].shape = &mixed[1];
    make_plan();
    count_execute_bf16_f32_16x768();
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "compiler")) {
#if defined __clang__
        printf("clang-%d.%d\n", __clang_major__, __clang_minor__);
#elif defined __GNUC__
        printf("gcc-%d.%d\n", __GNUC__, __GNUC_MINOR__);
#else
        puts("unknown");
#endif
        return 0;
    }
    if (!lnorm_isa())
        return 77;
    /* The first call chooses the kernels and loads what the dynamic linker loads late: not counted. */
    call = "the first call";
    fill(LNORM_F32);
    check(lnorm_layer_norm_f32(y, NULL, NULL, x, weight, bias, 4, 64, 1e-5));
    LEVEL1(RUN_LEVEL1)
    run_level2();
    if (failed)
        fprintf(stderr, "instructions: %s failed\n", failed);
    return failed ? 1 : 0;
}
