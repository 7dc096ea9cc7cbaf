/* Checks that the verbs which compute share, and what the library refuses in the command line's words. */
#ifndef LNORM_CLI_CHECKS_H
#define LNORM_CLI_CHECKS_H

#include "arguments.h"

/* At most one of the arrays that are read is standard input. An exit status. */
int inputs_check(const arguments *a);

/* An error of lnorm_plan_init: the message, after the option or file that it is about. Returns FAILED. */
int report_refused(const lnorm_error *error, const arguments *a);

#endif
