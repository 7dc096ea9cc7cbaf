/* layer_norm, rms_norm and their gradients: what is called most, and with rows so short that a Python function around
 * them would cost more than the norm. Dense arrays of one element type go straight to the library; everything else,
 * errors included, to the Python function of the same name. */
#include "arrays.h"

/* One of the functions: where its arguments stand (-1: it has none such), and the Python function for what is not
 * dense. */
typedef struct function {
    lnorm_kind kind;
    lnorm_pass pass;
    int dy, x, shape, weight, bias, eps;
    signature signature;
    PyObject *general;
} function;

#define COUNT(names) ((int)(sizeof names / sizeof *names))
#define SHAPE "normalized_shape"
#define MORE "axes", "threads", "fast", "affine_broadcast" /* the last four of each: fast_of */
static const char *const layer_names[] = {"input", SHAPE, "weight", "bias", "eps", "out", "return_stats", MORE};
static const char *const rms_names[] = {"input", SHAPE, "weight", "eps", "out", "return_stats", MORE};
static const char *const layer_backward_names[] = {"dy", "input", SHAPE, "weight", "bias", "eps", "mean", "rstd", MORE};
static const char *const rms_backward_names[] = {"dy", "input", SHAPE, "weight", "eps", "rstd", MORE};

enum { LAYER_NORM, RMS_NORM, LAYER_NORM_BACKWARD, RMS_NORM_BACKWARD, FUNCTIONS };
static function functions[FUNCTIONS] = {
    {LNORM_LAYER_NORM, LNORM_FORWARD, -1, 0, 1, 2, 3, 4,
     {"layer_norm", COUNT(layer_names), 5, 1, layer_names, {NULL}}, NULL},
    {LNORM_RMS_NORM, LNORM_FORWARD, -1, 0, 1, 2, -1, 3, {"rms_norm", COUNT(rms_names), 4, 1, rms_names, {NULL}}, NULL},
    {LNORM_LAYER_NORM, LNORM_BACKWARD, 0, 1, 2, 3, 4, 5,
     {"layer_norm_backward", COUNT(layer_backward_names), 6, 2, layer_backward_names, {NULL}}, NULL},
    {LNORM_RMS_NORM, LNORM_BACKWARD, 0, 1, 2, 3, -1, 4,
     {"rms_norm_backward", COUNT(rms_backward_names), 5, 2, rms_backward_names, {NULL}}, NULL}};

const char set_general_doc[] =
    "set_general(layer_norm, rms_norm, layer_norm_backward, rms_norm_backward, /)\n--\n\n"
    "The functions that take what is not dense.";

PyObject *set_general(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    (void)module;
    if (given != FUNCTIONS) {
        PyErr_Format(PyExc_TypeError, "set_general() takes %d positional arguments (%zd given)", (int)FUNCTIONS, given);
        return NULL;
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        PyObject *before = functions[i].general;
        Py_IncRef(arguments[i]);
        functions[i].general = arguments[i];
        Py_DecRef(before);
    }
    Py_RETURN_NONE;
}

static PyObject *call_general(const function *f, PyObject *const *values) {
    PyObject *keywords = PyDict_New(), *none = PyTuple_New(0), *result = NULL;
    int status = keywords && none ? 0 : -1;
    for (int i = 0; i < f->signature.count && !status; i++)
        if (values[i])
            status = PyDict_SetItem(keywords, f->signature.interned[i], values[i]);
    if (!status && !f->general)
        PyErr_SetString(PyExc_RuntimeError, "lnorm._core is not initialised: import lnorm");
    else if (!status)
        result = PyObject_Call(f->general, none, keywords);
    Py_DecRef(keywords);
    Py_DecRef(none);
    return result;
}

/* ---- What is dense ----------------------------------------------------------------------------------------------- */

static PyArrayObject *dense(PyObject *object) {
    PyArrayObject *array = (PyArrayObject *)object;
    return PyArray_CheckExact(object) && PyArray_IS_C_CONTIGUOUS(array) && is_plain(array) ? array : NULL;
}

static int is_extent(PyObject *object, npy_intp extent) {
    int overflow;
    return PyLong_CheckExact(object) && PyLong_AsLongLongAndOverflow(object, &overflow) == extent && !overflow;
}

