/* Norms of another library's tensors, which its table of DLPack functions describes without an object in between. What
 * is not dense and on the CPU is left to the caller: None is returned. */
#include "core.h"

#include <float.h>
#include <string.h>

/* DLPack's DLPackExchangeAPI (version 1), as far as it is read here. */
typedef struct exchange {
    uint32_t major, minor;
    struct exchange *previous;
    void *allocate, *from_object, *to_object;
    int (*describe)(void *object, lnorm_tensor *tensor);
} exchange;

static PyObject *types, *get_threads, *written, *is_neg;
static int (*describe_tensor)(void *object, lnorm_tensor *tensor);

const char set_tensors_doc[] =
    "set_tensors(types, exchange, empty, dtypes, get_threads, written, /)\n--\n\n"
    "Whose tensors tensor_norm takes: a tuple of exactly these types, their __dlpack_c_exchange_api__, and the\n"
    "functions that make an output of (shape, strides, dtype), say how many threads there are, and are told (mean,\n"
    "variance) that were updated. dtypes: the four that `empty` is given, in the order F64, F32, F16, BF16.\n"
    "False where the table is of no use; tensor_norm then returns None always.";

void keep(PyObject **where, PyObject *object) {
    PyObject *before = *where;
    Py_IncRef(object);
    *where = object;
    Py_DecRef(before);
}

PyObject *set_tensors(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    const exchange *table;
    (void)module;
    if (check_count(given, 6, "set_tensors"))
        return NULL;
    if (!PyTuple_Check(arguments[0]) || !PyTuple_Check(arguments[3]) || PyTuple_Size(arguments[3]) != ELEMENTS) {
        PyErr_Format(PyExc_TypeError, "types, dtypes: expected tuples, the second of 4, got %R and %R", arguments[0],
                     arguments[3]);
        return NULL;
    }
    table = PyCapsule_GetPointer(arguments[1], "dlpack_exchange_api");
    if (!table)
        return NULL;
    if (!is_neg && !(is_neg = PyUnicode_InternFromString("is_neg")))
        return NULL;
    keep(&types, arguments[0]);
    set_outputs(arguments[2], arguments[3]);
    keep(&get_threads, arguments[4]);
    keep(&written, arguments[5]);
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

int is_tensor(PyObject *object) {
    Py_ssize_t count = describe_tensor ? PyTuple_Size(types) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if ((PyObject *)Py_TYPE(object) == PyTuple_GetItem(types, i))
            return 1;
    return 0;
}

/* 1 where the object's memory has dense elements in row-major order. No exception is left. */
static int read_row_major(PyObject *object, lnorm_tensor *tensor) {
    if (!is_tensor(object))
        return 0;
    if (!describe_tensor(object, tensor))
        return tensor->device.device_type == 1 && tensor->data && is_row_major(tensor);
    PyErr_Clear();
    return 0;
}

int is_row_major_tensor(PyObject *object) {
    lnorm_tensor tensor;
    return read_row_major(object, &tensor);
}

/* The same, and they are the tensor's values. */
static int read_dense(PyObject *object, lnorm_tensor *tensor) {
    return read_row_major(object, tensor) && !is_negated(object);
}

/* What a call is about: tensors, and the members of the tuple `how`. */
enum { X, WEIGHT, BIAS, MEAN, VARIANCE, TENSORS };
enum { KIND, SHAPE, EPS, FAST, MOMENTUM, HOW_MEMBERS };

/* A call under way: objects as they came, tensors as they lie, and the operation for lnorm_execute. */
typedef struct tensor_call {
    PyObject *objects[TENSORS], *how[HOW_MEMBERS];
    lnorm_tensor x, weight, bias, mean, variance, dy, outputs[3], rstd;
    lnorm_op op;
    lnorm_io io;
    int64_t elements;
    int one_element; /* x and parameters have one element type: level 1 may do */
    int updates;     /* mean and variance are running statistics, to be updated */
} tensor_call;

static int64_t count_elements(const lnorm_tensor *x) {
    int64_t count = 1;
    for (int32_t i = 0; i < x->ndim; i++)
        count *= x->shape[i];
    return count;
}

static int is_extent(PyObject *object, int64_t extent) {
    int overflow;
    return PyLong_CheckExact(object) && PyLong_AsLongLongAndOverflow(object, &overflow) == extent;
}

/* Layer and RMS norm: a tuple, which must equal x's last extents. */
static int read_normalized_shape(tensor_call *c, PyObject *shape) {
    Py_ssize_t count = PyTuple_Check(shape) ? PyTuple_Size(shape) : 0;
    if (count < 1 || count > c->x.ndim)
        return 0;
    c->op.normalized_ndim = (int32_t)count;
    c->op.normalized_shape = c->x.shape + (c->x.ndim - count);
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_extent(PyTuple_GetItem(shape, i), c->op.normalized_shape[i]))
            return 0;
    return 1;
}

