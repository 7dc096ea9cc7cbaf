/* Level 3: creation, defaults, forward and backward against level 2, accumulation, errors, and what happens without
 * memory. Linked with --wrap=malloc and --wrap=calloc: allocations of the library fail when this test says so. */
#include "refusal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- memory that runs out ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

/* Allocations until one fails, that one and all later ones; negative: none fails. */
static int allocations_left = -1, allocations;

static int allowed(void) {
    allocations++;
    if (allocations_left > 0)
        allocations_left--;
    else if (allocations_left == 0)
        return 0;
    return 1;
}

void *__wrap_malloc(size_t size) {
    return allowed() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size) {
    return allowed() ? __real_calloc(count, size) : NULL;
}

/* ---- helpers ---- */

static lnorm_layer *create(const lnorm_layer_config *config) {
    lnorm_error error = {sizeof error, LNORM_INVALID_ARGUMENT, "old text"};
    lnorm_layer *layer = lnorm_layer_create(config, &error);
    if (!layer)
        fail_msg("%s", error.message);
    assert_error(&error, LNORM_OK, "");
    return layer;
}

static void assert_filled(const lnorm_tensor *tensor, double value, int ndim, const int64_t *shape) {
    assert_non_null(tensor);
    assert_int_equal(tensor->ndim, ndim);
    assert_null(tensor->strides);
    assert_int_equal(tensor->device.device_type, 1);
    assert_int_equal(tensor->byte_offset, 0);
    assert_memory_equal(tensor->shape, shape, (size_t)ndim * sizeof *shape);
    for (int64_t i = 0; i < tensor_count(tensor); i++)
        assert_true(lnorm_bits_of_f64(tensor_get(tensor, i)) == lnorm_bits_of_f64(value));
}

static void copy_tensor(const lnorm_tensor *to, const lnorm_tensor *from) {
    for (int64_t i = 0; from && i < tensor_count(from); i++)
        tensor_set(to, i, tensor_get(from, i));
}

/* ---- creation ---- */

static void check_created(const lnorm_layer_config *config, int ndim, const int64_t *shape, int weight, int bias) {
    lnorm_layer *layer = create(config);
    assert_int_equal(lnorm_layer_weight(layer) != NULL, weight);
    assert_int_equal(lnorm_layer_weight_grad(layer) != NULL, weight);
    assert_int_equal(lnorm_layer_bias(layer) != NULL, bias);
    assert_int_equal(lnorm_layer_bias_grad(layer) != NULL, bias);
    if (weight) {
        assert_filled(lnorm_layer_weight(layer), 1, ndim, shape);
        assert_filled(lnorm_layer_weight_grad(layer), 0, ndim, shape);
        assert_int_equal(lnorm_layer_weight(layer)->dtype.code, config->dtype.code);
        assert_int_equal(lnorm_layer_weight(layer)->dtype.bits, config->dtype.bits);
    }
    if (bias) {
        assert_filled(lnorm_layer_bias(layer), 0, ndim, shape);
        assert_filled(lnorm_layer_bias_grad(layer), 0, ndim, shape);
    }
    lnorm_layer_destroy(layer);
}

static void test_create(void **state) {
    static const lnorm_dtype types[] = {{2, 64, 1}, {2, 32, 1}, {2, 16, 1}, {4, 16, 1}};
    int64_t shape[] = {2, 3}, five = 5, none = 0;
    (void)state;
    for (int t = 0; t < 4; t++) {
        lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
        config.dtype = types[t];
        config.normalized_size = 5;
        check_created(&config, 1, &five, 1, 1);
        config.normalized_shape = shape; /* comes before the int */
        config.normalized_ndim = 2;
        check_created(&config, 2, shape, 1, 1);
        config.bias = 0;
        check_created(&config, 2, shape, 1, 0);
        config.bias = 1;
        config.kind = LNORM_RMS_NORM;
        check_created(&config, 2, shape, 1, 0);
        config.elementwise_affine = 0;
        check_created(&config, 2, shape, 0, 0);
        config.kind = LNORM_LAYER_NORM;
        check_created(&config, 2, shape, 0, 0);
    }
    lnorm_layer_config empty = LNORM_LAYER_CONFIG_INIT;
    empty.normalized_size = 0;
    check_created(&empty, 1, &none, 1, 1);
    lnorm_layer_destroy(NULL);
}

