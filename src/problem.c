/* From an operation and described tensors to the canonical form: which axes are reduced, which index the parameters,
 * the strides of every operand, then axes merged where all operands allow it. */

#include "problem.h"
#include "access.h"
#include "environment.h"
#include "message.h"
#include "tensor.h"

enum shape_class { ELEMENTS, WEIGHT, BIAS, STATISTIC };

static const struct operand_info {
    const char *name;
    size_t field;
    uint8_t shape, reads, writes;
} operands[LNORM_OPERANDS] = {
#define OPERAND(ID, field, shape, reads, writes) {#field, offsetof(lnorm_io, field), shape, reads, writes},
#include "lists/operands.def"
#undef OPERAND
};

static const lnorm_tensor *tensor_of(const lnorm_io *io, int operand) {
    const lnorm_tensor *tensor;
    memcpy(&tensor, (const char *)io + operands[operand].field, sizeof tensor);
    return tensor;
}

const char *lnorm_operand_name(enum lnorm_operand operand) {
    return operands[operand].name;
}

void lnorm_problem_data(const lnorm_problem *problem, const lnorm_io *io, size_t workspace, lnorm_data *data) {
    memset(data->at, 0, sizeof data->at);
    for (int k = 0; k < problem->present.count; k++) {
        const int i = problem->present.at[k];
        const lnorm_tensor *tensor = tensor_of(io, i);
        if (tensor && tensor->data)
            data->at[i] = (char *)tensor->data + tensor->byte_offset;
    }
    data->workspace = lnorm_align_workspace(io->workspace, workspace);
    data->in_order = 0;
}

static const char *kind_name(lnorm_kind kind) {
    static const char *const names[] = {"layer norm", "RMS norm", "group norm", "instance norm", "batch norm"};
    return names[kind];
}

static int over_trailing_axes(lnorm_kind kind) {
    return kind == LNORM_LAYER_NORM || kind == LNORM_RMS_NORM;
}

/* ---- the operation's own arguments ---- */

static lnorm_status check_choice(const char *name, int64_t value, int64_t count, lnorm_error *error) {
    if (value >= 0 && value < count)
        return LNORM_OK;
    return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "op.%s: expected 0 to %lld, got %lld", name, (long long)count - 1,
                      (long long)value);
}

static lnorm_status check_op(const lnorm_op *op, lnorm_error *error) {
    const struct {
        const char *name;
        int64_t value, count;
    } choices[] = {{"kind", (int64_t)op->kind, 5},
                   {"pass", (int64_t)op->pass, 4},
                   {"statistics", (int64_t)op->statistics, 3},
                   {"arithmetic", (int64_t)op->arithmetic, 2},
                   {"affine_broadcast", op->affine_broadcast, 2},
                   {"weight_offset", op->weight_offset, 2},
                   {"accumulate", op->accumulate, 2}};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        lnorm_status status = check_choice(choices[i].name, choices[i].value, choices[i].count, error);
        if (status)
            return status;
    }
    if (op->reserved)
        return lnorm_fail(error, LNORM_UNSUPPORTED, "op.reserved: expected 0, any other value is not in lnorm %s",
                          LNORM_VERSION_STRING);
    if (op->pass > LNORM_BACKWARD && !over_trailing_axes(op->kind))
        return lnorm_fail(error, LNORM_UNSUPPORTED, "op.pass: %s has no %s in lnorm %s", kind_name(op->kind),
                          op->pass == LNORM_DOUBLE_BACKWARD ? "double backward" : "forward mode", LNORM_VERSION_STRING);
    if (!lnorm_eps_legal(op->eps))
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "op.eps: expected a finite number of at least 0, or LNORM_EPS_DEFAULT, got %g", op->eps);
    return LNORM_OK;
}

/* ---- which operands take part ---- */

