/* One operation of lnorm.h, from its description to its result. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

const lnorm_dtype dtype_of[ELEMENTS] = {{2, 64, 1}, {2, 32, 1}, {2, 16, 1}, {4, 16, 1}};

/* Python users have no struct op, its members are their arguments, and eps=None for LNORM_EPS_DEFAULT. */
static void leave_out_c(char *to, size_t size, const char *message) {
    static const char *const words[] = {"op.", ", or LNORM_EPS_DEFAULT"};
    for (const char *end = to + size - 1; *message && to < end;) {
        const char *rest = message;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (!strncmp(message, words[i], strlen(words[i])))
                rest = message + strlen(words[i]);
        if (rest == message)
            *to++ = *message++;
        else
            message = rest;
    }
    *to = '\0';
}

PyObject *raise_status(lnorm_status status, const char *message) {
    PyObject *exception = PyExc_ValueError;
    char text[sizeof((lnorm_error *)0)->message];
    if (status == LNORM_UNSUPPORTED_DTYPE)
        exception = PyExc_TypeError;
    else if (status == LNORM_OUT_OF_MEMORY)
        exception = PyExc_MemoryError;
    else if (status == LNORM_NOT_AVAILABLE)
        exception = PyExc_RuntimeError;
    leave_out_c(text, sizeof text, *message ? message : lnorm_status_string(status));
    PyErr_SetString(exception, text);
    return NULL;
}

/* Small workspaces live on the stack. Without memory for a large one the call is slower and gives the same bits. */
static lnorm_status run_plan(const lnorm_plan *plan, lnorm_io *io, const lnorm_executor *executor) {
    unsigned char small[8192];
    size_t size = lnorm_plan_workspace(plan);
    void *large = size > sizeof small ? malloc(size) : NULL;
    lnorm_status status;
    io->workspace = size > sizeof small ? large : small;
    io->workspace_size = io->workspace ? size : 0;
    status = lnorm_execute(plan, io, executor);
    free(large);
    return status;
}

int run_plan_by(const lnorm_plan *plan, lnorm_io *io, int64_t elements, workers who) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_executor executor;
    lnorm_status status;
    if (executor_for(who, elements, &executor))
        return -1;
    if (elements < KEEP_LOCK_BELOW) {
        status = run_plan(plan, io, NULL);
    } else {
        PyThreadState *lock = PyEval_SaveThread();
        status = run_plan(plan, io, executor.parallel_for ? &executor : NULL);
        PyEval_RestoreThread(lock);
    }
    if (status == LNORM_OK)
        return 0;
    /* What was wrong with the operands, for which the execution has no words. The workspace is gone. */
    io->workspace = NULL;
    io->workspace_size = 0;
    lnorm_plan_check(plan, io, &error);
    raise_status(status, error.message);
    return -1;
}

int run_operation(const lnorm_op *op, lnorm_io *io, workers who) {
    lnorm_plan plan;
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_status status = lnorm_plan_init(&plan, op, io, &error);
    if (status == LNORM_OK)
        return run_plan_by(&plan, io, lnorm_plan_groups(&plan) * lnorm_plan_group_size(&plan), who);
    raise_status(status, error.message);
    return -1;
}
