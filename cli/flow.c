#include "flow.h"
#include "relay.h"
#include "report.h"
#include "verb.h"

#include <string.h>

enum {
    ENOUGH = 1 << 20, /* bytes of X per call beyond which longer calls gain nothing, and the caches do */
    SHORT = 1024,     /* below, calls cost more than a detour */
    PAGE = 4096
};

const stream *flow_stream(const flow *f, enum lnorm_operand operand) {
    for (int i = 0; i < f->streams; i++)
        if (f->stream[i].operand == operand)
            return &f->stream[i];
    return NULL;
}

static void add_stream(flow *f, enum lnorm_operand operand, lnorm_dtype dtype, store place) {
    stream *s = &f->stream[f->streams++];
    *s = (stream){.operand = operand, .dtype = dtype};
    s->file.store = place;
    memcpy(s->file.stride, f->problem->operand[operand].stride, sizeof s->file.stride);
    s->work = s->file;
}

static void add_output(flow *f, enum lnorm_operand operand, const lnorm_tensor *tensor, lnorm_file_writer *writer) {
    if (writer)
        add_stream(f, operand, tensor->dtype, store_of_writer(writer, tensor->dtype));
}

static flow flow_of(const lnorm_problem *problem, const lnorm_io *io, const flow_ends *ends) {
    flow f = {.problem = problem, .io = io, .frame = {.axes = problem->axes}};
    memcpy(f.frame.extent, problem->extent, sizeof f.frame.extent);
    f.whole = problem->statistics == LNORM_COMPUTED ? problem->reduced : 0;
    add_stream(&f, LNORM_X, io->x->dtype, store_of_file(ends->x));
    add_output(&f, LNORM_Y, io->y, ends->y);
    add_output(&f, LNORM_MEAN, io->mean, ends->mean);
    add_output(&f, LNORM_RSTD, io->rstd, ends->rstd);
    f.executor = ends->executor;
    f.budget = box_budget();
    for (int i = 0; i < f.streams; i++)
        if (box_budget() / (int64_t)f.stream[i].file.store.size < f.budget)
            f.budget = box_budget() / (int64_t)f.stream[i].file.store.size;
    if (f.frame.axes > LNORM_MAX_NDIM && f.budget > 1 << LNORM_MAX_NDIM)
        f.budget = 1 << LNORM_MAX_NDIM; /* at most 16 axes of such a box are longer than 1, as many as a tensor has */
    return f;
}

/* -- Which way ---------------------------------------------------------------------------------------------------- */

/* Through a temporary file, with these strides. */
static void detour(stream *s, const int64_t *stride) {
    s->detour = 1;
    memcpy(s->work.stride, stride, sizeof s->work.stride);
}

static void choose_tile(flow *f) {
    const view *views[MAX_STREAMS];
    for (int i = 0; i < f->streams; i++)
        views[i] = &f->stream[i].work;
    box_choose(&f->frame, f->whole, views, f->streams, f->budget, ENOUGH / (int64_t)f->stream[0].file.store.size,
               f->tile);
}

/* The array that boxes find most scattered; NULL where none is worth a detour. */
static stream *scattered(flow *f) {
    int64_t least = SHORT / (int64_t)f->stream[0].file.store.size;
    stream *found = NULL;
    if (box_elements(&f->frame, f->tile) == box_elements(&f->frame, f->frame.extent))
        return NULL;
    for (int i = 0; i < f->streams; i++) {
        stream *s = &f->stream[i];
        int64_t per_call = box_per_call(&f->frame, f->tile, &s->work);
        if (per_call < least && !s->detour && (s->operand == LNORM_X || s->operand == LNORM_Y)) {
            least = per_call;
            found = s;
        }
    }
    return found;
}