/* Group norm: a number of groups, which must divide the channels. Groups of one element PyTorch refuses. */
static int read_groups(tensor_call *c, PyObject *groups) {
    int overflow;
    c->op.groups = PyLong_CheckExact(groups) ? PyLong_AsLongLongAndOverflow(groups, &overflow) : 0;
    return c->op.groups > 0 && c->x.ndim >= 2 && c->x.shape[1] % c->op.groups == 0 &&
           c->elements != c->op.groups;
}

/* A parameter must have the shape `extents` and x's element type, or f32 where x has 16 bits; None is absent. */
static int read_parameter(tensor_call *c, PyObject *object, int32_t ndim, const int64_t *extents, lnorm_tensor *into,
                          const lnorm_tensor **in_io) {
    if (object == Py_None)
        return 1;
    if (!read_dense(object, into) || into->ndim != ndim)
        return 0;
    for (int32_t i = 0; i < ndim; i++)
        if (into->shape[i] != extents[i])
            return 0;
    *in_io = into;
    if (element_of(into) == element_of(&c->x))
        return 1;
    c->one_element = 0;
    return c->x.dtype.bits == 16 && element_of(into) == F32;
}

/* Both parameters; batch norm's statistics, too. All are of one type. */
static int read_parameters(tensor_call *c) {
    int channels = c->op.kind == LNORM_GROUP_NORM || c->op.kind == LNORM_BATCH_NORM;
    int32_t ndim = channels ? 1 : c->op.normalized_ndim;
    const int64_t *extents = channels ? c->x.shape + 1 : c->op.normalized_shape;
    const struct {
        PyObject *object;
        lnorm_tensor *into;
        const lnorm_tensor **in_io;
    } all[] = {{c->objects[WEIGHT], &c->weight, &c->io.weight},
               {c->objects[BIAS], &c->bias, &c->io.bias},
               {c->objects[MEAN], &c->mean, c->updates ? &c->io.running_mean : &c->io.mean},
               {c->objects[VARIANCE], &c->variance, c->updates ? &c->io.running_var : &c->io.variance}};
    const lnorm_tensor *first = NULL;
    for (int i = 0; i < (c->op.kind == LNORM_BATCH_NORM ? 4 : 2); i++) {
        if (!read_parameter(c, all[i].object, ndim, extents, all[i].into, all[i].in_io))
            return 0;
        if (!first)
            first = *all[i].in_io;
        else if (*all[i].in_io && element_of(first) != element_of(*all[i].in_io))
            return 0;
    }
    return 1;
}

/* Batch norm: mean and variance are both there or both not. With a momentum they are running statistics, which a
 * forward pass updates; otherwise they are used in place of x's own, of which PyTorch takes no single ones. */
static int read_statistics(tensor_call *c) {
    int given = c->objects[MEAN] != Py_None;
    if (given != (c->objects[VARIANCE] != Py_None) || c->x.ndim < 2)
        return 0;
    c->updates = given && c->how[MOMENTUM] != Py_None;
    if (given && !c->updates)
        c->op.statistics = LNORM_CONSTANT;
    else if (c->elements == c->x.shape[1])
        return 0;
    if (!c->updates)
        return 1;
    c->op.momentum = PyFloat_CheckExact(c->how[MOMENTUM]) ? PyFloat_AsDouble(c->how[MOMENTUM]) : -1.0;
    return c->op.momentum >= 0 && c->op.momentum <= 1;
}

