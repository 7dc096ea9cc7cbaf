/* Level 1: every function against level 2, bit for bit, and what they refuse. */
#define _POSIX_C_SOURCE 200809L
#include "refusal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#if defined __unix__
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { TYPES = 4, SENTINEL = 12345 };

typedef struct call {
    void *y, *mean, *rstd, *dx, *dweight, *dbias;
    const void *x, *weight, *bias, *dy;
    int64_t rows, cols;
    double eps;
    void *workspace;
    size_t workspace_size;
} call;

typedef lnorm_status function(const call *c);

#define FUNCTIONS(name)                                                                                               \
    static lnorm_status layer_##name(const call *c) {                                                                 \
        return lnorm_layer_norm_##name(c->y, c->mean, c->rstd, c->x, c->weight, c->bias, c->rows, c->cols, c->eps);   \
    }                                                                                                                 \
    static lnorm_status rms_##name(const call *c) {                                                                   \
        return lnorm_rms_norm_##name(c->y, c->rstd, c->x, c->weight, c->rows, c->cols, c->eps);                       \
    }                                                                                                                 \
    static lnorm_status layer_backward_##name(const call *c) {                                                        \
        return lnorm_layer_norm_backward_##name(c->dx, c->dweight, c->dbias, c->dy, c->x, c->weight, c->rows,         \
                                                c->cols, c->eps, c->workspace, c->workspace_size);                    \
    }                                                                                                                 \
    static lnorm_status rms_backward_##name(const call *c) {                                                          \
        return lnorm_rms_norm_backward_##name(c->dx, c->dweight, c->dy, c->x, c->weight, c->rows, c->cols, c->eps,    \
                                              c->workspace, c->workspace_size);                                       \
    }
FUNCTIONS(f64)
FUNCTIONS(f32)
FUNCTIONS(f16)
FUNCTIONS(bf16)

/* [kind][backward][type] */
static function *const functions[2][2][TYPES] = {
    {{layer_f64, layer_f32, layer_f16, layer_bf16},
     {layer_backward_f64, layer_backward_f32, layer_backward_f16, layer_backward_bf16}},
    {{rms_f64, rms_f32, rms_f16, rms_bf16}, {rms_backward_f64, rms_backward_f32, rms_backward_f16, rms_backward_bf16}}};

static const mix types[TYPES] = {{{2, 64, 1}, {2, 64, 1}, {2, 64, 1}},
                                 {{2, 32, 1}, {2, 32, 1}, {2, 32, 1}},
                                 {{2, 16, 1}, {2, 16, 1}, {2, 32, 1}},
                                 {{4, 16, 1}, {4, 16, 1}, {2, 32, 1}}};

static void *data_of(const lnorm_tensor *tensor) {
    return tensor ? tensor->data : NULL;
}

/* The arrays that the scene's io has. */
static call call_of(const scene *s) {
    const lnorm_io *io = &s->io;
    call c = {.y = data_of(io->y), .mean = data_of(io->mean), .rstd = data_of(io->rstd), .dx = data_of(io->dx),
              .dweight = data_of(io->dweight), .dbias = data_of(io->dbias), .x = data_of(io->x),
              .weight = data_of(io->weight), .bias = data_of(io->bias), .dy = data_of(io->dy),
              .rows = io->x->shape[0], .cols = io->x->shape[1], .eps = s->op.eps};
    return c;
}

static void level1_scene(scene *s, int kind, int backward, int type, int64_t rows, int64_t cols, double eps) {
    lnorm_op op = LNORM_OP_INIT;
    op.kind = kind ? LNORM_RMS_NORM : LNORM_LAYER_NORM;
    op.pass = backward ? LNORM_BACKWARD : LNORM_FORWARD;
    op.eps = eps;
    scene_make(s, &op, SHAPE(rows, cols), types[type], DENSE, (uint64_t)(rows * 1000 + cols));
    if (kind) /* level 1 has no bias there */
        s->io.bias = s->io.dbias = NULL;
    s->written[LNORM_DBIAS] = (unsigned char)(backward && !kind);
}

/* ---- the same bits as level 2 ---- */

