/* What the program's `explain` draws: its picture, words and values as a string, its picture and words as SVG. */
#include "core.h"

#include "../../cli/drawn.h"
#include "../../cli/explanation.h"

#include <stdlib.h>
#include <string.h>

const char explain_doc[] =
    "explain(kind, x, normalized_shape, axes, groups, eps, width, utf8, /)\n--\n\n"
    "(text, svg) of lnorm.h's operation `kind` on x: an array, or a tuple of integers, a shape. normalized_shape, axes,\n"
    "eps: None where not given; groups: 0. width: characters in a line of the text.";

typedef struct explained {
    explanation explanation;
    lnorm_op op;
    int64_t normalized_shape[LNORM_MAX_NDIM], axes[LNORM_MAX_NDIM];
    view x;
    style style;
    lnorm_status status; /* of the text */
    lnorm_error error;
} explained;

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static int read_axes(PyObject *object, const char *name, int64_t *extents, const int64_t **given, int32_t *count) {
    if (object == Py_None)
        return 0;
    *given = extents;
    return read_extents(object, name, extents, count);
}

static int read_x(PyObject *object, view *into) {
    int32_t ndim = 0;
    if (!PyTuple_Check(object))
        return read_array(object, "x", 0, into);
    if (read_extents(object, "x", into->shape, &ndim))
        return -1;
    into->tensor = lnorm_dense(NULL, dtype_of[F32], ndim, into->shape);
    return 0;
}

/* The picture keeps within bounds of its own; these keep an int from overflowing. */
static int read_width(PyObject *object, int *width) {
    int64_t wanted = DEFAULT_WIDTH;
    if (read_integer(object, "width", &wanted))
        return -1;
    if (wanted < MIN_WIDTH || wanted > MAX_WIDTH) {
        PyErr_Format(PyExc_ValueError, "width: expected %d to %d characters, got %lld", (int)MIN_WIDTH, (int)MAX_WIDTH,
                     (long long)wanted);
        return -1;
    }
    *width = (int)wanted;
    return 0;
}

static int read_arguments(explained *e, PyObject *const *arguments) {
    int64_t kind = LNORM_LAYER_NORM;
    int32_t utf8 = 0;
    if (read_integer(arguments[0], "kind", &kind) || read_x(arguments[1], &e->x) ||
        read_axes(arguments[2], "normalized_shape", e->normalized_shape, &e->op.normalized_shape,
                  &e->op.normalized_ndim) ||
        read_axes(arguments[3], "axes", e->axes, &e->op.axes, &e->op.axes_count) ||
        read_integer(arguments[4], "num_groups", &e->op.groups) || read_double(arguments[5], "eps", &e->op.eps) ||
        read_width(arguments[6], &e->style.width) || read_flag(arguments[7], &utf8))
        return -1;
    e->op.kind = kind < 0 || kind > LNORM_BATCH_NORM ? (lnorm_kind)-1 : (lnorm_kind)kind; /* which is refused */
    e->style.utf8 = utf8;
    return 0;
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static lnorm_status read_memory(const void *where, void *to, int64_t first, int64_t count, lnorm_error *error) {
    const lnorm_tensor *x = where;
    const int64_t size = x->dtype.bits / 8;
    (void)error;
    memcpy(to, (const char *)x->data + (int64_t)x->byte_offset + first * size, (size_t)(count * size));
    return LNORM_OK;
}

static void draw_text(void *context, FILE *to) {
    explained *e = context;
    const elements values = {&e->x.tensor, read_memory, "The functions have return_stats=True."};
    e->status = explanation_text(&e->explanation, to, &e->style, e->x.keep ? &values : NULL, &e->error);
}

static void draw_svg(void *context, FILE *to) {
    explained *e = context;
    explanation_svg(&e->explanation, to);
}

static PyObject *string_of(void (*draw)(void *context, FILE *to), explained *e) {
    size_t count = 0;
    char *bytes = drawn(draw, e, &count);
    PyObject *string = NULL;
    if (!bytes)
        return PyErr_NoMemory();
    if (e->status)
        raise_status(e->status, e->error.message);
    else
        string = PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)count, NULL);
    free(bytes);
    return string;
}

static PyObject *both(explained *e) {
    lnorm_status status = explanation_init(&e->explanation, &e->op, &e->x.tensor, &e->error);
    PyObject *text, *svg;
    if (status)
        return raise_status(status, e->error.message);
    text = string_of(draw_text, e);
    svg = text ? string_of(draw_svg, e) : NULL;
    if (svg)
        return Py_BuildValue("(NN)", text, svg);
    Py_DecRef(text);
    return NULL;
}

PyObject *explain(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    explained *e;
    PyObject *result = NULL;
    (void)module;
    if (check_count(given, 8, "explain"))
        return NULL;
    e = calloc(1, sizeof *e);
    if (!e)
        return PyErr_NoMemory();
    e->op = (lnorm_op)LNORM_OP_INIT;
    e->op.eps = LNORM_EPS_DEFAULT;
    e->error = (lnorm_error)LNORM_ERROR_INIT;
    if (!read_arguments(e, arguments))
        result = both(e);
    Py_DecRef(e->x.keep);
    free(e);
    return result;
}
