/* The pass over boxes of X in which whole groups lie. Each is an operation of its own on x's axes, with the parameters'
 * part that belongs to it; by the library's promise its bits are those of the whole. */
#include "flow.h"
#include "report.h"
#include "verb.h"

#include <stdlib.h>

enum { TENSORS = LNORM_VARIANCE + 1 }; /* x, weight, bias, y, mean, rstd, variance: the first of enum lnorm_operand */

/* An operation on one box. Points into itself. */
typedef struct piece {
    const flow *flow;
    const box *box;
    int axes, axis[LNORM_MAX_NDIM]; /* those of the frame along which the box is longer than 1; -1: one more, of 1 */
    lnorm_op op;
    lnorm_io io;
    int64_t reduced[LNORM_MAX_NDIM];
    lnorm_tensor tensor[TENSORS];
    int64_t shape[TENSORS][LNORM_MAX_NDIM], stride[TENSORS][LNORM_MAX_NDIM];
} piece;

static int is_reduced(const piece *p, int i) {
    return p->axis[i] < 0 || (p->flow->problem->reduced >> p->axis[i] & 1);
}

/* A layer or RMS norm over the box's axes. An axis must be normalised over: where none is left, one of extent 1. */
static void begin_piece(piece *p, const flow *f, const box *b) {
    static const lnorm_op init = LNORM_OP_INIT;
    static const lnorm_io no_tensors = LNORM_IO_INIT;
    *p = (piece){.flow = f, .box = b, .op = init, .io = no_tensors};
    for (int a = 0; a < f->frame.axes; a++)
        if (b->extent[a] != 1)
            p->axis[p->axes++] = a;
    for (int i = 0; i < p->axes; i++)
        if (is_reduced(p, i))
            p->reduced[p->op.axes_count++] = i;
    if (!p->op.axes_count) {
        p->axis[p->axes] = -1;
        p->reduced[p->op.axes_count++] = p->axes++;
    }
    p->op.kind = f->problem->center ? LNORM_LAYER_NORM : LNORM_RMS_NORM;
    p->op.statistics = (lnorm_statistics)f->problem->statistics;
    p->op.eps = f->problem->eps;
    p->op.axes = p->reduced;
    p->op.affine_broadcast = 1;
    p->op.weight_offset = f->problem->weight_offset;
}

/* Which axes of the box a tensor has: those of the groups, or all; where it is indexed by `set` only, the others are
 * of extent 1. */
static const lnorm_tensor *place(piece *p, enum lnorm_operand operand, int groups, uint32_t set,
                                 const int64_t *stride, void *data, lnorm_dtype dtype) {
    int count = 0;
    for (int i = 0; i < p->axes; i++) {
        int axis = p->axis[i];
        if (groups && is_reduced(p, i))
            continue;
        p->shape[operand][count] = axis >= 0 && (set >> axis & 1) ? p->box->extent[axis] : 1;
        p->stride[operand][count++] = axis >= 0 ? stride[axis] : 0;
    }
    p->tensor[operand] = lnorm_dense(data, dtype, count, p->shape[operand]);
    p->tensor[operand].strides = p->stride[operand];
    return &p->tensor[operand];
}

/* Weight, bias or a given statistic: the part of it that belongs to the box. NULL where it is absent. */
static const lnorm_tensor *part(piece *p, enum lnorm_operand operand, const lnorm_tensor *all, int groups,
                                uint32_t set) {
    const int64_t *stride = p->flow->problem->operand[operand].stride;
    int64_t offset = 0;
    if (!lnorm_has(p->flow->problem, operand))
        return NULL;
    for (int a = 0; a < p->flow->frame.axes; a++)
        offset += p->box->start[a] * stride[a];
    return place(p, operand, groups, set, stride, (char *)all->data + offset * (all->dtype.bits / 8), all->dtype);
}

static const lnorm_tensor *packed(piece *p, enum lnorm_operand operand, void *const *buffer) {
    const flow *f = p->flow;
    int64_t stride[LNORM_MAX_AXES];
    const stream *s = flow_stream(f, operand);
    if (!s)
        return NULL;
    box_strides(&f->frame, p->box->extent, &s->work, stride);
    return place(p, operand, operand == LNORM_MEAN || operand == LNORM_RSTD, ~0u, stride, buffer[s - f->stream],
                 s->dtype);
}

static int compute(const flow *f, const box *b, void *const *buffer) {
    piece p;
    lnorm_error error = LNORM_ERROR_INIT;
    int given = f->problem->statistics != LNORM_COMPUTED;
    begin_piece(&p, f, b);
    p.io.x = packed(&p, LNORM_X, buffer);
    p.io.y = packed(&p, LNORM_Y, buffer);
    p.io.weight = part(&p, LNORM_WEIGHT, f->io->weight, 0, f->problem->weight_axes);
    p.io.bias = part(&p, LNORM_BIAS, f->io->bias, 0, f->problem->bias_axes);
    p.io.mean = given ? part(&p, LNORM_MEAN, f->io->mean, 1, ~0u) : packed(&p, LNORM_MEAN, buffer);
    p.io.rstd = packed(&p, LNORM_RSTD, buffer);
    p.io.variance = part(&p, LNORM_VARIANCE, f->io->variance, 1, ~0u);
    return lnorm_run(&p.op, &p.io, f->executor, &error) ? report_failure("%s", error.message) : DONE;
}

static int run_box(const flow *f, const box *b, void *const *buffer) {
    int status = box_read(&f->frame, b, &f->stream[0].work, buffer[0]);
    if (!status)
        status = compute(f, b, buffer);
    for (int i = 1; i < f->streams && !status; i++)
        status = box_write(&f->frame, b, &f->stream[i].work, buffer[i]);
    return status;
}

/* One buffer for each stream; never of no bytes. */
static int allocate(const flow *f, void **buffer) {
    for (int i = 0; i < f->streams; i++) {
        size_t bytes = (size_t)box_count(&f->frame, f->tile, &f->stream[i].work) * f->stream[i].work.store.size;
        if (!(buffer[i] = malloc(bytes + 1)))
            return report_failure("not enough memory: a group of %lld elements has to be held whole, %zu bytes",
                                  (long long)f->problem->element.count, bytes);
    }
    return DONE;
}

int slab_run(flow *f) {
    void *buffer[MAX_STREAMS] = {NULL};
    int status = allocate(f, buffer);
    for (box b = {.number = 0}; !status && box_next(&f->frame, f->tile, &b);) {
        status = run_box(f, &b, buffer);
        progress(f->done += box_elements(&f->frame, b.extent) * (int64_t)f->stream[0].work.store.size);
    }
    for (int i = 0; i < f->streams; i++)
        free(buffer[i]);
    return status;
}
