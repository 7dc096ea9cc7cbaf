#include "element.h"

#include <string.h>

const lnorm_files_element lnorm_files_elements[LNORM_FILES_ELEMENTS] = {
    {{2, 64, 1}, 8, "float64", "<f8", "F64"},
    {{2, 32, 1}, 4, "float32", "<f4", "F32"},
    {{4, 16, 1}, 2, "bfloat16", "<V2", "BF16"},
    {{2, 16, 1}, 2, "float16", "<f2", "F16"},
};

const lnorm_files_element *lnorm_files_element_of(lnorm_dtype dtype) {
    for (int i = 0; i < LNORM_FILES_ELEMENTS; i++) {
        const lnorm_files_element *element = &lnorm_files_elements[i];
        if (element->dtype.code == dtype.code && element->dtype.bits == dtype.bits && dtype.lanes == 1)
            return element;
    }
    return NULL;
}

int lnorm_files_big_endian_machine(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return !first;
}

void lnorm_files_swap(void *data, int64_t count, int32_t size) {
    unsigned char *at = data;
    for (int64_t i = 0; i < count; i++, at += size)
        for (int32_t low = 0, high = size - 1; low < high; low++, high--) {
            unsigned char byte = at[low];
            at[low] = at[high];
            at[high] = byte;
        }
}

int64_t lnorm_files_count(int32_t ndim, const int64_t *shape, int64_t size) {
    int64_t span = size;
    int empty = 0;
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] == 0)
            empty = 1;
        else if (span > LNORM_FILES_MOST / shape[i])
            return -1;
        else
            span *= shape[i];
    }
    return empty ? 0 : span / size;
}
