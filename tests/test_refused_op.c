/* Operations that lnorm_plan_init refuses, and structs of other sizes. Tensors: test_refused_tensors.c; pointers, which
 * lnorm_plan_check looks at: test_plan.c. */
#include "refusal.h"

#include <math.h>
#include <stdio.h>

/* ---- structs ---- */

static void test_null(void **state) {
    scene s;
    lnorm_plan plan;
    lnorm_error error = LNORM_ERROR_INIT;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_DOUBLE_BACKWARD, LNORM_COMPUTED);
    refused(&s, NULL, &s.io, INVALID, "op: expected a pointer, got NULL");
    assert_int_equal(lnorm_plan_init(&plan, &s.op, NULL, &error), INVALID);
    assert_error(&error, INVALID, "io: expected a pointer, got NULL");
    assert_int_equal(lnorm_plan_init(NULL, &s.op, &s.io, &error), INVALID);
    assert_error(&error, INVALID, "plan: expected a pointer, got NULL");
    assert_unusable(NULL, &s.io, INVALID);
    memset(&plan, 0, sizeof plan);
    assert_unusable(&plan, &s.io, INVALID);
    assert_int_equal(lnorm_plan_init(&plan, &s.op, &s.io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_check(&plan, NULL, &error), INVALID);
    assert_error(&error, INVALID, "io: expected a pointer, got NULL");
    assert_int_equal(lnorm_execute(&plan, NULL, NULL), INVALID);
    assert_int_equal(lnorm_plan_run(&plan, NULL, 0, 0), INVALID);

    lnorm_io io = s.io;
    io.x = NULL;
    refused(&s, &s.op, &io, INVALID, "x: expected a tensor (the input), got NULL");
    io = s.io;
    io.dy = NULL;
    refused(&s, &s.op, &io, INVALID, "dy: expected a tensor (the gradient by y), got NULL");
    io = s.io;
    io.v = NULL;
    refused(&s, &s.op, &io, INVALID, "v: expected a tensor (the factor of dx in sum(v*dx)), got NULL");
    scene_free(&s);
}

/* The same structs as a later version might have them. */
typedef struct later_op {
    lnorm_op known;
    uint64_t more;
} later_op;
typedef struct later_io {
    lnorm_io known;
    unsigned char more[24];
} later_io;

static void test_sizes_of_structs(void **state) {
    scene s;
    char text[200];
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    lnorm_op op = s.op;
    op.size = 8;
    snprintf(text, sizeof text, "op.size: expected sizeof(lnorm_op), at least %zu, got 8 (start from its ..._INIT)",
             sizeof op);
    refused_op(&s, op, INVALID, text);
    lnorm_io io = s.io;
    io.size = sizeof io - 1;
    snprintf(text, sizeof text, "io.size: expected sizeof(lnorm_io), at least %zu, got %zu (start from its ..._INIT)",
             sizeof io, sizeof io - 1);
    refused(&s, &s.op, &io, INVALID, text);

    later_op newer_op = {s.op, 0};
    later_io newer_io = {s.io, {0}};
    newer_op.known.size = sizeof newer_op;
    newer_io.known.size = sizeof newer_io;
    accepted(&newer_op.known, &newer_io.known);
    newer_op.more = (uint64_t)1 << 63;
    snprintf(text, sizeof text, "op: a member beyond byte %zu is set, which lnorm 0.1.0 does not know", sizeof op);
    refused(&s, &newer_op.known, &s.io, LNORM_UNSUPPORTED, text);
    newer_io.more[23] = 1;
    snprintf(text, sizeof text, "io: a member beyond byte %zu is set, which lnorm 0.1.0 does not know", sizeof io);
    refused(&s, &s.op, &newer_io.known, LNORM_UNSUPPORTED, text);
    scene_free(&s);
}

/* A user's lnorm_error of another size: as much as fits, terminated, nothing behind it. */
static void test_sizes_of_error(void **state) {
    struct {
        lnorm_error known;
        char more[8];
    } larger;
    const size_t room = 10, before = offsetof(lnorm_error, message);
    (void)state;
    memset(&larger, 'z', sizeof larger);
    larger.known.size = before + room;
    assert_int_equal(lnorm_run(NULL, NULL, NULL, &larger.known), INVALID);
    assert_int_equal(larger.known.status, INVALID);
    assert_string_equal(larger.known.message, "op: expec");
    assert_int_equal(larger.known.message[room], 'z');
    larger.known.size = sizeof larger;
    assert_int_equal(lnorm_run(NULL, NULL, NULL, &larger.known), INVALID);
    assert_string_equal(larger.known.message, "op: expected a pointer, got NULL");
    assert_int_equal(larger.more[0], 'z');
    memset(&larger, 'z', sizeof larger);
    larger.known.size = 0;
    assert_int_equal(lnorm_run(NULL, NULL, NULL, &larger.known), INVALID);
    assert_int_equal(larger.known.message[0], 'z');
}

