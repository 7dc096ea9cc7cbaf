/* The threads of a C worker: an executor, as lnorm takes one; the copies and the plain loop run on it, too. */
#ifndef LNORM_BENCH_THREADS_H
#define LNORM_BENCH_THREADS_H

#include <lnorm.h>

/* Starts threads - 1 threads that live as long as the process; the caller is the other one. For one thread, or where
 * no thread can be had: NULL, which lnorm takes as "the calling thread". To be called once. */
const lnorm_executor *bench_threads_start(int threads);

/* parallel_for on an executor or, where it is NULL, a loop. */
void bench_for(const lnorm_executor *executor, int64_t count, void (*task)(void *argument, int64_t index),
               void *argument);

#endif
