#include "exact_draw.h"
#include "access.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* splitmix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014) */
uint64_t random_bits(exact_random *random) {
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int64_t random_below(exact_random *random, int64_t bound) {
    return bound <= 1 ? 0 : (int64_t)(random_bits(random) % (uint64_t)bound);
}

int random_chance(exact_random *random, int percent) {
    return random_below(random, 100) < percent;
}

double random_unit(exact_random *random) {
    return (double)(int64_t)(random_bits(random) >> 11) * 0x1p-52 - 1.0;
}

static const struct operand_info {
    enum shape_class { ELEMENTS, WEIGHT, BIAS, STATISTIC } shape;
    unsigned reads, writes;
    size_t field;
} operands[LNORM_OPERANDS] = {
#define OPERAND(ID, field, shape, reads, writes) {shape, reads, writes, offsetof(lnorm_io, field)},
#include "lists/operands.def"
#undef OPERAND
};

/* -- Shapes -------------------------------------------------------------------------------------------------------- */

/* Mostly short; the lengths where the arithmetic changes its course; a few that have many blocks. */
static int64_t draw_size(exact_random *random) {
    static const int64_t edges[] = {1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257, 272, 511, 512, 513, 768};
    static const int64_t long_ones[] = {1000, 4096, 4099, 65537, 70000};
    int64_t choice = random_below(random, 1000);
    if (choice < 560)
        return 1 + random_below(random, 40);
    if (choice < 845)
        return edges[random_below(random, sizeof edges / sizeof *edges - (choice < 800 ? 8 : 0))];
    if (choice < 990)
        return 17 + random_below(random, 300);
    if (choice < 994)
        return 0;
    return choice < 999 ? long_ones[random_below(random, 3)] : long_ones[random_below(random, 5)];
}

static int64_t draw_groups(exact_random *random, int64_t size) {
    static const int64_t edges[] = {63, 64, 65, 127, 128, 129, 200};
    if (random_chance(random, 1))
        return 0;
    if (size <= 5 && random_chance(random, 15))
        return edges[random_below(random, 7)];
    return 1 + random_below(random, size > 1000 ? 2 : size > 100 ? 4 : 7);
}

/* Splits count into `parts` factors. */
static void factor(exact_random *random, int64_t count, int parts, int64_t *extent) {
    for (int i = 0; i < parts - 1; i++) {
        int64_t divisor = 1;
        for (int attempt = 0; attempt < 6; attempt++) {
            int64_t candidate = 1 + random_below(random, count < 40 ? count : 40);
            if (count % candidate == 0)
                divisor = candidate;
        }
        extent[i] = divisor;
        count /= divisor;
    }
    extent[parts - 1] = count;
}

/* x of layer and RMS norm: the last axis, trailing ones, or any. */
static int draw_layer_shape(exact_case *c, exact_random *random, int64_t *shape) {
    int inner = 1 + (int)random_below(random, 3), outer = (int)random_below(random, 3);
    int form = (int)random_below(random, 3);
    int64_t inner_extent[4], outer_extent[4];
    if (form == 0)
        inner = 1;
    c->groups = outer ? c->groups : 1;
    factor(random, c->size, inner, inner_extent);
    if (outer)
        factor(random, c->groups, outer, outer_extent);
    int ndim = inner + outer, normalized = 0;
    for (int a = 0, in = 0, out = 0; a < ndim; a++) {
        int reduce = form == 2 ? (random_below(random, 2) || out == outer) && in < inner : a >= outer;
        shape[a] = reduce ? inner_extent[in++] : outer_extent[out++];
        if (!reduce)
            continue;
        c->reduced |= 1u << a;
        c->normalized[normalized] = shape[a];
        c->axes[normalized++] = random_below(random, 2) ? a : a - ndim;
    }
    for (int i = normalized - 1; i > 0; i--) {
        int64_t j = random_below(random, i + 1), swap = c->axes[i];
        c->axes[i] = c->axes[j];
        c->axes[j] = swap;
    }
    if (form == 1) {
        c->op.normalized_shape = c->normalized;
        c->op.normalized_ndim = normalized;
    } else if (form == 2) {
        c->op.axes = c->axes;
        c->op.axes_count = normalized;
    }
    return ndim;
}

/* x = [N, C, *] of group, instance and batch norm */
static int draw_channel_shape(exact_case *c, exact_random *random, int64_t *shape) {
    int64_t parts[3], outer[2];
    int spatial = (int)random_below(random, 3);
    factor(random, c->size, spatial + 1, parts);
    factor(random, c->groups, 2, outer);
    if (c->groups == 0) {
        outer[0] = 0;
        outer[1] = 1 + random_below(random, 3);
    }
    if (c->op.kind == LNORM_GROUP_NORM) {
        c->op.groups = outer[1];
        shape[0] = outer[0];
        shape[1] = outer[1] * parts[0];
    } else if (c->op.kind == LNORM_INSTANCE_NORM) {
        shape[0] = outer[0];
        shape[1] = outer[1];
        if (!spatial)
            c->size = 1;
    } else {
        shape[0] = parts[0];
        shape[1] = c->groups;
    }
    for (int i = 0; i < spatial; i++)
        shape[2 + i] = parts[1 + i];
    if (c->op.kind == LNORM_INSTANCE_NORM && spatial)
        shape[1 + spatial] *= parts[0];
    return 2 + spatial;
}

/* weight's or bias's shape */
static int draw_affine_shape(const exact_case *c, exact_random *random, int64_t *shape) {
    const int64_t *x = c->shape[LNORM_X];
    int ndim = c->tensor[LNORM_X].ndim, count = 0;
    if (c->op.affine_broadcast) {
        for (int a = (int)random_below(random, ndim + 1); a < ndim; a++)
            shape[count++] = random_below(random, 2) ? x[a] : 1;
        return count;
    }
    if (c->op.kind != LNORM_LAYER_NORM && c->op.kind != LNORM_RMS_NORM) {
        shape[0] = x[1];
        return 1;
    }
    for (int a = 0; a < ndim; a++)
        if (c->reduced >> a & 1)
            shape[count++] = x[a];
    return count;
}

/* -- Tensors ------------------------------------------------------------------------------------------------------- */

static lnorm_dtype dtype_of(enum lnorm_element element) {
    static const lnorm_dtype dtypes[] = {
#define DTYPE(ID, name, code, bits) {code, bits, 1},
#include "lists/dtypes.def"
#undef DTYPE
    };
    return dtypes[element];
}

/* Any order of the axes in memory, gaps, axes that run backwards, and for inputs axes without a stride. */
static int64_t draw_strides(exact_case *c, exact_random *random, int operand, int input, int64_t *first) {
    lnorm_tensor *tensor = &c->tensor[operand];
    int64_t *strides = c->strides[operand], total = 1;
    int order[LNORM_MAX_NDIM];
    for (int a = 0; a < tensor->ndim; a++) {
        int64_t at = random_below(random, a + 1);
        order[a] = order[at];
        order[at] = a;
    }
    *first = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t extent = tensor->shape[order[i]], *stride = &strides[order[i]];
        *stride = total + random_below(random, 3);
        int shared = operands[operand].shape != STATISTIC || c->op.statistics != LNORM_SAVED;
        if (input && shared && random_chance(random, 4))
            *stride = 0;
        if (extent > 1 && *stride) {
            total = *stride * extent;
            if (random_chance(random, 20)) {
                *first += *stride * (extent - 1);
                *stride = -*stride;
            }
        }
    }
    tensor->strides = strides;
    return total;
}

