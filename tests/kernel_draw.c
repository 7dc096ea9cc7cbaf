/* case_draw: seeded random problems for the general form. */
#include "kernel_case.h"

/* Extents of x and what they mean, as the operands need them. */
typedef struct drawn_shape {
    int ndim;
    int64_t x[CASE_NDIM];
    uint32_t reduced; /* axes of x; group norm's channels count as not reduced here */
} drawn_shape;

/* f32, f16, bf16; f64, too, for what may be f64 without making the arithmetic wide. */
static lnorm_dtype draw_dtype(kernel_case *c, int with_f64) {
    const lnorm_dtype dtypes[] = {LNORM_F32, LNORM_F16, LNORM_BF16, LNORM_F64};
    return dtypes[roll_below(&c->d, with_f64 ? 4 : 3)];
}

static layout draw_layout(kernel_case *c, int repeated) {
    return (layout)roll_below(&c->d, repeated ? 4 : 3);
}

/* Small, or with one axis that makes groups longer than a block of 256, or row blocks of 64. */
static void draw_shape(kernel_case *c, drawn_shape *s) {
    int least = c->op.kind <= LNORM_RMS_NORM ? 1 : 2, large;
    s->ndim = least + (int)roll_below(&c->d, 5 - least);
    for (int i = 0; i < s->ndim; i++)
        s->x[i] = 1 + roll_below(&c->d, s->ndim > 2 ? 5 : 20);
    large = (int)roll_below(&c->d, s->ndim);
    if (roll_one_in(&c->d, 2))
        s->x[large] = 1 + roll_below(&c->d, s->ndim > 2 ? 150 : 700);
    if (roll_one_in(&c->d, 40))
        s->x[roll_below(&c->d, s->ndim)] = 0;
}

static void draw_axes(kernel_case *c, drawn_shape *s, int64_t axes[CASE_NDIM]) {
    int first = (int)roll_below(&c->d, s->ndim);
    if (c->op.kind > LNORM_RMS_NORM) {
        s->reduced = (1u << s->ndim) - 1 - (c->op.kind == LNORM_BATCH_NORM ? 2 : 3);
        c->op.groups = 1;
        for (int64_t g = 2; c->op.kind == LNORM_GROUP_NORM && g <= s->x[1]; g++)
            if (s->x[1] % g == 0 && roll_one_in(&c->d, 2))
                c->op.groups = g;
        return;
    }
    s->reduced = 0;
    if (roll_one_in(&c->d, 2)) {
        c->op.normalized_shape = c->at[LNORM_X].shape + first;
        c->op.normalized_ndim = s->ndim - first;
        s->reduced = ((1u << s->ndim) - 1) >> first << first;
        return;
    }
    for (int i = 0; i < s->ndim; i++)
        if (i == first || roll_one_in(&c->d, 2)) {
            axes[c->op.axes_count++] = i;
            s->reduced |= 1u << i;
        }
    c->op.axes = axes;
}

/* The shape of weight and dweight, or of bias and dbias. */
static int draw_affine(kernel_case *c, const drawn_shape *s, int64_t shape[CASE_NDIM]) {
    int ndim = 0;
    if (c->op.affine_broadcast) {
        int missing = (int)roll_below(&c->d, s->ndim);
        for (int i = missing; i < s->ndim; i++)
            shape[ndim++] = roll_one_in(&c->d, 2) ? s->x[i] : 1;
        return ndim;
    }
    if (c->op.kind > LNORM_RMS_NORM) {
        shape[0] = s->x[1];
        return 1;
    }
    for (int i = 0; i < s->ndim; i++)
        if (s->reduced >> i & 1)
            shape[ndim++] = s->x[i];
    return ndim;
}

/* One element per group. */
static int statistic_shape(const kernel_case *c, const drawn_shape *s, int64_t shape[CASE_NDIM]) {
    int ndim = 0;
    for (int i = 0; i < s->ndim; i++)
        if (!(s->reduced >> i & 1))
            shape[ndim++] = c->op.kind == LNORM_GROUP_NORM && i == 1 ? c->op.groups : s->x[i];
    return ndim;
}

static void add_statistic(kernel_case *c, const drawn_shape *s, enum lnorm_operand operand, int flavour) {
    int64_t shape[CASE_NDIM];
    int ndim = statistic_shape(c, s, shape);
    int output = c->op.statistics == LNORM_COMPUTED;
    case_add(c, operand, draw_dtype(c, 1), ndim, shape, draw_layout(c, !output));
    if (flavour >= 0)
        case_fill_flavour(c, operand, flavour);
}

