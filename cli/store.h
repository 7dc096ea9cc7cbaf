/* A place whose elements can be read, or written, by number: an array in a file, an output being written, or a spool:
 * a temporary file without a name, in the directory TMPDIR. */
#ifndef LNORM_CLI_STORE_H
#define LNORM_CLI_STORE_H

#include "lnorm_files.h"

typedef struct store {
    const lnorm_file *file;    /* read only */
    lnorm_file_writer *writer; /* written only */
    int spool;                 /* otherwise: a descriptor; read and written */
    size_t size;               /* bytes of an element */
} store;

store store_of_file(const lnorm_file *file);
store store_of_writer(lnorm_file_writer *writer, lnorm_dtype dtype);

/* Functions that can fail return an exit status, having printed a message. */
int store_spool(store *s, size_t size);
int store_read(const store *s, void *to, int64_t first, int64_t count);
int store_write(const store *s, const void *from, int64_t first, int64_t count);

/* Copies the first `count` elements, from the first on, through a buffer. */
int store_copy(const store *to, const store *from, int64_t count);

/* Gives a spool's space back; leaves files and writers alone. */
void store_close(store *s);

#endif