static void add_tensor(exact_case *c, exact_random *random, int operand, int ndim, enum lnorm_element element,
                       int input) {
    lnorm_tensor *tensor = &c->tensor[operand];
    int64_t total = 1, first = 0, size = (int64_t)lnorm_element_size(element);
    *tensor = lnorm_dense(NULL, dtype_of(element), ndim, c->shape[operand]);
    if (random_below(random, 2))
        total = draw_strides(c, random, operand, input, &first);
    else
        for (int a = 0; a < ndim; a++)
            total *= tensor->shape[a];
    c->storage[operand] = malloc((size_t)(total * size) + 1);
    assert_non_null(c->storage[operand]);
    memset(c->storage[operand], 0x5a, (size_t)(total * size) + 1);
    tensor->data = c->storage[operand];
    tensor->byte_offset = (uint64_t)(first * size);
    const lnorm_tensor *pointer = tensor;
    memcpy((char *)&c->io + operands[operand].field, &pointer, sizeof pointer);
}

static enum lnorm_element draw_element(exact_random *random, enum lnorm_element base, int mixed, int input) {
    if (!mixed)
        return base;
    if (base == LNORM_ELEMENT_F64 || !input)
        return (enum lnorm_element)random_below(random, 4);
    return (enum lnorm_element)(1 + random_below(random, 3)); /* an f64 input would make it wide */
}

/* Whether an operand takes part, 1 as input or 2 as output. The statistics follow op.statistics. */
static int draw_role(const exact_case *c, exact_random *random, int operand, int affine, int subset) {
    unsigned pass = 1u << c->op.pass;
    int given = c->op.statistics != LNORM_COMPUTED;
    switch (operand) {
    case LNORM_MEAN:
    case LNORM_RSTD:
        if (operand == LNORM_MEAN && c->op.kind == LNORM_RMS_NORM)
            return 0;
        if (given)
            return operand == LNORM_MEAN || !c->io.variance;
        return c->op.pass == LNORM_FORWARD ? 2 * !(subset && random_below(random, 2)) : 0;
    case LNORM_RUNNING_MEAN:
    case LNORM_RUNNING_VAR:
        return c->op.kind == LNORM_BATCH_NORM && c->op.pass == LNORM_FORWARD && !given ? 2 : 0;
    case LNORM_VARIANCE:
        return 0;
    case LNORM_WEIGHT:
        return affine & 1;
    case LNORM_BIAS:
        return affine >> 1 & (operands[operand].reads & pass ? 1 : 0);
    case LNORM_MEAN_TANGENT:
        if (c->op.kind == LNORM_RMS_NORM)
            return 0;
        break;
    default:
        break;
    }
    if (operands[operand].reads & pass)
        return c->op.pass == LNORM_FORWARD_MODE && operand != LNORM_X ? random_chance(random, 85) : 1;
    return operands[operand].writes & pass ? 2 * !(subset && random_below(random, 2)) : 0;
}

