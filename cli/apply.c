/* lnorm apply: y and statistics of an array of any size. */
#include "checks.h"
#include "flow.h"
#include "operation.h"
#include "report.h"
#include "results.h"
#include "threads.h"
#include "verb.h"

#include <string.h>

enum { Y, MEAN, RSTD, RESULTS };

typedef struct application {
    const arguments *arguments;
    operation operation;
    parameters parameters;
    lnorm_file *x;
    result result[RESULTS];
    lnorm_tensor tensor[RESULTS];
    lnorm_io io;
    lnorm_plan plan;
    lnorm_pool *pool;
} application;

static int check_statistics(const application *p, const arguments *a) {
    if (p->operation.op.kind == LNORM_RMS_NORM && a->given[OPTION_MEAN])
        return report_usage("--mean: --op rms removes no mean");
    for (int i = MEAN; i <= RSTD; i++)
        if (p->result[i].path && (a->given[OPTION_RUNNING_MEAN] || a->given[OPTION_RUNNING_VAR]))
            return report_usage("--%s: is computed from X; not with --running-mean and --running-var",
                                p->result[i].option);
    return DONE;
}

static int parse(application *p, const arguments *a) {
    static const lnorm_io io = LNORM_IO_INIT;
    int status;
    *p = (application){.arguments = a, .io = io};
    p->result[Y] = (result){.option = "output", .path = a->given[OPTION_OUTPUT]};
    p->result[MEAN] = (result){.option = "mean", .path = a->given[OPTION_MEAN]};
    p->result[RSTD] = (result){.option = "rstd", .path = a->given[OPTION_RSTD]};
    if (!arguments_dtype(a, OPTION_DTYPE, &p->result[Y].dtype))
        return USAGE;
    if ((status = operation_parse(&p->operation, a)) || (status = check_statistics(p, a)) ||
        (status = inputs_check(a)))
        return status;
    return results_check(p->result, RESULTS);
}

/* -- Shapes and types --------------------------------------------------------------------------------------------- */

/* A mean for each group: the extents that are not normalised over; [N, G] for group norm. */
static void shape_statistic(result *r, const lnorm_op *op, const lnorm_tensor *x) {
    uint32_t reduced = operation_reduced(op, x->ndim);
    for (int i = 0; i < x->ndim; i++)
        if (!(reduced >> i & 1))
            r->shape[r->ndim++] = op->kind == LNORM_GROUP_NORM && i == 1 ? op->groups : x->shape[i];
    r->dtype = x->dtype.bits == 64 ? LNORM_F64 : LNORM_F32;
}

static void shape_y(result *r, const lnorm_tensor *x) {
    r->ndim = x->ndim;
    memcpy(r->shape, x->shape, (size_t)x->ndim * sizeof *r->shape);
    if (!r->dtype.bits)
        r->dtype = x->dtype;
}

static int make_plan(application *p) {
    lnorm_error error = LNORM_ERROR_INIT;
    return lnorm_plan_init(&p->plan, &p->operation.op, &p->io, &error) ? report_refused(&error, p->arguments) : DONE;
}

/* The plan of the whole arrays makes all checks; a first one without outputs, since theirs follow from a checked
 * operation. */
static int plan(application *p) {
    const lnorm_tensor *x = lnorm_file_tensor(p->x);
    const lnorm_tensor **slot[RESULTS] = {&p->io.y, &p->io.mean, &p->io.rstd};
    int status;
    p->io.x = x;
    parameters_place(&p->parameters, &p->io);
    if ((status = make_plan(p)))
        return status;
    shape_y(&p->result[Y], x);
    shape_statistic(&p->result[MEAN], &p->operation.op, x);
    shape_statistic(&p->result[RSTD], &p->operation.op, x);
    for (int i = 0; i < RESULTS; i++)
        if (p->result[i].path) {
            p->tensor[i] = result_tensor(&p->result[i], NULL);
            *slot[i] = &p->tensor[i];
        }
    return make_plan(p);
}

/* -- The run ------------------------------------------------------------------------------------------------------ */

static int write_results(application *p) {
    int status = results_open(p->result, RESULTS);
    if (status)
        return status;
    flow_ends ends = {p->x, p->result[Y].writer, p->result[MEAN].writer, p->result[RSTD].writer,
                      lnorm_pool_executor(p->pool)};
    status = flow_run(&p->plan, &p->io, &ends);
    if (status)
        results_abort(p->result, RESULTS);
    return status ? status : results_commit(p->result, RESULTS);
}

static int run(const arguments *a) {
    application p;
    int status = parse(&p, a);
    if (status)
        return status;
    if (a->given[OPTION_QUIET])
        progress_off();
    if (!(status = parameters_load(&p.parameters, &p.operation, a)))
        status = (p.x = input_open(a->position[0], a)) ? DONE : FAILED;
    if (!status && !(status = plan(&p)) && !(status = threads_create(&p.pool, a)))
        status = write_results(&p);
    lnorm_pool_destroy(p.pool);
    lnorm_file_close(p.x);
    parameters_free(&p.parameters);
    return status;
}

const verb verb_apply = {
    .bit = APPLY,
    .name = "apply",
    .synopsis = "X -o Y.npy [OPTION]...",
    .summary = "normalise an array: layer, RMS, group, instance or batch norm",
    .description =
        "Reads X, computes y = (x - mean) / sqrt(variance + eps) * weight + bias, and\n"
        "writes it as .npy, row-major. At least one of --output, --mean and --rstd is\n"
        "given. A file is an .npy file, a tensor of a .safetensors file (as\n"
        "model.safetensors:encoder.norm.weight), or '-' for standard input or output.\n"
        "\n"
        "Results are rounded once. y has the element type of X, or --dtype; mean and\n"
        "rstd are float64 where X is, otherwise float32.\n"
        "\n"
        "X may be larger than memory: it goes through in pieces, with less than 100 MB\n"
        "besides weight, bias and given statistics. Only a group (elements that share a\n"
        "mean) of more than 16 MB is held whole, with its result, unless X and y have\n"
        "the same type, not float64, weight and bias have that type or float32, and\n"
        "there is no --weight-offset. Where the axes of X lie in the file in another\n"
        "order than the operation needs, X and y make a detour through temporary files\n"
        "in the directory TMPDIR (or /tmp), which take as much space as X and y.\n"
        "\n"
        "A result appears under its name when it is complete; a run that fails or is\n"
        "interrupted leaves no file, and a file that was there as it was. It may be\n"
        "one of the files that are read.",
    .examples = "  lnorm apply x.npy -o y.npy --weight weight.npy --bias bias.npy\n"
                "  lnorm apply x.npy -o y.npy --model model.safetensors --name encoder.layer.0.output.LayerNorm\n"
                "  lnorm apply x.npy -o y.npy --op group --groups 32 --mean mean.npy --rstd rstd.npy\n"
                "  lnorm apply - -o - --axes 1,2 --dtype f16 < x.npy > y.npy",
    .least = 1,
    .most = 1,
    .run = run};
