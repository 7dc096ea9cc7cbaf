/* The engine of few long rows against the reference, and one segment of it at a time with no other memory in reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel_long.h"
#include "kernel_case.h"
#include "long.h"

#include <stdlib.h>

enum { SEGMENT = 1 << 15, LEAST = 1 << 17 }; /* columns of a segment of these rows; of the shortest row taken */

static const lnorm_dtype f64 = {2, 64, 1}, f32 = {2, 32, 1}, f16 = {2, 16, 1}, bf16 = {4, 16, 1};

typedef struct long_case {
    lnorm_kind kind;
    lnorm_dtype x, affine;
    lnorm_dtype dy, out, bias; /* x's, x's and affine's, unless the types are mixed */
    int64_t rows, cols;
    int wild, fast;
    uint64_t seed;
} long_case;

/* Each operand of a narrow type of its own. */
static void mix(long_case *l) {
    const lnorm_dtype types[] = {f32, f16, bf16};
    dice d = {l->seed};
    lnorm_dtype *const all[] = {&l->x, &l->affine, &l->dy, &l->out, &l->bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = types[roll_below(&d, 3)];
}

static void same_types(long_case *l) {
    l->dy = l->out = l->x;
    l->bias = l->affine;
}

static layout dense_or_pitched(kernel_case *c) {
    return roll_one_in(&c->d, 2) ? LAYOUT_DENSE : LAYOUT_PITCHED;
}

/* The shape of a parameter: along the row, one number per row, or one for all. */
typedef struct affine_shape {
    int ndim;
    int64_t at[2];
} affine_shape;

static affine_shape roll_affine_shape(kernel_case *c, int64_t rows, int64_t cols) {
    affine_shape shapes[] = {{1, {cols, 0}}, {2, {rows, 1}}, {1, {1, 0}}};
    return shapes[c->op.affine_broadcast ? roll_below(&c->d, 3) : 0];
}

static void set_row(kernel_case *c, int64_t row, int64_t cols, double mean, double deviation) {
    for (int64_t j = 0; j < cols; j++)
        case_set(c, LNORM_X, row * cols + j, mean + deviation * roll_unit(&c->d));
}

/* Path B, and far from what path A would give. */
static void set_far_mean(kernel_case *c, int64_t row, int64_t cols, lnorm_dtype dtype) {
    set_row(c, row, cols, dtype.bits == 32 ? 1e4 : 64, dtype.bits == 32 ? 0.1 : 1);
}

/* Path A where f32 would take runs, and statistics that are beyond f32 operations. */
static void set_hard_for_runs(kernel_case *c, const long_case *l) {
    const int large = l->x.bits == 32 || l->x.code == 4;
    if (l->seed % 3 == 1)
        set_row(c, 0, l->cols, 2, 1);
    if (l->seed % 5 < 2 && large)
        set_row(c, l->rows - 1, l->cols, 0x1p110, 0x1p104);
}

static void begin_long(kernel_case *c, long_case l, lnorm_pass pass) {
    const int64_t shape[2] = {l.rows, l.cols};
    case_begin(c, l.seed, l.kind, pass);
    c->op.arithmetic = l.fast ? LNORM_FAST : LNORM_ACCURATE;
    c->op.affine_broadcast = roll_one_in(&c->d, 2) && !l.fast; /* the fast kernels are those of rows */
    c->op.eps = roll_one_in(&c->d, 4) ? 0.0 : 1e-5;
    case_add(c, LNORM_X, l.x, 2, shape, dense_or_pitched(c));
    case_fill(c, LNORM_X, 0, l.wild);
    if (l.seed % 3 == 0)
        set_far_mean(c, l.rows - 1, l.cols, l.x);
    if (l.fast)
        set_hard_for_runs(c, &l);
}

/* A parameter, a gradient of its shape, both or neither. */
static void add_affine(kernel_case *c, long_case l, enum lnorm_operand parameter, enum lnorm_operand gradient) {
    lnorm_dtype dtype = parameter == LNORM_BIAS ? l.bias : l.affine;
    affine_shape s = roll_affine_shape(c, l.rows, l.cols);
    if (!roll_one_in(&c->d, 4)) {
        case_add(c, parameter, dtype, s.ndim, s.at, LAYOUT_DENSE);
        case_fill_flavour(c, parameter, roll_one_in(&c->d, 4) ? 9 : 0);
    }
    if (c->op.pass == LNORM_BACKWARD && !roll_one_in(&c->d, 4))
        case_add(c, gradient, roll_one_in(&c->d, 2) ? dtype : f64, s.ndim, s.at,
                 roll_one_in(&c->d, 2) ? LAYOUT_SCATTERED : LAYOUT_DENSE);
}

static void check_long(kernel_case *c, long_case l) {
    case_expect(c);
    assert_true(lnorm_engine_long.takes(&c->problem));
    if (!case_agrees_everywhere(c, &lnorm_engine_long))
        fail_msg("long rows, pass %d, %lld x %lld, seed %llu", (int)c->op.pass, (long long)l.rows, (long long)l.cols,
                 (unsigned long long)l.seed);
    case_end(c);
}

static void forward_long(long_case l) {
    const int64_t shape[2] = {l.rows, l.cols};
    kernel_case c;
    begin_long(&c, l, LNORM_FORWARD);
    add_affine(&c, l, LNORM_WEIGHT, LNORM_DWEIGHT);
    if (l.kind == LNORM_LAYER_NORM) {
        add_affine(&c, l, LNORM_BIAS, LNORM_DBIAS);
        if (roll_one_in(&c.d, 2))
            case_add(&c, LNORM_MEAN, f64, 1, shape, LAYOUT_SCATTERED);
    }
    if (roll_one_in(&c.d, 2))
        case_add(&c, LNORM_RSTD, f64, 1, shape, LAYOUT_DENSE);
    if (roll_one_in(&c.d, 3) && l.out.bits == l.x.bits && l.out.code == l.x.code)
        case_alias(&c, LNORM_Y, LNORM_X);
    else if (!roll_one_in(&c.d, 8))
        case_add(&c, LNORM_Y, l.out, 2, shape, dense_or_pitched(&c));
    check_long(&c, l);
}

static void backward_long(long_case l) {
    const int64_t shape[2] = {l.rows, l.cols};
    kernel_case c;
    begin_long(&c, l, LNORM_BACKWARD);
    case_add(&c, LNORM_DY, l.dy, 2, shape, dense_or_pitched(&c));
    case_fill(&c, LNORM_DY, 0, l.wild);
    c.op.accumulate = roll_one_in(&c.d, 3);
    if (roll_one_in(&c.d, 4)) {
        c.op.statistics = LNORM_SAVED;
        case_add(&c, LNORM_RSTD, f32, 1, shape, LAYOUT_DENSE);
        case_fill_flavour(&c, LNORM_RSTD, 0);
        if (l.kind == LNORM_LAYER_NORM) {
            case_add(&c, LNORM_MEAN, f64, 1, shape, LAYOUT_DENSE);
            case_fill_flavour(&c, LNORM_MEAN, 0);
        }
    }
    add_affine(&c, l, LNORM_WEIGHT, LNORM_DWEIGHT);
    if (l.kind == LNORM_LAYER_NORM)
        add_affine(&c, l, LNORM_BIAS, LNORM_DBIAS);
    if (l.seed <= 30 && roll_one_in(&c.d, 2))
        case_alias(&c, LNORM_DX, roll_one_in(&c.d, 2) ? LNORM_X : LNORM_DY);
    else if (!roll_one_in(&c.d, 5))
        case_add(&c, LNORM_DX, l.out, 2, shape, dense_or_pitched(&c));
    check_long(&c, l);
}

/* Ends of rows around the ends of segments and blocks. */
static void over_long_rows(void (*check)(long_case), int fast) {
    static const int64_t cols[] = {LEAST,           LEAST + 1,       5 * SEGMENT - 1, 5 * SEGMENT,
                                   5 * SEGMENT + 7, 7 * SEGMENT + 257};
    const lnorm_dtype types[][2] = {{f32, f32}, {f16, f16}, {f16, f32}, {bf16, bf16}, {bf16, f32}};
    long_case l = {.seed = 1, .fast = fast};
    for (; l.seed <= (fast ? 30 : 50); l.seed++) {
        l.cols = cols[l.seed % 6];
        l.rows = fast && l.seed % 10 == 7 ? 9 : 1 + (int64_t)(l.seed / 6 % 3);
        l.x = types[l.seed % 5][0];
        l.affine = types[l.seed % 5][1];
        l.kind = l.seed % 7 < 2 ? LNORM_RMS_NORM : LNORM_LAYER_NORM;
        l.wild = l.seed % 4 == 0;
        same_types(&l);
        if (l.seed > 30)
            mix(&l);
        check(l);
    }
}

void test_long_forward(void **state) {
    (void)state;
    over_long_rows(forward_long, 0);
}

void test_long_backward(void **state) {
    (void)state;
    over_long_rows(backward_long, 0);
}

void test_long_fast(void **state) {
    (void)state;
    over_long_rows(forward_long, 1);
    over_long_rows(backward_long, 1);
}

/* Gradients of each narrow type are added to, with columns left that are no whole vector: the last ones of a chunk that
 * is not full, far into it. */
void test_long_accumulated(void **state) {
    const int64_t shape[2] = {1, LEAST + 601};
    const lnorm_dtype types[] = {f32, f16, bf16};
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        const long_case l = {.kind = LNORM_LAYER_NORM, .rows = shape[0], .cols = shape[1], .seed = 200 + i};
        kernel_case c;
        case_begin(&c, l.seed, l.kind, LNORM_BACKWARD);
        c.op.accumulate = 1;
        case_add(&c, LNORM_X, f32, 2, shape, LAYOUT_DENSE);
        case_fill(&c, LNORM_X, 0, 0);
        case_add(&c, LNORM_DY, f32, 2, shape, LAYOUT_DENSE);
        case_fill(&c, LNORM_DY, 0, 0);
        for (int k = 0; k < 2; k++) {
            const enum lnorm_operand gradient = k ? LNORM_DBIAS : LNORM_DWEIGHT;
            case_add(&c, gradient, types[i], 1, &shape[1], LAYOUT_DENSE);
            case_fill_flavour(&c, gradient, 0);
        }
        check_long(&c, l);
    }
}

