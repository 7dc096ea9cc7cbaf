#include "helpers.h"

#include <fenv.h>
#include <stdlib.h>
#if defined __SSE2__
#include <xmmintrin.h>
#endif

/* ---- numbers ---- */

uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

double random_in(uint64_t *state, double low, double high) {
    return low + (high - low) * ((double)(random_bits(state) >> 11) * 0x1p-53);
}

/* ---- tensors ---- */

int64_t tensor_count(const lnorm_tensor *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->ndim; i++)
        count *= tensor->shape[i];
    return count;
}

static int64_t offset_of(const lnorm_tensor *tensor, int64_t index) {
    int64_t offset = 0, dense = 1;
    for (int i = tensor->ndim; i-- > 0;) {
        offset += index % tensor->shape[i] * (tensor->strides ? tensor->strides[i] : dense);
        index /= tensor->shape[i];
        dense *= tensor->shape[i];
    }
    return offset;
}

static enum lnorm_element element_of(lnorm_dtype dtype) {
    if (dtype.code == 4)
        return LNORM_ELEMENT_BF16;
    return dtype.bits == 64 ? LNORM_ELEMENT_F64 : dtype.bits == 32 ? LNORM_ELEMENT_F32 : LNORM_ELEMENT_F16;
}

static const char *origin(const lnorm_tensor *tensor) {
    return (const char *)tensor->data + tensor->byte_offset;
}

double tensor_get(const lnorm_tensor *tensor, int64_t index) {
    return lnorm_load(element_of(tensor->dtype), origin(tensor), offset_of(tensor, index));
}

void tensor_set(const lnorm_tensor *tensor, int64_t index, double value) {
    lnorm_store(element_of(tensor->dtype), (char *)tensor->data + tensor->byte_offset, offset_of(tensor, index), value);
}

int tensor_same(const lnorm_tensor *a, const lnorm_tensor *b) {
    int64_t count = tensor_count(a);
    if (a->dtype.code != b->dtype.code || a->dtype.bits != b->dtype.bits || count != tensor_count(b))
        return 0;
    for (int64_t i = 0; i < count; i++) {
        double p = tensor_get(a, i), q = tensor_get(b, i);
        if (lnorm_bits_of_f64(p) != lnorm_bits_of_f64(q) && (p == p || q == q))
            return 0;
    }
    return 1;
}

/* ---- boxes ---- */

/* Strides of the layout; returns how many elements of memory they need, and in *first where element 0 is. */
static int64_t lay_out(box *b, layout order, int64_t *first) {
    int ndim = b->tensor.ndim;
    int64_t room = 1;
    *first = 0;
    for (int k = ndim; k-- > 0;) {
        int axis = order == TRANSPOSED ? ndim - 1 - k : k;
        int64_t extent = b->shape[axis];
        b->strides[axis] = order == NEGATIVE ? -room : room;
        if (order == NEGATIVE && extent)
            *first += room * (extent - 1);
        room *= extent + (order == PADDED ? 3 : 0);
    }
    return room;
}

void box_make(box *b, lnorm_dtype dtype, int ndim, const int64_t *shape, layout order) {
    size_t size = dtype.bits / 8u;
    int64_t first, room;
    memset(b, 0, sizeof *b);
    memcpy(b->shape, shape, (size_t)ndim * sizeof *shape);
    b->tensor = lnorm_dense(NULL, dtype, ndim, b->shape);
    room = lay_out(b, order, &first);
    b->bytes = (size_t)room * size;
    b->memory = malloc(b->bytes ? b->bytes : 1);
    assert_non_null(b->memory);
    memset(b->memory, UNTOUCHED, b->bytes);
    b->tensor.data = b->memory;
    b->tensor.byte_offset = (uint64_t)first * size;
    b->tensor.strides = order == DENSE ? NULL : b->strides;
}

void box_free(box *b) {
    free(b->memory);
    memset(b, 0, sizeof *b);
}

void box_random(box *b, uint64_t seed, double low, double high) {
    int64_t count = tensor_count(&b->tensor);
    for (int64_t i = 0; i < count; i++)
        tensor_set(&b->tensor, i, random_in(&seed, low, high));
}

int box_untouched(const box *b) {
    for (size_t i = 0; i < b->bytes; i++)
        if (b->memory[i] != UNTOUCHED)
            return 0;
    return 1;
}

/* ---- scenes ---- */

enum shape_class { ELEMENTS, WEIGHT, BIAS, STATISTIC };

static const struct {
    size_t field;
    enum shape_class shape;
    unsigned reads, writes;
} operands[LNORM_OPERANDS] = {
#define OPERAND(ID, field, shape, reads, writes) {offsetof(lnorm_io, field), shape, reads, writes},
#include "lists/operands.def"
#undef OPERAND
};

const mix all_f32 = {{2, 32, 1}, {2, 32, 1}, {2, 32, 1}};

