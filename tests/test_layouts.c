/* The same bits for the same logical problem: layouts, offsets, axes that merge or do not, a row alone or in a batch,
 * outputs left out. */
#include "refusal.h"

#include <stdlib.h>

static const mix mixes[] = {{{2, 32, 1}, {2, 32, 1}, {2, 32, 1}},
                            {{4, 16, 1}, {2, 32, 1}, {2, 64, 1}},
                            {{2, 16, 1}, {2, 16, 1}, {2, 16, 1}},
                            {{2, 64, 1}, {2, 32, 1}, {2, 64, 1}}};
enum { MIXES = sizeof mixes / sizeof *mixes };

/* ---- layouts ---- */

static void test_layouts(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < MIXES; m++) {
            scene dense;
            scene_of_sample(&dense, &p, mixes[m], DENSE, 1);
            scene_run_with_workspace(&dense);
            for (int order = PADDED; order <= NEGATIVE; order++) {
                scene other;
                scene_of_sample(&other, &p, mixes[m], (layout)order, 1);
                scene_run_with_workspace(&other);
                assert_same_outputs(&dense, &other);
                scene_free(&other);
            }
            scene_free(&dense);
        }
}

/* One operand after the other is transposed, so that operands of different layouts meet. */
static void test_mixed_layouts(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++) {
        scene dense, other, from;
        scene_of_sample(&dense, &p, all_f32, DENSE, 2);
        scene_of_sample(&other, &p, all_f32, DENSE, 2);
        scene_of_sample(&from, &p, all_f32, TRANSPOSED, 2);
        scene_run_with_workspace(&dense);
        for (int k = 0; k < LNORM_OPERANDS; k++) {
            if (!*scene_slot(&other.io, k))
                continue;
            box swap = other.at[k];
            other.at[k] = from.at[k];
            from.at[k] = swap;
            other.at[k].tensor.shape = other.at[k].shape;
            other.at[k].tensor.strides = other.at[k].strides;
            scene_reset(&other, 2);
            scene_run_with_workspace(&other);
            assert_same_outputs(&dense, &other);
        }
        scene_free(&dense);
        scene_free(&other);
        scene_free(&from);
    }
}

/* All data one element further: other alignments. */
static void test_offsets(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < MIXES; m++) {
            scene plain, moved;
            unsigned char *memory[LNORM_OPERANDS] = {NULL};
            scene_of_sample(&plain, &p, mixes[m], DENSE, 3);
            scene_of_sample(&moved, &p, mixes[m], DENSE, 3);
            for (int k = 0; k < LNORM_OPERANDS; k++)
                if (*scene_slot(&moved.io, k)) {
                    box *b = &moved.at[k];
                    size_t size = b->tensor.dtype.bits / 8u;
                    memory[k] = malloc(b->bytes + size);
                    assert_non_null(memory[k]);
                    memcpy(memory[k] + size, b->memory, b->bytes);
                    b->tensor.data = memory[k];
                    b->tensor.byte_offset = size;
                }
            scene_run_with_workspace(&plain);
            scene_run_with_workspace(&moved);
            assert_same_outputs(&plain, &moved);
            for (int k = 0; k < LNORM_OPERANDS; k++)
                free(memory[k]);
            scene_free(&plain);
            scene_free(&moved);
        }
}

/* Strides of 0: every row of x and dy is the first one, read from one place or written out. */
static void test_repeated_rows(void **state) {
    for (int pass = LNORM_FORWARD; pass <= LNORM_DOUBLE_BACKWARD; pass++) {
        lnorm_op op = LNORM_OP_INIT;
        const int64_t strides[] = {0, 1};
        scene s, written_out;
        (void)state;
        op.pass = (lnorm_pass)pass;
        scene_make(&s, &op, SHAPE(130, 70), all_f32, DENSE, 4);
        scene_make(&written_out, &op, SHAPE(130, 70), all_f32, DENSE, 4);
        for (int k = LNORM_X; k <= LNORM_DY; k += LNORM_DY - LNORM_X) {
            if (!*scene_slot(&s.io, k))
                continue;
            s.at[k].tensor.strides = strides;
            for (int64_t i = 0; i < 130 * 70; i++)
                tensor_set(&written_out.at[k].tensor, i, tensor_get(&s.at[k].tensor, i % 70));
        }
        scene_run_with_workspace(&s);
        scene_run_with_workspace(&written_out);
        assert_same_outputs(&s, &written_out);
        scene_free(&s);
        scene_free(&written_out);
    }
}

