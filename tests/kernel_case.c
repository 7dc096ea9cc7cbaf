#include "kernel_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* -- Random numbers ----------------------------------------------------------------------------------------------- */

/* splitmix64 */
uint64_t roll(dice *d) {
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t roll_below(dice *d, int64_t count) {
    return (int64_t)(roll(d) % (uint64_t)count);
}

int roll_one_in(dice *d, int64_t count) {
    return roll_below(d, count) == 0;
}

double roll_unit(dice *d) {
    return (double)(int64_t)roll(d) * 0x1p-63;
}

/* Values as some row may have them. */
enum flavour {
    PLAIN,
    CONSTANT,   /* path B: zero variance */
    FAR_MEAN,   /* path B */
    NEAR_KAPPA, /* mean^2 about 64 times the variance: some rows take path A, some B */
    SMALL_INTS, /* ties when rounded */
    ZEROS,      /* +0 and -0 */
    MINUS_ZEROS,
    CALM = MINUS_ZEROS, /* the last that is not wild */
    SUBNORMAL,
    LARGEST,
    ANY_BITS, /* every exponent */
    WITH_INFINITY,
    WITH_NAN
};

double roll_value(dice *d, int flavour) {
    switch ((enum flavour)flavour) {
    case PLAIN:
        return 3.0 * roll_unit(d);
    case CONSTANT:
        return 0.1;
    case FAR_MEAN:
        return 1e4 + 0.01 * roll_unit(d);
    case NEAR_KAPPA:
        return 4.62 + roll_unit(d); /* the variance of roll_unit is 1/3 */
    case SMALL_INTS:
        return (double)(roll_below(d, 9) - 4);
    case ZEROS:
        return roll_one_in(d, 2) ? 0.0 : -0.0;
    case MINUS_ZEROS:
        return -0.0;
    case SUBNORMAL:
        return roll_unit(d) * 0x1p-127;
    case LARGEST:
        return roll_one_in(d, 2) ? 3.3e38 : -3.3e38;
    case ANY_BITS:
        return ldexp(roll_unit(d), (int)roll_below(d, 260) - 135);
    case WITH_INFINITY:
        return roll_one_in(d, 20) ? (double)INFINITY * (roll_one_in(d, 2) ? 1 : -1) : roll_unit(d);
    case WITH_NAN:
        return roll_one_in(d, 20) ? lnorm_f64_of_bits(roll_one_in(d, 2) ? 0x7fffffffffffffff : 0xfff8000000000000)
                                  : roll_unit(d);
    }
    return 0.0;
}

static int roll_flavour(dice *d, int wild) {
    return roll_one_in(d, 2) ? PLAIN : (int)roll_below(d, wild ? FLAVOURS : CALM + 1);
}

/* -- Tensors ------------------------------------------------------------------------------------------------------ */

static const lnorm_tensor **slot(kernel_case *c, enum lnorm_operand operand) {
    static const size_t fields[LNORM_OPERANDS] = {
#define OPERAND(ID, field, shape, reads, writes) offsetof(lnorm_io, field),
#include "lists/operands.def"
#undef OPERAND
    };
    return (const lnorm_tensor **)(void *)((char *)&c->io + fields[operand]);
}

static enum lnorm_element element_of(lnorm_dtype dtype) {
    return dtype.code == 4      ? LNORM_ELEMENT_BF16
           : dtype.bits == 64   ? LNORM_ELEMENT_F64
           : dtype.bits == 32   ? LNORM_ELEMENT_F32
                                : LNORM_ELEMENT_F16;
}

void case_begin(kernel_case *c, uint64_t seed, lnorm_kind kind, lnorm_pass pass) {
    memset(c, 0, sizeof *c);
    c->op = (lnorm_op)LNORM_OP_INIT;
    c->io = (lnorm_io)LNORM_IO_INIT;
    c->op.kind = kind;
    c->op.pass = pass;
    c->d.state = seed;
}

void case_end(kernel_case *c) {
    for (int i = 0; i < LNORM_OPERANDS; i++) {
        guarded_free(&c->at[i].memory);
        free(c->at[i].image);
        free(c->at[i].expected);
    }
}

int case_has(const kernel_case *c, enum lnorm_operand operand) {
    return *slot((kernel_case *)(uintptr_t)c, operand) != NULL;
}

/* Strides for a layout; axes of one element get any stride. */
static void lay_out(kernel_case *c, case_tensor *t, int ndim, layout how) {
    int order[CASE_NDIM];
    int64_t stride = 1;
    for (int i = 0; i < ndim; i++)
        order[i] = ndim - 1 - i;
    for (int i = ndim; how >= LAYOUT_SCATTERED && i-- > 1;) {
        int other = (int)roll_below(&c->d, i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < ndim; i++) {
        int axis = order[i];
        t->strides[axis] = stride;
        if (how >= LAYOUT_SCATTERED && roll_one_in(&c->d, 4))
            t->strides[axis] = -stride;
        if (how == LAYOUT_REPEATED && roll_one_in(&c->d, 2))
            t->strides[axis] = 0;
        stride *= t->shape[axis] > 0 ? t->shape[axis] : 1;
        if ((how == LAYOUT_PITCHED && i == 0) || (how >= LAYOUT_SCATTERED && roll_one_in(&c->d, 3)))
            stride += 1 + roll_below(&c->d, 4);
        if (how != LAYOUT_DENSE && t->shape[axis] == 1)
            t->strides[axis] = 1 + roll_below(&c->d, 40) - 20;
    }
}

void case_add(kernel_case *c, enum lnorm_operand operand, lnorm_dtype dtype, int ndim, const int64_t *shape,
              layout how) {
    case_tensor *t = &c->at[operand];
    int64_t low = 0, high = 0, size = dtype.bits / 8;
    int empty = 0;
    for (int i = 0; i < ndim; i++)
        t->shape[i] = shape[i];
    lay_out(c, t, ndim, how);
    for (int i = 0; i < ndim; i++) {
        int64_t reach = t->strides[i] * (shape[i] - 1);
        empty |= shape[i] == 0;
        low += reach < 0 && shape[i] ? reach : 0;
        high += reach > 0 && shape[i] ? reach : 0;
    }
    int at_the_end = roll_one_in(&c->d, 2);
    t->memory = guarded_new(empty ? 0 : (size_t)((high - low + 1) * size), c->edge ? c->edge == 2 : at_the_end);
    t->image = malloc(t->memory.bytes + 1);
    t->expected = malloc(t->memory.bytes + 1);
    memset(t->image, 0xa5, t->memory.bytes);
    t->tensor = lnorm_dense(t->memory.at - low * size, dtype, ndim, t->shape);
    t->tensor.strides = t->strides;
    *slot(c, operand) = &t->tensor;
}

void case_alias(kernel_case *c, enum lnorm_operand operand, enum lnorm_operand other) {
    *slot(c, operand) = &c->at[other].tensor;
}

static int64_t count_of(const lnorm_tensor *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->ndim; i++)
        count *= tensor->shape[i];
    return count;
}

/* Offset of a logical index in elements; *coordinate: its place along axis `key`. */
static int64_t offset_of(const case_tensor *t, int64_t index, int key, int64_t *coordinate) {
    int64_t offset = 0;
    *coordinate = 0;
    for (int i = t->tensor.ndim; i-- > 0;) {
        int64_t place = index % t->shape[i];
        index /= t->shape[i];
        offset += place * t->strides[i];
        if (i == key)
            *coordinate = place;
    }
    return offset;
}

static void put_in_image(case_tensor *t, int64_t offset, double value) {
    lnorm_store(element_of(t->tensor.dtype), t->image + ((char *)t->tensor.data - t->memory.at), offset, value);
}

void case_set(kernel_case *c, enum lnorm_operand operand, int64_t index, double value) {
    int64_t coordinate;
    put_in_image(&c->at[operand], offset_of(&c->at[operand], index, -1, &coordinate), value);
}

void case_fill(kernel_case *c, enum lnorm_operand operand, int key, int wild) {
    case_tensor *t = &c->at[operand];
    uint64_t salt = roll(&c->d);
    for (int64_t i = 0; i < count_of(&t->tensor); i++) {
        int64_t coordinate, offset = offset_of(t, i, key, &coordinate);
        dice of_row = {salt + (uint64_t)coordinate};
        put_in_image(t, offset, roll_value(&c->d, roll_flavour(&of_row, wild)));
    }
}

void case_fill_flavour(kernel_case *c, enum lnorm_operand operand, int flavour) {
    case_tensor *t = &c->at[operand];
    for (int64_t i = 0; i < count_of(&t->tensor); i++) {
        int64_t coordinate, offset = offset_of(t, i, -1, &coordinate);
        put_in_image(t, offset, roll_value(&c->d, flavour));
    }
}

/* -- Running ------------------------------------------------------------------------------------------------------ */

void case_restore(kernel_case *c) {
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (c->at[i].image && c->at[i].memory.bytes)
            memcpy(c->at[i].memory.at, c->at[i].image, c->at[i].memory.bytes);
}

/* The workspace's memory ends at a page that faults; what is before it must stay. */
static void run(kernel_case *c, case_way way) {
    size_t needed = way.workspace ? way.engine->workspace(&c->problem) : 0, rounded = (needed + 63) / 64 * 64;
    guarded workspace = guarded_new(rounded, 1);
    lnorm_data data;
    c->io.workspace = needed ? workspace.at : NULL;
    c->io.workspace_size = needed;
    memset(workspace.at, 0xff, rounded); /* NaN */
    case_restore(c);
    lnorm_problem_data(&c->problem, &c->io, needed, &data);
    for (int phase = 0; phase < way.engine->phases(&c->problem); phase++) {
        int64_t tasks = lnorm_tasks(way.engine, &c->problem, phase);
        for (int64_t i = 0; i < tasks; i++)
            way.engine->run(&c->problem, &data, way.kernels, phase, way.reversed ? tasks - 1 - i : i);
    }
    for (size_t i = needed; i < rounded; i++)
        if (workspace.at[i] != (char)0xff)
            abort();
    guarded_free(&workspace);
}

void case_expect(kernel_case *c) {
    lnorm_error error = LNORM_ERROR_INIT;
    case_way way = {&lnorm_engine_definition, NULL, 1, 0};
    if (lnorm_problem_init(&c->problem, &c->op, &c->io, &error)) {
        fprintf(stderr, "not a case: %s\n", error.message);
        abort();
    }
    run(c, way);
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (c->at[i].image && c->at[i].memory.bytes)
            memcpy(c->at[i].expected, c->at[i].memory.at, c->at[i].memory.bytes);
}

/* -- Comparing ---------------------------------------------------------------------------------------------------- */

static int is_nan(enum lnorm_element element, const void *at) {
    double value = lnorm_load(element, at, 0);
    return value != value;
}

/* Every element's place in the memory, whether the tensor has it or it is a gap: gaps must not have changed either. One
 * by one only where not all bytes are the same: two NaN may differ. */
static int64_t first_difference(const case_tensor *t) {
    size_t size = t->tensor.dtype.bits / 8;
    if (!memcmp(t->memory.at, t->expected, t->memory.bytes))
        return -1;
    for (size_t i = 0; i < t->memory.bytes; i += size)
        if (memcmp(t->memory.at + i, t->expected + i, size) &&
            !(is_nan(element_of(t->tensor.dtype), t->memory.at + i) &&
              is_nan(element_of(t->tensor.dtype), t->expected + i)))
            return (int64_t)(i / size);
    return -1;
}

static void report(const kernel_case *c, case_way way, int operand, int64_t place) {
    const case_tensor *t = &c->at[operand];
    enum lnorm_element element = element_of(t->tensor.dtype);
    const char *data = t->memory.at;
    fprintf(stderr, "%s %s workspace %d reversed %d: kind %d pass %d statistics %d center %d groups %lld x %lld: "
            "%s[%lld] (%d bits) %a, expected %a\n", way.engine->name, way.kernels->name, way.workspace, way.reversed,
            (int)c->op.kind, (int)c->op.pass, (int)c->op.statistics, c->problem.center,
            (long long)c->problem.group.count, (long long)c->problem.element.count,
            lnorm_operand_name((enum lnorm_operand)operand), (long long)place, t->tensor.dtype.bits,
            lnorm_load(element, data, place), lnorm_load(element, t->expected, place));
}

int case_left_as_expected(const kernel_case *c, int *operand, int64_t *place) {
    for (int i = 0; i < LNORM_OPERANDS; i++) {
        *operand = i;
        *place = c->at[i].image ? first_difference(&c->at[i]) : -1;
        if (*place >= 0)
            return 0;
    }
    return 1;
}

int case_agrees(kernel_case *c, case_way way) {
    int operand;
    int64_t place;
    run(c, way);
    if (case_left_as_expected(c, &operand, &place))
        return 1;
    report(c, way, operand, place);
    return 0;
}

const lnorm_kernels *case_kernels(int *index) {
    const char *asked = getenv("LNORM_ISA");
    const lnorm_kernels *kernels;
    int runs;
    while ((kernels = lnorm_kernels_at((*index)++, &runs)))
        if (runs && (!asked || !*asked || !strcmp(asked, kernels->name)))
            return kernels;
    return NULL;
}

/* A phase of one task has one order. */
static int has_orders(const lnorm_engine *engine, const lnorm_problem *problem) {
    for (int phase = 0; phase < engine->phases(problem); phase++)
        if (lnorm_tasks(engine, problem, phase) > 1)
            return 1;
    return 0;
}

int case_agrees_everywhere(kernel_case *c, const lnorm_engine *engine) {
    const int workspaces = engine->workspace(&c->problem) ? 2 : 1, orders = has_orders(engine, &c->problem) ? 2 : 1;
    const lnorm_kernels *kernels;
    int agrees = 1, i = 0;
    while ((kernels = case_kernels(&i)))
        for (int way = 0; way < workspaces * orders; way++) {
            case_way one = {engine, kernels, way / orders, way % orders};
            agrees &= case_agrees(c, one);
        }
    return agrees;
}
