/* --threads. */
#ifndef LNORM_CLI_THREADS_H
#define LNORM_CLI_THREADS_H

#include "arguments.h"

/* A pool of as many threads as --threads says, all cores without it; NULL for one: the calling thread. The caller gives
 * it to lnorm_pool_destroy, which accepts NULL. Returns an exit status. */
int threads_create(lnorm_pool **pool, const arguments *a);

#endif
