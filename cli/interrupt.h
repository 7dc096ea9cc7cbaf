/* Interrupted by a signal, the program leaves no temporary file. */
#ifndef LNORM_CLI_INTERRUPT_H
#define LNORM_CLI_INTERRUPT_H

#include "lnorm_files.h"

/* Handlers for SIGINT, SIGTERM, SIGHUP, SIGQUIT (unless they are ignored, as under nohup); SIGPIPE and SIGXFSZ are
 * ignored, so that a closed pipe and a file-size limit are errors with a message. */
void interrupt_prepare(void);

/* lnorm_file_create, commit and abort, with the temporary file known to the handlers as long as it is there. */
lnorm_file_writer *output_create(const char *path, lnorm_dtype dtype, int32_t ndim, const int64_t *shape,
                                 lnorm_error *error);
lnorm_status output_commit(lnorm_file_writer *writer, lnorm_error *error);
void output_abort(lnorm_file_writer *writer); /* accepts NULL */

#endif
