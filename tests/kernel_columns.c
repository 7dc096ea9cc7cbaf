#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "columns.h"
#include "kernel_case.h"
#include "kernel_columns.h"

#include <math.h>

static const lnorm_dtype dtypes[3] = {{2, 32, 1}, {2, 16, 1}, {4, 16, 1}};

/* The same shape and strides for two operands or more: axes in the order of `order`, outermost first, dense but for
 * `gap` elements after each index of the outermost. */
static void lie(case_tensor *t, const int *order, int64_t gap) {
    int64_t stride = 1;
    for (int i = t->tensor.ndim; i-- > 0;) {
        t->strides[order[i]] = stride;
        stride *= t->shape[order[i]];
        if (i == 1)
            stride += gap;
    }
}

static void add_in_order(kernel_case *c, enum lnorm_operand operand, lnorm_dtype dtype, int ndim, const int64_t *shape,
                         const int *order, int64_t gap) {
    int64_t padded[CASE_NDIM], count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    padded[0] = count + shape[order[0]] * gap;
    case_add(c, operand, dtype, 1, padded, LAYOUT_DENSE);
    case_fill(c, operand, -1, 0); /* the gaps, too */
    for (int i = 0; i < ndim; i++)
        c->at[operand].shape[i] = shape[i];
    c->at[operand].tensor.ndim = ndim;
    lie(&c->at[operand], order, gap);
}

/* In f64 rstd shows in which order squares were summed; sums of x are often exact. */
static void add_statistics(kernel_case *c, int ndim, const int64_t *shape) {
    const lnorm_dtype f64 = LNORM_F64, f32 = LNORM_F32;
    if (roll_one_in(&c->d, 2))
        case_add(c, LNORM_MEAN, f64, ndim, shape, LAYOUT_SCATTERED);
    if (roll_one_in(&c->d, 2))
        case_add(c, LNORM_RSTD, roll_one_in(&c->d, 4) ? f32 : f64, ndim, shape, LAYOUT_DENSE);
}

static void add_parameters(kernel_case *c, int64_t count) {
    if (!roll_one_in(&c->d, 4)) {
        case_add(c, LNORM_WEIGHT, dtypes[roll_below(&c->d, 3)], 1, &count, LAYOUT_SCATTERED);
        case_fill_flavour(c, LNORM_WEIGHT, 0);
    }
    if (!roll_one_in(&c->d, 4)) {
        case_add(c, LNORM_BIAS, dtypes[roll_below(&c->d, 3)], 1, &count, LAYOUT_DENSE);
        case_fill_flavour(c, LNORM_BIAS, 0);
    }
}

/* `narrow`: too few columns for the kernel. */
static void check(kernel_case *c, int narrow) {
    const int64_t *x = c->at[LNORM_X].shape;
    case_expect(c);
    assert_int_equal(lnorm_engine_columns.takes(&c->problem), !narrow);
    if ((!narrow && !case_agrees_everywhere(c, &lnorm_engine_columns)) ||
        !case_agrees_everywhere(c, &lnorm_engine_general))
        fail_msg("kind %d, fast %d, %d axes, %lld x %lld x ...", (int)c->op.kind, c->op.arithmetic == LNORM_FAST,
                 (int)c->at[LNORM_X].tensor.ndim, (long long)x[0], (long long)x[1]);
}

/* Layer norm over axis 0 (parameters by row), RMS norm over it, and batch norm (by column). */
static void check_columns(int64_t rows, int64_t columns, int kind, int element, int wild, int fast) {
    static const int64_t over_rows = 0;
    static const int order[2] = {0, 1};
    const int64_t shape[2] = {rows, columns};
    kernel_case c;
    case_begin(&c, (uint64_t)(rows * 1000 + columns * 16 + kind * 4 + element), (lnorm_kind)kind, LNORM_FORWARD);
    if (kind != LNORM_BATCH_NORM) {
        c.op.axes = &over_rows;
        c.op.axes_count = 1;
    }
    add_in_order(&c, LNORM_X, dtypes[element], 2, shape, order, roll_below(&c.d, 2) * 3);
    case_fill(&c, LNORM_X, 1, wild);
    c.op.arithmetic = fast ? LNORM_FAST : LNORM_ACCURATE;
    c.op.eps = roll_one_in(&c.d, 4) ? 0.0 : 1e-5;
    c.op.weight_offset = roll_one_in(&c.d, 4);
    add_parameters(&c, kind == LNORM_BATCH_NORM ? columns : rows);
    if (kind == LNORM_RMS_NORM)
        case_add(&c, LNORM_RSTD, dtypes[0], 1, &columns, LAYOUT_SCATTERED);
    else
        add_statistics(&c, 1, &columns);
    if (roll_one_in(&c.d, 3))
        case_alias(&c, LNORM_Y, LNORM_X);
    else
        add_in_order(&c, LNORM_Y, dtypes[element], 2, shape, order, roll_below(&c.d, 2) * 5);
    check(&c, columns < LNORM_COLUMNS_LEAST);
    case_end(&c);
}