/* Statistics are outputs of a forward pass that computes them, inputs where they are given, and else ignored. */
static void statistic_role(const lnorm_op *op, int operand, lnorm_operand_form *form) {
    int given = op->statistics != LNORM_COMPUTED;
    form->read = given && (operand != LNORM_MEAN || op->kind != LNORM_RMS_NORM) &&
                 (operand != LNORM_VARIANCE || op->statistics == LNORM_CONSTANT);
    form->written = !given && op->pass == LNORM_FORWARD && operand != LNORM_VARIANCE &&
                    (operand != LNORM_MEAN || op->kind != LNORM_RMS_NORM);
}

static void operand_role(const lnorm_op *op, int operand, lnorm_operand_form *form) {
    unsigned pass = 1u << op->pass;
    form->read = (operands[operand].reads & pass) != 0;
    form->written = (operands[operand].writes & pass) != 0;
    if (operand == LNORM_MEAN || operand == LNORM_RSTD || operand == LNORM_VARIANCE)
        statistic_role(op, operand, form);
    if (operand == LNORM_MEAN_TANGENT && op->kind == LNORM_RMS_NORM)
        form->written = 0;
    if ((operand == LNORM_RUNNING_MEAN || operand == LNORM_RUNNING_VAR) && op->statistics != LNORM_COMPUTED)
        form->read = form->written = 0;
}

/* Sets the role of every operand, and checks each tensor for itself; element is ABSENT where it does not take part. */
static lnorm_status check_tensors(lnorm_problem *problem, const lnorm_op *op, const lnorm_io *io, lnorm_error *error) {
    for (int i = 0; i < LNORM_OPERANDS; i++) {
        lnorm_operand_form *form = &problem->operand[i];
        const lnorm_tensor *tensor = tensor_of(io, i);
        form->element = LNORM_ELEMENT_ABSENT;
        operand_role(op, i, form);
        if (!tensor || !(form->read || form->written))
            continue;
        lnorm_status status = lnorm_tensor_check(form, operands[i].name, tensor, error);
        if (status)
            return status;
    }
    return LNORM_OK;
}

static lnorm_status require(const lnorm_problem *problem, enum lnorm_operand operand, const char *why,
                            lnorm_error *error) {
    if (lnorm_has(problem, operand))
        return LNORM_OK;
    return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a tensor (%s), got NULL", operands[operand].name,
                      why);
}

static lnorm_status check_presence(const lnorm_problem *problem, const lnorm_op *op, lnorm_error *error) {
    lnorm_status status = require(problem, LNORM_X, "the input", error);
    if (!status && (op->pass == LNORM_BACKWARD || op->pass == LNORM_DOUBLE_BACKWARD))
        status = require(problem, LNORM_DY, "the gradient by y", error);
    if (!status && op->pass == LNORM_DOUBLE_BACKWARD)
        status = require(problem, LNORM_V, "the factor of dx in sum(v*dx)", error);
    if (!status && op->statistics != LNORM_COMPUTED && op->kind != LNORM_RMS_NORM)
        status = require(problem, LNORM_MEAN, "op.statistics says that it is given", error);
    if (!status && op->statistics == LNORM_SAVED)
        status = require(problem, LNORM_RSTD, "op.statistics says that it is given", error);
    if (!status && op->statistics == LNORM_CONSTANT &&
        lnorm_has(problem, LNORM_RSTD) == lnorm_has(problem, LNORM_VARIANCE))
        status = lnorm_fail(error, LNORM_INVALID_ARGUMENT, "rstd, variance: expected one of them, got %s",
                            lnorm_has(problem, LNORM_RSTD) ? "both" : "neither");
    if (!status && op->kind != LNORM_BATCH_NORM &&
        (lnorm_has(problem, LNORM_RUNNING_MEAN) || lnorm_has(problem, LNORM_RUNNING_VAR)))
        status = lnorm_fail(error, LNORM_UNSUPPORTED, "running_mean, running_var: %s keeps no running statistics",
                            kind_name(op->kind));
    return status;
}

