/* For the fuzz targets (libFuzzer): the input as a file, since the library opens files. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char fuzz_path[4096]; /* in TMPDIR: make it a file system in memory */

static inline void fuzz_remove(void) {
    unlink(fuzz_path);
}

static inline void fuzz_write(const uint8_t *data, size_t size) {
    static int fd = -1;
    if (fd < 0) {
        const char *directory = getenv("TMPDIR");
        snprintf(fuzz_path, sizeof fuzz_path, "%s/lnorm-fuzz-XXXXXX", directory && *directory ? directory : "/tmp");
        fd = mkstemp(fuzz_path);
        atexit(fuzz_remove);
    }
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