/* Leaves out the operands of `set`, which bit is which in the order of `list`. */
static void leave_out(scene *s, const int *list, int count, unsigned set) {
    for (int i = 0; i < count; i++)
        if (set >> i & 1) {
            *scene_slot(&s->io, list[i]) = NULL;
            s->written[list[i]] = 0;
        }
}

static void compare(int kind, int backward, int type, int64_t rows, int64_t cols, unsigned absent) {
    static const int forward_list[] = {LNORM_WEIGHT, LNORM_BIAS, LNORM_Y, LNORM_MEAN, LNORM_RSTD};
    static const int backward_list[] = {LNORM_WEIGHT, LNORM_DX, LNORM_DWEIGHT, LNORM_DBIAS};
    scene one, two;
    level1_scene(&one, kind, backward, type, rows, cols, 1e-5);
    level1_scene(&two, kind, backward, type, rows, cols, 1e-5);
    leave_out(&one, backward ? backward_list : forward_list, backward ? 4 : 5, absent);
    leave_out(&two, backward ? backward_list : forward_list, backward ? 1 : 2, absent); /* inputs only */
    scene_run_with_workspace(&two);
    call c = call_of(&one);
    assert_int_equal(functions[kind][backward][type](&c), LNORM_OK);
    assert_same_outputs(&one, &two);
    if (backward) {
        scene_reset(&one, 0);
        c.workspace_size = lnorm_backward_workspace(rows, cols);
        c.workspace = malloc(c.workspace_size);
        assert_non_null(c.workspace);
        memset(c.workspace, 0xff, c.workspace_size);
        assert_int_equal(functions[kind][backward][type](&c), LNORM_OK);
        assert_same_outputs(&one, &two);
        free(c.workspace);
    }
    scene_free(&one);
    scene_free(&two);
}

static void test_equals_level_2(void **state) {
    static const int64_t sizes[][2] = {{1, 1}, {5, 3}, {130, 8}, {3, 16}, {67, 17}, {4, 257}, {70, 300}, {1, 5000}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < 2; kind++)
            for (int type = 0; type < TYPES; type++) {
                int64_t cols = type == 0 && sizes[i][1] > 100 ? sizes[i][1] / 10 : sizes[i][1]; /* f64 is slow */
                for (int backward = 0; backward < 2; backward++)
                    compare(kind, backward, type, sizes[i][0], cols, 0);
            }
}

/* Gradients of these are another engine's than the rows'; each of the outputs that may be missing is missing once. */
static void test_long_rows(void **state) {
    const int64_t cols = ((int64_t)1 << 17) + 5;
    (void)state;
    for (int type = 1; type < TYPES; type++)
        for (unsigned absent = 1; absent <= 8; absent *= 2)
            compare(type & 1, 1, type, type == 1 ? 2 : 1, cols, absent);
    assert_true(lnorm_backward_workspace(1, (int64_t)1 << 25) < (size_t)1 << 16); /* no sums of columns */
}

static void test_absent_arguments(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int type = 0; type < TYPES; type++) {
            for (unsigned absent = 0; absent < 32; absent++)
                compare(kind, 0, type, 9, 35, absent);
            for (unsigned absent = 0; absent < 16; absent++)
                compare(kind, 1, type, 70, 20, absent);
        }
}

static void test_in_place(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int type = 0; type < TYPES; type++)
            for (int way = 0; way < 3; way++) { /* y = x, dx = x, dx = dy */
                scene apart, in_place;
                level1_scene(&apart, kind, way > 0, type, 70, 33, 1e-5);
                level1_scene(&in_place, kind, way > 0, type, 70, 33, 1e-5);
                call c = call_of(&apart), d = call_of(&in_place);
                assert_int_equal(functions[kind][way > 0][type](&c), LNORM_OK);
                void *shared = in_place.at[way == 2 ? LNORM_DY : LNORM_X].memory;
                d.y = d.dx = shared;
                assert_int_equal(functions[kind][way > 0][type](&d), LNORM_OK);
                assert_memory_equal(shared, apart.at[way ? LNORM_DX : LNORM_Y].memory, apart.at[LNORM_X].bytes);
                in_place.written[LNORM_Y] = in_place.written[LNORM_DX] = 0;
                assert_same_outputs(&apart, &in_place);
                scene_free(&apart);
                scene_free(&in_place);
            }
}

