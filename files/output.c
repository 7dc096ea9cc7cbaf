#include "output.h"
#include "target.h"
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* O_EXCL, not mkstemp: so the kernel applies umask and default ACL, which a library cannot ask for without changing
 * them. The number makes a clash unlikely, O_EXCL harmless. */
static int create_exclusively(char *path, size_t room, size_t directory) {
    for (unsigned attempt = 0; attempt < 1000; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(path + directory, room - directory, ".lnorm-%lx-%lx-%x.tmp", (unsigned long)getpid(),
                 (unsigned long)now.tv_nsec, attempt);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || (errno != EEXIST && errno != EINTR))
            return fd;
    }
    return -1;
}

static lnorm_status open_temporary(lnorm_output *output, int replaces, mode_t mode, lnorm_error *error) {
    size_t directory = lnorm_target_directory(output->target), room = directory + 64;
    output->temporary = malloc(room);
    if (!output->temporary)
        return lnorm_files_no_memory(error, output->name.at);
    memcpy(output->temporary, output->target, directory);
    output->fd = create_exclusively(output->temporary, room, directory);
    if (output->fd < 0) {
        int reason = errno;
        free(output->temporary);
        output->temporary = NULL;
        return lnorm_files_refused(error, reason, "%s: a temporary file beside it cannot be created", output->name.at);
    }
    if (replaces && fchmod(output->fd, mode & 0777))
        return lnorm_files_refused(error, errno, "%s: its permissions cannot be passed on", output->name.at);
    return LNORM_OK;
}

static lnorm_status open_stream(lnorm_output *output, const char *path, lnorm_error *error) {
    output->stream = 1;
    do
        output->fd = path ? open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY) : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    while (output->fd < 0 && errno == EINTR);
    if (output->fd < 0)
        return lnorm_files_refused(error, errno, "%s: cannot be opened for writing", output->name.at);
    return LNORM_OK;
}

static lnorm_status open_file(lnorm_output *output, const char *path, lnorm_error *error) {
    struct stat about;
    if (!*path)
        return lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "path: expected a file name, got an empty one");
    int exists = !stat(path, &about);
    if (!exists && errno != ENOENT)
        return lnorm_files_refused(error, errno, "%s: cannot be written", output->name.at);
    if (exists && S_ISDIR(about.st_mode))
        return lnorm_files_refused(error, EISDIR, "%s: expected a file to write", output->name.at);
    if (exists && !S_ISREG(about.st_mode)) /* by this name: where /dev/stdout is a pipe, it is a link to no file */
        return open_stream(output, path, error);
    int reason = lnorm_target_resolve(&output->target, path);
    if (reason)
        return lnorm_files_refused(error, reason, "%s: cannot be written", output->name.at);
    if (exists && faccessat(AT_FDCWD, output->target, W_OK, AT_EACCESS))
        return lnorm_files_refused(error, errno, "%s: exists and may not be written", output->name.at);
    return open_temporary(output, exists, exists ? about.st_mode : 0, error);
}

lnorm_status lnorm_output_open(lnorm_output *output, const char *path, lnorm_error *error) {
    lnorm_status status;
    output->fd = -1;
    output->stream = 0;
    output->position = 0;
    output->target = output->temporary = NULL;
    output->name = lnorm_files_quote(path);
    if (strcmp(path, "-"))
        status = open_file(output, path, error);
    else {
        snprintf(output->name.at, sizeof output->name.at, "standard output");
        status = open_stream(output, NULL, error);
    }
    if (status)
        lnorm_output_abort(output);
    return status;
}

static lnorm_status not_written(const lnorm_output *output, lnorm_error *error) {
    return lnorm_files_refused(error, errno, "%s: cannot be written", output->name.at);
}

lnorm_status lnorm_output_write(lnorm_output *output, const void *bytes, int64_t offset, int64_t count,
                                lnorm_error *error) {
    if (output->stream) {
        if (lnorm_transfer_write(output->fd, bytes, count))
            return not_written(output, error);
        output->position += count;
    } else if (lnorm_transfer_write_at(output->fd, bytes, count, offset))
        return not_written(output, error);
    return LNORM_OK;
}

/* To the disk. Pipes, and some devices and file systems, have nothing to flush and say EINVAL. */
static int flush(int fd) {
    int result;
    do
        result = fsync(fd);
    while (result && errno == EINTR);
    return result && errno != EINVAL && errno != EROFS && errno != ENOTSUP ? -1 : 0;
}

/* The new name is on the disk when its directory is; if that cannot be had, the file is complete all the same. */
static void flush_directory(char *path) {
    size_t length = lnorm_target_directory(path);
    path[length] = 0;
    int fd = open(length ? path : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        flush(fd);
        close(fd);
    }
}

lnorm_status lnorm_output_commit(lnorm_output *output, lnorm_error *error) {
    lnorm_status status = LNORM_OK;
    int fd = output->fd;
    if (flush(fd))
        status = not_written(output, error);
    output->fd = -1;
    if (close(fd) && errno != EINTR && !status)
        status = not_written(output, error);
    if (!status && output->temporary) {
        if (rename(output->temporary, output->target))
            status =
                lnorm_files_refused(error, errno, "%s: the finished file cannot be given its name", output->name.at);
        else {
            flush_directory(output->temporary);
            free(output->temporary);
            output->temporary = NULL;
        }
    }
    lnorm_output_abort(output);
    return status;
}

void lnorm_output_abort(lnorm_output *output) {
    if (output->temporary)
        unlink(output->temporary);
    if (output->fd >= 0)
        close(output->fd);
    free(output->temporary);
    free(output->target);
    output->fd = -1;
    output->temporary = output->target = NULL;
}
