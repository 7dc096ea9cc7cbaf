/* Groups that are too large for a buffer: the library's engine of long rows, whose tasks touch one segment of a row
 * each. A group is one dense row to it; the segment that a task is about is brought into memory before, in the group's
 * logical order, and y, computed in place, written after. */
#include "flow.h"
#include "long.h"
#include "report.h"
#include "verb.h"

#include <stdlib.h>
#include <string.h>

/* Weight or bias of one group. */
typedef struct parameter {
    const lnorm_tensor *all; /* NULL: absent */
    enum lnorm_operand operand;
    uint32_t axes;
    lnorm_tensor tensor; /* [N], or [1] where it is the same for the whole group */
    int64_t shape;
    char *buffer; /* a segment of it, where it does not lie in memory element by element */
} parameter;

typedef struct large_group {
    flow *flow;
    const lnorm_problem *problem;
    lnorm_op op;
    lnorm_io io;
    lnorm_plan plan;
    lnorm_tensor x, y, mean, rstd;
    parameter weight, bias;
    int64_t length;   /* elements of the group */
    char *segment;    /* of x, then of y */
    double statistic[2]; /* room for a mean and an rstd */
} large_group;

int64_t group_run(const lnorm_problem *problem, const int64_t *stride) {
    int64_t run = 1;
    for (int i = problem->element.axes; i-- > 0;) {
        int axis = problem->element.axis[i];
        if (stride[axis] != run)
            break;
        run *= problem->extent[axis];
    }
    return run;
}

/* -- The plan of one group ---------------------------------------------------------------------------------------- */

static void describe_parameter(large_group *g, parameter *p, enum lnorm_operand operand, const lnorm_tensor *all,
                               uint32_t axes) {
    if (!lnorm_has(g->problem, operand))
        return;
    *p = (parameter){.all = all, .operand = operand, .axes = axes};
    p->shape = axes & g->problem->reduced ? g->length : 1;
    p->tensor = lnorm_dense(NULL, all->dtype, 1, &p->shape);
}

/* The group as a row of its own. `g` is not to be moved afterwards. */
static void describe(large_group *g, flow *f) {
    static const lnorm_op op = LNORM_OP_INIT;
    static const lnorm_io io = LNORM_IO_INIT;
    const stream *y = flow_stream(f, LNORM_Y), *mean = flow_stream(f, LNORM_MEAN), *rstd = flow_stream(f, LNORM_RSTD);
    *g = (large_group){.flow = f, .problem = f->problem, .op = op, .io = io};
    g->length = f->problem->element.count;
    g->op.kind = f->problem->center ? LNORM_LAYER_NORM : LNORM_RMS_NORM;
    g->op.eps = f->problem->eps;
    g->op.affine_broadcast = 1;
    g->op.weight_offset = f->problem->weight_offset;
    g->x = lnorm_dense(NULL, f->stream[0].dtype, 1, &g->length);
    g->y = y ? lnorm_dense(NULL, y->dtype, 1, &g->length) : g->x;
    g->mean = lnorm_dense(&g->statistic[0], mean ? mean->dtype : LNORM_F64, 0, NULL);
    g->rstd = lnorm_dense(&g->statistic[1], rstd ? rstd->dtype : LNORM_F64, 0, NULL);
    describe_parameter(g, &g->weight, LNORM_WEIGHT, f->io->weight, f->problem->weight_axes);
    describe_parameter(g, &g->bias, LNORM_BIAS, f->io->bias, f->problem->bias_axes);
    g->io.x = &g->x;
    g->io.y = y ? &g->y : NULL;
    g->io.mean = mean ? &g->mean : NULL;
    g->io.rstd = rstd ? &g->rstd : NULL;
    g->io.weight = g->weight.all ? &g->weight.tensor : NULL;
    g->io.bias = g->bias.all ? &g->bias.tensor : NULL;
}

int big_group_takes(flow *f) {
    large_group g;
    int64_t row, first, count;
    describe(&g, f);
    return !lnorm_plan_init(&g.plan, &g.op, &g.io, NULL) && lnorm_plan_segment(&g.plan, 0, 0, &row, &first, &count);
}

/* -- Segments ----------------------------------------------------------------------------------------------------- */

/* Offset, in an array of these strides, of an index of a space: of a group, or of an element of one. */
static int64_t offset_of(const lnorm_problem *problem, const lnorm_space *space, const int64_t *stride,
                         int64_t index) {
    int64_t offset = 0;
    for (int i = space->axes; i-- > 0;) {
        int axis = space->axis[i];
        offset += index % problem->extent[axis] * stride[axis];
        index /= problem->extent[axis];
    }
    return offset;
}

/* Elements first .. first+count-1 of a group. */
static int move_segment(const large_group *g, const view *v, int64_t group, int64_t first, int64_t count, int writes) {
    int64_t run = group_run(g->problem, v->stride);
    int64_t place = offset_of(g->problem, &g->problem->group, v->stride, group);
    char *buffer = g->segment;
    int status = DONE;
    for (int64_t n; count > 0 && !status; first += n, count -= n) {
        int64_t at = place + offset_of(g->problem, &g->problem->element, v->stride, first);
        n = run - first % run < count ? run - first % run : count;
        status = writes ? store_write(&v->store, buffer, at, n) : store_read(&v->store, buffer, at, n);
        buffer += (size_t)n * v->store.size;
    }
    return status;
}

/* An address of which only `first` and what follows is used. */
static void *before(char *buffer, int64_t first, lnorm_dtype dtype) {
    return (void *)((uintptr_t)buffer - (uintptr_t)first * (dtype.bits / 8u));
}