/* Backward: batch norm, whose dweight and dbias are sums over columns; layer and RMS norm over axis 0, where they are
 * sums along rows, and RMS norm with a weight for each column. */
static void check_columns_backward(int64_t rows, int64_t columns, int kind, int wild, int fast) {
    static const int64_t over_rows = 0;
    static const int order[2] = {0, 1};
    const int64_t shape[2] = {rows, columns}, of_columns[2] = {1, columns};
    const lnorm_dtype f32 = LNORM_F32, f64 = LNORM_F64;
    const int by_column = kind == 3;
    kernel_case c;
    case_begin(&c, (uint64_t)(rows * 1000 + columns * 16 + kind), by_column ? LNORM_RMS_NORM : (lnorm_kind)kind,
               LNORM_BACKWARD);
    if (c.op.kind != LNORM_BATCH_NORM) {
        c.op.axes = &over_rows;
        c.op.axes_count = 1;
    }
    c.op.affine_broadcast = by_column;
    c.op.arithmetic = fast ? LNORM_FAST : LNORM_ACCURATE;
    c.op.accumulate = roll_one_in(&c.d, 3);
    c.op.weight_offset = roll_one_in(&c.d, 4);
    add_in_order(&c, LNORM_X, dtypes[roll_below(&c.d, 3)], 2, shape, order, roll_below(&c.d, 2) * 3);
    case_fill(&c, LNORM_X, 1, wild);
    add_in_order(&c, LNORM_DY, roll_one_in(&c.d, 2) ? f32 : dtypes[roll_below(&c.d, 3)], 2, shape, order, 0);
    case_fill(&c, LNORM_DY, 1, wild);
    for (int i = 0; i < 2; i++) {
        const int64_t *of = by_column ? of_columns : c.op.kind == LNORM_BATCH_NORM ? &columns : &rows;
        const enum lnorm_operand operand = i ? LNORM_DWEIGHT : LNORM_WEIGHT;
        if (roll_one_in(&c.d, 4))
            continue;
        case_add(&c, operand, i ? f64 : f32, by_column ? 2 : 1, of, LAYOUT_SCATTERED);
        case_fill_flavour(&c, operand, 0);
        if (!i && !wild && roll_one_in(&c.d, 4)) /* what is not there, after the last row, has no weight */
            case_set(&c, operand, of[by_column] - 1, (double)INFINITY);
    }
    if (c.op.kind != LNORM_RMS_NORM && !roll_one_in(&c.d, 4)) {
        case_add(&c, LNORM_DBIAS, f32, 1, c.op.kind == LNORM_BATCH_NORM ? &columns : &rows, LAYOUT_DENSE);
        case_fill_flavour(&c, LNORM_DBIAS, 0);
    }
    if (roll_one_in(&c.d, 2))
        case_alias(&c, LNORM_DX, roll_one_in(&c.d, 2) ? LNORM_X : LNORM_DY);
    else if (!roll_one_in(&c.d, 4))
        add_in_order(&c, LNORM_DX, dtypes[roll_below(&c.d, 3)], 2, shape, order, roll_below(&c.d, 2) * 5);
    check(&c, columns < LNORM_COLUMNS_LEAST);
    case_end(&c);
}

