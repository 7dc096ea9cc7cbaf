/* The reference against MPFR, on random operations whose inputs are hard on purpose.
 * LNORM_EXACT_CASES=n runs n times as many. */
#include "access.h"
#include "exact_check.h"
#include "exact_draw.h"
#include "exact_identities.h"
#include "reference.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Cases per operation, pass and element type; two passes or four make thousands per operation and type. */
enum { CASES = 1000 };

static int64_t cases_to_run(void) {
    const char *factor = getenv("LNORM_EXACT_CASES");
    int64_t times = factor ? strtoll(factor, NULL, 10) : 1;
    return CASES * (times > 0 ? times : 1);
}

static void run_reference(const lnorm_problem *problem, const lnorm_data *data) {
    const lnorm_engine *engine = &lnorm_engine_definition;
    for (int phase = 0; phase < engine->phases(problem); phase++)
        for (int64_t task = 0, count = lnorm_tasks(engine, problem, phase); task < count; task++)
            engine->run(problem, data, NULL, phase, task);
}

/* With workspace or without. Without, every entry of dweight prepares its groups anew: for short groups only. */
static void run_case(exact_case *c, int with_workspace) {
    size_t bytes = lnorm_engine_definition.workspace(&c->problem);
    void *memory = with_workspace || c->size > 64 ? malloc(lnorm_padded_workspace(bytes) + 1) : NULL;
    c->data.workspace = memory ? lnorm_align_workspace(memory, bytes) : NULL;
    run_reference(&c->problem, &c->data);
    c->data.workspace = NULL;
    free(memory);
}

/* -- What was drawn ------------------------------------------------------------------------------------------------ */

enum feature {
    PATH_A, PATH_B, KAPPA_BELOW, KAPPA_ABOVE, CONSTANT, UNBOUNDED, NO_GROUPS, NO_ELEMENTS, SIZE_16, SIZE_17, SIZE_256,
    SIZE_257, SIZE_65537, ROWS_65, MIXED, NO_AFFINE, WEIGHT_ONLY, BIAS_ONLY, BOTH, PER_GROUP_WEIGHT, OFFSET, ACCUMULATE,
    MOMENTUM, CUMULATIVE, SAVED, GIVEN_RSTD, GIVEN_VARIANCE, ZERO_EPS, MINUS_ZERO, MINUS_ZERO_WITH_BIAS, FEATURES
};

static int64_t seen[LNORM_ELEMENT_ABSENT][FEATURES];

static void note(const exact_case *c, const exact *e) {
    const lnorm_problem *p = &c->problem;
    int weight = lnorm_has(p, LNORM_WEIGHT), bias = lnorm_has(p, LNORM_BIAS), forward = p->pass == LNORM_FORWARD;
    int running = lnorm_has(p, LNORM_RUNNING_MEAN), given = p->statistics == LNORM_CONSTANT;
    const int now[FEATURES] = {
        [UNBOUNDED] = c->unbounded, [NO_GROUPS] = !c->groups, [NO_ELEMENTS] = !c->size, [SIZE_16] = c->size == 16,
        [SIZE_17] = c->size == 17, [SIZE_256] = c->size == 256, [SIZE_257] = c->size == 257,
        [SIZE_65537] = c->size >= 65537, [ROWS_65] = c->groups >= 65,
        [MIXED] = weight && p->operand[LNORM_WEIGHT].element != p->operand[LNORM_X].element,
        [NO_AFFINE] = forward && !weight && !bias, [WEIGHT_ONLY] = forward && weight && !bias,
        [BIAS_ONLY] = forward && !weight && bias, [BOTH] = forward && weight && bias,
        [PER_GROUP_WEIGHT] = weight && (p->weight_axes & ~p->reduced), [OFFSET] = weight && p->weight_offset,
        [ACCUMULATE] = p->accumulate && p->pass == LNORM_BACKWARD, [MOMENTUM] = running && !c->op.batches,
        [CUMULATIVE] = running && c->op.batches, [SAVED] = p->statistics == LNORM_SAVED,
        [GIVEN_RSTD] = given && lnorm_has(p, LNORM_RSTD), [GIVEN_VARIANCE] = given && lnorm_has(p, LNORM_VARIANCE),
        [ZERO_EPS] = p->eps == 0.0};
    int64_t *counts = seen[p->operand[LNORM_X].element];
    for (int k = 0; k < FEATURES; k++)
        counts[k] += now[k];
    for (int64_t group = 0; group < e->groups; group++) {
        counts[CONSTANT] += c->size > 1 && e->constant[group];
        counts[KAPPA_BELOW] += e->kappa[group] > 62 && e->kappa[group] <= 64;
        counts[KAPPA_ABOVE] += e->kappa[group] > 64 && e->kappa[group] < 66.5L;
    }
}

