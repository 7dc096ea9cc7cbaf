/* Elements in files: their size, name and byte order. Nothing here computes with them. */
#ifndef LNORM_FILES_ELEMENT_H
#define LNORM_FILES_ELEMENT_H

#include "lnorm_files.h"

/* The four types that lnorm computes with, in the order in which .safetensors files sort them. */
typedef struct lnorm_files_element {
    lnorm_dtype dtype;
    int32_t size;            /* bytes */
    const char *name;        /* for messages, as NumPy says */
    const char *descr;       /* little-endian, in an .npy header */
    const char *safetensors; /* in a .safetensors header */
} lnorm_files_element;

enum { LNORM_FILES_ELEMENTS = 4 };
extern const lnorm_files_element lnorm_files_elements[LNORM_FILES_ELEMENTS];

/* NULL for other types. */
const lnorm_files_element *lnorm_files_element_of(lnorm_dtype dtype);

int lnorm_files_big_endian_machine(void);

/* Reverses the bytes of each of count elements of 2, 4 or 8 bytes. */
void lnorm_files_swap(void *data, int64_t count, int32_t size);

/* Bytes of an array: with this limit no place in a file overflows. */
#define LNORM_FILES_MOST (INT64_MAX / 2)

/* The number of elements of a shape; -1 where the product of the extents other than 0, times the size, is 2^62 or more:
 * such a shape is refused even where it has no elements, as its strides have no value. */
int64_t lnorm_files_count(int32_t ndim, const int64_t *shape, int64_t size);

#endif
