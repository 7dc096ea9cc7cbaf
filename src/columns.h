/* How columns are cut into strips and tasks: shared by the engine (columns.c) and what it runs (columns_*.c).
 *
 * A column is a group whose neighbour lies next to it in memory: layer norm over axis 0, batch norm of [N, C], norms of
 * channels-last tensors. Vectors then lie across columns, and nothing is transposed to write y. Group norm of
 * channels-last tensors has several columns in a group, its channels. */
#ifndef LNORM_COLUMNS_H
#define LNORM_COLUMNS_H

#include "grid.h"
#include "problem.h"
#include "stream.h"

enum {
    LNORM_COLUMNS_LEAST = 4,   /* fewer are less than a vector: the general form transposes them */
    LNORM_STRIP_COLUMNS = 256, /* columns of a strip at most */
    LNORM_SUM_COLUMNS = 128,   /* where each is a group, whose 16 lanes are kept; fewer are too few lines of a row */
    LNORM_STRIP_SUMS = 2048,   /* doubles of the trees, for each of two sums: 16 KiB on the stack */
    LNORM_GRADIENT_COLUMNS = 64, /* backward there are four sums: half of both */
    LNORM_CHANNEL_ROWS = 1 << 19, /* of groups of several columns, at most: channels.c */
    LNORM_CHANNEL_RUNS = 1 << 16  /* and in the fast arithmetic */
};

typedef struct lnorm_columns_form {
    int group_axis;   /* not reduced; groups lie side by side along it. -1: each lies by itself */
    int channel_axis; /* reduced; a group's columns lie side by side along it. -1: a group is one column */
    int64_t channels; /* columns of a group */
    int64_t groups;   /* side by side: a line */
    int64_t lines;
    int64_t each;     /* groups of a strip */
    lnorm_space rows; /* the reduced axes but the channels */
} lnorm_columns_form;

/* What has x's shape has this stride along an axis. */
static inline int lnorm_columns_step(const lnorm_problem *problem, int axis, int64_t stride) {
    static const enum lnorm_operand large[] = {LNORM_X, LNORM_Y, LNORM_DY, LNORM_DX};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        if (lnorm_has(problem, large[i]) && problem->operand[large[i]].stride[axis] != stride)
            return 0;
    return 1;
}

/* Of at most `most` groups of several columns: strips of a line are alike, and of whole vectors where that can be. */
static inline int64_t lnorm_even_groups(const lnorm_columns_form *form, int64_t most) {
    const int64_t even = form->channels & -form->channels, unit = even < 16 ? 16 / even : 1;
    if (most < unit || form->groups < unit)
        return most;
    most -= most % unit;
    return lnorm_parts(lnorm_parts(form->groups, lnorm_parts(form->groups, most)), unit) * unit;
}

/* Groups of a strip: rows are cut as rarely as the trees allow. */
static inline int64_t lnorm_strip_groups(const lnorm_problem *problem, const lnorm_columns_form *form) {
    int levels = lnorm_strip_levels(lnorm_parts(problem->element.count, LNORM_BLOCK));
    int64_t half = problem->pass == LNORM_BACKWARD ? 2 : 1, columns = LNORM_STRIP_SUMS / half / levels / 16 * 16;
    columns = columns < LNORM_SUM_COLUMNS / half ? columns : LNORM_SUM_COLUMNS / half;
    if (form->channels > 1)
        return lnorm_even_groups(form, (half > 1 ? columns : LNORM_STRIP_COLUMNS) / form->channels);
    return columns;
}

/* False where the problem is not one of columns. */
static inline int lnorm_columns_of(const lnorm_problem *problem, lnorm_columns_form *form) {
    const lnorm_space *group = &problem->group, *element = &problem->element;
    int last = group->axes ? group->axis[group->axes - 1] : -1;
    *form = (lnorm_columns_form){.group_axis = last, .channel_axis = -1, .channels = 1, .rows = *element};
    if (element->axes == 0)
        return 0;
    if (last < 0 || !lnorm_columns_step(problem, last, 1)) {
        int channel = element->axis[0];
        form->channel_axis = channel;
        form->channels = problem->extent[channel];
        form->rows = lnorm_space_of(problem, problem->reduced & ~(1u << channel));
        if (element->axes < 2 || !lnorm_columns_step(problem, channel, 1) || form->channels > LNORM_STRIP_COLUMNS ||
            element->count == 0 || form->rows.count > (problem->fast ? LNORM_CHANNEL_RUNS : LNORM_CHANNEL_ROWS))
            return 0;
        if (last >= 0 && !lnorm_columns_step(problem, last, form->channels))
            form->group_axis = -1;
    }
    if (form->channels == 1 && problem->extent[form->group_axis] < LNORM_COLUMNS_LEAST)
        return 0;
    form->groups = form->group_axis < 0 ? 1 : problem->extent[form->group_axis];
    form->lines = form->groups ? group->count / form->groups : 0;
    form->each = lnorm_strip_groups(problem, form);
    return form->each > 0;
}

/* weight or bias has one value per column, or (by_row) one per row; or there is none. */
static inline int lnorm_affine_is(const lnorm_problem *problem, const lnorm_columns_form *form,
                                  enum lnorm_operand operand, int by_row) {
    const int64_t *stride = problem->operand[operand].stride;
    if (!lnorm_has(problem, operand))
        return 1;
    if (by_row)
        return form->channel_axis < 0 && stride[form->group_axis] == 0;
    for (int i = 0; i < form->rows.axes; i++)
        if (stride[form->rows.axis[i]] != 0)
            return 0;
    return 1;
}

/* weight and bias, both. */
static inline int lnorm_affine_by(const lnorm_problem *problem, const lnorm_columns_form *form, int by_row) {
    return lnorm_affine_is(problem, form, LNORM_WEIGHT, by_row) && lnorm_affine_is(problem, form, LNORM_BIAS, by_row);
}

/* Strips in tasks. */
static inline lnorm_grid lnorm_grid_of_strips(const lnorm_problem *problem, const lnorm_columns_form *form) {
    int64_t count = problem->element.count < LNORM_TASK_ELEMENTS ? problem->element.count : LNORM_TASK_ELEMENTS;
    return lnorm_grid_of(form->lines * lnorm_parts(form->groups, form->each), count * form->each, 1);
}

#endif