/* The number of trailing axes of x that `shape` names, an int or a tuple of them; 0 where they differ or it is not so
 * simple. */
static int trailing_axes(PyArrayObject *x, PyObject *shape) {
    Py_ssize_t ndim = PyArray_NDIM(x), count;
    if (!PyTuple_CheckExact(shape))
        return ndim >= 1 && is_extent(shape, PyArray_DIM(x, (int)ndim - 1));
    count = PyTuple_Size(shape);
    if (count > ndim)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_extent(PyTuple_GetItem(shape, i), PyArray_DIM(x, (int)(ndim - count + i))))
            return 0;
    return (int)count;
}

/* weight or bias: dense, of x's type, of the shape of its last `axes` axes; or none. */
static int read_parameter(PyArrayObject *x, int element, int axes, PyObject *object, void **data) {
    PyArrayObject *array;
    *data = NULL;
    if (!object || object == Py_None)
        return 1;
    array = dense(object);
    if (!array || PyArray_NDIM(array) != axes || element_of(array) != element)
        return 0;
    for (int i = 0; i < axes; i++)
        if (PyArray_DIM(array, i) != PyArray_DIM(x, PyArray_NDIM(x) - axes + i))
            return 0;
    *data = PyArray_DATA(array);
    return 1;
}

static int read_eps(PyObject *object, double *eps) {
    if (!object || object == Py_None)
        return 1;
    if (!PyFloat_CheckExact(object))
        return 0;
    *eps = PyFloat_AsDouble(object);
    return 1;
}

static int has_shape_of(PyArrayObject *x, PyArrayObject *array) {
    if (PyArray_NDIM(array) != PyArray_NDIM(x))
        return 0;
    for (int i = 0; i < PyArray_NDIM(x); i++)
        if (PyArray_DIM(array, i) != PyArray_DIM(x, i))
            return 0;
    return 1;
}

static PyObject *argument(PyObject *const *values, int i) {
    return i < 0 ? NULL : values[i];
}

static int read_gradient(rows_call *call, PyArrayObject *x, const function *f, PyObject *const *values) {
    PyArrayObject *dy;
    if (f->pass == LNORM_FORWARD)
        return 1;
    dy = dense(values[f->dy]);
    if (!dy || element_of(dy) != (int)call->element || !has_shape_of(x, dy))
        return 0;
    call->dy = PyArray_DATA(dy);
    return 1;
}

static int fast_of(const function *f) {
    return f->signature.count - 2;
}

/* Of the keywords only `fast`, True or False, is for the short way. */
static int read_keywords(rows_call *call, const function *f, PyObject *const *values) {
    PyObject *fast = values[fast_of(f)];
    for (int i = f->signature.positional; i < f->signature.count; i++)
        if (values[i] && i != fast_of(f))
            return 0;
    call->arithmetic = fast == Py_True ? LNORM_FAST : LNORM_ACCURATE;
    return !fast || fast == Py_True || fast == Py_False;
}

/* Fills the inputs of `call`; 0 where this is not a dense case. */
static int read_dense(rows_call *call, const function *f, PyObject *const *values) {
    PyArrayObject *x = dense(values[f->x]);
    int element, axes;
    if (!read_keywords(call, f, values))
        return 0;
    if (!x || !values[f->shape] || (element = element_of(x)) < 0 || !(axes = trailing_axes(x, values[f->shape])) ||
        PyArray_SIZE(x) == 0)
        return 0;
    call->kind = f->kind;
    call->pass = f->pass;
    call->element = (enum element)element;
    call->x = PyArray_DATA(x);
    call->cols = 1;
    for (int i = 0; i < axes; i++)
        call->cols *= PyArray_DIM(x, PyArray_NDIM(x) - axes + i);
    call->rows = PyArray_SIZE(x) / call->cols;
    call->eps = LNORM_EPS_DEFAULT;
    return read_parameter(x, element, axes, values[f->weight], &call->weight) &&
           read_parameter(x, element, axes, argument(values, f->bias), &call->bias) &&
           read_eps(values[f->eps], &call->eps) && read_gradient(call, x, f, values);
}

