#include "operation.h"
#include "report.h"
#include "verb.h"

#include <stdlib.h>
#include <string.h>

/* -- Operation ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    lnorm_kind kind;
} kinds[] = {{"layer", LNORM_LAYER_NORM},
             {"rms", LNORM_RMS_NORM},
             {"group", LNORM_GROUP_NORM},
             {"instance", LNORM_INSTANCE_NORM},
             {"batch", LNORM_BATCH_NORM}};

static int parse_kind(operation *o, const arguments *a) {
    const char *text = a->given[OPTION_OP];
    if (!text)
        return DONE;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(text, kinds[i].name)) {
            o->op.kind = kinds[i].kind;
            return DONE;
        }
    return report_usage("--op: expected layer, rms, group, instance or batch, got '%s'", text);
}

/* What belongs to one kind only is an error with another: it would have no effect. */
static int check_kind(const operation *o, const arguments *a) {
    int layers = o->op.kind == LNORM_LAYER_NORM || o->op.kind == LNORM_RMS_NORM;
    if (a->given[OPTION_SHAPE] && a->given[OPTION_AXES])
        return report_usage("--normalized-shape and --axes: expected one of the two");
    if (!layers && (a->given[OPTION_SHAPE] || a->given[OPTION_AXES]))
        return report_usage("--%s: for --op layer and rms only; --op %s normalises over axes of its own",
                            a->given[OPTION_SHAPE] ? "normalized-shape" : "axes", a->given[OPTION_OP]);
    if (o->op.kind == LNORM_GROUP_NORM && !a->given[OPTION_GROUPS])
        return report_usage("--op group: expected --groups G, too");
    if (o->op.kind != LNORM_GROUP_NORM && a->given[OPTION_GROUPS])
        return report_usage("--groups: for --op group only");
    return DONE;
}

int operation_parse(operation *o, const arguments *a) {
    static const lnorm_op init = LNORM_OP_INIT;
    int status;
    o->op = init;
    o->op.eps = LNORM_EPS_DEFAULT;
    o->op.weight_offset = a->given[OPTION_OFFSET] != NULL;
    if ((status = parse_kind(o, a)) || (status = check_kind(o, a)))
        return status;
    if (!arguments_list(a, OPTION_SHAPE, 0, o->shape, &o->op.normalized_ndim) ||
        !arguments_list(a, OPTION_AXES, -LNORM_MAX_NDIM, o->axes, &o->op.axes_count) ||
        !arguments_integer(a, OPTION_GROUPS, 1, &o->op.groups) || !arguments_number(a, OPTION_EPS, 0, &o->op.eps))
        return USAGE;
    o->op.normalized_shape = a->given[OPTION_SHAPE] ? o->shape : NULL;
    o->op.axes = a->given[OPTION_AXES] ? o->axes : NULL;
    return DONE;
}

/* -- Arrays ------------------------------------------------------------------------------------------------------- */

lnorm_file *input_open(const char *path, const arguments *a) {
    lnorm_file_options options = LNORM_FILE_OPTIONS_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    options.as_bf16 = a->given[OPTION_AS_BF16] != NULL;
    lnorm_file *file = lnorm_file_open(path, &options, &error);
    if (!file)
        report_failure("%s", error.message);
    return file;
}

