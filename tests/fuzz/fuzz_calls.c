/* The public interface against the reference. The input's bytes are choices: operation, pass, shapes, types, layouts,
 * options, which tensors there are and which share memory, and what their values are like. What the library accepts
 * must leave the reference's bits, whatever the way: one call, with and without workspace, tasks by hand in falling
 * order, every instruction set, level 1. What it refuses comes with a message, from every way the same, and leaves the
 * memory alone. All memory lies between pages that fault. */
#include "fuzz_input.h"
#include "kernel_case.h"

enum { MOST_ELEMENTS = 2500, AXES = 4 };

/* -- Choices ------------------------------------------------------------------------------------------------------ */

typedef struct choices {
    const uint8_t *at, *end;
} choices;

/* 0 .. count-1; 0 where the input has ended. */
static int choose(choices *in, int count) {
    return in->at < in->end ? *in->at++ % count : 0;
}

static lnorm_dtype choose_dtype(choices *in) {
    const lnorm_dtype dtypes[] = {LNORM_F32, LNORM_F32, LNORM_F16, LNORM_BF16, LNORM_F64};
    return dtypes[choose(in, 5)];
}

static double choose_eps(choices *in) {
    const double eps[] = {1e-5, 0.0, 1.0, LNORM_EPS_DEFAULT, 1e-300, 5e-324, 1e300, -0.0, -1.0, (double)NAN};
    int chosen = choose(in, 40);
    return eps[chosen < 10 ? chosen : chosen % 8]; /* the last two are refused */
}

static int64_t choose_extent(choices *in, int64_t room) {
    static const short long_ones[] = {31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 513, 600, 1025};
    int chosen = choose(in, 40);
    int64_t extent = chosen < 24 ? chosen : long_ones[chosen - 24];
    return extent > room ? room : extent;
}

/* Most choices are such as the library accepts; a few are any. */

/* -- The operation ------------------------------------------------------------------------------------------------ */

typedef struct scene {
    kernel_case c;
    int ndim;
    int64_t shape[CASE_NDIM], axes[CASE_NDIM];
    uint32_t reduced; /* axes of x; group norm's channels do not count */
    int wild;
} scene;

static void choose_shape(scene *s, choices *in) {
    int64_t room = MOST_ELEMENTS;
    int any = choose(in, 60), least = s->c.op.kind > LNORM_RMS_NORM ? 2 : 1;
    s->ndim = any >= 55 ? any - 55 : least + any % (AXES + 1 - least);
    for (int i = 0; i < s->ndim; i++) {
        s->shape[i] = choose_extent(in, room);
        room /= s->shape[i] ? s->shape[i] : 1;
    }
}

static void choose_axes(scene *s, choices *in) {
    lnorm_op *op = &s->c.op;
    int how = choose(in, 4), bits = choose(in, 256);
    s->reduced = s->ndim ? 1u << (s->ndim - 1) : 0;
    if (op->kind > LNORM_RMS_NORM) {
        s->reduced = ((1u << s->ndim) - 1) & ~(op->kind == LNORM_BATCH_NORM ? 2u : 3u);
        op->groups = choose(in, 8);
        while (how && s->ndim > 1 && op->groups > 1 && s->shape[1] % op->groups)
            op->groups--;
    } else if (how == 1) {
        const int most = s->ndim ? s->ndim : 1; /* of a scalar one more than there is: to be refused */
        op->normalized_ndim = 1 + bits % most;
        op->normalized_shape = s->shape + most - op->normalized_ndim;
        s->reduced = ((1u << op->normalized_ndim) - 1) << (most - op->normalized_ndim);
    } else if (how == 2) {
        s->reduced = (uint32_t)bits & ((1u << s->ndim) - 1);
        for (int i = 0; i < s->ndim; i++)
            if (s->reduced >> i & 1)
                s->axes[op->axes_count++] = bits & 128 ? i - s->ndim : i;
        op->axes = s->axes;
    }
}