/* ---- Running it -------------------------------------------------------------------------------------------------- */

/* By a plan. */
static int run_planned(const rows_call *c) {
    int64_t shape[] = {c->rows, c->cols};
    lnorm_dtype dtype = dtype_of[c->element];
    const void *whole[] = {c->x, c->y, c->dy, c->dx}, *row[] = {c->weight, c->bias, c->dweight, c->dbias};
    lnorm_tensor wholes[4], rows[4];
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    const lnorm_tensor **in_io[] = {&io.x, &io.y, &io.dy, &io.dx, &io.weight, &io.bias, &io.dweight, &io.dbias};
    for (int i = 0; i < 4; i++) {
        wholes[i] = lnorm_dense(whole[i], dtype, 2, shape);
        rows[i] = lnorm_dense(row[i], dtype, 1, &shape[1]);
        *in_io[i] = whole[i] ? &wholes[i] : NULL;
        *in_io[4 + i] = row[i] ? &rows[i] : NULL;
    }
    op.kind = c->kind;
    op.pass = c->pass;
    op.arithmetic = c->arithmetic;
    op.eps = c->eps;
    return run_dense_operation(&op, &io, c->rows * c->cols, (workers){0, 0});
}

/* True when done. Without an exception the library refuses it, and the Python function finds out why.
 * Above ALONE_BELOW pools are worth their while; level 1 has no fast arithmetic. */
static int run(const rows_call *c) {
    int level1 = c->rows * c->cols < ALONE_BELOW && c->arithmetic == LNORM_ACCURATE;
    return level1 ? run_rows(c) == LNORM_OK : run_planned(c) == 0;
}

/* A new array of the shape and type of another, and its memory; None and NULL for no array or None. */
static PyObject *new_like(PyObject *object, void **data) {
    PyArrayObject *array = (PyArrayObject *)object;
    PyObject *made;
    *data = NULL;
    if (!object || object == Py_None) {
        Py_IncRef(Py_None);
        return Py_None;
    }
    Py_IncRef((PyObject *)PyArray_DESCR(array)); /* which the new array takes over */
    made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(array), PyArray_NDIM(array), PyArray_DIMS(array), NULL,
                                NULL, 0, NULL);
    if (made)
        *data = PyArray_DATA((PyArrayObject *)made);
    return made;
}

/* The results of a dense case; NULL without an exception where the library refuses it. */
static PyObject *run_forward(rows_call *call, const function *f, PyObject *const *values) {
    PyObject *y = new_like(values[f->x], &call->y);
    if (y && run(call))
        return y;
    Py_DecRef(y);
    return NULL;
}

static PyObject *run_backward(rows_call *call, const function *f, PyObject *const *values) {
    PyObject *gradients[3], *result = NULL;
    int count = f->bias < 0 ? 2 : 3;
    gradients[0] = new_like(values[f->x], &call->dx);
    gradients[1] = new_like(values[f->weight], &call->dweight);
    gradients[2] = new_like(argument(values, f->bias), &call->dbias);
    if (gradients[0] && gradients[1] && gradients[2] && run(call))
        result = PyTuple_New(count);
    for (int i = 0; i < 3; i++) {
        if (result && i < count)
            PyTuple_SetItem(result, i, gradients[i]); /* which takes it over */
        else
            Py_DecRef(gradients[i]);
    }
    return result;
}

static PyObject *call_function(int which, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords) {
    function *f = &functions[which];
    PyObject *values[PARAMETERS_MAX];
    rows_call call = {0};
    if (sort_arguments(&f->signature, arguments, given, keywords, values))
        return NULL;
    if (read_dense(&call, f, values)) {
        PyObject *result = (f->pass == LNORM_FORWARD ? run_forward : run_backward)(&call, f, values);
        if (result || PyErr_Occurred())
            return result;
    }
    return call_general(f, values);
}

/* ---- The functions ----------------------------------------------------------------------------------------------- */

#define FUNCTION(name, which)                                                                                         \
    PyObject *name(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords) {              \
        (void)module;                                                                                                 \
        return call_function(which, arguments, given, keywords);                                                      \
    }