/* Not in the caller's rounding mode. Volatile keeps the division inside. */
static double reciprocal(int64_t count) {
    lnorm_environment caller = lnorm_environment_enter();
    volatile int64_t divisor = count;
    volatile double result = 1.0 / (double)divisor;
    lnorm_environment_leave(caller);
    return result;
}

/* q of the running statistics */
static lnorm_status set_update(lnorm_problem *problem, const lnorm_op *op, lnorm_error *error) {
    problem->update = 0;
    if (!lnorm_has(problem, LNORM_RUNNING_MEAN) && !lnorm_has(problem, LNORM_RUNNING_VAR))
        return LNORM_OK;
    if (op->batches < 0)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "op.batches: expected at least 0, got %lld",
                          (long long)op->batches);
    if (!op->batches && !lnorm_in_range(op->momentum, 1.0))
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "op.momentum: expected 0 to 1, got %g", op->momentum);
    problem->update = op->batches ? reciprocal(op->batches) : op->momentum;
    return LNORM_OK;
}

static int is_wide(const lnorm_problem *problem) {
    for (int i = 0; i < LNORM_OPERANDS; i++)
        if (problem->operand[i].read && problem->operand[i].element == LNORM_ELEMENT_F64 &&
            operands[i].shape != STATISTIC)
            return 1;
    return 0;
}

/* ---- axes ---- */

static lnorm_status trailing_axes(const lnorm_op *op, const lnorm_tensor *x, uint32_t *reduced, lnorm_error *error) {
    const int64_t *shape = op->normalized_shape;
    int ndim = shape ? op->normalized_ndim : 1, fits = ndim <= x->ndim;
    if (!shape && op->normalized_ndim)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "op.normalized_shape: expected a pointer to %d extents, got NULL", (int)op->normalized_ndim);
    if (ndim < 1)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                          "element, but got normalized_shape = []");
    if (!shape && !fits)
        return lnorm_fail(error, LNORM_SHAPE_MISMATCH, "x: expected at least 1 dimension to normalise over, got 0");
    for (int i = 0; fits && shape && i < ndim; i++)
        fits = shape[i] == x->shape[x->ndim - ndim + i];
    if (!fits) {
        int shown = ndim < LNORM_MAX_NDIM ? ndim : LNORM_MAX_NDIM;
        return lnorm_fail(error, LNORM_SHAPE_MISMATCH,
                          "Given normalized_shape=%s, expected input with shape %s, but got input of size%s",
                          lnorm_shape_text("", shown, shape).at, lnorm_shape_text("*, ", shown, shape).at,
                          lnorm_shape_text("", x->ndim, x->shape).at);
    }
    *reduced = ((1u << ndim) - 1) << (x->ndim - ndim);
    return LNORM_OK;
}

static lnorm_status chosen_axes(const lnorm_op *op, const lnorm_tensor *x, uint32_t *reduced, lnorm_error *error) {
    if (op->normalized_shape)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "op.normalized_shape, op.axes: expected one of them, got both");
    if (op->axes_count < 1)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "op.axes: expected at least one axis, got %d",
                          (int)op->axes_count);
    *reduced = 0;
    for (int i = 0; i < op->axes_count; i++) {
        int64_t axis = op->axes[i];
        if (axis < -x->ndim || axis >= x->ndim)
            return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "op.axes: expected axes from %d to %d, got %lld", -x->ndim,
                              x->ndim - 1, (long long)axis);
        uint32_t bit = 1u << (axis < 0 ? axis + x->ndim : axis);
        if (*reduced & bit)
            return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "op.axes: expected each axis once, got %lld again",
                              (long long)axis);
        *reduced |= bit;
    }
    return LNORM_OK;
}

