/* lnorm verify: somebody's result against the exact one. */
#include "checks.h"
#include "message.h"
#include "operation.h"
#include "report.h"
#include "tensor.h"
#include "verb.h"
#include "verify_report.h"

#include <stdlib.h>

/* X and Y are held in memory whole: the usual mistakes are tried with any axes. */
typedef struct inputs {
    operation operation;
    parameters parameters;
    array x, y;
    lnorm_io io;
    lnorm_problem problem;
    double limit;
} inputs;

static int same_shape(const lnorm_file *x, const lnorm_file *y, const arguments *a) {
    const lnorm_tensor *of_x = lnorm_file_tensor(x), *of_y = lnorm_file_tensor(y);
    if (lnorm_same_shape(of_x->ndim, of_x->shape, of_y->ndim, of_y->shape))
        return DONE;
    return report_failure("'%s': expected the shape of '%s', %s, got %s", a->position[1], a->position[0],
                          lnorm_shape_text("", of_x->ndim, of_x->shape).at,
                          lnorm_shape_text("", of_y->ndim, of_y->shape).at);
}

static int read_arrays(inputs *in, const arguments *a) {
    lnorm_file *x = input_open(a->position[0], a), *y = x ? input_open(a->position[1], a) : NULL;
    int status = x && y ? same_shape(x, y, a) : FAILED;
    if (!status)
        status = array_read(&in->x, x);
    if (!status)
        status = array_read(&in->y, y);
    lnorm_file_close(x);
    lnorm_file_close(y);
    return status;
}

static int prepare(inputs *in, const arguments *a) {
    static const lnorm_io init = LNORM_IO_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    int status;
    in->io = init;
    in->limit = 1.0;
    if ((status = operation_parse(&in->operation, a)) || (status = inputs_check(a)))
        return status;
    if (!arguments_number(a, OPTION_MAX_ULP, 0, &in->limit))
        return USAGE;
    if ((status = parameters_load(&in->parameters, &in->operation, a)) || (status = read_arrays(in, a)))
        return status;
    in->io.x = &in->x.tensor;
    in->io.y = &in->y.tensor;
    parameters_place(&in->parameters, &in->io);
    if (lnorm_problem_init(&in->problem, &in->operation.op, &in->io, &error))
        return report_refused(&error, a);
    return DONE;
}

static void describe(const inputs *in, char *text, size_t size) {
    static const char *const names[] = {"layer norm", "RMS norm", "group norm", "instance norm", "batch norm"};
    const lnorm_op *op = &in->operation.op;
    int length = snprintf(text, size, "%s", names[op->kind]);
    if (op->kind == LNORM_GROUP_NORM)
        length += snprintf(text + length, size - (size_t)length, " of %lld groups", (long long)op->groups);
    else if (op->kind == LNORM_LAYER_NORM || op->kind == LNORM_RMS_NORM)
        length += snprintf(text + length, size - (size_t)length, " over %s %s", op->axes ? "axes" : "the last",
                           op->axes               ? lnorm_shape_text("", op->axes_count, op->axes).at
                           : op->normalized_shape ? lnorm_shape_text("", op->normalized_ndim, op->normalized_shape).at
                                                  : "axis");
    snprintf(text + length, size - (size_t)length, ", eps %g%s%s%s%s", in->problem.eps, in->io.weight ? ", " : "",
             !in->io.weight      ? ""
             : op->weight_offset ? "1 + weight"
                                 : "weight",
             in->io.bias ? ", bias" : "", in->io.mean ? ", given statistics" : "");
}

/* Where wrong elements are, and what may have gone wrong. */
static void diagnose(verification *v, const inputs *in) {
    subject s;
    v->groups = places_of(v->survey.bad_groups, v->survey.groups);
    v->positions = places_of(v->survey.bad_positions, v->survey.group_size);
    subject_init(&s, &in->problem, &in->operation.op, &in->io);
    s.worst = v->survey.worst_group;
    mistakes_find(&v->mistakes, &s);
}

static int print(const verification *v, const arguments *a) {
    int status = verification_failed(v) ? FAILED : DONE;
    if (a->given[OPTION_JSON] && !report_json(v))
        return report_failure("--json: cannot write the report");
    if (!a->given[OPTION_JSON] && !a->given[OPTION_QUIET])
        report_text(v);
    return report_flush(status);
}

static int verify(const inputs *in, const arguments *a) {
    verification *v = calloc(1, sizeof *v);
    int status = FAILED;
    if (a->given[OPTION_QUIET])
        progress_off();
    if (v && survey_run(&v->survey, &in->problem, &in->io, in->limit)) {
        v->x_path = a->position[0];
        v->y_path = a->position[1];
        v->x = &in->x.tensor;
        v->y = &in->y.tensor;
        describe(in, v->operation, sizeof v->operation);
        if (verification_failed(v) && (a->given[OPTION_JSON] || !a->given[OPTION_QUIET]))
            diagnose(v, in);
        status = print(v, a);
    } else {
        report_failure("not enough memory");
    }
    if (v)
        survey_free(&v->survey);
    free(v);
    return status;
}

static int run(const arguments *a) {
    inputs *in = calloc(1, sizeof *in);
    if (!in)
        return report_failure("not enough memory");
    int status = prepare(in, a);
    if (!status)
        status = verify(in, a);
    parameters_free(&in->parameters);
    array_free(&in->x);
    array_free(&in->y);
    free(in);
    return status;
}

const verb verb_verify = {
    VERIFY,
    "verify",
    "X Y [OPTION]...",
    "compare a result with the exact one, and name the likely mistake",
    "Y is what somebody's code made of X; the exact result is computed by MPFR, or to\n"
    "about 90 bits where that decides. The report has the largest and the mean error,\n"
    "how many elements are the exact result rounded once, the worst element, and\n"
    "NaNs where they should not be. Beyond --max-ulp the exit status is 1, and the\n"
    "usual mistakes are tried: those that give this Y are named, with the remedy.\n"
    "\n"
    "The error of an element is |Y - y| in ulps, the spacing of Y's type, at\n"
    "max(|y|, |weight|, |weight*xhat|, |bias|): where x is near the mean, or the bias\n"
    "cancels, y is tiny, and no arithmetic that rounds on the way comes near it in\n"
    "ulps of y itself. Undefined results (of a group with a NaN) may be any NaN or\n"
    "infinity. X and Y are held in memory.",
    "  lnorm verify x.npy y.npy --weight w.npy --bias b.npy\n"
    "  lnorm verify x.npy y.npy --model model.safetensors --name encoder.norm --max-ulp 2\n"
    "  lnorm verify x.npy y.npy --op rms --eps 1e-6 --json",
    2,
    2,
    run};