/* ---- choices and numbers ---- */

static void test_choices(void **state) {
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    lnorm_op op = s.op;
    op.kind = (lnorm_kind)5;
    refused_op(&s, op, INVALID, "op.kind: expected 0 to 4, got 5");
    op = s.op;
    op.pass = (lnorm_pass)4;
    refused_op(&s, op, INVALID, "op.pass: expected 0 to 3, got 4");
    op = s.op;
    op.statistics = (lnorm_statistics)3;
    refused_op(&s, op, INVALID, "op.statistics: expected 0 to 2, got 3");
    op = s.op;
    op.arithmetic = (lnorm_arithmetic)2;
    refused_op(&s, op, INVALID, "op.arithmetic: expected 0 to 1, got 2");
    op = s.op;
    op.affine_broadcast = -1;
    refused_op(&s, op, INVALID, "op.affine_broadcast: expected 0 to 1, got -1");
    op = s.op;
    op.weight_offset = 2;
    refused_op(&s, op, INVALID, "op.weight_offset: expected 0 to 1, got 2");
    op = s.op;
    op.accumulate = 2;
    refused_op(&s, op, INVALID, "op.accumulate: expected 0 to 1, got 2");
    op = s.op;
    op.reserved = 1;
    refused_op(&s, op, LNORM_UNSUPPORTED, "op.reserved: expected 0, any other value is not in lnorm 0.1.0");
    scene_free(&s);
}

static void test_passes_of_kinds(void **state) {
    static const char *const names[] = {"group norm", "instance norm", "batch norm"};
    char text[100];
    (void)state;
    for (int kind = LNORM_GROUP_NORM; kind <= LNORM_BATCH_NORM; kind++) {
        scene s;
        begin(&s, (lnorm_kind)kind, LNORM_BACKWARD, LNORM_COMPUTED);
        lnorm_op op = s.op;
        op.pass = LNORM_DOUBLE_BACKWARD;
        snprintf(text, sizeof text, "op.pass: %s has no double backward in lnorm 0.1.0",
                 names[kind - LNORM_GROUP_NORM]);
        refused_op(&s, op, LNORM_UNSUPPORTED, text);
        op.pass = LNORM_FORWARD_MODE;
        snprintf(text, sizeof text, "op.pass: %s has no forward mode in lnorm 0.1.0", names[kind - LNORM_GROUP_NORM]);
        refused_op(&s, op, LNORM_UNSUPPORTED, text);
        scene_free(&s);
    }
}

static void test_eps(void **state) {
    static const double legal[] = {0.0, -0.0, 0x1p-1074, 1e-5, 0x1.fffffffffffffp1023, LNORM_EPS_DEFAULT};
    static const double illegal[] = {-1e-5, -0x1p-1074, -0x1.fffffffffffffp1023, (double)INFINITY, (double)-INFINITY};
    char text[200];
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    lnorm_op op = s.op;
    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++) {
        op.eps = legal[i];
        accepted(&op, &s.io);
    }
    for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++) {
        op.eps = illegal[i];
        snprintf(text, sizeof text, "op.eps: expected a finite number of at least 0, or LNORM_EPS_DEFAULT, got %g",
                 illegal[i]);
        refused_op(&s, op, INVALID, text);
    }
    op.eps = (double)NAN;
    snprintf(text, sizeof text, "op.eps: expected a finite number of at least 0, or LNORM_EPS_DEFAULT, got %g",
             (double)NAN);
    refused_op(&s, op, INVALID, text);
    scene_free(&s);
}

