/* Tensors that lnorm_plan_init refuses: shapes, element types, devices, sizes, strides; and forms that it accepts. */
#include "refusal.h"

#include <stdio.h>

/* ---- shapes ---- */

static void test_shape_of_x(void **state) {
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    refused_shape(&s, LNORM_Y, SHAPE(4, 3, 2), MISMATCH, "y: expected the shape of x, [4, 2, 3], got [4, 3, 2]");
    refused_shape(&s, LNORM_Y, SHAPE(8, 3), MISMATCH, "y: expected the shape of x, [4, 2, 3], got [8, 3]");
    scene_free(&s);
    begin(&s, LNORM_RMS_NORM, LNORM_DOUBLE_BACKWARD, LNORM_COMPUTED);
    refused_shape(&s, LNORM_DY, SHAPE(4, 2, 1), MISMATCH, "dy: expected the shape of x, [4, 2, 3], got [4, 2, 1]");
    refused_shape(&s, LNORM_DX, SHAPE(3), MISMATCH, "dx: expected the shape of x, [4, 2, 3], got [3]");
    refused_shape(&s, LNORM_V, SHAPE(24), MISMATCH, "v: expected the shape of x, [4, 2, 3], got [24]");
    refused_shape(&s, LNORM_DDY, 0, NULL, MISMATCH, "ddy: expected the shape of x, [4, 2, 3], got []");
    scene_free(&s);
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD_MODE, LNORM_COMPUTED);
    refused_shape(&s, LNORM_X_TANGENT, SHAPE(1, 2, 3), MISMATCH,
                  "x_tangent: expected the shape of x, [4, 2, 3], got [1, 2, 3]");
    refused_shape(&s, LNORM_Y_TANGENT, SHAPE(4, 2, 4), MISMATCH,
                  "y_tangent: expected the shape of x, [4, 2, 3], got [4, 2, 4]");
    scene_free(&s);
}

static void test_parameters_of_normalized_shape(void **state) {
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    refused_shape(&s, LNORM_WEIGHT, SHAPE(2), MISMATCH,
                  "Expected weight to be of same shape as normalized_shape, but got weight of shape [2] and "
                  "normalized_shape = [3]");
    refused_shape(&s, LNORM_BIAS, SHAPE(1, 3), MISMATCH,
                  "Expected bias to be of same shape as normalized_shape, but got bias of shape [1, 3] and "
                  "normalized_shape = [3]");
    scene_free(&s);
    begin(&s, LNORM_LAYER_NORM, LNORM_BACKWARD, LNORM_COMPUTED);
    refused_shape(&s, LNORM_DWEIGHT, 0, NULL, MISMATCH,
                  "Expected dweight to be of same shape as normalized_shape, but got dweight of shape [] and "
                  "normalized_shape = [3]");
    refused_shape(&s, LNORM_DBIAS, SHAPE(4), MISMATCH,
                  "Expected dbias to be of same shape as normalized_shape, but got dbias of shape [4] and "
                  "normalized_shape = [3]");
    scene_free(&s);
}

static void test_parameters_of_axes(void **state) {
    scene s;
    lnorm_op op = LNORM_OP_INIT;
    int64_t axes[] = {-1, 0};
    (void)state;
    op.axes = axes;
    op.axes_count = 2;
    scene_make(&s, &op, SHAPE(4, 2, 3), all_f32, DENSE, 1);
    accepted(&s.op, &s.io);
    refused_shape(&s, LNORM_WEIGHT, SHAPE(3, 4), MISMATCH,
                  "Expected weight to have the extents of the normalised axes in ascending order, [4, 3], but got "
                  "[3, 4]");
    refused_shape(&s, LNORM_BIAS, SHAPE(12), MISMATCH,
                  "Expected bias to have the extents of the normalised axes in ascending order, [4, 3], but got [12]");
    scene_free(&s);
}