/* ---- the same groups in other shapes ---- */

/* Layer norm over all axes of `shape` but the first, contiguous or padded, against [shape[0], the rest]. */
static void check_merged(lnorm_pass pass, mix types, int ndim, const int64_t *shape, layout order) {
    lnorm_op flat_op = LNORM_OP_INIT, op;
    int64_t flat[2] = {shape[0], 1}, axes[] = {3, 1, -2};
    scene merged, unmerged;
    for (int i = 1; i < ndim; i++)
        flat[1] *= shape[i];
    flat_op.pass = pass;
    op = flat_op;
    if (ndim == 4) { /* as axes in any order */
        op.axes = axes;
        op.axes_count = 3;
    } else {
        op.normalized_shape = shape + 1;
        op.normalized_ndim = ndim - 1;
    }
    scene_make(&merged, &flat_op, 2, flat, types, DENSE, 5);
    scene_make(&unmerged, &op, ndim, shape, types, order, 5);
    scene_run_with_workspace(&merged);
    scene_run_with_workspace(&unmerged);
    assert_same_outputs(&merged, &unmerged);
    scene_free(&merged);
    scene_free(&unmerged);
}

static void test_merged_axes(void **state) {
    const struct {
        int ndim;
        int64_t shape[4];
    } shapes[] = {{3, {7, 4, 5}}, {3, {7, 1, 20}}, {3, {20, 20, 30}}, {4, {6, 3, 4, 90}}, {4, {9, 2, 1, 3}}};
    (void)state;
    for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int order = DENSE; order <= NEGATIVE; order++)
                check_merged((lnorm_pass)pass, mixes[i % 3], shapes[i].ndim, shapes[i].shape, (layout)order);
}

/* [N, C, 1, 1] against [N, C]. */
static void test_trailing_ones(void **state) {
    const int64_t shape[] = {65, 24, 1, 1};
    (void)state;
    for (int kind = LNORM_LAYER_NORM; kind <= LNORM_BATCH_NORM; kind++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++)
            for (int m = 0; m < MIXES; m++) {
                scene two, four;
                lnorm_op op = LNORM_OP_INIT;
                op.kind = (lnorm_kind)kind;
                op.pass = (lnorm_pass)pass;
                op.groups = 6;
                scene_make(&two, &op, 2, shape, mixes[m], DENSE, 6);
                if (kind <= LNORM_RMS_NORM) {
                    op.normalized_shape = shape + 1;
                    op.normalized_ndim = 3;
                }
                scene_make(&four, &op, 4, shape, mixes[m], DENSE, 6);
                scene_run_with_workspace(&two);
                scene_run_with_workspace(&four);
                assert_same_outputs(&two, &four);
                scene_free(&two);
                scene_free(&four);
            }
}

/* Parameters that broadcast over everything but the last axis are those of the last axis. */
static void test_broadcast_is_the_default(void **state) {
    (void)state;
    for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++) {
        scene plain, broadcast;
        lnorm_op op = LNORM_OP_INIT;
        op.pass = (lnorm_pass)pass;
        scene_make(&plain, &op, SHAPE(9, 8, 40), all_f32, DENSE, 7);
        scene_make(&broadcast, &op, SHAPE(9, 8, 40), all_f32, DENSE, 7);
        broadcast.op.affine_broadcast = 1;
        scene_run_with_workspace(&plain);
        scene_run_with_workspace(&broadcast);
        assert_same_outputs(&plain, &broadcast);
        scene_free(&plain);
        scene_free(&broadcast);
    }
}

