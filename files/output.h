/* A file that appears whole or not at all: a temporary file beside it, renamed at the end. Or a stream: standard
 * output, a device, a pipe, written in order. */
#ifndef LNORM_FILES_OUTPUT_H
#define LNORM_FILES_OUTPUT_H

#include "failure.h"

typedef struct lnorm_output {
    int fd;
    int stream; /* 1: written in order only; position bytes so far */
    int64_t position;
    char *target; /* of a file: where it goes, symbolic links followed */
    char *temporary;
    lnorm_files_text name; /* for messages */
} lnorm_output;

/* path "-": standard output, which stays open. */
lnorm_status lnorm_output_open(lnorm_output *output, const char *path, lnorm_error *error);

/* Writes count bytes at the offset; a stream must have come to it. */
lnorm_status lnorm_output_write(lnorm_output *output, const void *bytes, int64_t offset, int64_t count,
                                lnorm_error *error);

/* Both end the output and free what it holds. After a commit that fails the target is as it was. */
lnorm_status lnorm_output_commit(lnorm_output *output, lnorm_error *error);
void lnorm_output_abort(lnorm_output *output);

#endif