/* None is the default of PyTorch's RMS norm, which is lnorm's, too. Batch norm of x's own statistics PyTorch refuses to
 * compute with 0. */
static int read_eps(tensor_call *c) {
    PyObject *eps = c->how[EPS];
    if (eps == Py_None && c->op.kind == LNORM_RMS_NORM)
        c->op.eps = LNORM_EPS_DEFAULT;
    else if (PyFloat_CheckExact(eps))
        c->op.eps = PyFloat_AsDouble(eps);
    else
        return 0;
    if (c->op.eps == 0 && c->op.kind == LNORM_BATCH_NORM && c->op.statistics == LNORM_COMPUTED)
        return 0;
    return eps == Py_None || (c->op.eps >= 0 && c->op.eps <= DBL_MAX);
}

/* What the kind goes by, beside x. */
static int read_groups_of_kind(tensor_call *c) {
    switch (c->op.kind) {
    case LNORM_LAYER_NORM:
    case LNORM_RMS_NORM: return read_normalized_shape(c, c->how[SHAPE]);
    case LNORM_GROUP_NORM: return read_groups(c, c->how[SHAPE]);
    case LNORM_BATCH_NORM: return read_statistics(c);
    default: return 0;
    }
}

static int read_how(tensor_call *c, PyObject *how) {
    int64_t kind;
    int overflow;
    if (!PyTuple_Check(how) || PyTuple_Size(how) != HOW_MEMBERS)
        return 0;
    for (int i = 0; i < HOW_MEMBERS; i++)
        c->how[i] = PyTuple_GetItem(how, i);
    kind = PyLong_CheckExact(c->how[KIND]) ? PyLong_AsLongLongAndOverflow(c->how[KIND], &overflow) : -1;
    c->op.kind = (lnorm_kind)kind;
    return 1;
}

/* The operands: x, weight, bias and, if there are any, mean and variance; how, a tuple. 0 where the caller has to look
 * at them himself. No exception is left. */
static int read_call(tensor_call *c, lnorm_pass pass, PyObject *const *tensors, Py_ssize_t count, PyObject *how) {
    *c = (tensor_call){.op = LNORM_OP_INIT, .io = LNORM_IO_INIT, .one_element = 1};
    if (count != TENSORS && count != MEAN)
        return 0;
    for (int i = 0; i < TENSORS; i++)
        c->objects[i] = i < count ? tensors[i] : Py_None;
    if (!read_how(c, how) || !read_dense(c->objects[X], &c->x) || element_of(&c->x) < 0 || c->x.ndim > LNORM_MAX_NDIM)
        return 0;
    c->io.x = &c->x;
    c->elements = count_elements(&c->x);
    c->op.pass = pass;
    c->op.arithmetic = c->how[FAST] == Py_True ? LNORM_FAST : LNORM_ACCURATE;
    return c->elements > 0 && read_groups_of_kind(c) && read_parameters(c) && read_eps(c);
}

static PyObject *nothing(void) {
    Py_IncRef(Py_None);
    return Py_None;
}

static void *address(const lnorm_tensor *tensor) {
    return tensor ? (char *)tensor->data + tensor->byte_offset : NULL;
}

/* Mean and rstd of a call, `count` numbers in a tensor: those of all rows' rstd first. */
static void place_statistics(tensor_call *c, double *at, int64_t count) {
    const int32_t ndim = c->x.ndim - c->op.normalized_ndim;
    c->rstd = lnorm_dense(at, LNORM_F64, ndim, c->x.shape);
    c->io.rstd = &c->rstd;
    if (c->op.kind == LNORM_RMS_NORM)
        return;
    c->mean = lnorm_dense(at + count / 2, LNORM_F64, ndim, c->x.shape);
    c->io.mean = &c->mean;
}