/* Adaptive layer norm: weight and bias of each sample, [B, 1, H] over [B, T, H]. Every sample is as it is by itself. */
static void check_adaptive(lnorm_pass pass, mix types) {
    enum { B = 3, T = 70, H = 40 };
    const int64_t shape[] = {B, 1, H};
    static const int parameters[] = {LNORM_WEIGHT, LNORM_BIAS, LNORM_DWEIGHT, LNORM_DBIAS};
    lnorm_op op = LNORM_OP_INIT;
    scene whole;
    op.pass = pass;
    scene_make(&whole, &op, SHAPE(B, T, H), types, DENSE, 8);
    whole.op.affine_broadcast = 1;
    for (int i = 0; i < 4; i++) {
        box *b = &whole.at[parameters[i]];
        if (!*scene_slot(&whole.io, parameters[i]))
            continue;
        box_free(b);
        box_make(b, types.parameter, 3, shape, DENSE);
        box_random(b, (uint64_t)i, -1, 2);
    }
    scene_run_with_workspace(&whole);
    for (size_t n = 0; n < B; n++) {
        scene part;
        scene_make(&part, &op, SHAPE(T, H), types, DENSE, 8);
        for (int k = 0; k < LNORM_OPERANDS; k++)
            if (*scene_slot(&part.io, k) && !part.written[k])
                memcpy(part.at[k].memory, whole.at[k].memory + n * part.at[k].bytes, part.at[k].bytes);
        scene_run(&part);
        for (int k = 0; k < LNORM_OPERANDS; k++)
            if (part.written[k])
                assert_memory_equal(part.at[k].memory, whole.at[k].memory + n * part.at[k].bytes, part.at[k].bytes);
        scene_free(&part);
    }
    scene_free(&whole);
}

static void test_adaptive(void **state) {
    (void)state;
    for (int pass = LNORM_FORWARD; pass <= LNORM_DOUBLE_BACKWARD; pass++)
        for (int m = 0; m < MIXES - (pass > LNORM_BACKWARD); m++)
            check_adaptive((lnorm_pass)pass, mixes[m]);
}

/* Given statistics in f64 do not make the arithmetic wide: dx in f64 shows every bit. */
static void test_types_of_statistics(void **state) {
    const int64_t shape[] = {9, 50};
    lnorm_op op = LNORM_OP_INIT;
    scene narrow, wide;
    box dx[2];
    (void)state;
    op.pass = LNORM_BACKWARD;
    op.statistics = LNORM_SAVED;
    scene_make(&narrow, &op, 2, shape, all_f32, DENSE, 9);
    scene_make(&wide, &op, 2, shape, mixes[1], DENSE, 9);
    for (int i = 0; i < 2; i++)
        box_make(&dx[i], LNORM_F64, 2, shape, DENSE);
    for (int64_t r = 0; r < shape[0]; r++) {
        tensor_set(wide.io.mean, r, tensor_get(narrow.io.mean, r));
        tensor_set(wide.io.rstd, r, tensor_get(narrow.io.rstd, r));
    }
    narrow.written[LNORM_DX] = 0;
    narrow.io.dx = &dx[0].tensor;
    wide.io.dx = &dx[1].tensor;
    wide.io.x = narrow.io.x;
    wide.io.dy = narrow.io.dy;
    scene_run(&narrow);
    scene_run(&wide);
    assert_true(tensor_same(&dx[0].tensor, &dx[1].tensor));
    assert_same_outputs(&narrow, &wide);
    scene_free(&narrow);
    scene_free(&wide);
    box_free(&dx[0]);
    box_free(&dx[1]);
}

/* ---- a row alone ---- */

