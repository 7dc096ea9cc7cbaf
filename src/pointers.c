/* Checks of data pointers, the same for tensors and for level 1. */
#include "message.h"

static int present(const lnorm_problem *problem, int i) {
    return lnorm_has(problem, (enum lnorm_operand)i) && problem->operand[i].high > problem->operand[i].low;
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
           at_b + (uintptr_t)q->low < at_a + (uintptr_t)p->high;
}

lnorm_status lnorm_problem_check(const lnorm_problem *problem, const lnorm_data *data, lnorm_error *error) {
    int outputs[LNORM_OPERANDS], all[LNORM_OPERANDS], output_count = 0, count = 0;
    for (int i = 0; i < LNORM_OPERANDS; i++) {
        if (!present(problem, i))
            continue;
        if (!data->at[i])
            return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a pointer to its elements, got NULL",
                              lnorm_operand_name((enum lnorm_operand)i));
        all[count++] = i;
        if (problem->operand[i].written)
            outputs[output_count++] = i;
    }
    for (int i = 0; i < output_count; i++)
        for (int k = 0; k < count; k++) {
            int a = outputs[i], b = all[k];
            if (a != b && overlap(problem, data, a, b) && !(may_alias(a, b) && same_view(problem, data, a, b)))
                return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                                  "%s: expected memory of its own (or, in place, exactly that of x or dy), but it "
                                  "overlaps %s", lnorm_operand_name((enum lnorm_operand)a),
                                  lnorm_operand_name((enum lnorm_operand)b));
        }
    return LNORM_OK;
}