/* A new tensor of the statistics that are worth saving; NULL: none, or an exception. */
static PyObject *new_statistics(tensor_call *c) {
    const int64_t count = statistics_to_save(&c->op, &c->x, c->elements);
    const lnorm_tensor like = lnorm_dense(NULL, LNORM_F64, 1, &count);
    lnorm_tensor made;
    PyObject *statistics = count ? new_tensor(&like, F64) : NULL;
    if (!statistics)
        return NULL;
    if (describe_tensor(statistics, &made)) {
        Py_DecRef(statistics);
        return NULL;
    }
    place_statistics(c, address(&made), count);
    return statistics;
}

/* Statistics of a forward pass are used where they change no bit. They may be anything: whoever looks after what
 * autograd saves may have put another tensor in their place. */
static void use_statistics(tensor_call *c, PyObject *statistics) {
    const int64_t count = statistics_to_save(&c->op, &c->x, c->elements);
    const int centred = c->op.kind == LNORM_LAYER_NORM;
    lnorm_tensor given;
    double *rstd;
    if (!count || !read_dense(statistics, &given) || element_of(&given) != F64 || count_elements(&given) != count)
        return;
    rstd = address(&given);
    if (!statistics_are_exact(rstd, centred ? rstd + count / 2 : NULL, centred ? count / 2 : count, c->op.eps))
        return;
    place_statistics(c, rstd, count);
    c->op.statistics = LNORM_SAVED;
}

/* The i-th output, described in *in_io. */
static PyObject *new_output(tensor_call *c, int i, const lnorm_tensor *like, const lnorm_tensor **in_io) {
    PyObject *output = new_tensor(like, (enum element)element_of(like));
    if (!output || describe_tensor(output, &c->outputs[i])) {
        Py_DecRef(output);
        return NULL;
    }
    *in_io = &c->outputs[i];
    return output;
}

static int run_level1(const tensor_call *c) {
    const lnorm_io *io = &c->io;
    rows_call call = {c->op.kind, c->op.pass, (enum element)element_of(&c->x), address(io->x), address(io->dy),
                      address(io->weight), address(io->bias), address(io->y), NULL, NULL, address(io->dx),
                      address(io->dweight), address(io->dbias), 0, 1, c->op.eps, LNORM_ACCURATE};
    lnorm_status status;
    for (int32_t i = 0; i < c->op.normalized_ndim; i++)
        call.cols *= c->op.normalized_shape[i];
    call.rows = c->elements / call.cols;
    status = run_rows(&call);
    if (status != LNORM_OK)
        raise_status(status, "");
    return status == LNORM_OK ? 0 : -1;
}

/* As many threads as PyTorch's own operators have: no bit depends on it. -1 and an exception. */
static int read_threads(const tensor_call *c, int64_t *threads) {
    PyObject *number;
    int status;
    *threads = 1;
    if (c->elements < ALONE_BELOW)
        return 0;
    number = PyObject_CallFunctionObjArgs(get_threads, NULL);
    status = number ? read_integer(number, "threads", threads) : -1;
    Py_DecRef(number);
    return status;
}

/* On one thread level 1 does without a plan: a microsecond less, and code that is still in the caches. */
static int run(tensor_call *c) {
    int rows = c->op.kind == LNORM_LAYER_NORM || c->op.kind == LNORM_RMS_NORM;
    int64_t threads;
    if (read_threads(c, &threads))
        return -1;
    if (threads == 1 && rows && c->one_element && c->op.arithmetic == LNORM_ACCURATE && !c->io.rstd)
        return run_level1(c);
    return run_dense_operation(&c->op, &c->io, c->elements, (workers){threads, 1});
}

/* Autograd has to know that memory was written behind its back. */
static int tell_written(const tensor_call *c) {
    PyObject *answer;
    if (!c->updates)
        return 0;
    answer = PyObject_CallFunctionObjArgs(written, c->objects[MEAN], c->objects[VARIANCE], NULL);
    Py_DecRef(answer);
    return answer ? 0 : -1;
}

/* What the library refuses is the caller's, too. */
static PyObject *left_to_caller(PyObject *results) {
    Py_DecRef(results);
    PyErr_Clear();
    return nothing();
}

