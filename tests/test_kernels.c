/* Every instruction set that runs here against the reference, bit for bit (any two NaN are equal): contiguous rows, the
 * general form, rounding. The memory of every operand borders on a page that faults, and gaps between its elements are
 * compared, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel_case.h"
#include "kernel_columns.h"
#include "kernel_long.h"
#include "kernel_runs.h"
#include "kernel_streamed.h"
#include "kernel_wide.h"
#include "kernels/statistics.h"
#include "stream.h"

#include <math.h>
#include <stdlib.h>

/* -- Contiguous rows ---------------------------------------------------------------------------------------------- */

/* Of x, y, dy and dx; of weight and bias. */
enum { MIXES = 9 };

static const lnorm_dtype *mix_dtypes(int mix) {
    static const lnorm_dtype dtypes[MIXES][2] = {{{2, 32, 1}, {2, 32, 1}},
                                                         {{2, 16, 1}, {2, 16, 1}},
                                                         {{2, 16, 1}, {2, 32, 1}},
                                                         {{4, 16, 1}, {4, 16, 1}},
                                                         {{4, 16, 1}, {2, 32, 1}},
                                                         {{2, 32, 1}, {2, 16, 1}},
                                                         {{2, 32, 1}, {4, 16, 1}},
                                                         {{2, 16, 1}, {4, 16, 1}},
                                                         {{4, 16, 1}, {2, 16, 1}}};
    return dtypes[mix];
}

typedef struct rows_shape {
    int mix;
    lnorm_kind kind;
    int64_t rows, cols;
    int wild; /* see case_fill */
    int fast;
} rows_shape;

static void begin_rows(kernel_case *c, rows_shape s, lnorm_pass pass) {
    const lnorm_dtype *dtypes = mix_dtypes(s.mix);
    int64_t shape[2] = {s.rows, s.cols};
    int64_t variant = s.fast * 1000000 + s.mix * 8 + (int)s.kind * 4 + (int)pass * 2 + s.wild;
    case_begin(c, (uint64_t)(s.cols * 1000 + s.rows * 40 + variant), s.kind, pass);
    case_add(c, LNORM_X, dtypes[0], 2, shape, roll_one_in(&c->d, 2) ? LAYOUT_DENSE : LAYOUT_PITCHED);
    case_fill(c, LNORM_X, 0, s.wild);
    if (!roll_one_in(&c->d, 5)) {
        case_add(c, LNORM_WEIGHT, dtypes[1], 1, &shape[1], LAYOUT_DENSE);
        case_fill_flavour(c, LNORM_WEIGHT, roll_one_in(&c->d, 4) ? 9 : 0);
    }
    c->op.eps = roll_one_in(&c->d, 4) ? 0.0 : 1e-5;
    c->op.arithmetic = s.fast ? LNORM_FAST : LNORM_ACCURATE;
}

static void check_rows(kernel_case *c, rows_shape s) {
    case_expect(c);
    assert_true(lnorm_engine_rows.takes(&c->problem));
    if (!case_agrees_everywhere(c, &lnorm_engine_rows) ||
        (s.cols < 300 && !c->problem.fast && !case_agrees_everywhere(c, &lnorm_engine_general)))
        fail_msg("mix %d, kind %d, %lld x %lld, fast %d", s.mix, (int)s.kind, (long long)s.rows, (long long)s.cols,
                 s.fast);
}