/* -- Past the caches ---------------------------------------------------------------------------------------------- */

enum { STREAMED = 600 }; /* columns at most: more than two blocks */

typedef struct streamed {
    float x[STREAMED], dy[STREAMED], weight[STREAMED]; /* read as any type */
    ln_record s;
} streamed;

/* A number below 1 in f32, and in both halves in f16 and bf16: bytes are compared, so there must be no NaN. */
static float draw_any_type(dice *d) {
    float value = (float)roll_unit(d);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits & 0xffff0000u) | bits >> 16;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static streamed draw_streamed(uint64_t seed) {
    dice d = {seed};
    streamed r;
    for (int i = 0; i < STREAMED; i++) {
        r.x[i] = draw_any_type(&d);
        r.dy[i] = draw_any_type(&d);
        r.weight[i] = draw_any_type(&d);
    }
    r.s = (ln_record){0.25, seed % 2 ? 0x1p-30 : 0.0, 0.0, 3.0, 0.125, 0.5};
    return r;
}

/* y or dx of `count` columns at `out`, all of one type. */
static void run_streamed(const lnorm_long *kernels, const streamed *r, enum lnorm_element element, char *out,
                         int64_t count, int gradient, int stream) {
    const uint8_t type = (uint8_t)element;
    lnorm_segment a = {.x = (const char *)r->x, .dy = (const char *)r->dy, .weight = {(const char *)r->weight, type, 1},
                       .bias = {(const char *)r->dy, type, 1}, .count = count, .x_element = type, .dy_element = type,
                       .y_element = type, .dx_element = type, .stream = stream, .s = &r->s};
    a.y = gradient ? NULL : out;
    a.dx = gradient ? out : NULL;
    if (gradient)
        kernels->backward(&a, NULL, NULL);
    else
        kernels->forward(&a);
}