/* The caller's shape and config may go away. */
static void test_shape_is_copied(void **state) {
    int64_t shape[] = {2, 3}, kept[] = {2, 3};
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    (void)state;
    config.normalized_shape = shape;
    config.normalized_ndim = 2;
    lnorm_layer *layer = create(&config);
    shape[0] = shape[1] = -1;
    memset(&config, 0xff, sizeof config);
    assert_filled(lnorm_layer_weight(layer), 1, 2, kept);
    lnorm_layer_destroy(layer);
}

static void not_created(const lnorm_layer_config *config, lnorm_status status, const char *message) {
    lnorm_error error = LNORM_ERROR_INIT;
    assert_null(lnorm_layer_create(config, NULL));
    assert_null(lnorm_layer_create(config, &error));
    assert_error(&error, status, message);
}

static void test_refused_configs(void **state) {
    lnorm_layer_config legal = LNORM_LAYER_CONFIG_INIT, config = legal;
    int64_t shape[] = {3, -2}, many[17] = {0};
    char text[120];
    (void)state;
    not_created(NULL, INVALID, "layer_config: expected a pointer, got NULL");
    not_created(&config, INVALID, "config: expected normalized_size or normalized_shape, got neither");
    legal.normalized_size = 0;
    config.size = 4;
    snprintf(text, sizeof text,
             "layer_config.size: expected sizeof(lnorm_layer_config), at least %zu, got 4 (start from its ..._INIT)",
             sizeof config);
    not_created(&config, INVALID, text);
    config = legal;
    config.kind = LNORM_GROUP_NORM;
    not_created(&config, LNORM_UNSUPPORTED, "config.kind: expected LNORM_LAYER_NORM or LNORM_RMS_NORM, got 2");
    config = legal;
    config.reserved = 3;
    not_created(&config, LNORM_UNSUPPORTED, "config.reserved: expected 0, got 3");
    config = legal;
    config.eps = -0.5;
    not_created(&config, INVALID,
                "config.eps: expected a finite number of at least 0, or LNORM_EPS_DEFAULT, got -0.5");
    config = legal;
    config.normalized_size = -7;
    not_created(&config, INVALID, "config.normalized_shape: expected extents of at least 0, got shape [-7]");
    config = legal;
    config.normalized_shape = shape;
    not_created(&config, INVALID,
                "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
                "got "
                "normalized_shape = []");
    config.normalized_ndim = 2;
    not_created(&config, INVALID, "config.normalized_shape: expected extents of at least 0, got shape [3, -2]");
    config.normalized_shape = many;
    config.normalized_ndim = 17;
    not_created(&config, INVALID, "config.normalized_shape: expected 0 to 16 dimensions, got 17");
    config = legal;
    config.dtype = (lnorm_dtype){0, 32, 1};
    not_created(&config, LNORM_UNSUPPORTED_DTYPE,
                "config.normalized_shape: expected elements of float64, float32, float16 or bfloat16, got int32");
    lnorm_executor executor = LNORM_EXECUTOR_INIT;
    config = legal;
    config.executor = &executor;
    not_created(&config, INVALID, "executor.parallel_for: expected a function, got NULL");
    config = legal;
    config.normalized_size = INT64_MAX / 8;
    not_created(&config, LNORM_OUT_OF_MEMORY,
                "lnorm_layer_create: no memory for parameters of shape [1152921504606846975]");
}

/* ---- forward and backward ---- */

typedef struct setting {
    lnorm_kind kind;
    int affine, bias;
    lnorm_dtype parameter, x;
    double eps;
} setting;

static const setting settings[] = {
    {LNORM_LAYER_NORM, 1, 1, {2, 32, 1}, {2, 32, 1}, LNORM_EPS_DEFAULT},
    {LNORM_LAYER_NORM, 1, 1, {4, 16, 1}, {2, 32, 1}, 1e-3},
    {LNORM_LAYER_NORM, 1, 0, {2, 32, 1}, {4, 16, 1}, LNORM_EPS_DEFAULT},
    {LNORM_LAYER_NORM, 0, 1, {2, 32, 1}, {2, 16, 1}, 0},
    {LNORM_LAYER_NORM, 1, 1, {2, 64, 1}, {2, 32, 1}, LNORM_EPS_DEFAULT},
    {LNORM_RMS_NORM, 1, 1, {2, 32, 1}, {2, 32, 1}, LNORM_EPS_DEFAULT},
    {LNORM_RMS_NORM, 1, 1, {2, 32, 1}, {2, 64, 1}, LNORM_EPS_DEFAULT},
    {LNORM_RMS_NORM, 0, 1, {2, 16, 1}, {4, 16, 1}, LNORM_EPS_DEFAULT}};
