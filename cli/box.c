#include "box.h"
#include "verb.h"

#include <stdlib.h>
#include <string.h>

/* The view's axes by increasing stride. */
static int order_of(const frame *f, const view *v, int order[LNORM_MAX_AXES]) {
    int count = 0;
    for (int a = 0; a < f->axes; a++) {
        int i = count;
        if (!v->stride[a])
            continue;
        for (; i && v->stride[order[i - 1]] > v->stride[a]; i--)
            order[i] = order[i - 1];
        order[i] = a;
        count++;
    }
    return count;
}

int64_t box_elements(const frame *f, const int64_t *extent) {
    int64_t elements = 1;
    for (int a = 0; a < f->axes; a++)
        elements *= extent[a];
    return elements;
}

int64_t box_count(const frame *f, const int64_t *extent, const view *v) {
    int64_t count = 1;
    for (int a = 0; a < f->axes; a++)
        count *= v->stride[a] ? extent[a] : 1;
    return count;
}

/* -- Runs --------------------------------------------------------------------------------------------------------- */

/* Elements that lie one after the other in the store; *axes: how many of the axes in `order` they go through. */
static int64_t run_of(const int64_t *extent, const view *v, const int *order, int count, int *axes) {
    int64_t run = 1;
    for (*axes = 0; *axes < count; ++*axes) {
        int a = order[*axes];
        if (extent[a] == 1)
            continue;
        if (v->stride[a] != run)
            break;
        run *= extent[a];
    }
    return run;
}

int64_t box_per_call(const frame *f, const int64_t *extent, const view *v) {
    int order[LNORM_MAX_AXES], axes, count = order_of(f, v, order);
    int64_t elements = box_count(f, extent, v), run = run_of(extent, v, order, count, &axes);
    return elements ? box_elements(f, extent) / (elements / run) : INT64_MAX;
}

/* The runs of a box, in the order of the store. */
typedef struct runs {
    const box *box;
    const view *view;
    int order[LNORM_MAX_AXES], count, through;
    int64_t at[LNORM_MAX_AXES];
    int64_t place, length, left; /* of the next run; how many there are from it on */
} runs;

static runs runs_of(const frame *f, const box *b, const view *v) {
    runs r = {.box = b, .view = v};
    r.count = order_of(f, v, r.order);
    r.length = run_of(b->extent, v, r.order, r.count, &r.through);
    r.left = r.length ? box_count(f, b->extent, v) / r.length : 0;
    for (int a = 0; a < f->axes; a++)
        r.place += b->start[a] * v->stride[a];
    return r;
}

static void next_run(runs *r) {
    r->left--;
    for (int i = r->through; i < r->count; i++) {
        int a = r->order[i];
        r->place += r->view->stride[a];
        if (++r->at[a] < r->box->extent[a])
            return;
        r->place -= r->view->stride[a] * r->box->extent[a];
        r->at[a] = 0;
    }
}

int box_read(const frame *f, const box *b, const view *from, void *buffer) {
    char *to = buffer;
    int status = DONE;
    for (runs r = runs_of(f, b, from); r.left && !status; next_run(&r)) {
        status = store_read(&from->store, to, r.place, r.length);
        to += (size_t)r.length * from->store.size;
    }
    return status;
}

int box_write(const frame *f, const box *b, const view *to, const void *buffer) {
    const char *from = buffer;
    int status = DONE;
    for (runs r = runs_of(f, b, to); r.left && !status; next_run(&r)) {
        status = store_write(&to->store, from, r.place, r.length);
        from += (size_t)r.length * to->store.size;
    }
    return status;
}

void box_strides(const frame *f, const int64_t *extent, const view *v, int64_t *stride) {
    int order[LNORM_MAX_AXES], count = order_of(f, v, order);
    int64_t step = 1;
    memset(stride, 0, LNORM_MAX_AXES * sizeof *stride);
    for (int i = 0; i < count; i++) {
        stride[order[i]] = step;
        step *= extent[order[i]];
    }
}

/* -- Choosing ----------------------------------------------------------------------------------------------------- */

/* The axis whose growth makes a view's runs longer: the first, by stride, that the box does not have whole; -1. */
static int limiting_axis(const frame *f, const int64_t *tile, const view *v) {
    int order[LNORM_MAX_AXES], count = order_of(f, v, order);
    for (int i = 0; i < count; i++)
        if (tile[order[i]] < f->extent[order[i]])
            return order[i];
    return -1;
}

/* Grows the box for the view that is worst off, twofold or by as much as is left. False: no more to gain. */
static int grow(const frame *f, const view *const *views, int count, int64_t budget, int64_t enough, int64_t *tile) {
    int64_t worst = enough, volume = 1;
    int axis = -1;
    for (int i = 0; i < count; i++) {
        int64_t per_call = box_per_call(f, tile, views[i]);
        int limiting = limiting_axis(f, tile, views[i]);
        if (per_call < worst && limiting >= 0) {
            worst = per_call;
            axis = limiting;
        }
    }
    if (axis < 0)
        return 0;
    for (int a = 0; a < f->axes; a++)
        volume *= a != axis && tile[a] ? tile[a] : 1;
    int64_t most = f->extent[axis] < budget / volume ? f->extent[axis] : budget / volume;
    if (most <= tile[axis])
        return 0;
    tile[axis] = most / 2 < tile[axis] ? most : 2 * tile[axis];
    return 1;
}

void box_choose(const frame *f, uint32_t whole, const view *const *views, int count, int64_t budget, int64_t enough,
                int64_t *tile) {
    for (int a = 0; a < f->axes; a++)
        tile[a] = whole >> a & 1 ? f->extent[a] : 1;
    while (grow(f, views, count, budget, enough, tile))
        ;
}

/* Sets the extents of the box at b->start; false where there is nothing. (A tile of 0 is a whole axis of extent 0:
 * boxes without elements, but with groups.) */
static int clip(const frame *f, const int64_t *tile, box *b) {
    for (int a = 0; a < f->axes; a++) {
        int64_t left = f->extent[a] - b->start[a];
        b->extent[a] = left < tile[a] ? left : tile[a];
        if (tile[a] && b->extent[a] <= 0)
            return 0;
    }
    return 1;
}

int box_next(const frame *f, const int64_t *tile, box *b) {
    int a = f->axes;
    if (!b->number++)
        return clip(f, tile, b);
    while (a-- > 0) {
        b->start[a] += tile[a];
        if (tile[a] && b->start[a] < f->extent[a])
            return clip(f, tile, b);
        b->start[a] = 0;
    }
    return 0;
}

void frame_strides(const frame *f, uint32_t last, int64_t *stride) {
    int64_t step = 1;
    for (int part = 1; part >= 0; part--)
        for (int a = f->axes; a-- > 0;)
            if ((int)(last >> a & 1) == part) {
                stride[a] = step;
                step *= f->extent[a];
            }
}

/* Tests make it small, by the environment variable LNORM_CLI_BUDGET, so that small arrays go in many boxes. */
int64_t box_budget(void) {
    const char *text = getenv("LNORM_CLI_BUDGET");
    long long bytes = text ? atoll(text) : 0;
    return bytes > 0 ? bytes : 16 << 20;
}