static void forward_rows(rows_shape s) {
    const lnorm_dtype *dtypes = mix_dtypes(s.mix), f64 = LNORM_F64, f32 = LNORM_F32;
    int64_t shape[2] = {s.rows, s.cols};
    kernel_case c;
    begin_rows(&c, s, LNORM_FORWARD);
    if (s.kind == LNORM_LAYER_NORM && !roll_one_in(&c.d, 5)) {
        case_add(&c, LNORM_BIAS, dtypes[1], 1, &shape[1], LAYOUT_DENSE);
        case_fill_flavour(&c, LNORM_BIAS, roll_one_in(&c.d, 4) ? 5 : 0);
    }
    if (s.kind == LNORM_LAYER_NORM && roll_one_in(&c.d, 2))
        case_add(&c, LNORM_MEAN, f64, 1, shape, LAYOUT_SCATTERED);
    if (roll_one_in(&c.d, 2))
        case_add(&c, LNORM_RSTD, roll_one_in(&c.d, 2) ? f64 : f32, 1, shape, LAYOUT_SCATTERED);
    if (roll_one_in(&c.d, 3))
        case_alias(&c, LNORM_Y, LNORM_X);
    else if (!roll_one_in(&c.d, 10))
        case_add(&c, LNORM_Y, dtypes[0], 2, shape, roll_one_in(&c.d, 2) ? LAYOUT_DENSE : LAYOUT_PITCHED);
    check_rows(&c, s);
    case_end(&c);
}

static void backward_rows(rows_shape s) {
    const lnorm_dtype *dtypes = mix_dtypes(s.mix), f32 = LNORM_F32, f64 = LNORM_F64;
    int64_t shape[2] = {s.rows, s.cols};
    kernel_case c;
    begin_rows(&c, s, LNORM_BACKWARD);
    case_add(&c, LNORM_DY, dtypes[0], 2, shape, roll_one_in(&c.d, 2) ? LAYOUT_DENSE : LAYOUT_PITCHED);
    case_fill(&c, LNORM_DY, 0, s.wild);
    c.op.accumulate = roll_one_in(&c.d, 3);
    if (roll_one_in(&c.d, 3)) {
        c.op.statistics = LNORM_SAVED;
        case_add(&c, LNORM_RSTD, f32, 1, shape, LAYOUT_SCATTERED);
        case_fill_flavour(&c, LNORM_RSTD, roll_one_in(&c.d, 4) ? 10 : s.cols % 2 ? 0 : 2); /* 2: above 0, as most are */
        if (s.kind == LNORM_LAYER_NORM) {
            case_add(&c, LNORM_MEAN, f64, 1, shape, LAYOUT_DENSE);
            case_fill_flavour(&c, LNORM_MEAN, roll_one_in(&c.d, 4) ? 10 : 0);
        }
    }
    if (!roll_one_in(&c.d, 4))
        case_add(&c, LNORM_DWEIGHT, roll_one_in(&c.d, 4) ? dtypes[1] : f64, 1, &shape[1], LAYOUT_SCATTERED);
    if (s.kind == LNORM_LAYER_NORM && !roll_one_in(&c.d, 4))
        case_add(&c, LNORM_DBIAS, roll_one_in(&c.d, 4) ? dtypes[1] : f64, 1, &shape[1], LAYOUT_DENSE);
    if (roll_one_in(&c.d, 2))
        case_alias(&c, LNORM_DX, roll_one_in(&c.d, 2) ? LNORM_X : LNORM_DY);
    else if (!roll_one_in(&c.d, 4))
        case_add(&c, LNORM_DX, dtypes[0], 2, shape, LAYOUT_PITCHED);
    check_rows(&c, s);
    case_end(&c);
}

/* Every mix and kind, with rows that differ in path, for every length of a tail, around a block, and beyond. From 4096
 * columns on, where a length changes the tree of blocks only, each meets a third of the mixes, among them one of every
 * element type; beyond 2^14 columns there are no wild rows. */