static void everything_was_drawn(void **state) {
    (void)state;
    for (int element = 0; element < LNORM_ELEMENT_ABSENT; element++)
        for (int k = 0; k < FEATURES; k++)
            if (!seen[element][k] && (element != LNORM_ELEMENT_F64 || (k > PATH_B && k < MINUS_ZERO)))
                fail_msg("no case of feature %d with type %d", k, element);
}

/* The path follows from N and kappa but within what the decision's own rounding can move kappa; it is '-' where
 * there is no choice. A group with a NaN fails the comparison. */
static void check_paths(const exact_case *c, const exact *e) {
    int computed = c->problem.statistics == LNORM_COMPUTED && c->problem.center;
    for (int64_t group = 0; group < e->groups && !c->problem.wide; group++) {
        char path = lnorm_reference_path(&c->problem, &c->data, group);
        long double kappa = e->kappa[group];
        if (!computed) {
            assert_int_equal(path, '-');
            continue;
        }
        if (c->size <= EXACT_SHORT || kappa > EXACT_KAPPA * (1 + 0x1p-30L))
            assert_int_equal(path, 'B');
        else if (kappa < EXACT_KAPPA * (1 - 0x1p-30L))
            assert_int_equal(path, 'A');
        seen[c->problem.operand[LNORM_X].element][path == 'A' ? PATH_A : PATH_B]++;
    }
}

/* -- Published bounds ---------------------------------------------------------------------------------------------- */

/* docs/arithmetic.md, section 19: before its last rounding an output is within (a*E + b + C)*u of its scale, where E is
 * one more than the longest chain that N allows, and C the longest chain of sums of dweight and dbias. Every running
 * bound has to be below. */
enum form { LONG_ROWS, SHORT_ROWS, RMS_ROWS, SAVED_ROWS, CONSTANT_ROWS, FORMS };

static const struct published {
    enum lnorm_operand output;
    long double a[FORMS], b[FORMS];
} published[] = {{LNORM_Y, {105.2L, 1.9L, 0.5L, 0, 0}, {40, 14, 7, 5, 7.5L}},
                 {LNORM_MEAN, {1, 1, 0, 0, 0}, {0, 0, 0, 0, 0}},
                 {LNORM_RSTD, {97.1L, 0.7L, 0.5L, 0, 0}, {35, 5, 2.5L, 0, 0}},
                 {LNORM_DX, {308.5L, 5.5L, 2.5L, 1, 0}, {115, 33, 17, 10, 5.5L}},
                 {LNORM_DWEIGHT, {105.2L, 1.9L, 0.5L, 0, 0}, {38, 12, 5, 3, 5.5L}},
                 {LNORM_DBIAS, {0}, {0}}};

static enum form form_of(const lnorm_problem *problem, int64_t size) {
    if (problem->statistics != LNORM_COMPUTED)
        return problem->statistics == LNORM_SAVED ? SAVED_ROWS : CONSTANT_ROWS;
    return !problem->center ? RMS_ROWS : size > EXACT_SHORT ? LONG_ROWS : SHORT_ROWS;
}

/* ceil(log2(ceil(count/unit))) */
static int levels_of(int64_t count, int64_t unit) {
    int levels = 0;
    while ((unit << levels) < count)
        levels++;
    return levels;
}

