#include "refusal.h"

void assert_error(const lnorm_error *error, lnorm_status status, const char *message) {
    assert_string_equal(error->message, message);
    assert_int_equal(error->status, status);
}

void assert_unusable(const lnorm_plan *plan, const lnorm_io *io, lnorm_status status) {
    lnorm_error error = LNORM_ERROR_INIT;
    assert_int_equal(lnorm_plan_groups(plan), 0);
    assert_int_equal(lnorm_plan_group_size(plan), 0);
    assert_int_equal(lnorm_plan_workspace(plan), 0);
    assert_int_equal(lnorm_plan_phases(plan), 0);
    assert_int_equal(lnorm_plan_tasks(plan, 0), 0);
    assert_int_equal(lnorm_plan_run(plan, io, 0, 0), status);
    assert_int_equal(lnorm_execute(plan, io, NULL), status);
    assert_int_equal(lnorm_plan_check(plan, io, NULL), status);
    assert_int_equal(lnorm_plan_check(plan, io, &error), status);
    assert_error(&error, status, "plan: expected one that lnorm_plan_init made and accepted");
}

void refused(const scene *s, const lnorm_op *op, const lnorm_io *io, lnorm_status status, const char *message) {
    lnorm_error error = LNORM_ERROR_INIT, again = LNORM_ERROR_INIT;
    lnorm_plan plan;
    memset(&plan, 0xff, sizeof plan);
    assert_int_equal(lnorm_plan_init(&plan, op, io, NULL), status);
    assert_int_equal(lnorm_plan_init(&plan, op, io, &error), status);
    assert_error(&error, status, message);
    assert_unusable(&plan, io, status);
    assert_int_equal(lnorm_run(op, io, NULL, NULL), status);
    assert_int_equal(lnorm_run(op, io, NULL, &again), status);
    assert_error(&again, status, message);
    assert_true(scene_untouched(s));
}

void refused_tensor(const scene *s, int operand, lnorm_tensor bad, lnorm_status status, const char *message) {
    lnorm_io io = s->io;
    *scene_slot(&io, operand) = &bad;
    refused(s, &s->op, &io, status, message);
}

void refused_shape(const scene *s, int operand, int ndim, const int64_t *shape, lnorm_status status,
                   const char *message) {
    lnorm_tensor bad = lnorm_dense(s->at[operand].tensor.data, LNORM_F32, ndim, shape);
    refused_tensor(s, operand, bad, status, message);
}

void refused_op(const scene *s, lnorm_op op, lnorm_status status, const char *message) {
    refused(s, &op, &s->io, status, message);
}

void accepted(const lnorm_op *op, const lnorm_io *io) {
    lnorm_error error = {sizeof error, LNORM_INVALID_ARGUMENT, "old text"};
    lnorm_plan plan;
    if (lnorm_plan_init(&plan, op, io, &error))
        fail_msg("%s", error.message);
    assert_error(&error, LNORM_OK, "");
}

void begin(scene *s, lnorm_kind kind, lnorm_pass pass, lnorm_statistics statistics) {
    lnorm_op op = LNORM_OP_INIT;
    op.kind = kind;
    op.pass = pass;
    op.statistics = statistics;
    op.groups = 2;
    scene_make(s, &op, SHAPE(4, 2, 3), all_f32, DENSE, 1);
    accepted(&s->op, &s->io);
}