static void over_rows(void (*check)(rows_shape), int fast) {
    static const int64_t cols[] = {15,  16,   17,   80,   128,  176,  255,   256,  257, 272, 273, 511,
                                   768, 1000, 1041, 2056, 4096, 4097, 5000, 16385, 65537};
    for (int mix = 0; mix < MIXES; mix++)
        for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++) {
            rows_shape s = {mix, (lnorm_kind)kind, 0, 0, 0, fast};
            for (s.cols = 1; s.cols <= 67; s.cols++) {
                s.rows = 1 + (s.cols * 7 + mix) % 23;
                s.wild = s.cols % 3 == 0;
                check(s);
            }
            for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
                s.cols = cols[i];
                s.rows = s.cols < 200 ? 40 : s.cols < 5000 ? 7 : 2;
                if (s.cols >= 4096 && ((int)i + mix + kind) % 3)
                    continue;
                for (s.wild = 0; s.wild < (s.cols > 1 << 14 ? 1 : 2); s.wild++)
                    check(s);
                s.rows = 1; /* a lone row has a way of its own */
                s.wild = 0;
                if (s.cols < 1 << 16)
                    check(s);
            }
        }
}

static void test_rows_forward(void **state) {
    (void)state;
    over_rows(forward_rows, 0);
}

static void test_rows_backward(void **state) {
    (void)state;
    over_rows(backward_rows, 0);
}

static void test_rows_fast(void **state) {
    (void)state;
    over_rows(forward_rows, 1);
    over_rows(backward_rows, 1);
}

/* One weight or bias that y in f32 with a bound of the error does not suit, in each place of a line (rows_half.inc). */
static void test_rows_unusual(void **state) {
    static const double unusual[] = {0x1p-60, -0x1p60, 0x1p-126, INFINITY, NAN};
    const int64_t shape[2] = {9, 321};
    kernel_case c;
    (void)state;
    for (int64_t column = 0; column < 66; column++)
        for (int mix = 2; mix <= 4; mix += 2) { /* f16 and bf16 with f32 */
            const lnorm_dtype *dtypes = mix_dtypes(mix);
            case_begin(&c, (uint64_t)(column * 8 + mix), LNORM_LAYER_NORM, LNORM_FORWARD);
            for (int i = 0; i < 4; i++) {
                const enum lnorm_operand operands[] = {LNORM_X, LNORM_Y, LNORM_WEIGHT, LNORM_BIAS};
                case_add(&c, operands[i], dtypes[i / 2], 2 - i / 2, &shape[i / 2], LAYOUT_DENSE);
                case_fill_flavour(&c, operands[i], 0);
            }
            case_set(&c, column / 3 % 2 ? LNORM_WEIGHT : LNORM_BIAS, column, unusual[column % 5]);
            case_set(&c, column / 3 % 2 ? LNORM_BIAS : LNORM_WEIGHT, column, 0.0);
            case_expect(&c);
            if (!case_agrees_everywhere(&c, &lnorm_engine_rows))
                fail_msg("mix %d, column %lld", mix, (long long)column);
            case_end(&c);
        }
}

/* Outputs that are so large that they go past the caches. */
static void test_rows_streamed(void **state) {
    rows_shape s = {0, LNORM_LAYER_NORM, LNORM_STREAM_BYTES / 4 / 1027 + 1, 1027, 0, 0};
    (void)state;
    for (s.fast = 0; s.fast < 2; s.fast++) {
        forward_rows(s);
        backward_rows(s);
    }
}

/* dx of some rows, and the sums of their columns. */
typedef struct streamed_rows {
    char *dx;
    double dweight[2064], dbias[2064];
} streamed_rows;

enum { STREAMED_ROWS = 21 };

static void run_streamed_rows(lnorm_rows_backward *kernel, enum lnorm_element element, const char *x, int64_t cols,
                              int stream, size_t offset, streamed_rows *out) {
    const int64_t count = STREAMED_ROWS * cols, bytes = element == LNORM_ELEMENT_F32 ? 4 : 2;
    const lnorm_rows a = {.x = x, .dy = x + count * bytes, .weight = x + 2 * count * bytes,
                          .dx = out->dx + offset * (size_t)bytes, .x_pitch = cols, .dy_pitch = cols, .dx_pitch = cols,
                          .cols = cols, .eps = 1e-5, .element = (uint8_t)element, .affine = (uint8_t)element,
                          .center = 1, .stream = stream, .large = stream};
    memset(out->dx, 0xa5, (size_t)((count + 64) * bytes));
    for (int64_t j = 0; j < cols; j++)
        out->dweight[j] = out->dbias[j] = 0.0;
    kernel(&a, STREAMED_ROWS, out->dweight, out->dbias, 0, cols);
}