/* C, with the addition of `accumulate`. */
static long double chain_of_columns(const lnorm_problem *problem, uint32_t own) {
    int64_t inner = 1, outer = 1;
    for (int a = 0; a < problem->axes; a++)
        if (!(own >> a & 1) && problem->reduced >> a & 1)
            inner *= problem->extent[a];
        else if (!(own >> a & 1))
            outer *= problem->extent[a];
    return (inner > 1 ? 19 + levels_of(inner, EXACT_BLOCK) : 0) + 63 + levels_of(outer, EXACT_ROW_BLOCK) +
           problem->accumulate;
}

static void check_published_bounds(const exact_case *c, const exact *e) {
    const enum form form = form_of(&c->problem, c->size);
    const long double chain = 20 + levels_of(c->size, EXACT_BLOCK);
    if (c->problem.wide || c->problem.fast || c->unbounded || c->problem.pass > LNORM_BACKWARD)
        return;
    for (size_t k = 0; k < sizeof published / sizeof *published; k++) {
        const exact_result *result = &e->result[published[k].output];
        long double bound = published[k].a[form] * chain + published[k].b[form];
        if (published[k].output == LNORM_DWEIGHT || published[k].output == LNORM_DBIAS)
            bound += chain_of_columns(&c->problem, result->axes);
        for (int64_t i = 0; i < result->count; i++)
            if (isfinite(result->error[i]) &&
                result->error[i] > bound * result->scale[i] * (1 + 0x1p-30L) + 64 * EXACT_UNDERFLOW)
                fail_msg("%s[%lld]: derived bound %Lg, published %Lg (form %d, N %lld, M %lld)",
                         lnorm_operand_name(published[k].output), (long long)i, result->error[i] / result->scale[i],
                         bound, (int)form, (long long)c->size, (long long)c->groups);
    }
}

/* -- Constant rows ------------------------------------------------------------------------------------------------- */

/* y of an element that is its group's mean, in plain f64: the zero that d = x - mean gives (-0 only for x = -0, as
 * the mean of zeros is +0), times the weight, plus the bias. Its value and, where it is 0, its sign are exact. The
 * wide arithmetic knows one zero, +0. */
static double constant_y(const lnorm_problem *problem, const lnorm_data *data, int64_t i) {
    enum lnorm_operand operands[] = {LNORM_X, LNORM_WEIGHT, LNORM_BIAS};
    double value[3] = {0.0, 1.0, 0.0};
    uint32_t all = (1u << problem->axes) - 1;
    for (int k = 0; k < 3; k++)
        if (lnorm_has(problem, operands[k]))
            value[k] = exact_load((enum lnorm_element)problem->operand[operands[k]].element, data->at[operands[k]],
                                  exact_offset(problem, operands[k], all, i));
    double y = value[0] == 0.0 ? value[0] : 0.0;
    if (lnorm_has(problem, LNORM_WEIGHT))
        y = y * (problem->weight_offset ? 1.0 + value[1] : value[1]);
    if (lnorm_has(problem, LNORM_BIAS))
        y = y + value[2];
    return problem->wide && y == 0.0 ? 0.0 : y;
}

static void check_signs(const exact_case *c, const exact *e) {
    const lnorm_problem *problem = &c->problem;
    uint32_t all = (1u << problem->axes) - 1;
    if (problem->statistics != LNORM_COMPUTED || !lnorm_has(problem, LNORM_Y))
        return;
    for (int64_t i = 0; i < e->result[LNORM_Y].count; i++) {
        int64_t group = 0, rest = i, place = 1;
        for (int a = problem->axes; a-- > 0; rest /= problem->extent[a])
            if (!(problem->reduced >> a & 1)) {
                group += place * (rest % problem->extent[a]);
                place *= problem->extent[a];
            }
        double x = exact_load((enum lnorm_element)problem->operand[LNORM_X].element, c->data.at[LNORM_X],
                              exact_offset(problem, LNORM_X, all, i));
        if (!e->constant[group] || (!problem->center && x != 0.0))
            continue;
        double got = exact_load((enum lnorm_element)problem->operand[LNORM_Y].element, c->data.at[LNORM_Y],
                                exact_offset(problem, LNORM_Y, all, i));
        double due = constant_y(problem, &c->data, i);
        if (signbit(got) != signbit(due) && !isnan(due))
            fail_msg("sign of y[%lld]: got %a, expected that of %a (wide %d)", (long long)i, got, due, problem->wide);
        int feature = lnorm_has(problem, LNORM_BIAS) ? MINUS_ZERO_WITH_BIAS : MINUS_ZERO;
        if (signbit(x) && signbit(due) && due == 0.0)
            seen[problem->operand[LNORM_X].element][feature]++;
    }
}

