/* Writes a .safetensors file as the format's own library does, byte for byte (but for the escapes of control characters
 * in names). */
#include "element.h"
#include "output.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct item {
    const char *name;
    const lnorm_tensor *tensor;
    const lnorm_files_element *element;
    int64_t bytes;
} item;

static int is_row_major(const lnorm_tensor *tensor) {
    int64_t stride = 1;
    for (int32_t i = tensor->ndim; tensor->strides && i-- > 0;) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != stride)
            return 0;
        stride *= tensor->shape[i];
    }
    return 1;
}

/* What is wrong with a tensor: "tensor NAME: expected ..." */
static lnorm_status refuse(const item *it, lnorm_status status, const char *expected, lnorm_error *error) {
    return lnorm_files_fail(error, status, "tensor %s: expected %s", lnorm_files_quote(it->name).at, expected);
}

/* Bytes of the character at `at`; 0 where there is none: a stray or missing continuation, a form longer than needed,
 * half of a surrogate pair, a number beyond 0x10FFFF. Not left to jansson, which refuses for want of memory, too. */
static int character(const unsigned char *at) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = *at < 0x80 ? 1 : *at < 0xC0 ? 0 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : *at < 0xF8 ? 4 : 0;
    uint32_t value = length == 1 ? *at : *at & 0xFFu >> (length + 1);
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80) /* the end of the text, too */
            return 0;
        value = value << 6 | (at[i] & 0x3Fu);
    }
    return value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000) ? 0 : length;
}

static int is_utf8(const unsigned char *text) {
    while (*text) {
        int length = character(text);
        if (!length)
            return 0;
        text += length;
    }
    return 1;
}

static lnorm_status check(item *it, const lnorm_named_tensor *named, lnorm_error *error) {
    const lnorm_tensor *tensor = &named->tensor;
    it->name = named->name;
    it->tensor = tensor;
    it->element = lnorm_files_element_of(tensor->dtype);
    if (!it->name)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "tensors: expected a name for each, got NULL");
    if (!is_utf8((const unsigned char *)it->name))
        return refuse(it, LNORM_INVALID_ARGUMENT, "a name in UTF-8", error);
    if (!strcmp(it->name, "__metadata__"))
        return refuse(it, LNORM_INVALID_ARGUMENT, "another name, this one has a meaning in the file", error);
    if (!it->element)
        return refuse(it, LNORM_UNSUPPORTED_DTYPE, LNORM_FILES_FLOATS, error);
    if (tensor->device.device_type != 0 && tensor->device.device_type != 1)
        return refuse(it, LNORM_UNSUPPORTED, "memory of the CPU", error);
    if (tensor->ndim < 0 || tensor->ndim > LNORM_MAX_NDIM || (tensor->ndim && !tensor->shape))
        return refuse(it, LNORM_INVALID_ARGUMENT, "a shape of 0 to 16 axes", error);
    for (int32_t i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] < 0)
            return refuse(it, LNORM_INVALID_ARGUMENT, "extents of at least 0", error);
    int64_t count = lnorm_files_count(tensor->ndim, tensor->shape, it->element->size);
    it->bytes = count * it->element->size;
    if (count < 0)
        return refuse(it, LNORM_INVALID_ARGUMENT, "less than 2^62 bytes", error);
    if (count && !tensor->data)
        return refuse(it, LNORM_INVALID_ARGUMENT, "data, got NULL", error);
    return count && !is_row_major(tensor) ? refuse(it, LNORM_UNSUPPORTED, "a dense row-major tensor", error) : LNORM_OK;
}