void test_columns_backward(void **state) {
    static const int64_t rows[] = {2, 7, 16, 17, 33, 255, 257, 700};
    static const int64_t columns[] = {3, 5, 8, 15, 32, 67, 130};
    static const int kinds[4] = {LNORM_LAYER_NORM, LNORM_RMS_NORM, LNORM_BATCH_NORM, 3};
    _Static_assert(LNORM_BATCH_NORM != 3, "3 stands for RMS norm by column");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            for (int kind = 0; kind < 4; kind++)
                for (int fast = 0; fast < 2; fast++)
                    check_columns_backward(rows[i], columns[k], kinds[kind], (i + k + (size_t)fast) % 4 == 0, fast);
    for (int fast = 0; fast < 2; fast++) /* more than a block of runs */
        check_columns_backward(LNORM_BLOCK * LNORM_BLOCK_RUNS + 300, 9, LNORM_BATCH_NORM, 0, fast);
}

/* Rows around lanes, few rows, blocks and their tree; columns around vectors, tiles and strips. Large tensors are
 * accurate and fast in turn. */
void test_columns(void **state) {
    static const int64_t rows[] = {2, 3, 7, 8, 9, 15, 16, 17, 33, 255, 256, 257, 700, 1300};
    static const int64_t columns[] = {3, 4, 5, 8, 15, 17, 32, 67, 130, 259};
    static const int kinds[3] = {LNORM_LAYER_NORM, LNORM_RMS_NORM, LNORM_BATCH_NORM};
    int turn = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            for (int kind = 0; kind < 3; kind++, turn++)
                for (int fast = 0; fast < 2; fast++) {
                    if (rows[i] * columns[k] > 1 << 15 && (fast + turn) % 2)
                        continue;
                    check_columns(rows[i], columns[k], kinds[kind],
                                  turn % 3 == 0 ? turn / 3 % 3 : (turn / 3 + turn) % 3, turn % 4 == 0, fast);
                }
}

/* Group norm of a channels-last [samples, groups*channels, height, width]. */
static void check_channels(const int64_t size[4], int element, int wild, int fast) {
    const int64_t channels = size[0], groups = size[1], width = size[3];
    const int64_t height = size[2] > 16 && element ? 2 * size[2] : size[2];
    static const int order[4] = {0, 2, 3, 1};
    const int64_t shape[4] = {2, channels * groups, height, width}, of_statistics[2] = {2, groups};
    const int64_t seed = ((channels * 100 + groups) * 100 + height) * 1000 + width * 3 + element;
    kernel_case c;
    case_begin(&c, (uint64_t)seed, LNORM_GROUP_NORM, LNORM_FORWARD);
    c.op.groups = groups;
    c.op.arithmetic = fast ? LNORM_FAST : LNORM_ACCURATE;
    c.op.eps = roll_one_in(&c.d, 4) ? 0.0 : 1e-5;
    add_in_order(&c, LNORM_X, dtypes[element], 4, shape, order, roll_below(&c.d, 2) * 7);
    case_fill(&c, LNORM_X, (int)roll_below(&c.d, 2), wild);
    add_parameters(&c, shape[1]);
    add_statistics(&c, 2, of_statistics);
    if (roll_one_in(&c.d, 3))
        case_alias(&c, LNORM_Y, LNORM_X);
    else
        add_in_order(&c, LNORM_Y, dtypes[element], 4, shape, order, 0);
    check(&c, 0);
    case_end(&c);
}

/* Small groups, and those that go by windows or by rows: channels around a square and a window's, rows around a block
 * and a window's; blocks that begin in one to four different rows. The large ones are wild either when accurate or when
 * fast. */
void test_channels(void **state) {
    static const int64_t small[][4] = {{2, 3, 5, 7},  {3, 2, 1, 49}, {4, 33, 7, 7}, {5, 1, 16, 17}, {8, 2, 3, 100},
                                       {17, 2, 9, 9}, {64, 5, 2, 2}, {7, 40, 5, 5}, {16, 2, 16, 16}, {256, 1, 5, 10}};
    static const int64_t large[][4] = {{8, 1, 1, 4000},  {9, 2, 41, 40},  {17, 1, 40, 20}, {3, 2, 71, 70},
                                       {200, 1, 10, 20}, {16, 1, 32, 33}, {33, 1, 29, 30}, {2, 9, 1, 3136},
                                       {3, 6, 33, 31},   {2, 9, 32, 32}, {70, 2, 16, 20}, {4, 16, 20, 16},
                                       {2, 40, 29, 29},  {10, 32, 16, 17}};
    (void)state;
    for (int element = 0; element < 3; element++)
        for (int wild = 0; wild < 2; wild++)
            for (int fast = 0; fast < 2; fast++) {
                for (size_t i = 0; i < sizeof small / sizeof *small; i++)
                    check_channels(small[i], element, wild, fast);
                for (size_t i = 0; i < sizeof large / sizeof *large; i++)
                    if (!wild || (i + (size_t)element) % 2 == (size_t)fast)
                        check_channels(large[i], element, wild, fast);
            }
}

