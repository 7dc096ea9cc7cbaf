/* Memory between pages that fault when touched: no access past a row goes unnoticed. */
#ifndef KERNEL_MEMORY_H
#define KERNEL_MEMORY_H

#include <stddef.h>

typedef struct guarded {
    char *at; /* `bytes` bytes; they end, or begin, where a page begins that faults */
    size_t bytes;
    char *mapping;
    size_t mapped;
} guarded;

guarded guarded_new(size_t bytes, int at_the_end);
void guarded_free(guarded *memory);

#endif