/* Past the caches or not, the same bytes and no others, where rows are lines of the cache and where they are not. */
static void check_streamed_rows(lnorm_rows_backward *kernel, enum lnorm_element element, int64_t cols, size_t offset) {
    const size_t count = (size_t)(STREAMED_ROWS * cols), bytes = element == LNORM_ELEMENT_F32 ? 4 : 2;
    const size_t size = (count + 64) * bytes;
    static streamed_rows plain, out;
    char *x = malloc((2 * count + (size_t)cols) * bytes);
    dice d = {(uint64_t)cols + offset};
    plain.dx = aligned_alloc(64, (size + 63) / 64 * 64);
    out.dx = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_true(x && plain.dx && out.dx);
    for (size_t i = 0; i < 2 * count + (size_t)cols; i++)
        lnorm_store(element, x, (int64_t)i, roll_unit(&d));
    run_streamed_rows(kernel, element, x, cols, 0, offset, &plain);
    run_streamed_rows(kernel, element, x, cols, 1, offset, &out);
    assert_memory_equal(plain.dx, out.dx, size);
    assert_memory_equal(plain.dweight, out.dweight, (size_t)cols * sizeof(double));
    assert_memory_equal(plain.dbias, out.dbias, (size_t)cols * sizeof(double));
    free(x);
    free(plain.dx);
    free(out.dx);
}

static void test_rows_stream(void **state) {
    static const int64_t cols[] = {32, 64, 100, 128, 144, 272, 300, 512, 1024, 1040, 2064};
    const lnorm_kernels *kernels;
    int k = 0;
    (void)state;
    while ((kernels = case_kernels(&k)))
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
            for (int fast = 0; fast < 2; fast++)
                for (size_t offset = 0; offset < 32; offset += 8) {
                    check_streamed_rows(kernels->rows_backward[fast], LNORM_ELEMENT_F32, cols[i], offset);
                    check_streamed_rows(kernels->rows_backward[fast], LNORM_ELEMENT_BF16, cols[i], offset);
                }
}

/* A weight of f32 whose bits are all 1 is a NaN still when its results have been rounded to 16 bits, and by a carry. */
static void test_rows_nan(void **state) {
    enum { ROWS = 9, COLS = 260 };
    static uint16_t x[ROWS * COLS], dy[ROWS * COLS], out[ROWS * COLS];
    static float weight[COLS];
    static double dweight[COLS], dbias[COLS];
    const lnorm_kernels *kernels;
    dice d = {1};
    int index = 0;
    (void)state;
    for (int i = 0; i < ROWS * COLS; i++) {
        lnorm_store(LNORM_ELEMENT_BF16, x, i, roll_unit(&d));
        lnorm_store(LNORM_ELEMENT_BF16, dy, i, roll_unit(&d));
    }
    for (int j = 0; j < COLS; j++)
        weight[j] = 1.0f;
    memset(&weight[1], 0xff, sizeof *weight);
    while ((kernels = case_kernels(&index)))
        for (int fast = 0; fast < 2; fast++) {
            lnorm_rows a = {.x = x, .dy = dy, .weight = weight, .y = out, .x_pitch = COLS, .y_pitch = COLS,
                            .dy_pitch = COLS, .dx_pitch = COLS, .cols = COLS, .eps = 1e-5,
                            .element = LNORM_ELEMENT_BF16, .affine = LNORM_ELEMENT_F32, .center = 1};
            kernels->rows_forward[fast](&a, ROWS);
            for (int i = 0; i < ROWS * COLS; i++)
                assert_int_equal(isnan(lnorm_load(LNORM_ELEMENT_BF16, out, i)) != 0, i % COLS == 1);
            a.dx = out;
            kernels->rows_backward[fast](&a, ROWS, dweight, dbias, 0, COLS);
            for (int i = 0; i < ROWS * COLS; i++)
                assert_true(isnan(lnorm_load(LNORM_ELEMENT_BF16, out, i)));
        }
}

