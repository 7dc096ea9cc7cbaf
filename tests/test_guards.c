/* No access past any tensor, whatever its length: every number of columns from 1 to 300 and some more, every operand
 * between two pages that fault, once beginning at the one and once ending at the other, on every instruction set, by the
 * engine that the plan takes; the bits are compared with the reference's as well. Columns are the last axis of 3 rows
 * (rows kernels), the first of 5 (columns kernels), or the last one with gaps between elements (the general form). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel_case.h"

enum { MOST = 300, LONGER = 3, ROWS = 3, STRIP = 5 };

typedef struct setting {
    lnorm_dtype dtype;
    int fast, first; /* first: normalised over the first axis */
    layout order;
} setting;

/* mean and rstd: as outputs, or given. f64 ones are the kernels' to write and read, others are converted. */
static void add_statistics(kernel_case *c, lnorm_kind kind, lnorm_dtype dtype, int64_t groups) {
    for (int i = kind == LNORM_RMS_NORM; i < 2; i++) {
        const enum lnorm_operand operand = i ? LNORM_RSTD : LNORM_MEAN;
        case_add(c, operand, dtype, 1, &groups, LAYOUT_DENSE);
        if (c->op.statistics == LNORM_SAVED)
            case_fill_flavour(c, operand, i ? 2 : 0);
    }
}

/* Forward with every output, or backward with every gradient; all of them own memory. */
static void begin(kernel_case *c, setting s, lnorm_pass pass, int64_t cols, int edge) {
    static const int64_t axis = 0;
    const int64_t shape[2] = {s.first ? cols : ROWS, s.first ? STRIP : cols}, groups = s.first ? STRIP : ROWS;
    const lnorm_dtype statistic = s.dtype.bits == 64 || cols / 2 % 2 ? LNORM_F64 : LNORM_F32;
    const lnorm_kind kind = cols % 2 ? LNORM_LAYER_NORM : LNORM_RMS_NORM;
    case_begin(c, (uint64_t)cols * 8 + (uint64_t)edge, kind, pass);
    c->edge = edge;
    c->op.arithmetic = s.fast ? LNORM_FAST : LNORM_ACCURATE;
    if (s.first) {
        c->op.axes = &axis;
        c->op.axes_count = 1;
    }
    case_add(c, LNORM_X, s.dtype, 2, shape, s.order);
    case_add(c, LNORM_WEIGHT, s.dtype, 1, &cols, LAYOUT_DENSE);
    case_fill(c, LNORM_X, 0, 0);
    case_fill_flavour(c, LNORM_WEIGHT, 0);
    if (kind == LNORM_LAYER_NORM) {
        case_add(c, pass == LNORM_FORWARD ? LNORM_BIAS : LNORM_DBIAS, s.dtype, 1, &cols, LAYOUT_DENSE);
        case_fill_flavour(c, pass == LNORM_FORWARD ? LNORM_BIAS : LNORM_DBIAS, 0);
    }
    if (pass == LNORM_FORWARD) {
        case_add(c, LNORM_Y, s.dtype, 2, shape, s.order);
        add_statistics(c, kind, statistic, groups);
        return;
    }
    if (cols / 4 % 2) {
        c->op.statistics = LNORM_SAVED;
        add_statistics(c, kind, statistic, groups);
    }
    case_add(c, LNORM_DY, s.dtype, 2, shape, s.order);
    case_fill(c, LNORM_DY, 0, 0);
    case_add(c, LNORM_DX, s.dtype, 2, shape, s.order);
    case_add(c, LNORM_DWEIGHT, s.dtype, 1, &cols, LAYOUT_DENSE);
}

static void check(setting s, lnorm_pass pass, int64_t cols, int edge) {
    kernel_case c;
    lnorm_plan plan;
    lnorm_error error = LNORM_ERROR_INIT;
    begin(&c, s, pass, cols, edge);
    if (lnorm_plan_init(&plan, &c.op, &c.io, &error))
        fail_msg("%s", error.message);
    case_expect(&c);
    if (!case_agrees_everywhere(&c, ((const lnorm_plan_form *)(const void *)&plan)->engine))
        fail_msg("%d bits, code %d, fast %d, first %d, %lld columns, edge %d", s.dtype.bits, s.dtype.code, s.fast,
                 s.first, (long long)cols, edge);
    case_end(&c);
}

/* The longer ones: what whole runs leave is two or four rows of one, which the fast arithmetic reads in place. */
static int64_t length(int i) {
    static const int64_t longer[LONGER] = {320, 384, 896};
    return i <= MOST ? i : longer[i - MOST - 1];
}

/* A length meets one in `share` of the element types; 1: all. (The columns kernels and the general form take elements
 * of all types the same way; only their loads and stores differ.) */
static void check_all(int first, layout order, int fast, int share) {
    const lnorm_dtype dtypes[] = {LNORM_F32, LNORM_F16, LNORM_BF16, LNORM_F64};
    for (int type = 0; type < (fast ? 3 : 4); type++)
        for (int i = 1 + type % share; i <= MOST + LONGER; i += share)
            for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++)
                for (int edge = 1; edge <= 2; edge++) {
                    setting s = {dtypes[type], fast, first, order};
                    check(s, (lnorm_pass)pass, length(i), edge);
                }
}

static void test_rows(void **state) {
    (void)state;
    check_all(0, LAYOUT_DENSE, 0, 1);
}

static void test_rows_fast(void **state) {
    (void)state;
    check_all(0, LAYOUT_DENSE, 1, 1);
}

static void test_columns(void **state) {
    (void)state;
    check_all(1, LAYOUT_DENSE, 0, 2);
}

static void test_general(void **state) {
    (void)state;
    check_all(0, LAYOUT_SCATTERED, 0, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_rows_fast),
                                       cmocka_unit_test(test_columns), cmocka_unit_test(test_general)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
