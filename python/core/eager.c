/* A norm that PyTorch's user calls in plain eager mode: whether it is one, and whether autograd has to record it. What
 * is not certain is left to the caller: None is returned. */
#include "core.h"

static PyObject *included_keys, *quiet, *forward_ad, *grad_enabled, *record, *other_backward;
static PyObject *raw_repr, *current_level, *requires_grad, *to_save, *how_name, *saved_tensors, *needs_input_grad;

const char set_eager_doc[] =
    "set_eager(included_keys, quiet, forward_ad, grad_enabled, record, /)\n--\n\n"
    "What eager_norm goes by: the function that gives this thread's dispatch keys, a frozenset of those (raw_repr)\n"
    "under which no mode is on, the module torch.autograd.forward_ad, the function that says whether gradients are\n"
    "recorded, and the one that records a norm: record(x, weight, bias, how, *statistics), with how as in tensor_norm.";

static int intern_names(void) {
    static const struct name {
        PyObject **into;
        const char *text;
    } names[] = {{&raw_repr, "raw_repr"},           {&current_level, "_current_level"},
                 {&requires_grad, "requires_grad"}, {&to_save, "to_save"},
                 {&how_name, "how"},                {&saved_tensors, "saved_tensors"},
                 {&needs_input_grad, "needs_input_grad"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!*names[i].into && !(*names[i].into = PyUnicode_InternFromString(names[i].text)))
            return -1;
    return 0;
}

PyObject *set_eager(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    (void)module;
    if (check_count(given, 5, "set_eager") || intern_names())
        return NULL;
    keep(&included_keys, arguments[0]);
    keep(&quiet, arguments[1]);
    keep(&forward_ad, arguments[2]);
    keep(&grad_enabled, arguments[3]);
    keep(&record, arguments[4]);
    Py_RETURN_NONE;
}

/* Takes over an answer, or the exception in its place: neither is left. */
static int is_true(PyObject *answer) {
    int truth = answer == Py_True;
    if (!answer)
        PyErr_Clear();
    Py_DecRef(answer);
    return truth;
}

/* Nothing watches this thread: no tracer, transform or mode, which all add dispatch keys; no level of forward mode. */
static int no_mode_is_on(void) {
    PyObject *keys = PyObject_CallNoArgs(included_keys);
    PyObject *number = keys ? PyObject_CallMethodObjArgs(keys, raw_repr, NULL) : NULL;
    PyObject *level = number ? PyObject_GetAttr(forward_ad, current_level) : NULL;
    int overflow, off = level && PySet_Contains(quiet, number) == 1 && PyLong_AsLongAndOverflow(level, &overflow) < 0;
    Py_DecRef(keys);
    Py_DecRef(number);
    Py_DecRef(level);
    PyErr_Clear();
    return off;
}

static int needs_gradient(PyObject *object) {
    return object != Py_None && is_true(PyObject_GetAttr(object, requires_grad));
}

static PyObject *tuple_of(PyObject *const *objects, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        Py_IncRef(objects[i]);
        PyTuple_SetItem(tuple, i, objects[i]);
    }
    return tuple;
}

enum { KIND, SHAPE, EPS, FAST, MOMENTUM, X, WEIGHT, BIAS, MEAN, VARIANCE, ARGUMENTS };

/* record(x, weight, bias, how[, mean, variance]) */
static PyObject *recorded(PyObject *const *arguments, PyObject *how, Py_ssize_t given) {
    PyObject *all[] = {arguments[X], arguments[WEIGHT], arguments[BIAS], how, NULL, NULL}, *tuple, *y;
    for (Py_ssize_t i = MEAN; i < given; i++)
        all[i - MEAN + 4] = arguments[i];
    tuple = tuple_of(all, given == ARGUMENTS ? 6 : 4);
    y = tuple ? PyObject_Call(record, tuple, NULL) : NULL;
    Py_DecRef(tuple);
    return y;
}

static PyObject *computed(PyObject *const *tensors, Py_ssize_t count, PyObject *how) {
    PyObject *all[] = {how, NULL, NULL, NULL, NULL, NULL};
    for (Py_ssize_t i = 0; i < count; i++)
        all[1 + i] = tensors[i];
    return tensor_norm(NULL, all, 1 + count);
}

const char tensor_norm_forward_doc[] =
    "tensor_norm_forward(ctx, x, weight, bias, how[, mean, variance], /)\n--\n\n"
    "tensor_norm as the forward pass of an autograd.Function, which saves the first argument of tensor_norm_backward.";

/* What the gradients are computed from. Each tensor more costs as much as a short row: of the bias nothing counts but
 * shape and type, which are the weight's. Running statistics, of which there is a momentum, are not operands. */