/* -- Random cases -------------------------------------------------------------------------------------------------- */

static void check_case(lnorm_arithmetic arithmetic, lnorm_kind kind, lnorm_pass pass, enum lnorm_element element,
                       uint64_t seed) {
    exact_random random = {seed};
    exact_case c;
    exact_draw(&c, &random, arithmetic, kind, pass, element);
    exact *e = exact_compute(&c.problem, &c.data);
    run_case(&c, random_chance(&random, 50));
    int64_t refused = exact_check(&c.problem, &c.data, e);
    if (refused)
        fail_msg("%lld results too far off: arithmetic %d, kind %d, pass %d, type %d, seed %llu: N %lld, M %lld, "
                 "eps %g, statistics %d", (long long)refused, (int)arithmetic, (int)kind, (int)pass, (int)element,
                 (unsigned long long)seed, (long long)c.size, (long long)c.groups, c.problem.eps, c.problem.statistics);
    check_published_bounds(&c, e);
    note(&c, e);
    check_paths(&c, e);
    check_signs(&c, e);
    exact_free(e);
    exact_case_free(&c);
}

static void check_operation(lnorm_kind kind, int passes) {
    for (int pass = 0; pass < passes; pass++)
        for (int element = 0; element < LNORM_ELEMENT_ABSENT; element++)
            for (int64_t i = 0, count = cases_to_run(); i < count; i++)
                check_case(LNORM_ACCURATE, kind, (lnorm_pass)pass, (enum lnorm_element)element,
                           (uint64_t)i << 16 | (uint64_t)((int)kind << 8 | pass << 4 | element));
}

static void layer_norm_is_exact_enough(void **state) {
    (void)state;
    check_operation(LNORM_LAYER_NORM, 4);
}

static void rms_norm_is_exact_enough(void **state) {
    (void)state;
    check_operation(LNORM_RMS_NORM, 4);
}

static void group_norm_is_exact_enough(void **state) {
    (void)state;
    check_operation(LNORM_GROUP_NORM, 2);
}

static void instance_norm_is_exact_enough(void **state) {
    (void)state;
    check_operation(LNORM_INSTANCE_NORM, 2);
}

static void batch_norm_is_exact_enough(void **state) {
    (void)state;
    check_operation(LNORM_BATCH_NORM, 2);
}

static void fast_is_exact_enough(void **state) {
    (void)state;
    for (int kind = LNORM_LAYER_NORM; kind <= LNORM_BATCH_NORM; kind++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++)
            for (int element = LNORM_ELEMENT_F32; element < LNORM_ELEMENT_ABSENT; element++)
                for (int64_t i = 0, count = cases_to_run() / 2; i < count; i++)
                    check_case(LNORM_FAST, (lnorm_kind)kind, (lnorm_pass)pass, (enum lnorm_element)element,
                               (uint64_t)i << 16 | (uint64_t)(1 << 12 | kind << 8 | pass << 4 | element));
}

/* -- Fixed rows ---------------------------------------------------------------------------------------------------- */

/* A dense layer norm of one f32 row. */
typedef struct one_row {
    lnorm_op op;
    lnorm_io io;
    lnorm_tensor x, y;
    int64_t shape[1];
    lnorm_problem problem;
    lnorm_data data;
} one_row;

static void one_row_init(one_row *row, const float *x, float *y, int64_t n) {
    lnorm_error error = LNORM_ERROR_INIT;
    *row = (one_row){.op = LNORM_OP_INIT, .io = LNORM_IO_INIT, .shape = {n}};
    row->x = lnorm_dense(x, LNORM_F32, 1, row->shape);
    row->y = lnorm_dense(y, LNORM_F32, 1, row->shape);
    row->io.x = &row->x;
    row->io.y = &row->y;
    assert_int_equal(lnorm_problem_init(&row->problem, &row->op, &row->io, &error), LNORM_OK);
    lnorm_problem_data(&row->problem, &row->io, 0, &row->data);
}