static void choose_operation(scene *s, choices *in) {
    lnorm_op *op = &s->c.op;
    int flags = choose(in, 256);
    op->kind = (lnorm_kind)choose(in, 5);
    int pass = choose(in, 64);
    op->pass = (lnorm_pass)(pass < 60 && op->kind > LNORM_RMS_NORM ? pass % 2 : pass % 4);
    op->statistics = (lnorm_statistics)choose(in, 3);
    op->arithmetic = (lnorm_arithmetic)(flags & 1);
    op->affine_broadcast = flags >> 1 & 1;
    op->weight_offset = flags >> 2 & 1;
    op->accumulate = flags >> 3 & 1;
    s->wild = flags >> 4 & 1;
    op->batches = flags >> 5;
    op->eps = choose_eps(in);
    choose_shape(s, in);
    choose_axes(s, in);
}

/* -- Tensors ------------------------------------------------------------------------------------------------------ */

static const char classes[LNORM_OPERANDS] = {
#define ELEMENTS 'e'
#define WEIGHT 'a'
#define BIAS 'a'
#define STATISTIC 's'
#define OPERAND(ID, field, shape, reads, writes) shape,
#include "lists/operands.def"
#undef OPERAND
#undef ELEMENTS
#undef WEIGHT
#undef BIAS
#undef STATISTIC
};

/* Reading and writing is told apart only so that outputs get strides that outputs may have. */
static int is_only_read(const scene *s, int operand) {
    switch (operand) {
    case LNORM_X:
    case LNORM_WEIGHT:
    case LNORM_BIAS:
    case LNORM_DY:
    case LNORM_V:
    case LNORM_VARIANCE:
    case LNORM_X_TANGENT:
    case LNORM_WEIGHT_TANGENT:
    case LNORM_BIAS_TANGENT:
        return 1;
    case LNORM_MEAN:
    case LNORM_RSTD:
        return s->c.op.statistics != LNORM_COMPUTED || s->c.op.pass != LNORM_FORWARD;
    default:
        return 0;
    }
}

static int affine_shape(const scene *s, choices *in, int64_t shape[CASE_NDIM]) {
    int ndim = 0, missing = s->c.op.affine_broadcast && s->ndim ? choose(in, s->ndim) : 0;
    int bits = s->c.op.affine_broadcast ? choose(in, 256) : 0;
    for (int i = missing; i < s->ndim; i++)
        if (s->c.op.affine_broadcast)
            shape[ndim++] = bits >> i & 1 ? 1 : s->shape[i];
        else if (s->c.op.kind > LNORM_RMS_NORM ? i == 1 : s->reduced >> i & 1)
            shape[ndim++] = s->shape[i];
    return ndim;
}

static int statistic_shape(const scene *s, choices *in, int64_t shape[CASE_NDIM]) {
    int ndim = 0, ones = choose(in, 2);
    for (int i = 0; i < s->ndim; i++)
        if (!(s->reduced >> i & 1))
            shape[ndim++] = s->c.op.kind == LNORM_GROUP_NORM && i == 1 ? s->c.op.groups : s->shape[i];
        else if (ones)
            shape[ndim++] = 1;
    return ndim;
}

static void add_tensor(scene *s, choices *in, int operand) {
    int64_t shape[CASE_NDIM] = {0};
    int how = choose(in, 8), flavour = choose(in, 32), ndim = s->ndim;
    lnorm_dtype dtype = choose_dtype(in);
    layout order = (layout)(how % (is_only_read(s, operand) ? 4 : 3));
    if (classes[operand] == 'e')
        memcpy(shape, s->shape, sizeof shape);
    else
        ndim = classes[operand] == 'a' ? affine_shape(s, in, shape) : statistic_shape(s, in, shape);
    if (flavour == 31 && ndim) /* most likely refused */
        shape[choose(in, ndim)] += 1;
    case_add(&s->c, (enum lnorm_operand)operand, dtype, ndim, shape, order);
    if (flavour < FLAVOURS && (s->wild || flavour <= 6))
        case_fill_flavour(&s->c, (enum lnorm_operand)operand, flavour);
    else
        case_fill(&s->c, (enum lnorm_operand)operand, ndim - 1, s->wild);
}

