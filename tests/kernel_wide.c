/* Contiguous rows of f64, each row of another kind, so that every way of the kernels is taken: rows that they leave to
 * the reference, between rows that they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel_case.h"
#include "kernel_wide.h"
#include "pairs.h"

#include <math.h>

/* -- Values ------------------------------------------------------------------------------------------------------- */

enum wide_flavour {
    WIDE_PLAIN,
    WIDE_SCALED,      /* by a power of two of the row's own, from subnormals to 2^1023 */
    WIDE_CONSTANT,
    WIDE_FAR_MEAN,    /* up to 2^50 times the spread */
    WIDE_NEARLY_SAME, /* one number but for a last bit here and there */
    WIDE_SIGNS,       /* 1 and -1 in turn: with eps 0, xhat is exactly that, and y can be a tie */
    WIDE_LATE,        /* the first 64 are 0 or small: the size of the rest comes as a surprise */
    WIDE_FLUSHED,     /* some elements about 2^-256 of the others */
    WIDE_ZEROS,
    WIDE_ANY_BITS,    /* every exponent in one row */
    WIDE_INFINITE,
    WIDE_NAN,
    WIDE_FLAVOURS
};

static double wide_value(dice *d, enum wide_flavour flavour, dice row, int64_t j) {
    int exponent = (int)roll_below(&row, 2090) - 1070;
    double plain = roll_unit(d), anchor = 1.0 + roll_unit(&row) * 0.5;
    switch (flavour) {
    case WIDE_PLAIN:
        return plain;
    case WIDE_SCALED:
        return ldexp(plain, exponent);
    case WIDE_CONSTANT:
        return ldexp(anchor, exponent);
    case WIDE_FAR_MEAN:
        return anchor + ldexp(plain, -(int)roll_below(&row, 50));
    case WIDE_NEARLY_SAME:
        return roll_one_in(d, 20) ? nextafter(anchor, 2.0) : anchor;
    case WIDE_SIGNS:
        return j % 2 ? 1.0 : -1.0;
    case WIDE_LATE:
        return j < 64 ? plain * (double)(exponent % 2) * 0x1p-30 : plain * 0x1p9;
    case WIDE_FLUSHED:
        return roll_one_in(d, 3) ? ldexp(plain, -254 - (int)roll_below(d, 5)) : plain;
    case WIDE_ZEROS:
        return roll_one_in(d, 2) ? 0.0 : roll_one_in(d, 2) ? -0.0 : plain;
    case WIDE_ANY_BITS:
        return ldexp(plain, (int)roll_below(d, 2090) - 1070);
    case WIDE_INFINITE:
        return roll_one_in(d, 30) ? copysign((double)INFINITY, plain) : plain;
    case WIDE_NAN:
        return roll_one_in(d, 30) ? (double)NAN : plain;
    case WIDE_FLAVOURS:
        break;
    }
    return 0.0;
}

/* Calm: without values that leave nothing but NaN of a sum over rows. */
static void fill_rows(kernel_case *c, enum lnorm_operand operand, int64_t rows, int64_t cols, int calm) {
    for (int64_t i = 0; i < rows; i++) {
        enum wide_flavour flavour = (enum wide_flavour)roll_below(&c->d, calm ? WIDE_ANY_BITS : WIDE_FLAVOURS);
        dice row = {roll(&c->d)};
        for (int64_t j = 0; j < cols; j++)
            case_set(c, operand, i * cols + j, wide_value(&c->d, flavour, row, j));
    }
}

/* Weights or biases: mostly of size 1, or such that the kernels have to refuse them all. */
static void fill_cols(kernel_case *c, enum lnorm_operand operand, int64_t cols) {
    int kind = (int)roll_below(&c->d, 8);
    dice row = {roll(&c->d)};
    for (int64_t j = 0; j < cols; j++) {
        double value = roll_unit(&c->d);
        if (kind == 1)
            value = roll_one_in(&c->d, 2) ? 1.0 : -1.0; /* with WIDE_SIGNS: cancellation and ties */
        else if (kind == 5)
            value = ldexp(roll_one_in(&c->d, 2) ? 1.0 : -1.0, -54 + (int)roll_below(&c->d, 3));
        else if (kind == 2 && roll_one_in(&c->d, 3))
            value = wide_value(&c->d, WIDE_ZEROS, row, j);
        else if (kind == 3)
            value = ldexp(value, (int)roll_below(&c->d, 300) - 150);
        else if (kind == 4 && roll_one_in(&c->d, 100))
            value = wide_value(&c->d, (enum wide_flavour)(WIDE_ANY_BITS + (int)roll_below(&row, 3)), row, j);
        case_set(c, operand, j, value);
    }
}

/* -- Forward ------------------------------------------------------------------------------------------------------ */