enum { SETTINGS = sizeof settings / sizeof *settings };

static const int64_t x_shape[] = {7, 10, 4, 6};

static lnorm_layer *layer_of(const setting *s) {
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    config.kind = s->kind;
    config.elementwise_affine = s->affine;
    config.bias = s->bias;
    config.dtype = s->parameter;
    config.eps = s->eps;
    config.normalized_shape = x_shape + 2;
    config.normalized_ndim = 2;
    return create(&config);
}

/* The same at level 2, with parameters of its own that accumulate. */
static void level_2_scene(scene *s, const setting *from, const lnorm_layer *layer, lnorm_pass pass, layout order) {
    lnorm_op op = LNORM_OP_INIT;
    mix types = {from->x, from->parameter, {2, 32, 1}};
    op.kind = from->kind;
    op.pass = pass;
    op.eps = from->eps;
    op.normalized_shape = x_shape + 2;
    op.normalized_ndim = 2;
    op.accumulate = 1;
    scene_make(s, &op, 4, x_shape, types, order, 3);
    s->io.mean = s->io.rstd = NULL;
    s->written[LNORM_MEAN] = s->written[LNORM_RSTD] = 0;
    if (!lnorm_layer_weight(layer))
        s->io.weight = s->io.dweight = NULL;
    if (!lnorm_layer_bias(layer))
        s->io.bias = s->io.dbias = NULL;
    if (s->io.weight)
        copy_tensor(lnorm_layer_weight(layer), s->io.weight);
    if (s->io.bias)
        copy_tensor(lnorm_layer_bias(layer), s->io.bias);
}

static void test_forward(void **state) {
    (void)state;
    for (int i = 0; i < SETTINGS; i++)
        for (int order = DENSE; order <= NEGATIVE; order++) {
            lnorm_error error = LNORM_ERROR_INIT;
            lnorm_layer *layer = layer_of(&settings[i]);
            scene s;
            box y;
            level_2_scene(&s, &settings[i], layer, LNORM_FORWARD, (layout)order);
            box_make(&y, settings[i].x, 4, x_shape, PADDED);
            scene_run(&s);
            assert_int_equal(lnorm_layer_forward(layer, &y.tensor, s.io.x, &error), LNORM_OK);
            assert_error(&error, LNORM_OK, "");
            assert_true(tensor_same(&y.tensor, s.io.y));
            assert_int_equal(lnorm_layer_forward(layer, s.io.x, s.io.x, NULL), LNORM_OK); /* in place */
            assert_true(tensor_same(s.io.x, s.io.y));
            lnorm_layer_destroy(layer);
            scene_free(&s);
            box_free(&y);
        }
}

static void assert_gradients(const lnorm_layer *layer, const scene *s) {
    if (s->io.dweight)
        assert_true(tensor_same(lnorm_layer_weight_grad(layer), s->io.dweight));
    if (s->io.dbias)
        assert_true(tensor_same(lnorm_layer_bias_grad(layer), s->io.dbias));
}

static void zero(const lnorm_tensor *tensor) {
    for (int64_t i = 0; tensor && i < tensor_count(tensor); i++)
        tensor_set(tensor, i, 0);
}

/* `memory` 0: no workspace can be had. */
static void check_backward(const setting *from, int memory) {
    lnorm_layer *layer = layer_of(from);
    scene s;
    box dx;
    level_2_scene(&s, from, layer, LNORM_BACKWARD, DENSE);
    box_make(&dx, from->x, 4, x_shape, TRANSPOSED);
    zero(s.io.dweight);
    zero(s.io.dbias);
    for (int pass = 0; pass < 3; pass++) { /* accumulates, and starts again after zero_grad */
        if (pass == 2) {
            lnorm_layer_zero_grad(layer);
            zero(s.io.dweight);
            zero(s.io.dbias);
        }
        scene_run(&s);
        allocations_left = memory ? -1 : 0;
        lnorm_status status = lnorm_layer_backward(layer, pass == 1 ? NULL : &dx.tensor, s.io.dy, s.io.x, NULL);
        allocations_left = -1;
        assert_int_equal(status, LNORM_OK);
        assert_gradients(layer, &s);
        assert_true(tensor_same(&dx.tensor, s.io.dx));
    }
    scene_run(&s);
    assert_int_equal(lnorm_layer_backward(layer, s.io.dy, s.io.dy, s.io.x, NULL), LNORM_OK); /* in place */
    assert_true(tensor_same(s.io.dy, s.io.dx));
    assert_gradients(layer, &s);
    lnorm_layer_destroy(layer);
    scene_free(&s);
    box_free(&dx);
}

