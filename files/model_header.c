/* The JSON header of a .safetensors file, object by object. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

/* Every type that the format has, and its bits. Of a type that is not here, only the places can be checked. */
static const struct {
    const char *name;
    int bits;
} types[] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"U16", 16},        {"I16", 16},    {"U32", 32},
    {"I32", 32},    {"U64", 64},    {"I64", 64},        {"F16", 16},        {"BF16", 16},   {"F32", 32},
    {"F64", 64},    {"C64", 64},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
};

static int bits_of(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return types[i].bits;
    return 0;
}

static lnorm_dtype dtype_of(const char *name) {
    for (int i = 0; i < LNORM_FILES_ELEMENTS; i++)
        if (!strcmp(lnorm_files_elements[i].safetensors, name))
            return lnorm_files_elements[i].dtype;
    return (lnorm_dtype){0, 0, 0};
}

/* What is wrong with the tensor `entry`: "FILE: tensor NAME: expected ..." */
static lnorm_status refuse(const lnorm_model *model, const lnorm_model_entry *entry, const char *expected,
                           lnorm_error *error) {
    return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: tensor %s: expected %s", model->input.name.at,
                            lnorm_files_quote(entry->tensor.name).at, expected);
}

static lnorm_status parse_shape(const lnorm_model *model, lnorm_model_entry *entry, const json_t *shape,
                                lnorm_error *error) {
    size_t ndim = json_array_size(shape);
    if (!json_is_array(shape) || ndim > INT32_MAX)
        return refuse(model, entry, "shape to be an array of integers", error);
    entry->shape = malloc((ndim ? ndim : 1) * sizeof *entry->shape);
    if (!entry->shape)
        return lnorm_files_no_memory(error, model->input.name.at);
    for (size_t i = 0; i < ndim; i++) {
        const json_t *extent = json_array_get(shape, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return refuse(model, entry, "shape to be an array of integers of at least 0", error);
        entry->shape[i] = json_integer_value(extent);
    }
    entry->tensor.shape = entry->shape;
    entry->tensor.ndim = (int32_t)ndim;
    return LNORM_OK;
}

static lnorm_status parse_offsets(const lnorm_model *model, lnorm_model_entry *entry, const json_t *offsets,
                                  lnorm_error *error) {
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return refuse(model, entry, "data_offsets to be an array of two integers", error);
    entry->begin = json_integer_value(begin);
    entry->end = json_integer_value(end);
    if (entry->begin < 0 || entry->end < entry->begin || entry->end > LNORM_FILES_MOST)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "%s: tensor %s: expected data_offsets [begin, end] with 0 <= "
                                "begin <= end < 2^62, got [%lld, %lld]",
                                model->input.name.at, lnorm_files_quote(entry->tensor.name).at, (long long)entry->begin,
                                (long long)entry->end);
    entry->tensor.bytes = entry->end - entry->begin;
    return LNORM_OK;
}

/* The shape's bytes, computed in bits and without overflow, are those that the offsets say. Types of 4 and 6 bits fill
 * whole bytes. */
static lnorm_status check_bytes(const lnorm_model *model, const lnorm_model_entry *entry, lnorm_error *error) {
    const lnorm_model_tensor *tensor = &entry->tensor;
    int bits = bits_of(tensor->dtype_name);
    int64_t count = bits ? lnorm_files_count(tensor->ndim, tensor->shape, bits) : 0;
    if (count < 0)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: tensor %s: shape %s of %s is 2^62 bits or more",
                                model->input.name.at, lnorm_files_quote(tensor->name).at,
                                lnorm_files_shape(tensor->ndim, tensor->shape).at, tensor->dtype_name);
    if (bits && (count * bits % 8 || count * bits / 8 != tensor->bytes))
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "%s: tensor %s: shape %s of %s takes %lld bytes%s, "
                                "data_offsets give it %lld",
                                model->input.name.at, lnorm_files_quote(tensor->name).at,
                                lnorm_files_shape(tensor->ndim, tensor->shape).at, tensor->dtype_name,
                                (long long)(count * bits / 8), count * bits % 8 ? " and some bits" : "",
                                (long long)tensor->bytes);
    return LNORM_OK;
}

static lnorm_status parse_tensor(const lnorm_model *model, lnorm_model_entry *entry, const json_t *object,
                                 lnorm_error *error) {
    const json_t *type = json_object_get(object, "dtype"), *shape = json_object_get(object, "shape"),
                 *offsets = json_object_get(object, "data_offsets");
    if (json_object_size(object) != 3 || !type || !shape || !offsets)
        return refuse(model, entry, "an object with the keys dtype, shape and data_offsets, and no others", error);
    if (!json_is_string(type))
        return refuse(model, entry, "dtype to be a string", error);
    entry->tensor.dtype_name = json_string_value(type);
    entry->tensor.dtype = dtype_of(entry->tensor.dtype_name);
    lnorm_status status = parse_shape(model, entry, shape, error);
    if (!status)
        status = parse_offsets(model, entry, offsets, error);
    return status ? status : check_bytes(model, entry, error);
}

static lnorm_status check_metadata(const lnorm_model *model, json_t *metadata, lnorm_error *error) {
    const char *key;
    json_t *value;
    int strings = json_is_object(metadata);
    json_object_foreach(metadata, key, value) strings = strings && json_is_string(value);
    return strings ? LNORM_OK
                   : lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: __metadata__: expected an object of strings",
                                      model->input.name.at);
}

lnorm_status lnorm_model_parse(lnorm_model *model, lnorm_error *error) {
    const char *key;
    json_t *value;
    size_t size = json_object_size(model->header);
    model->entries = calloc(size ? size : 1, sizeof *model->entries);
    if (!model->entries)
        return lnorm_files_no_memory(error, model->input.name.at);
    json_object_foreach(model->header, key, value) {
        lnorm_status status;
        if (!strcmp(key, "__metadata__"))
            status = check_metadata(model, value, error);
        else {
            lnorm_model_entry *entry = &model->entries[model->count];
            entry->position = (size_t)model->count++;
            entry->tensor.name = key;
            status = parse_tensor(model, entry, value, error);
        }
        if (status)
            return status;
    }
    return LNORM_OK;
}