static void test_parameters_of_channels(void **state) {
    (void)state;
    for (int kind = LNORM_GROUP_NORM; kind <= LNORM_BATCH_NORM; kind++) {
        scene s;
        begin(&s, (lnorm_kind)kind, LNORM_FORWARD, LNORM_COMPUTED);
        refused_shape(&s, LNORM_WEIGHT, SHAPE(3), MISMATCH,
                      "Expected weight to be a vector of size equal to the number of channels in input, but got weight "
                      "of shape [3] and input of shape [4, 2, 3]");
        refused_shape(&s, LNORM_BIAS, SHAPE(2, 1), MISMATCH,
                      "Expected bias to be a vector of size equal to the number of channels in input, but got bias of "
                      "shape [2, 1] and input of shape [4, 2, 3]");
        scene_free(&s);
    }
}

static void test_parameters_that_broadcast(void **state) {
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_BACKWARD, LNORM_COMPUTED);
    s.op.affine_broadcast = 1;
    accepted(&s.op, &s.io); /* [3] for both */
    refused_shape(&s, LNORM_DWEIGHT, SHAPE(1, 3), MISMATCH, "dweight: expected the shape of weight, [3], got [1, 3]");
    refused_shape(&s, LNORM_WEIGHT, SHAPE(4, 3), MISMATCH,
                  "weight: expected a shape that broadcasts over x (aligned at the last axis, each extent 1 or x's), "
                  "got "
                  "[4, 3] for x of shape [4, 2, 3]");
    refused_shape(&s, LNORM_DBIAS, SHAPE(1, 4, 2, 3), MISMATCH,
                  "dbias: expected a shape that broadcasts over x (aligned at the last axis, each extent 1 or x's), "
                  "got "
                  "[1, 4, 2, 3] for x of shape [4, 2, 3]");
    const struct {
        int ndim;
        int64_t shape[3];
    } legal[] = {{0, {0}}, {1, {1}}, {2, {2, 1}}, {3, {4, 1, 3}}, {3, {4, 2, 3}}, {3, {1, 1, 1}}};
    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++) {
        lnorm_tensor weight = lnorm_dense(NULL, LNORM_F32, legal[i].ndim, legal[i].shape), bias = weight;
        lnorm_io io = s.io;
        io.weight = io.dweight = &weight;
        accepted(&s.op, &io);
        io = s.io;
        io.dbias = &bias; /* another shape than weight's */
        accepted(&s.op, &io);
    }
    scene_free(&s);
    begin(&s, LNORM_RMS_NORM, LNORM_FORWARD_MODE, LNORM_COMPUTED);
    s.op.affine_broadcast = 1;
    refused_shape(&s, LNORM_WEIGHT_TANGENT, SHAPE(2, 3), MISMATCH,
                  "weight_tangent: expected the shape of weight, [3], got [2, 3]");
    scene_free(&s);
}

/* ---- statistics ---- */

static void test_shapes_of_statistics(void **state) {
    scene s;
    lnorm_op op = LNORM_OP_INIT;
    int64_t middle = 1;
    (void)state;
    op.axes = &middle;
    op.axes_count = 1;
    scene_make(&s, &op, SHAPE(4, 2, 3), all_f32, DENSE, 1);
    accepted(&s.op, &s.io);
    refused_shape(&s, LNORM_MEAN, SHAPE(3, 4), MISMATCH,
                  "mean: expected one element for each of the 12 groups, shape [4, 3] (or [12]), got [3, 4]");
    refused_shape(&s, LNORM_RSTD, SHAPE(4, 2, 3), MISMATCH,
                  "rstd: expected one element for each of the 12 groups, shape [4, 3] (or [12]), got [4, 2, 3]");
    refused_shape(&s, LNORM_MEAN, SHAPE(4), MISMATCH,
                  "mean: expected one element for each of the 12 groups, shape [4, 3] (or [12]), got [4]");
    refused_shape(&s, LNORM_MEAN, 0, NULL, MISMATCH,
                  "mean: expected one element for each of the 12 groups, shape [4, 3] (or [12]), got []");
    refused_shape(&s, LNORM_RSTD, SHAPE(2, 6), MISMATCH,
                  "rstd: expected one element for each of the 12 groups, shape [4, 3] (or [12]), got [2, 6]");
    scene_free(&s);
}

