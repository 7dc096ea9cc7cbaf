/* The header of an .npy file (NumPy enhancement proposal 1; versions 1.0, 2.0, 3.0). */
#ifndef LNORM_FILES_NPY_H
#define LNORM_FILES_NPY_H

#include "element.h"
#include "failure.h"

typedef struct lnorm_npy_header {
    const lnorm_files_element *element;
    int big_endian, fortran_order;
    int32_t ndim;
    int64_t shape[LNORM_MAX_NDIM];
} lnorm_npy_header;

enum {
    LNORM_NPY_MAGIC = 8,        /* "\x93NUMPY", major and minor version */
    LNORM_NPY_LONGEST = 1 << 16 /* a dictionary of ours has at most 400 bytes; padding is all that could be more */
};

/* A header's dictionary: `length` bytes at `text`, which begin at byte `offset` of the file `name`. */
lnorm_status lnorm_npy_parse(lnorm_npy_header *header, const char *text, size_t length, int64_t offset, int version,
                             int as_bf16, const char *name, lnorm_error *error);

/* The element type and byte order that descr, a text of the header, stands for. */
lnorm_status lnorm_npy_decode(lnorm_npy_header *header, const char *descr, int as_bf16, const char *name,
                              lnorm_error *error);

/* Magic and header of a file with this shape and little-endian elements, row-major; returns its length. */
enum { LNORM_NPY_ROOM = 512 };
size_t lnorm_npy_print(char text[LNORM_NPY_ROOM], const lnorm_npy_header *header);

#endif
