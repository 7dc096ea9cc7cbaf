/* What lnorm_plan_check looks at (pointers, overlap, workspace), and plans run by hand: copies, task orders, other
 * memory. Threads and executors: test_threads.c. Empty and huge problems: test_extremes.c. */
#include "refusal.h"

#include <stdio.h>
#include <stdlib.h>

static const mix mixes[] = {{{2, 32, 1}, {2, 32, 1}, {2, 32, 1}},
                            {{4, 16, 1}, {2, 32, 1}, {2, 64, 1}},
                            {{2, 16, 1}, {2, 16, 1}, {2, 32, 1}},
                            {{2, 64, 1}, {2, 32, 1}, {2, 64, 1}}};
enum { MIXES = sizeof mixes / sizeof *mixes };


/* ---- pointers ---- */

static void refused_pointers(const scene *s, const lnorm_io *io, const char *message) {
    lnorm_error error = LNORM_ERROR_INIT, again = LNORM_ERROR_INIT;
    lnorm_plan plan;
    accepted(&s->op, io);
    assert_int_equal(lnorm_plan_init(&plan, &s->op, io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_check(&plan, io, &error), INVALID);
    assert_error(&error, INVALID, message);
    assert_int_equal(lnorm_execute(&plan, io, NULL), INVALID);
    assert_int_equal(lnorm_run(&s->op, io, NULL, &again), INVALID);
    assert_error(&again, INVALID, message);
    assert_true(scene_untouched(s));
}

static void test_null_data(void **state) {
    char text[100];
    (void)state;
    for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++) {
        scene s;
        begin(&s, LNORM_LAYER_NORM, (lnorm_pass)pass, LNORM_COMPUTED);
        for (int i = 0; i < LNORM_OPERANDS; i++) {
            lnorm_tensor bad = s.at[i].tensor;
            lnorm_io io = s.io;
            if (!*scene_slot(&io, i))
                continue;
            bad.data = NULL;
            bad.byte_offset = 8; /* is no address */
            *scene_slot(&io, i) = &bad;
            snprintf(text, sizeof text, "%s: expected a pointer to its elements, got NULL",
                     lnorm_operand_name((enum lnorm_operand)i));
            refused_pointers(&s, &io, text);
        }
        scene_free(&s);
    }
}

/* The plan is made for tensors that an io then lacks. */
static void test_missing_tensor(void **state) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_plan plan;
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    assert_int_equal(lnorm_plan_init(&plan, &s.op, &s.io, NULL), LNORM_OK);
    s.io.weight = NULL;
    assert_int_equal(lnorm_plan_check(&plan, &s.io, &error), INVALID);
    assert_error(&error, INVALID, "weight: expected a pointer to its elements, got NULL");
    assert_int_equal(lnorm_execute(&plan, &s.io, NULL), INVALID);
    assert_true(scene_untouched(&s));
    scene_free(&s);
}

/* ---- overlap ---- */

/* Operand a is moved to `shift` bytes behind operand b's first byte. */
static void refused_overlap(const scene *s, int a, int b, ptrdiff_t shift, const char *first, const char *second) {
    char text[200];
    lnorm_tensor moved = s->at[a].tensor;
    lnorm_io io = s->io;
    moved.data = s->at[b].memory + shift;
    *scene_slot(&io, a) = &moved;
    snprintf(text, sizeof text,
             "%s: expected memory of its own (or, in place, exactly that of x or dy), but it overlaps %s",
             first, second);
    refused_pointers(s, &io, text);
}

static void test_overlap(void **state) {
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    refused_overlap(&s, LNORM_WEIGHT, LNORM_Y, 0, "y", "weight");
    refused_overlap(&s, LNORM_BIAS, LNORM_Y, 84, "y", "bias"); /* y has 96 bytes: the last of them */
    refused_overlap(&s, LNORM_Y, LNORM_X, 4, "y", "x");        /* by one element, either way */
    refused_overlap(&s, LNORM_Y, LNORM_X, -4, "y", "x");
    refused_overlap(&s, LNORM_MEAN, LNORM_Y, 92, "y", "mean");
    refused_overlap(&s, LNORM_MEAN, LNORM_X, 0, "mean", "x");
    refused_overlap(&s, LNORM_RSTD, LNORM_MEAN, 0, "mean", "rstd");
    refused_overlap(&s, LNORM_RSTD, LNORM_WEIGHT, 0, "rstd", "weight");
    scene_free(&s);
    begin(&s, LNORM_LAYER_NORM, LNORM_BACKWARD, LNORM_COMPUTED);
    refused_overlap(&s, LNORM_DX, LNORM_DY, 12, "dx", "dy"); /* by a row */
    refused_overlap(&s, LNORM_DX, LNORM_X, 92, "dx", "x");
    refused_overlap(&s, LNORM_DWEIGHT, LNORM_X, 40, "dweight", "x");
    refused_overlap(&s, LNORM_DBIAS, LNORM_DWEIGHT, 0, "dweight", "dbias");
    refused_overlap(&s, LNORM_DWEIGHT, LNORM_WEIGHT, 0, "dweight", "weight");
    refused_overlap(&s, LNORM_DBIAS, LNORM_DX, 88, "dx", "dbias");
    scene_free(&s);
    begin(&s, LNORM_LAYER_NORM, LNORM_DOUBLE_BACKWARD, LNORM_COMPUTED);
    refused_overlap(&s, LNORM_DDY, LNORM_V, 0, "ddy", "v");
    refused_overlap(&s, LNORM_DDY, LNORM_DX, 0, "dx", "ddy");
    scene_free(&s);
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD_MODE, LNORM_COMPUTED);
    refused_overlap(&s, LNORM_Y_TANGENT, LNORM_X_TANGENT, 0, "y_tangent", "x_tangent");
    scene_free(&s);
}

