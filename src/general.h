/* How the general form cuts a problem into tasks: shared by its engine (general.c) and what it runs
 * (general_*.c).
 *
 * Phases of a backward pass: 0 records of all groups into the workspace, 1 affine gradients, 2 dx. But where what a
 * group contributes to dweight and dbias are sums over its elements, its partials (batch, group, instance norm),
 * everything of a group is computed in phase 0, while x and dy are in the caches: the partials are left in the
 * workspace, from which phase 1 adds them up, or are the entries themselves. */
#ifndef LNORM_GENERAL_H
#define LNORM_GENERAL_H

#include "grid.h"
#include "problem.h"

enum {
    LNORM_BUNDLE = 16,          /* groups, or affine entries, worked on side by side: a line of the cache in f32 */
    LN_CHANNEL_RUNS = 8,        /* runs of elements with one weight and bias that go together (bundle.h) */
    LNORM_STRIP_DOUBLES = 1024, /* column sums on the stack, for each gradient: 8 KiB */
    LNORM_STRIP_MAX = 128       /* columns of a strip at most, so that short rows still make tasks */
};

/* One sweep for affine gradients: dweight, dbias, or both where they are indexed by the same axes. */
typedef struct lnorm_affine_job {
    int dweight, dbias;
    lnorm_space entries; /* one index per entry */
    lnorm_space inner;   /* reduced axes that do not index it: summed by the tree */
    lnorm_space outer;   /* other axes that do not index it: summed in blocks of 64, and those by the binary tree */
    lnorm_space each;    /* reduced axes that index it: so many partials has a group */
    lnorm_space fixed;   /* no inner axes: entries are `fixed` x elements of a group, and go in strips of elements */
    int64_t strip;       /* entries of a strip; 0 where there are inner axes */
} lnorm_affine_job;

/* The sweeps that a problem needs: 0, 1 or 2 (general_affine.c). */
int lnorm_affine_jobs(const lnorm_problem *problem, lnorm_affine_job job[2]);

/* Whether affine gradients are made of partials, and then how. */
int lnorm_has_partials(const lnorm_problem *problem, lnorm_affine_job *job);

/* Neighbours along the last axis of `items` are nearer to each other than what they consist of, along the last axis of
 * `parts`: to walk one means to pass by the others. */
static inline int lnorm_side_by_side(const lnorm_problem *problem, const lnorm_space *items, const lnorm_space *parts) {
    const int64_t *stride = problem->operand[LNORM_X].stride;
    int64_t item, part;
    if (items->axes == 0 || parts->axes == 0)
        return 0;
    item = stride[items->axis[items->axes - 1]];
    part = stride[parts->axis[parts->axes - 1]];
    return (item < 0 ? -item : item) < (part < 0 ? -part : part);
}

/* Tasks are whole bundles where a smaller one would read as much memory. */
static inline lnorm_grid lnorm_grid_of_bundles(const lnorm_problem *problem, const lnorm_space *items,
                                               const lnorm_space *parts, int64_t elements_per_item) {
    lnorm_grid grid = lnorm_grid_of(items->count, elements_per_item, LNORM_BUNDLE);
    if (grid.each < LNORM_BUNDLE && lnorm_side_by_side(problem, items, parts))
        grid.each = LNORM_BUNDLE;
    return grid;
}

static inline lnorm_grid lnorm_grid_of_entries(const lnorm_problem *problem, const lnorm_affine_job *job) {
    int64_t outer = job->outer.count, inner = job->inner.count;
    int64_t terms = outer && inner > LNORM_TASK_ELEMENTS / outer ? LNORM_TASK_ELEMENTS : outer * inner;
    return lnorm_grid_of_bundles(problem, &job->entries, &job->inner, terms);
}

static inline int64_t lnorm_affine_tasks(const lnorm_problem *problem, const lnorm_affine_job *job) {
    if (job->strip)
        return job->fixed.count * lnorm_parts(problem->element.count, job->strip);
    return lnorm_grid_tasks(lnorm_grid_of_entries(problem, job));
}

#endif