/* 7 and 9 in turn: mean 8, variance 1, every operation exact, and kappa = 64 is still path A. A 7 that is one step
 * higher lifts kappa above 64 (a larger mean, a smaller spread), one step lower keeps it below. N = 16 has no path
 * A. */
static void kappa_of_64_is_path_a(void **state) {
    (void)state;
    float x[34], y[34];
    one_row row;
    for (int i = 0; i < 34; i++)
        x[i] = i % 2 ? 9.0f : 7.0f;
    const struct {
        float first;
        int64_t n;
        char path;
    } cases[] = {{7.0f, 18, 'A'},
                 {7.0f, 34, 'A'},
                 {7.0f + 0x1p-21f, 34, 'B'},
                 {7.0f - 0x1p-21f, 34, 'A'},
                 {7.0f, 16, 'B'}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        x[0] = cases[k].first;
        one_row_init(&row, x, y, cases[k].n);
        assert_int_equal(lnorm_reference_path(&row.problem, &row.data, 0), cases[k].path);
    }
}

/* -- [N, C, 1, 1] against [N, C] ----------------------------------------------------------------------------------- */

enum { SAMPLES = 5, CHANNELS = 12 };

/* The outputs of one operation on x of the first ndim extents of [SAMPLES, CHANNELS, 1, 1]; x, weight and so on
 * follow from the seed. Returns the number of bytes. */
static size_t run_on_channels(const lnorm_op *op, int ndim, lnorm_dtype dtype, uint64_t seed, char *bytes) {
    static const int64_t shape[4] = {SAMPLES, CHANNELS, 1, 1};
    static const int64_t affine[1] = {CHANNELS};
    enum { COUNT = SAMPLES * CHANNELS };
    char x[8 * COUNT], dy[8 * COUNT], weight[8 * CHANNELS], bias[8 * CHANNELS];
    size_t size = dtype.bits / 8u;
    exact_random random = {seed};
    enum lnorm_element element = dtype.code == 4    ? LNORM_ELEMENT_BF16
                                 : dtype.bits == 64 ? LNORM_ELEMENT_F64
                                 : dtype.bits == 32 ? LNORM_ELEMENT_F32
                                                    : LNORM_ELEMENT_F16;
    for (int i = 0; i < COUNT; i++) {
        lnorm_store(element, x, i, 3.0 + random_unit(&random));
        lnorm_store(element, dy, i, random_unit(&random));
        lnorm_store(element, weight, i % CHANNELS, random_unit(&random));
        lnorm_store(element, bias, i % CHANNELS, random_unit(&random));
    }
    const lnorm_tensor inputs[] = {lnorm_dense(x, dtype, ndim, shape), lnorm_dense(weight, dtype, 1, affine),
                                   lnorm_dense(bias, dtype, 1, affine), lnorm_dense(dy, dtype, ndim, shape)};
    const lnorm_tensor outputs[] = {lnorm_dense(bytes, dtype, ndim, shape),
                                    lnorm_dense(bytes + size * COUNT, dtype, 1, affine),
                                    lnorm_dense(bytes + size * (COUNT + CHANNELS), dtype, 1, affine)};
    lnorm_io io = LNORM_IO_INIT;
    io.x = &inputs[0];
    io.weight = &inputs[1];
    io.bias = &inputs[2];
    io.dy = &inputs[3];
    io.y = io.dx = &outputs[0];
    io.dweight = &outputs[1];
    io.dbias = &outputs[2];
    lnorm_problem problem;
    lnorm_data data;
    lnorm_error error = LNORM_ERROR_INIT;
    if (lnorm_problem_init(&problem, op, &io, &error))
        fail_msg("%s", error.message);
    lnorm_problem_data(&problem, &io, 0, &data);
    run_reference(&problem, &data);
    return size * (op->pass == LNORM_FORWARD ? COUNT : COUNT + 2 * CHANNELS);
}

