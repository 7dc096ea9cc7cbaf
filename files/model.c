/* A .safetensors file: eight bytes of header length, a JSON object that names types, shapes and places, the data. */
#include "model.h"
#include "source.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = LNORM_FILES_BEGINNING, LONGEST_HEADER = 100000000 }; /* the limit that the format's own library has */

static lnorm_status load_json(lnorm_model *model, const char *text, size_t length, lnorm_error *error) {
    json_error_t about;
    const char *name = model->input.name.at;
    if (!length || text[0] != '{')
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a header that begins with '{', got %s",
                                name, length ? lnorm_files_quote_bytes(text, 1).at : "none");
    model->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &about);
    if (model->header)
        return LNORM_OK;
    if (json_error_code(&about) == json_error_out_of_memory || !*about.text) /* it seldom says so */
        return lnorm_files_no_memory(error, name);
    return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: header, byte %d: expected a JSON object, got: %s", name,
                            about.position + LENGTH_BYTES, lnorm_files_quote(about.text).at);
}

static lnorm_status read_length(lnorm_model *model, int64_t *length, lnorm_error *error) {
    unsigned char bytes[LENGTH_BYTES];
    const char *name = model->input.name.at;
    uint64_t value = 0;
    if (model->input.size < LENGTH_BYTES)
        return lnorm_files_fail(
            error, LNORM_INVALID_ARGUMENT,
            "%s: truncated: a .safetensors file begins with %d bytes of header length, %lld are there", name,
            (int)LENGTH_BYTES, (long long)model->input.size);
    lnorm_status status = lnorm_input_read(&model->input, bytes, 0, LENGTH_BYTES, error);
    if (status)
        return status;
    for (int i = LENGTH_BYTES; i-- > 0;)
        value = value << 8 | bytes[i];
    const char *format = value > LONGEST_HEADER ? lnorm_files_format(bytes) : NULL;
    if (format)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a .safetensors file, got %s", name, format);
    if (value > LONGEST_HEADER)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "%s: expected a .safetensors file, with a header of at most %d bytes, got one of %llu",
                                name, (int)LONGEST_HEADER, (unsigned long long)value);
    *length = (int64_t)value;
    if (*length > model->input.size - LENGTH_BYTES)
        return lnorm_files_fail(
            error, LNORM_INVALID_ARGUMENT,
            "%s: truncated: the header ends at byte %lld, the file at byte %lld: %lld bytes are missing", name,
            (long long)(*length + LENGTH_BYTES), (long long)model->input.size,
            (long long)(*length + LENGTH_BYTES - model->input.size));
    return LNORM_OK;
}

static lnorm_status read_header(lnorm_model *model, lnorm_error *error) {
    int64_t length = 0;
    lnorm_status status = read_length(model, &length, error);
    if (status)
        return status;
    char *text = malloc((size_t)length + 1);
    if (!text)
        return lnorm_files_no_memory(error, model->input.name.at);
    status = lnorm_input_read(&model->input, text, LENGTH_BYTES, length, error);
    if (!status)
        status = load_json(model, text, (size_t)length, error);
    free(text);
    model->data = LENGTH_BYTES + length;
    return status;
}

static int by_place(const void *a, const void *b) {
    const lnorm_model_entry *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    if (left->end != right->end)
        return left->end < right->end ? -1 : 1;
    return left->position < right->position ? -1 : 1;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(lnorm_model_entry *const *)a)->tensor.name, (*(lnorm_model_entry *const *)b)->tensor.name);
}

/* In the order of their places, each tensor begins where the one before ended, and the last ends with the file. */
static lnorm_status check_places(const lnorm_model *model, lnorm_error *error) {
    int64_t end = 0, size = model->input.size - model->data;
    const char *name = model->input.name.at;
    for (int64_t i = 0; i < model->count; i++) {
        const lnorm_model_entry *entry = &model->entries[i];
        if (entry->begin != end)
            return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                    "%s: tensor %s: expected its data to begin at %lld, where "
                                    "that before it ends, got %lld: %s",
                                    name, lnorm_files_quote(entry->tensor.name).at, (long long)end,
                                    (long long)entry->begin, entry->begin < end ? "an overlap" : "a hole");
        end = entry->end;
    }
    if (end > size)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "%s: truncated: the tensors take %lld bytes of data, %lld are "
                                "there, %lld bytes are missing",
                                name, (long long)end, (long long)size, (long long)(end - size));
    if (end < size)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "%s: expected the end of the file after the %lld bytes of "
                                "data that the tensors take, got %lld bytes more",
                                name, (long long)end, (long long)(size - end));
    return LNORM_OK;
}

