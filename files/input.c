#include "input.h"
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "files beyond 2 GB need a 64-bit off_t: compile with -D_FILE_OFFSET_BITS=64");

/* A temporary file that has no name any more. */
static lnorm_status open_unnamed(lnorm_input *input, lnorm_error *error) {
    const char *directory = getenv("TMPDIR"), *leaf = "/lnorm-XXXXXX";
    if (!directory || !*directory)
        directory = "/tmp";
    size_t size = strlen(directory) + strlen(leaf) + 1;
    char *path = malloc(size);
    if (!path)
        return lnorm_files_no_memory(error, input->name.at);
    snprintf(path, size, "%s%s", directory, leaf);
    input->fd = mkstemp(path);
    lnorm_status status = LNORM_OK;
    if (input->fd < 0)
        status = lnorm_files_refused(error, errno,
                                     "%s cannot be read at any place, and a temporary file cannot be created "
                                     "in %s (TMPDIR)",
                                     input->name.at, lnorm_files_quote(directory).at);
    else {
        unlink(path);
        fcntl(input->fd, F_SETFD, FD_CLOEXEC);
    }
    free(path);
    return status;
}

static lnorm_status open_descriptor(lnorm_input *input, const char *path, int standard, lnorm_error *error) {
    do
        input->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    while (input->fd < 0 && errno == EINTR);
    if (input->fd < 0)
        return lnorm_files_refused(error, errno, "%s: cannot be opened for reading", input->name.at);
    return LNORM_OK;
}

/* What was opened: a file that can be read at any place from where it stands, or a stream. */
static lnorm_status classify(lnorm_input *input, lnorm_error *error) {
    struct stat about;
    if (fstat(input->fd, &about))
        return lnorm_files_refused(error, errno, "%s: cannot be examined", input->name.at);
    if (S_ISDIR(about.st_mode))
        return lnorm_files_refused(error, EISDIR, "%s: expected a file", input->name.at);
    if (S_ISREG(about.st_mode)) {
        input->base = lseek(input->fd, 0, SEEK_CUR);
        if (input->base < 0)
            return lnorm_files_refused(error, errno, "%s: cannot be read at any place", input->name.at);
        input->size = about.st_size > input->base ? about.st_size - input->base : 0;
        return LNORM_OK;
    }
    input->stream = input->fd;
    input->fd = -1;
    return open_unnamed(input, error);
}

lnorm_status lnorm_input_open(lnorm_input *input, const char *path, lnorm_error *error) {
    int standard = !strcmp(path, "-");
    input->fd = input->stream = -1;
    input->base = input->size = 0;
    input->name = lnorm_files_quote(path);
    if (standard)
        snprintf(input->name.at, sizeof input->name.at, "standard input");
    lnorm_status status = open_descriptor(input, path, standard, error);
    if (!status)
        status = classify(input, error);
    if (status)
        lnorm_input_close(input);
    return status;
}

void lnorm_input_close(lnorm_input *input) {
    if (input->fd >= 0)
        close(input->fd);
    if (input->stream >= 0)
        close(input->stream);
    input->fd = input->stream = -1;
}

lnorm_status lnorm_input_copy(lnorm_input *copy, const lnorm_input *input, lnorm_error *error) {
    *copy = *input;
    copy->stream = -1;
    copy->fd = fcntl(input->fd, F_DUPFD_CLOEXEC, 0);
    if (copy->fd < 0)
        return lnorm_files_refused(error, errno, "%s: cannot be opened a second time", input->name.at);
    return LNORM_OK;
}

lnorm_status lnorm_input_need(lnorm_input *input, int64_t end, lnorm_error *error) {
    char buffer[65536];
    while (input->stream >= 0 && input->size < end) {
        size_t wanted = end - input->size < (int64_t)sizeof buffer ? (size_t)(end - input->size) : sizeof buffer;
        int64_t got = lnorm_transfer_read(input->stream, buffer, wanted);
        if (got < 0)
            return lnorm_files_refused(error, errno, "%s: cannot be read", input->name.at);
        if (lnorm_transfer_write_at(input->fd, buffer, got, input->size))
            return lnorm_files_refused(error, errno, "%s: cannot be copied to a temporary file (TMPDIR says where)",
                                       input->name.at);
        input->size += got;
        if ((size_t)got < wanted) {
            close(input->stream);
            input->stream = -1;
        }
    }
    return LNORM_OK;
}

lnorm_status lnorm_input_read(const lnorm_input *input, void *buffer, int64_t offset, int64_t count,
                              lnorm_error *error) {
    int64_t got = lnorm_transfer_read_at(input->fd, buffer, count, input->base + offset);
    if (got < 0)
        return lnorm_files_refused(error, errno, "%s: cannot be read", input->name.at);
    if (got < count)
        return lnorm_files_fail(error, LNORM_NOT_AVAILABLE,
                                "%s: became shorter while it was read: expected %lld bytes from byte %lld on, %lld are "
                                "there, %lld bytes are missing",
                                input->name.at, (long long)count, (long long)offset, (long long)got,
                                (long long)(count - got));
    return LNORM_OK;
}