const lnorm_tensor **scene_slot(lnorm_io *io, int operand) {
    return (const lnorm_tensor **)(void *)((char *)io + operands[operand].field);
}

static int reads(const lnorm_op *op, int i) {
    int given = op->statistics != LNORM_COMPUTED, rms = op->kind == LNORM_RMS_NORM;
    if (i == LNORM_MEAN)
        return given && !rms;
    if (i == LNORM_RSTD) /* constant statistics: the variance, except in RMS norm, for the sake of both */
        return op->statistics == LNORM_SAVED || (op->statistics == LNORM_CONSTANT && rms);
    if (i == LNORM_VARIANCE)
        return op->statistics == LNORM_CONSTANT && !rms;
    if (i == LNORM_RUNNING_MEAN || i == LNORM_RUNNING_VAR)
        return op->kind == LNORM_BATCH_NORM && op->pass == LNORM_FORWARD && !given;
    return operands[i].reads >> op->pass & 1;
}

static int writes(const lnorm_op *op, int i) {
    int given = op->statistics != LNORM_COMPUTED, rms = op->kind == LNORM_RMS_NORM;
    if (i == LNORM_MEAN || i == LNORM_RSTD)
        return op->pass == LNORM_FORWARD && !given && !(rms && i == LNORM_MEAN);
    if (i == LNORM_RUNNING_MEAN || i == LNORM_RUNNING_VAR)
        return reads(op, i);
    if (i == LNORM_MEAN_TANGENT && rms)
        return 0;
    return operands[i].writes >> op->pass & 1;
}

static int axis_reduced(const lnorm_op *op, int ndim, int axis) {
    if (op->kind == LNORM_BATCH_NORM)
        return axis != 1;
    if (op->kind != LNORM_LAYER_NORM && op->kind != LNORM_RMS_NORM)
        return axis > 1;
    for (int i = 0; op->axes && i < op->axes_count; i++)
        if (op->axes[i] == axis || op->axes[i] + ndim == axis)
            return 1;
    return !op->axes && axis >= ndim - (op->normalized_shape ? op->normalized_ndim : 1);
}

static int shape_of(const lnorm_op *op, int operand, int ndim, const int64_t *x, int64_t *shape) {
    int count = 0, trailing = op->kind == LNORM_LAYER_NORM || op->kind == LNORM_RMS_NORM;
    enum shape_class wanted = operands[operand].shape;
    for (int i = 0; i < ndim; i++) {
        int reduced = axis_reduced(op, ndim, i);
        if (wanted == ELEMENTS || (wanted == STATISTIC && !reduced) ||
            (wanted != STATISTIC && (trailing ? reduced : i == 1)))
            shape[count++] = wanted == STATISTIC && i == 1 && op->kind == LNORM_GROUP_NORM ? op->groups : x[i];
    }
    return count;
}

static void fill_operand(scene *s, int i, uint64_t seed) {
    int positive = i == LNORM_RSTD || i == LNORM_VARIANCE || i == LNORM_RUNNING_VAR;
    if (reads(&s->op, i) || (s->op.accumulate && (i == LNORM_DWEIGHT || i == LNORM_DBIAS)))
        box_random(&s->at[i], seed * 64 + (uint64_t)i, positive ? 0.5 : -1.0, positive ? 1.5 : 2.0);
    else
        memset(s->at[i].memory, UNTOUCHED, s->at[i].bytes);
}

void scene_make(scene *s, const lnorm_op *op, int ndim, const int64_t *shape, mix types, layout order, uint64_t seed) {
    int64_t own[LNORM_MAX_NDIM];
    memset(s, 0, sizeof *s);
    s->op = *op;
    s->io = (lnorm_io)LNORM_IO_INIT;
    for (int i = 0; i < LNORM_OPERANDS; i++) {
        enum shape_class wanted = operands[i].shape;
        s->written[i] = (unsigned char)writes(op, i);
        if (!reads(op, i) && !s->written[i])
            continue;
        int own_ndim = shape_of(op, i, ndim, shape, own);
        box_make(&s->at[i], wanted == ELEMENTS ? types.x : wanted == STATISTIC ? types.statistic : types.parameter,
                 own_ndim, own, order);
        fill_operand(s, i, seed);
        *scene_slot(&s->io, i) = &s->at[i].tensor;
    }
}

void scene_free(scene *s) {
    for (int i = 0; i < LNORM_OPERANDS; i++)
        box_free(&s->at[i]);
}

void scene_reset(scene *s, uint64_t seed) {
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (s->written[i])
            fill_operand(s, i, seed);
}

int scene_untouched(const scene *s) {
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (s->written[i] && !reads(&s->op, i) && !box_untouched(&s->at[i]))
            return 0;
    return 1;
}

void assert_same_outputs(const scene *a, const scene *b) {
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (a->written[i] && b->written[i] && !tensor_same(&a->at[i].tensor, &b->at[i].tensor))
            fail_msg("%s differs", lnorm_operand_name((enum lnorm_operand)i));
}