/* The same memory seen otherwise is not "in place"; inputs that repeat a place are dense where they leave no gap. */
static void test_overlap_of_other_views(void **state) {
    static const char message[] =
        "y: expected memory of its own (or, in place, exactly that of x or dy), but it overlaps x";
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    lnorm_tensor y = *s.io.y, x = *s.io.x;
    lnorm_io io = s.io;
    io.y = &y;
    io.x = &x;
    y.data = x.data;
    y.strides = (int64_t[]){1, 4, 8};
    refused_pointers(&s, &io, message);
    y = *s.io.y;
    y.data = x.data;
    y.dtype = LNORM_BF16;
    refused_pointers(&s, &io, message);
    y = *s.io.y;
    y.data = x.data;
    x.strides = (int64_t[]){0, 3, 1}; /* one sample for all */
    refused_pointers(&s, &io, message);
    x.strides = (int64_t[]){0, 2, 1};
    refused_pointers(&s, &io, message);
    x.strides = (int64_t[]){-6, 3, 1};
    x.byte_offset = 18 * sizeof(float);
    refused_pointers(&s, &io, message);
    x.strides = (int64_t[]){-6, -3, -1}; /* from behind y backwards into it; only checked, never read */
    x.byte_offset = 30 * sizeof(float);
    refused_pointers(&s, &io, message);
    y.strides = x.strides; /* and the other way round */
    y.byte_offset = 30 * sizeof(float);
    x.strides = NULL;
    x.byte_offset = 0;
    refused_pointers(&s, &io, message);
    scene_free(&s);
}

/* x in the even places, y in the odd ones: the caller's duty, and here he is right. */
static void test_interleaved(void **state) {
    const int64_t strides[] = {12, 6, 2};
    scene s, apart;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    begin(&apart, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    float shared[48];
    lnorm_tensor x = *s.io.x, y = x;
    x.data = shared;
    y.data = shared + 1;
    x.strides = y.strides = strides;
    for (int64_t i = 0; i < 24; i++)
        tensor_set(&x, i, tensor_get(s.io.x, i));
    s.io.x = &x;
    s.io.y = &y;
    scene_run(&s);
    scene_run(&apart);
    assert_true(tensor_same(&y, apart.io.y));
    assert_true(tensor_same(&x, apart.io.x));
    scene_free(&s);
    scene_free(&apart);
}

/* output has the memory of input: the bits of a run out of place. */
static void check_in_place(const sample *p, mix types, layout order, int output, int input, int with_workspace) {
    scene apart, in_place;
    lnorm_plan plan;
    scene_of_sample(&apart, p, types, order, 5);
    scene_of_sample(&in_place, p, types, order, 5);
    scene_run_with_workspace(&apart);
    *scene_slot(&in_place.io, output) = &in_place.at[input].tensor;
    assert_int_equal(lnorm_plan_init(&plan, &in_place.op, &in_place.io, NULL), LNORM_OK);
    in_place.io.workspace_size = lnorm_plan_workspace(&plan);
    void *workspace = malloc(in_place.io.workspace_size + 1);
    in_place.io.workspace = with_workspace ? workspace : NULL;
    assert_int_equal(lnorm_plan_check(&plan, &in_place.io, NULL), LNORM_OK);
    assert_int_equal(lnorm_execute(&plan, &in_place.io, NULL), LNORM_OK);
    free(workspace);
    assert_true(tensor_same(&in_place.at[input].tensor, &apart.at[output].tensor));
    in_place.written[output] = 0;
    assert_same_outputs(&apart, &in_place);
    scene_free(&apart);
    scene_free(&in_place);
}

static void test_in_place(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < MIXES; m++)
            for (int order = DENSE; order <= TRANSPOSED; order++) {
                int backward = p.op.pass == LNORM_BACKWARD || p.op.pass == LNORM_DOUBLE_BACKWARD;
                if (p.op.pass == LNORM_FORWARD)
                    check_in_place(&p, mixes[m], (layout)order, LNORM_Y, LNORM_X, 0);
                for (int with = 0; backward && with < 2; with++) {
                    check_in_place(&p, mixes[m], (layout)order, LNORM_DX, LNORM_X, with);
                    check_in_place(&p, mixes[m], (layout)order, LNORM_DX, LNORM_DY, with);
                }
            }
}

