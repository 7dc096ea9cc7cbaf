/* The engine that runs a definition, narrow, wide or fast, on any problem: a loop over groups and one over entries. */
#include "compact.inc"

#include "grid.h"
#include "reference.h"

static lnorm_grid grid_of_groups(const lnorm_problem *problem) {
    return lnorm_grid_of(problem->group.count, problem->element.count, 1);
}

static lnorm_grid grid_of_entries(const lnorm_problem *problem, enum lnorm_operand which) {
    uint32_t own = which == LNORM_DWEIGHT ? problem->weight_axes : problem->bias_axes;
    int64_t count = lnorm_has(problem, which) ? lnorm_space_of(problem, own).count : 0;
    uint32_t others = ((1u << problem->axes) - 1) & ~own;
    return lnorm_grid_of(count, lnorm_space_of(problem, others).count, 1);
}

/* In the library no fast problem comes here: the general form takes them all. */
static const lnorm_definition *definition_of(const lnorm_problem *problem) {
#if defined LNORM_REFERENCE_OF_TESTS
    if (problem->fast)
        return &lnorm_definition_fast;
#endif
    return problem->wide ? &lnorm_definition_wide : &lnorm_definition_narrow;
}

static int wants_affine(const lnorm_problem *problem) {
    return lnorm_has(problem, LNORM_DWEIGHT) || lnorm_has(problem, LNORM_DBIAS);
}

static int reference_takes(const lnorm_problem *problem) {
    (void)problem;
    return 1;
}

/* Records are kept between the phases only where both a later phase and the affine gradients read them. Where no
 * machine could hold them, they are prepared anew each time. */
static size_t reference_workspace(const lnorm_problem *problem) {
    size_t record = definition_of(problem)->record;
    if (lnorm_phases(problem) == 1 || !wants_affine(problem))
        return 0;
    if ((uint64_t)problem->group.count > SIZE_MAX / 2 / record)
        return 0;
    return (size_t)problem->group.count * record;
}

/* Phases of a backward pass: 0 records, 1 affine gradients, 2 the rest. Affine gradients come before the rest because
 * dx may be where dy or x was. */
static int64_t reference_tasks(const lnorm_problem *problem, int phase) {
    if (lnorm_phases(problem) == 1)
        return phase == 0 ? lnorm_grid_tasks(grid_of_groups(problem)) : 0;
    if (phase == 0)
        return wants_affine(problem) ? lnorm_grid_tasks(grid_of_groups(problem)) : 0;
    if (phase == 1)
        return lnorm_grid_tasks(grid_of_entries(problem, LNORM_DWEIGHT)) +
               lnorm_grid_tasks(grid_of_entries(problem, LNORM_DBIAS));
    if (lnorm_has(problem, LNORM_DX) || lnorm_has(problem, LNORM_DDY))
        return lnorm_grid_tasks(grid_of_groups(problem));
    return 0;
}

static void run_records(const lnorm_problem *problem, const lnorm_data *data, int64_t task) {
    const lnorm_definition *definition = definition_of(problem);
    lnorm_grid grid = grid_of_groups(problem);
    if (!data->workspace)
        return;
    for (int64_t group = lnorm_grid_begin(grid, task); group < lnorm_grid_end(grid, task); group++)
        definition->prepare(problem, data, group,
                            (char *)data->workspace + group * (int64_t)definition->record);
}

static void run_affine(const lnorm_problem *problem, const lnorm_data *data, int64_t task) {
    enum lnorm_operand which = LNORM_DWEIGHT;
    lnorm_grid grid = grid_of_entries(problem, which);
    if (task >= lnorm_grid_tasks(grid)) {
        task -= lnorm_grid_tasks(grid);
        which = LNORM_DBIAS;
        grid = grid_of_entries(problem, which);
    }
    for (int64_t entry = lnorm_grid_begin(grid, task); entry < lnorm_grid_end(grid, task); entry++)
        definition_of(problem)->affine(problem, data, which, entry, data->workspace);
}

static void run_finish(const lnorm_problem *problem, const lnorm_data *data, int kept, int64_t task) {
    const lnorm_definition *definition = definition_of(problem);
    lnorm_grid grid = grid_of_groups(problem);
    uint64_t record[LNORM_RECORD_MAX / sizeof(uint64_t)];
    for (int64_t group = lnorm_grid_begin(grid, task); group < lnorm_grid_end(grid, task); group++) {
        if (kept) {
            definition->finish(problem, data, group,
                               (const char *)data->workspace + group * (int64_t)definition->record);
        } else {
            definition->prepare(problem, data, group, record);
            definition->finish(problem, data, group, record);
        }
    }
}

static void reference_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                          int phase, int64_t task) {
    (void)kernels;
    if (lnorm_phases(problem) == 1)
        run_finish(problem, data, 0, task);
    else if (phase == 0)
        run_records(problem, data, task);
    else if (phase == 1)
        run_affine(problem, data, task);
    else
        run_finish(problem, data, data->workspace && wants_affine(problem), task);
}

#if defined LNORM_REFERENCE_OF_TESTS
#define lnorm_engine_reference lnorm_engine_definition
#endif
const lnorm_engine lnorm_engine_reference = {"reference",  reference_takes, reference_workspace,
                                             lnorm_phases, reference_tasks, reference_run};

#include "compact_end.inc"