void scene_run(scene *s) {
    lnorm_error error = LNORM_ERROR_INIT;
    if (lnorm_run(&s->op, &s->io, NULL, &error))
        fail_msg("%s", error.message);
}

void scene_run_with_workspace(scene *s) {
    lnorm_plan plan;
    lnorm_io io = s->io;
    assert_int_equal(lnorm_plan_init(&plan, &s->op, &s->io, NULL), LNORM_OK);
    io.workspace_size = lnorm_plan_workspace(&plan);
    io.workspace = malloc(io.workspace_size + 1);
    assert_non_null(io.workspace);
    assert_int_equal(lnorm_execute(&plan, &io, NULL), LNORM_OK);
    free(io.workspace);
}

/* ---- samples ---- */

int sample_at(int index, sample *result) {
    static const struct {
        lnorm_kind kind;
        lnorm_pass pass;
        lnorm_statistics statistics;
        int ndim;
        int64_t shape[4];
    } list[] = {{LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED, 2, {150, 300}},
                {LNORM_LAYER_NORM, LNORM_BACKWARD, LNORM_COMPUTED, 2, {150, 300}},
                {LNORM_LAYER_NORM, LNORM_BACKWARD, LNORM_SAVED, 3, {5, 29, 17}},
                {LNORM_LAYER_NORM, LNORM_DOUBLE_BACKWARD, LNORM_COMPUTED, 2, {2300, 15}},
                {LNORM_RMS_NORM, LNORM_FORWARD, LNORM_CONSTANT, 2, {40, 65}},
                {LNORM_RMS_NORM, LNORM_BACKWARD, LNORM_COMPUTED, 3, {4, 31, 600}},
                {LNORM_RMS_NORM, LNORM_FORWARD_MODE, LNORM_COMPUTED, 2, {1100, 30}},
                {LNORM_GROUP_NORM, LNORM_BACKWARD, LNORM_COMPUTED, 4, {6, 8, 9, 10}},
                {LNORM_INSTANCE_NORM, LNORM_FORWARD, LNORM_COMPUTED, 4, {6, 8, 9, 10}},
                {LNORM_BATCH_NORM, LNORM_FORWARD, LNORM_COMPUTED, 3, {20, 6, 40}},
                {LNORM_BATCH_NORM, LNORM_BACKWARD, LNORM_CONSTANT, 3, {20, 6, 40}}};
    if (index < 0 || index >= (int)(sizeof list / sizeof *list))
        return 0;
    *result = (sample){.op = LNORM_OP_INIT, .ndim = list[index].ndim};
    result->op.kind = list[index].kind;
    result->op.pass = list[index].pass;
    result->op.statistics = list[index].statistics;
    result->op.groups = 4;
    result->op.batches = 3; /* a quotient that rounds */
    memcpy(result->shape, list[index].shape, sizeof result->shape);
    return 1;
}

void scene_of_sample(scene *s, const sample *p, mix types, layout order, uint64_t seed) {
    int64_t shape[4];
    memcpy(shape, p->shape, sizeof shape);
    if (types.x.bits == 64) {
        shape[0] = 1 + shape[0] / 16;
        shape[p->ndim - 1] = 1 + shape[p->ndim - 1] / 4;
    }
    scene_make(s, &p->op, p->ndim, shape, types, order, seed);
}

/* ---- floating-point environment ---- */

#if defined __SSE2__
enum { MXCSR_FLUSH = 0x8040, MXCSR_MASKS = 0x1f80, MXCSR_FLAGS = 0x3f };
#elif defined __aarch64__
enum { FPCR_FLUSH = 1 << 24 };
#endif

void environment_set(int rounding, int flush, int traps) {
    fesetround(rounding);
#if defined __SSE2__
    unsigned int control = _mm_getcsr() & ~(unsigned int)(MXCSR_FLUSH | MXCSR_FLAGS);
    if (traps)
        control &= ~(unsigned int)MXCSR_MASKS;
    _mm_setcsr(control | (flush ? MXCSR_FLUSH : 0u));
#elif defined __aarch64__
    uint64_t control;
    (void)traps;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control = (control & ~(uint64_t)FPCR_FLUSH) | (flush ? FPCR_FLUSH : 0u);
    __asm__ volatile("msr fpcr, %0" ::"r"(control));
#else
    (void)flush;
    (void)traps;
#endif
}

uint64_t environment_get(void) {
#if defined __SSE2__
    return _mm_getcsr() & ~(unsigned int)MXCSR_FLAGS;
#elif defined __aarch64__
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return (uint64_t)fegetround();
#endif
}

void environment_reset(void) {
    fesetenv(FE_DFL_ENV);
#if defined __SSE2__
    _mm_setcsr(MXCSR_MASKS);
#endif
}
