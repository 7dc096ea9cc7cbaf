/* Boxes of an array that is too large for memory: which part of it to take at once, and moving that part between a
 * store and a buffer, in as few and long calls as can be.
 *
 * A frame is a set of axes with their extents. A view says where the frame's elements lie in a store, by a stride for
 * each axis (0: the view has no such axis). A box is a range of each axis. In a buffer, a box is packed: its axes in
 * the order in which the view has them in the store, without gaps. */
#ifndef LNORM_CLI_BOX_H
#define LNORM_CLI_BOX_H

#include "problem.h"
#include "store.h"

typedef struct frame {
    int axes;
    int64_t extent[LNORM_MAX_AXES];
} frame;

typedef struct view {
    store store;
    int64_t stride[LNORM_MAX_AXES]; /* in elements, >= 0 */
} view;

typedef struct box {
    int64_t start[LNORM_MAX_AXES], extent[LNORM_MAX_AXES];
    int64_t number; /* from 1 on */
} box;

/* Elements of the frame in a box of these extents; and those that the view has. */
int64_t box_elements(const frame *f, const int64_t *extent);
int64_t box_count(const frame *f, const int64_t *extent, const view *v);

/* Elements of the frame that a box has for each call that moves it between this view's store and a buffer. */
int64_t box_per_call(const frame *f, const int64_t *extent, const view *v);

/* Chooses the extents of boxes: all of the axes `whole` (bits), and of the others so much that each call moves many
 * elements for every view, up to `enough`, as far as `budget` elements allow. */
void box_choose(const frame *f, uint32_t whole, const view *const *views, int count, int64_t budget, int64_t enough,
                int64_t *tile);

/* Goes through all boxes, in row-major order, starting from a struct of zeros. False: there is none left. */
int box_next(const frame *f, const int64_t *tile, box *b);

/* Strides of a packed box. */
void box_strides(const frame *f, const int64_t *extent, const view *v, int64_t *stride);

/* Moves a box; an exit status. */
int box_read(const frame *f, const box *b, const view *from, void *buffer);
int box_write(const frame *f, const box *b, const view *to, const void *buffer);

/* Row-major strides with the axes of `last` (bits) behind all others. */
void frame_strides(const frame *f, uint32_t last, int64_t *stride);

/* The bytes that a buffer of elements may take: 16 MB. */
int64_t box_budget(void);

#endif