/* Outputs so small that eps decides them. */
static void test_default_eps(void **state) {
    const double rms[TYPES] = {0x1p-52, 0x1p-23, 0x1p-23, 0x1p-23};
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int type = 0; type < TYPES; type++)
            for (int backward = 0; backward < 2; backward++) {
                scene named, given, other;
                double eps = kind ? rms[type] : 1e-5;
                level1_scene(&named, kind, backward, type, 5, 40, LNORM_EPS_DEFAULT);
                level1_scene(&given, kind, backward, type, 5, 40, eps);
                level1_scene(&other, kind, backward, type, 5, 40, eps * 1.5);
                scene *all[] = {&named, &given, &other};
                for (int i = 0; i < 3; i++) {
                    for (int64_t k = 0; k < 200; k++)
                        tensor_set(all[i]->io.x, k, tensor_get(all[i]->io.x, k) * 0x1p-24);
                    call c = call_of(all[i]);
                    c.bias = NULL; /* would hide it */
                    assert_int_equal(functions[kind][backward][type](&c), LNORM_OK);
                }
                assert_same_outputs(&named, &given);
                int output = backward ? LNORM_DX : LNORM_Y;
                assert_false(tensor_same(&named.at[output].tensor, &other.at[output].tensor));
                scene_free(&named);
                scene_free(&given);
                scene_free(&other);
            }
}

static void test_empty(void **state) {
    static const int64_t sizes[][2] = {{0, 7}, {7, 0}, {0, 0}};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int kind = 0; kind < 2; kind++)
            for (int type = 0; type < TYPES; type++)
                for (int backward = 0; backward < 2; backward++) {
                    scene s;
                    level1_scene(&s, kind, backward, type, sizes[i][0], sizes[i][1], 0);
                    call c = call_of(&s);
                    c.x = c.dy = NULL; /* no elements are due */
                    assert_int_equal(functions[kind][backward][type](&c), LNORM_OK);
                    for (int64_t k = 0; !backward && k < sizes[i][0]; k++) {
                        double rstd = tensor_get(s.io.rstd, k), mean = kind ? rstd : tensor_get(s.io.mean, k);
                        assert_true(rstd != rstd && mean != mean);
                    }
                    for (int64_t j = 0; backward && j < sizes[i][1]; j++) {
                        assert_true(lnorm_bits_of_f64(tensor_get(s.io.dweight, j)) == 0);
                        assert_true(kind || lnorm_bits_of_f64(tensor_get(s.io.dbias, j)) == 0);
                    }
                    scene_free(&s);
                }
}

/* ---- errno ---- */

static void test_errno(void **state) {
    static const double hard[] = {0, (double)INFINITY, (double)NAN, 0x1p120, -0x1p-140};
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int type = 0; type < TYPES; type++)
            for (int backward = 0; backward < 2; backward++)
                for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
                    scene s;
                    level1_scene(&s, kind, backward, type, 3, 20, 0);
                    for (int64_t k = 0; k < 20; k++)
                        tensor_set(s.io.x, k, hard[i]);
                    tensor_set(s.io.x, 25, hard[i]);
                    call c = call_of(&s);
                    errno = SENTINEL;
                    lnorm_status status = functions[kind][backward][type](&c);
                    c.eps = -1;
                    functions[kind][backward][type](&c);
                    lnorm_run(&s.op, &s.io, NULL, NULL);
                    assert_int_equal(errno, SENTINEL);
                    assert_int_equal(status, LNORM_OK);
                    scene_free(&s);
                }
}

/* ---- refused ---- */

static void refused_call(const scene *s, function *f, call c) {
    assert_int_equal(f(&c), LNORM_INVALID_ARGUMENT);
    assert_true(scene_untouched(s));
}

static void refused_sizes(const scene *s, function *f, call c) {
    const int64_t limit = INT64_MAX / 8;
    const int64_t sizes[][2] = {{-1, 4},       {4, -1},        {INT64_MIN, 0},          {0, INT64_MIN},
                                {limit, 2},    {2, limit},     {limit + 1, 1},          {1, limit + 1},
                                {INT64_MAX, 0}, {0, INT64_MAX}, {(int64_t)1 << 32, (int64_t)1 << 32}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        c.rows = sizes[i][0];
        c.cols = sizes[i][1];
        refused_call(s, f, c);
        assert_int_equal(lnorm_backward_workspace(c.rows, c.cols), 0);
    }
}

