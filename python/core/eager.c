/* A norm that PyTorch's user calls in plain eager mode: whether it is one, and whether autograd has to record it. What
 * is not certain is left to the caller: None is returned. */
#include "core.h"

static PyObject *included_keys, *quiet, *forward_ad, *grad_enabled, *record;
static PyObject *raw_repr, *current_level, *requires_grad, *to_save, *how_name;

const char set_eager_doc[] =
    "set_eager(included_keys, quiet, forward_ad, grad_enabled, record, /)\n--\n\n"
    "What eager_norm goes by: the function that gives this thread's dispatch keys, a frozenset of those (raw_repr) under\n"
    "which no mode is on, the module torch.autograd.forward_ad, the function that says whether gradients are recorded,\n"
    "and the one that records a norm: record(x, weight, bias, how, *statistics), with how as in tensor_norm.";

PyObject *set_eager(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    (void)module;
    if (check_count(given, 5, "set_eager"))
        return NULL;
    if (!(raw_repr = PyUnicode_InternFromString("raw_repr")) ||
        !(current_level = PyUnicode_InternFromString("_current_level")) ||
        !(requires_grad = PyUnicode_InternFromString("requires_grad")) ||
        !(to_save = PyUnicode_InternFromString("to_save")) || !(how_name = PyUnicode_InternFromString("how")))
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

/* Nothing watches this thread: no tracer, transform or mode, which all add dispatch keys, and no level of forward mode. */
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

static PyObject *computed(PyObject *const *arguments, PyObject *how, Py_ssize_t given) {
    PyObject *tensors = tuple_of(arguments + X, given - X), *both[] = {tensors, how};
    PyObject *y = tensors ? tensor_norm(NULL, both, 2) : NULL;
    Py_DecRef(tensors);
    return y;
}

/* 1 where there is a momentum: mean and variance are updated, and are not operands. */
static int updates(PyObject *how) {
    return PyTuple_Check(how) && PyTuple_Size(how) > MOMENTUM && PyTuple_GetItem(how, MOMENTUM) != Py_None;
}

const char tensor_norm_forward_doc[] =
    "tensor_norm_forward(ctx, x, weight, bias, how[, mean, variance], /)\n--\n\n"
    "tensor_norm as the forward of an autograd.Function, which saves what tensor_norm_backward takes. (to_save is what\n"
    "ctx.save_for_backward sets.)";

PyObject *tensor_norm_forward(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    enum { CTX, OPERANDS, HOW = 4, STATISTICS, ALL = 7 };
    PyObject *operands[5], *tensors, *saved, *both[2], *y = NULL;
    Py_ssize_t count = given == ALL ? 5 : 3;
    (void)module;
    if (given != ALL && check_count(given, STATISTICS, "tensor_norm_forward"))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        operands[i] = arguments[i < 3 ? OPERANDS + i : STATISTICS + i - 3];
    tensors = both[0] = tuple_of(operands, count);
    both[1] = arguments[HOW];
    saved = tensors && updates(arguments[HOW]) ? tuple_of(operands, 3) : NULL;
    if (tensors && !PyObject_SetAttr(arguments[CTX], to_save, saved ? saved : tensors) &&
        !PyObject_SetAttr(arguments[CTX], how_name, arguments[HOW]))
        y = tensor_norm(NULL, both, 2);
    Py_DecRef(tensors);
    Py_DecRef(saved);
    return y;
}

const char eager_norm_doc[] =
    "eager_norm(kind, shape, eps, fast, momentum, x, weight, bias[, mean, variance], /)\n--\n\n"
    "y, recorded where gradients are to be; None where something watches, or as tensor_norm, whose arguments these are.";

PyObject *eager_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    PyObject *how, *y;
    int records;
    (void)module;
    if (given != ARGUMENTS && check_count(given, MEAN, "eager_norm"))
        return NULL;
    if (!record || !is_tensor(arguments[X]) || !no_mode_is_on())
        Py_RETURN_NONE;
    records = is_true(PyObject_CallNoArgs(grad_enabled)) &&
              (needs_gradient(arguments[X]) || needs_gradient(arguments[WEIGHT]) || needs_gradient(arguments[BIAS]));
    if (records && !is_row_major_tensor(arguments[X]))
        Py_RETURN_NONE;
    how = tuple_of(arguments, X);
    y = how ? (records ? recorded : computed)(arguments, how, given) : NULL;
    Py_DecRef(how);
    return y;
}
