/* Problems of no elements, and elements beyond 2^32: address space is reserved for all of them, memory is used for the
 * few rows at the far end whose tasks are run. */
#define _DEFAULT_SOURCE 1
#include "refusal.h"

#include <stdlib.h>
#if defined __unix__
#include <sys/mman.h>
#endif

static const mix mixes[] = {{{2, 32, 1}, {2, 32, 1}, {2, 32, 1}}, {{2, 64, 1}, {2, 64, 1}, {2, 64, 1}}};
enum { MIXES = sizeof mixes / sizeof *mixes };

/* ---- nothing to do ---- */

static void assert_all(const scene *s, int operand, double value) {
    if (!s->written[operand])
        return;
    for (int64_t i = 0; i < tensor_count(&s->at[operand].tensor); i++) {
        double got = tensor_get(&s->at[operand].tensor, i);
        assert_true(value == value ? lnorm_bits_of_f64(got) == lnorm_bits_of_f64(value) : got != got);
    }
}

static void assert_same_as(const scene *s, const scene *first, int operand) {
    if (s->written[operand])
        assert_memory_equal(s->at[operand].memory, first->at[operand].memory, s->at[operand].bytes);
}

static void check_empty(const sample *p, mix types) {
    scene s, first;
    lnorm_plan plan;
    scene_make(&s, &p->op, p->ndim, p->shape, types, DENSE, 1);
    scene_make(&first, &p->op, p->ndim, p->shape, types, DENSE, 1);
    assert_int_equal(tensor_count(s.io.x), 0);
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (s.at[i].bytes == 0)
            s.at[i].tensor.data = NULL; /* is allowed */
    scene_run(&s);
    scene_run_with_workspace(&s);
    assert_int_equal(lnorm_plan_init(&plan, &s.op, &s.io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_groups(&plan) * lnorm_plan_group_size(&plan), 0);
    if (lnorm_plan_group_size(&plan) == 0) {
        const double nan = lnorm_f64_of_bits(0x7ff8u * (1ull << 48));
        assert_all(&s, LNORM_MEAN, nan);
        assert_all(&s, LNORM_RSTD, nan);
        assert_all(&s, LNORM_MEAN_TANGENT, nan);
        assert_all(&s, LNORM_RSTD_TANGENT, nan);
    }
    if (p->op.accumulate) {
        assert_same_as(&s, &first, LNORM_DWEIGHT);
        assert_same_as(&s, &first, LNORM_DBIAS);
    } else {
        assert_all(&s, LNORM_DWEIGHT, 0);
        assert_all(&s, LNORM_DBIAS, 0);
    }
    assert_same_as(&s, &first, LNORM_RUNNING_MEAN);
    assert_same_as(&s, &first, LNORM_RUNNING_VAR);
    scene_free(&s);
    scene_free(&first);
}

static void test_empty(void **state) {
    sample p;
    int64_t fixed[4];
    (void)state;
    for (int i = 0; sample_at(i, &p); i++) {
        memcpy(fixed, p.shape, sizeof fixed);
        for (unsigned zeros = 1; zeros < 1u << p.ndim; zeros++)
            for (int m = 0; m < MIXES; m++)
                for (int accumulate = 0; accumulate < 2; accumulate++) {
                    for (int a = 0; a < p.ndim; a++)
                        p.shape[a] = zeros >> a & 1 ? 0 : fixed[a] % 13 + 4 * (a == 1);
                    p.shape[1] = p.shape[1] / 4 * 4; /* for the groups */
                    p.op.accumulate = accumulate;
                    check_empty(&p, mixes[m]);
                }
    }
}

/* 2^40 groups of no elements have no task, unless their statistics are asked for. */
static void test_many_empty_groups(void **state) {
    const int64_t groups = (int64_t)1 << 40, strides[] = {0, 1};
    (void)state;
    for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++)
            for (int m = 0; m < MIXES; m++) {
                lnorm_op op = LNORM_OP_INIT;
                lnorm_io io = LNORM_IO_INIT;
                lnorm_tensor x = lnorm_dense(NULL, mixes[m].x, SHAPE(groups, 0)), given = x;
                int64_t none = 0;
                lnorm_tensor parameter = lnorm_dense(NULL, mixes[m].x, 1, &none);
                float one = 1;
                op.kind = (lnorm_kind)kind;
                op.pass = (lnorm_pass)pass;
                io.x = io.y = io.dy = io.dx = io.v = io.ddy = io.x_tangent = io.y_tangent = &x;
                io.weight = io.bias = io.dweight = io.dbias = &parameter;
                assert_int_equal(lnorm_run(&op, &io, NULL, NULL), LNORM_OK);
                op.statistics = LNORM_SAVED; /* one number for all */
                given = lnorm_dense(&one, LNORM_F32, SHAPE(groups, 1));
                given.strides = strides;
                io.mean = io.rstd = &given;
                assert_int_equal(lnorm_run(&op, &io, NULL, NULL), LNORM_OK);
            }
}