/* Streamed or not, the same bytes and no others, wherever in a line the output begins, and where it is not aligned
 * to its elements. */
static void check_streamed(const lnorm_long *kernels, enum lnorm_element element, size_t offset, int gradient) {
    static const int64_t counts[] = {1, 15, 16, 17, 33, 256, 300, 511, STREAMED};
    const int64_t per_f32 = element == LNORM_ELEMENT_F32 ? 1 : 2;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        _Alignas(64) char plain[STREAMED * 4 + 128], out[STREAMED * 4 + 128];
        streamed r = draw_streamed(offset + i);
        memset(plain, 0xa5, sizeof plain);
        memset(out, 0xa5, sizeof out);
        run_streamed(kernels, &r, element, plain + offset, counts[i] * per_f32, gradient, 0);
        run_streamed(kernels, &r, element, out + offset, counts[i] * per_f32, gradient, 1);
        assert_memory_equal(plain, out, sizeof out);
    }
}

/* Sums of columns, rounded to f32: likewise. */
static void check_streamed_sums(const lnorm_kernels *kernels, size_t offset, int accumulate) {
    static const int64_t counts[] = {1, 8, 15, 16, 17, 300, STREAMED};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        _Alignas(64) float plain[STREAMED + 32], out[STREAMED + 32];
        double sums[STREAMED];
        dice d = {offset + i};
        for (int j = 0; j < STREAMED; j++)
            sums[j] = roll_unit(&d);
        for (int j = 0; j < STREAMED + 32; j++)
            plain[j] = out[j] = (float)j;
        kernels->store(LNORM_ELEMENT_F32, plain + offset, sums, counts[i], accumulate, 0);
        kernels->store(LNORM_ELEMENT_F32, out + offset, sums, counts[i], accumulate, 1);
        assert_memory_equal(plain, out, sizeof out);
    }
}

