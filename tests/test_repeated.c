/* More than 2^32 elements, every one of them read and written, in little memory: one period of a tensor in a file that
 * is mapped again and again. `test_repeated large` does that; without an argument there are three periods.
 *
 * The period has 3*2^18 elements, which divides no power of two: an address cut to 32 bits, in elements or in bytes,
 * meets other numbers, or no memory. Each group consists of c + a and c - a, in equal numbers, with whole c and a = 1,
 * 2 or 4, eps is 0, dy and weight are small whole numbers: all sums are exact, and k periods have k times the sums of
 * one, so that every result is that of a single period, dweight and dbias k times it, bit for bit. */
#define _GNU_SOURCE 1
#include "helpers.h"
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#if defined __linux__ && UINTPTR_MAX > UINT32_MAX
#include <sys/mman.h>
#include <unistd.h>

static int64_t least_elements = 2 * 3 * (1 << 18);

/* ---- memory ---- */

/* `periods` copies of `period` bytes in a row, between pages that fault. `copies` of them have memory of their own. */
typedef struct repeated {
    char *data, *mapping;
    size_t period, copies, periods, mapped;
} repeated;

static size_t whole_pages(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static void repeated_make(repeated *r, size_t period, size_t periods) {
    size_t page = whole_pages(1), copies = 1, bytes = period * periods;
    while (period * copies % page)
        copies *= 2;
    *r = (repeated){.period = period, .copies = copies, .periods = periods, .mapped = whole_pages(bytes) + 2 * page};
    int file = memfd_create("period", 0);
    assert_true(file >= 0 && ftruncate(file, (off_t)(period * copies)) == 0);
    r->mapping = mmap(NULL, r->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(r->mapping != MAP_FAILED);
    r->data = r->mapping + page;
    for (size_t done = 0; done < bytes; done += period * copies) {
        size_t rest = bytes - done, part = rest < period * copies ? rest : period * copies;
        assert_true(mmap(r->data + done, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
                    r->data + done);
    }
    close(file);
    r->copies = copies < periods ? copies : periods;
}

static void repeated_free(repeated *r) {
    if (r->mapping)
        munmap(r->mapping, r->mapped);
}

static void repeated_fill(repeated *r, const void *period) {
    for (size_t i = 0; i < r->copies; i++)
        memcpy(r->data + i * r->period, period, r->period);
}

static void assert_repeats(const repeated *r, const void *period) {
    for (size_t i = 0; i < r->copies; i++)
        assert_memory_equal(r->data + i * r->period, period, r->period);
}

/* ---- what is computed ---- */

typedef struct form {
    const char *name, *engine;
    lnorm_kind kind;
    lnorm_arithmetic arithmetic;
    int32_t ndim, along;           /* the axis that goes on and on, after axes of 1 element only */
    int64_t shape[3], strides[3];  /* of one period; all strides 0: dense */
    int64_t axis;                  /* layer norm: the one that is normalised over */
    int workspace;
} form;

enum { ROWS = 768, COLS = 1024, GROUPS = 4, MOST_GROUPS = ROWS * GROUPS };

static const form forms[] = {
    {"rows", "rows", LNORM_LAYER_NORM, LNORM_ACCURATE, 2, 0, {ROWS, COLS}, {0}, 1, 1},
    {"rows_without_workspace", "rows", LNORM_RMS_NORM, LNORM_ACCURATE, 2, 0, {ROWS * 16, COLS / 16}, {0}, 1, 0},
    {"rows_fast", "rows", LNORM_LAYER_NORM, LNORM_FAST, 2, 0, {ROWS, COLS}, {0}, 1, 1},
    {"a_long_row", "long", LNORM_LAYER_NORM, LNORM_ACCURATE, 2, 1, {1, ROWS * COLS}, {0}, 1, 1},
    {"columns", "columns", LNORM_LAYER_NORM, LNORM_ACCURATE, 2, 0, {ROWS, COLS}, {0}, 0, 1},
    {"batch_norm_columns", "columns", LNORM_BATCH_NORM, LNORM_ACCURATE, 2, 0, {ROWS, COLS}, {0}, 0, 1},
    {"batch_norm_general", "general", LNORM_BATCH_NORM, LNORM_ACCURATE, 3, 0, {ROWS, 32, 32}, {0}, 0, 1},
    {"group_norm_channels_last", NULL, LNORM_GROUP_NORM, LNORM_ACCURATE, 3, 0, {ROWS, 32, 32}, {COLS, 1, 32}, 0, 1},
};
enum { FORMS = sizeof forms / sizeof *forms, PERIOD = ROWS * COLS };

/* Some elements' tensors, of one period or of many. */
typedef struct tensors {
    int64_t shape[3], affine_shape, groups;
    lnorm_tensor x, dy, y, weight, bias, mean, rstd, dweight, dbias;
} tensors;

static int affine_is_along(const form *f) {
    return f->kind <= LNORM_RMS_NORM && f->axis == f->along;
}

static int groups_are_along(const form *f) {
    return f->kind == LNORM_GROUP_NORM || (f->kind <= LNORM_RMS_NORM && f->axis != f->along);
}

static lnorm_tensor vector(const int64_t *count, lnorm_dtype dtype) {
    return lnorm_dense(NULL, dtype, 1, count);
}

/* Everything but memory. */
static void tensors_make(tensors *t, const form *f, int64_t periods, lnorm_dtype affine, lnorm_dtype gradient) {
    int64_t groups = f->kind == LNORM_GROUP_NORM ? f->shape[0] * GROUPS
                     : f->kind == LNORM_BATCH_NORM ? f->shape[1] : f->shape[1 - f->axis];
    memcpy(t->shape, f->shape, sizeof t->shape);
    t->shape[f->along] *= periods;
    t->affine_shape = t->shape[f->kind <= LNORM_RMS_NORM ? f->axis : 1];
    t->groups = groups_are_along(f) ? groups * periods : groups;
    t->x = lnorm_dense(NULL, LNORM_F16, f->ndim, t->shape);
    t->x.strides = f->strides[0] ? f->strides : NULL;
    t->dy = t->y = t->x;
    t->weight = t->bias = vector(&t->affine_shape, affine);
    t->dweight = t->dbias = vector(&t->affine_shape, gradient);
    t->mean = t->rstd = vector(&t->groups, LNORM_F32);
}

static lnorm_op op_of(const form *f, lnorm_pass pass) {
    lnorm_op op = LNORM_OP_INIT;
    op.kind = f->kind;
    op.pass = pass;
    op.arithmetic = f->arithmetic;
    op.eps = 0;
    op.groups = f->kind == LNORM_GROUP_NORM ? GROUPS : 0;
    if (f->kind <= LNORM_RMS_NORM) {
        op.axes = &f->axis;
        op.axes_count = 1;
    }
    return op;
}

/* The outputs of a backward pass that have x's shape go where y was. */
static void run(const form *f, const tensors *t, lnorm_pass pass, const char *engine) {
    lnorm_op op = op_of(f, pass);
    lnorm_io io = LNORM_IO_INIT;
    lnorm_plan plan;
    io.x = &t->x;
    io.dy = &t->dy;
    io.weight = &t->weight;
    io.bias = f->kind == LNORM_RMS_NORM ? NULL : &t->bias;
    io.y = io.dx = &t->y;
    io.mean = f->kind == LNORM_RMS_NORM ? NULL : &t->mean;
    io.rstd = &t->rstd;
    io.dweight = &t->dweight;
    io.dbias = f->kind == LNORM_RMS_NORM ? NULL : &t->dbias;
    assert_int_equal(lnorm_plan_init(&plan, &op, &io, NULL), LNORM_OK);
    if (engine)
        assert_string_equal(((const lnorm_plan_form *)(const void *)&plan)->engine->name, engine);
    io.workspace_size = lnorm_plan_workspace(&plan);
    if (f->workspace && io.workspace_size)
        assert_non_null(io.workspace = malloc(io.workspace_size));
    assert_int_equal(lnorm_execute(&plan, &io, NULL), LNORM_OK);
    free(io.workspace);
}

/* ---- numbers ---- */

static int64_t group_of(const form *f, int64_t index) {
    int64_t inner = f->ndim == 3 ? f->shape[2] : 1;
    int64_t channel = index / inner % f->shape[1], row = index / inner / f->shape[1];
    if (f->kind == LNORM_GROUP_NORM)
        return row * GROUPS + channel / (f->shape[1] / GROUPS);
    if (f->kind == LNORM_BATCH_NORM)
        return channel;
    return f->axis ? row : channel;
}

static uint64_t hash(int64_t a, int64_t b) {
    uint64_t state = (uint64_t)a << 32 ^ (uint64_t)b;
    return random_bits(&state);
}

/* Every group's elements in pairs, of which the one is above the mean and the other below. RMS norm has c = 0. */
static void fill_period(const form *f, tensors *t) {
    static int64_t seen[MOST_GROUPS * 16];
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < PERIOD; i++) {
        int64_t group = group_of(f, i), number = seen[group]++;
        uint64_t pair = hash(group, number / 2);
        double c = f->kind == LNORM_RMS_NORM ? 0 : (double)(hash(group, -1) % 5) - 2;
        double a = (double)(1 << hash(group, -2) % 3);
        tensor_set(&t->x, i, (pair ^ (uint64_t)number) & 1 ? c + a : c - a);
        tensor_set(&t->dy, i, (double)(hash(group, number + PERIOD) % 7) - 3);
    }
    for (int64_t i = 0; i < t->affine_shape; i++) {
        tensor_set(&t->weight, i, (double)(hash(i, -3) % 4) + 1);
        tensor_set(&t->bias, i, (double)(hash(i, -4) % 9) - 4);
    }
}

/* ---- one form ---- */

static size_t bytes_of(const lnorm_tensor *tensor) {
    return (size_t)tensor_count(tensor) * tensor->dtype.bits / 8;
}

enum { X, DY, Y, WEIGHT, BIAS, MEAN, RSTD, DWEIGHT, DBIAS, TENSORS };

static void list(tensors *t, lnorm_tensor *at[TENSORS]) {
    lnorm_tensor *all[TENSORS] = {&t->x,    &t->dy,   &t->y,       &t->weight, &t->bias,
                                  &t->mean, &t->rstd, &t->dweight, &t->dbias};
    memcpy(at, all, sizeof all);
}

/* dweight and dbias: the same, where they go on with the periods, or the period's times the number of periods. */
static void check_gradient(const form *f, const lnorm_tensor *small, const lnorm_tensor *large, int64_t periods,
                           const repeated *memory) {
    double times = affine_is_along(f) ? 1 : (double)periods;
    int64_t count = tensor_count(small);
    for (int64_t i = 0; i < count * (int64_t)memory->copies; i++)
        assert_true(tensor_get(large, i) == (double)(float)(times * tensor_get(small, i % count)));
}

static void test_form(void **state) {
    const form *f = *state;
    int64_t periods = least_elements / PERIOD + 1;
    tensors small, large;
    lnorm_tensor *in[TENSORS], *out[TENSORS];
    repeated memory[TENSORS] = {{0}};
    /* all of a kind: with the tensors of x's shape in f16, and where parameters repeat, all of them are f16 */
    lnorm_dtype affine = affine_is_along(f) ? LNORM_F16 : LNORM_F32;
    tensors_make(&small, f, 1, affine, affine_is_along(f) ? LNORM_F32 : LNORM_F64);
    tensors_make(&large, f, periods, affine, LNORM_F32);
    list(&small, in);
    list(&large, out);
    for (int i = 0; i < TENSORS; i++) {
        int repeats = bytes_of(in[i]) != bytes_of(out[i]) && (i < DWEIGHT || affine_is_along(f));
        assert_non_null(in[i]->data = calloc(1, bytes_of(in[i])));
        repeated_make(&memory[i], bytes_of(repeats ? in[i] : out[i]), repeats ? (size_t)periods : 1);
        out[i]->data = memory[i].data;
    }
    fill_period(f, &small);
    for (int i = X; i <= BIAS; i++)
        repeated_fill(&memory[i], in[i]->data);
    for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++) {
        run(f, &small, (lnorm_pass)pass, NULL);
        run(f, &large, (lnorm_pass)pass, f->engine);
        for (int i = X; i <= RSTD; i++)
            assert_repeats(&memory[i], in[i]->data);
    }
    check_gradient(f, &small.dweight, &large.dweight, periods, &memory[DWEIGHT]);
    check_gradient(f, &small.dbias, &large.dbias, periods, &memory[DBIAS]);
    for (int i = 0; i < TENSORS; i++) {
        free(in[i]->data);
        repeated_free(&memory[i]);
    }
}

int main(int argc, char **argv) {
    struct CMUnitTest tests[FORMS] = {{0}};
    if (argc > 1 && strcmp(argv[1], "large")) {
        fprintf(stderr, "usage: %s [large]\n", argv[0]);
        return 2;
    }
    if (argc > 1)
        least_elements = (int64_t)1 << 32;
    for (int i = 0; i < FORMS; i++)
        tests[i] = (struct CMUnitTest){forms[i].name, test_form, NULL, NULL, (void *)(uintptr_t)&forms[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    print_message("NOT RUN: no 64-bit Linux\n");
    return 0;
}

#endif