/* ---- workspace ---- */

/* Runs with `size` bytes of workspace at an odd address, full of NaN; the byte behind it must survive. */
static void run_with_workspace(scene *s, size_t size, size_t shift) {
    unsigned char *memory = malloc(size + shift + 1);
    assert_non_null(memory);
    memset(memory, 0xff, size + shift);
    memory[size + shift] = 0x5a;
    s->io.workspace = memory + shift;
    s->io.workspace_size = size;
    scene_run(s);
    assert_int_equal(memory[size + shift], 0x5a);
    for (size_t i = 0; i < shift; i++)
        assert_int_equal(memory[i], 0xff);
    s->io.workspace = NULL;
    free(memory);
}

static void refused_workspace(scene *s, size_t needed, size_t size) {
    char text[120];
    unsigned char byte = 0;
    s->io.workspace = &byte;
    s->io.workspace_size = size;
    snprintf(text, sizeof text, "io.workspace_size: expected at least %zu bytes, got %zu", needed, size);
    refused_pointers(s, &s->io, text);
    lnorm_plan plan;
    assert_int_equal(lnorm_plan_init(&plan, &s->op, &s->io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_run(&plan, &s->io, 0, 0), INVALID);
    assert_true(scene_untouched(s));
    s->io.workspace = NULL;
}

static void test_workspace(void **state) {
    sample p;
    int needing = 0;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < MIXES; m++) {
            scene with, without;
            lnorm_plan plan;
            scene_of_sample(&with, &p, mixes[m], DENSE, 6);
            scene_of_sample(&without, &p, mixes[m], DENSE, 6);
            assert_int_equal(lnorm_plan_init(&plan, &with.op, &with.io, NULL), LNORM_OK);
            size_t needed = lnorm_plan_workspace(&plan);
            if (needed) {
                refused_workspace(&with, needed, needed - 1);
                refused_workspace(&with, needed, 0);
                needing++;
            }
            scene_run(&without);
            for (size_t shift = 0; shift < 70; shift += 23) {
                scene_reset(&with, 6);
                run_with_workspace(&with, needed, shift);
                assert_same_outputs(&with, &without);
            }
            scene_free(&with);
            scene_free(&without);
        }
    assert_true(needing > 8);
}

/* ---- tasks by hand ---- */

enum order { FORWARDS, BACKWARDS, SHUFFLED };

static void run_phase(const lnorm_plan *plan, const lnorm_io *io, int phase, enum order order) {
    int64_t count = lnorm_plan_tasks(plan, phase);
    int64_t *number = malloc((size_t)(count + 1) * sizeof *number);
    uint64_t seed = 7;
    assert_non_null(number);
    for (int64_t i = 0; i < count; i++)
        number[i] = order == BACKWARDS ? count - 1 - i : i;
    for (int64_t i = count; order == SHUFFLED && i > 1; i--) {
        int64_t k = (int64_t)(random_bits(&seed) % (uint64_t)i), swap = number[i - 1];
        number[i - 1] = number[k];
        number[k] = swap;
    }
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(lnorm_plan_run(plan, io, phase, number[i]), LNORM_OK);
    free(number);
}

static void run_by_hand(const lnorm_plan *plan, const lnorm_io *io, enum order order) {
    assert_int_equal(lnorm_plan_check(plan, io, NULL), LNORM_OK);
    for (int phase = 0; phase < lnorm_plan_phases(plan); phase++)
        run_phase(plan, io, phase, order);
}

static void test_orders(void **state) {
    sample p;
    int64_t most[LNORM_FORWARD_MODE + 1] = {0};
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < MIXES; m++) {
            scene whole, parts;
            lnorm_plan plan;
            scene_of_sample(&whole, &p, mixes[m], DENSE, 8);
            scene_of_sample(&parts, &p, mixes[m], DENSE, 8);
            scene_run_with_workspace(&whole);
            assert_int_equal(lnorm_plan_init(&plan, &parts.op, &parts.io, NULL), LNORM_OK);
            parts.io.workspace_size = lnorm_plan_workspace(&plan);
            for (int with = 0; with < 2; with++)
                for (int order = FORWARDS; order <= SHUFFLED; order++) {
                    void *workspace = malloc(parts.io.workspace_size + 1);
                    parts.io.workspace = with ? workspace : NULL;
                    scene_reset(&parts, 8);
                    run_by_hand(&plan, &parts.io, (enum order)order);
                    assert_same_outputs(&whole, &parts);
                    free(workspace);
                }
            for (int phase = 0; phase < lnorm_plan_phases(&plan); phase++)
                if (lnorm_plan_tasks(&plan, phase) > most[p.op.pass])
                    most[p.op.pass] = lnorm_plan_tasks(&plan, phase);
            scene_free(&whole);
            scene_free(&parts);
        }
    for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++)
        assert_true(most[pass] > 1); /* or the orders would be one */
}