/* Their gradients: one sample, whose dweight and dbias are a group's own, or several. */
static void check_channels_backward(int64_t samples, int64_t channels, int64_t groups, int64_t height, int wild,
                                    int fast) {
    static const int order[4] = {0, 2, 3, 1};
    const int64_t shape[4] = {samples, channels * groups, height, 9};
    const lnorm_dtype f32 = LNORM_F32, f64 = LNORM_F64;
    kernel_case c;
    case_begin(&c, (uint64_t)((samples * 100 + channels) * 100 + groups * 1000000 + height), LNORM_GROUP_NORM,
               LNORM_BACKWARD);
    c.op.groups = groups;
    c.op.arithmetic = fast ? LNORM_FAST : LNORM_ACCURATE;
    c.op.accumulate = roll_one_in(&c.d, 3);
    add_in_order(&c, LNORM_X, dtypes[roll_below(&c.d, 3)], 4, shape, order, roll_below(&c.d, 2) * 7);
    case_fill(&c, LNORM_X, (int)roll_below(&c.d, 2), wild);
    add_in_order(&c, LNORM_DY, dtypes[roll_below(&c.d, 3)], 4, shape, order, 0);
    case_fill(&c, LNORM_DY, (int)roll_below(&c.d, 2), wild);
    if (!roll_one_in(&c.d, 4)) {
        case_add(&c, LNORM_WEIGHT, dtypes[roll_below(&c.d, 3)], 1, &shape[1], LAYOUT_SCATTERED);
        case_fill_flavour(&c, LNORM_WEIGHT, 0);
    }
    for (int i = 0; i < 2; i++)
        if (!roll_one_in(&c.d, 4)) {
            case_add(&c, i ? LNORM_DBIAS : LNORM_DWEIGHT, i ? f32 : f64, 1, &shape[1], LAYOUT_SCATTERED);
            case_fill_flavour(&c, i ? LNORM_DBIAS : LNORM_DWEIGHT, 0);
        }
    if (roll_one_in(&c.d, 2) || (!case_has(&c, LNORM_DWEIGHT) && !case_has(&c, LNORM_DBIAS)))
        case_alias(&c, LNORM_DX, roll_one_in(&c.d, 2) ? LNORM_X : LNORM_DY);
    else if (!roll_one_in(&c.d, 4))
        add_in_order(&c, LNORM_DX, dtypes[roll_below(&c.d, 3)], 4, shape, order, 0);
    check(&c, 0);
    case_end(&c);
}

void test_channels_backward(void **state) {
    static const int64_t channels[] = {2, 3, 5, 16, 33, 64}, heights[] = {3, 29, 100, 500};
    (void)state;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (size_t k = 0; k < sizeof heights / sizeof *heights; k++)
            for (int64_t samples = 1; samples <= 3; samples += 2)
                for (int fast = 0; fast < 2; fast++)
                    if (heights[k] * channels[i] <= 3000)
                        check_channels_backward(samples, channels[i], channels[i] > 9 ? 2 : 11, heights[k],
                                                (i + k + (size_t)fast) % 3 == 0, fast);
}

/* Gradients where channels come first: runs of `length` elements. dweight and dbias are f64, which shows the order of
 * sums; dx shows it where large numbers that cancel leave what was lost between them. */
