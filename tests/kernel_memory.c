#if !defined _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */
#endif
#include "kernel_memory.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

guarded guarded_new(size_t bytes, int at_the_end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    guarded memory = {NULL, bytes, NULL, (pages + 2) * page};
    memory.mapping = mmap(NULL, memory.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory.mapping == MAP_FAILED ||
        (pages && mprotect(memory.mapping + page, pages * page, PROT_READ | PROT_WRITE)))
        abort();
    memory.at = memory.mapping + page + (at_the_end ? pages * page - bytes : 0);
    return memory;
}

void guarded_free(guarded *memory) {
    if (memory->mapping)
        munmap(memory->mapping, memory->mapped);
    memory->mapping = NULL;
}