static void add_affine(kernel_case *c, enum lnorm_operand operand, int64_t cols) {
    const lnorm_dtype dtypes[] = {LNORM_F64, LNORM_F64, LNORM_F32, LNORM_BF16};
    if (roll_one_in(&c->d, 4))
        return;
    case_add(c, operand, dtypes[roll_below(&c->d, 4)], 1, &cols,
             roll_one_in(&c->d, 4) ? LAYOUT_SCATTERED : LAYOUT_DENSE);
    fill_cols(c, operand, cols);
}

static void begin_wide(kernel_case *c, lnorm_kind kind, lnorm_pass pass, int64_t rows, int64_t cols) {
    const double eps[] = {0.0, 1e-5, 1e-5, 1e-5, 1.0, 1e-300, 1e12, 1e300};
    const lnorm_dtype f64 = LNORM_F64;
    int64_t shape[2] = {rows, cols};
    case_begin(c, (uint64_t)(cols * 1000 + rows * 8 + (int)kind * 2 + (int)pass), kind, pass);
    c->op.eps = eps[roll_below(&c->d, 8)];
    c->op.weight_offset = roll_one_in(&c->d, 4);
    case_add(c, LNORM_X, f64, 2, shape, roll_one_in(&c->d, 2) ? LAYOUT_DENSE : LAYOUT_PITCHED);
    fill_rows(c, LNORM_X, rows, cols, pass == LNORM_BACKWARD && !roll_one_in(&c->d, 4));
    add_affine(c, LNORM_WEIGHT, cols);
}

static void check_wide(kernel_case *c) {
    case_expect(c);
    assert_true(lnorm_engine_wide.takes(&c->problem));
    if (!case_agrees_everywhere(c, &lnorm_engine_wide))
        fail_msg("wide, kind %d, pass %d", (int)c->op.kind, (int)c->op.pass);
    case_end(c);
}

static void forward_wide(lnorm_kind kind, int64_t rows, int64_t cols) {
    const lnorm_dtype f64 = LNORM_F64, f32 = LNORM_F32;
    int64_t shape[2] = {rows, cols};
    kernel_case c;
    begin_wide(&c, kind, LNORM_FORWARD, rows, cols);
    if (kind == LNORM_LAYER_NORM)
        add_affine(&c, LNORM_BIAS, cols);
    if (kind == LNORM_LAYER_NORM && roll_one_in(&c.d, 2))
        case_add(&c, LNORM_MEAN, f64, 1, shape, LAYOUT_SCATTERED);
    if (roll_one_in(&c.d, 2))
        case_add(&c, LNORM_RSTD, roll_one_in(&c.d, 2) ? f64 : f32, 1, shape, LAYOUT_SCATTERED);
    if (roll_one_in(&c.d, 3))
        case_alias(&c, LNORM_Y, LNORM_X);
    else if (!roll_one_in(&c.d, 10))
        case_add(&c, LNORM_Y, f64, 2, shape, roll_one_in(&c.d, 2) ? LAYOUT_DENSE : LAYOUT_PITCHED);
    check_wide(&c);
}

void test_wide_forward(void **state) {
    static const int64_t cols[] = {255, 256, 257, 511, 768, 1000, 4096, 16385, 40000};
    (void)state;
    for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++) {
        for (int64_t n = 1; n <= 67; n++)
            for (int64_t rows = 1; rows <= 19; rows += 6)
                forward_wide((lnorm_kind)kind, rows, n);
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
            for (int64_t rows = 2; rows <= 15; rows += 1 + cols[i] / 3000)
                forward_wide((lnorm_kind)kind, rows, cols[i]);
    }
}

/* y of 12 MiB and more goes past the caches: in rows of whole lines, and in others. */
void test_wide_streamed(void **state) {
    static const int64_t shapes[][2] = {{384, 4096}, {1576, 1001}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        kernel_case c;
        begin_wide(&c, i ? LNORM_RMS_NORM : LNORM_LAYER_NORM, LNORM_FORWARD, shapes[i][0], shapes[i][1]);
        case_add(&c, LNORM_Y, LNORM_F64, 2, shapes[i], LAYOUT_DENSE);
        check_wide(&c);
    }
}

/* -- Backward ----------------------------------------------------------------------------------------------------- */

/* What the definition flushes comes to light where everything else cancels: 1 and -1 in turn, and between them numbers
 * around 2^-256. */
static double cancelling(dice *d, int64_t row) {
    return row % 3 == 0 ? 1.0 : row % 3 == 1 ? -1.0 : ldexp(1.0, -240 - (int)roll_below(d, 30));
}

/* dy of one size, such that sums over rows fit, or of any. */
static void fill_dy(kernel_case *c, int64_t rows, int64_t cols) {
    int kind = (int)roll_below(&c->d, 5), exponent = (int)roll_below(&c->d, 700) - 300;
    if (kind == 0) {
        fill_rows(c, LNORM_DY, rows, cols, roll_one_in(&c->d, 2));
        return;
    }
    for (int64_t i = 0; i < rows * cols; i++) {
        double value = ldexp(roll_unit(&c->d), exponent - (kind == 1 ? (int)roll_below(&c->d, 120) : 0));
        if (kind == 4)
            case_set(c, LNORM_DY, i, cancelling(&c->d, i / cols));
        else
            case_set(c, LNORM_DY, i, roll_one_in(&c->d, 9) || (i / cols % 5 == 1) ? 0.0 : value);
    }
}

