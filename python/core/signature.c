/* Arguments. The interpreter's own parsers go by format strings and cost more than a small norm; here a keyword is
 * found by the address of its interned name. */
#include "core.h"

#include <string.h>

static int intern_names(signature *of) {
    for (int i = of->count - 1; i >= 0; i--) { /* [0] last: it says that all are there */
        PyObject *name = PyUnicode_InternFromString(of->names[i]);
        if (!name)
            return -1;
        of->interned[i] = name;
    }
    return 0;
}

static int index_of(const signature *of, PyObject *keyword) {
    for (int i = 0; i < of->count; i++)
        if (of->interned[i] == keyword)
            return i;
    for (int i = 0; i < of->count; i++)
        if (PyUnicode_CompareWithASCIIString(keyword, of->names[i]) == 0)
            return i;
    return -1;
}

static int sort_keywords(const signature *of, PyObject *const *arguments, PyObject *keywords, PyObject **values) {
    Py_ssize_t count = PyTuple_Size(keywords);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *keyword = PyTuple_GetItem(keywords, k);
        int i = index_of(of, keyword);
        if (i < 0) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", of->function, keyword);
            return -1;
        }
        if (values[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", of->function, of->names[i]);
            return -1;
        }
        values[i] = arguments[k];
    }
    return 0;
}

int sort_arguments(signature *of, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords, PyObject **values) {
    if (!of->interned[0] && intern_names(of))
        return -1;
    if (given > of->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)", of->function,
                     of->positional, given);
        return -1;
    }
    memset(values, 0, (size_t)of->count * sizeof *values);
    for (Py_ssize_t i = 0; i < given; i++)
        values[i] = arguments[i];
    if (keywords && sort_keywords(of, arguments + given, keywords, values))
        return -1;
    for (int i = 0; i < of->required; i++)
        if (!values[i]) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", of->function, of->names[i]);
            return -1;
        }
    return 0;
}

/* Says it in this library's words where what has been raised is a TypeError. %R runs code of the object, which must not
 * find an exception set. */
static void expected(PyObject *object, const char *name, const char *what) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s: expected %s, got %R", name, what, object);
}

/* From a Python int. */
static int read_long(PyObject *integer, const char *name, int64_t *value) {
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    if (!overflow)
        return *value == -1 && PyErr_Occurred() ? -1 : 0;
    PyErr_Format(PyExc_ValueError, "%s: expected an integer below 2^63, got %R", name, integer);
    return -1;
}

/* PyNumber_Index takes NumPy's integers, too, and refuses 2.0. */
static int read_index(PyObject *object, const char *name, int64_t *value) {
    PyObject *integer = PyNumber_Index(object);
    int status = integer ? read_long(integer, name, value) : -1;
    Py_DecRef(integer);
    return status;
}

int read_integer(PyObject *object, const char *name, int64_t *value) {
    if (!object || object == Py_None || !read_index(object, name, value))
        return 0;
    expected(object, name, "an integer");
    return -1;
}

int read_double(PyObject *object, const char *name, double *value) {
    double number;
    if (!object || object == Py_None)
        return 0;
    number = PyFloat_AsDouble(object);
    if (number == -1 && PyErr_Occurred()) {
        expected(object, name, "a number");
        return -1;
    }
    *value = number;
    return 0;
}

int read_flag(PyObject *object, int32_t *value) {
    int truth = object && object != Py_None ? PyObject_IsTrue(object) : *value;
    if (truth < 0)
        return -1;
    *value = truth;
    return 0;
}

static int read_items(PyObject *tuple, const char *name, int64_t *extents, int32_t *count) {
    Py_ssize_t length = PyTuple_Size(tuple);
    if (length > LNORM_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s: expected at most %d integers, got %zd", name, (int)LNORM_MAX_NDIM, length);
        return -1;
    }
    for (Py_ssize_t i = 0; i < length; i++)
        if (read_index(PyTuple_GetItem(tuple, i), name, &extents[i])) {
            expected(tuple, name, "integers");
            return -1;
        }
    *count = (int32_t)length;
    return 0;
}

/* An array of one integer is a sequence, one of no axes an integer: which of them an object is shows when it is
 * tried. */
int read_extents(PyObject *object, const char *name, int64_t *extents, int32_t *count) {
    PyObject *tuple;
    int status;
    if (PyTuple_Check(object))
        return read_items(object, name, extents, count);
    if (!read_index(object, name, extents)) {
        *count = 1;
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    PyErr_Clear();
    tuple = PySequence_Tuple(object);
    if (!tuple) {
        expected(object, name, "an integer or a sequence of integers");
        return -1;
    }
    status = read_items(tuple, name, extents, count);
    Py_DecRef(tuple);
    return status;
}