static void draw_statistics(kernel_case *c, const drawn_shape *s) {
    int forward = c->op.pass == LNORM_FORWARD, rms = c->op.kind == LNORM_RMS_NORM;
    int flavour = roll_one_in(&c->d, 8) ? (int)roll_below(&c->d, FLAVOURS) : 0;
    c->op.statistics = (lnorm_statistics)roll_below(&c->d, 3);
    if (forward && c->op.statistics == LNORM_SAVED)
        c->op.statistics = LNORM_COMPUTED;
    if (c->op.statistics != LNORM_COMPUTED) {
        int variance = c->op.statistics == LNORM_CONSTANT && roll_one_in(&c->d, 2);
        if (!rms)
            add_statistic(c, s, LNORM_MEAN, flavour);
        add_statistic(c, s, variance ? LNORM_VARIANCE : LNORM_RSTD, flavour);
        return;
    }
    if (forward && !rms && roll_one_in(&c->d, 2))
        add_statistic(c, s, LNORM_MEAN, -1);
    if (forward && roll_one_in(&c->d, 2))
        add_statistic(c, s, LNORM_RSTD, -1);
    if (forward && c->op.kind == LNORM_BATCH_NORM && roll_one_in(&c->d, 2)) {
        add_statistic(c, s, LNORM_RUNNING_MEAN, 0);
        add_statistic(c, s, LNORM_RUNNING_VAR, 0);
        c->op.batches = roll_below(&c->d, 3);
    }
}

/* An output of x's shape: memory of its own, or that of an input. */
static void add_output(kernel_case *c, const drawn_shape *s, enum lnorm_operand operand, enum lnorm_operand input) {
    int repeated = 0;
    for (int i = 0; i < s->ndim; i++)
        repeated |= c->at[input].strides[i] == 0;
    if (!repeated && roll_one_in(&c->d, 3))
        case_alias(c, operand, input);
    else
        case_add(c, operand, draw_dtype(c, 1), s->ndim, s->x, draw_layout(c, 0));
}

static void draw_parameters(kernel_case *c, const drawn_shape *s) {
    const enum lnorm_operand parameter[2] = {LNORM_WEIGHT, LNORM_BIAS}, gradient[2] = {LNORM_DWEIGHT, LNORM_DBIAS};
    for (int set = 0; set < (c->op.kind == LNORM_RMS_NORM ? 1 : 2); set++) {
        int64_t shape[CASE_NDIM];
        int ndim = draw_affine(c, s, shape);
        if (!roll_one_in(&c->d, 4)) {
            case_add(c, parameter[set], draw_dtype(c, 0), ndim, shape, draw_layout(c, 1));
            case_fill_flavour(c, parameter[set], roll_one_in(&c->d, 4) ? 9 : 0);
        }
        if (c->op.pass == LNORM_BACKWARD && !roll_one_in(&c->d, 4))
            case_add(c, gradient[set], roll_one_in(&c->d, 2) ? LNORM_F64 : draw_dtype(c, 1), ndim, shape,
                     draw_layout(c, 0));
    }
}

void case_draw(kernel_case *c, uint64_t seed) {
    static int64_t axes[CASE_NDIM];
    const double eps[] = {1e-5, 1e-5, 0.0, 1.0, 1e-300, LNORM_EPS_DEFAULT};
    drawn_shape s;
    int wild;
    case_begin(c, seed, LNORM_LAYER_NORM, LNORM_FORWARD);
    wild = roll_one_in(&c->d, 3);
    c->op.kind = (lnorm_kind)roll_below(&c->d, 5);
    c->op.pass = (lnorm_pass)roll_below(&c->d, 2);
    c->op.eps = eps[roll_below(&c->d, 6)];
    c->op.affine_broadcast = roll_one_in(&c->d, 4);
    c->op.weight_offset = roll_one_in(&c->d, 4);
    c->op.accumulate = roll_one_in(&c->d, 3);
    draw_shape(c, &s);
    case_add(c, LNORM_X, draw_dtype(c, 0), s.ndim, s.x, draw_layout(c, 1));
    case_fill(c, LNORM_X, (int)roll_below(&c->d, s.ndim), wild);
    draw_axes(c, &s, axes);
    draw_statistics(c, &s);
    draw_parameters(c, &s);
    if (c->op.pass == LNORM_FORWARD) {
        if (!roll_one_in(&c->d, 8))
            add_output(c, &s, LNORM_Y, LNORM_X);
        return;
    }
    case_add(c, LNORM_DY, draw_dtype(c, 0), s.ndim, s.x, draw_layout(c, 1));
    case_fill(c, LNORM_DY, (int)roll_below(&c->d, s.ndim), wild);
    if (!roll_one_in(&c->d, 4))
        add_output(c, &s, LNORM_DX, roll_one_in(&c->d, 2) ? LNORM_X : LNORM_DY);
}
