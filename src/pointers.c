/* Checks of data pointers, the same for tensors and for level 1. */
#include "message.h"

static int has_elements(const lnorm_problem *problem, int i) {
    return problem->operand[i].high > problem->operand[i].low;
}

static int same_view(const lnorm_problem *problem, const lnorm_data *data, int a, int b) {
    const lnorm_operand_form *p = &problem->operand[a], *q = &problem->operand[b];
    int same = data->at[a] == data->at[b] && p->element == q->element;
    for (int i = 0; same && i < problem->axes; i++)
        same = p->stride[i] == q->stride[i];
    return same;
}

/* y = x, dx = dy, dx = x: every element is read for the last time before it is written. */
static int may_alias(int output, int other) {
    return (output == LNORM_Y && other == LNORM_X) || (output == LNORM_DX && (other == LNORM_X || other == LNORM_DY));
}

static int overlap(const lnorm_problem *problem, const lnorm_data *data, int a, int b) {
    const lnorm_operand_form *p = &problem->operand[a], *q = &problem->operand[b];
    uintptr_t at_a = (uintptr_t)data->at[a], at_b = (uintptr_t)data->at[b];
    return p->dense && q->dense && at_a + (uintptr_t)p->low < at_b + (uintptr_t)q->high &&
           at_b + (uintptr_t)q->low < at_a + (uintptr_t)p->high && has_elements(problem, a) && has_elements(problem, b);
}

lnorm_status lnorm_problem_check(const lnorm_problem *problem, const lnorm_data *data, lnorm_error *error) {
    const lnorm_operand_list *present = &problem->present, *written = &problem->written;
    for (int k = 0; k < present->count; k++)
        if (!data->at[present->at[k]] && has_elements(problem, present->at[k]))
            return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a pointer to its elements, got NULL",
                              lnorm_operand_name((enum lnorm_operand)present->at[k]));
    for (int i = 0; i < written->count; i++)
        for (int k = 0; k < present->count; k++) {
            int a = written->at[i], b = present->at[k];
            if (a != b && overlap(problem, data, a, b) && !(may_alias(a, b) && same_view(problem, data, a, b)))
                return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                                  "%s: expected memory of its own (or, in place, exactly that of x or dy), but it "
                                  "overlaps %s", lnorm_operand_name((enum lnorm_operand)a),
                                  lnorm_operand_name((enum lnorm_operand)b));
        }
    return LNORM_OK;
}