static void plan_boxes(flow *f) {
    int64_t grouped[LNORM_MAX_AXES];
    stream *s;
    frame_strides(&f->frame, f->problem->reduced, grouped);
    choose_tile(f);
    while ((s = scattered(f))) {
        detour(s, grouped);
        choose_tile(f);
    }
    for (int i = 1; i < f->streams; i++) {
        s = &f->stream[i];
        int in_order = box_per_call(&f->frame, f->tile, &s->work) == box_elements(&f->frame, f->tile);
        if (!s->detour && !lnorm_file_writer_seekable(s->file.store.writer) && !in_order)
            detour(s, s->file.stride);
    }
}

/* Whether segments of a group can be moved in long runs, and in order where it has to be. */
static int lies_in_groups(const flow *f, const stream *s, const int64_t *grouped) {
    if (s->operand != LNORM_X && !lnorm_file_writer_seekable(s->file.store.writer))
        return !memcmp(s->file.stride, grouped, (size_t)f->frame.axes * sizeof *grouped);
    return group_run(f->problem, s->file.stride) * (int64_t)s->file.store.size >= PAGE;
}

static void plan_groups(flow *f) {
    int64_t grouped[LNORM_MAX_AXES];
    frame_strides(&f->frame, f->problem->reduced, grouped);
    for (int i = 0; i < f->streams; i++) {
        stream *s = &f->stream[i];
        if ((s->operand == LNORM_X || s->operand == LNORM_Y) && !lies_in_groups(f, s, grouped))
            detour(s, grouped);
    }
}

/* -- Detours ------------------------------------------------------------------------------------------------------ */

static int64_t stream_bytes(const flow *f, const stream *s) {
    return box_count(&f->frame, f->frame.extent, &s->file) * (int64_t)s->file.store.size;
}

static int open_detours(flow *f) {
    int64_t total = stream_bytes(f, &f->stream[0]);
    int status = DONE;
    for (int i = 0; i < f->streams; i++)
        total += f->stream[i].detour ? stream_bytes(f, &f->stream[i]) : 0;
    progress_begin("apply", total);
    for (int i = 0; i < f->streams && !status; i++)
        if (f->stream[i].detour)
            status = store_spool(&f->stream[i].work.store, f->stream[i].file.store.size);
    if (!status && f->stream[0].detour)
        status = relay(&f->frame, &f->stream[0].work, &f->stream[0].file, &f->done);
    return status;
}

/* From the temporary file to where the output goes. */
static int deliver(flow *f, const stream *s) {
    view row_major = s->file;
    if (!memcmp(s->work.stride, s->file.stride, sizeof s->work.stride))
        return store_copy(&s->file.store, &s->work.store, box_count(&f->frame, f->frame.extent, &s->file));
    if (lnorm_file_writer_seekable(s->file.store.writer))
        return relay(&f->frame, &s->file, &s->work, &f->done);
    int status = store_spool(&row_major.store, s->file.store.size);
    if (!status)
        status = relay(&f->frame, &row_major, &s->work, &f->done);
    if (!status)
        status = store_copy(&s->file.store, &row_major.store, box_count(&f->frame, f->frame.extent, &s->file));
    store_close(&row_major.store);
    return status;
}

/* Whether any output has elements: a shape of many bytes of nothing, as [0, 2^40], costs nothing. */
static int writes_elements(const flow *f) {
    for (int i = 1; i < f->streams; i++)
        if (stream_bytes(f, &f->stream[i]))
            return 1;
    return 0;
}

int flow_run(const lnorm_plan *plan, const lnorm_io *io, const flow_ends *ends) {
    flow f = flow_of(&((const lnorm_plan_form *)(const void *)plan)->problem, io, ends);
    if (!writes_elements(&f))
        return DONE;
    int large = f.whole && f.problem->element.count > f.budget && big_group_takes(&f);
    if (large)
        plan_groups(&f);
    else
        plan_boxes(&f);
    int status = open_detours(&f);
    if (!status)
        status = large ? big_group_run(&f) : slab_run(&f);
    for (int i = 1; i < f.streams && !status; i++)
        if (f.stream[i].detour)
            status = deliver(&f, &f.stream[i]);
    for (int i = 0; i < f.streams; i++)
        if (f.stream[i].detour)
            store_close(&f.stream[i].work.store);
    progress_end();
    return status;
}
