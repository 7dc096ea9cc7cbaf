/* Rows whose y goes past the caches, beside the same call whose y does not: test_kernels compares that with the
 * reference. The same bytes and no others, wherever in a line y begins, and where it is not aligned to its elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel_case.h"
#include "kernel_streamed.h"

#include <string.h>

enum { ROWS = 3, COLS_MOST = 4200, GAP = 3, BYTES = ROWS * (COLS_MOST + GAP) * 4 + 64 };

typedef struct streamed_rows {
    _Alignas(64) char x[BYTES], y[BYTES], expected[BYTES];
    float weight[COLS_MOST], bias[COLS_MOST];
    lnorm_rows a;
} streamed_rows;

/* far: the second row has a mean so large that its statistics are not those of runs. */
static void fill(streamed_rows *r, dice *d, int far) {
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t j = 0; j < r->a.cols; j++) {
            const double value = roll_unit(d) + (far && row == 1 ? 100 : 0);
            lnorm_store((enum lnorm_element)r->a.element, r->x, row * r->a.x_pitch + j, value);
        }
    for (int64_t j = 0; j < r->a.cols; j++) {
        r->weight[j] = (float)roll_unit(d);
        r->bias[j] = (float)roll_unit(d);
    }
}

static void run(const lnorm_kernels *kernels, streamed_rows *r, int fast, int stream, int in_place, char *out,
                size_t offset) {
    lnorm_rows a = r->a;
    memset(out, 0xa5, BYTES);
    a.stream = stream;
    a.y = out + offset;
    if (in_place) {
        memcpy(out + offset, r->x, BYTES - offset);
        a.x = a.y;
        a.y_pitch = a.x_pitch;
    }
    kernels->rows_forward[fast](&a, ROWS);
}

static void check(const lnorm_kernels *kernels, enum lnorm_element element, int fast, int64_t cols, size_t offset,
                  uint64_t seed) {
    static streamed_rows r;
    dice d = {seed};
    r.a = (lnorm_rows){.x = r.x,
                       .weight = roll_one_in(&d, 4) ? NULL : r.weight,
                       .bias = roll_one_in(&d, 4) ? NULL : r.bias,
                       .x_pitch = cols + roll_below(&d, GAP),
                       .y_pitch = cols + (offset ? roll_below(&d, GAP) : 0), /* at 0 whole lines, if cols are */
                       .cols = cols,
                       .eps = 1e-5,
                       .element = (uint8_t)element,
                       .affine = LNORM_ELEMENT_F32,
                       .center = !roll_one_in(&d, 4)};
    fill(&r, &d, offset != 0);
    for (int in_place = 0; in_place < (offset % 4 ? 1 : 2); in_place++) {
        run(kernels, &r, fast, 0, in_place, r.expected, offset);
        run(kernels, &r, fast, 1, in_place, r.y, offset);
        if (memcmp(r.expected, r.y, BYTES))
            fail_msg("%s, element %d, fast %d, %lld columns, offset %d, in place %d", kernels->name, (int)element, fast,
                     (long long)cols, (int)offset, in_place);
    }
}

void test_rows_past_caches(void **state) {
    static const int64_t cols[] = {256, 257, 271, 300, 64, 768, 1001, 1024, 128, 1041, 2000, COLS_MOST};
    static const enum lnorm_element elements[] = {LNORM_ELEMENT_F32, LNORM_ELEMENT_F16, LNORM_ELEMENT_BF16};
    const lnorm_kernels *kernels;
    int k = 0;
    (void)state;
    while ((kernels = case_kernels(&k)))
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
            for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
                for (size_t offset = i % 4; offset < 64; offset += i % 2 ? 3 : 4)
                    for (int fast = 0; fast < 2; fast++)
                        check(kernels, elements[e], fast, cols[i], offset, i * 64 + offset);
}
