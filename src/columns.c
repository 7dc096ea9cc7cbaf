/* The engine of columns: which problems it takes, and its tasks. What they consist of is in columns_*.c and channels.c,
 * the loops over vectors are an instruction set's (kernels/loops.h).
 *
 * Backward, where dweight and dbias are made of sums over columns, phase 0 computes these and dx, strip by strip, as
 * the general form does with its partials. Where not, they are that form's: phase 0 leaves the statistics in the
 * workspace, phase 1 is that form's. Groups of several columns have the means of their gradients from that form. */
#include "compact.inc"

#include "general.h"
#include "kernels/loops.h"

static int narrow_or_absent(const lnorm_problem *problem, enum lnorm_operand operand) {
    return problem->operand[operand].element != LNORM_ELEMENT_F64;
}

/* A column's sums are partials, or there are none of groups of several columns. */
static int gradients_fit(const lnorm_problem *problem, const lnorm_columns_form *form) {
    lnorm_affine_job job;
    const int partials = lnorm_has_partials(problem, &job);
    if (form->channel_axis < 0)
        return (!partials || job.each.count == 1) && (lnorm_affine_is(problem, form, LNORM_WEIGHT, 0) ||
                                                      lnorm_affine_is(problem, form, LNORM_WEIGHT, 1));
    if (partials ? job.each.axes != 1 || job.each.axis[0] != form->channel_axis
                 : lnorm_has(problem, LNORM_DWEIGHT) || lnorm_has(problem, LNORM_DBIAS))
        return 0;
    return form->channels > 1 && lnorm_affine_is(problem, form, LNORM_WEIGHT, 0);
}

static int columns_takes(const lnorm_problem *problem) {
    lnorm_columns_form form;
    if (problem->wide || !lnorm_columns_of(problem, &form))
        return 0;
    if (problem->pass == LNORM_BACKWARD)
        return problem->statistics != LNORM_CONSTANT && problem->element.count > 0 &&
               narrow_or_absent(problem, LNORM_DX) && gradients_fit(problem, &form);
    if (problem->pass != LNORM_FORWARD)
        return 0;
    if (lnorm_has(problem, LNORM_Y) && problem->operand[LNORM_Y].element != problem->operand[LNORM_X].element)
        return 0;
    return lnorm_affine_by(problem, &form, 0) || lnorm_affine_by(problem, &form, 1);
}

static int64_t columns_tasks(const lnorm_problem *problem, int phase) {
    lnorm_columns_form form;
    const int64_t others = lnorm_engine_general.tasks(problem, phase);
    if (phase == 1)
        return others;
    lnorm_columns_of(problem, &form);
    return others ? lnorm_grid_tasks(lnorm_grid_of_strips(problem, &form)) : 0;
}

static void columns_strip(ln_columns *s, int64_t strip, int phase) {
    static const lnorm_space none = {0, {0}, 1};
    const lnorm_columns_form *form = &s->form;
    const int vector = s->b.loops->narrow_vector;
    int64_t strips = lnorm_parts(form->groups, form->each), first = strip % strips * form->each;
    int64_t left = form->groups - first, group = strip / strips * form->groups + first;
    s->groups = (int)(left < form->each ? left : form->each);
    s->columns = s->groups * (int)form->channels;
    s->padded = (s->columns + vector - 1) / vector * vector;
    s->corrected = 0;
    memset(s->c, 0, (size_t)s->padded * sizeof *s->c);
    memset(s->t, 0, (size_t)s->padded * sizeof *s->t);
    memset(s->r, 0, (size_t)s->padded * sizeof *s->r);
    memset(s->h, 0, sizeof s->h);
    memset(s->l, 0, sizeof s->l);
    memset(s->rho, 0, sizeof s->rho);
    ln_set_base(&s->b, &s->b.problem->group, group, &none, 0);
    if (s->b.problem->pass == LNORM_FORWARD)
        lnorm_columns_forward(s);
    else
        lnorm_columns_backward(s, group, phase);
}

static void columns_task(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data, int phase,
                         int64_t task) {
    ln_columns s;
    lnorm_grid grid;
    lnorm_columns_of(problem, &s.form);
    grid = lnorm_grid_of_strips(problem, &s.form);
    s.b = (ln_bundle){.loops = loops, .problem = problem, .data = data, .space = &s.form.rows, .lanes = 1};
    s.b.axis = s.form.group_axis;
    s.stream = lnorm_streams_y(problem, data);
    for (int64_t strip = lnorm_grid_begin(grid, task); strip < lnorm_grid_end(grid, task); strip++)
        columns_strip(&s, strip, phase);
    lnorm_stream_end();
}

static void columns_run(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels,
                        int phase, int64_t task) {
    if (problem->pass == LNORM_BACKWARD && phase == 1) {
        lnorm_engine_general.run(problem, data, kernels, phase, task);
        return;
    }
    columns_task(kernels->loops, problem, data, phase, task);
}

static size_t columns_workspace(const lnorm_problem *problem) {
    return lnorm_engine_general.workspace(problem);
}

const lnorm_engine lnorm_engine_columns = {"columns", columns_takes, columns_workspace, lnorm_phases, columns_tasks,
                                           columns_run};

#include "compact_end.inc"
