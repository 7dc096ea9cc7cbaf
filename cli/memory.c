#include "memory.h"
#include "report.h"

#include <gmp.h>
#include <jansson.h>
#include <stdlib.h>

static void *there(void *block, size_t size) {
    if (!block)
        exit(report_failure("not enough memory for %zu bytes", size));
    return block;
}

static void *reserve(size_t size) {
    return there(malloc(size ? size : 1), size);
}

static void *resize(void *block, size_t before, size_t size) {
    (void)before;
    return there(realloc(block, size), size);
}

static void release(void *block, size_t size) {
    (void)size;
    free(block);
}

void memory_prepare(void) {
    mp_set_memory_functions(reserve, resize, release);
    json_set_alloc_funcs(reserve, free);
}