void test_long_streams(void **state) {
    static const enum lnorm_element elements[] = {LNORM_ELEMENT_F32, LNORM_ELEMENT_F16, LNORM_ELEMENT_BF16};
    /* C does not define accesses to such elements, and UBSan stops at them. */
    const int only_aligned = getenv("LNORM_SANITIZED") != NULL;
    const lnorm_kernels *kernels;
    int k = 0;
    (void)state;
    while ((kernels = case_kernels(&k))) {
        for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
            for (size_t offset = 0; offset < 64;
                 offset += only_aligned ? (e ? 2 : 4) : e == 0 && offset > 8 ? 4 : 1)
                for (int gradient = 0; gradient < 2; gradient++)
                    check_streamed(&kernels->long_rows, elements[e], offset, gradient);
        for (size_t offset = 0; offset <= 16; offset += 4)
            for (int accumulate = 0; accumulate < 2; accumulate++)
                check_streamed_sums(kernels, offset, accumulate);
    }
}

/* The engine streams what is larger than 16 MiB. */
void test_long_streamed(void **state) {
    long_case l = {.kind = LNORM_LAYER_NORM, .x = f32, .affine = f32, .rows = 1, .cols = (1 << 22) + 5, .seed = 102};
    (void)state;
    same_types(&l);
    for (l.fast = 0; l.fast < 2; l.fast++) {
        forward_long(l);
        backward_long(l);
    }
}

/* -- What is taken ------------------------------------------------------------------------------------------------ */

static int taken(int64_t rows, int64_t cols, lnorm_dtype x, lnorm_dtype weight) {
    const int64_t shape[2] = {rows, cols};
    const lnorm_tensor tensor[] = {lnorm_dense(NULL, x, 2, shape), lnorm_dense(NULL, weight, 1, shape + 1)};
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_plan plan;
    io.x = io.y = &tensor[0];
    io.weight = &tensor[1];
    assert_int_equal(lnorm_plan_init(&plan, &op, &io, NULL), LNORM_OK);
    return ((const lnorm_plan_form *)&plan)->engine == &lnorm_engine_long;
}

