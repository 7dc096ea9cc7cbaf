/* A layer's parameters in a .safetensors file. */
#include "convert.h"
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of a layer's two parameters, on its way from a file. */
typedef struct parameter {
    const lnorm_tensor *tensor; /* the layer's own, NULL where it has none */
    char *key;
    void *loaded; /* its new content, in the layer's type */
} parameter;

typedef struct parameters {
    parameter weight, bias;
} parameters;

static int64_t count_of(const lnorm_tensor *tensor) {
    return lnorm_files_count(tensor->ndim, tensor->shape, 1);
}

static size_t bytes_of(const lnorm_tensor *tensor) {
    return (size_t)count_of(tensor) * tensor->dtype.bits / 8;
}

static char *key_of(const char *prefix, const char *leaf) {
    size_t size = strlen(prefix) + strlen(leaf) + 1;
    char *key = malloc(size);
    if (key)
        snprintf(key, size, "%s%s", prefix, leaf);
    return key;
}

static lnorm_status begin(parameters *p, const lnorm_layer *layer, const char *path, const char *prefix,
                          lnorm_error *error) {
    memset(p, 0, sizeof *p);
    if (!layer || !path)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected %s, got NULL", layer ? "path" : "layer",
                                layer ? "a file name" : "what lnorm_layer_create gave");
    p->weight.tensor = lnorm_layer_weight(layer);
    p->bias.tensor = lnorm_layer_bias(layer);
    p->weight.key = key_of(prefix, "weight");
    p->bias.key = key_of(prefix, "bias");
    return p->weight.key && p->bias.key ? LNORM_OK : lnorm_files_no_memory(error, lnorm_files_quote(path).at);
}

static void end(parameters *p) {
    free(p->weight.key);
    free(p->bias.key);
    free(p->weight.loaded);
    free(p->bias.loaded);
}

lnorm_status lnorm_layer_save(const lnorm_layer *layer, const char *path, const char *prefix, lnorm_error *error) {
    parameters p;
    lnorm_named_tensor tensors[2];
    int64_t count = 0;
    lnorm_status status = begin(&p, layer, path, prefix ? prefix : "", error);
    const parameter *both[] = {&p.weight, &p.bias};
    for (int i = 0; i < 2 && !status; i++)
        if (both[i]->tensor) {
            tensors[count].name = both[i]->key;
            tensors[count++].tensor = *both[i]->tensor;
        }
    if (!status)
        status = lnorm_model_save(path, tensors, count, error);
    end(&p);
    return status;
}

/* Every key of this layer's prefix, without further dots, must be one that the layer has. */
static lnorm_status check_keys(const parameters *p, const lnorm_model *model, const char *prefix, const char *name,
                               lnorm_error *error) {
    const parameter *both[] = {&p->weight, &p->bias};
    size_t length = strlen(prefix);
    for (int i = 0; i < 2; i++)
        if (both[i]->tensor && !lnorm_model_find(model, both[i]->key))
            return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: the key %s is missing (it has %lld others)",
                                    name, lnorm_files_quote(both[i]->key).at, (long long)lnorm_model_count(model));
    for (int64_t i = 0; i < lnorm_model_count(model); i++) {
        const char *key = lnorm_model_at(model, i)->name;
        int ours = (p->weight.tensor && !strcmp(key, p->weight.key)) || (p->bias.tensor && !strcmp(key, p->bias.key));
        if (!ours && !strncmp(key, prefix, length) && !strchr(key + length, '.'))
            return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: the key %s is unexpected: the layer has %s",
                                    name, lnorm_files_quote(key).at,
                                    p->bias.tensor     ? "weight and bias"
                                    : p->weight.tensor ? "weight only"
                                                       : "no parameters");
    }
    return LNORM_OK;
}

static lnorm_status read_parameter(parameter *p, const lnorm_file *file, const char *name, lnorm_error *error) {
    const lnorm_tensor *tensor = lnorm_file_tensor(file);
    int64_t count = lnorm_file_count(file);
    const lnorm_files_element *own = lnorm_files_element_of(p->tensor->dtype);
    size_t bytes = bytes_of(tensor);
    void *raw = malloc(bytes ? bytes : 1);
    lnorm_status status =
        raw && p->loaded ? lnorm_file_read(file, raw, 0, count, error) : lnorm_files_no_memory(error, name);
    if (!status && file->element == own)
        memcpy(p->loaded, raw, bytes);
    else if (!status)
        lnorm_files_convert(p->loaded, own, raw, file->element, count);
    free(raw);
    return status;
}

/* error is not NULL: it tells why a function gave NULL. */
static lnorm_status load_parameter(parameter *p, const lnorm_model *model, const char *name, lnorm_error *error) {
    if (!p->tensor)
        return LNORM_OK;
    const lnorm_model_tensor *found = lnorm_model_find(model, p->key);
    size_t bytes = bytes_of(p->tensor);
    if (found->ndim != p->tensor->ndim ||
        memcmp(found->shape, p->tensor->shape, (size_t)found->ndim * sizeof *found->shape))
        return lnorm_files_fail(error, LNORM_SHAPE_MISMATCH, "%s: key %s: expected shape %s, the layer's, got %s", name,
                                lnorm_files_quote(p->key).at, lnorm_files_shape(p->tensor->ndim, p->tensor->shape).at,
                                lnorm_files_shape(found->ndim, found->shape).at);
    lnorm_file *file = lnorm_model_read(model, found, error);
    if (!file)
        return error->status;
    p->loaded = malloc(bytes ? bytes : 1);
    lnorm_status status = read_parameter(p, file, name, error);
    lnorm_file_close(file);
    return status;
}

static lnorm_status load(parameters *p, const lnorm_model *model, const char *prefix, const char *name,
                         lnorm_error *error) {
    lnorm_status status = check_keys(p, model, prefix, name, error);
    if (!status)
        status = load_parameter(&p->weight, model, name, error);
    if (!status)
        status = load_parameter(&p->bias, model, name, error);
    return status;
}

/* Nothing can fail any more. */
static void take_over(const parameter *p) {
    if (p->tensor)
        memcpy((char *)p->tensor->data + p->tensor->byte_offset, p->loaded, bytes_of(p->tensor));
}

lnorm_status lnorm_layer_load(lnorm_layer *layer, const char *path, const char *prefix, lnorm_error *user_error) {
    parameters p;
    lnorm_error own = LNORM_ERROR_INIT, *error = &own; /* its status is looked at here */
    prefix = prefix ? prefix : "";
    lnorm_status status = begin(&p, layer, path, prefix, error);
    lnorm_model *model = status ? NULL : lnorm_model_open(path, error);
    if (!status)
        status = error->status;
    if (!status)
        status = load(&p, model, prefix, lnorm_files_quote(path).at, error);
    if (!status) {
        take_over(&p.weight);
        take_over(&p.bias);
    }
    lnorm_model_close(model);
    end(&p);
    return status ? lnorm_files_fail(user_error, status, "%s", own.message) : lnorm_files_succeed(user_error);
}