/* 2^58 groups of two elements, all in one place, would need more workspace than a size_t can say: they get none. */
static void test_no_workspace_for_too_many_groups(void **state) {
    const int64_t none[] = {0, 0};
    (void)state;
    for (int m = 0; m < MIXES; m++)
        for (int many = 0; many < 2; many++) {
            const int64_t shape[] = {many ? (int64_t)1 << 58 : 1000, 2};
            lnorm_op op = LNORM_OP_INIT;
            lnorm_io io = LNORM_IO_INIT;
            lnorm_plan plan;
            lnorm_tensor x = lnorm_dense(NULL, mixes[m].x, 2, shape), dweight = lnorm_dense(NULL, mixes[m].x, SHAPE(2));
            x.strides = none;
            op.pass = LNORM_BACKWARD;
            io.x = io.dy = &x;
            io.dweight = &dweight;
            assert_int_equal(lnorm_plan_init(&plan, &op, &io, NULL), LNORM_OK);
            assert_int_equal(lnorm_plan_workspace(&plan) == 0, many);
        }
}

static void test_empty_is_checked(void **state) {
    scene s;
    lnorm_op op = LNORM_OP_INIT;
    (void)state;
    scene_make(&s, &op, SHAPE(0, 3), all_f32, DENSE, 1);
    op.eps = -1;
    refused_op(&s, op, INVALID,
               "op.eps: expected a finite number of at least 0, or LNORM_EPS_DEFAULT, got -1");
    refused_shape(&s, LNORM_WEIGHT, SHAPE(2), MISMATCH,
                  "Expected weight to be of same shape as normalized_shape, but got weight of shape [2] and "
                  "normalized_shape = [3]");
    refused_shape(&s, LNORM_Y, SHAPE(0, 4), MISMATCH, "y: expected the shape of x, [0, 3], got [0, 4]");
    scene_free(&s);
}

/* ---- beyond 2^32 elements ---- */

#if defined __unix__ && UINTPTR_MAX > UINT32_MAX