static void backward_wide(lnorm_kind kind, int64_t rows, int64_t cols) {
    const lnorm_dtype f64 = LNORM_F64, f32 = LNORM_F32;
    int64_t shape[2] = {rows, cols};
    kernel_case c;
    begin_wide(&c, kind, LNORM_BACKWARD, rows, cols);
    case_add(&c, LNORM_DY, f64, 2, shape, roll_one_in(&c.d, 2) ? LAYOUT_DENSE : LAYOUT_PITCHED);
    fill_dy(&c, rows, cols);
    c.op.accumulate = roll_one_in(&c.d, 3);
    if (!roll_one_in(&c.d, 4))
        case_add(&c, LNORM_DWEIGHT, roll_one_in(&c.d, 4) ? f32 : f64, 1, &cols, LAYOUT_SCATTERED);
    if (kind == LNORM_LAYER_NORM && !roll_one_in(&c.d, 4))
        case_add(&c, LNORM_DBIAS, roll_one_in(&c.d, 4) ? f32 : f64, 1, &cols, LAYOUT_DENSE);
    if (roll_one_in(&c.d, 2))
        case_alias(&c, LNORM_DX, roll_one_in(&c.d, 2) ? LNORM_X : LNORM_DY);
    else if (!roll_one_in(&c.d, 4))
        case_add(&c, LNORM_DX, f64, 2, shape, LAYOUT_PITCHED);
    check_wide(&c);
}

void test_wide_backward(void **state) {
    static const int64_t shapes[][2] = {{0, 5},    {1, 700},  {3, 255},  {5, 257},  {63, 17},  {64, 9},
                                        {65, 300}, {129, 33}, {200, 13}, {700, 3},  {2, 4097}, {12, 513}};
    (void)state;
    for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++) {
        for (int64_t n = 1; n <= 40; n++)
            for (int64_t rows = 1; rows <= 9; rows += 2)
                backward_wide((lnorm_kind)kind, rows, n);
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            backward_wide((lnorm_kind)kind, shapes[i][0], shapes[i][1]);
    }
}

/* dweight of columns of which every xhat is near 2^-256, where the definition flushes: nothing larger hides it. */
static void check_tiny_xhat(int64_t rows, int64_t cols, int exponent) {
    const int64_t shape[2] = {rows, cols};
    kernel_case c;
    case_begin(&c, (uint64_t)(rows * 1000 - exponent), LNORM_RMS_NORM, LNORM_BACKWARD);
    c.op.eps = 1e-5;
    case_add(&c, LNORM_X, LNORM_F64, 2, shape, LAYOUT_DENSE);
    case_add(&c, LNORM_DY, LNORM_F64, 2, shape, LAYOUT_DENSE);
    case_add(&c, LNORM_DWEIGHT, LNORM_F64, 1, &cols, LAYOUT_DENSE);
    for (int64_t i = 0; i < rows * cols; i++) {
        case_set(&c, LNORM_X, i, ldexp(roll_unit(&c.d), i % cols % 2 ? exponent : 0));
        case_set(&c, LNORM_DY, i, roll_unit(&c.d));
    }
    check_wide(&c);
}

void test_wide_tiny_xhat(void **state) {
    (void)state;
    for (int exponent = -264; exponent <= -246; exponent++)
        for (int64_t rows = 1; rows <= 9; rows += 4)
            check_tiny_xhat(rows, 37, exponent);
}

/* -- Powers of two ------------------------------------------------------------------------------------------------- */

/* Reference and kernels both use lnorm_scale and lnorm_power, so against each other they prove nothing. The C library's
 * ldexp rounds once, too. Exponents in every step of the loops, to subnormals and infinity from either end. */
void test_wide_scale(void **state) {
    dice d = {1};
    (void)state;
    for (int e = -1022; e <= 1023; e++)
        assert_true(lnorm_power(e) == ldexp(1.0, e));
    for (int i = 0; i < 300000; i++) {
        int e = i < 8400 ? i / 2 - 2100 : (int)roll_below(&d, 4400) - 2200;
        double a = i % 3 ? ldexp(roll_unit(&d), (int)roll_below(&d, 2100) - 1070) : lnorm_f64_of_bits(roll(&d) << 1);
        double scaled = lnorm_scale(a, e), due = ldexp(a, e);
        if (due == due ? lnorm_bits_of_f64(scaled) != lnorm_bits_of_f64(due) : scaled == scaled)
            fail_msg("%a * 2^%d: got %a, expected %a", a, e, scaled, due);
    }
}