/* Batch norm of one sample with two long channels; running statistics, and 1 + weight, are the general form's. */
static int takes_more(int running, int32_t weight_offset) {
    const int64_t shape[3] = {1, 2, LEAST};
    const lnorm_tensor x = lnorm_dense(NULL, f32, 3, shape), channels = lnorm_dense(NULL, f32, 1, shape + 1);
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_plan plan;
    op.kind = LNORM_BATCH_NORM;
    op.weight_offset = weight_offset;
    io.x = io.y = &x;
    io.weight = &channels;
    io.running_mean = running ? &channels : NULL;
    assert_int_equal(lnorm_plan_init(&plan, &op, &io, NULL), LNORM_OK);
    return ((const lnorm_plan_form *)&plan)->engine == &lnorm_engine_long;
}

void test_long_taken(void **state) {
    const int64_t huge[2] = {1, (int64_t)1 << 29};
    const lnorm_tensor x = lnorm_dense(NULL, f32, 2, huge), weight = lnorm_dense(NULL, f32, 1, huge + 1);
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_plan plan;
    (void)state;
    assert_true(taken(1, LEAST, f32, f32));
    assert_true(taken(63, LEAST, bf16, f32));
    assert_false(taken(64, LEAST, f32, f32));
    assert_false(taken(1, LEAST - 1, f32, f32));
    assert_false(taken(1, LEAST, f64, f32));
    assert_true(taken(1, LEAST, f32, f16));
    assert_false(takes_more(1, 0));
    assert_false(takes_more(0, 1));
    assert_true(takes_more(0, 0));
    io.x = io.dy = io.dx = &x;
    io.weight = io.dweight = io.dbias = &weight;
    op.pass = LNORM_BACKWARD;
    assert_int_equal(lnorm_plan_init(&plan, &op, &io, NULL), LNORM_OK);
    assert_true(lnorm_plan_workspace(&plan) < 1 << 20);
    assert_true(lnorm_plan_tasks(&plan, LNORM_SUM_MOMENTS) >= 256);
}

/* -- One segment at a time ---------------------------------------------------------------------------------------- */

enum { PIECES = 7 };

/* Operands that are indexed by columns, each in memory for one segment. */
typedef struct pieces {
    kernel_case *c;
    enum lnorm_operand operand[PIECES];
    int count;
} pieces;

static const lnorm_tensor **field(lnorm_io *io, enum lnorm_operand operand) {
    switch (operand) {
    case LNORM_X:
        return &io->x;
    case LNORM_Y:
        return &io->y;
    case LNORM_WEIGHT:
        return &io->weight;
    case LNORM_BIAS:
        return &io->bias;
    case LNORM_DY:
        return &io->dy;
    case LNORM_DX:
        return &io->dx;
    case LNORM_DWEIGHT:
        return &io->dweight;
    default:
        return &io->dbias;
    }
}

/* Runs one task with nothing but its segment in memory, which ends, or begins, at a page that faults. */
static void run_piece(const pieces *p, const lnorm_plan *plan, int phase, int64_t task) {
    guarded memory[PIECES];
    lnorm_tensor tensor[PIECES];
    lnorm_io io = p->c->io;
    int64_t row, first, count;
    assert_true(lnorm_plan_segment(plan, phase, task, &row, &first, &count));
    for (int i = 0; i < p->count; i++) {
        const case_tensor *whole = &p->c->at[p->operand[i]];
        int64_t size = whole->tensor.dtype.bits / 8;
        int64_t skipped = (first + (whole->tensor.ndim == 2 ? row * whole->strides[0] : 0)) * size;
        memory[i] = guarded_new((size_t)(count * size), (int)(task % 2));
        memcpy(memory[i].at, (char *)whole->tensor.data + skipped, memory[i].bytes);
        tensor[i] = whole->tensor;
        tensor[i].data = (void *)((uintptr_t)memory[i].at - (uintptr_t)skipped);
        *field(&io, p->operand[i]) = &tensor[i];
    }
    assert_int_equal(lnorm_plan_run(plan, &io, phase, task), LNORM_OK);
    for (int i = 0; i < p->count; i++) {
        const case_tensor *whole = &p->c->at[p->operand[i]];
        int64_t size = whole->tensor.dtype.bits / 8;
        int64_t skipped = (first + (whole->tensor.ndim == 2 ? row * whole->strides[0] : 0)) * size;
        memcpy((char *)whole->tensor.data + skipped, memory[i].at, memory[i].bytes);
        guarded_free(&memory[i]);
    }
}