static void axes_of_one_element_change_no_bit(void **state) {
    (void)state;
    static const int64_t channel_axis[1] = {1};
    const lnorm_dtype dtypes[] = {LNORM_F64, LNORM_F32, LNORM_F16, LNORM_BF16};
    char flat[8 * (SAMPLES + 2) * CHANNELS], square[sizeof flat];
    for (int kind = LNORM_LAYER_NORM; kind <= LNORM_BATCH_NORM; kind++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++)
            for (uint64_t seed = 0; seed < 40; seed++) {
                lnorm_op op = LNORM_OP_INIT;
                op.kind = (lnorm_kind)kind;
                op.pass = (lnorm_pass)pass;
                op.groups = 3;
                if (kind == LNORM_LAYER_NORM || kind == LNORM_RMS_NORM) {
                    op.axes = channel_axis;
                    op.axes_count = 1;
                }
                size_t size = run_on_channels(&op, 2, dtypes[seed % 4], seed, flat);
                run_on_channels(&op, 4, dtypes[seed % 4], seed, square);
                assert_memory_equal(flat, square, size);
            }
}

/* -- The comparison can fail --------------------------------------------------------------------------------------- */

/* Every result of a case moved by 2 ulp of its scale: refused. Not where the error before the last rounding shows
 * (an f64 of the narrow arithmetic may be many ulps off) nor at the ends of the type. Returns how many were tried. */
static int64_t refuse_moved_results(const exact_case *c, const exact *e) {
    int64_t tried = 0;
    for (int k = 0; k < LNORM_OPERANDS; k++) {
        enum lnorm_operand operand = (enum lnorm_operand)k;
        enum lnorm_element element = (enum lnorm_element)c->problem.operand[k].element;
        const exact_result *result = &e->result[k];
        if (element == LNORM_ELEMENT_F64 && !c->problem.wide)
            continue;
        for (int64_t i = 0; i < result->count; i++) {
            double got = exact_load(element, c->data.at[k], exact_offset(&c->problem, operand, result->axes, i));
            double step = 2 * (double)exact_spacing(element, result->scale[i]), moved = got + step, stored;
            lnorm_store(element, &stored, 0, moved);
            if (!mpfr_number_p(result->value[i]) || !isfinite(got) || exact_load(element, &stored, 0) != moved ||
                moved - got != step || result->scale[i] > 0x1p1000L)
                continue;
            assert_true(exact_accepts(&c->problem, operand, got, result, i));
            if (exact_accepts(&c->problem, operand, moved, result, i))
                fail_msg("%s[%lld], type %d: %a is taken for %a", lnorm_operand_name(operand), (long long)i,
                         (int)element, moved, got);
            tried++;
        }
    }
    return tried;
}

static void results_that_are_off_by_2_ulp_are_refused(void **state) {
    (void)state;
    for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++)
        for (int element = 0; element < LNORM_ELEMENT_ABSENT; element++) {
            int64_t tried = 0;
            for (uint64_t seed = 0; seed < 30; seed++) {
                exact_random random = {seed << 8 | (uint64_t)(pass << 4 | element)};
                exact_case c;
                exact_draw(&c, &random, LNORM_ACCURATE, LNORM_LAYER_NORM, (lnorm_pass)pass,
                           (enum lnorm_element)element);
                exact *e = exact_compute(&c.problem, &c.data);
                run_case(&c, 1);
                tried += refuse_moved_results(&c, e);
                exact_free(e);
                exact_case_free(&c);
            }
            assert_true(tried > 100);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_that_are_off_by_2_ulp_are_refused),
        cmocka_unit_test(exact_formulas_are_derivatives),
        cmocka_unit_test(kappa_of_64_is_path_a),
        cmocka_unit_test(axes_of_one_element_change_no_bit),
        cmocka_unit_test(layer_norm_is_exact_enough),
        cmocka_unit_test(rms_norm_is_exact_enough),
        cmocka_unit_test(group_norm_is_exact_enough),
        cmocka_unit_test(instance_norm_is_exact_enough),
        cmocka_unit_test(batch_norm_is_exact_enough),
        cmocka_unit_test(fast_is_exact_enough),
        cmocka_unit_test(everything_was_drawn),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    exact_print_table();
    mpfr_free_cache();
    return failed;
}
