/* The engine of columns: which problems it takes, and its tasks. The arithmetic is in kernels/columns_*.inc and
 * kernels/channels.inc.
 *
 * Backward, where dweight and dbias have an entry for every column, phase 2 computes them and dx, strip by strip. Where
 * not, they are the general form's: phase 0 leaves the statistics in the workspace, phase 1 is that form's. */
#include "columns.h"
#include "general.h"
#include "kernels.h"

static int narrow_or_absent(const lnorm_problem *problem, enum lnorm_operand operand) {
    return problem->operand[operand].element != LNORM_ELEMENT_F64;
}

static int columns_takes(const lnorm_problem *problem) {
    lnorm_columns_form form;
    if (problem->wide || !lnorm_columns_of(problem, &form))
        return 0;
    if (problem->pass == LNORM_BACKWARD)
        return !problem->fast && problem->statistics != LNORM_CONSTANT && form.channels == 1 &&
               form.channel_axis < 0 && problem->element.count > 0 && narrow_or_absent(problem, LNORM_DX) &&
               (lnorm_affine_is(problem, &form, LNORM_WEIGHT, 0) || lnorm_affine_is(problem, &form, LNORM_WEIGHT, 1));
    if (problem->pass != LNORM_FORWARD)
        return 0;
    if (lnorm_has(problem, LNORM_Y) && problem->operand[LNORM_Y].element != problem->operand[LNORM_X].element)
        return 0;
    return lnorm_affine_by(problem, &form, 0) || lnorm_affine_by(problem, &form, 1);
}

static size_t columns_workspace(const lnorm_problem *problem) {
    if (problem->pass != LNORM_BACKWARD || lnorm_gradient_by_column(problem))
        return 0;
    return lnorm_engine_general.workspace(problem);
}

static int64_t columns_tasks(const lnorm_problem *problem, int phase) {
    lnorm_columns_form form;
    int64_t strips;
    lnorm_columns_of(problem, &form);
    strips = lnorm_grid_tasks(lnorm_grid_of_strips(problem, &form));
    if (problem->pass == LNORM_FORWARD)
        return phase == 0 ? strips : 0;
    if (phase == 2)
        return lnorm_has(problem, LNORM_DX) || lnorm_gradient_by_column(problem) ? strips : 0;
    if (lnorm_gradient_by_column(problem))
        return 0;
    if (phase == 0)
        return columns_workspace(problem) ? strips : 0;
    return lnorm_engine_general.tasks(problem, 1);
}

static void columns_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                        int phase, int64_t task) {
    if (problem->pass == LNORM_BACKWARD && phase == 1) {
        lnorm_engine_general.run(problem, data, kernels, phase, task);
        return;
    }
    kernels->columns(problem, data, phase, task);
}

const lnorm_engine lnorm_engine_columns = {"columns", columns_takes, columns_workspace, lnorm_phases, columns_tasks,
                                           columns_run};
