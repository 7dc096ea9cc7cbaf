/* Level 1 on addresses: contiguous rows, one element type, the calling thread. */
#include "core.h"

#include <stdlib.h>

#define FORWARD(suffix)                                                                                               \
    (c->kind == LNORM_RMS_NORM                                                                                        \
         ? lnorm_rms_norm_##suffix(c->y, c->rstd, c->x, c->weight, c->rows, c->cols, c->eps)                          \
         : lnorm_layer_norm_##suffix(c->y, c->mean, c->rstd, c->x, c->weight, c->bias, c->rows, c->cols, c->eps))

static lnorm_status forward(const rows_call *c) {
    switch (c->element) {
    case F64: return FORWARD(f64);
    case F32: return FORWARD(f32);
    case F16: return FORWARD(f16);
    case BF16: return FORWARD(bf16);
    default: return LNORM_UNSUPPORTED_DTYPE;
    }
}

#define BACKWARD(suffix)                                                                                              \
    (c->kind == LNORM_RMS_NORM                                                                                        \
         ? lnorm_rms_norm_backward_##suffix(c->dx, c->dweight, c->dy, c->x, c->weight, c->rows, c->cols, c->eps,      \
                                            workspace, size)                                                          \
         : lnorm_layer_norm_backward_##suffix(c->dx, c->dweight, c->dbias, c->dy, c->x, c->weight, c->rows, c->cols,  \
                                              c->eps, workspace, size))

static lnorm_status backward_in(const rows_call *c, void *workspace, size_t size) {
    switch (c->element) {
    case F64: return BACKWARD(f64);
    case F32: return BACKWARD(f32);
    case F16: return BACKWARD(f16);
    case BF16: return BACKWARD(bf16);
    default: return LNORM_UNSUPPORTED_DTYPE;
    }
}

static lnorm_status backward(const rows_call *c) {
    unsigned char small[8192];
    size_t size = lnorm_backward_workspace(c->rows, c->cols);
    void *large;
    lnorm_status status;
    if (size <= sizeof small)
        return backward_in(c, small, size);
    large = malloc(size);
    status = backward_in(c, large, large ? size : 0);
    free(large);
    return status;
}

lnorm_status run_rows(const rows_call *c) {
    lnorm_status (*run)(const rows_call *) = c->pass == LNORM_FORWARD ? forward : backward;
    lnorm_status status;
    PyThreadState *lock;
    /* Beyond 2^60 elements the library refuses; before that the product fits. */
    if (c->rows < KEEP_LOCK_BELOW && c->cols < KEEP_LOCK_BELOW && c->rows * c->cols < KEEP_LOCK_BELOW)
        return run(c);
    lock = PyEval_SaveThread();
    status = run(c);
    PyEval_RestoreThread(lock);
    return status;
}

/* kind, element at the front; rows, cols, eps at the end. */
static int read_scalars(rows_call *call, PyObject *const *front, PyObject *const *end) {
    int64_t kind = -1, element = -1;
    if (read_integer(front[0], "kind", &kind) || read_integer(front[1], "dtype", &element) ||
        read_integer(end[0], "rows", &call->rows) || read_integer(end[1], "cols", &call->cols) ||
        read_double(end[2], "eps", &call->eps))
        return -1;
    if (kind != LNORM_LAYER_NORM && kind != LNORM_RMS_NORM) {
        PyErr_Format(PyExc_ValueError, "kind: expected LAYER_NORM or RMS_NORM, got %lld", (long long)kind);
        return -1;
    }
    if (element < 0 || element >= ELEMENTS) {
        PyErr_Format(PyExc_ValueError, "dtype: expected F64, F32, F16 or BF16, got %lld", (long long)element);
        return -1;
    }
    call->kind = (lnorm_kind)kind;
    call->element = (enum element)element;
    return 0;
}

int check_count(Py_ssize_t given, Py_ssize_t expected, const char *name) {
    if (given == expected)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s() takes %zd positional arguments (%zd given)", name, expected, given);
    return -1;
}

static int read_addresses(rows_call *call, PyObject *const *objects) {
    void **in_forward[] = {&call->x, &call->y, &call->weight, &call->bias, &call->mean, &call->rstd};
    void **in_backward[] = {&call->dy, &call->x, &call->weight, &call->dx, &call->dweight, &call->dbias};
    void ***members = call->pass == LNORM_FORWARD ? in_forward : in_backward;
    for (int i = 0; i < 6; i++) {
        *members[i] = objects[i] == Py_None ? NULL : PyLong_AsVoidPtr(objects[i]);
        if (!*members[i] && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *rows(lnorm_pass pass, const char *name, PyObject *const *arguments, Py_ssize_t given) {
    rows_call call = {.pass = pass};
    lnorm_status status;
    if (check_count(given, 11, name) || read_addresses(&call, arguments + 2) ||
        read_scalars(&call, arguments, arguments + 8))
        return NULL;
    status = run_rows(&call);
    if (status != LNORM_OK)
        return raise_status(status, "");
    Py_RETURN_NONE;
}

const char rows_forward_doc[] =
    "rows_forward(kind, dtype, x, y, weight, bias, mean, rstd, rows, cols, eps, /)\n--\n\n"
    "Level 1 of lnorm.h on addresses: layer norm or RMS norm of contiguous rows on the calling thread.\n\n"
    "kind: LAYER_NORM or RMS_NORM; dtype: F64, F32, F16 or BF16, of x, y, weight and bias alike. x to rstd are\n"
    "addresses, 0 or None for none: x and y hold rows*cols elements, weight and bias cols, mean and rstd rows of\n"
    "float32 (of float64 for F64). y may be x. RMS norm ignores bias and mean. eps: at least 0, or EPS_DEFAULT.\n"
    "Nothing is checked but what lnorm.h checks: the memory must be there and aligned to its elements.";

PyObject *rows_forward(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    (void)module;
    return rows(LNORM_FORWARD, "rows_forward", arguments, given);
}

const char rows_backward_doc[] =
    "rows_backward(kind, dtype, dy, x, weight, dx, dweight, dbias, rows, cols, eps, /)\n--\n\n"
    "The gradients of rows_forward, whose statistics are computed anew from x; the workspace is allocated here.\n\n"
    "dy to dbias are addresses, 0 or None for none: dy, x and dx hold rows*cols elements, weight, dweight and dbias\n"
    "cols, all of type dtype. dx may be dy or x. Outputs that are 0 are not computed. RMS norm ignores dbias.";

PyObject *rows_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    (void)module;
    return rows(LNORM_BACKWARD, "rows_backward", arguments, given);
}