/* Rows on both sides of what decides between f32 and f64: |mean| and 1/rstd around 2^100 and 2^-100, for sums in runs
 * around 2^50 and 2^-50, with mean^2 about 64 times the variance in a third of the rows, and about the same in
 * another. */
static double roll_at_kappa(dice *d, int64_t row) {
    return row % 3 == 2 ? 0.577 + roll_unit(d) : roll_value(d, row % 3 ? 3 : 0);
}

static void check_fast_scale(lnorm_dtype dtype, lnorm_pass pass, int exponent) {
    enum { ROWS = 10, COLS = 70 };
    const int64_t shape[2] = {ROWS, COLS};
    const enum lnorm_operand out = pass == LNORM_FORWARD ? LNORM_Y : LNORM_DX;
    kernel_case c;
    case_begin(&c, (uint64_t)(exponent + 1000), LNORM_LAYER_NORM, pass);
    c.op.arithmetic = LNORM_FAST;
    c.op.eps = 0.0;
    case_add(&c, LNORM_X, dtype, 2, shape, LAYOUT_DENSE);
    case_add(&c, out, dtype, 2, shape, LAYOUT_DENSE);
    for (int64_t i = 0; i < ROWS * COLS; i++)
        case_set(&c, LNORM_X, i, ldexp(roll_at_kappa(&c.d, i / COLS), exponent));
    if (pass == LNORM_BACKWARD) {
        case_add(&c, LNORM_DY, dtype, 2, shape, LAYOUT_DENSE);
        case_fill(&c, LNORM_DY, 0, 0);
        case_add(&c, LNORM_DWEIGHT, LNORM_F32, 1, &shape[1], LAYOUT_DENSE);
    }
    case_expect(&c);
    if (!case_agrees_everywhere(&c, &lnorm_engine_rows))
        fail_msg("code %d, pass %d, exponent %d", dtype.code, (int)pass, exponent);
    case_end(&c);
}

static void test_fast_scales(void **state) {
    const lnorm_dtype dtypes[] = {LNORM_F32, LNORM_BF16};
    (void)state;
    for (int exponent = -104; exponent <= 104; exponent++)
        for (int i = 0; i < 2; i++) {
            check_fast_scale(dtypes[i], LNORM_FORWARD, exponent);
            check_fast_scale(dtypes[i], LNORM_BACKWARD, exponent);
        }
}

/* The last of some rows is one number, and eps tiny, or its statistics are given: no xhat of its elements is beyond f32,
 * but that of a +0 is, by which runs are continued. Of rows, and of columns. */
static void check_fast_far(lnorm_dtype dtype, lnorm_kind kind, int64_t rows, int64_t cols, int saved) {
    const int by_column = kind == LNORM_BATCH_NORM;
    const int64_t shape[2] = {by_column ? cols : rows, by_column ? rows : cols};
    const lnorm_engine *const engines[] = {&lnorm_engine_rows, &lnorm_engine_long, &lnorm_engine_columns,
                                           &lnorm_engine_general};
    kernel_case c;
    case_begin(&c, (uint64_t)(rows * 1000 + cols), kind, LNORM_BACKWARD);
    c.op.arithmetic = LNORM_FAST;
    c.op.eps = 0x1p-100;
    c.op.statistics = saved ? LNORM_SAVED : LNORM_COMPUTED;
    for (int i = 0; i < 3; i++) {
        const enum lnorm_operand operands[] = {LNORM_X, LNORM_DY, LNORM_DX};
        case_add(&c, operands[i], dtype, 2, shape, LAYOUT_DENSE);
        case_fill_flavour(&c, operands[i], 0);
    }
    for (int64_t j = 0; j < cols; j++)
        case_set(&c, LNORM_X, by_column ? j * rows + rows - 1 : (rows - 1) * cols + j, 0x1p80);
    for (int i = 0; i < 2 && saved; i++) {
        const enum lnorm_operand operand = i ? LNORM_RSTD : LNORM_MEAN;
        case_add(&c, operand, mix_dtypes(0)[0], 1, &rows, LAYOUT_DENSE);
        case_fill_flavour(&c, operand, i ? 2 : 0); /* rstd above 0: or no set of rows would go by vectors */
        case_set(&c, operand, rows - 1, i ? 0x1p50 : 0x1p80);
    }
    case_add(&c, LNORM_DWEIGHT, dtype, 1, by_column ? &rows : &cols, LAYOUT_DENSE);
    case_expect(&c);
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (engines[i]->takes(&c.problem) && !case_agrees_everywhere(&c, engines[i]))
            fail_msg("%s, code %d, %lld x %lld", engines[i]->name, dtype.code, (long long)rows, (long long)cols);
    case_end(&c);
}

