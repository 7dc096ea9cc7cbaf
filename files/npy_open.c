/* The frame of an .npy file: magic, version, length of the header, header, data to the end. */
#include "npy.h"
#include "source.h"

#include <stdlib.h>
#include <string.h>

typedef struct frame {
    int version;
    int64_t header, data; /* where the dictionary and the elements begin */
} frame;

/* Makes sure that the bytes up to `end` are there. */
static lnorm_status expect_bytes(lnorm_input *input, int64_t end, const char *what, lnorm_error *error) {
    lnorm_status status = lnorm_input_need(input, end, error);
    if (!status && input->size < end)
        status = lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                  "%s: truncated: %s ends at byte %lld, the file at byte %lld: %lld bytes are missing",
                                  input->name.at, what, (long long)end, (long long)input->size,
                                  (long long)(end - input->size));
    return status;
}

static lnorm_status check_magic(const lnorm_input *input, const unsigned char *bytes, lnorm_error *error) {
    const char *format = lnorm_files_format(bytes);
    if (format && bytes[0] != 0x93)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected an .npy file, got %s", input->name.at,
                                format);
    if (!format)
        return lnorm_files_fail(
            error, LNORM_INVALID_ARGUMENT,
            "%s: expected an .npy file, which begins with the bytes 93 4e 55 4d 50 59, got %02x %02x "
            "%02x %02x %02x %02x",
            input->name.at, bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]);
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected .npy version 1.0, 2.0 or 3.0, got %u.%u",
                                input->name.at, (unsigned)bytes[6], (unsigned)bytes[7]);
    return LNORM_OK;
}

/* The length of the header takes two bytes in version 1, four in the others. */
static lnorm_status read_frame(frame *f, lnorm_input *input, lnorm_error *error) {
    unsigned char bytes[LNORM_NPY_MAGIC + 4] = {0};
    int64_t length = 0, field = LNORM_NPY_MAGIC;
    lnorm_status status = expect_bytes(input, LNORM_NPY_MAGIC, "the first part of its header", error);
    if (!status)
        status = lnorm_input_read(input, bytes, 0, field, error);
    if (!status)
        status = check_magic(input, bytes, error);
    if (status)
        return status;
    f->version = bytes[6];
    f->header = field + (f->version == 1 ? 2 : 4);
    status = expect_bytes(input, f->header, "the first part of its header", error);
    if (!status)
        status = lnorm_input_read(input, bytes + field, field, f->header - field, error);
    if (status)
        return status;
    for (int64_t i = f->header; i-- > field;)
        length = length * 256 + bytes[i];
    if (length > LNORM_NPY_LONGEST)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a header of at most %d bytes, got %lld",
                                input->name.at, (int)LNORM_NPY_LONGEST, (long long)length);
    f->data = f->header + length;
    return expect_bytes(input, f->data, "its header", error);
}

static lnorm_status read_header(lnorm_npy_header *header, const frame *f, const lnorm_input *input, int as_bf16,
                                lnorm_error *error) {
    size_t length = (size_t)(f->data - f->header);
    char *text = malloc(length + 1);
    if (!text)
        return lnorm_files_no_memory(error, input->name.at);
    lnorm_status status = lnorm_input_read(input, text, f->header, (int64_t)length, error);
    if (!status)
        status = lnorm_npy_parse(header, text, length, f->header, f->version, as_bf16, input->name.at, error);
    free(text);
    return status;
}

/* As many bytes of data as the shape needs, no more, no less. */
static lnorm_status check_size(lnorm_file *file, lnorm_error *error) {
    lnorm_input *input = &file->input;
    int64_t bytes = file->count * file->element->size;
    lnorm_status status = lnorm_input_need(input, file->data + bytes + 1, error);
    if (status)
        return status;
    int64_t there = input->size - file->data, missing = bytes - there;
    lnorm_files_text shape = lnorm_files_shape(file->tensor.ndim, file->shape);
    if (missing > 0)
        return lnorm_files_fail(
            error, LNORM_INVALID_ARGUMENT,
            "%s: truncated: shape %s of %s takes %lld bytes of data, %lld are there, %lld bytes are "
            "missing",
            input->name.at, shape.at, file->element->name, (long long)bytes, (long long)there, (long long)missing);
    if (missing < 0)
        return lnorm_files_fail(
            error, LNORM_INVALID_ARGUMENT,
            "%s: expected the end of the file after the %lld bytes of data that shape %s of %s takes, "
            "got more bytes",
            input->name.at, (long long)bytes, shape.at, file->element->name);
    return LNORM_OK;
}

lnorm_status lnorm_npy_open(lnorm_file *file, int as_bf16, lnorm_error *error) {
    frame f = {0};
    lnorm_npy_header header = {0};
    lnorm_status status = read_frame(&f, &file->input, error);
    if (!status)
        status = read_header(&header, &f, &file->input, as_bf16, error);
    if (status)
        return status;
    lnorm_files_describe(file, header.element, header.big_endian, header.fortran_order, header.ndim, header.shape);
    file->data = f.data;
    return check_size(file, error);
}
