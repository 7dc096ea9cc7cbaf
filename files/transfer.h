/* read and write until everything is done: short transfers, interrupting signals, descriptors that do not block. */
#ifndef LNORM_FILES_TRANSFER_H
#define LNORM_FILES_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

/* The bytes read, fewer than count only at the end; -1 with errno set. */
int64_t lnorm_transfer_read(int fd, void *buffer, size_t count);
int64_t lnorm_transfer_read_at(int fd, void *buffer, int64_t count, int64_t offset);

/* 0, or -1 with errno set. */
int lnorm_transfer_write(int fd, const void *buffer, int64_t count);
int lnorm_transfer_write_at(int fd, const void *buffer, int64_t count, int64_t offset);

#endif