/* Memory shared as it may be, or as it may not be: the library decides, but only where it can, between dense ones. */
static void share(scene *s, choices *in) {
    static const uint8_t pairs[][2] = {{LNORM_Y, LNORM_X},   {LNORM_DX, LNORM_DY},   {LNORM_DX, LNORM_X},
                                       {LNORM_DY, LNORM_X},  {LNORM_Y, LNORM_WEIGHT}, {LNORM_DWEIGHT, LNORM_DBIAS},
                                       {LNORM_MEAN, LNORM_RSTD}, {LNORM_DDY, LNORM_V}, {LNORM_DX, LNORM_V}};
    int which = choose(in, 18);
    if (which >= (int)(sizeof pairs / sizeof *pairs))
        return;
    int to = pairs[which][0], from = pairs[which][1], repeated = 0, gaps = 0;
    const case_tensor *t = &s->c.at[from];
    int64_t count = t->tensor.dtype.bits / 8;
    if (!case_has(&s->c, (enum lnorm_operand)to) || !case_has(&s->c, (enum lnorm_operand)from))
        return;
    for (int i = 0; i < t->tensor.ndim; i++) {
        repeated |= t->strides[i] == 0;
        count *= t->shape[i];
    }
    gaps = count != (int64_t)t->memory.bytes;
    if (!repeated && (which < 3 || !gaps))
        case_alias(&s->c, (enum lnorm_operand)to, (enum lnorm_operand)from);
}

/* The set of tensors with what the operation asks for, and without what it refuses. */
static uint32_t complete(const lnorm_op *op, uint32_t present) {
    const uint32_t given = 1u << LNORM_MEAN | 1u << LNORM_RSTD;
    present |= 1u << LNORM_X;
    if (op->pass == LNORM_BACKWARD || op->pass == LNORM_DOUBLE_BACKWARD)
        present |= 1u << LNORM_DY;
    if (op->pass == LNORM_DOUBLE_BACKWARD)
        present |= 1u << LNORM_V;
    if (op->pass == LNORM_FORWARD_MODE)
        present |= 1u << LNORM_X_TANGENT;
    if (op->statistics == LNORM_SAVED || (op->statistics == LNORM_CONSTANT && !(present >> LNORM_VARIANCE & 1)))
        present |= given;
    if (op->statistics == LNORM_CONSTANT && present >> LNORM_VARIANCE & 1)
        present = (present | 1u << LNORM_MEAN) & ~(1u << LNORM_RSTD);
    if (op->kind != LNORM_BATCH_NORM)
        present &= ~(1u << LNORM_RUNNING_MEAN | 1u << LNORM_RUNNING_VAR);
    return present;
}

static void choose_tensors(scene *s, choices *in) {
    uint32_t present = (uint32_t)choose(in, 256) | (uint32_t)choose(in, 256) << 8 | (uint32_t)choose(in, 256) << 16;
    present ^= 1u << LNORM_Y | 1u << LNORM_DX;
    if (choose(in, 32) < 30)
        present = complete(&s->c.op, present);
    s->c.d.state = (uint64_t)choose(in, 256) << 8 | (uint64_t)choose(in, 256);
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (present >> i & 1)
            add_tensor(s, in, i);
    share(s, in);
}

/* -- Runs --------------------------------------------------------------------------------------------------------- */

static void expect_bits(scene *s, const char *way) {
    int operand;
    int64_t place;
    if (case_left_as_expected(&s->c, &operand, &place))
        return;
    const case_tensor *t = &s->c.at[operand];
    fprintf(stderr, "%s: kind %d pass %d statistics %d arithmetic %d, %lld groups of %lld: %s, element %lld of its "
            "memory (%d bits) differs\n", way, (int)s->c.op.kind, (int)s->c.op.pass, (int)s->c.op.statistics,
            (int)s->c.op.arithmetic, (long long)s->c.problem.group.count, (long long)s->c.problem.element.count,
            lnorm_operand_name((enum lnorm_operand)operand), (long long)place, (int)t->tensor.dtype.bits);
    abort();
}

static void expect_untouched(const scene *s) {
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (s->c.at[i].image && s->c.at[i].memory.bytes &&
            memcmp(s->c.at[i].memory.at, s->c.at[i].image, s->c.at[i].memory.bytes))
            abort();
}

