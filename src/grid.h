/* Work in tasks, and the tree of affine gradients: what the rows engine and the general form share. */
#ifndef LNORM_GRID_H
#define LNORM_GRID_H

#include "arithmetic.h"

/* Items 0 .. count-1 in tasks of `each` items (the last may have fewer). */
typedef struct lnorm_grid {
    int64_t count, each;
} lnorm_grid;

enum { LNORM_TASK_ELEMENTS = 1 << 15 }; /* fewer do not pay for waking a thread */

static inline int64_t lnorm_parts(int64_t count, int64_t each) {
    return count / each + (count % each != 0);
}

/* Tasks of at most about LNORM_TASK_ELEMENTS elements, of a multiple of `unit` items, as equal as that allows. A few
 * are made 2^k, which go evenly into 2^j threads; where there are many it does not show, and each has a cost. */
static inline lnorm_grid lnorm_grid_of(int64_t count, int64_t elements_per_item, int64_t unit) {
    const int few = 16;
    int64_t items = LNORM_TASK_ELEMENTS / (elements_per_item > 0 ? elements_per_item : 1), tasks;
    if (items < unit)
        return (lnorm_grid){count, items > 0 ? items : 1};
    tasks = lnorm_parts(count, items);
    while (tasks < few && tasks & (tasks - 1))
        tasks += tasks & -tasks;
    items = count > tasks ? lnorm_parts(count, tasks) : 1;
    return (lnorm_grid){count, lnorm_parts(items, unit) * unit};
}

static inline int64_t lnorm_grid_tasks(lnorm_grid grid) {
    return lnorm_parts(grid.count, grid.each);
}

static inline int64_t lnorm_grid_begin(lnorm_grid grid, int64_t task) {
    return task * grid.each;
}

static inline int64_t lnorm_grid_end(lnorm_grid grid, int64_t task) {
    int64_t begin = task * grid.each;
    return grid.count - begin < grid.each ? grid.count : begin + grid.each;
}

/* The tree over blocks of 64 outer indices, for `width` columns at once. A stack of sums of aligned runs of blocks, one
 * for each set bit of `blocks`, largest first, and on top of it the block that is being added up. Below B blocks the
 * stack is never higher than the binary length of B. */
typedef struct lnorm_strip {
    double *sums; /* [levels][pitch] */
    int64_t width, pitch;
    uint64_t blocks;
    int height;
} lnorm_strip;

typedef void lnorm_add(double *sum, const double *term, int64_t count);

static inline int lnorm_strip_levels(int64_t blocks) {
    int levels = 1;
    while (blocks >>= 1)
        levels++;
    return levels;
}

/* The next block's sums, which start at +0.0. */
static inline double *lnorm_strip_block(lnorm_strip *strip) {
    double *sums = strip->sums + strip->height * strip->pitch;
    for (int64_t j = 0; j < strip->width; j++)
        sums[j] = 0.0;
    return sums;
}

/* The block is complete: it and equally long runs left of it become one. */
static inline void lnorm_strip_push(lnorm_strip *strip, lnorm_add *add) {
    double *top = strip->sums + strip->height * strip->pitch;
    strip->height++;
    for (uint64_t blocks = strip->blocks++; blocks & 1; blocks >>= 1) {
        top -= strip->pitch;
        add(top, top + strip->pitch, strip->width);
        strip->height--;
    }
}

/* The sum of all blocks, merged from the right, in the lowest place; +0.0 where there was none. */
static inline double *lnorm_strip_total(lnorm_strip *strip, lnorm_add *add) {
    if (strip->height == 0)
        return lnorm_strip_block(strip);
    for (; strip->height > 1; strip->height--) {
        double *left = strip->sums + (strip->height - 2) * strip->pitch;
        add(left, left + strip->pitch, strip->width);
    }
    return strip->sums;
}

#endif