static int draw_operand_shape(exact_case *c, exact_random *random, int operand) {
    static const uint8_t weight_like[] = {LNORM_WEIGHT, LNORM_DWEIGHT, LNORM_WEIGHT_TANGENT};
    static const uint8_t bias_like[] = {LNORM_BIAS, LNORM_DBIAS, LNORM_BIAS_TANGENT};
    int64_t *shape = c->shape[operand];
    enum shape_class class = operands[operand].shape;
    if (class == ELEMENTS) {
        memcpy(shape, c->shape[LNORM_X], sizeof c->shape[LNORM_X]);
        return c->tensor[LNORM_X].ndim;
    }
    if (class == STATISTIC) {
        shape[0] = c->groups;
        return 1;
    }
    for (int k = 0; k < 3; k++) { /* weight, dweight and weight_tangent have one shape */
        int other = class == WEIGHT ? weight_like[k] : bias_like[k];
        if (other != operand && c->storage[other]) {
            memcpy(shape, c->shape[other], sizeof c->shape[other]);
            return c->tensor[other].ndim;
        }
    }
    return draw_affine_shape(c, random, shape);
}

static void draw_options(exact_case *c, exact_random *random) {
    static const double eps[] = {1e-5, 1e-5, 1e-12, 1e-3, 0.0, 0.0, LNORM_EPS_DEFAULT, 1.0, 1e-30, 0x1p-149, 1e10};
    c->op.eps = eps[random_below(random, sizeof eps / sizeof *eps)];
    int64_t mode = random_below(random, 10);
    c->op.statistics = mode < 7 ? LNORM_COMPUTED : mode < 9 ? LNORM_SAVED : LNORM_CONSTANT;
    c->op.affine_broadcast = random_chance(random, 25);
    c->op.weight_offset = random_chance(random, 15);
    c->op.accumulate = random_chance(random, 25);
    c->op.momentum = (double)random_below(random, 11) / 10;
    c->op.batches = random_chance(random, 40) ? 1 + random_below(random, 9) : 0;
}

/* All operands but x. */
static void draw_operands(exact_case *c, exact_random *random, enum lnorm_element element) {
    int affine = (int)random_below(random, 4), mixed = random_chance(random, 40), subset = random_chance(random, 20);
    int f64_outputs = element != LNORM_ELEMENT_F64 && random_chance(random, 25);
    if (c->op.statistics == LNORM_CONSTANT && random_below(random, 2)) {
        c->shape[LNORM_VARIANCE][0] = c->groups;
        add_tensor(c, random, LNORM_VARIANCE, 1, draw_element(random, element, mixed, 1), 1);
    }
    for (int k = LNORM_X + 1; k < LNORM_OPERANDS; k++) {
        int role = draw_role(c, random, k, affine, subset);
        if (!role)
            continue;
        enum lnorm_element own = draw_element(random, element, mixed, role == 1);
        if (f64_outputs && role == 2)
            own = LNORM_ELEMENT_F64;
        /* f64 statistics make nothing wide. Saved ones of an f64 x have to be: in a type that does not hold them they
         * would not be those of this x. */
        if (operands[k].shape == STATISTIC && role == 1 && (element == LNORM_ELEMENT_F64 || random_below(random, 2)))
            own = LNORM_ELEMENT_F64;
        add_tensor(c, random, k, draw_operand_shape(c, random, k), own, role == 1);
    }
}

void exact_draw(exact_case *c, exact_random *random, lnorm_arithmetic arithmetic, lnorm_kind kind, lnorm_pass pass,
                enum lnorm_element element) {
    lnorm_error error = LNORM_ERROR_INIT;
    *c = (exact_case){.op = LNORM_OP_INIT, .io = LNORM_IO_INIT};
    c->op.kind = kind;
    c->op.pass = pass;
    c->op.arithmetic = arithmetic;
    draw_options(c, random);
    c->size = draw_size(random);
    c->groups = draw_groups(random, c->size);
    int channels = kind != LNORM_LAYER_NORM && kind != LNORM_RMS_NORM;
    int64_t *shape = c->shape[LNORM_X];
    int ndim = channels ? draw_channel_shape(c, random, shape) : draw_layer_shape(c, random, shape);
    add_tensor(c, random, LNORM_X, ndim, element, 1);
    draw_operands(c, random, element);

    if (lnorm_problem_init(&c->problem, &c->op, &c->io, &error))
        fail_msg("lnorm_problem_init: %s", error.message);
    lnorm_problem_data(&c->problem, &c->io, 0, &c->data);
    assert_int_equal(c->problem.group.count, c->groups);
    assert_int_equal(c->problem.element.count, c->size);
    exact_fill(c, random);
}

void exact_case_free(exact_case *c) {
    for (int k = 0; k < LNORM_OPERANDS; k++)
        free(c->storage[k]);
}