/* Every accepted form holds the same numbers at the same logical places, as an output and as an input. */
static void check_form(scene *s, int ndim, const int64_t *shape, layout order) {
    scene back, own;
    box mean, rstd;
    box_make(&mean, LNORM_F32, ndim, shape, order);
    box_make(&rstd, LNORM_F32, ndim, shape, order);
    lnorm_io io = s->io;
    io.mean = &mean.tensor;
    io.rstd = &rstd.tensor;
    assert_int_equal(lnorm_run(&s->op, &io, NULL, NULL), LNORM_OK);
    for (int64_t i = 0; i < tensor_count(&mean.tensor); i++) {
        assert_true(tensor_get(&mean.tensor, i) == tensor_get(s->io.mean, i));
        assert_true(tensor_get(&rstd.tensor, i) == tensor_get(s->io.rstd, i));
    }
    lnorm_op op = s->op;
    op.pass = LNORM_BACKWARD;
    op.statistics = LNORM_SAVED;
    scene_make(&back, &op, s->io.x->ndim, s->io.x->shape, all_f32, DENSE, 2);
    scene_make(&own, &op, s->io.x->ndim, s->io.x->shape, all_f32, DENSE, 2);
    back.io.mean = &mean.tensor;
    back.io.rstd = &rstd.tensor;
    own.io.mean = s->io.mean;
    own.io.rstd = s->io.rstd;
    scene_run(&back);
    scene_run(&own);
    assert_same_outputs(&back, &own);
    scene_free(&back);
    scene_free(&own);
    box_free(&mean);
    box_free(&rstd);
}

static void test_forms_of_statistics(void **state) {
    const struct {
        lnorm_kind kind;
        int ndim;
        int64_t shape[5];
    } forms[] = {{LNORM_LAYER_NORM, 2, {4, 3}},        {LNORM_LAYER_NORM, 3, {4, 1, 3}},
                 {LNORM_LAYER_NORM, 1, {12}},          {LNORM_LAYER_NORM, 5, {1, 4, 1, 3, 1}},
                 {LNORM_GROUP_NORM, 2, {4, 2}},        {LNORM_GROUP_NORM, 3, {4, 2, 1}},
                 {LNORM_GROUP_NORM, 1, {8}},           {LNORM_INSTANCE_NORM, 2, {4, 4}},
                 {LNORM_INSTANCE_NORM, 1, {16}},       {LNORM_BATCH_NORM, 1, {4}},
                 {LNORM_BATCH_NORM, 3, {1, 4, 1}}};
    int64_t middle = 1, layer_x[] = {4, 5, 3}, other_x[] = {4, 4, 3};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        scene s;
        lnorm_op op = LNORM_OP_INIT;
        op.kind = forms[i].kind;
        op.groups = 2;
        if (op.kind == LNORM_LAYER_NORM) {
            op.axes = &middle;
            op.axes_count = 1;
        }
        scene_make(&s, &op, 3, op.kind == LNORM_LAYER_NORM ? layer_x : other_x, all_f32, DENSE, 1);
        scene_run(&s);
        for (int order = DENSE; order <= NEGATIVE; order++)
            check_form(&s, forms[i].ndim, forms[i].shape, (layout)order);
        scene_free(&s);
    }
}

static void refused_without(const scene *s, int operand, const char *message) {
    lnorm_io io = s->io;
    *scene_slot(&io, operand) = NULL;
    refused(s, &s->op, &io, INVALID, message);
}

static void test_given_statistics(void **state) {
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_BACKWARD, LNORM_SAVED);
    refused_without(&s, LNORM_MEAN, "mean: expected a tensor (op.statistics says that it is given), got NULL");
    refused_without(&s, LNORM_RSTD, "rstd: expected a tensor (op.statistics says that it is given), got NULL");
    scene_free(&s);
    begin(&s, LNORM_BATCH_NORM, LNORM_FORWARD, LNORM_CONSTANT);
    refused_without(&s, LNORM_MEAN, "mean: expected a tensor (op.statistics says that it is given), got NULL");
    refused_without(&s, LNORM_VARIANCE, "rstd, variance: expected one of them, got neither");
    lnorm_io io = s.io;
    io.rstd = io.variance;
    refused(&s, &s.op, &io, INVALID, "rstd, variance: expected one of them, got both");
    io.variance = NULL;
    accepted(&s.op, &io);
    scene_free(&s);
    begin(&s, LNORM_RMS_NORM, LNORM_BACKWARD, LNORM_SAVED); /* without a mean: accepted */
    refused_without(&s, LNORM_RSTD, "rstd: expected a tensor (op.statistics says that it is given), got NULL");
    scene_free(&s);
}