static lnorm_status check_channels(const lnorm_op *op, const lnorm_tensor *x, lnorm_error *error) {
    if (op->normalized_shape || op->axes)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "op.%s: expected NULL, %s has its own axes",
                          op->axes ? "axes" : "normalized_shape", kind_name(op->kind));
    if (x->ndim < 2)
        return lnorm_fail(error, LNORM_SHAPE_MISMATCH,
                          "Expected at least 2 dimensions for input tensor ([N, C, *]) but received %d", (int)x->ndim);
    if (op->kind != LNORM_GROUP_NORM)
        return LNORM_OK;
    if (op->groups < 1)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "Expected num groups to be greater than 0, got %lld",
                          (long long)op->groups);
    if (x->shape[1] % op->groups)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "Expected number of channels in input to be divisible by num_groups, but got input of shape "
                          "%s and num_groups=%lld", lnorm_shape_text("", x->ndim, x->shape).at, (long long)op->groups);
    if (x->shape[0] && op->groups > INT64_MAX / 8 / x->shape[0]) /* possible where C = 0 */
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "op.groups: expected less than 2^60 groups, got %lld for each of %lld samples",
                          (long long)op->groups, (long long)x->shape[0]);
    return LNORM_OK;
}

/* x's axes that are reduced, before group norm's split */
static lnorm_status reduced_axes(const lnorm_op *op, const lnorm_tensor *x, uint32_t *reduced, lnorm_error *error) {
    if (!op->axes && op->axes_count)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "op.axes: expected a pointer to %d axes, got NULL",
                          (int)op->axes_count);
    if (over_trailing_axes(op->kind))
        return op->axes ? chosen_axes(op, x, reduced, error) : trailing_axes(op, x, reduced, error);
    lnorm_status status = check_channels(op, x, error);
    uint32_t all = (1u << x->ndim) - 1;
    *reduced = op->kind == LNORM_BATCH_NORM ? all & ~2u : all & ~3u;
    return status;
}

/* Group norm's axis 1 becomes [groups, C/groups], the second of them reduced. */
static void split_axes(const lnorm_op *op, const lnorm_tensor *x, uint32_t reduced, lnorm_axes *axes) {
    *axes = (lnorm_axes){.x = x};
    for (int i = 0; i < x->ndim; i++) {
        int parts = op->kind == LNORM_GROUP_NORM && i == 1 ? 2 : 1;
        for (int part = 0; part < parts; part++) {
            int a = axes->count++;
            int64_t inner = parts == 2 ? x->shape[1] / op->groups : 1;
            axes->source[a] = (uint8_t)i;
            axes->scale[a] = part + 1 < parts ? inner : 1;
            axes->extent[a] = parts == 1 ? x->shape[i] : part ? inner : op->groups;
            if (reduced >> i & 1 || part)
                axes->reduced |= 1u << a;
        }
    }
}

/* ---- weight and bias ---- */

static lnorm_status affine_mismatch(const lnorm_op *op, const char *name, const lnorm_tensor *tensor, int ndim,
                                    const int64_t *shape, const lnorm_tensor *x, lnorm_error *error) {
    lnorm_text got = lnorm_shape_text("", tensor->ndim, tensor->shape), due = lnorm_shape_text("", ndim, shape);
    if (!over_trailing_axes(op->kind))
        return lnorm_fail(error, LNORM_SHAPE_MISMATCH,
                          "Expected %s to be a vector of size equal to the number of channels in input, but got %s of "
                          "shape %s and input of shape %s", name, name, got.at,
                          lnorm_shape_text("", x->ndim, x->shape).at);
    if (op->axes)
        return lnorm_fail(error, LNORM_SHAPE_MISMATCH,
                          "Expected %s to have the extents of the normalised axes in ascending order, %s, but got %s",
                          name, due.at, got.at);
    return lnorm_fail(error, LNORM_SHAPE_MISMATCH,
                      "Expected %s to be of same shape as normalized_shape, but got %s of shape %s and "
                      "normalized_shape = %s", name, name, got.at, due.at);
}