/* lnorm_plan_run does not look for overlaps again: it is only called where there is no plan. */
static void expect_refusal(scene *s, const lnorm_plan *plan, int planned, const lnorm_error *error) {
    lnorm_error again = LNORM_ERROR_INIT;
    lnorm_status status = error->status;
    if (!error->message[0])
        abort();
    case_restore(&s->c);
    if (lnorm_run(&s->c.op, &s->c.io, NULL, &again) != status || strcmp(again.message, error->message) ||
        lnorm_execute(plan, &s->c.io, NULL) != status ||
        (!planned && lnorm_plan_run(plan, &s->c.io, 0, 0) != status))
        abort();
    expect_untouched(s);
}

static void run_in_one_call(scene *s) {
    lnorm_error error = LNORM_ERROR_INIT;
    s->c.io.workspace = NULL;
    s->c.io.workspace_size = 0;
    case_restore(&s->c);
    if (lnorm_run(&s->c.op, &s->c.io, NULL, &error))
        abort();
    expect_bits(s, "lnorm_run");
}

/* With a workspace that begins anywhere and ends at a page that faults. */
static void run_with_workspace(scene *s, const lnorm_plan *plan) {
    size_t bytes = lnorm_plan_workspace(plan);
    guarded workspace = guarded_new(bytes, 1);
    s->c.io.workspace = bytes ? workspace.at : NULL;
    s->c.io.workspace_size = bytes;
    memset(workspace.at, 0xff, bytes);
    case_restore(&s->c);
    if (lnorm_execute(plan, &s->c.io, NULL))
        abort();
    expect_bits(s, "lnorm_execute with workspace");
    case_restore(&s->c);
    for (int phase = 0; phase < lnorm_plan_phases(plan); phase++)
        for (int64_t i = lnorm_plan_tasks(plan, phase); i-- > 0;)
            if (lnorm_plan_run(plan, &s->c.io, phase, i))
                abort();
    expect_bits(s, "lnorm_plan_run, tasks in falling order");
    guarded_free(&workspace);
    s->c.io.workspace = NULL;
    s->c.io.workspace_size = 0;
}

static void run_everywhere(scene *s, const lnorm_plan *plan) {
    const lnorm_kernels *kernels;
    int runs;
    for (int i = 0; (kernels = lnorm_kernels_at(i, &runs)); i++) {
        lnorm_plan other = *plan;
        ((lnorm_plan_form *)(void *)&other)->kernels = kernels;
        if (runs)
            run_with_workspace(s, &other);
    }
}

/* -- Level 1 ------------------------------------------------------------------------------------------------------ */

/* The data of a tensor that level 1 can have: dense, of x's type (`statistic`: f32, or f64 beside f64). */
static void *dense(const scene *s, enum lnorm_operand operand, int statistic, int *fits) {
    const case_tensor *t = &s->c.at[operand], *x = &s->c.at[LNORM_X];
    int bits = statistic && x->tensor.dtype.bits < 32 ? 32 : x->tensor.dtype.bits;
    int code = statistic ? 2 : x->tensor.dtype.code;
    int64_t stride = 1;
    const lnorm_tensor *tensor = &t->tensor;
    if (!case_has(&s->c, operand))
        return NULL;
    *fits &= t->image && tensor->dtype.bits == bits && tensor->dtype.code == code;
    for (int i = tensor->ndim; i-- > 0; stride *= tensor->shape[i])
        *fits &= tensor->strides[i] == stride || tensor->shape[i] == 1;
    return tensor->data;
}