static void test_fast_far(void **state) {
    static const int64_t cols[] = {17, 48, 64, 80, 96, 112, 128, 200, 256, 300, 1000};
    const lnorm_dtype dtypes[] = {LNORM_F32, LNORM_BF16};
    (void)state;
    for (int i = 0; i < 4; i++) {
        for (size_t k = 0; k < sizeof cols / sizeof *cols; k++) {
            check_fast_far(dtypes[i / 2], LNORM_LAYER_NORM, 1, cols[k], i % 2);
            check_fast_far(dtypes[i / 2], LNORM_LAYER_NORM, 17, cols[k], i % 2);
            check_fast_far(dtypes[i / 2], LNORM_LAYER_NORM, 24, cols[k], i % 2);
            check_fast_far(dtypes[i / 2], LNORM_BATCH_NORM, 24, cols[k], i % 2);
        }
    }
    check_fast_far(LNORM_F32, LNORM_LAYER_NORM, 1, LNORM_LONG_COLS + 100, 0);
    check_fast_far(LNORM_BF16, LNORM_LAYER_NORM, 1, LNORM_LONG_COLS + 100, 1);
}

/* Row blocks of 64 and their tree; 2049 rows and more: tasks of several blocks. Widths around a strip of columns, each
 * with a third of the mixes. */
static void test_many_rows(void **state) {
    static const int64_t shapes[][2] = {{63, 5},   {64, 17},  {65, 3},   {129, 33}, {200, 40}, {450, 3},  {2048, 3},
                                        {2049, 2}, {4500, 3}, {9000, 1}, {70, 513}, {70, 682}, {3, 2049}, {0, 5},
                                        {5, 0},    {70, 1025}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int mix = 0; mix < MIXES; mix++) {
            if (shapes[i][1] > 500 && ((int)i + mix) % 3)
                continue;
            rows_shape s = {mix, i % 3 ? LNORM_LAYER_NORM : LNORM_RMS_NORM, shapes[i][0], shapes[i][1], 0, 0};
            for (s.fast = 0; s.fast < 2; s.fast++) {
                s.wild = 0;
                backward_rows(s);
                forward_rows(s);
                s.wild = 1;
                backward_rows(s);
            }
        }
}

/* -- The general form --------------------------------------------------------------------------------------------- */

static void check_drawn(uint64_t seed) {
    kernel_case c;
    case_draw(&c, seed);
    c.op.arithmetic = seed % 4 ? LNORM_ACCURATE : LNORM_FAST;
    case_expect(&c);
    if (!c.problem.wide) {
        if (lnorm_engine_general.takes(&c.problem) && !case_agrees_everywhere(&c, &lnorm_engine_general))
            fail_msg("general form, seed %llu", (unsigned long long)seed);
        if (lnorm_engine_columns.takes(&c.problem) && !case_agrees_everywhere(&c, &lnorm_engine_columns))
            fail_msg("columns, seed %llu", (unsigned long long)seed);
        if (lnorm_engine_rows.takes(&c.problem) && !case_agrees_everywhere(&c, &lnorm_engine_rows))
            fail_msg("rows, seed %llu", (unsigned long long)seed);
    }
    case_end(&c);
}

