/* layer_norm and rms_norm: what is called most, and with rows so short that a Python function around them would cost
 * more than the norm. Dense arrays of one element type go straight to the library; everything else, errors included, to
 * the Python function of the same name. */
#include "arrays.h"

static const char *const layer_names[] = {"input", "normalized_shape", "weight", "bias", "eps", "axes", "out",
                                          "return_stats", "threads", "fast", "affine_broadcast"};
static const char *const rms_names[] = {"input", "normalized_shape", "weight", "eps", "axes", "out",
                                        "return_stats", "threads", "fast", "affine_broadcast"};
enum { LAYER_COUNT = sizeof layer_names / sizeof *layer_names, RMS_COUNT = sizeof rms_names / sizeof *rms_names };
static signature layer_signature = {"layer_norm", LAYER_COUNT, 5, 1, layer_names, {NULL}};
static signature rms_signature = {"rms_norm", RMS_COUNT, 4, 1, rms_names, {NULL}};

/* The Python functions, in the order of lnorm_kind. */
static PyObject *general[2];

static const char *const set_general_names[] = {"layer_norm", "rms_norm"};
static signature set_general_signature = {"set_general", 2, 2, 2, set_general_names, {NULL}};

const char set_general_doc[] = "set_general(layer_norm, rms_norm)\n--\n\nThe functions that take what is not dense.";

PyObject *set_general(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords) {
    PyObject *values[2];
    (void)module;
    if (sort_arguments(&set_general_signature, arguments, given, keywords, values))
        return NULL;
    for (int i = 0; i < 2; i++) {
        PyObject *before = general[i];
        Py_IncRef(values[i]);
        general[i] = values[i];
        Py_DecRef(before);
    }
    Py_RETURN_NONE;
}

static PyObject *call_general(lnorm_kind kind, const signature *of, PyObject *const *values) {
    PyObject *keywords = PyDict_New(), *none = PyTuple_New(0), *result = NULL;
    int status = keywords && none ? 0 : -1;
    for (int i = 0; i < of->count && !status; i++)
        if (values[i])
            status = PyDict_SetItem(keywords, of->interned[i], values[i]);
    if (!status && !general[kind])
        PyErr_SetString(PyExc_RuntimeError, "lnorm._core is not initialised: import lnorm");
    else if (!status)
        result = PyObject_Call(general[kind], none, keywords);
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
static int read_parameter(PyArrayObject *x, int element, int axes, PyObject *object, const void **data) {
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

/* Fills `call` but for y; 0 where this is not a dense case. */
static int read_dense(rows_call *call, int *axes, PyObject *const *values, PyObject *bias, PyObject *eps) {
    PyArrayObject *x = dense(values[0]);
    int element;
    if (!x || !values[1] || (element = element_of(x)) < 0 || !(*axes = trailing_axes(x, values[1])) ||
        PyArray_SIZE(x) == 0)
        return 0;
    call->element = (enum element)element;
    call->x = PyArray_DATA(x);
    call->cols = 1;
    for (int i = 0; i < *axes; i++)
        call->cols *= PyArray_DIM(x, PyArray_NDIM(x) - *axes + i);
    call->rows = PyArray_SIZE(x) / call->cols;
    return read_parameter(x, element, *axes, values[2], &call->weight) &&
           read_parameter(x, element, *axes, bias, &call->bias) && read_eps(eps, &call->eps);
}

/* ---- Running it -------------------------------------------------------------------------------------------------- */

/* Above this size pools are worth their while, and a plan's microsecond is not noticed. */
static int run_large(const rows_call *call) {
    int64_t shape[] = {call->rows, call->cols};
    lnorm_dtype dtype = dtype_of[call->element];
    lnorm_tensor x = lnorm_dense(call->x, dtype, 2, shape), y = lnorm_dense(call->y, dtype, 2, shape);
    lnorm_tensor weight = lnorm_dense(call->weight, dtype, 1, &shape[1]);
    lnorm_tensor bias = lnorm_dense(call->bias, dtype, 1, &shape[1]);
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    op.kind = call->kind;
    op.eps = call->eps;
    io.x = &x;
    io.y = &y;
    io.weight = call->weight ? &weight : NULL;
    io.bias = call->bias ? &bias : NULL;
    return run_operation(&op, &io, 0);
}

/* 1: done, 0: the library refuses it, -1: an exception. */
static int run_small(const rows_call *call) {
    lnorm_status status;
    if (call->rows * call->cols < KEEP_LOCK_BELOW) {
        status = run_rows_forward(call);
    } else {
        PyThreadState *lock = PyEval_SaveThread();
        status = run_rows_forward(call);
        PyEval_RestoreThread(lock);
    }
    return status == LNORM_OK;
}

/* The result of a dense case; NULL without an exception where it is none, or where the library refuses it. */
static PyObject *run_dense(rows_call *call, PyArrayObject *x) {
    PyArray_Descr *descr = PyArray_DESCR(x);
    PyObject *y;
    int done;
    Py_IncRef((PyObject *)descr);
    y = PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(x), PyArray_DIMS(x), NULL, NULL, 0, NULL);
    if (!y)
        return NULL;
    call->y = PyArray_DATA((PyArrayObject *)y);
    done = call->rows * call->cols < ALONE_BELOW ? run_small(call) : run_large(call) == 0;
    if (done)
        return y;
    Py_DecRef(y);
    return NULL;
}

static int only_positional(const signature *of, PyObject *const *values) {
    for (int i = of->positional; i < of->count; i++)
        if (values[i])
            return 0;
    return 1;
}

static PyObject *normalise(rows_call *call, signature *of, PyObject *const *values, PyObject *bias, PyObject *eps) {
    int axes;
    if (only_positional(of, values) && read_dense(call, &axes, values, bias, eps)) {
        PyObject *y = run_dense(call, (PyArrayObject *)values[0]);
        if (y || PyErr_Occurred())
            return y;
    }
    return call_general(call->kind, of, values);
}

const char layer_norm_doc[] =
    "layer_norm(input, normalized_shape=None, weight=None, bias=None, eps=1e-05, *, axes=None, out=None,\n"
    "           return_stats=False, threads=None, fast=False, affine_broadcast=False)\n--\n\n"
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

PyObject *layer_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords) {
    PyObject *values[LAYER_COUNT];
    rows_call call = {.kind = LNORM_LAYER_NORM, .eps = 1e-5};
    (void)module;
    if (sort_arguments(&layer_signature, arguments, given, keywords, values))
        return NULL;
    return normalise(&call, &layer_signature, values, values[3], values[4]);
}

const char rms_norm_doc[] =
    "rms_norm(input, normalized_shape=None, weight=None, eps=None, *, axes=None, out=None, return_stats=False,\n"
    "         threads=None, fast=False, affine_broadcast=False)\n--\n\n"
    "RMS norm: input / sqrt(mean(input**2) + eps) * weight over the trailing axes.\n\n"
    "Arguments as of layer_norm, without a bias. eps: None is 2^-23, for float64 input 2^-52. return_stats: return\n"
    "(y, rstd).\n\n"
    ">>> lnorm.rms_norm(np.array([3.0, 4.0]), 2, eps=0.0).round(4)\n"
    "array([0.8485, 1.1314])\n";

PyObject *rms_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords) {
    PyObject *values[RMS_COUNT];
    rows_call call = {.kind = LNORM_RMS_NORM, .eps = LNORM_EPS_DEFAULT};
    (void)module;
    if (sort_arguments(&rms_signature, arguments, given, keywords, values))
        return NULL;
    return normalise(&call, &rms_signature, values, NULL, values[3]);
}