/* From column-major to row-major: the last axis fastest. */
static void reorder(char *to, const char *from, const lnorm_tensor *tensor, size_t bytes) {
    int64_t at[LNORM_MAX_NDIM] = {0}, offset = 0;
    for (int64_t i = 0;; i++) {
        int axis = tensor->ndim;
        memcpy(to + (size_t)i * bytes, from + (size_t)offset * bytes, bytes);
        while (axis-- > 0) {
            offset += tensor->strides[axis];
            if (++at[axis] < tensor->shape[axis])
                break;
            offset -= tensor->strides[axis] * tensor->shape[axis];
            at[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

static int row_major(const lnorm_tensor *tensor) {
    int64_t expected = 1;
    for (int axis = tensor->ndim; axis-- > 0; expected *= tensor->shape[axis])
        if (tensor->shape[axis] != 1 && tensor->strides && tensor->strides[axis] != expected)
            return 0;
    return 1;
}

int array_read(array *to, const lnorm_file *file) {
    const lnorm_tensor *tensor = lnorm_file_tensor(file);
    lnorm_error error = LNORM_ERROR_INIT;
    int64_t count = lnorm_file_count(file);
    size_t bytes = tensor->dtype.bits / 8;
    char *data = malloc((size_t)count * bytes + 1), *other = NULL;
    if (!data || (!row_major(tensor) && !(other = malloc((size_t)count * bytes + 1)))) {
        free(data);
        return report_failure("'%s': not enough memory for its %lld bytes", lnorm_file_path(file),
                              (long long)count * (long long)bytes);
    }
    if (lnorm_file_read(file, data, 0, count, &error)) {
        free(data);
        free(other);
        return report_failure("%s", error.message);
    }
    if (other && count) {
        reorder(other, data, tensor, bytes);
        free(data);
        data = other;
    } else {
        free(other);
    }
    memcpy(to->shape, tensor->shape, (size_t)tensor->ndim * sizeof *to->shape);
    to->tensor = lnorm_dense(data, tensor->dtype, tensor->ndim, to->shape);
    return DONE;
}

void array_free(array *a) {
    free(a->tensor.data);
    a->tensor.data = NULL;
}

/* -- Parameters --------------------------------------------------------------------------------------------------- */

static int load_file(array *to, const char *path, const arguments *a) {
    if (!path)
        return DONE;
    lnorm_file *file = input_open(path, a);
    if (!file)
        return FAILED;
    int status = array_read(to, file);
    lnorm_file_close(file);
    return status;
}

static int load_tensor(array *to, const lnorm_model *model, const lnorm_model_tensor *tensor) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_file *file = lnorm_model_read(model, tensor, &error);
    if (!file)
        return report_failure("%s", error.message);
    int status = array_read(to, file);
    lnorm_file_close(file);
    return status;
}

/* NORM is a norm as `lnorm list` shows it; of a model with one norm it may be left out. */
static const lnorm_model_norm *find_norm(const lnorm_model *model, const arguments *a) {
    const char *name = a->given[OPTION_NAME], *path = a->given[OPTION_MODEL];
    int64_t count = lnorm_model_norms(model);
    for (int64_t i = 0; i < count; i++) {
        const lnorm_model_norm *norm = lnorm_model_norm_at(model, i);
        if (name ? !strcmp(norm->name, name) : count == 1)
            return norm;
    }
    if (!count)
        report_failure("--model: '%s' holds no norms; 'lnorm list --all' shows its tensors", path);
    else if (!name)
        report_usage("--name: expected the name of one of the %lld norms of '%s'; 'lnorm list' shows them",
                     (long long)count, path);
    else
        report_failure("--name: '%s' has no norm '%s'; 'lnorm list' shows those it has; any tensor: "
                       "--weight '%s:TENSOR'",
                       path, name, path);
    return NULL;
}

static int load_model(parameters *p, const arguments *a) {
    lnorm_error error = LNORM_ERROR_INIT;
    if (!a->given[OPTION_MODEL])
        return a->given[OPTION_NAME] ? report_usage("--name: expected --model, too") : DONE;
    if (a->given[OPTION_WEIGHT] || a->given[OPTION_BIAS])
        return report_usage("--model: has weight and bias; expected no --weight and no --bias beside it");
    lnorm_model *model = lnorm_model_open(a->given[OPTION_MODEL], &error);
    if (!model)
        return report_failure("%s", error.message);
    const lnorm_model_norm *norm = find_norm(model, a);
    int named = a->given[OPTION_NAME] || !lnorm_model_norms(model);
    int status = norm ? load_tensor(&p->weight, model, norm->weight) : named ? FAILED : USAGE;
    if (!status && norm->bias)
        status = load_tensor(&p->bias, model, norm->bias);
    lnorm_model_close(model);
    return status;
}

static int load_statistics(parameters *p, operation *o, const arguments *a) {
    const char *mean = a->given[OPTION_RUNNING_MEAN], *variance = a->given[OPTION_RUNNING_VAR];
    int status;
    if (!mean && !variance)
        return DONE;
    if (o->op.kind != LNORM_BATCH_NORM)
        return report_usage("--running-%s: for --op batch only", mean ? "mean" : "var");
    if (!mean || !variance)
        return report_usage("--running-%s: expected --running-%s, too", mean ? "mean" : "var", mean ? "var" : "mean");
    o->op.statistics = LNORM_CONSTANT;
    status = load_file(&p->mean, mean, a);
    return status ? status : load_file(&p->variance, variance, a);
}

int parameters_load(parameters *p, operation *o, const arguments *a) {
    int status;
    memset(p, 0, sizeof *p);
    if ((status = load_model(p, a)) || (status = load_statistics(p, o, a)) ||
        (status = load_file(&p->weight, a->given[OPTION_WEIGHT], a)))
        return status;
    return load_file(&p->bias, a->given[OPTION_BIAS], a);
}

void parameters_free(parameters *p) {
    array_free(&p->weight);
    array_free(&p->bias);
    array_free(&p->mean);
    array_free(&p->variance);
}

void parameters_place(const parameters *p, lnorm_io *io) {
    io->weight = p->weight.tensor.data ? &p->weight.tensor : NULL;
    io->bias = p->bias.tensor.data ? &p->bias.tensor : NULL;
    io->mean = p->mean.tensor.data ? &p->mean.tensor : NULL;
    io->variance = p->variance.tensor.data ? &p->variance.tensor : NULL;
}
