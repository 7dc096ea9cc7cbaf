/* The engine of the general form: any axes, strides and narrow element types, forward and backward. What it takes,
 * workspace, tasks. The rest is in general_*.c, the loops over vectors are an instruction set's (kernels/loops.h). */
#include "compact.inc"

#include "general.h"
#include "kernels/loops.h"

static int general_takes(const lnorm_problem *problem) {
    return !problem->wide && problem->pass <= LNORM_BACKWARD;
}

static int wants_affine(const lnorm_problem *problem) {
    return lnorm_has(problem, LNORM_DWEIGHT) || lnorm_has(problem, LNORM_DBIAS);
}

/* Partials, if they are to be added up; records are worth keeping where they cost a pass over x and dweight or dx reads
 * them after phase 0. */
static size_t general_workspace(const lnorm_problem *problem) {
    lnorm_affine_job job;
    if (lnorm_has_partials(problem, &job))
        return job.outer.axes ? (size_t)(problem->group.count * job.each.count) * sizeof(ln_pair) : 0;
    if (problem->pass != LNORM_BACKWARD || problem->statistics != LNORM_COMPUTED || !lnorm_has(problem, LNORM_DWEIGHT))
        return 0;
    if ((uint64_t)problem->group.count > SIZE_MAX / 2 / sizeof(ln_record))
        return 0;
    return (size_t)problem->group.count * sizeof(ln_record);
}

/* By given statistics x is read once, and best as it lies: channels of [N, C, H, W], each with elements in all samples,
 * go some at a time. */
LNORM_OUT_OF_LINE static lnorm_grid ln_grid_of_groups(const lnorm_problem *problem) {
    const int64_t *stride = problem->operand[LNORM_X].stride;
    const lnorm_space *group = &problem->group, *element = &problem->element;
    lnorm_grid grid = lnorm_grid_of_bundles(problem, group, element, element->count);
    if (problem->pass == LNORM_FORWARD && problem->statistics != LNORM_COMPUTED && grid.each < LN_CHANNEL_RUNS &&
        group->axes && element->axes && stride[element->axis[0]] > stride[group->axis[group->axes - 1]])
        grid.each = LN_CHANNEL_RUNS;
    return grid;
}

static int64_t general_tasks(const lnorm_problem *problem, int phase) {
    lnorm_affine_job job[2];
    int64_t groups = lnorm_grid_tasks(ln_grid_of_groups(problem)), tasks = 0;
    const int partials = lnorm_has_partials(problem, &job[0]), at_once = partials && !job[0].outer.axes;
    if (problem->pass == LNORM_FORWARD)
        return phase == 0 ? groups : 0;
    if (phase == 0)
        return partials || general_workspace(problem) ? groups : 0;
    if (phase == 2)
        return lnorm_has(problem, LNORM_DX) && !at_once ? groups : 0;
    if (!wants_affine(problem) || at_once)
        return 0;
    for (int i = lnorm_affine_jobs(problem, job); i-- > 0;)
        tasks += lnorm_affine_tasks(problem, &job[i]);
    return tasks;
}

/* Groups whose elements are closer to each other than to the next group's: not more together than so many elements, so
 * that their second reading, if there is one, finds them in the cache. */
static int ln_lanes_together(const lnorm_problem *problem, int axis, int lanes) {
    const lnorm_space *element = &problem->element;
    const int64_t *stride = problem->operand[LNORM_X].stride;
    const int64_t elements = problem->pass == LNORM_FORWARD ? LNORM_TASK_ELEMENTS : 16 * LNORM_BLOCK;
    int64_t most = elements / (element->count > 0 ? element->count : 1);
    if (axis < 0 || element->axes == 0 || most >= lanes ||
        (problem->pass == LNORM_FORWARD && problem->statistics != LNORM_COMPUTED) ||
        ln_distance(stride[element->axis[element->axes - 1]]) >= ln_distance(stride[axis]))
        return lanes;
    return most > 0 ? (int)most : 1;
}

ln_bundle lnorm_bundle_of_groups(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data,
                                 int64_t group, int64_t end) {
    static const lnorm_space none = {0, {0}, 1};
    ln_bundle b = {.loops = loops, .problem = problem, .data = data, .space = &problem->element};
    b.lanes = ln_lanes_from(problem, &problem->group, group, end, &b.axis);
    b.lanes = ln_lanes_together(problem, b.axis, b.lanes);
    ln_set_base(&b, &problem->group, group, &none, 0);
    return b;
}

/* dx of a bundle. The workspace, where there is one, holds the records of phase 0. */
static void dx_of(const ln_bundle *b, int64_t group) {
    ln_record s[LNORM_BUNDLE];
    if (b->data->workspace)
        memcpy(s, (const ln_record *)b->data->workspace + group, (size_t)b->lanes * sizeof *s);
    else
        lnorm_groups_statistics(b, s);
    lnorm_groups_backward(b, s);
}

static void look_ahead(ln_bundle *b, int64_t next, int64_t end) {
    const lnorm_problem *problem = b->problem;
    if (next == (b->data->in_order ? problem->group.count : end))
        return;
    b->soon[0] = lnorm_offset(problem, LNORM_X, &problem->group, next) - b->base[LNORM_X];
    if (problem->pass == LNORM_BACKWARD)
        b->soon[1] = lnorm_offset(problem, LNORM_DY, &problem->group, next) - b->base[LNORM_DY];
}

static void groups_task(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data, int phase,
                        int64_t task) {
    lnorm_grid grid = ln_grid_of_groups(problem);
    int64_t begin = lnorm_grid_begin(grid, task), end = lnorm_grid_end(grid, task);
    lnorm_affine_job job;
    const int partials = lnorm_has_partials(problem, &job) && (data->workspace || !job.outer.axes);
    ln_bundle b;
    if (partials ? phase == 2 : phase == 0 && !data->workspace && problem->pass == LNORM_BACKWARD)
        return;
    for (int64_t group = begin; group < end; group += b.lanes) {
        b = lnorm_bundle_of_groups(loops, problem, data, group, end);
        look_ahead(&b, group + b.lanes, end);
        if (problem->pass == LNORM_FORWARD)
            lnorm_groups_forward(&b);
        else if (partials)
            lnorm_groups_gradients(&b, &job, group);
        else if (phase == 2)
            dx_of(&b, group);
        else
            lnorm_groups_statistics(&b, (ln_record *)data->workspace + group);
    }
}

static void general_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                        int phase, int64_t task) {
    lnorm_data used = *data;
    if (!general_workspace(problem))
        used.workspace = NULL;
    if (phase == 1)
        lnorm_affine_task(kernels->loops, problem, &used, task);
    else
        groups_task(kernels->loops, problem, &used, phase, task);
}

const lnorm_engine lnorm_engine_general = {"general",    general_takes, general_workspace,
                                           lnorm_phases, general_tasks, general_run};

#include "compact_end.inc"
