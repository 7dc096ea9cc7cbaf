/* Small norms of another library's tensors, which its table of DLPack functions describes without an object in between.
 * What is not dense, of one element type and on the CPU is left to the caller: None is returned. */
#include "core.h"

#include <float.h>

/* DLPack's DLPackExchangeAPI (version 1), as far as it is read here. */
typedef struct exchange {
    uint32_t major, minor;
    struct exchange *previous;
    void *allocate, *from_object, *to_object;
    int (*describe)(void *object, lnorm_tensor *tensor);
} exchange;

static PyObject *types, *empty_like, *is_neg;
static int (*describe_tensor)(void *object, lnorm_tensor *tensor);

const char set_tensors_doc[] =
    "set_tensors(types, exchange, empty_like, /)\n--\n\n"
    "Whose tensors small_norm takes: a tuple of exactly these types, their __dlpack_c_exchange_api__, and the\n"
    "function that makes an output. False where the table is of no use; small_norm then returns None always.";

static void keep(PyObject **where, PyObject *object) {
    PyObject *before = *where;
    Py_IncRef(object);
    *where = object;
    Py_DecRef(before);
}

PyObject *set_tensors(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    const exchange *table;
    (void)module;
    if (check_count(given, 3, "set_tensors"))
        return NULL;
    if (!PyTuple_Check(arguments[0])) {
        PyErr_Format(PyExc_TypeError, "types: expected a tuple, got %R", arguments[0]);
        return NULL;
    }
    table = PyCapsule_GetPointer(arguments[1], "dlpack_exchange_api");
    if (!table)
        return NULL;
    if (!is_neg && !(is_neg = PyUnicode_InternFromString("is_neg")))
        return NULL;
    keep(&types, arguments[0]);
    keep(&empty_like, arguments[2]);
    describe_tensor = table->major == 1 ? table->describe : NULL;
    return PyBool_FromLong(describe_tensor != NULL);
}

static int is_row_major(const lnorm_tensor *tensor) {
    int64_t stride = 1;
    for (int32_t i = tensor->ndim; tensor->strides && i-- > 0;) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != stride)
            return 0;
        stride *= tensor->shape[i];
    }
    return 1;
}

static int element_of(const lnorm_tensor *tensor) {
    const lnorm_dtype *dtype = &tensor->dtype;
    for (int i = 0; i < ELEMENTS; i++)
        if (dtype->code == dtype_of[i].code && dtype->bits == dtype_of[i].bits && dtype->lanes == 1)
            return i;
    return -1;
}

/* PyTorch may leave a negation to whoever reads the memory, of which DLPack does not know. */
static int is_negated(PyObject *object) {
    PyObject *answer = PyObject_CallMethodObjArgs(object, is_neg, NULL);
    int negated = answer != Py_False;
    Py_DecRef(answer);
    return negated;
}

/* 1 where the object's memory holds dense elements in row-major order. No exception is left. */
static int read_dense(PyObject *object, lnorm_tensor *tensor) {
    Py_ssize_t count = describe_tensor ? PyTuple_Size(types) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if ((PyObject *)Py_TYPE(object) == PyTuple_GetItem(types, i)) {
            if (!describe_tensor(object, tensor) && tensor->device.device_type == 1 && tensor->data &&
                is_row_major(tensor) && !is_negated(object))
                return 1;
            PyErr_Clear();
            return 0;
        }
    return 0;
}

static char *address(const lnorm_tensor *tensor) {
    return (char *)tensor->data + tensor->byte_offset;
}

/* rows and cols from x and normalized_shape, a tuple; 1 where they belong together and the whole is small. */
static int read_rows(rows_call *call, const lnorm_tensor *x, PyObject *shape) {
    Py_ssize_t count = PyTuple_Check(shape) ? PyTuple_Size(shape) : 0;
    if (count < 1 || count > x->ndim)
        return 0;
    call->rows = call->cols = 1;
    for (int32_t i = 0; i < x->ndim; i++) {
        int inside = i >= x->ndim - (int32_t)count, overflow;
        int64_t extent = x->shape[i];
        PyObject *given = inside ? PyTuple_GetItem(shape, i - (x->ndim - count)) : NULL;
        if (inside && (!PyLong_CheckExact(given) || PyLong_AsLongLongAndOverflow(given, &overflow) != extent))
            return 0;
        if (extent < 1 || extent >= ALONE_BELOW)
            return 0;
        *(inside ? &call->cols : &call->rows) *= extent;
        if (call->rows * call->cols >= ALONE_BELOW)
            return 0;
    }
    return 1;
}

