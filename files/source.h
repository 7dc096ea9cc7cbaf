/* What an lnorm_file is. */
#ifndef LNORM_FILES_SOURCE_H
#define LNORM_FILES_SOURCE_H

#include "element.h"
#include "input.h"

struct lnorm_file {
    lnorm_input input;
    char *path;
    lnorm_tensor tensor; /* shape and strides point to those below */
    int64_t shape[LNORM_MAX_NDIM], strides[LNORM_MAX_NDIM];
    const lnorm_files_element *element;
    int64_t count;
    int64_t data; /* place of the first element in the input */
    int big_endian;
};

/* A file without input, or NULL. */
lnorm_file *lnorm_files_new(const char *path);

/* Fills in all but input, path, data. The shape's bytes must be below 2^62. */
void lnorm_files_describe(lnorm_file *file, const lnorm_files_element *element, int big_endian, int fortran_order,
                          int32_t ndim, const int64_t *shape);

/* Reads the header of file->input, an .npy file, and checks the size. */
lnorm_status lnorm_npy_open(lnorm_file *file, int as_bf16, lnorm_error *error);

#endif