/* A caller that flushes subnormals or traps on them must not get another answer, nor a signal. */
static void test_eps_in_a_hostile_environment(void **state) {
    scene s;
    lnorm_plan plan;
    lnorm_status negative, nan, momentum;
    (void)state;
    begin(&s, LNORM_BATCH_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    lnorm_op tiny = s.op, not_a_number = s.op, no_momentum = s.op;
    tiny.eps = -0x1p-1074;
    not_a_number.eps = (double)NAN;
    no_momentum.momentum = (double)NAN;
    for (int traps = 0; traps < 2; traps++) {
        environment_set(0, !traps, traps);
        negative = lnorm_plan_init(&plan, &tiny, &s.io, NULL);
        nan = lnorm_plan_init(&plan, &not_a_number, &s.io, NULL);
        momentum = lnorm_plan_init(&plan, &no_momentum, &s.io, NULL);
        environment_reset();
        assert_int_equal(negative, INVALID);
        assert_int_equal(nan, INVALID);
        assert_int_equal(momentum, INVALID);
    }
    scene_free(&s);
}

static void test_running_statistics(void **state) {
    scene s, other;
    (void)state;
    begin(&s, LNORM_BATCH_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    lnorm_op op = s.op;
    op.batches = -1;
    refused_op(&s, op, INVALID, "op.batches: expected at least 0, got -1");
    op.batches = 0;
    op.momentum = 1.5;
    refused_op(&s, op, INVALID, "op.momentum: expected 0 to 1, got 1.5");
    op.momentum = -0.1;
    refused_op(&s, op, INVALID, "op.momentum: expected 0 to 1, got -0.1");
    op.batches = 1; /* momentum is not used then */
    accepted(&op, &s.io);
    op.batches = 0;
    op.momentum = 0;
    accepted(&op, &s.io);
    op.momentum = 1;
    accepted(&op, &s.io);
    op.momentum = 9;
    lnorm_io io = s.io; /* nor here */
    io.running_mean = io.running_var = NULL;
    accepted(&op, &io);
    refused_shape(&s, LNORM_RUNNING_VAR, SHAPE(3), MISMATCH,
                  "running_var: expected one element for each of the 2 groups, shape [2] (or [2]), got [3]");

    begin(&other, LNORM_GROUP_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    io = other.io;
    io.running_var = s.io.running_var;
    refused(&other, &other.op, &io, LNORM_UNSUPPORTED,
            "running_mean, running_var: group norm keeps no running statistics");
    scene_free(&other);
    scene_free(&s);
}

/* ---- axes ---- */

static void refused_normalized(const scene *s, int ndim, const int64_t *shape, lnorm_status status,
                               const char *message) {
    lnorm_op op = s->op;
    op.normalized_shape = shape;
    op.normalized_ndim = ndim;
    refused_op(s, op, status, message);
}

static void test_normalized_shape(void **state) {
    static const char empty[] = "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                                "element, but got normalized_shape = []";
    scene s;
    (void)state;
    begin(&s, LNORM_RMS_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    refused_normalized(&s, SHAPE(2), MISMATCH,
                       "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[4, 2, 3]");
    refused_normalized(&s, SHAPE(4, 3), MISMATCH,
                       "Given normalized_shape=[4, 3], expected input with shape [*, 4, 3], but got input of "
                       "size[4, 2, 3]");
    refused_normalized(&s, SHAPE(4, 2), MISMATCH,
                       "Given normalized_shape=[4, 2], expected input with shape [*, 4, 2], but got input of "
                       "size[4, 2, 3]");
    refused_normalized(&s, SHAPE(1, 4, 2, 3), MISMATCH,
                       "Given normalized_shape=[1, 4, 2, 3], expected input with shape [*, 1, 4, 2, 3], but got input "
                       "of size[4, 2, 3]");
    refused_normalized(&s, 0, (int64_t[]){3}, INVALID, empty);
    refused_normalized(&s, -1, (int64_t[]){3}, INVALID, empty);
    refused_shape(&s, LNORM_X, 0, NULL, MISMATCH, "x: expected at least 1 dimension to normalise over, got 0");

    lnorm_op op = s.op;
    int64_t shape = 2;
    lnorm_tensor scalar = lnorm_dense(s.io.x->data, LNORM_F32, 0, NULL);
    lnorm_io io = LNORM_IO_INIT;
    io.x = &scalar;
    op.normalized_shape = &shape;
    op.normalized_ndim = 1;
    refused(&s, &op, &io, MISMATCH,
            "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[]");

    op.normalized_shape = NULL; /* forgotten pointers */
    refused(&s, &op, &s.io, INVALID, "op.normalized_shape: expected a pointer to 1 extents, got NULL");
    op.normalized_ndim = 0;
    op.axes_count = 3;
    refused(&s, &op, &s.io, INVALID, "op.axes: expected a pointer to 3 axes, got NULL");
    scene_free(&s);
}

/* The longest message there is must arrive whole: 16 extents of 19 digits, three times, are more than 500 characters
 * and are cut at the end, 499 and the terminator. */
static void test_longest_message(void **state) {
    int64_t shape[LNORM_MAX_NDIM], other[LNORM_MAX_NDIM];
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    (void)state;
    for (int i = 0; i < LNORM_MAX_NDIM; i++) {
        shape[i] = i ? 1 : 0;
        other[i] = INT64_MIN;
    }
    lnorm_tensor x = lnorm_dense(NULL, LNORM_F32, LNORM_MAX_NDIM, shape);
    io.x = &x;
    op.normalized_shape = other;
    op.normalized_ndim = LNORM_MAX_NDIM;
    assert_int_equal(lnorm_run(&op, &io, NULL, &error), MISMATCH);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_memory_equal(error.message, "Given normalized_shape=[-9223372036854775808, ", 46);
}

static void refused_axes(const scene *s, int count, const int64_t *axes, const char *message) {
    lnorm_op op = s->op;
    op.axes = axes;
    op.axes_count = count;
    refused_op(s, op, INVALID, message);
}

static void test_axes(void **state) {
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    refused_axes(&s, SHAPE(0, 1, 0), "op.axes: expected each axis once, got 0 again");
    refused_axes(&s, SHAPE(2, -1), "op.axes: expected each axis once, got -1 again");
    refused_axes(&s, SHAPE(3), "op.axes: expected axes from -3 to 2, got 3");
    refused_axes(&s, SHAPE(1, -4), "op.axes: expected axes from -3 to 2, got -4");
    refused_axes(&s, SHAPE(INT64_MIN), "op.axes: expected axes from -3 to 2, got -9223372036854775808");
    refused_axes(&s, 0, (int64_t[]){1}, "op.axes: expected at least one axis, got 0");
    refused_axes(&s, -1, (int64_t[]){1}, "op.axes: expected at least one axis, got -1");
    lnorm_op op = s.op;
    int64_t last = 2, three = 3;
    op.axes = &last;
    op.axes_count = 1;
    accepted(&op, &s.io);
    op.normalized_shape = &three;
    op.normalized_ndim = 1;
    refused_op(&s, op, INVALID, "op.normalized_shape, op.axes: expected one of them, got both");
    scene_free(&s);
}

static void test_channels(void **state) {
    scene s;
    int64_t axis = 1;
    (void)state;
    begin(&s, LNORM_GROUP_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    lnorm_op op = s.op;
    op.groups = 0;
    refused_op(&s, op, INVALID, "Expected num groups to be greater than 0, got 0");
    op.groups = -2;
    refused_op(&s, op, INVALID, "Expected num groups to be greater than 0, got -2");
    op.groups = 3;
    refused_op(&s, op, INVALID,
               "Expected number of channels in input to be divisible by num_groups, but got input of shape [4, 2, 3] "
               "and num_groups=3");
    op = s.op;
    op.axes = &axis;
    op.axes_count = 1;
    refused_op(&s, op, INVALID, "op.axes: expected NULL, group norm has its own axes");
    op = s.op;
    op.normalized_shape = &axis;
    op.normalized_ndim = 1;
    refused_op(&s, op, INVALID, "op.normalized_shape: expected NULL, group norm has its own axes");
    refused_shape(&s, LNORM_X, SHAPE(24), MISMATCH,
                  "Expected at least 2 dimensions for input tensor ([N, C, *]) but received 1");

    lnorm_io io = LNORM_IO_INIT; /* no channels: any number of groups divides 0 */
    lnorm_tensor x = lnorm_dense(NULL, LNORM_F32, SHAPE(8, 0, 3));
    io.x = &x;
    op = s.op;
    op.groups = 5;
    accepted(&op, &io);
    op.groups = INT64_MAX;
    refused(&s, &op, &io, INVALID,
            "op.groups: expected less than 2^60 groups, got 9223372036854775807 for each of 8 samples");
    scene_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_sizes_of_structs),
        cmocka_unit_test(test_sizes_of_error),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_passes_of_kinds),
        cmocka_unit_test(test_eps),
        cmocka_unit_test(test_eps_in_a_hostile_environment),
        cmocka_unit_test(test_running_statistics),
        cmocka_unit_test(test_normalized_shape),
        cmocka_unit_test(test_longest_message),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