/* What a pass has no use for is not looked at. */
static void test_ignored_tensors(void **state) {
    const lnorm_tensor nonsense = {NULL, {9, 9}, -5, {77, 3, 0}, NULL, NULL, 1};
    (void)state;
    for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++) {
        scene s;
        begin(&s, LNORM_RMS_NORM, (lnorm_pass)pass, LNORM_COMPUTED);
        int ignored = 0;
        for (int i = 0; i < LNORM_OPERANDS; i++)
            if (!*scene_slot(&s.io, i) && i != LNORM_RUNNING_MEAN && i != LNORM_RUNNING_VAR && i != LNORM_BIAS &&
                i != LNORM_DBIAS && i != LNORM_BIAS_TANGENT) {
                *scene_slot(&s.io, i) = &nonsense;
                ignored++;
            }
        assert_true(ignored > 3);
        scene_run(&s);
        scene_free(&s);
    }
}

/* RMS norm has no mean to be given. */
static void test_ignored_mean(void **state) {
    const lnorm_tensor nonsense = {NULL, {9, 9}, -5, {77, 3, 0}, NULL, NULL, 1};
    (void)state;
    for (int statistics = LNORM_COMPUTED; statistics <= LNORM_CONSTANT; statistics++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++) {
            scene s;
            begin(&s, LNORM_RMS_NORM, (lnorm_pass)pass, (lnorm_statistics)statistics);
            s.io.mean = &nonsense;
            scene_run(&s);
            scene_free(&s);
        }
}

/* ---- element types, devices, forms ---- */

static void test_element_types(void **state) {
    const struct {
        lnorm_dtype dtype;
        const char *text;
    } types[] = {{{0, 64, 1}, "int64"},
                 {{1, 8, 1}, "uint8"},
                 {{2, 128, 1}, "float128"},
                 {{4, 32, 1}, "bfloat32"},
                 {{5, 64, 1}, "complex64"},
                 {{6, 8, 1}, "bool8"},
                 {{2, 32, 2}, "a type of code 2, 32 bits, 2 lanes"},
                 {{2, 32, 0}, "a type of code 2, 32 bits, 0 lanes"},
                 {{10, 8, 1}, "a type of code 10, 8 bits, 1 lanes"}}; /* float8_e4m3fn */
    char text[120];
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    for (int operand = LNORM_X; operand <= LNORM_RSTD; operand++)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            lnorm_tensor bad = s.at[operand].tensor;
            bad.dtype = types[i].dtype;
            snprintf(text, sizeof text, "%s: expected elements of float64, float32, float16 or bfloat16, got %s",
                     lnorm_operand_name((enum lnorm_operand)operand), types[i].text);
            refused_tensor(&s, operand, bad, LNORM_UNSUPPORTED_DTYPE, text);
        }
    scene_free(&s);
}

static void test_forms_of_tensors(void **state) {
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    lnorm_tensor bad = *s.io.x;
    bad.device.device_type = 2; /* CUDA */
    refused_tensor(&s, LNORM_X, bad, LNORM_UNSUPPORTED,
                   "x: expected a tensor on the CPU (device type 1), got device type 2");
    bad.device.device_type = 0; /* left zero */
    lnorm_io io = s.io;
    io.x = &bad;
    accepted(&s.op, &io);
    bad = *s.io.y;
    bad.device.device_type = -1;
    refused_tensor(&s, LNORM_Y, bad, LNORM_UNSUPPORTED,
                   "y: expected a tensor on the CPU (device type 1), got device type -1");
    bad = *s.io.x;
    bad.ndim = -1;
    refused_tensor(&s, LNORM_X, bad, INVALID, "x: expected 0 to 16 dimensions, got -1");
    bad.ndim = 17;
    refused_tensor(&s, LNORM_X, bad, INVALID, "x: expected 0 to 16 dimensions, got 17");
    bad = *s.io.weight;
    bad.shape = NULL;
    refused_tensor(&s, LNORM_WEIGHT, bad, INVALID, "weight: expected a shape of 1 extents, got NULL");
    refused_shape(&s, LNORM_Y, SHAPE(4, -2, 3), INVALID, "y: expected extents of at least 0, got shape [4, -2, 3]");
    refused_shape(&s, LNORM_X, SHAPE(INT64_MIN), INVALID,
                  "x: expected extents of at least 0, got shape [-9223372036854775808]");
    scene_free(&s);
}

