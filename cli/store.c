#include "store.h"
#include "report.h"
#include "verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *spool_directory(void) {
    const char *directory = getenv("TMPDIR");
    return directory && *directory ? directory : "/tmp";
}

store store_of_file(const lnorm_file *file) {
    return (store){file, NULL, -1, lnorm_file_tensor(file)->dtype.bits / 8u};
}

store store_of_writer(lnorm_file_writer *writer, lnorm_dtype dtype) {
    return (store){NULL, writer, -1, dtype.bits / 8u};
}

int store_spool(store *s, size_t size) {
    static const char leaf[] = "/lnorm-XXXXXX";
    const char *directory = spool_directory();
    size_t room = strlen(directory) + sizeof leaf;
    char *path = malloc(room);
    *s = (store){NULL, NULL, -1, size};
    if (!path)
        return report_failure("not enough memory for a file name");
    snprintf(path, room, "%s%s", directory, leaf);
    if ((s->spool = mkostemp(path, O_CLOEXEC)) < 0) {
        int reason = errno;
        free(path);
        return report_failure("a temporary file cannot be created in '%s' (TMPDIR): %s", directory, strerror(reason));
    }
    unlink(path);
    free(path);
    return DONE;
}

static int spool_failure(int reason, const char *what) {
    return report_failure("a temporary file in '%s' (TMPDIR) cannot be %s: %s", spool_directory(), what,
                          strerror(reason));
}

static int spool_read(const store *s, char *to, int64_t offset, int64_t bytes) {
    while (bytes > 0) {
        ssize_t got = pread(s->spool, to, (size_t)bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return spool_failure(got ? errno : EIO, "read");
        to += got;
        offset += got;
        bytes -= got;
    }
    return DONE;
}

static int spool_write(const store *s, const char *from, int64_t offset, int64_t bytes) {
    while (bytes > 0) {
        ssize_t put = pwrite(s->spool, from, (size_t)bytes, offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return spool_failure(errno, "written");
        from += put;
        offset += put;
        bytes -= put;
    }
    return DONE;
}

int store_read(const store *s, void *to, int64_t first, int64_t count) {
    lnorm_error error = LNORM_ERROR_INIT;
    int64_t size = (int64_t)s->size;
    if (!s->file)
        return spool_read(s, to, first * size, count * size);
    return lnorm_file_read(s->file, to, first, count, &error) ? report_failure("%s", error.message) : DONE;
}

int store_write(const store *s, const void *from, int64_t first, int64_t count) {
    lnorm_error error = LNORM_ERROR_INIT;
    int64_t size = (int64_t)s->size;
    if (!s->writer)
        return spool_write(s, from, first * size, count * size);
    return lnorm_file_write(s->writer, from, first, count, &error) ? report_failure("%s", error.message) : DONE;
}

int store_copy(const store *to, const store *from, int64_t count) {
    enum { BUFFER = 1 << 20 };
    int64_t each = BUFFER / (int64_t)from->size;
    char *buffer = malloc(BUFFER);
    int status = buffer ? DONE : report_failure("not enough memory for a buffer of %d bytes", BUFFER);
    for (int64_t first = 0; first < count && !status; first += each) {
        int64_t portion = count - first < each ? count - first : each;
        status = store_read(from, buffer, first, portion);
        if (!status)
            status = store_write(to, buffer, first, portion);
    }
    free(buffer);
    return status;
}

void store_close(store *s) {
    if (s->spool >= 0)
        close(s->spool);
    s->spool = -1;
}
