/* From Python objects to tensors, without a copy where the library can read the memory as it lies: NumPy's arrays, what
 * has __dlpack__, and what NumPy makes an array of (the buffer protocol, __array_interface__, __array__, sequences). */
#define LNORM_IMPORTS_NUMPY
#include "arrays.h"
#include "dlpack.h"

#include <string.h>

static int import_numpy(void) {
    import_array1(-1);
    return 0;
}

int arrays_begin(void) {
    return import_numpy();
}

/* ---- Element types ----------------------------------------------------------------------------------------------- */

/* NumPy numbers the types of other packages as they come, so that ml_dtypes' is known by its name, once. */
static int is_bfloat16(PyArray_Descr *descr) {
    static int number = -1;
    PyObject *name;
    if (descr->type_num == number)
        return 1;
    if (descr->type_num < NPY_USERDEF || PyDataType_ELSIZE(descr) != 2)
        return 0;
    name = PyObject_GetAttrString((PyObject *)descr->typeobj, "__name__");
    if (!name) {
        PyErr_Clear();
        return 0;
    }
    if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0)
        number = descr->type_num;
    Py_DecRef(name);
    return descr->type_num == number;
}

int element_of(PyArrayObject *array) {
    PyArray_Descr *descr = PyArray_DESCR(array);
    switch (descr->type_num) {
    case NPY_DOUBLE: return F64;
    case NPY_FLOAT: return F32;
    case NPY_HALF: return F16;
    default: return is_bfloat16(descr) ? BF16 : -1;
    }
}

int is_plain(PyArrayObject *array) {
    return PyArray_ISALIGNED(array) && PyArray_ISNOTSWAPPED(array);
}

/* ---- NumPy ------------------------------------------------------------------------------------------------------- */

static void refuse_dtype(PyArrayObject *array, const char *name) {
    PyErr_Format(PyExc_TypeError, "%s: expected elements of float64, float32, float16 or bfloat16, got %S", name,
                 (PyObject *)PyArray_DESCR(array));
}

/* The library counts strides in elements. */
static int has_element_strides(PyArrayObject *array) {
    npy_intp size = PyArray_ITEMSIZE(array);
    for (int i = 0; i < PyArray_NDIM(array); i++)
        if (PyArray_DIM(array, i) > 1 && PyArray_STRIDE(array, i) % size)
            return 0;
    return 1;
}

/* An array that lnorm_tensor can describe: this one, or a copy (big-endian elements, fields of packed records). */
static PyArrayObject *readable(PyArrayObject *array) {
    PyArray_Descr *native;
    if (is_plain(array) && has_element_strides(array)) {
        Py_IncRef((PyObject *)array);
        return array;
    }
    native = PyArray_DescrNewByteorder(PyArray_DESCR(array), NPY_NATIVE);
    if (!native)
        return NULL;
    return (PyArrayObject *)PyArray_FromArray(array, native, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_ENSURECOPY);
}

static int check_output(PyArrayObject *array, const char *name) {
    const char *got = NULL;
    if (!PyArray_ISWRITEABLE(array))
        got = "one that can only be read";
    else if (!PyArray_ISNOTSWAPPED(array))
        got = "elements of the other byte order";
    else if (!PyArray_ISALIGNED(array) || !has_element_strides(array))
        got = "elements that are not aligned";
    if (!got)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: expected an array to write to, got %s", name, got);
    return -1;
}

static void describe_array(PyArrayObject *array, int element, view *into) {
    int ndim = PyArray_NDIM(array);
    npy_intp size = PyArray_ITEMSIZE(array);
    for (int i = 0; i < ndim; i++) {
        into->shape[i] = PyArray_DIM(array, i);
        into->strides[i] = PyArray_DIM(array, i) > 1 ? PyArray_STRIDE(array, i) / size : 1;
    }
    into->tensor = (lnorm_tensor){PyArray_DATA(array), {1, 0}, ndim, dtype_of[element], into->shape, into->strides, 0};
}

static int view_array(PyArrayObject *array, const char *name, int writes, view *into) {
    int element = element_of(array);
    if (element < 0) {
        refuse_dtype(array, name);
        return -1;
    }
    if (PyArray_NDIM(array) > LNORM_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s: expected at most %d dimensions, got %d", name, (int)LNORM_MAX_NDIM,
                     PyArray_NDIM(array));
        return -1;
    }
    if (writes && check_output(array, name))
        return -1;
    array = readable(array);
    if (!array)
        return -1;
    describe_array(array, element, into);
    into->keep = (PyObject *)array;
    return 0;
}

