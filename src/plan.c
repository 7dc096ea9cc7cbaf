/* Level 2: plans, their tasks, and running them. */
#include "environment.h"
#include "grid.h"
#include "kernels.h"
#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKSPACE_ALIGNMENT = 64,
    /* On lnorm_run's stack, used where it is enough: for one long row of any length, among others. */
    RUN_WORKSPACE = 24 * 1024 + WORKSPACE_ALIGNMENT
};

static const uint64_t plan_magic = 0x6c6e6f726d303031; /* "lnorm001": the layout of lnorm_plan_form */

/* lnorm_plan is bytes to the user, so that copying one is defined whatever we keep in it. */
typedef lnorm_plan_form plan_view;

_Static_assert(sizeof(lnorm_plan_form) <= sizeof(lnorm_plan), "lnorm_plan is too small");

void *lnorm_align_workspace(void *workspace, size_t needed) {
    uintptr_t address = (uintptr_t)workspace;
    if (!workspace || !needed)
        return NULL;
    return (char *)workspace + (-address & (WORKSPACE_ALIGNMENT - 1));
}

size_t lnorm_padded_workspace(size_t bytes) {
    return bytes ? bytes + WORKSPACE_ALIGNMENT : 0;
}

static int writes_statistics(const lnorm_problem *problem) {
    static const enum lnorm_operand statistics[] = {LNORM_MEAN, LNORM_RSTD, LNORM_MEAN_TANGENT, LNORM_RSTD_TANGENT};
    for (size_t i = 0; i < sizeof statistics / sizeof *statistics; i++)
        if (lnorm_has(problem, statistics[i]) && problem->operand[statistics[i]].written)
            return 1;
    return 0;
}

/* Groups of no elements have statistics (NaN) and nothing else. */
int64_t lnorm_tasks(const lnorm_engine *engine, const lnorm_problem *problem, int phase) {
    const int affine_phase = 1;
    int affine = engine->phases(problem) > 1 && phase == affine_phase;
    if (!problem->element.count && !affine && !writes_statistics(problem))
        return 0;
    return engine->tasks(problem, phase);
}

/* The first that takes the problem; the reference takes every one. */
static const lnorm_engine *engine_for(const lnorm_problem *problem) {
    static const lnorm_engine *const engines[] = {&lnorm_engine_long,    &lnorm_engine_rows, &lnorm_engine_columns,
                                                  &lnorm_engine_general, &lnorm_engine_wide, &lnorm_engine_reference};
    const lnorm_engine *const *engine = engines;
    while (!(*engine)->takes(problem))
        engine++;
    return *engine;
}

/* Says which instruction sets there are, and which was asked for when nobody has changed the variable since; or that
 * none of them computes what it should. */
static void not_available(lnorm_error *error) {
    char names[100] = "";
    const char *asked = getenv("LNORM_ISA");
    const lnorm_kernels *kernels;
    size_t used = 0;
    int runs, contracts = 0;
    for (int i = 0; (kernels = lnorm_kernels_at(i, &runs)) && used < sizeof names; i++)
        if (runs) {
            contracts |= lnorm_contracts(kernels) && (!asked || !*asked || !strcmp(asked, kernels->name));
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", kernels->name);
        }
    if (contracts)
        lnorm_fail(error, LNORM_NOT_AVAILABLE,
                   "this build of lnorm: expected products and sums that round one by one, got fused ones: compile it "
                   "without -ffp-contract=fast, or with -ffp-contract=off after it");
    else
        lnorm_fail(error, LNORM_NOT_AVAILABLE, "LNORM_ISA: expected an instruction set that runs here (%s), got %s",
                   names, asked ? asked : "another");
}

lnorm_status lnorm_plan_init(lnorm_plan *plan, const lnorm_op *op, const lnorm_io *io, lnorm_error *user) {
    plan_view *view = (plan_view *)plan;
    lnorm_error error = LNORM_ERROR_INIT;
    if (!plan)
        lnorm_fail(&error, LNORM_INVALID_ARGUMENT, "plan: expected a pointer, got NULL");
    else if (!(view->kernels = lnorm_dispatch()))
        not_available(&error);
    else
        lnorm_problem_init(&view->problem, op, io, &error);
    if (plan) {
        view->magic = plan_magic;
        view->status = error.status;
    }
    if (!error.status) {
        view->engine = engine_for(&view->problem);
        view->workspace = lnorm_padded_workspace(view->engine->workspace(&view->problem));
        view->phases = view->engine->phases(&view->problem);
        for (int phase = 0; phase < view->phases; phase++)
            view->tasks[phase] = lnorm_tasks(view->engine, &view->problem, phase);
    }
    return lnorm_report(user, &error);
}

static lnorm_status plan_status(const plan_view *view) {
    return view && view->magic == plan_magic ? view->status : LNORM_INVALID_ARGUMENT;
}

int64_t lnorm_plan_groups(const lnorm_plan *plan) {
    const plan_view *view = (const plan_view *)plan;
    return plan_status(view) ? 0 : view->problem.group.count;
}

int64_t lnorm_plan_group_size(const lnorm_plan *plan) {
    const plan_view *view = (const plan_view *)plan;
    return plan_status(view) ? 0 : view->problem.element.count;
}

