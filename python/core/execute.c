/* Level 2: lnorm_op and lnorm_io as keywords; a tensor is an array, or an address with its description. */
#include "core.h"

#include <stddef.h>
#include <string.h>

const char execute_doc[] =
    "execute(kind, pass_, /, *, statistics=0, arithmetic=0, eps=1e-05, normalized_shape=None, axes=None, groups=0,\n"
    "        affine_broadcast=False, weight_offset=False, accumulate=False, momentum=0.1, batches=0, threads=0,\n"
    "        x=None, weight=None, bias=None, y=None, mean=None, rstd=None, variance=None, running_mean=None,\n"
    "        running_var=None, dy=None, dx=None, dweight=None, dbias=None, v=None, ddy=None, x_tangent=None,\n"
    "        weight_tangent=None, bias_tangent=None, y_tangent=None, mean_tangent=None, rstd_tangent=None)\n--\n\n"
    "Any operation of lnorm.h: the members of lnorm_op and lnorm_io as keyword arguments of the same names.\n\n"
    "kind: LAYER_NORM, RMS_NORM, GROUP_NORM, INSTANCE_NORM, BATCH_NORM; pass_: FORWARD, BACKWARD, DOUBLE_BACKWARD,\n"
    "FORWARD_MODE; statistics: COMPUTED, SAVED, CONSTANT; arithmetic: ACCURATE, FAST. normalized_shape and axes: an\n"
    "integer or a sequence of integers; neither: the last axis. groups is for GROUP_NORM only. eps: at least 0, or\n"
    "EPS_DEFAULT. threads: 0 what set_num_threads says, 1 the calling thread.\n\n"
    "A tensor (x and what follows) is None, an array (NumPy, DLPack, the buffer protocol), or a tuple\n\n"
    "    (address, dtype, shape, strides)\n\n"
    "address: an int, of element [0, 0, ...]; 0 where there is no element. dtype: F64, F32, F16 or BF16, each tensor\n"
    "for itself. shape: a tuple (torch.Size is one). strides: a tuple in elements, not bytes, 0 and negative ones\n"
    "included, or None for row-major and dense. Which tensors a pass reads and writes, and their shapes: lnorm.h,\n"
    "section 3.\n\n"
    "The workspace is allocated here; the interpreter's lock is released from 8192 elements up. Shapes, types and\n"
    "overlap are checked, with ValueError or TypeError and the library's text. That an address is of memory, and\n"
    "aligned, is not.";

/* What a keyword is: its member of lnorm_op or lnorm_io, how to read it, and the passes that write it. */
enum form { INTEGER_32, INTEGER_64, NUMBER, FLAG, EXTENTS, THREADS, TENSOR };
typedef struct keyword {
    enum form form;
    size_t offset;
    unsigned written;
} keyword;

#define OPERAND(id, field, shape, reads, writes) #field,
static const char *const names[] = {
    "kind", "pass_", "statistics", "arithmetic", "eps", "normalized_shape", "axes", "groups", "affine_broadcast",
    "weight_offset", "accumulate", "momentum", "batches", "threads",
#include "lists/operands.def"
};
#undef OPERAND

#define OPERAND(id, field, shape, reads, writes) {TENSOR, offsetof(lnorm_io, field), writes},
static const keyword keywords[] = {
    {INTEGER_32, offsetof(lnorm_op, kind), 0},
    {INTEGER_32, offsetof(lnorm_op, pass), 0},
    {INTEGER_32, offsetof(lnorm_op, statistics), 0},
    {INTEGER_32, offsetof(lnorm_op, arithmetic), 0},
    {NUMBER, offsetof(lnorm_op, eps), 0},
    {EXTENTS, offsetof(lnorm_op, normalized_shape), 0},
    {EXTENTS, offsetof(lnorm_op, axes), 0},
    {INTEGER_64, offsetof(lnorm_op, groups), 0},
    {FLAG, offsetof(lnorm_op, affine_broadcast), 0},
    {FLAG, offsetof(lnorm_op, weight_offset), 0},
    {FLAG, offsetof(lnorm_op, accumulate), 0},
    {NUMBER, offsetof(lnorm_op, momentum), 0},
    {INTEGER_64, offsetof(lnorm_op, batches), 0},
    {THREADS, 0, 0},
#include "lists/operands.def"
};
#undef OPERAND

enum { COUNT = sizeof names / sizeof *names, TENSORS = 21 };
_Static_assert(COUNT <= PARAMETERS_MAX && COUNT == sizeof keywords / sizeof *keywords, "names and keywords");
_Static_assert(COUNT - 14 == TENSORS, "room for every tensor");
_Static_assert(sizeof(lnorm_kind) == sizeof(int32_t), "the enums of lnorm_op are read as int32_t");

static signature execute_signature = {"execute", COUNT, 2, 2, names, {NULL}};

typedef struct execution {
    lnorm_op op;
    lnorm_io io;
    workers who;
    int64_t normalized_shape[LNORM_MAX_NDIM], axes[LNORM_MAX_NDIM];
    view views[TENSORS];
    int used;
} execution;