/* ---- sizes near 2^63 ---- */

static void test_extents_near_the_limit(void **state) {
    const int64_t big = INT64_MAX, limit = INT64_MAX / 8; /* 2^60 - 1 */
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    refused_shape(&s, LNORM_X, SHAPE(big, big), INVALID,
                  "x: expected less than 2^63 bytes of elements, got shape [9223372036854775807, 9223372036854775807]");
    refused_shape(&s, LNORM_X, SHAPE(limit + 1, 1), INVALID,
                  "x: expected less than 2^63 bytes of elements, got shape [1152921504606846976, 1]");
    refused_shape(&s, LNORM_X, SHAPE((int64_t)1 << 32, (int64_t)1 << 32), INVALID,
                  "x: expected less than 2^63 bytes of elements, got shape [4294967296, 4294967296]"); /* wraps to 0 */
    refused_shape(&s, LNORM_X, SHAPE((int64_t)1 << 40, 0, (int64_t)1 << 40), INVALID,
                  "x: expected less than 2^63 bytes of elements, got shape [1099511627776, 0, 1099511627776]");
    refused_shape(&s, LNORM_MEAN, SHAPE(big, 4), INVALID,
                  "mean: expected less than 2^63 bytes of elements, got shape [9223372036854775807, 4]");
    scene_free(&s);

    lnorm_plan plan;
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    int64_t one = 1;
    lnorm_tensor x = lnorm_dense(NULL, LNORM_F64, SHAPE(limit, 1)), weight = lnorm_dense(NULL, LNORM_F64, 1, &one);
    io.x = io.dy = &x;
    io.dx = &x;
    io.dweight = &weight;
    op.pass = LNORM_BACKWARD;
    assert_int_equal(lnorm_plan_init(&plan, &op, &io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_groups(&plan), limit);
    assert_int_equal(lnorm_plan_group_size(&plan), 1);
    /* A record of 2^60 - 1 groups is more than there are addresses: no size that wrapped around. */
    assert_true(lnorm_plan_workspace(&plan) == 0 || lnorm_plan_workspace(&plan) > (size_t)limit);
}

static void refused_strides(const scene *s, int operand, int64_t row, int64_t middle, int64_t last,
                            const char *format) {
    char text[300];
    int64_t strides[] = {row, middle, last};
    lnorm_tensor bad = s->at[operand].tensor;
    bad.strides = strides;
    snprintf(text, sizeof text, format, (long long)row, (long long)middle, (long long)last);
    refused_tensor(s, operand, bad, INVALID, text);
}

static void test_strides_near_the_limit(void **state) {
    static const char format[] = "x: expected strides that stay within 2^63 bytes, got shape [4, 2, 3] with strides "
                                 "[%lld, %lld, %lld]";
    const int64_t half = (int64_t)1 << 60; /* in f32: 3*2^60*4 bytes are too many, 2^60*4 are not */
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    refused_strides(&s, LNORM_X, INT64_MAX, 3, 1, format);
    refused_strides(&s, LNORM_X, INT64_MIN, 3, 1, format);
    refused_strides(&s, LNORM_X, 6, INT64_MIN, 1, format);
    refused_strides(&s, LNORM_X, 6, 3, half, format);
    refused_strides(&s, LNORM_X, half, 3, 1, format);
    refused_strides(&s, LNORM_X, half / 2, half, 1, format); /* the sum, not one of them */
    refused_strides(&s, LNORM_X, 2 * half, 4 * half, 1, format); /* the sum in elements */
    refused_strides(&s, LNORM_X, -half, 3, 1, format);
    refused_strides(&s, LNORM_X, 0x5555555555555556, 3, 1, format); /* three times that wraps around to 2 */

    lnorm_tensor x = *s.io.x;
    lnorm_io io = s.io;
    io.x = &x;
    x.strides = (int64_t[]){6, half, 1};
    accepted(&s.op, &io);
    x.strides = (int64_t[]){half / 3, -half, 1}; /* 2^63 - 4 bytes, both ways together */
    accepted(&s.op, &io);
    scene_free(&s);
}

/* Where an axis has one element or none, its stride says nothing. */
static void test_strides_without_meaning(void **state) {
    const int64_t strides[] = {INT64_MIN, 1, INT64_MAX};
    (void)state;
    for (int64_t rows = 0; rows < 2; rows++) {
        scene s;
        lnorm_op op = LNORM_OP_INIT;
        int64_t middle = 1;
        op.axes = &middle;
        op.axes_count = 1;
        scene_make(&s, &op, SHAPE(rows, 5, 1), all_f32, DENSE, 1);
        lnorm_tensor x = *s.io.x, y = *s.io.y;
        box plain = s.at[LNORM_Y];
        x.strides = y.strides = strides;
        scene_run(&s);
        assert_true(rows == 0 || !box_untouched(&plain));
        memset(plain.memory, UNTOUCHED, plain.bytes);
        s.io.x = &x;
        s.io.y = &y;
        scene_run(&s);
        assert_true(rows == 0 || !box_untouched(&plain));
        scene_free(&s);
    }
}

/* ---- outputs whose elements share places ---- */

static void test_outputs_that_share_places(void **state) {
    static const char format[] = "y: expected strides that give each element of an output a place of its own, got "
                                 "shape "
                                 "[4, 2, 3] with strides [%lld, %lld, %lld]";
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    refused_strides(&s, LNORM_Y, 0, 3, 1, format);
    refused_strides(&s, LNORM_Y, 6, 3, 0, format);
    refused_strides(&s, LNORM_Y, 6, 2, 1, format);   /* rows of 3 every 2 */
    refused_strides(&s, LNORM_Y, 6, -2, 1, format);
    refused_strides(&s, LNORM_Y, 1, 1, 100, format);
    int64_t zero = 0;
    lnorm_tensor mean = lnorm_dense(s.io.mean->data, LNORM_F32, SHAPE(8));
    mean.strides = &zero;
    refused_tensor(&s, LNORM_MEAN, mean, INVALID,
                   "mean: expected strides that give each element of an output a place of its own, got shape [8] with "
                   "strides [0]");

    const int64_t legal[][3] = {{6, 3, 1}, {1, 4, 8}, {-6, 3, -1}, {100, 7, 2}, {7, 3, 1}};
    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++) {
        lnorm_tensor y = *s.io.y;
        lnorm_io io = s.io;
        y.strides = legal[i];
        io.y = &y;
        accepted(&s.op, &io);
    }
    lnorm_tensor x = *s.io.x; /* inputs may */
    lnorm_io io = s.io;
    x.strides = (int64_t[]){0, 2, 1};
    io.x = &x;
    accepted(&s.op, &io);
    scene_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape_of_x),
        cmocka_unit_test(test_parameters_of_normalized_shape),
        cmocka_unit_test(test_parameters_of_axes),
        cmocka_unit_test(test_parameters_of_channels),
        cmocka_unit_test(test_parameters_that_broadcast),
        cmocka_unit_test(test_shapes_of_statistics),
        cmocka_unit_test(test_forms_of_statistics),
        cmocka_unit_test(test_given_statistics),
        cmocka_unit_test(test_ignored_tensors),
        cmocka_unit_test(test_ignored_mean),
        cmocka_unit_test(test_element_types),
        cmocka_unit_test(test_forms_of_tensors),
        cmocka_unit_test(test_extents_near_the_limit),
        cmocka_unit_test(test_strides_near_the_limit),
        cmocka_unit_test(test_strides_without_meaning),
        cmocka_unit_test(test_outputs_that_share_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
