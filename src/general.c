/* The engine of the general form: any axes, strides and narrow element types, forward and backward. What is here is the
 * same for every instruction set: what it takes, workspace, tasks. */
#include "general.h"
#include "kernels.h"
#include "kernels/statistics.h"

static int general_takes(const lnorm_problem *problem) {
    return !problem->wide && (problem->pass == LNORM_FORWARD || (problem->pass == LNORM_BACKWARD && !problem->fast));
}

static int wants_affine(const lnorm_problem *problem) {
    return lnorm_has(problem, LNORM_DWEIGHT) || lnorm_has(problem, LNORM_DBIAS);
}

/* Records are worth keeping where they cost a pass over x and dweight or dx reads them after phase 0. */
static size_t general_workspace(const lnorm_problem *problem) {
    if (problem->pass != LNORM_BACKWARD || problem->statistics != LNORM_COMPUTED || !lnorm_has(problem, LNORM_DWEIGHT))
        return 0;
    if ((uint64_t)problem->group.count > SIZE_MAX / 2 / sizeof(ln_record))
        return 0;
    return (size_t)problem->group.count * sizeof(ln_record);
}

static int64_t general_tasks(const lnorm_problem *problem, int phase) {
    lnorm_affine_job job[2];
    int64_t groups = lnorm_grid_tasks(lnorm_grid_of_groups(problem)), tasks = 0;
    if (problem->pass == LNORM_FORWARD)
        return phase == 0 ? groups : 0;
    if (phase == 0)
        return general_workspace(problem) ? groups : 0;
    if (phase == 2)
        return lnorm_has(problem, LNORM_DX) ? groups : 0;
    if (!wants_affine(problem))
        return 0;
    for (int i = lnorm_affine_jobs(problem, job); i-- > 0;)
        tasks += lnorm_affine_tasks(problem, &job[i]);
    return tasks;
}

static void general_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                        int phase, int64_t task) {
    lnorm_data used = *data;
    if (!general_workspace(problem))
        used.workspace = NULL;
    kernels->general(problem, &used, phase, task);
}

const lnorm_engine lnorm_engine_general = {"general",    general_takes, general_workspace,
                                           lnorm_phases, general_tasks, general_run};