static PyObject *to_be_saved(PyObject *const *tensors, Py_ssize_t count, PyObject *how, PyObject *statistics) {
    PyObject *all[5] = {NULL};
    for (Py_ssize_t i = 0; i < count; i++)
        all[i] = tensors[i];
    if (all[1] != Py_None)
        all[2] = Py_None;
    if (PyTuple_GetItem(how, MOMENTUM) != Py_None)
        count = 3;
    if (statistics)
        all[count++] = statistics;
    return tuple_of(all, count);
}

/* `to_save` is what ctx.save_for_backward sets. */
static int save(PyObject *ctx, PyObject *const *tensors, Py_ssize_t count, PyObject *how, PyObject *statistics) {
    PyObject *saved = to_be_saved(tensors, count, how, statistics);
    int status = !saved || PyObject_SetAttr(ctx, to_save, saved) || PyObject_SetAttr(ctx, how_name, how) ? -1 : 0;
    Py_DecRef(saved);
    return status;
}

PyObject *tensor_norm_forward(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    enum { CTX, FIRST, HOW = 4, STATISTICS, ALL = 7 };
    PyObject *tensors[5] = {NULL}, *statistics = NULL, *y;
    Py_ssize_t count = given - 2;
    (void)module;
    if (given != ALL && check_count(given, STATISTICS, "tensor_norm_forward"))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        tensors[i] = arguments[FIRST + i < HOW ? FIRST + i : FIRST + i + 1];
    y = norm_and_statistics(tensors, count, arguments[HOW], &statistics);
    if (y && save(arguments[CTX], tensors, count, arguments[HOW], statistics)) {
        Py_DecRef(y);
        y = NULL;
    }
    Py_DecRef(statistics);
    return y;
}

/* The gradients of what tensor_norm_forward has saved, `saved`; None as tensor_norm_backward. */
static PyObject *gradients_of(PyObject *saved, PyObject *ctx, PyObject *dy) {
    PyObject *how = PyObject_GetAttr(ctx, how_name);
    PyObject *mask = how ? PyObject_GetAttr(ctx, needs_input_grad) : NULL;
    PyObject *found = mask ? tensor_norm_backward(NULL, (PyObject *[]){saved, how, dy, mask}, 4) : NULL;
    Py_DecRef(how);
    Py_DecRef(mask);
    return found;
}

/* The saved tensors are asked for once, as a checkpoint gives them no second time. */
static PyObject *apply(PyObject *ctx, PyObject *dy) {
    PyObject *saved = PyObject_GetAttr(ctx, saved_tensors), *found = NULL;
    int left = saved != NULL;
    if (saved && no_mode_is_on() && !is_true(PyObject_CallNoArgs(grad_enabled))) {
        found = gradients_of(saved, ctx, dy);
        left = found == Py_None;
    }
    if (left) {
        Py_DecRef(found);
        found = PyObject_CallFunctionObjArgs(other_backward, ctx, dy, saved, NULL);
    }
    Py_DecRef(saved);
    return found;
}

const char tensor_norm_apply_doc[] =
    "tensor_norm_apply(node, backward, /)\n--\n\n"
    "The method `apply` for node, the type of ctx: tensor_norm_backward of what tensor_norm_forward has saved, or\n"
    "backward(ctx, dy, saved_tensors) where something watches, gradients are recorded or dy is no dense tensor.";

PyObject *tensor_norm_apply(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    static PyMethodDef method = {"apply", apply, METH_O, NULL};
    (void)module;
    if (check_count(given, 2, "tensor_norm_apply"))
        return NULL;
    if (!PyType_Check(arguments[0])) {
        PyErr_Format(PyExc_TypeError, "node: expected a type, got %R", arguments[0]);
        return NULL;
    }
    keep(&other_backward, arguments[1]);
    return PyDescr_NewMethod((PyTypeObject *)arguments[0], &method);
}

const char eager_norm_doc[] =
    "eager_norm(kind, shape, eps, fast, momentum, x, weight, bias[, mean, variance], /)\n--\n\n"
    "y, recorded where gradients are to be; None where something watches, or as tensor_norm, whose arguments these\n"
    "are.";

PyObject *eager_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    PyObject *how, *y = NULL;
    int enabled, records;
    (void)module;
    if (given != ARGUMENTS && check_count(given, MEAN, "eager_norm"))
        return NULL;
    if (!record || !is_tensor(arguments[X]) || !no_mode_is_on())
        Py_RETURN_NONE;
    enabled = is_true(PyObject_CallNoArgs(grad_enabled));
    records = enabled && (needs_gradient(arguments[X]) || needs_gradient(arguments[WEIGHT]) ||
                          needs_gradient(arguments[BIAS]));
    if (records && !is_row_major_tensor(arguments[X]))
        Py_RETURN_NONE;
    if (enabled && given == ARGUMENTS && (needs_gradient(arguments[MEAN]) || needs_gradient(arguments[VARIANCE])))
        Py_RETURN_NONE; /* by these there are none */
    how = tuple_of(arguments, X);
    if (how)
        y = records ? recorded(arguments, how, given) : computed(arguments + X, given - X, how);
    Py_DecRef(how);
    return y;
}