/* Strides and axis set of one weight- or bias-like operand. */
static lnorm_status place_affine(lnorm_problem *problem, const lnorm_op *op, int operand, const lnorm_tensor *tensor,
                                 const lnorm_axes *axes, uint32_t *used, lnorm_error *error) {
    lnorm_operand_form *form = &problem->operand[operand];
    uint8_t on[LNORM_MAX_NDIM];
    int64_t shape[LNORM_MAX_NDIM];
    int ndim = 0;
    if (op->affine_broadcast)
        return lnorm_tensor_broadcast(form, operands[operand].name, tensor, axes, used, error);
    *used = 0;
    for (int a = 0; a < axes->count; a++) {
        int axis = axes->source[a];
        if (over_trailing_axes(op->kind) ? !(axes->reduced >> a & 1) : axis != 1)
            continue;
        *used |= 1u << a;
        if (!ndim || on[ndim - 1] != axis) {
            on[ndim] = (uint8_t)axis;
            shape[ndim++] = axes->x->shape[axis];
        }
    }
    if (!lnorm_same_shape(tensor->ndim, tensor->shape, ndim, shape))
        return affine_mismatch(op, operands[operand].name, tensor, ndim, shape, axes->x, error);
    lnorm_tensor_on_axes(form, tensor, on, axes);
    return LNORM_OK;
}

static lnorm_status place_operands(lnorm_problem *problem, const lnorm_op *op, const lnorm_io *io,
                                   const lnorm_axes *axes, lnorm_error *error) {
    const lnorm_tensor *first[2] = {NULL, NULL}; /* of the weight-like and the bias-like operands */
    uint32_t used[2] = {0, 0};
    for (int i = 0; i < LNORM_OPERANDS; i++) {
        lnorm_operand_form *form = &problem->operand[i];
        const lnorm_tensor *tensor = tensor_of(io, i);
        lnorm_status status = LNORM_OK;
        if (!lnorm_has(problem, (enum lnorm_operand)i))
            continue;
        if (operands[i].shape == ELEMENTS)
            status = lnorm_tensor_as_x(form, operands[i].name, tensor, axes, error);
        else if (operands[i].shape == STATISTIC)
            status = lnorm_tensor_as_statistic(form, operands[i].name, tensor, axes, error);
        else {
            int set = operands[i].shape == BIAS;
            status = place_affine(problem, op, i, tensor, axes, &used[set], error);
            if (!status && first[set] &&
                !lnorm_same_shape(first[set]->ndim, first[set]->shape, tensor->ndim, tensor->shape))
                status = lnorm_fail(error, LNORM_SHAPE_MISMATCH, "%s: expected the shape of %s, %s, got %s",
                                    operands[i].name, set ? "bias" : "weight",
                                    lnorm_shape_text("", first[set]->ndim, first[set]->shape).at,
                                    lnorm_shape_text("", tensor->ndim, tensor->shape).at);
            first[set] = tensor;
        }
        if (status)
            return status;
    }
    problem->weight_axes = used[0];
    problem->bias_axes = used[1];
    return LNORM_OK;
}

/* ---- merging ---- */

static uint32_t without_bit(uint32_t bits, int bit) {
    uint32_t low = (1u << bit) - 1;
    return (bits & low) | (bits >> 1 & ~low);
}

static void remove_axis(lnorm_problem *problem, int axis) {
    problem->axes--;
    problem->reduced = without_bit(problem->reduced, axis);
    problem->weight_axes = without_bit(problem->weight_axes, axis);
    problem->bias_axes = without_bit(problem->bias_axes, axis);
    for (int a = axis; a < problem->axes; a++) {
        problem->extent[a] = problem->extent[a + 1];
        for (int i = 0; i < LNORM_OPERANDS; i++)
            if (lnorm_has(problem, (enum lnorm_operand)i))
                problem->operand[i].stride[a] = problem->operand[i].stride[a + 1];
    }
}

/* Whether axes a and a + 1 are one axis to everything: the logical order, and so every bit of the results, stays. */
static int mergeable(const lnorm_problem *problem, int a) {
    const uint32_t sets[] = {problem->reduced, problem->weight_axes, problem->bias_axes};
    for (int i = 0; i < 3; i++)
        if ((sets[i] >> a & 1) != (sets[i] >> (a + 1) & 1))
            return 0;
    for (int i = 0; i < LNORM_OPERANDS; i++) {
        const lnorm_operand_form *form = &problem->operand[i];
        int64_t whole;
        if (lnorm_has(problem, (enum lnorm_operand)i) &&
            (__builtin_mul_overflow(form->stride[a + 1], problem->extent[a + 1], &whole) || form->stride[a] != whole))
            return 0;
    }
    return 1;
}

