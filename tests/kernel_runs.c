/* Runs with one weight and one bias, as channels of [N, C, H, W] have, beside the definition element by element: of any
 * length, wherever in a line they begin, past the caches or not, y where x was or elsewhere, and no other byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel_case.h"
#include "kernel_runs.h"
#include "kernels/loops.h"

#include <math.h>
#include <string.h>

enum { RUNS = LN_CHANNEL_RUNS, MOST = 5000, PITCH = MOST + 45, BYTES = RUNS * PITCH * 4 + 64 };

typedef struct channels {
    _Alignas(64) char x[BYTES], y[BYTES], expected[BYTES];
    ln_record s[RUNS];
    ln_fast_form form[RUNS];
    ln_channel_run run[RUNS];
    int fast, runs;
    enum lnorm_element element;
} channels;

/* Weights, too, that are no f32, as 1 + weight may be, and out of the range of what is computed with a bound. */
static double affine(dice *d, double missing) {
    switch (roll_below(d, 8)) {
    case 0:
        return missing;
    case 1:
        return 1.0 + (double)(float)(roll_unit(d) * 1e-6);
    case 2:
        return roll_one_in(d, 2) ? 0.0 : 0x1p-50;
    case 3:
        return (double)(float)(roll_unit(d) * 0x1p60);
    default:
        return (double)(float)roll_unit(d);
    }
}

static void fill(channels *c, dice *d, int64_t n, int wild) {
    for (int64_t i = 0; i < BYTES / ln_element_size(c->element); i++)
        lnorm_store(c->element, c->x, i, roll_unit(d) + (wild ? 3 : 0));
    for (int k = 0; k < c->runs; k++) {
        c->s[k] = (ln_record){.c = roll_unit(d), .r = 2.0 + roll_unit(d)};
        c->s[k].t = roll_one_in(d, 4) ? c->s[k].c * 0x1p-40 : 0.0;
        c->form[k] = ln_fast_form_of(&c->s[k]);
        c->run[k] = (ln_channel_run){.n = n, .s = &c->s[k], .form = &c->form[k]};
        c->run[k].weight = affine(d, 1.0);
        c->run[k].bias = affine(d, -0.0);
    }
}

static void expect(const channels *c, const ln_channel_run *run, const char *x, char *y) {
    for (int64_t i = 0; i < run->n; i++) {
        const double value = lnorm_load(c->element, x, i);
        const double y_of = c->fast ? (double)ln_irregular_element(run->s, value, run->weight, run->bias)
                                    : (((value - run->s->c) - run->s->t) * run->s->r) * run->weight + run->bias;
        lnorm_store(c->element, y, i, y_of);
    }
}

static void check(const lnorm_kernels *kernels, channels *c, int64_t gap, size_t offset, int in_place, int streams) {
    const int64_t pitch = (c->run[0].n + gap) * ln_element_size(c->element);
    memset(c->y, 0xa5, BYTES);
    if (in_place)
        memcpy(c->y + offset, c->x, BYTES - 64);
    memcpy(c->expected, c->y, BYTES);
    for (int k = 0; k < c->runs; k++) {
        const size_t at = offset + (size_t)(k * pitch);
        c->run[k].y = c->y + at;
        c->run[k].x = c->run[k].next = in_place ? c->run[k].y : c->x + k * pitch;
        expect(c, &c->run[k], c->x + k * pitch, c->expected + at);
    }
    kernels->loops->channel_runs(c->fast, c->element, c->run, c->runs, streams);
    if (memcmp(c->y, c->expected, BYTES))
        fail_msg("%s, element %d, fast %d, %d runs of %lld, gap %d, offset %d, in place %d, streams %d", kernels->name,
                 (int)c->element, c->fast, c->runs, (long long)c->run[0].n, (int)gap, (int)offset, in_place, streams);
}

static const enum lnorm_element elements[] = {LNORM_ELEMENT_F32, LNORM_ELEMENT_F16, LNORM_ELEMENT_BF16};