const char tensor_norm_doc[] =
    "tensor_norm(how, x, weight, bias[, mean, variance], /)\n--\n\n"
    "y; None where the operands are not dense tensors of matching shapes and element types.\n\n"
    "how: (kind, shape, eps, fast, momentum). shape: normalized_shape, a tuple, for LAYER_NORM and RMS_NORM; the\n"
    "number of groups for GROUP_NORM. Of the tensors all but x may be None. mean and variance are for BATCH_NORM: to\n"
    "be used where momentum is None, to be updated otherwise.";

PyObject *tensor_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    (void)module;
    if (given < 1)
        return check_count(given, 1 + MEAN, "tensor_norm"), NULL;
    return norm_and_statistics(arguments + 1, given - 1, arguments[0], NULL);
}

PyObject *norm_and_statistics(PyObject *const *tensors, Py_ssize_t count, PyObject *how, PyObject **statistics) {
    tensor_call c;
    PyObject *y;
    if (!read_call(&c, LNORM_FORWARD, tensors, count, how))
        return nothing();
    y = new_output(&c, 0, &c.x, &c.io.y);
    if (statistics && y)
        *statistics = new_statistics(&c);
    if (!y || PyErr_Occurred() || run(&c))
        return left_to_caller(y);
    if (tell_written(&c)) {
        Py_DecRef(y);
        return NULL;
    }
    return y;
}

static int read_dy(tensor_call *c, PyObject *dy) {
    if (!read_dense(dy, &c->dy) || element_of(&c->dy) != element_of(&c->x) || c->dy.ndim != c->x.ndim)
        return 0;
    c->io.dy = &c->dy;
    c->io.running_mean = c->io.running_var = NULL;
    return memcmp(c->dy.shape, c->x.shape, (size_t)c->x.ndim * sizeof *c->x.shape) == 0;
}

/* Of a tuple; how many there are, 0 where it is none or longer than a call. */
static Py_ssize_t members(PyObject *tuple, PyObject **into) {
    Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    if (count > TENSORS)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        into[i] = PyTuple_GetItem(tuple, i);
    return count;
}

const char tensor_norm_backward_doc[] =
    "tensor_norm_backward(tensors, how, dy, mask, /)\n--\n\n"
    "tensors: a tuple (x, weight, bias), (x, weight, bias, mean, variance), or (x, weight, bias, statistics) with the\n"
    "fourth tensor that a recorded forward pass has saved: it may spare time, and changes no bit.\n\n"
    "A tuple as long as the tuple mask: dx, dweight and dbias, each None where mask has False for it, then None. None\n"
    "as tensor_norm. Of bias the shape and type count, of which weight tells where it is None. Nothing is updated,\n"
    "whatever the momentum.";

PyObject *tensor_norm_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    enum { TENSORS_GIVEN, HOW, DY, MASK, ARGUMENTS, WITH_STATISTICS = MEAN + 1 };
    tensor_call c;
    const lnorm_tensor **in_io[3] = {&c.io.dx, &c.io.dweight, &c.io.dbias}, *like[3];
    PyObject *result, *mask, *tensors[TENSORS];
    Py_ssize_t count, operands;
    (void)module;
    if (check_count(given, ARGUMENTS, "tensor_norm_backward"))
        return NULL;
    mask = arguments[MASK];
    count = PyTuple_Check(mask) ? PyTuple_Size(mask) : 0;
    operands = members(arguments[TENSORS_GIVEN], tensors);
    if (count < 3 ||
        !read_call(&c, LNORM_BACKWARD, tensors, operands == WITH_STATISTICS ? MEAN : operands, arguments[HOW]) ||
        !read_dy(&c, arguments[DY]))
        return nothing();
    if (operands == WITH_STATISTICS)
        use_statistics(&c, tensors[MEAN]);
    like[X] = c.io.x;
    like[WEIGHT] = c.io.weight;
    like[BIAS] = c.io.bias ? c.io.bias : c.io.weight;
    result = PyTuple_New(count);
    for (int i = 0; i < count && result; i++) {
        int wanted = i < 3 && PyTuple_GetItem(mask, i) == Py_True && like[i];
        PyObject *output = wanted ? new_output(&c, i, like[i], in_io[i]) : nothing();
        if (!output || PyTuple_SetItem(result, i, output))
            return left_to_caller(result);
    }
    return result && !run(&c) ? result : left_to_caller(result);
}