/* A copy of a plan, whose op, io and shapes are gone, on other memory. */
static void test_copied_plan(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++) {
        scene first, second, whole;
        lnorm_plan plan, assigned, copied;
        scene_of_sample(&first, &p, all_f32, PADDED, 9);
        scene_of_sample(&second, &p, all_f32, PADDED, 10);
        scene_of_sample(&whole, &p, all_f32, DENSE, 10);
        scene_run(&whole);
        assert_int_equal(lnorm_plan_init(&plan, &first.op, &first.io, NULL), LNORM_OK);
        assigned = plan;
        memcpy(&copied, &assigned, sizeof copied);
        memset(&plan, 0xff, sizeof plan);
        memset(&assigned, 0xff, sizeof assigned);
        scene_free(&first);
        for (int k = 0; k < LNORM_OPERANDS; k++)
            second.at[k].tensor.shape = second.at[k].tensor.strides = NULL; /* not read any more */
        run_by_hand(&copied, &second.io, FORWARDS);
        for (int k = 0; k < LNORM_OPERANDS; k++) {
            second.at[k].tensor.shape = second.at[k].shape;
            second.at[k].tensor.strides = second.at[k].strides;
        }
        assert_same_outputs(&whole, &second);
        scene_free(&second);
        scene_free(&whole);
    }
}

static void test_numbers_out_of_range(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++) {
        scene s;
        lnorm_plan plan;
        scene_of_sample(&s, &p, all_f32, DENSE, 1);
        assert_int_equal(lnorm_plan_init(&plan, &s.op, &s.io, NULL), LNORM_OK);
        int phases = lnorm_plan_phases(&plan);
        assert_in_range(phases, 1, 3);
        for (int phase = 0; phase < phases; phase++) {
            assert_int_equal(lnorm_plan_run(&plan, &s.io, phase, -1), INVALID);
            assert_int_equal(lnorm_plan_run(&plan, &s.io, phase, lnorm_plan_tasks(&plan, phase)), INVALID);
            assert_int_equal(lnorm_plan_run(&plan, &s.io, phase, INT64_MAX), INVALID);
        }
        assert_int_equal(lnorm_plan_tasks(&plan, -1), 0);
        assert_int_equal(lnorm_plan_tasks(&plan, phases), 0);
        assert_int_equal(lnorm_plan_run(&plan, &s.io, -1, 0), INVALID);
        assert_int_equal(lnorm_plan_run(&plan, &s.io, phases, 0), INVALID);
        assert_true(scene_untouched(&s));
        scene_free(&s);
    }
}

/* Runs all tasks but the first of the last phase. */
static void without_the_first(void *context, int64_t count, void (*task)(void *, int64_t), void *argument) {
    int *calls = context;
    for (int64_t i = ++*calls == 3; i < count; i++)
        task(argument, i);
}

/* Without a workspace the first task of the last phase would write the whole row. */
static void test_run_has_a_workspace(void **state) {
    enum { COLS = 1 << 17 };
    const int64_t shape[2] = {1, COLS};
    int calls = 0;
    lnorm_executor executor = LNORM_EXECUTOR_INIT;
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    float *x = malloc(COLS * sizeof *x), *y = calloc(COLS, sizeof *y);
    int64_t written = 0;
    (void)state;
    assert_true(x && y);
    for (int i = 0; i < COLS; i++)
        x[i] = i % 2 ? 1.0f : -1.0f;
    const lnorm_tensor tensors[2] = {lnorm_dense(x, LNORM_F32, 2, shape), lnorm_dense(y, LNORM_F32, 2, shape)};
    executor.context = &calls;
    executor.parallel_for = without_the_first;
    io.x = &tensors[0];
    io.y = &tensors[1];
    assert_int_equal(lnorm_run(&op, &io, &executor, NULL), LNORM_OK);
    for (int i = 0; i < COLS; i++)
        written += y[i] != 0.0f;
    assert_int_equal(calls, 3);
    assert_in_range(written, COLS / 2, COLS - 1);
    free(x);
    free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null_data),
        cmocka_unit_test(test_missing_tensor),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_overlap_of_other_views),
        cmocka_unit_test(test_interleaved),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_copied_plan),
        cmocka_unit_test(test_numbers_out_of_range),
        cmocka_unit_test(test_run_has_a_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
