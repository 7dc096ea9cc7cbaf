/* For the fuzz targets (libFuzzer): the input as a file, since the library opens files. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char fuzz_path[4096];

/* Where files go: TMPDIR, or else memory, where they are flushed to no disk; /tmp where neither can be written. */
static inline const char *fuzz_directory(void) {
    const char *const places[] = {getenv("TMPDIR"), "/dev/shm"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i] && *places[i] && !access(places[i], W_OK | X_OK))
            return places[i];
    return "/tmp";
}

static inline void fuzz_remove(void) {
    unlink(fuzz_path);
}

static inline void fuzz_write(const uint8_t *data, size_t size) {
    static int fd = -1;
    if (fd < 0) {
        snprintf(fuzz_path, sizeof fuzz_path, "%s/lnorm-fuzz-XXXXXX", fuzz_directory());
        fd = mkstemp(fuzz_path);
        atexit(fuzz_remove);
    }
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
