#include "npy.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

struct lnorm_file_writer {
    lnorm_output output;
    lnorm_npy_header header;
    int64_t data; /* place of the first element */
    int64_t count, written;
    int failed; /* a write did */
};

static lnorm_status check_arguments(lnorm_npy_header *header, const char *path, lnorm_dtype dtype, int32_t ndim,
                                    const int64_t *shape, lnorm_error *error) {
    if (!path || (ndim > 0 && !shape))
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a pointer, got NULL",
                                path ? "shape" : "path");
    header->element = lnorm_files_element_of(dtype);
    if (!header->element)
        return lnorm_files_fail(error, LNORM_UNSUPPORTED_DTYPE,
                                "%s: expected " LNORM_FILES_FLOATS ", got a type of code "
                                "%u, %u bits, %u lanes",
                                lnorm_files_quote(path).at, (unsigned)dtype.code, (unsigned)dtype.bits,
                                (unsigned)dtype.lanes);
    if (ndim < 0 || ndim > LNORM_MAX_NDIM)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: ndim: expected 0 to %d, got %d",
                                lnorm_files_quote(path).at, (int)LNORM_MAX_NDIM, (int)ndim);
    header->big_endian = header->fortran_order = 0;
    header->ndim = ndim;
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: shape %s: expected extents of at least 0",
                                    lnorm_files_quote(path).at, lnorm_files_shape(ndim, shape).at);
        header->shape[i] = shape[i];
    }
    if (lnorm_files_count(ndim, shape, header->element->size) < 0)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: shape %s of %s is 2^62 bytes or more",
                                lnorm_files_quote(path).at, lnorm_files_shape(ndim, shape).at, header->element->name);
    return LNORM_OK;
}

static lnorm_status begin(lnorm_file_writer *writer, lnorm_error *error) {
    char text[LNORM_NPY_ROOM];
    writer->data = (int64_t)lnorm_npy_print(text, &writer->header);
    return lnorm_output_write(&writer->output, text, 0, writer->data, error);
}

lnorm_file_writer *lnorm_file_create(const char *path, lnorm_dtype dtype, int32_t ndim, const int64_t *shape,
                                     lnorm_error *error) {
    lnorm_npy_header header;
    if (check_arguments(&header, path, dtype, ndim, shape, error))
        return NULL;
    lnorm_file_writer *writer = calloc(1, sizeof *writer);
    if (!writer) {
        lnorm_files_no_memory(error, lnorm_files_quote(path).at);
        return NULL;
    }
    writer->header = header;
    writer->count = lnorm_files_count(ndim, shape, header.element->size);
    if (lnorm_output_open(&writer->output, path, error)) {
        free(writer);
        return NULL;
    }
    if (begin(writer, error)) {
        lnorm_file_abort(writer);
        return NULL;
    }
    lnorm_files_succeed(error);
    return writer;
}

int lnorm_file_writer_seekable(const lnorm_file_writer *writer) {
    return !writer->output.stream;
}

const char *lnorm_file_writer_temporary(const lnorm_file_writer *writer) {
    return writer->output.temporary;
}

static lnorm_status write_swapped(lnorm_file_writer *writer, const unsigned char *bytes, int64_t offset, int64_t count,
                                  lnorm_error *error) {
    unsigned char buffer[8192];
    int32_t size = writer->header.element->size;
    lnorm_status status = LNORM_OK;
    for (int64_t done = 0, portion; done < count && !status; done += portion) {
        portion = count - done < (int64_t)sizeof buffer ? count - done : (int64_t)sizeof buffer;
        memcpy(buffer, bytes + done, (size_t)portion);
        lnorm_files_swap(buffer, portion / size, size);
        status = lnorm_output_write(&writer->output, buffer, offset + done, portion, error);
    }
    return status;
}

lnorm_status lnorm_file_write(lnorm_file_writer *writer, const void *buffer, int64_t first, int64_t count,
                              lnorm_error *error) {
    int32_t size = writer->header.element->size;
    const char *name = writer->output.name.at;
    if (first < 0 || count < 0 || first > writer->count || count > writer->count - first)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "%s: expected elements among its %lld, got %lld from %lld on", name,
                                (long long)writer->count, (long long)count, (long long)first);
    if (count && !buffer)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "buffer: expected %lld elements, got NULL",
                                (long long)count);
    if (writer->output.stream && writer->data + first * size != writer->output.position)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "%s: is written in order: expected elements from %lld on, got "
                                "elements from %lld on",
                                name, (long long)((writer->output.position - writer->data) / size), (long long)first);
    int64_t offset = writer->data + first * size;
    lnorm_status status = lnorm_files_big_endian_machine()
                              ? write_swapped(writer, buffer, offset, count * size, error)
                              : lnorm_output_write(&writer->output, buffer, offset, count * size, error);
    if (status) {
        writer->failed = 1;
        return status;
    }
    writer->written += count;
    return lnorm_files_succeed(error);
}

lnorm_status lnorm_file_commit(lnorm_file_writer *writer, lnorm_error *error) {
    lnorm_status status;
    if (!writer)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT,
                                "writer: expected what lnorm_file_create gave, got NULL");
    const char *name = writer->output.name.at;
    if (writer->failed)
        status = lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: cannot be finished after an error", name);
    else if (writer->written < writer->count)
        status = lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected %lld elements to be written, got %lld",
                                  name, (long long)writer->count, (long long)writer->written);
    else
        status = lnorm_output_commit(&writer->output, error);
    lnorm_file_abort(writer);
    return status ? status : lnorm_files_succeed(error);
}

void lnorm_file_abort(lnorm_file_writer *writer) {
    if (!writer)
        return;
    lnorm_output_abort(&writer->output);
    free(writer);
}