#define LEVEL_1(type, real, name)                                                                                     \
    static lnorm_status level_1_##name(const scene *s, void *const *at, int64_t rows, int64_t cols) {                 \
        real *mean = at[LNORM_MEAN], *rstd = at[LNORM_RSTD];                                                          \
        type *y = at[LNORM_Y], *dx = at[LNORM_DX], *dweight = at[LNORM_DWEIGHT], *dbias = at[LNORM_DBIAS];            \
        const type *x = at[LNORM_X], *weight = at[LNORM_WEIGHT], *bias = at[LNORM_BIAS], *dy = at[LNORM_DY];          \
        int rms = s->c.op.kind == LNORM_RMS_NORM;                                                                     \
        if (s->c.op.pass == LNORM_FORWARD)                                                                            \
            return rms ? lnorm_rms_norm_##name(y, rstd, x, weight, rows, cols, s->c.op.eps)                           \
                       : lnorm_layer_norm_##name(y, mean, rstd, x, weight, bias, rows, cols, s->c.op.eps);            \
        return rms ? lnorm_rms_norm_backward_##name(dx, dweight, dy, x, weight, rows, cols, s->c.op.eps, NULL, 0)     \
                   : lnorm_layer_norm_backward_##name(dx, dweight, dbias, dy, x, weight, rows, cols, s->c.op.eps,     \
                                                      NULL, 0);                                                       \
    }
LEVEL_1(double, double, f64)
LEVEL_1(float, float, f32)
LEVEL_1(uint16_t, float, f16)
LEVEL_1(uint16_t, float, bf16)

/* Trailing axes that begin where `reduced` does, and nothing that level 1 has no argument for. */
static int is_level_1(const scene *s) {
    const lnorm_op *op = &s->c.op;
    uint32_t all = (1u << s->ndim) - 1, low = s->reduced & (~s->reduced + 1);
    return op->kind <= LNORM_RMS_NORM && op->pass <= LNORM_BACKWARD && !op->statistics && !op->arithmetic &&
           !op->affine_broadcast && !op->weight_offset && !(op->accumulate && op->pass) && s->reduced &&
           s->reduced == (all & ~(low - 1));
}

static void run_level_1(scene *s) {
    void *at[LNORM_OPERANDS] = {NULL};
    int fits = is_level_1(s), forward = s->c.op.pass == LNORM_FORWARD, rms = s->c.op.kind == LNORM_RMS_NORM;
    int64_t rows = s->c.problem.group.count, cols = s->c.problem.element.count;
    const lnorm_dtype dtype = s->c.at[LNORM_X].tensor.dtype;
    for (int i = LNORM_X; i <= LNORM_DBIAS && fits; i++) {
        int used = i == LNORM_X || i == LNORM_WEIGHT || (forward ? i <= LNORM_RSTD : i >= LNORM_DY);
        if (used && rms && (i == LNORM_BIAS || i == LNORM_DBIAS))
            fits &= !case_has(&s->c, (enum lnorm_operand)i); /* level 1's RMS norm has none */
        else if (used && !(rms && i == LNORM_MEAN) && i != LNORM_VARIANCE)
            at[i] = dense(s, (enum lnorm_operand)i, i == LNORM_MEAN || i == LNORM_RSTD, &fits);
    }
    if (!fits || (forward ? s->c.io.y == &s->c.at[LNORM_X].tensor : s->c.io.dx != &s->c.at[LNORM_DX].tensor))
        return;
    case_restore(&s->c);
    lnorm_status status = dtype.code == 4    ? level_1_bf16(s, at, rows, cols)
                          : dtype.bits == 64 ? level_1_f64(s, at, rows, cols)
                          : dtype.bits == 32 ? level_1_f32(s, at, rows, cols)
                                             : level_1_f16(s, at, rows, cols);
    if (status)
        abort();
    expect_bits(s, "level 1");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    choices in = {data, data + size};
    scene s;
    lnorm_plan plan;
    lnorm_error error = LNORM_ERROR_INIT;
    memset(&s, 0, sizeof s);
    case_begin(&s.c, 0, LNORM_LAYER_NORM, LNORM_FORWARD);
    choose_operation(&s, &in);
    choose_tensors(&s, &in);
    int planned = !lnorm_plan_init(&plan, &s.c.op, &s.c.io, &error);
    if (planned && !lnorm_plan_check(&plan, &s.c.io, &error)) {
        case_expect(&s.c);
        run_in_one_call(&s);
        run_everywhere(&s, &plan);
        run_level_1(&s);
    } else {
        expect_refusal(&s, &plan, planned, &error);
    }
    case_end(&s.c);
    return 0;
}