static void test_backward(void **state) {
    (void)state;
    for (int i = 0; i < SETTINGS; i++)
        check_backward(&settings[i], 1);
}

/* The workspace is asked for once and kept; where there was no memory, it is asked for again. */
static void test_workspace_is_kept(void **state) {
    lnorm_layer *layer = layer_of(&settings[0]);
    scene s;
    (void)state;
    level_2_scene(&s, &settings[0], layer, LNORM_BACKWARD, DENSE);
    for (int i = 0; i < 5; i++) {
        allocations = 0;
        allocations_left = i < 2 ? 0 : -1;
        lnorm_status status = lnorm_layer_backward(layer, s.io.dx, s.io.dy, s.io.x, NULL);
        allocations_left = -1;
        assert_int_equal(status, LNORM_OK);
        assert_int_equal(allocations, i < 3);
    }
    lnorm_layer_destroy(layer);
    scene_free(&s);
}

static void test_reset_parameters(void **state) {
    lnorm_layer *layer = layer_of(&settings[0]);
    (void)state;
    tensor_set(lnorm_layer_weight(layer), 3, 9);
    tensor_set(lnorm_layer_bias(layer), 3, 9);
    tensor_set(lnorm_layer_weight_grad(layer), 3, 9);
    tensor_set(lnorm_layer_bias_grad(layer), 3, 9);
    lnorm_layer_reset_parameters(layer);
    assert_filled(lnorm_layer_weight(layer), 1, 2, x_shape + 2);
    assert_filled(lnorm_layer_bias(layer), 0, 2, x_shape + 2);
    assert_true(tensor_get(lnorm_layer_weight_grad(layer), 3) == 9);
    assert_true(tensor_get(lnorm_layer_bias_grad(layer), 3) == 9);
    lnorm_layer_zero_grad(layer);
    assert_filled(lnorm_layer_weight_grad(layer), 0, 2, x_shape + 2);
    assert_filled(lnorm_layer_bias_grad(layer), 0, 2, x_shape + 2);
    lnorm_layer_destroy(layer);
}

/* An executor of the config gets the tasks. */
static void count_and_run(void *context, int64_t count, void (*task)(void *argument, int64_t index), void *argument) {
    *(int64_t *)context += count;
    for (int64_t i = count; i-- > 0;)
        task(argument, i);
}

static void test_executor(void **state) {
    const int64_t shape[] = {600, 128};
    int64_t tasks = 0;
    lnorm_executor executor = LNORM_EXECUTOR_INIT;
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    box x, plain, y;
    (void)state;
    executor.context = &tasks;
    executor.parallel_for = count_and_run;
    config.normalized_size = 128;
    lnorm_layer *alone = create(&config);
    config.executor = &executor;
    lnorm_layer *layer = create(&config);
    box_make(&x, LNORM_F32, 2, shape, DENSE);
    box_make(&plain, LNORM_F32, 2, shape, DENSE);
    box_make(&y, LNORM_F32, 2, shape, DENSE);
    box_random(&x, 1, -1, 2);
    assert_int_equal(lnorm_layer_forward(alone, &plain.tensor, &x.tensor, NULL), LNORM_OK);
    assert_int_equal(tasks, 0);
    assert_int_equal(lnorm_layer_forward(layer, &y.tensor, &x.tensor, NULL), LNORM_OK);
    assert_true(tasks > 1);
    assert_true(tensor_same(&y.tensor, &plain.tensor));
    tasks = 0;
    assert_int_equal(lnorm_layer_backward(layer, &y.tensor, &x.tensor, &x.tensor, NULL), LNORM_OK);
    assert_int_equal(lnorm_layer_backward(alone, &plain.tensor, &x.tensor, &x.tensor, NULL), LNORM_OK);
    assert_true(tasks > 1);
    assert_true(tensor_same(&y.tensor, &plain.tensor));
    assert_true(tensor_same(lnorm_layer_weight_grad(layer), lnorm_layer_weight_grad(alone)));
    lnorm_layer_destroy(layer);
    lnorm_layer_destroy(alone);
    box_free(&x);
    box_free(&plain);
    box_free(&y);
}

