/* lnorm grad: gradients of arrays that fit into memory. */
#include "checks.h"
#include "operation.h"
#include "report.h"
#include "results.h"
#include "threads.h"
#include "verb.h"

#include <stdlib.h>
#include <string.h>

enum { DX, DWEIGHT, DBIAS, RESULTS };

typedef struct gradient {
    const arguments *arguments;
    operation operation;
    parameters parameters;
    array x, dy;
    result result[RESULTS];
    lnorm_tensor tensor[RESULTS];
    lnorm_io io;
    lnorm_plan plan;
    lnorm_pool *pool;
} gradient;

static int parse(gradient *g, const arguments *a) {
    static const lnorm_io io = LNORM_IO_INIT;
    static const enum option_id options[RESULTS] = {OPTION_DX, OPTION_DWEIGHT, OPTION_DBIAS};
    static const char *const names[RESULTS] = {"dx", "dweight", "dbias"};
    int status;
    *g = (gradient){.arguments = a, .io = io};
    for (int i = 0; i < RESULTS; i++) {
        g->result[i] = (result){.option = names[i], .path = a->given[options[i]]};
        if (!arguments_dtype(a, OPTION_DTYPE, &g->result[i].dtype))
            return USAGE;
    }
    if ((status = operation_parse(&g->operation, a)) || (status = inputs_check(a)))
        return status;
    g->operation.op.pass = LNORM_BACKWARD;
    return results_check(g->result, RESULTS);
}

static int load(array *to, const char *path, const arguments *a) {
    lnorm_file *file = input_open(path, a);
    if (!file)
        return FAILED;
    int status = array_read(to, file);
    lnorm_file_close(file);
    return status;
}

/* -- Shapes and types --------------------------------------------------------------------------------------------- */

/* The shape that weight has, or would have. The operation has been checked. */
static void shape_parameter(result *r, const lnorm_op *op, const lnorm_tensor *x) {
    uint32_t own = operation_affine(op, x->ndim);
    for (int i = 0; i < x->ndim; i++)
        if (own >> i & 1)
            r->shape[r->ndim++] = x->shape[i];
}

static void shape_results(gradient *g) {
    const lnorm_tensor *x = &g->x.tensor, *like = g->io.weight ? g->io.weight : x;
    for (int i = 0; i < RESULTS; i++)
        if (!g->result[i].dtype.bits)
            g->result[i].dtype = i == DX ? x->dtype : like->dtype;
    g->result[DX].ndim = x->ndim;
    memcpy(g->result[DX].shape, x->shape, (size_t)x->ndim * sizeof *x->shape);
    shape_parameter(&g->result[DWEIGHT], &g->operation.op, x);
    shape_parameter(&g->result[DBIAS], &g->operation.op, x);
}

static int make_plan(gradient *g) {
    lnorm_error error = LNORM_ERROR_INIT;
    return lnorm_plan_init(&g->plan, &g->operation.op, &g->io, &error) ? report_refused(&error, g->arguments) : DONE;
}

static int64_t count_of(const result *r) {
    int64_t count = 1;
    for (int i = 0; i < r->ndim; i++)
        count *= r->shape[i];
    return count;
}

static int allocate(gradient *g, int i) {
    size_t bytes = (size_t)count_of(&g->result[i]) * (g->result[i].dtype.bits / 8);
    void *data = malloc(bytes + 1);
    if (!data)
        return report_failure("--%s: not enough memory for its %zu bytes", g->result[i].option, bytes);
    g->tensor[i] = result_tensor(&g->result[i], data);
    return DONE;
}

/* A first plan without outputs makes the checks from which their shapes follow. */
static int plan(gradient *g) {
    const lnorm_tensor **slot[RESULTS] = {&g->io.dx, &g->io.dweight, &g->io.dbias};
    int status;
    g->io.x = &g->x.tensor;
    g->io.dy = &g->dy.tensor;
    parameters_place(&g->parameters, &g->io);
    if ((status = make_plan(g)))
        return status;
    shape_results(g);
    for (int i = 0; i < RESULTS && !status; i++)
        if (g->result[i].path && !(status = allocate(g, i)))
            *slot[i] = &g->tensor[i];
    return status ? status : make_plan(g);
}

/* -- The run ------------------------------------------------------------------------------------------------------ */

/* Without memory for the workspace it is slower. */
static int compute(gradient *g) {
    lnorm_error error = LNORM_ERROR_INIT;
    g->io.workspace_size = lnorm_plan_workspace(&g->plan);
    g->io.workspace = malloc(g->io.workspace_size + 1);
    int status = lnorm_plan_check(&g->plan, &g->io, &error) ? report_failure("%s", error.message) : DONE;
    if (!status)
        lnorm_execute(&g->plan, &g->io, lnorm_pool_executor(g->pool));
    free(g->io.workspace);
    return status;
}

static int write_results(gradient *g) {
    lnorm_error error = LNORM_ERROR_INIT;
    int status = results_open(g->result, RESULTS);
    if (!status)
        status = compute(g);
    for (int i = 0; i < RESULTS && !status; i++) {
        const result *r = &g->result[i];
        if (r->path && lnorm_file_write(r->writer, g->tensor[i].data, 0, count_of(r), &error))
            status = report_failure("--%s: %s", r->option, error.message);
    }
    if (status)
        results_abort(g->result, RESULTS);
    return status ? status : results_commit(g->result, RESULTS);
}

static int run(const arguments *a) {
    gradient g;
    int status;
    if ((status = parse(&g, a)))
        return status;
    if (!(status = parameters_load(&g.parameters, &g.operation, a)) && !(status = load(&g.x, a->position[0], a)) &&
        !(status = load(&g.dy, a->position[1], a)) && !(status = plan(&g)) &&
        !(status = threads_create(&g.pool, a)))
        status = write_results(&g);
    lnorm_pool_destroy(g.pool);
    for (int i = 0; i < RESULTS; i++)
        free(g.tensor[i].data);
    array_free(&g.x);
    array_free(&g.dy);
    parameters_free(&g.parameters);
    return status;
}

const verb verb_grad = {
    .bit = GRAD,
    .name = "grad",
    .synopsis = "X DY [--dx FILE] [--dweight FILE] [--dbias FILE] [OPTION]...",
    .summary = "gradients by x, weight and bias",
    .description =
        "Reads X and DY, the gradient by y, and writes the gradients that are asked for,\n"
        "at least one: with xhat = (x - mean)*rstd, g = dy*weight, and M the mean over a\n"
        "group,\n"
        "\n"
        "    dx = rstd*(g - M(g) - xhat*M(g*xhat)), dweight = sum of dy*xhat,\n"
        "    dbias = sum of dy.\n"
        "\n"
        "Statistics are computed from X. RMS norm has no M(g). With --running-mean and\n"
        "--running-var, dx = rstd*g. dweight and dbias have the shape of weight; without\n"
        "weight, dweight is the gradient at weight = 1. DY has the shape of X, and any\n"
        "element type.\n"
        "\n"
        "Results are rounded once. dx has the element type of X, the others that of\n"
        "weight (without one, of X), or all that of --dtype. All arrays are held in\n"
        "memory.\n"
        "\n"
        "Results appear under their names when all are complete; a run that fails or is\n"
        "interrupted leaves no file, and files that were there as they were.",
    .examples = "  lnorm grad x.npy dy.npy --weight weight.npy --dx dx.npy --dweight dw.npy --dbias db.npy\n"
                "  lnorm grad x.npy dy.npy --op rms --dx - > dx.npy",
    .least = 2,
    .most = 2,
    .run = run};