void test_channel_runs(void **state) {
    static const int64_t counts[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 49, 63, 64, 65, 100, 196, 255, 256, 257, 784, MOST};
    static channels c;
    const lnorm_kernels *kernels;
    int k = 0;
    (void)state;
    while ((kernels = case_kernels(&k)))
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (int turn = 0; turn < 24; turn++) {
                dice d = {i * 24 + (size_t)turn};
                const int64_t size = turn % 3 ? 2 : 4, gap = turn % 4 ? roll_below(&d, 40) : 0;
                const size_t offset = turn % 4 ? (size_t)(roll_below(&d, 64 / size) * size) : 0;
                c.element = elements[turn % 3];
                c.fast = turn / 3 % 2;
                c.runs = 1 + (int)roll_below(&d, RUNS);
                fill(&c, &d, counts[i], turn % 5 == 0);
                for (int way = 0; way < 3; way++)
                    check(kernels, &c, gap, offset, way == 1, way == 2);
            }
}

/* -- Statistics of another x ---------------------------------------------------------------------------------------- */

/* Given statistics fit no x: differences, products and f32 forms of them overflow, or vanish. */
static void fill_strange(channels *c, dice *d, int64_t n) {
    static const double means[] = {0.0, 1.0, -0x1p41, 1e39, -1e300, 0x1p-130, (double)INFINITY, -(double)INFINITY};
    static const double roots[] = {1.0, 0x1p40, 0x1p-40, 1e300, 1e-300, 5e-324, 0.0, -1.0};
    static const double weights[] = {0.0, -0.0, 1.0, -8.0, 0x1p40, 0x1p-40};
    for (int64_t i = 0; i < BYTES / ln_element_size(c->element); i++)
        lnorm_store(c->element, c->x, i, roll_unit(d) * (roll_one_in(d, 2) ? 1.0 : 0x1p127));
    for (int k = 0; k < c->runs; k++) {
        c->s[k] = (ln_record){.c = means[roll_below(d, 8)], .r = roots[roll_below(d, 8)]};
        c->run[k] = (ln_channel_run){.n = n, .s = &c->s[k], .form = &c->form[k]};
        c->run[k].weight = weights[roll_below(d, 6)];
        c->run[k].bias = roll_one_in(d, 2) ? 0.0 : roll_unit(d);
    }
}

/* A NaN is a NaN, whatever its bits. */
static int same_element(enum lnorm_element element, const char *a, const char *b, int64_t i) {
    const double one = lnorm_load(element, a, i), other = lnorm_load(element, b, i);
    return (one != one && other != other) || (one == other && !signbit(one) == !signbit(other));
}

void test_runs_of_strange_statistics(void **state) {
    static channels c;
    const lnorm_kernels *kernels;
    int k = 0;
    (void)state;
    while ((kernels = case_kernels(&k)))
        for (int turn = 0; turn < 600; turn++) {
            dice d = {(uint64_t)turn};
            const int64_t n = 1 + roll_below(&d, 100);
            c.element = elements[turn % 3];
            c.fast = 0;
            c.runs = RUNS;
            fill_strange(&c, &d, n);
            for (int i = 0; i < RUNS; i++) {
                const int64_t at = i * n * ln_element_size(c.element);
                c.run[i].x = c.run[i].next = c.x + at;
                c.run[i].y = c.y + at;
                expect(&c, &c.run[i], c.x + at, c.expected + at);
            }
            kernels->loops->channel_runs(0, c.element, c.run, RUNS, 0);
            for (int64_t i = 0; i < RUNS * n; i++)
                if (!same_element(c.element, c.y, c.expected, i))
                    fail_msg("%s, element %d, mean %a rstd %a weight %a: %a, not %a", kernels->name, (int)c.element,
                             c.s[i / n].c, c.s[i / n].r, c.run[i / n].weight, lnorm_load(c.element, c.y, i),
                             lnorm_load(c.element, c.expected, i));
        }
}