/* A parameter must have the shape of x's last axes; None has the address NULL. */
static int read_parameter(PyObject *object, const lnorm_tensor *x, Py_ssize_t ndim, const void **at) {
    lnorm_tensor tensor;
    *at = NULL;
    if (object == Py_None)
        return 1;
    if (!read_dense(object, &tensor) || tensor.ndim != ndim || element_of(&tensor) != element_of(x))
        return 0;
    for (int32_t i = 0; i < ndim; i++)
        if (tensor.shape[i] != x->shape[x->ndim - ndim + i])
            return 0;
    *at = address(&tensor);
    return 1;
}

/* kind, x, normalized_shape, weight, bias, eps into the call, of which the rest is zero. */
static int read_call(rows_call *call, lnorm_tensor *x, PyObject *const *arguments) {
    Py_ssize_t ndim;
    int64_t kind = -1;
    if (!read_dense(arguments[1], x) || element_of(x) < 0 || !read_rows(call, x, arguments[2]))
        return 0;
    ndim = PyTuple_Size(arguments[2]);
    if (!read_parameter(arguments[3], x, ndim, &call->weight) || !read_parameter(arguments[4], x, ndim, &call->bias) ||
        read_integer(arguments[0], "kind", &kind) || read_double(arguments[5], "eps", &call->eps)) {
        PyErr_Clear();
        return 0;
    }
    call->x = address(x);
    call->element = (enum element)element_of(x);
    call->kind = (lnorm_kind)kind;
    return (kind == LNORM_LAYER_NORM || kind == LNORM_RMS_NORM) && call->eps >= 0 && call->eps <= DBL_MAX;
}

static PyObject *nothing(void) {
    Py_IncRef(Py_None);
    return Py_None;
}

static PyObject *new_output(PyObject *like, void **at) {
    PyObject *output = PyObject_CallFunctionObjArgs(empty_like, like, NULL);
    lnorm_tensor tensor;
    if (!output || describe_tensor(output, &tensor)) {
        Py_DecRef(output);
        return NULL;
    }
    *at = address(&tensor);
    return output;
}

static int run(lnorm_status (*rows)(const rows_call *), const rows_call *call) {
    PyObject *none = run_rows(rows, call);
    Py_DecRef(none);
    return none ? 0 : -1;
}

const char small_norm_doc[] =
    "small_norm(kind, x, normalized_shape, weight, bias, eps, /)\n--\n\n"
    "y, made by empty_like, of below 32768 dense elements; None where the operands are not as needed here.";

PyObject *small_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    rows_call call = {0};
    lnorm_tensor x;
    PyObject *y;
    (void)module;
    if (check_count(given, 6, "small_norm"))
        return NULL;
    if (!read_call(&call, &x, arguments))
        return nothing();
    y = new_output(arguments[1], &call.y);
    if (y && run(run_rows_forward, &call)) {
        Py_DecRef(y);
        return NULL;
    }
    return y;
}

const char small_norm_backward_doc[] =
    "small_norm_backward(kind, x, normalized_shape, weight, bias, eps, dy, mask, /)\n--\n\n"
    "(dx, dweight, dbias), each None where the tuple mask has False for it; None as small_norm. Of bias the shape and\n"
    "type count.";

PyObject *small_norm_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    static const int like[3] = {1, 3, 4};
    rows_call call = {0};
    lnorm_tensor x, dy;
    void **outputs[3];
    PyObject *result;
    (void)module;
    if (check_count(given, 8, "small_norm_backward"))
        return NULL;
    if (!PyTuple_Check(arguments[7]) || PyTuple_Size(arguments[7]) != 3 || !read_call(&call, &x, arguments) ||
        !read_dense(arguments[6], &dy) || element_of(&dy) != element_of(&x) || dy.ndim != x.ndim)
        return nothing();
    for (int32_t i = 0; i < x.ndim; i++)
        if (dy.shape[i] != x.shape[i])
            return nothing();
    call.dy = address(&dy);
    outputs[0] = &call.dx, outputs[1] = &call.dweight, outputs[2] = &call.dbias;
    result = PyTuple_New(3);
    for (int i = 0; i < 3 && result; i++) {
        PyObject *output = PyTuple_GetItem(arguments[7], i) == Py_True && arguments[like[i]] != Py_None
                               ? new_output(arguments[like[i]], outputs[i])
                               : nothing();
        if (!output || PyTuple_SetItem(result, i, output)) {
            Py_DecRef(result);
            return NULL;
        }
    }
    if (result && run(run_rows_backward, &call)) {
        Py_DecRef(result);
        return NULL;
    }
    return result;
}
