#include "source.h"

#include <stdlib.h>
#include <string.h>

lnorm_file *lnorm_files_new(const char *path) {
    lnorm_file *file = calloc(1, sizeof *file);
    size_t size = strlen(path) + 1;
    if (!file)
        return NULL;
    file->input.fd = file->input.stream = -1;
    file->path = malloc(size);
    if (!file->path) {
        free(file);
        return NULL;
    }
    memcpy(file->path, path, size);
    return file;
}

void lnorm_files_describe(lnorm_file *file, const lnorm_files_element *element, int big_endian, int fortran_order,
                          int32_t ndim, const int64_t *shape) {
    int64_t stride = 1;
    file->element = element;
    file->big_endian = big_endian;
    for (int32_t i = 0; i < ndim; i++)
        file->shape[i] = shape[i];
    for (int32_t i = 0; i < ndim; i++) {
        int32_t axis = fortran_order ? i : ndim - 1 - i;
        file->strides[axis] = stride;
        stride *= shape[axis] ? shape[axis] : 1; /* an array without elements has usable strides, too */
    }
    file->count = lnorm_files_count(ndim, shape, element->size);
    file->tensor = lnorm_dense(NULL, element->dtype, ndim, file->shape);
    file->tensor.strides = file->strides;
}

void lnorm_file_close(lnorm_file *file) {
    if (!file)
        return;
    lnorm_input_close(&file->input);
    free(file->path);
    free(file);
}

static lnorm_status check_options(const lnorm_file_options *options, lnorm_error *error) {
    if (options->size < sizeof *options)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "options.size: expected sizeof(lnorm_file_options), at least %zu, got %zu (start from "
                                "LNORM_FILE_OPTIONS_INIT)",
                                sizeof *options, options->size);
    for (size_t i = offsetof(lnorm_file_options, reserved); i < options->size; i++)
        if (((const unsigned char *)options)[i])
            return lnorm_files_fail(error, LNORM_UNSUPPORTED,
                                    "options: a member that this version does not know is set");
    return LNORM_OK;
}

static lnorm_file *open_npy(const char *path, int as_bf16, lnorm_error *error) {
    lnorm_file *file = lnorm_files_new(path);
    if (!file) {
        lnorm_files_no_memory(error, lnorm_files_quote(path).at);
        return NULL;
    }
    lnorm_status status = lnorm_input_open(&file->input, path, error);
    if (!status)
        status = lnorm_npy_open(file, as_bf16, error);
    if (status) {
        lnorm_file_close(file);
        return NULL;
    }
    lnorm_files_succeed(error);
    return file;
}

/* Opens the tensor `name`; path_length bytes of path are the file. */
static lnorm_file *open_tensor(const char *path, size_t path_length, const char *name, lnorm_error *error) {
    lnorm_file *file = NULL;
    char *model_path = malloc(path_length + 1);
    if (!model_path) {
        lnorm_files_no_memory(error, lnorm_files_quote(path).at);
        return NULL;
    }
    memcpy(model_path, path, path_length);
    model_path[path_length] = 0;
    lnorm_model *model = lnorm_model_open(model_path, error);
    const lnorm_model_tensor *tensor = model ? lnorm_model_find(model, name) : NULL;
    if (tensor)
        file = lnorm_model_read(model, tensor, error);
    else if (model)
        lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: has no tensor %s (it has %lld)",
                         lnorm_files_quote(model_path).at, lnorm_files_quote(name).at,
                         (long long)lnorm_model_count(model));
    lnorm_model_close(model);
    free(model_path);
    return file;
}

lnorm_file *lnorm_file_open(const char *path, const lnorm_file_options *options, lnorm_error *error) {
    static const char extension[] = ".safetensors";
    const size_t length = sizeof extension - 1;
    if (!path) {
        lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "path: expected a file name, got NULL");
        return NULL;
    }
    if (options && check_options(options, error))
        return NULL;
    for (const char *at = strstr(path, extension); at; at = strstr(at + 1, extension))
        if (at[length] == ':')
            return open_tensor(path, (size_t)(at - path) + length, at + length + 1, error);
    if (strlen(path) >= length && !strcmp(path + strlen(path) - length, extension)) {
        lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a tensor of it, as in file.safetensors:name",
                         lnorm_files_quote(path).at);
        return NULL;
    }
    return open_npy(path, options && options->as_bf16, error);
}

lnorm_file *lnorm_file_open_tensor(const char *path, const char *name, lnorm_error *error) {
    if (!path || !name) {
        lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a name, got NULL", path ? "name" : "path");
        return NULL;
    }
    return open_tensor(path, strlen(path), name, error);
}

const lnorm_tensor *lnorm_file_tensor(const lnorm_file *file) {
    return &file->tensor;
}

int64_t lnorm_file_count(const lnorm_file *file) {
    return file->count;
}

int lnorm_file_big_endian(const lnorm_file *file) {
    return file->big_endian;
}

const char *lnorm_file_path(const lnorm_file *file) {
    return file->path;
}

lnorm_status lnorm_file_read(const lnorm_file *file, void *buffer, int64_t first, int64_t count, lnorm_error *error) {
    int32_t size = file->element->size;
    if (first < 0 || count < 0 || first > file->count || count > file->count - first)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "%s: expected elements among its %lld, got %lld from %lld on", file->input.name.at,
                                (long long)file->count, (long long)count, (long long)first);
    if (count && !buffer)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "buffer: expected room for %lld elements, got NULL",
                                (long long)count);
    lnorm_status status = lnorm_input_read(&file->input, buffer, file->data + first * size, count * size, error);
    if (status)
        return status;
    if (file->big_endian != lnorm_files_big_endian_machine())
        lnorm_files_swap(buffer, count, size);
    return lnorm_files_succeed(error);
}