static void refused_eps(const scene *s, function *f, call c) {
    const double eps[] = {-1e-5, (double)NAN, (double)INFINITY, (double)-INFINITY, -0x1p-1074};
    for (size_t i = 0; i < sizeof eps / sizeof *eps; i++) {
        c.eps = eps[i];
        refused_call(s, f, c);
    }
}

static void refused_forward(const scene *s, function *f, int kind, size_t size) {
    const call legal = call_of(s);
    call c = legal;
    c.x = NULL;
    refused_call(s, f, c);
    c = legal;
    c.x = (const char *)c.y + size; /* one element off */
    refused_call(s, f, c);
    c = legal;
    c.weight = c.y;
    refused_call(s, f, c);
    c = legal;
    c.rstd = c.y;
    refused_call(s, f, c);
    if (!kind) {
        c = legal;
        c.bias = (const char *)c.y + size;
        refused_call(s, f, c);
        c = legal;
        c.mean = c.rstd;
        refused_call(s, f, c);
    }
}

static void refused_backward(const scene *s, function *f, int kind, size_t size) {
    const call legal = call_of(s);
    char byte = 0;
    call c = legal;
    c.x = NULL;
    refused_call(s, f, c);
    c = legal;
    c.dy = NULL;
    refused_call(s, f, c);
    c = legal;
    c.workspace = &byte;
    c.workspace_size = 64;
    refused_call(s, f, c);
    c = legal;
    c.x = (const char *)c.dx + size;
    refused_call(s, f, c);
    c = legal;
    c.dy = (const char *)c.dx - size;
    refused_call(s, f, c);
    c = legal;
    c.dweight = c.dx;
    refused_call(s, f, c);
    c = legal;
    c.weight = c.dweight;
    refused_call(s, f, c);
    if (!kind) {
        c = legal;
        c.dbias = (char *)c.dweight + size;
        refused_call(s, f, c);
        c = legal;
        c.weight = c.dbias;
        refused_call(s, f, c);
    }
}

static void test_refused(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int type = 0; type < TYPES; type++)
            for (int backward = 0; backward < 2; backward++) {
                scene s;
                function *f = functions[kind][backward][type];
                level1_scene(&s, kind, backward, type, 6, 30, 1e-5);
                refused_sizes(&s, f, call_of(&s));
                refused_eps(&s, f, call_of(&s));
                (backward ? refused_backward : refused_forward)(&s, f, kind, types[type].x.bits / 8u);
                scene_free(&s);
            }
}

/* ---- an instruction set that there is not ---- */

#if defined __unix__
static int gives_not_available(void) {
    scene s;
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_plan plan;
    int right = lnorm_isa() == NULL;
    for (int kind = 0; kind < 2; kind++)
        for (int type = 0; type < TYPES; type++)
            for (int backward = 0; backward < 2; backward++) {
                level1_scene(&s, kind, backward, type, 6, 30, 1e-5);
                call c = call_of(&s);
                right = right && functions[kind][backward][type](&c) == LNORM_NOT_AVAILABLE && scene_untouched(&s);
                right = right && lnorm_run(&s.op, &s.io, NULL, &error) == LNORM_NOT_AVAILABLE && scene_untouched(&s);
                right = right && lnorm_plan_init(&plan, &s.op, &s.io, NULL) == LNORM_NOT_AVAILABLE;
                right = right && lnorm_execute(&plan, &s.io, NULL) == LNORM_NOT_AVAILABLE;
                scene_free(&s);
            }
    return right && strstr(error.message, "LNORM_ISA: expected an instruction set that runs here (") &&
           strstr(error.message, "), got abacus");
}

/* In a child, because the choice is made once; the first test, because it must not have been made. */
static void test_not_available(void **state) {
    int status = 0;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("LNORM_ISA", "abacus", 1);
        _exit(gives_not_available() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
#if defined __unix__
        cmocka_unit_test(test_not_available),
#endif
        cmocka_unit_test(test_equals_level_2),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_absent_arguments),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_default_eps),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