FUNCTION(layer_norm, LAYER_NORM)
FUNCTION(rms_norm, RMS_NORM)
FUNCTION(layer_norm_backward, LAYER_NORM_BACKWARD)
FUNCTION(rms_norm_backward, RMS_NORM_BACKWARD)

const char layer_norm_doc[] =
    "layer_norm(input, normalized_shape=None, weight=None, bias=None, eps=1e-05, *, out=None,\n"
    "           return_stats=False, axes=None, threads=None, fast=False, affine_broadcast=False)\n--\n\n"
    "Layer norm: (input - mean) / sqrt(variance + eps) * weight + bias over the trailing axes.\n\n"
    "input: an array of any shape [*, normalized_shape], any strides. normalized_shape: an int or a sequence of ints,\n"
    "the trailing extents of input. weight, bias: arrays of shape normalized_shape, or None. eps: a number of at\n"
    "least 0. axes: in place of normalized_shape, any axes of input; weight and bias then have their extents in\n"
    "ascending order. out: where to write the result, of input's shape; it may be input. return_stats: return\n"
    "(y, mean, rstd), the statistics with extents of 1 in the normalised axes' places, float32 (float64 for float64\n"
    "input). threads: None for what set_num_threads says. fast: the faster arithmetic (docs/arithmetic.md, section\n"
    "22). affine_broadcast: weight and bias have any shape that broadcasts over input.\n\n"
    "Returns y, of input's shape, element type and kind.\n\n"
    ">>> x = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])\n"
    ">>> lnorm.layer_norm(x, 3, eps=0.0).round(4)\n"
    "array([[-1.2247,  0.    ,  1.2247],\n"
    "       [-1.2247,  0.    ,  1.2247]])\n";

const char rms_norm_doc[] =
    "rms_norm(input, normalized_shape=None, weight=None, eps=None, *, out=None, return_stats=False, axes=None,\n"
    "         threads=None, fast=False, affine_broadcast=False)\n--\n\n"
    "RMS norm: input / sqrt(mean(input**2) + eps) * weight over the trailing axes.\n\n"
    "Arguments as of layer_norm, without a bias. eps: None is 2^-23, for float64 input 2^-52. return_stats: return\n"
    "(y, rstd).\n\n"
    ">>> lnorm.rms_norm(np.array([3.0, 4.0]), 2, eps=0.0).round(4)\n"
    "array([0.8485, 1.1314])\n";

const char layer_norm_backward_doc[] =
    "layer_norm_backward(dy, input, normalized_shape=None, weight=None, bias=None, eps=1e-05, *, mean=None,\n"
    "                    rstd=None, axes=None, threads=None, fast=False, affine_broadcast=False)\n--\n\n"
    "The gradients of layer_norm: (dx, dweight, dbias), dweight and dbias None where weight and bias are.\n\n"
    "dy: the gradient by the result, of input's shape. The statistics are computed anew from input; mean and rstd, as\n"
    "layer_norm(..., return_stats=True) gave them, are used where given (float32 ones cost accuracy). The rest as of\n"
    "layer_norm.\n\n"
    ">>> x, dy = np.array([[1.0, 2.0, 4.0]]), np.array([[1.0, 0.0, 0.0]])\n"
    ">>> dx, dweight, dbias = lnorm.layer_norm_backward(dy, x, 3, np.ones(3), np.zeros(3), 0.0)\n"
    ">>> dx.round(4)\n"
    "array([[ 0.2291, -0.3436,  0.1145]])\n"
    ">>> dbias\n"
    "array([1., 0., 0.])\n";

const char rms_norm_backward_doc[] =
    "rms_norm_backward(dy, input, normalized_shape=None, weight=None, eps=None, *, rstd=None, axes=None,\n"
    "                  threads=None, fast=False, affine_broadcast=False)\n--\n\n"
    "The gradients of rms_norm: (dx, dweight). Arguments as of layer_norm_backward and rms_norm.\n\n"
    ">>> dx, dweight = lnorm.rms_norm_backward(np.ones((1, 2)), np.array([[3.0, 4.0]]), 2, np.ones(2), 0.0)\n"
    ">>> dweight.round(4)\n"
    "array([0.8485, 1.1314])\n";