static void check_runs_backward(lnorm_kind kind, int64_t samples, int64_t channels, int64_t length, int wild,
                                int fast) {
    static const int order[3] = {0, 1, 2};
    const int64_t shape[3] = {samples, 2 * channels, length};
    const lnorm_dtype f64 = LNORM_F64;
    kernel_case c;
    case_begin(&c, (uint64_t)(((samples * 100 + channels) * 10 + (int)kind) * 10000 + length), kind, LNORM_BACKWARD);
    c.op.groups = 2;
    c.op.arithmetic = fast ? LNORM_FAST : LNORM_ACCURATE;
    c.op.accumulate = roll_one_in(&c.d, 3);
    c.op.weight_offset = roll_one_in(&c.d, 4);
    add_in_order(&c, LNORM_X, dtypes[roll_one_in(&c.d, 2) ? 0 : roll_below(&c.d, 3)], 3, shape, order,
                 roll_below(&c.d, 2) * 7);
    case_fill(&c, LNORM_X, (int)roll_below(&c.d, 2), wild);
    add_in_order(&c, LNORM_DY, dtypes[roll_one_in(&c.d, 2) ? 0 : roll_below(&c.d, 3)], 3, shape, order, 0);
    case_fill(&c, LNORM_DY, (int)roll_below(&c.d, 2), wild);
    for (int64_t i = 0; i < length && !wild && c.at[LNORM_DY].tensor.dtype.bits == 32; i += 8) {
        case_set(&c, LNORM_DY, i, 0x1p50);
        case_set(&c, LNORM_DY, length - 1 - i, -0x1p50);
    }
    for (int i = 0; i < 3; i++) {
        static const enum lnorm_operand operands[3] = {LNORM_WEIGHT, LNORM_DWEIGHT, LNORM_DBIAS};
        if (roll_one_in(&c.d, 4))
            continue;
        case_add(&c, operands[i], i ? f64 : dtypes[roll_below(&c.d, 3)], 1, &shape[1], LAYOUT_SCATTERED);
        case_fill_flavour(&c, operands[i], 0);
    }
    if (roll_one_in(&c.d, 3))
        case_alias(&c, LNORM_DX, roll_one_in(&c.d, 2) ? LNORM_X : LNORM_DY);
    else if (!roll_one_in(&c.d, 4) || (!case_has(&c, LNORM_DWEIGHT) && !case_has(&c, LNORM_DBIAS)))
        add_in_order(&c, LNORM_DX, roll_one_in(&c.d, 8) ? f64 : dtypes[roll_below(&c.d, 3)], 3, shape, order,
                     roll_below(&c.d, 2) * 5);
    case_expect(&c);
    if (!case_agrees_everywhere(&c, &lnorm_engine_general))
        fail_msg("kind %d, fast %d, %lld x %lld x %lld", (int)kind, fast, (long long)shape[0], (long long)shape[1],
                 (long long)length);
    case_end(&c);
}

/* Runs around lanes, blocks, and what is added at once; blocks that two and more of them share. */
void test_runs_backward(void **state) {
    static const int64_t lengths[] = {2, 9, 16, 31, 49, 100, 196, 256, 300, 519, 784, 1025, 2100};
    static const lnorm_kind kinds[3] = {LNORM_GROUP_NORM, LNORM_BATCH_NORM, LNORM_INSTANCE_NORM};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int64_t channels = 1; channels <= 7; channels += 3)
            for (int64_t samples = 1; samples <= 3; samples += 2)
                for (int kind = 0; kind < 3; kind++)
                    for (int fast = 0; fast < 2; fast++)
                        check_runs_backward(kinds[kind], samples, channels, lengths[i],
                                            (i + (size_t)channels + (size_t)fast) % 5 == 0, fast);
}

/* The last channel of a group has an infinite weight, and blocks that end in it: of what they lack nothing may become a
 * NaN. dy is of one sign, so that the sums are infinite, and dx of the other channels too. */
static void check_infinite_weight(int64_t channels, int64_t length, int scattered, int fast) {
    const int64_t shape[3] = {2, channels, length};
    kernel_case c;
    case_begin(&c, (uint64_t)(channels * 10000 + length), LNORM_GROUP_NORM, LNORM_BACKWARD);
    c.op.groups = 1;
    c.op.arithmetic = fast ? LNORM_FAST : LNORM_ACCURATE;
    case_add(&c, LNORM_X, dtypes[0], 3, shape, LAYOUT_DENSE);
    case_fill_flavour(&c, LNORM_X, 0);
    case_add(&c, LNORM_DY, dtypes[0], 3, shape, scattered ? LAYOUT_SCATTERED : LAYOUT_DENSE);
    for (int64_t i = 0; i < 2 * channels * length; i++)
        case_set(&c, LNORM_DY, i, 1.0 + (double)(i % 3));
    case_add(&c, LNORM_WEIGHT, dtypes[0], 1, &channels, LAYOUT_DENSE);
    case_fill_flavour(&c, LNORM_WEIGHT, 0);
    case_set(&c, LNORM_WEIGHT, channels - 1, (double)INFINITY);
    case_add(&c, LNORM_DX, dtypes[0], 3, shape, LAYOUT_DENSE);
    for (int64_t i = 0; i < 2 * channels * length; i++) /* xhat of one sign in that channel */
        if (i / length % channels == channels - 1)
            case_set(&c, LNORM_X, i, 9.0);
    case_expect(&c);
    if (!case_agrees_everywhere(&c, &lnorm_engine_general))
        fail_msg("%lld channels of %lld, scattered %d, fast %d", (long long)channels, (long long)length, scattered,
                 fast);
    case_end(&c);
}