/* ---- errors ---- */

static void refused_run(lnorm_layer *layer, const lnorm_tensor *y, const lnorm_tensor *x, lnorm_status status,
                        const char *message) {
    lnorm_error error = LNORM_ERROR_INIT;
    assert_int_equal(lnorm_layer_forward(layer, y, x, NULL), status);
    assert_int_equal(lnorm_layer_forward(layer, y, x, &error), status);
    assert_error(&error, status, message);
}

static void test_errors(void **state) {
    const int64_t shape[] = {4, 2, 3};
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    box x, y;
    (void)state;
    box_make(&x, LNORM_F32, 3, shape, DENSE);
    box_make(&y, LNORM_F32, 3, shape, DENSE);
    config.normalized_size = 2;
    lnorm_layer *layer = create(&config);
    const char *mismatch =
        "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[4, 2, 3]";
    refused_run(layer, &y.tensor, &x.tensor, MISMATCH, mismatch);
    assert_int_equal(lnorm_layer_backward(layer, &y.tensor, &x.tensor, &x.tensor, &error), MISMATCH);
    assert_error(&error, MISMATCH, mismatch);
    refused_run(layer, &y.tensor, NULL, INVALID, "x: expected a tensor (the input), got NULL");
    refused_run(layer, NULL, &x.tensor, INVALID, "y: expected a tensor (the output), got NULL");
    refused_run(NULL, &y.tensor, &x.tensor, INVALID, "layer: expected what lnorm_layer_create gave, got NULL");
    assert_int_equal(lnorm_layer_backward(NULL, NULL, &x.tensor, &x.tensor, &error), INVALID);
    assert_error(&error, INVALID, "layer: expected what lnorm_layer_create gave, got NULL");
    assert_int_equal(lnorm_layer_backward(layer, NULL, NULL, &x.tensor, &error), INVALID);
    assert_error(&error, INVALID, "dy: expected a tensor (the gradient by y), got NULL");
    lnorm_layer_destroy(layer);

    config.normalized_size = 3;
    layer = create(&config);
    lnorm_tensor integers = x.tensor, shifted = x.tensor;
    integers.dtype = (lnorm_dtype){0, 32, 1};
    refused_run(layer, &y.tensor, &integers, LNORM_UNSUPPORTED_DTYPE,
                "x: expected elements of float64, float32, float16 or bfloat16, got int32");
    shifted.byte_offset = 4;
    refused_run(layer, &shifted, &x.tensor, INVALID,
                "y: expected memory of its own (or, in place, exactly that of x or dy), but it overlaps x");
    assert_int_equal(lnorm_layer_backward(layer, &shifted, &x.tensor, &x.tensor, &error), INVALID);
    assert_error(&error, INVALID,
                 "dx: expected memory of its own (or, in place, exactly that of x or dy), but it overlaps x");
    int64_t three = 3;
    assert_filled(lnorm_layer_weight_grad(layer), 0, 1, &three);
    assert_true(box_untouched(&y));
    lnorm_layer_destroy(layer);
    box_free(&x);
    box_free(&y);
}

/* Creation makes five allocations; each of them may fail. */
static void test_no_memory(void **state) {
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    (void)state;
    config.normalized_size = 12;
    allocations = 0;
    lnorm_layer_destroy(create(&config));
    assert_int_equal(allocations, 5);
    for (int left = 0; left < 5; left++) {
        lnorm_error error = LNORM_ERROR_INIT;
        allocations_left = left;
        lnorm_layer *layer = lnorm_layer_create(&config, &error);
        allocations_left = -1;
        assert_null(layer);
        assert_error(&error, LNORM_OUT_OF_MEMORY,
                     left ? "lnorm_layer_create: no memory for parameters of shape [12]"
                          : "lnorm_layer_create: no memory for a layer");
    }
    for (int i = 0; i < SETTINGS; i++)
        check_backward(&settings[i], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_shape_is_copied),
        cmocka_unit_test(test_refused_configs),
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_workspace_is_kept),
        cmocka_unit_test(test_reset_parameters),
        cmocka_unit_test(test_executor),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
