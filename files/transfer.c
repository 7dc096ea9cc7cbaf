#include "transfer.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* One call may transfer at most SSIZE_MAX bytes; Linux stops a page below 2^31 anyway. */
static size_t portion(int64_t count) {
    const int64_t most = 1 << 30;
    return (size_t)(count < most ? count : most);
}

/* After a call that failed: 1 to try again, having waited where the descriptor does not block. */
static int again(int fd, short event) {
    if (errno == EINTR)
        return 1;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        struct pollfd wait = {fd, event, 0};
        return poll(&wait, 1, -1) >= 0 || errno == EINTR;
    }
    return 0;
}

int64_t lnorm_transfer_read(int fd, void *buffer, size_t count) {
    size_t done = 0;
    while (done < count) {
        ssize_t got = read(fd, (char *)buffer + done, portion((int64_t)(count - done)));
        if (got == 0)
            break;
        if (got > 0)
            done += (size_t)got;
        else if (!again(fd, POLLIN))
            return -1;
    }
    return (int64_t)done;
}

int64_t lnorm_transfer_read_at(int fd, void *buffer, int64_t count, int64_t offset) {
    int64_t done = 0;
    while (done < count) {
        ssize_t got = pread(fd, (char *)buffer + done, portion(count - done), offset + done);
        if (got == 0)
            break;
        if (got > 0)
            done += got;
        else if (!again(fd, POLLIN))
            return -1;
    }
    return done;
}

int lnorm_transfer_write(int fd, const void *buffer, int64_t count) {
    int64_t done = 0;
    while (done < count) {
        ssize_t put = write(fd, (const char *)buffer + done, portion(count - done));
        if (put >= 0)
            done += put;
        else if (!again(fd, POLLOUT))
            return -1;
    }
    return 0;
}

int lnorm_transfer_write_at(int fd, const void *buffer, int64_t count, int64_t offset) {
    int64_t done = 0;
    while (done < count) {
        ssize_t put = pwrite(fd, (const char *)buffer + done, portion(count - done), offset + done);
        if (put >= 0)
            done += put;
        else if (!again(fd, POLLOUT))
            return -1;
    }
    return 0;
}