/* Spreads a parameter out over a segment of the group. */
static void spread(const large_group *g, const parameter *p, const char *base, int64_t first, int64_t count) {
    const int64_t *stride = g->problem->operand[p->operand].stride;
    int inner = g->problem->element.axis[g->problem->element.axes - 1];
    int64_t run = g->problem->extent[inner], size = p->all->dtype.bits / 8;
    char *to = p->buffer;
    for (int64_t n; count > 0; first += n, count -= n) {
        int64_t place = offset_of(g->problem, &g->problem->element, stride, first);
        n = run - first % run < count ? run - first % run : count;
        for (int64_t i = 0; i < n; i++, to += size)
            memcpy(to, base + (place + i * stride[inner]) * size, (size_t)size);
    }
}

/* The parameter's elements for a segment: where they lie, or spread out. */
static void bring_parameter(const large_group *g, parameter *p, int64_t group, int64_t first, int64_t count) {
    if (!p->all)
        return;
    const int64_t *stride = g->problem->operand[p->operand].stride;
    char *base = (char *)p->all->data;
    base += offset_of(g->problem, &g->problem->group, stride, group) * (p->all->dtype.bits / 8);
    p->tensor.data = p->buffer ? before(p->buffer, first, p->all->dtype) : base;
    if (p->buffer)
        spread(g, p, base, first, count);
}

/* -- Running ------------------------------------------------------------------------------------------------------ */

static int run_task(large_group *g, int64_t group, int phase, int64_t task) {
    const stream *x = &g->flow->stream[0], *y = flow_stream(g->flow, LNORM_Y);
    int64_t row, first, count;
    if (!lnorm_plan_segment(&g->plan, phase, task, &row, &first, &count))
        return report_failure("task %lld of phase %d is not about one segment", (long long)task, phase);
    int status = move_segment(g, &x->work, group, first, count, 0);
    if (status)
        return status;
    g->x.data = g->y.data = before(g->segment, first, x->dtype);
    bring_parameter(g, &g->weight, group, first, count);
    bring_parameter(g, &g->bias, group, first, count);
    lnorm_status ran = lnorm_plan_run(&g->plan, &g->io, phase, task);
    if (ran)
        return report_failure("%s", lnorm_status_string(ran));
    if (y && phase == lnorm_plan_phases(&g->plan) - 1)
        status = move_segment(g, &y->work, group, first, count, 1);
    return status;
}

/* In increasing order of segments, so that y can go to a pipe. */
static int run_phase(large_group *g, int64_t group, int phase) {
    int64_t tasks = lnorm_plan_tasks(&g->plan, phase), row, begin = 0, end = 0, count;
    int status = DONE;
    if (tasks && lnorm_plan_segment(&g->plan, phase, 0, &row, &begin, &count))
        lnorm_plan_segment(&g->plan, phase, tasks - 1, &row, &end, &count);
    for (int64_t i = 0; i < tasks && !status; i++) {
        status = run_task(g, group, phase, begin > end ? tasks - 1 - i : i);
        progress(g->flow->done);
    }
    return status;
}

static int run_group(large_group *g, int64_t group) {
    static const enum lnorm_operand statistics[] = {LNORM_MEAN, LNORM_RSTD};
    int status = DONE, phases = lnorm_plan_phases(&g->plan);
    int64_t bytes = g->length * (int64_t)g->flow->stream[0].work.store.size;
    for (int phase = 0; phase < phases && !status; phase++) {
        status = run_phase(g, group, phase);
        g->flow->done += bytes / phases;
    }
    for (int i = 0; i < 2 && !status; i++) {
        const stream *s = flow_stream(g->flow, statistics[i]);
        if (s)
            status = store_write(&s->work.store, &g->statistic[i],
                                 offset_of(g->problem, &g->problem->group, s->work.stride, group), 1);
    }
    return status;
}

/* Elements of the longest segment. */
static int64_t longest(const lnorm_plan *plan) {
    int64_t most = 0, row, first, count;
    for (int phase = 0; phase < lnorm_plan_phases(plan); phase++)
        for (int64_t task = 0; task < lnorm_plan_tasks(plan, phase); task++)
            if (lnorm_plan_segment(plan, phase, task, &row, &first, &count) && count > most)
                most = count;
    return most;
}

/* Needed unless the parameter is one element, or lies in memory as the group does. */
static int needs_buffer(const large_group *g, const parameter *p) {
    return p->all && p->shape > 1 && group_run(g->problem, g->problem->operand[p->operand].stride) < g->length;
}

static int allocate(large_group *g) {
    size_t length = (size_t)longest(&g->plan);
    g->io.workspace_size = lnorm_plan_workspace(&g->plan);
    g->io.workspace = malloc(g->io.workspace_size + 1);
    g->segment = malloc(length * (g->x.dtype.bits / 8));
    if (needs_buffer(g, &g->weight))
        g->weight.buffer = malloc(length * (g->weight.all->dtype.bits / 8));
    if (needs_buffer(g, &g->bias))
        g->bias.buffer = malloc(length * (g->bias.all->dtype.bits / 8));
    if (!g->io.workspace || !g->segment || (needs_buffer(g, &g->weight) && !g->weight.buffer) ||
        (needs_buffer(g, &g->bias) && !g->bias.buffer))
        return report_failure("not enough memory for segments of %zu elements", length);
    return DONE;
}

int big_group_run(flow *f) {
    large_group g;
    lnorm_error error = LNORM_ERROR_INIT;
    describe(&g, f);
    int status = lnorm_plan_init(&g.plan, &g.op, &g.io, &error) ? report_failure("%s", error.message) : allocate(&g);
    for (int64_t group = 0; group < f->problem->group.count && !status; group++)
        status = run_group(&g, group);
    free(g.io.workspace);
    free(g.segment);
    free(g.weight.buffer);
    free(g.bias.buffer);
    return status;
}
