/* New tensors of another library. What its function is called with is kept: the next call is likely to want the same
 * again. */
#include "core.h"

#include <string.h>

enum { KEPT = 16 };

static PyObject *empty, *dtypes;
static struct kept_arguments {
    enum element element;
    int32_t ndim;
    int64_t shape[LNORM_MAX_NDIM], strides[LNORM_MAX_NDIM];
    PyObject *arguments; /* (shape, strides, dtype) */
} kept[KEPT];

void set_outputs(PyObject *function, PyObject *of_elements) {
    keep(&empty, function);
    keep(&dtypes, of_elements);
    for (int i = 0; i < KEPT; i++) {
        Py_DecRef(kept[i].arguments);
        kept[i].arguments = NULL;
    }
}

static PyObject *tuple_of(const int64_t *numbers, int32_t count) {
    PyObject *tuple = PyTuple_New(count), *number;
    for (int32_t i = 0; tuple && i < count; i++)
        if (!(number = PyLong_FromLongLong(numbers[i])) || PyTuple_SetItem(tuple, i, number)) {
            Py_DecRef(tuple);
            return NULL;
        }
    return tuple;
}

static struct kept_arguments *place_of(const struct kept_arguments *wanted) {
    uint64_t mixed = (uint64_t)wanted->element;
    for (int32_t i = 0; i < wanted->ndim; i++)
        mixed = (mixed ^ (uint64_t)wanted->shape[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return &kept[mixed >> 60];
}

static int are_of(const struct kept_arguments *a, const struct kept_arguments *b) {
    const size_t bytes = (size_t)b->ndim * sizeof *b->shape;
    return a->arguments && a->element == b->element && a->ndim == b->ndim && !memcmp(a->shape, b->shape, bytes) &&
           !memcmp(a->strides, b->strides, bytes);
}

/* A new reference. */
static PyObject *arguments_of(struct kept_arguments *wanted) {
    struct kept_arguments *place = place_of(wanted);
    PyObject *shape, *strides;
    if (!are_of(place, wanted)) {
        shape = tuple_of(wanted->shape, wanted->ndim);
        strides = tuple_of(wanted->strides, wanted->ndim);
        wanted->arguments =
            shape && strides ? PyTuple_Pack(3, shape, strides, PyTuple_GetItem(dtypes, wanted->element)) : NULL;
        Py_DecRef(shape);
        Py_DecRef(strides);
        if (!wanted->arguments)
            return NULL;
        Py_DecRef(place->arguments);
        *place = *wanted;
    }
    Py_IncRef(place->arguments);
    return place->arguments;
}

PyObject *new_tensor(const lnorm_tensor *like, enum element element) {
    struct kept_arguments wanted = {.element = element, .ndim = like->ndim};
    PyObject *arguments, *made;
    int64_t stride = 1;
    for (int32_t i = like->ndim; i-- > 0; stride *= like->shape[i]) {
        wanted.shape[i] = like->shape[i];
        wanted.strides[i] = like->strides ? like->strides[i] : stride;
    }
    arguments = arguments_of(&wanted);
    made = arguments ? PyObject_Call(empty, arguments, NULL) : NULL;
    Py_DecRef(arguments);
    return made;
}