static int in_order(const void *a, const void *b) {
    const item *left = a, *right = b;
    if (left->element != right->element) /* both point into the table, which is in the order of the file */
        return left->element < right->element ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* NULL where there is no memory. */
static json_t *integers(int32_t count, const int64_t *values) {
    json_t *array = json_array();
    for (int32_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(values[i]));
    if (json_array_size(array) == (size_t)count)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *entry_of(const item *it, int64_t place) {
    const int64_t offsets[] = {place, place + it->bytes};
    json_t *entry = json_object();
    json_object_set_new(entry, "dtype", json_string(it->element->safetensors));
    json_object_set_new(entry, "shape", integers(it->tensor->ndim, it->tensor->shape));
    json_object_set_new(entry, "data_offsets", integers(2, offsets));
    if (json_object_size(entry) == 3)
        return entry;
    json_decref(entry);
    return NULL;
}

/* Counted, then printed: json_dumps leaves out what it finds no memory for, and says nothing. */
static char *printed(const json_t *json) {
    size_t size = json_dumpb(json, NULL, 0, JSON_COMPACT);
    char *text = size ? malloc(size + 1) : NULL;
    if (text && json_dumpb(json, text, size, JSON_COMPACT) != size) {
        free(text);
        text = NULL;
    }
    if (text)
        text[size] = 0;
    return text;
}

/* The header's text, to be freed; NULL: no memory. */
static char *header_of(const item *items, size_t count) {
    json_t *header = json_object();
    int64_t place = 0;
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(header, items[i].name, entry_of(&items[i], place));
        place += items[i].bytes;
    }
    char *text = json_object_size(header) == count ? printed(header) : NULL;
    json_decref(header);
    return text;
}

static lnorm_status write_header(lnorm_output *output, const char *text, int64_t *place, lnorm_error *error) {
    static const char padding[8] = "        ";
    unsigned char length[8];
    int64_t size = (int64_t)strlen(text), padded = (size + 7) / 8 * 8;
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(padded >> (8 * i) & 0xFF);
    lnorm_status status = lnorm_output_write(output, length, 0, 8, error);
    if (!status)
        status = lnorm_output_write(output, text, 8, size, error);
    if (!status)
        status = lnorm_output_write(output, padding, 8 + size, padded - size, error);
    *place = 8 + padded;
    return status;
}

/* The data in little-endian order; on other machines by way of a small buffer. */
static lnorm_status write_data(lnorm_output *output, const item *it, int64_t place, lnorm_error *error) {
    unsigned char buffer[8192];
    lnorm_status status = LNORM_OK;
    if (!it->bytes) /* data may be NULL */
        return LNORM_OK;
    const unsigned char *data = (const unsigned char *)it->tensor->data + it->tensor->byte_offset;
    if (!lnorm_files_big_endian_machine())
        return lnorm_output_write(output, data, place, it->bytes, error);
    for (int64_t done = 0, portion; done < it->bytes && !status; done += portion) {
        portion = it->bytes - done < (int64_t)sizeof buffer ? it->bytes - done : (int64_t)sizeof buffer;
        memcpy(buffer, data + done, (size_t)portion);
        lnorm_files_swap(buffer, portion / it->element->size, it->element->size);
        status = lnorm_output_write(output, buffer, place + done, portion, error);
    }
    return status;
}

static lnorm_status write_file(const char *path, const char *header, const item *items, size_t count,
                               lnorm_error *error) {
    lnorm_output output;
    int64_t place;
    lnorm_status status = lnorm_output_open(&output, path, error);
    if (status)
        return status;
    status = write_header(&output, header, &place, error);
    for (size_t i = 0; i < count && !status; i++) {
        status = write_data(&output, &items[i], place, error);
        place += items[i].bytes;
    }
    if (!status)
        return lnorm_output_commit(&output, error);
    lnorm_output_abort(&output);
    return status;
}

static lnorm_status collect(item *items, const lnorm_named_tensor *tensors, size_t count, lnorm_error *error) {
    int64_t room = LNORM_FILES_MOST;
    for (size_t i = 0; i < count; i++) {
        lnorm_status status = check(&items[i], &tensors[i], error);
        if (status)
            return status;
        if (items[i].bytes > room)
            return refuse(&items[i], LNORM_INVALID_ARGUMENT, "less than 2^62 bytes of all tensors together", error);
        room -= items[i].bytes;
    }
    qsort(items, count, sizeof *items, in_order);
    return LNORM_OK;
}

/* Names are unique among all types, not only among neighbours in the order of the file. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static lnorm_status check_names(const item *items, size_t count, lnorm_error *error) {
    lnorm_status status = LNORM_OK;
    const char **names = malloc((count ? count : 1) * sizeof *names);
    if (!names)
        return lnorm_files_no_memory(error, "lnorm_model_save");
    for (size_t i = 0; i < count; i++)
        names[i] = items[i].name;
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; i < count && !status; i++)
        if (!strcmp(names[i - 1], names[i]))
            status =
                lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "tensor %s: expected different names, got it twice",
                                 lnorm_files_quote(names[i]).at);
    free(names);
    return status;
}

static lnorm_status save(const char *path, item *items, const lnorm_named_tensor *tensors, size_t count,
                         lnorm_error *error) {
    lnorm_status status = collect(items, tensors, count, error);
    if (!status)
        status = check_names(items, count, error);
    if (status)
        return status;
    char *header = header_of(items, count);
    if (!header)
        return lnorm_files_no_memory(error, "lnorm_model_save");
    status = write_file(path, header, items, count, error);
    free(header);
    return status;
}

lnorm_status lnorm_model_save(const char *path, const lnorm_named_tensor *tensors, int64_t count, lnorm_error *error) {
    if (!path || count < 0 || (count && !tensors))
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected %s", !path ? "path" : "tensors",
                                !path ? "a file name, got NULL" : "a pointer to `count` tensors");
    if (!strcmp(path, "-"))
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "path: a .safetensors file cannot be written to standard "
                                "output ('./-' is a file of that name)");
    item *items = (uint64_t)count < SIZE_MAX / sizeof *items ? malloc(((size_t)count + 1) * sizeof *items) : NULL;
    if (!items)
        return lnorm_files_no_memory(error, "lnorm_model_save");
    lnorm_status status = save(path, items, tensors, (size_t)count, error);
    free(items);
    return status ? status : lnorm_files_succeed(error);
}