static void test_drawn(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++)
        check_drawn(seed);
    check_drawn(17249); /* weight by row, dbias by column */
}

/* -- Rounding ----------------------------------------------------------------------------------------------------- */

/* With constant statistics mean 0 and rstd 1, y is x*weight + bias rounded once: every exponent, and ties of the narrow
 * type that the bias, if it is not 0, moves by a few of f64's last bits: whoever rounds to f32 on the way gets them
 * wrong. Among bf16's subnormals f32 loses more than those: there a weight of 2^-64 makes room for them in x. */
static void check_rounding(lnorm_dtype dtype, uint64_t seed) {
    enum { COUNT = 1 << 13 };
    const lnorm_dtype f32 = LNORM_F32;
    int64_t count = COUNT, one = 1;
    kernel_case c;
    case_begin(&c, seed, LNORM_LAYER_NORM, LNORM_FORWARD);
    c.op.statistics = LNORM_CONSTANT;
    case_add(&c, LNORM_X, f32, 1, &count, LAYOUT_DENSE);
    case_add(&c, LNORM_WEIGHT, f32, 1, &count, LAYOUT_DENSE);
    case_add(&c, LNORM_BIAS, f32, 1, &count, LAYOUT_DENSE);
    case_add(&c, LNORM_MEAN, f32, 1, &one, LAYOUT_DENSE);
    case_add(&c, LNORM_RSTD, f32, 1, &one, LAYOUT_DENSE);
    case_add(&c, LNORM_Y, dtype, 1, &count, LAYOUT_DENSE);
    case_set(&c, LNORM_MEAN, 0, 0.0);
    case_set(&c, LNORM_RSTD, 0, 1.0);
    for (int64_t i = 0; i < COUNT; i++) {
        int digits = dtype.code == 4 ? 8 : 11, exponent = (int)roll_below(&c.d, i % 2 ? 290 : 60) - (i % 2 ? 160 : 30);
        if (i % 3 == 0) /* a subnormal has fewer: its ties, too */
            digits = (int)roll_below(&c.d, digits);
        int small = i % 16 == 1;
        if (small) {
            exponent = -127 - (int)roll_below(&c.d, 8);
            digits = exponent + 134;
        }
        double tie = ldexp((double)(2 * roll_below(&c.d, 1 << digits) + 1 + (2 << digits)), exponent - digits);
        double aside = (double)(roll_below(&c.d, 3) - 1) * ldexp(tie, -(int)roll_below(&c.d, 26) - 24);
        double x = small ? ldexp(tie + ldexp(tie, -(int)roll_below(&c.d, 8) - 15), 64) : tie;
        int any = i % 5 == 0;
        case_set(&c, LNORM_X, i, any ? roll_value(&c.d, (int)roll_below(&c.d, FLAVOURS)) : x);
        case_set(&c, LNORM_WEIGHT, i, any ? roll_value(&c.d, (int)roll_below(&c.d, FLAVOURS)) : small ? 0x1p-64 : 1.0);
        case_set(&c, LNORM_BIAS, i, any || small ? -0.0 : aside);
    }
    case_expect(&c);
    if (!case_agrees_everywhere(&c, &lnorm_engine_general))
        fail_msg("rounding to %d bits of code %d", dtype.bits, dtype.code);
    case_end(&c);
}

static void test_rounding(void **state) {
    const lnorm_dtype dtypes[] = {LNORM_F32, LNORM_F16, LNORM_BF16, LNORM_F64};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (uint64_t seed = 1; seed <= 6; seed++)
            check_rounding(dtypes[i], seed);
}

/* -- A variance below zero ---------------------------------------------------------------------------------------- */