static void merge_axes(lnorm_problem *problem) {
    for (int a = problem->axes; a-- > 0;)
        if (problem->extent[a] == 1)
            remove_axis(problem, a);
    for (int a = problem->axes - 1; a-- > 0;)
        if (mergeable(problem, a)) {
            problem->extent[a + 1] *= problem->extent[a];
            remove_axis(problem, a);
        }
}

lnorm_space lnorm_space_of(const lnorm_problem *problem, uint32_t axes) {
    lnorm_space space = {.axes = 0, .count = 1};
    for (int a = 0; a < problem->axes; a++)
        if (axes >> a & 1) {
            space.axis[space.axes++] = (uint8_t)a;
            space.count *= problem->extent[a];
        }
    return space;
}

static void set_spaces(lnorm_problem *problem) {
    problem->group = lnorm_space_of(problem, ~problem->reduced);
    problem->element = lnorm_space_of(problem, problem->reduced);
}

static lnorm_status lay_out(lnorm_problem *problem, const lnorm_op *op, const lnorm_io *io, lnorm_error *error) {
    lnorm_axes axes;
    uint32_t reduced = 0;
    lnorm_status status = reduced_axes(op, io->x, &reduced, error);
    if (status)
        return status;
    split_axes(op, io->x, reduced, &axes);
    if ((status = place_operands(problem, op, io, &axes, error)))
        return status;
    problem->axes = axes.count;
    problem->reduced = axes.reduced;
    memcpy(problem->extent, axes.extent, sizeof axes.extent);
    merge_axes(problem);
    set_spaces(problem);
    return LNORM_OK;
}

/* Short groups are not bound by the arithmetic of their elements. */
static int has_fast_form(const lnorm_problem *problem) {
    return !problem->wide && problem->pass <= LNORM_BACKWARD && problem->element.count > LNORM_SHORT;
}

static void list_operands(lnorm_problem *problem) {
    problem->present.count = problem->written.count = 0;
    for (int i = 0; i < LNORM_OPERANDS; i++) {
        if (!lnorm_has(problem, (enum lnorm_operand)i))
            continue;
        problem->present.at[problem->present.count++] = (uint8_t)i;
        if (problem->operand[i].written)
            problem->written.at[problem->written.count++] = (uint8_t)i;
    }
}

lnorm_status lnorm_problem_init(lnorm_problem *problem, const lnorm_op *user_op, const lnorm_io *user_io,
                                lnorm_error *error) {
    lnorm_op op;
    lnorm_io io;
    lnorm_status status;
    if ((status = lnorm_copy_struct(&op, sizeof op, user_op, "op", error)) ||
        (status = lnorm_copy_struct(&io, sizeof io, user_io, "io", error)) || (status = check_op(&op, error)) ||
        (status = check_tensors(problem, &op, &io, error)) || (status = check_presence(problem, &op, error)) ||
        (status = set_update(problem, &op, error)))
        return status;
    problem->pass = (uint8_t)op.pass;
    problem->statistics = (uint8_t)op.statistics;
    problem->center = op.kind != LNORM_RMS_NORM;
    problem->weight_offset = (uint8_t)op.weight_offset;
    problem->accumulate = (uint8_t)op.accumulate;
    problem->wide = (uint8_t)is_wide(problem);
    problem->eps = lnorm_eps_value(op.eps, problem->center, problem->operand[LNORM_X].element);
    if ((status = lay_out(problem, &op, &io, error)))
        return status;
    problem->fast = op.arithmetic == LNORM_FAST && has_fast_form(problem);
    list_operands(problem);
    return LNORM_OK;
}