void test_infinite_weight(void **state) {
    static const int64_t lengths[] = {9, 31, 100, 144, 196, 300};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int way = 0; way < 4; way++) {
            check_infinite_weight(2, lengths[i], way / 2, way % 2);
            check_infinite_weight(6, lengths[i], way / 2, way % 2);
        }
}

/* A plane of several windows, with more blocks in a line of columns than are kept at once. */
void test_channels_many_rows(void **state) {
    static const int64_t sizes[2][4] = {{3, 1, 1, 60000}, {2, 9, 1, 40000}};
    (void)state;
    for (int i = 0; i < 4; i++)
        check_channels(sizes[i / 2], i / 2, 0, i % 2);
}

/* Batch norm of a column-major [samples, channels, length]: the samples are what channels are in a group. */
void test_column_major(void **state) {
    static const int order[3] = {2, 1, 0};
    (void)state;
    for (int64_t samples = 2; samples < 12; samples++) {
        const int64_t shape[3] = {samples, 5, 1 + samples * 37};
        kernel_case c;
        case_begin(&c, (uint64_t)samples, LNORM_BATCH_NORM, LNORM_FORWARD);
        c.op.arithmetic = samples % 2 ? LNORM_FAST : LNORM_ACCURATE;
        add_in_order(&c, LNORM_X, dtypes[samples % 3], 3, shape, order, 0);
        add_in_order(&c, LNORM_Y, dtypes[samples % 3], 3, shape, order, 2);
        add_parameters(&c, shape[1]);
        add_statistics(&c, 1, &shape[1]);
        case_add(&c, LNORM_RUNNING_MEAN, dtypes[0], 1, &shape[1], LAYOUT_DENSE);
        case_fill_flavour(&c, LNORM_RUNNING_MEAN, 0);
        case_add(&c, LNORM_RUNNING_VAR, dtypes[0], 1, &shape[1], LAYOUT_SCATTERED);
        case_fill_flavour(&c, LNORM_RUNNING_VAR, 0);
        check(&c, 0);
        case_end(&c);
    }
}

/* Outputs that go past the caches: wide rows, rows that are less than a line, runs. */
void test_streamed(void **state) {
    static const int order[2] = {0, 1}, channels_first[3] = {0, 1, 2};
    const int64_t wide[2] = {1 << 12, 1030}, tall[2] = {530000, 8}, instances[3] = {2, 700, 3001};
    kernel_case c;
    (void)state;
    for (int turn = 0; turn < 6; turn++) {
        const int i = turn / 2;
        const int64_t *shape = i == 0 ? wide : i == 1 ? tall : instances;
        const int ndim = i == 2 ? 3 : 2, *axes = i == 2 ? channels_first : order;
        case_begin(&c, (uint64_t)i, i == 2 ? LNORM_INSTANCE_NORM : LNORM_BATCH_NORM, LNORM_FORWARD);
        c.op.arithmetic = turn % 2 ? LNORM_FAST : LNORM_ACCURATE;
        add_in_order(&c, LNORM_X, dtypes[0], ndim, shape, axes, i == 0);
        add_in_order(&c, LNORM_Y, dtypes[0], ndim, shape, axes, i == 0);
        add_parameters(&c, shape[1]);
        case_expect(&c);
        if (!case_agrees_everywhere(&c, i == 2 ? &lnorm_engine_general : &lnorm_engine_columns))
            fail_msg("streamed, %lld x %lld", (long long)shape[0], (long long)shape[1]);
        case_end(&c);
    }
}