size_t lnorm_plan_workspace(const lnorm_plan *plan) {
    const plan_view *view = (const plan_view *)plan;
    return plan_status(view) ? 0 : view->workspace;
}

int lnorm_plan_phases(const lnorm_plan *plan) {
    const plan_view *view = (const plan_view *)plan;
    return plan_status(view) ? 0 : view->phases;
}

int64_t lnorm_plan_tasks(const lnorm_plan *plan, int phase) {
    const plan_view *view = (const plan_view *)plan;
    if (phase < 0 || phase >= lnorm_plan_phases(plan))
        return 0;
    return view->tasks[phase];
}

static lnorm_status check_io(const plan_view *view, const lnorm_io *io, lnorm_error *error) {
    lnorm_status status = plan_status(view);
    if (status)
        return lnorm_fail(error, status, "plan: expected one that lnorm_plan_init made and accepted");
    if ((status = lnorm_check_struct(sizeof *io, io, "io", error)))
        return status;
    if (io->workspace && io->workspace_size < view->workspace)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "io.workspace_size: expected at least %llu bytes, got %llu",
                          (unsigned long long)view->workspace, (unsigned long long)io->workspace_size);
    return LNORM_OK;
}

static lnorm_status check(const plan_view *view, const lnorm_io *io, lnorm_data *data, lnorm_error *error) {
    lnorm_status status = check_io(view, io, error);
    if (status)
        return status;
    lnorm_problem_data(&view->problem, io, view->workspace, data);
    return lnorm_problem_check(&view->problem, data, error);
}

lnorm_status lnorm_plan_check(const lnorm_plan *plan, const lnorm_io *io, lnorm_error *user) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_data data;
    check((const plan_view *)plan, io, &data, &error);
    return lnorm_report(user, &error);
}

static void run_task(const plan_view *view, const lnorm_data *data, int phase, int64_t task) {
    lnorm_environment caller = lnorm_environment_enter();
    view->engine->run(&view->problem, data, view->kernels, phase, task);
    lnorm_environment_leave(caller);
}

lnorm_status lnorm_plan_run(const lnorm_plan *plan, const lnorm_io *io, int phase, int64_t task) {
    const plan_view *view = (const plan_view *)plan;
    lnorm_data data;
    lnorm_status status = check_io(view, io, NULL);
    if (status)
        return status;
    if (task < 0 || task >= lnorm_plan_tasks(plan, phase))
        return LNORM_INVALID_ARGUMENT;
    lnorm_problem_data(&view->problem, io, view->workspace, &data);
    run_task(view, &data, phase, task);
    return LNORM_OK;
}

typedef struct phase_run {
    const plan_view *view;
    const lnorm_data *data;
    int phase;
} phase_run;

static void run_numbered(void *argument, int64_t task) {
    const phase_run *run = argument;
    run_task(run->view, run->data, run->phase, task);
}

/* Whether the problem is worth waking threads for. The reference takes much longer for an element than kernels do. */
static int worth_waking(const plan_view *view) {
    const lnorm_problem *problem = &view->problem;
    int64_t least = view->engine == &lnorm_engine_reference ? LNORM_TASK_ELEMENTS / 16 : LNORM_TASK_ELEMENTS;
    return problem->group.count * problem->element.count >= least;
}

lnorm_status lnorm_check_executor(const lnorm_executor *executor, lnorm_error *error) {
    lnorm_status status = lnorm_check_struct(sizeof *executor, executor, "executor", error);
    if (!status && !executor->parallel_for)
        status = lnorm_fail(error, LNORM_INVALID_ARGUMENT, "executor.parallel_for: expected a function, got NULL");
    return status;
}

/* `own`: a workspace for an io that brings none, or NULL. */
static lnorm_status execute(const plan_view *view, const lnorm_io *io, const lnorm_executor *executor, void *own,
                            lnorm_error *error) {
    lnorm_data data;
    lnorm_status status = check(view, io, &data, error);
    if (status)
        return status;
    if (executor && (status = lnorm_check_executor(executor, error)))
        return status;
    if (executor && !worth_waking(view))
        executor = NULL;
    if (!data.workspace)
        data.workspace = lnorm_align_workspace(own, view->workspace);
    data.in_order = !executor;
    for (int phase = 0; phase < view->phases; phase++) {
        int64_t tasks = view->tasks[phase];
        phase_run run = {view, &data, phase};
        if (executor && tasks > 1)
            executor->parallel_for(executor->context, tasks, run_numbered, &run);
        else
            for (int64_t task = 0; task < tasks; task++)
                run_task(view, &data, phase, task);
    }
    return LNORM_OK;
}

lnorm_status lnorm_execute(const lnorm_plan *plan, const lnorm_io *io, const lnorm_executor *executor) {
    return execute((const plan_view *)plan, io, executor, NULL, NULL);
}

lnorm_status lnorm_run(const lnorm_op *op, const lnorm_io *io, const lnorm_executor *executor, lnorm_error *user) {
    _Alignas(WORKSPACE_ALIGNMENT) char own[RUN_WORKSPACE];
    lnorm_plan plan;
    const plan_view *view = (const plan_view *)&plan;
    lnorm_error error = LNORM_ERROR_INIT;
    if (!lnorm_plan_init(&plan, op, io, &error))
        execute(view, io, executor, view->workspace <= sizeof own ? own : NULL, &error);
    return lnorm_report(user, &error);
}