/* Path B's sums give one in groups of a size that nobody can compute only (docs/arithmetic.md, section 4), so what is
 * done then, by reference and kernels alike, is asked for by itself. */
static void test_variance_below_zero(void **state) {
    const ln_pair below = {6.0, 17.9}, above = {6.0, 20.0}, not_a_number = {6.0, (double)NAN};
    ln_record s;
    (void)state;
    ln_finish_shifted(&s, below, 2); /* 8.95 - 3*3 */
    assert_true(s.t == 3.0 && s.v == 0.0 && !signbit(s.v));
    ln_finish_shifted(&s, above, 2);
    assert_true(s.v == 1.0);
    ln_finish_shifted(&s, not_a_number, 2);
    assert_true(isnan(s.v));
}

/* -- Dispatch ----------------------------------------------------------------------------------------------------- */

/* The widest table that runs, or what LNORM_ISA asks for, and always the same. */
static void test_dispatch(void **state) {
    const char *asked = getenv("LNORM_ISA");
    const lnorm_kernels *kernels, *widest = NULL;
    int runs;
    (void)state;
    for (int i = 0; (kernels = lnorm_kernels_at(i, &runs)); i++) {
        print_message("%s: %s\n", kernels->name, runs ? "runs here" : "does not run here");
        if (runs && (!asked || !*asked || !strcmp(asked, kernels->name)))
            widest = kernels;
    }
    assert_non_null(widest);
    assert_ptr_equal(lnorm_dispatch(), widest);
    assert_ptr_equal(lnorm_dispatch(), widest);
    assert_string_equal(lnorm_isa(), widest->name);
}

/* `test_kernels SEED`: one drawn problem. */
static int one_seed(const char *text) {
    uint64_t seed = strtoull(text, NULL, 10);
    kernel_case c;
    int agrees;
    case_draw(&c, seed);
    case_expect(&c);
    agrees = case_agrees_everywhere(&c, &lnorm_engine_general);
    case_end(&c);
    return !agrees;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatch),    cmocka_unit_test(test_rounding),      cmocka_unit_test(test_rows_forward),
        cmocka_unit_test(test_rows_backward), cmocka_unit_test(test_rows_fast), cmocka_unit_test(test_rows_streamed),
        cmocka_unit_test(test_rows_stream),   cmocka_unit_test(test_rows_nan), cmocka_unit_test(test_rows_unusual),
        cmocka_unit_test(test_rows_past_caches),
        cmocka_unit_test(test_fast_scales), cmocka_unit_test(test_fast_far),
        cmocka_unit_test(test_many_rows),   cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_wide_forward),  cmocka_unit_test(test_wide_streamed),
        cmocka_unit_test(test_wide_backward), cmocka_unit_test(test_wide_tiny_xhat),
        cmocka_unit_test(test_wide_scale),
        cmocka_unit_test(test_columns),     cmocka_unit_test(test_channels),    cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_column_major), cmocka_unit_test(test_channels_many_rows),
        cmocka_unit_test(test_channel_runs),
        cmocka_unit_test(test_runs_of_strange_statistics),
        cmocka_unit_test(test_columns_backward), cmocka_unit_test(test_channels_backward),
        cmocka_unit_test(test_runs_backward),   cmocka_unit_test(test_infinite_weight),
        cmocka_unit_test(test_long_forward),  cmocka_unit_test(test_long_backward), cmocka_unit_test(test_long_fast),
        cmocka_unit_test(test_long_streams),
        cmocka_unit_test(test_long_streamed), cmocka_unit_test(test_long_accumulated),
        cmocka_unit_test(test_long_taken),   cmocka_unit_test(test_long_pieces),
        cmocka_unit_test(test_variance_below_zero),
    };
    if (argc > 1)
        return one_seed(argv[1]);
    cmocka_set_test_filter(getenv("LNORM_ONLY")); /* LNORM_ONLY="test_long*": those alone; NULL: all */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