static int read_address(PyObject *object, const char *name, view *into) {
    int64_t element = -1;
    int32_t ndim = 0, strides = 0;
    void *address;
    if (PyTuple_Size(object) != 4) {
        PyErr_Format(PyExc_TypeError, "%s: expected (address, dtype, shape, strides), got %R", name, object);
        return -1;
    }
    address = PyLong_AsVoidPtr(PyTuple_GetItem(object, 0));
    if ((!address && PyErr_Occurred()) || read_integer(PyTuple_GetItem(object, 1), name, &element) ||
        read_extents(PyTuple_GetItem(object, 2), name, into->shape, &ndim))
        return -1;
    if (element < 0 || element >= ELEMENTS) {
        PyErr_Format(PyExc_ValueError, "%s: expected dtype F64, F32, F16 or BF16, got %lld", name, (long long)element);
        return -1;
    }
    into->tensor = (lnorm_tensor){address, {1, 0}, ndim, dtype_of[element], into->shape, NULL, 0};
    if (PyTuple_GetItem(object, 3) == Py_None)
        return 0;
    if (read_extents(PyTuple_GetItem(object, 3), name, into->strides, &strides))
        return -1;
    if (strides != ndim) {
        PyErr_Format(PyExc_ValueError, "%s: expected %d strides, got %d", name, (int)ndim, (int)strides);
        return -1;
    }
    into->tensor.strides = into->strides;
    return 0;
}

static int read_small_integer(PyObject *object, const char *name, int32_t *into) {
    int64_t value = *into;
    if (read_integer(object, name, &value))
        return -1;
    *into = value < -1 || value > 1000 ? -1 : (int32_t)value; /* which the library refuses */
    return 0;
}

static int read_axes(execution *e, PyObject *object, int i) {
    int shape = keywords[i].offset == offsetof(lnorm_op, normalized_shape);
    int64_t *extents = shape ? e->normalized_shape : e->axes;
    if (object == Py_None)
        return 0;
    if (read_extents(object, names[i], extents, shape ? &e->op.normalized_ndim : &e->op.axes_count))
        return -1;
    *(shape ? &e->op.normalized_shape : &e->op.axes) = extents;
    return 0;
}

/* mean and rstd are outputs where a forward pass computes them, and inputs everywhere else. */
static int is_written(const lnorm_op *op, int i) {
    if (keywords[i].offset == offsetof(lnorm_io, mean) || keywords[i].offset == offsetof(lnorm_io, rstd))
        return op->pass == LNORM_FORWARD && op->statistics == LNORM_COMPUTED;
    return (unsigned)op->pass < 4 && (keywords[i].written >> op->pass & 1);
}

static int read_operand(execution *e, PyObject *object, int i) {
    view *into = &e->views[e->used];
    if (object == Py_None)
        return 0;
    into->keep = NULL;
    if (PyTuple_Check(object) ? read_address(object, names[i], into)
                              : read_array(object, names[i], is_written(&e->op, i), into))
        return -1;
    *(const lnorm_tensor **)(void *)((char *)&e->io + keywords[i].offset) = &into->tensor;
    e->used++;
    return 0;
}

static int read_keyword(execution *e, PyObject *object, int i) {
    void *member = (char *)&e->op + keywords[i].offset;
    switch (keywords[i].form) {
    case INTEGER_32: return read_small_integer(object, names[i], member);
    case INTEGER_64: return read_integer(object, names[i], member);
    case NUMBER: return read_double(object, names[i], member);
    case FLAG: return read_flag(object, member);
    case EXTENTS: return read_axes(e, object, i);
    case THREADS: return read_integer(object, names[i], &e->who.threads);
    default: return read_operand(e, object, i);
    }
}

static PyObject *execute_by(int32_t openmp, PyObject *const *arguments, Py_ssize_t given, PyObject *keyword_names) {
    execution e;
    PyObject *values[COUNT];
    int status = 0;
    if (sort_arguments(&execute_signature, arguments, given, keyword_names, values))
        return NULL;
    e.op = (lnorm_op)LNORM_OP_INIT;
    e.io = (lnorm_io)LNORM_IO_INIT;
    e.who = (workers){0, openmp};
    e.used = 0;
    for (int i = 0; i < COUNT && !status; i++)
        if (values[i])
            status = read_keyword(&e, values[i], i);
    if (!status)
        status = run_operation(&e.op, &e.io, e.who);
    for (int i = 0; i < e.used; i++)
        Py_DecRef(e.views[i].keep);
    if (status)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *execute(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keyword_names) {
    (void)module;
    return execute_by(0, arguments, given, keyword_names);
}

const char execute_openmp_doc[] = "execute_openmp(...)\n--\n\nexecute on the threads of set_openmp's runtime.";

PyObject *execute_openmp(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keyword_names) {
    (void)module;
    return execute_by(1, arguments, given, keyword_names);
}