/* ---- DLPack ------------------------------------------------------------------------------------------------------ */

enum { DLPACK_CPU = 1 };

static int check_device(PyObject *object, const char *name) {
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    int64_t type = -1;
    int failed = !device || !PyTuple_Check(device) || PyTuple_Size(device) != 2 ||
                 read_integer(PyTuple_GetItem(device, 0), "__dlpack_device__()[0]", &type);
    Py_DecRef(device);
    if (!failed && type == DLPACK_CPU)
        return 0;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_BufferError, "%s: expected an array on the CPU (device type 1), got device type %lld", name,
                     (long long)type);
    return -1;
}

/* PyTorch may leave a negation to whoever reads the memory, of which DLPack does not know: a copy is read. */
static PyObject *without_negation(PyObject *object, const char *name, int writes) {
    PyObject *answer = PyObject_HasAttrString(object, "is_neg") ? PyObject_CallMethod(object, "is_neg", NULL) : NULL;
    int negated = answer == Py_True;
    Py_DecRef(answer);
    PyErr_Clear();
    if (!negated) {
        Py_IncRef(object);
        return object;
    }
    if (!writes)
        return PyObject_CallMethod(object, "resolve_neg", NULL);
    PyErr_Format(PyExc_BufferError, "%s: expected an array to write to, got one that negates its memory", name);
    return NULL;
}

static int check_dlpack_dtype(lnorm_dtype dtype, const char *name) {
    static const char *const kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
    for (int i = 0; i < ELEMENTS; i++)
        if (!memcmp(&dtype_of[i], &dtype, sizeof dtype))
            return 0;
    PyErr_Format(PyExc_TypeError, "%s: expected elements of float64, float32, float16 or bfloat16, got %s of %d bits",
                 name, dtype.code < sizeof kinds / sizeof *kinds ? kinds[dtype.code] : "another type",
                 (int)dtype.bits * dtype.lanes);
    return -1;
}

/* The capsule stays as it is and ends, memory and all, with the last reference to it: nothing is taken out of it. */
static int view_dlpack(PyObject *object, const char *name, int writes, view *into) {
    PyObject *capsule;
    const dlpack_managed *managed;
    if (check_device(object, name) || !(object = without_negation(object, name, writes)))
        return -1;
    capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
    Py_DecRef(object);
    managed = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (!managed || check_dlpack_dtype(managed->tensor.dtype, name)) {
        Py_DecRef(capsule);
        return -1;
    }
    into->tensor = managed->tensor;
    into->keep = capsule;
    return 0;
}

/* ---- Anything ---------------------------------------------------------------------------------------------------- */

/* Of an output NumPy must not make an array of its own, which nobody would ever see. */
static int view_other(PyObject *object, const char *name, int writes, view *into) {
    PyObject *array;
    int status;
    if (writes && !PyObject_CheckBuffer(object)) {
        PyErr_Format(PyExc_TypeError, "%s: expected an array to write to, got %R", name, (PyObject *)Py_TYPE(object));
        return -1;
    }
    array = PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
    if (!array)
        return -1;
    status = view_array((PyArrayObject *)array, name, writes, into);
    Py_DecRef(array);
    return status;
}

int read_array(PyObject *object, const char *name, int writes, view *into) {
    if (PyArray_Check(object))
        return view_array((PyArrayObject *)object, name, writes, into);
    if (PyObject_HasAttrString(object, "__dlpack__") && PyObject_HasAttrString(object, "__dlpack_device__"))
        return view_dlpack(object, name, writes, into);
    return view_other(object, name, writes, into);
}

/* ---- describe ---------------------------------------------------------------------------------------------------- */

const char describe_doc[] =
    "describe(array, /)\n--\n\n"
    "(shape, dtype) of anything that execute takes as an array; dtype: F64, F32, F16 or BF16.";

PyObject *describe(PyObject *module, PyObject *object) {
    view seen;
    PyObject *result, *shape;
    int element = 0;
    (void)module;
    if (read_array(object, "input", 0, &seen))
        return NULL;
    while (element < ELEMENTS && memcmp(&dtype_of[element], &seen.tensor.dtype, sizeof seen.tensor.dtype))
        element++;
    shape = PyTuple_New(seen.tensor.ndim);
    for (int i = 0; shape && i < seen.tensor.ndim; i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(seen.tensor.shape[i]));
    result = shape ? Py_BuildValue("(Ni)", shape, element) : NULL;
    Py_DecRef(seen.keep);
    return result;
}
