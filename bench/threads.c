#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    unsigned long generation; /* of the loop; a thread joins each one once */
    int started, busy;
    void (*task)(void *argument, int64_t index);
    void *argument;
    int64_t count;
    _Atomic int64_t next;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .begin = PTHREAD_COND_INITIALIZER, .end = PTHREAD_COND_INITIALIZER};

static void work(void) {
    for (int64_t i; (i = atomic_fetch_add(&pool.next, 1)) < pool.count;)
        pool.task(pool.argument, i);
}

static void *serve(void *unused) {
    (void)unused;
    unsigned long seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.generation == seen)
            pthread_cond_wait(&pool.begin, &pool.lock);
        seen = pool.generation;
        pthread_mutex_unlock(&pool.lock);
        work();
        pthread_mutex_lock(&pool.lock);
        if (!--pool.busy)
            pthread_cond_signal(&pool.end);
    }
    return NULL;
}

static void parallel_for(void *context, int64_t count, void (*task)(void *argument, int64_t index), void *argument) {
    (void)context;
    pthread_mutex_lock(&pool.lock);
    pool.task = task;
    pool.argument = argument;
    pool.count = count;
    atomic_store(&pool.next, 0);
    pool.busy = pool.started;
    pool.generation++;
    pthread_cond_broadcast(&pool.begin);
    pthread_mutex_unlock(&pool.lock);
    work();
    pthread_mutex_lock(&pool.lock);
    while (pool.busy)
        pthread_cond_wait(&pool.end, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

const lnorm_executor *bench_threads_start(int threads) {
    static lnorm_executor executor = LNORM_EXECUTOR_INIT;
    executor.parallel_for = parallel_for;
    pthread_t thread;
    while (pool.started < threads - 1 && !pthread_create(&thread, NULL, serve, NULL))
        pool.started++;
    return pool.started ? &executor : NULL;
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
