/* The engine of columns, forward: which problems it takes, and its tasks. The arithmetic is in kernels/columns_*.inc
 * and kernels/channels.inc. */
#include "columns.h"
#include "kernels.h"

static int columns_takes(const lnorm_problem *problem) {
    lnorm_columns_form form;
    if (problem->wide || problem->pass != LNORM_FORWARD || !lnorm_columns_of(problem, &form))
        return 0;
    if (lnorm_has(problem, LNORM_Y) && problem->operand[LNORM_Y].element != problem->operand[LNORM_X].element)
        return 0;
    return lnorm_affine_by(problem, &form, 0) || lnorm_affine_by(problem, &form, 1);
}

static size_t columns_workspace(const lnorm_problem *problem) {
    (void)problem;
    return 0;
}

static int64_t columns_tasks(const lnorm_problem *problem, int phase) {
    lnorm_columns_form form;
    lnorm_columns_of(problem, &form);
    return phase == 0 ? lnorm_grid_tasks(lnorm_grid_of_strips(problem, &form)) : 0;
}

static void columns_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                        int phase, int64_t task) {
    (void)phase;
    kernels->columns(problem, data, task);
}

const lnorm_engine lnorm_engine_columns = {"columns", columns_takes, columns_workspace, lnorm_phases, columns_tasks,
                                           columns_run};
