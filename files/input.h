/* A file that is read at any place, whatever it is. */
#ifndef LNORM_FILES_INPUT_H
#define LNORM_FILES_INPUT_H

#include "failure.h"

typedef struct lnorm_input {
    int fd;                /* where the bytes are read: the file itself, or the temporary file */
    int stream;            /* where the temporary file's bytes come from, or -1 */
    int64_t base;          /* place of the first byte in fd: standard input may stand in the middle of a file */
    int64_t size;          /* bytes from there on; of a stream, those copied so far */
    lnorm_files_text name; /* for messages */
} lnorm_input;

/* path "-": standard input, which stays open. */
lnorm_status lnorm_input_open(lnorm_input *input, const char *path, lnorm_error *error);
void lnorm_input_close(lnorm_input *input);

/* A second input on the same file, of the same name. Not for streams. */
lnorm_status lnorm_input_copy(lnorm_input *copy, const lnorm_input *input, lnorm_error *error);

/* Copies a stream until there are `end` bytes, or it ends. Compare input->size afterwards. */
lnorm_status lnorm_input_need(lnorm_input *input, int64_t end, lnorm_error *error);

/* Bytes [offset, offset + count), which must have been there. May be called by several threads. */
lnorm_status lnorm_input_read(const lnorm_input *input, void *buffer, int64_t offset, int64_t count,
                              lnorm_error *error);

#endif