/* s without the first axis but for its element `row`. */
static void check_row_alone(const scene *batch, const sample *p, mix types, int64_t row) {
    scene alone;
    int64_t shape[4];
    memcpy(shape, p->shape, sizeof shape);
    shape[0] = 1;
    scene_make(&alone, &p->op, p->ndim, shape, types, DENSE, 8);
    for (int k = 0; k < LNORM_OPERANDS; k++)
        if (*scene_slot(&alone.io, k) && alone.at[k].bytes * (size_t)p->shape[0] == batch->at[k].bytes)
            memcpy(alone.at[k].memory, batch->at[k].memory + alone.at[k].bytes * (size_t)row, alone.at[k].bytes);
        else if (*scene_slot(&alone.io, k))
            memcpy(alone.at[k].memory, batch->at[k].memory, alone.at[k].bytes); /* parameters */
    scene_run_with_workspace(&alone);
    for (int k = 0; k < LNORM_OPERANDS; k++)
        if (alone.written[k] && k != LNORM_DWEIGHT && k != LNORM_DBIAS)
            assert_memory_equal(alone.at[k].memory, batch->at[k].memory + alone.at[k].bytes * (size_t)row,
                                alone.at[k].bytes);
    scene_free(&alone);
}

static void test_row_alone(void **state) {
    static const int64_t cols[] = {1, 2, 3, 8, 15, 16, 17, 64, 255, 256, 257, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        for (int m = 0; m < MIXES; m++)
            for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++)
                for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++) {
                    sample p = {.op = LNORM_OP_INIT, .ndim = 2, .shape = {37, cols[i]}};
                    scene batch;
                    p.op.kind = (lnorm_kind)kind;
                    p.op.pass = (lnorm_pass)pass;
                    scene_make(&batch, &p.op, 2, p.shape, mixes[m], DENSE, 8);
                    scene_run_with_workspace(&batch);
                    for (int64_t row = 0; row < 37; row += m == 3 ? 12 : 3)
                        check_row_alone(&batch, &p, mixes[m], row);
                    scene_free(&batch);
                }
}

static void test_sample_alone(void **state) {
    (void)state;
    for (int kind = LNORM_GROUP_NORM; kind <= LNORM_INSTANCE_NORM; kind++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++) {
            sample p = {.op = LNORM_OP_INIT, .ndim = 4, .shape = {5, 6, 7, 8}};
            scene batch;
            p.op.kind = (lnorm_kind)kind;
            p.op.pass = (lnorm_pass)pass;
            p.op.groups = 3;
            scene_make(&batch, &p.op, 4, p.shape, all_f32, DENSE, 8);
            scene_run_with_workspace(&batch);
            for (int64_t n = 0; n < 5; n++)
                check_row_alone(&batch, &p, all_f32, n);
            scene_free(&batch);
        }
}

/* ---- outputs left out ---- */

static void test_subsets_of_outputs(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < MIXES; m += MIXES - 1) {
            scene all, some;
            int outputs[LNORM_OPERANDS], count = 0;
            scene_of_sample(&all, &p, mixes[m], DENSE, 9);
            scene_of_sample(&some, &p, mixes[m], DENSE, 9);
            scene_run_with_workspace(&all);
            for (int k = 0; k < LNORM_OPERANDS; k++)
                if (all.written[k])
                    outputs[count++] = k;
            for (unsigned set = 0; set < 1u << count; set++) {
                for (int k = 0; k < count; k++) {
                    int wanted = set >> k & 1;
                    *scene_slot(&some.io, outputs[k]) = wanted ? &some.at[outputs[k]].tensor : NULL;
                    some.written[outputs[k]] = (unsigned char)wanted;
                }
                scene_reset(&some, 9);
                scene_run_with_workspace(&some);
                assert_same_outputs(&all, &some);
            }
            scene_free(&all);
            scene_free(&some);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_mixed_layouts),
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_repeated_rows),
        cmocka_unit_test(test_merged_axes),
        cmocka_unit_test(test_trailing_ones),
        cmocka_unit_test(test_broadcast_is_the_default),
        cmocka_unit_test(test_adaptive),
        cmocka_unit_test(test_types_of_statistics),
        cmocka_unit_test(test_row_alone),
        cmocka_unit_test(test_sample_alone),
        cmocka_unit_test(test_subsets_of_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