static lnorm_status arrange(lnorm_model *model, lnorm_error *error) {
    size_t count = (size_t)model->count;
    model->by_name = malloc((count ? count : 1) * sizeof *model->by_name);
    if (!model->by_name)
        return lnorm_files_no_memory(error, model->input.name.at);
    qsort(model->entries, count, sizeof *model->entries, by_place);
    for (size_t i = 0; i < count; i++)
        model->by_name[i] = &model->entries[i];
    qsort(model->by_name, count, sizeof *model->by_name, by_name);
    return check_places(model, error);
}

static lnorm_status open_file(lnorm_model *model, const char *path, lnorm_error *error) {
    size_t size = strlen(path) + 1;
    if (!strcmp(path, "-"))
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "path: a .safetensors file cannot be read from standard "
                                "input ('./-' is a file of that name)");
    model->path = malloc(size);
    if (!model->path)
        return lnorm_files_no_memory(error, lnorm_files_quote(path).at);
    memcpy(model->path, path, size);
    lnorm_status status = lnorm_input_open(&model->input, path, error);
    if (!status && model->input.stream >= 0)
        status = lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a regular file", model->input.name.at);
    return status;
}

lnorm_model *lnorm_model_open(const char *path, lnorm_error *error) {
    if (!path) {
        lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "path: expected a file name, got NULL");
        return NULL;
    }
    lnorm_model *model = calloc(1, sizeof *model);
    if (!model) {
        lnorm_files_no_memory(error, lnorm_files_quote(path).at);
        return NULL;
    }
    model->input.fd = model->input.stream = -1;
    lnorm_status status = open_file(model, path, error);
    if (!status)
        status = read_header(model, error);
    if (!status)
        status = lnorm_model_parse(model, error);
    if (!status)
        status = arrange(model, error);
    if (!status)
        status = lnorm_model_find_norms(model, error);
    if (status) {
        lnorm_model_close(model);
        return NULL;
    }
    lnorm_files_succeed(error);
    return model;
}

void lnorm_model_close(lnorm_model *model) {
    if (!model)
        return;
    lnorm_input_close(&model->input);
    for (int64_t i = 0; i < model->count; i++)
        free(model->entries[i].shape);
    free(model->entries);
    free(model->by_name);
    free(model->norms);
    free(model->norm_names);
    free(model->path);
    json_decref(model->header);
    free(model);
}

int64_t lnorm_model_count(const lnorm_model *model) {
    return model->count;
}

const lnorm_model_tensor *lnorm_model_at(const lnorm_model *model, int64_t index) {
    return index >= 0 && index < model->count ? &model->entries[index].tensor : NULL;
}

const lnorm_model_tensor *lnorm_model_find(const lnorm_model *model, const char *name) {
    int64_t low = 0, high = model->count;
    while (name && low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(name, model->by_name[middle]->tensor.name);
        if (!order)
            return &model->by_name[middle]->tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static lnorm_status check_readable(const lnorm_model *model, const lnorm_model_tensor *tensor, lnorm_error *error) {
    const char *name = model->input.name.at;
    if (!tensor)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: tensor: expected one of its tensors, got NULL",
                                name);
    if (!lnorm_files_element_of(tensor->dtype))
        return lnorm_files_fail(error, LNORM_UNSUPPORTED_DTYPE,
                                "%s: tensor %s: expected " LNORM_FILES_FLOATS " (F64, F32, "
                                "F16, BF16), got %s",
                                name, lnorm_files_quote(tensor->name).at, lnorm_files_quote(tensor->dtype_name).at);
    if (tensor->ndim > LNORM_MAX_NDIM)
        return lnorm_files_fail(error, LNORM_UNSUPPORTED, "%s: tensor %s: expected at most %d axes, got %d", name,
                                lnorm_files_quote(tensor->name).at, (int)LNORM_MAX_NDIM, (int)tensor->ndim);
    return LNORM_OK;
}

lnorm_file *lnorm_model_read(const lnorm_model *model, const lnorm_model_tensor *tensor, lnorm_error *error) {
    const lnorm_model_entry *entry = (const lnorm_model_entry *)tensor;
    if (check_readable(model, tensor, error))
        return NULL;
    lnorm_file *file = lnorm_files_new(model->path);
    if (!file) {
        lnorm_files_no_memory(error, model->input.name.at);
        return NULL;
    }
    if (lnorm_input_copy(&file->input, &model->input, error)) {
        lnorm_file_close(file);
        return NULL;
    }
    lnorm_files_describe(file, lnorm_files_element_of(tensor->dtype), 0, 0, tensor->ndim, tensor->shape);
    file->data = model->data + entry->begin;
    lnorm_files_succeed(error);
    return file;
}