/* Address space without memory behind it until it is touched; NULL where the system does not give that. */
static void *reserve(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* x, dy and the output of two axes in reserved memory; the groups lie along one, their elements along the other. */
typedef struct far_scene {
    lnorm_tensor x, dy, out;
    size_t bytes;
    int64_t shape[2], strides[2];
    int64_t reduced; /* the elements' axis */
    int64_t groups, size;
} far_scene;

static void not_run(size_t bytes) {
    print_message("NOT RUN: the system does not let this process reserve %.0f GiB of addresses\n",
                  (double)bytes / 0x1p30);
    skip();
}

static lnorm_tensor far_tensor(const far_scene *f, lnorm_dtype dtype) {
    lnorm_tensor tensor = lnorm_dense(reserve(f->bytes), dtype, 2, f->shape);
    tensor.strides = f->strides;
    return tensor;
}

static void far_make(far_scene *f, lnorm_dtype dtype, const int64_t *shape, const int64_t *strides, int64_t reduced) {
    int64_t elements = (shape[0] - 1) * strides[0] + (shape[1] - 1) * strides[1] + 1;
    *f = (far_scene){.bytes = (size_t)elements * dtype.bits / 8, .shape = {shape[0], shape[1]},
                     .strides = {strides[0], strides[1]}, .reduced = reduced, .groups = shape[1 - reduced],
                     .size = shape[reduced]};
    f->x = far_tensor(f, dtype);
    f->dy = far_tensor(f, dtype);
    f->out = far_tensor(f, dtype);
    if (!f->x.data || !f->dy.data || !f->out.data)
        not_run(f->bytes);
}

static void far_free(far_scene *f) {
    munmap(f->x.data, f->bytes);
    munmap(f->dy.data, f->bytes);
    munmap(f->out.data, f->bytes);
}

/* The logical number of an element of a group. */
static int64_t far_index(const far_scene *f, int64_t group, int64_t element) {
    return f->reduced ? group * f->size + element : element * f->groups + group;
}

static void far_fill(far_scene *f, int64_t group, const lnorm_tensor *x, const lnorm_tensor *dy) {
    uint64_t seed = (uint64_t)group;
    for (int64_t i = 0; i < f->size; i++) {
        double values[] = {random_in(&seed, -1, 2), random_in(&seed, -1, 2)};
        tensor_set(&f->x, far_index(f, group, i), values[0]);
        tensor_set(&f->dy, far_index(f, group, i), values[1]);
        tensor_set(x, i, values[0]);
        tensor_set(dy, i, values[1]);
    }
}

static void far_io(lnorm_io *io, lnorm_pass pass, const lnorm_tensor *x, const lnorm_tensor *dy,
                   const lnorm_tensor *out) {
    *io = (lnorm_io)LNORM_IO_INIT;
    io->x = x;
    io->dy = io->v = io->x_tangent = dy;
    io->y = io->y_tangent = out;
    *(pass == LNORM_BACKWARD ? &io->dx : &io->ddy) = out;
}

/* Runs the last tasks of a plan's last phase, or all of them. */
static void run_last_tasks(const lnorm_plan *plan, const lnorm_io *io, int all) {
    enum { LAST = 2 }; /* the last one may have few groups */
    int phase = lnorm_plan_phases(plan) - 1;
    int64_t tasks = lnorm_plan_tasks(plan, phase);
    for (int64_t task = all || tasks < LAST ? 0 : tasks - LAST; task < tasks; task++)
        assert_int_equal(lnorm_plan_run(plan, io, phase, task), LNORM_OK);
}

/* Runs one pass by hand and compares the groups from `first` on with each of them alone. */
static void check_far(far_scene *f, lnorm_op op, int64_t first) {
    enum { MOST = 400 };
    double x[MOST] = {0}, dy[MOST] = {0}, expected[MOST] = {0};
    lnorm_io io, alone;
    lnorm_plan plan;
    lnorm_tensor row_x = lnorm_dense(x, f->x.dtype, SHAPE(1, f->size)), row_dy = row_x, row_out = row_x;
    lnorm_op row_op = op;
    row_dy.data = dy;
    row_out.data = expected;
    assert_true(f->size <= MOST);
    op.axes = &f->reduced;
    op.axes_count = 1;
    far_io(&io, op.pass, &f->x, &f->dy, &f->out);
    far_io(&alone, op.pass, &row_x, &row_dy, &row_out);
    for (int64_t group = first; group < f->groups; group++)
        far_fill(f, group, &row_x, &row_dy);
    assert_int_equal(lnorm_plan_init(&plan, &op, &io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_groups(&plan), f->groups);
    assert_int_equal(lnorm_plan_check(&plan, &io, NULL), LNORM_OK);
    run_last_tasks(&plan, &io, first == 0);
    for (int64_t group = first; group < f->groups; group++) {
        far_fill(f, group, &row_x, &row_dy);
        assert_int_equal(lnorm_run(&row_op, &alone, NULL, NULL), LNORM_OK);
        for (int64_t i = 0; i < f->size; i++)
            assert_true(lnorm_bits_of_f64(tensor_get(&f->out, far_index(f, group, i))) ==
                        lnorm_bits_of_f64(tensor_get(&row_out, i)));
    }
}

/* Every element type, pass and arithmetic. */
static void check_all_far(const int64_t *shape, const int64_t *strides, int64_t reduced, int64_t groups_checked) {
    const lnorm_dtype dtypes[] = {LNORM_F64, LNORM_F32, LNORM_F16, LNORM_BF16};
    for (size_t type = 0; type < sizeof dtypes / sizeof *dtypes; type++) {
        far_scene f;
        far_make(&f, dtypes[type], shape, strides, reduced);
        for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++)
            for (int arithmetic = LNORM_ACCURATE; arithmetic <= LNORM_FAST; arithmetic++) {
                lnorm_op op = LNORM_OP_INIT;
                op.pass = (lnorm_pass)pass;
                op.arithmetic = (lnorm_arithmetic)arithmetic;
                check_far(&f, op, f.groups - groups_checked);
            }
        far_free(&f);
    }
}

/* Dense rows: 2^26 + 3 of 65, the last few of them. */
static void test_far_rows(void **state) {
    const int64_t shape[] = {((int64_t)1 << 26) + 3, 65}, strides[] = {65, 1};
    (void)state;
    check_all_far(shape, strides, 1, 5);
}

/* Columns: 2^32 + 3 of 20, the last few of them. */
static void test_far_columns(void **state) {
    const int64_t shape[] = {20, ((int64_t)1 << 32) + 3}, strides[] = {shape[1], 1};
    (void)state;
    check_all_far(shape, strides, 0, 5);
}

/* Few elements far apart: rows 2^32 + 7 elements apart, contiguous ones, and others, more than a bundle of the general
 * form holds; elements of a row 2^25 + 1 apart, of few rows (the general form) and of more (columns). */
static void test_far_strides(void **state) {
    const int64_t far = ((int64_t)1 << 32) + 7, apart = ((int64_t)1 << 25) + 1;
    (void)state;
    check_all_far((int64_t[]){3, 300}, (int64_t[]){far, 1}, 1, 3);
    check_all_far((int64_t[]){19, 300}, (int64_t[]){far, 3}, 1, 19);
    check_all_far((int64_t[]){3, 300}, (int64_t[]){1, apart}, 1, 3);
    check_all_far((int64_t[]){5, 300}, (int64_t[]){1, apart}, 1, 5);
}

/* One row for 2^33 groups; their statistics are dense. */
static void test_far_groups(void **state) {
    const int64_t groups = ((int64_t)1 << 33) + 1, cols = 6, strides[] = {0, 1};
    float row[] = {1, 2, 3, 4, 5, 7}, mean, rstd;
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_plan plan;
    size_t bytes = (size_t)groups * sizeof(float);
    lnorm_tensor x = lnorm_dense(row, LNORM_F32, SHAPE(groups, cols));
    lnorm_tensor means = lnorm_dense(reserve(bytes), LNORM_F32, 1, &groups), rstds = means;
    (void)state;
    rstds.data = reserve(bytes);
    if (!means.data || !rstds.data)
        not_run(bytes);
    x.strides = strides;
    io.x = &x;
    io.mean = &means;
    io.rstd = &rstds;
    assert_int_equal(lnorm_plan_init(&plan, &op, &io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_groups(&plan), groups);
    assert_int_equal(lnorm_plan_check(&plan, &io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_run(&plan, &io, 0, lnorm_plan_tasks(&plan, 0) - 1), LNORM_OK);
    lnorm_layer_norm_f32(NULL, &mean, &rstd, row, NULL, NULL, 1, cols, 1e-5);
    assert_true(((float *)means.data)[groups - 1] == mean);
    assert_true(((float *)rstds.data)[groups - 1] == rstd);
    munmap(means.data, bytes);
    munmap(rstds.data, bytes);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_many_empty_groups),
        cmocka_unit_test(test_no_workspace_for_too_many_groups),
        cmocka_unit_test(test_empty_is_checked),
#if defined __unix__ && UINTPTR_MAX > UINT32_MAX
        cmocka_unit_test(test_far_rows),
        cmocka_unit_test(test_far_columns),
        cmocka_unit_test(test_far_strides),
        cmocka_unit_test(test_far_groups),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