static void run_pieces(pieces *p) {
    lnorm_plan plan;
    kernel_case *c = p->c;
    case_expect(c);
    assert_int_equal(lnorm_plan_init(&plan, &c->op, &c->io, NULL), LNORM_OK);
    c->io.workspace_size = lnorm_plan_workspace(&plan);
    c->io.workspace = malloc(c->io.workspace_size);
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (c->at[i].image)
            memcpy(c->at[i].memory.at, c->at[i].image, c->at[i].memory.bytes);
    for (int phase = 0; phase < lnorm_plan_phases(&plan); phase++)
        for (int64_t task = 0; task < lnorm_plan_tasks(&plan, phase); task++)
            run_piece(p, &plan, phase, task);
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (c->at[i].image)
            assert_memory_equal(c->at[i].memory.at, c->at[i].expected, c->at[i].memory.bytes);
    free(c->io.workspace);
    case_end(c);
}

static void add_piece(pieces *p, enum lnorm_operand operand, lnorm_dtype dtype, int ndim, const int64_t *shape,
                      int filled) {
    case_add(p->c, operand, dtype, ndim, shape, LAYOUT_DENSE);
    if (filled)
        case_fill_flavour(p->c, operand, 0);
    p->operand[p->count++] = operand;
}

/* Row 0 takes path A, or runs, row 1 path B. The last segment of a fast one has fewer columns than a vector. */
static void pieces_of(lnorm_pass pass, int64_t rows, lnorm_arithmetic arithmetic) {
    const int64_t shape[2] = {rows, LEAST + (arithmetic == LNORM_FAST ? 7 : 300)};
    kernel_case c;
    pieces p = {.c = &c};
    case_begin(&c, 7, LNORM_LAYER_NORM, pass);
    c.op.arithmetic = arithmetic;
    add_piece(&p, LNORM_X, f32, 2, shape, 1);
    if (rows > 1)
        set_far_mean(&c, 1, shape[1], f32);
    add_piece(&p, LNORM_WEIGHT, f32, 1, shape + 1, 1);
    if (pass == LNORM_FORWARD) {
        add_piece(&p, LNORM_BIAS, f32, 1, shape + 1, 1);
        add_piece(&p, LNORM_Y, f32, 2, shape, 0);
        case_add(&c, LNORM_MEAN, f64, 1, shape, LAYOUT_DENSE);
    } else {
        add_piece(&p, LNORM_DY, f32, 2, shape, 1);
        add_piece(&p, LNORM_DX, f32, 2, shape, 0);
        if (rows == 1) {
            add_piece(&p, LNORM_DWEIGHT, f32, 1, shape + 1, 0);
            add_piece(&p, LNORM_DBIAS, f32, 1, shape + 1, 0);
        }
    }
    run_pieces(&p);
}

void test_long_pieces(void **state) {
    lnorm_plan plan = {{{0}}};
    int64_t row, first, count;
    (void)state;
    for (int arithmetic = LNORM_ACCURATE; arithmetic <= LNORM_FAST; arithmetic++) {
        pieces_of(LNORM_FORWARD, 2, (lnorm_arithmetic)arithmetic);
        pieces_of(LNORM_BACKWARD, 2, (lnorm_arithmetic)arithmetic);
        pieces_of(LNORM_BACKWARD, 1, (lnorm_arithmetic)arithmetic);
    }
    assert_false(lnorm_plan_segment(&plan, 0, 0, &row, &first, &count));
    assert_false(lnorm_plan_segment(NULL, 0, 0, &row, &first, &count));
}
