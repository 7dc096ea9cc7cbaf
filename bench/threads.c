#include "threads.h"

#include <stddef.h>

const lnorm_executor *bench_threads_start(int threads) {
    lnorm_pool *pool = threads > 1 ? lnorm_pool_create(threads, NULL) : NULL; /* lives as long as the process */
    return pool ? lnorm_pool_executor(pool) : NULL;
}

void bench_for(const lnorm_executor *executor, int64_t count, void (*task)(void *argument, int64_t index),
               void *argument) {
    if (executor) {
        executor->parallel_for(executor->context, count, task, argument);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        task(argument, i);
}
