/* A pool of threads behind an lnorm_executor.
 *
 * One job at a time: whoever finds the pool busy, another caller or a task of the job itself, runs his tasks alone, so
 * that nobody ever waits for a pool. Tasks are handed out by a counter; between jobs the helpers sleep.
 *
 * fork() copies a pool but not its threads, perhaps in the middle of a job. A counter that the child's side of every
 * fork steps tells a pool whose threads are gone: `state` holds the count under which its threads were started and
 * whether it is busy, in one atomic word. The first caller in the child starts anew, and looks at nothing that the
 * parent's threads may have left half done. */
#if !defined _GNU_SOURCE
#define _GNU_SOURCE 1 /* sched_getaffinity, CPU_COUNT_S */
#endif
#include "message.h"

#include <stdlib.h>

#if defined LNORM_NO_THREADS || defined _WIN32
#define POOL_HAS_THREADS 0
#else
#define POOL_HAS_THREADS 1
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#endif

enum {
    POOL_THREADS_MAX = 4096,
    POOL_STACK_LEAST = 1 << 20 /* some systems give a thread less than a task may need */
};

typedef void pool_task(void *argument, int64_t index);

struct lnorm_pool {
    lnorm_executor executor;
    int32_t threads; /* the caller's included */
#if POOL_HAS_THREADS
    _Atomic uint32_t state; /* forks * 2 + busy; who sets busy owns what follows */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    int stop, open;  /* under lock: helpers are to end; the job has tasks left */
    int32_t running; /* under lock: helpers at the job */
    int32_t helpers; /* threads that are there */
    pool_task *task;
    void *argument;
    int64_t count;
    _Atomic int64_t next;
    pthread_t helper[];
#endif
};

static void run_alone(int64_t count, pool_task *task, void *argument) {
    for (int64_t i = 0; i < count; i++)
        task(argument, i);
}

#if POOL_HAS_THREADS

/* -- Forks -------------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t forks;
static pthread_once_t watching = PTHREAD_ONCE_INIT;
static int watching_failed;

static void count_fork(void) {
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void) {
    watching_failed = pthread_atfork(NULL, NULL, count_fork) != 0;
}

static void begin_anew(lnorm_pool *pool) {
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->stop = pool->open = 0;
    pool->running = pool->helpers = 0;
}

/* False where somebody else has it. */
static int enter(lnorm_pool *pool) {
    uint32_t idle = atomic_load(&forks) * 2, seen = idle;
    if (atomic_compare_exchange_strong(&pool->state, &seen, idle + 1))
        return 1;
    if (seen == idle + 1 || !atomic_compare_exchange_strong(&pool->state, &seen, idle + 1))
        return 0;
    begin_anew(pool);
    return 1;
}

static void leave(lnorm_pool *pool) {
    atomic_store(&pool->state, atomic_load(&forks) * 2);
}

/* -- Helpers ------------------------------------------------------------------------------------------------------ */

static void take_tasks(lnorm_pool *pool) {
    int64_t i;
    while ((i = atomic_fetch_add(&pool->next, 1)) < pool->count)
        pool->task(pool->argument, i);
}

static void *help(void *argument) {
    lnorm_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        if (!pool->open) {
            pthread_cond_wait(&pool->work, &pool->lock);
            continue;
        }
        pool->running++;
        pthread_mutex_unlock(&pool->lock);
        take_tasks(pool);
        pthread_mutex_lock(&pool->lock);
        pool->open = 0;
        if (--pool->running == 0)
            pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Signals are the application's: helpers take none, but for those that a fault of their own raises. */
static void block_signals(sigset_t *before) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static int start_helper(lnorm_pool *pool) {
    pthread_attr_t attributes;
    size_t stack = 0;
    int failed;
    if (pthread_attr_init(&attributes))
        return 0;
    if (!pthread_attr_getstacksize(&attributes, &stack) && stack < POOL_STACK_LEAST)
        pthread_attr_setstacksize(&attributes, POOL_STACK_LEAST);
    failed = pthread_create(&pool->helper[pool->helpers], &attributes, help, pool);
    pthread_attr_destroy(&attributes);
    pool->helpers += !failed;
    return !failed;
}

/* Up to `wanted` of them. Where the system refuses there are fewer, and the next job asks again. */
static void start_helpers(lnorm_pool *pool, int32_t wanted) {
    sigset_t before;
    if (pool->helpers >= wanted)
        return;
    block_signals(&before);
    while (pool->helpers < wanted && start_helper(pool))
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void wake_helpers(lnorm_pool *pool, int32_t wanted) {
    if (wanted >= pool->helpers)
        pthread_cond_broadcast(&pool->work);
    else
        for (int32_t i = 0; i < wanted; i++)
            pthread_cond_signal(&pool->work);
}

/* -- Jobs --------------------------------------------------------------------------------------------------------- */

static void run_job(lnorm_pool *pool, int64_t count, pool_task *task, void *argument) {
    int32_t wanted = count < pool->threads ? (int32_t)count - 1 : pool->threads - 1;
    start_helpers(pool, wanted);
    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->argument = argument;
    pool->count = count;
    atomic_store(&pool->next, 0);
    pool->open = 1;
    pthread_mutex_unlock(&pool->lock);
    wake_helpers(pool, wanted);
    take_tasks(pool);
    pthread_mutex_lock(&pool->lock);
    pool->open = 0;
    while (pool->running)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void run_in_pool(void *context, int64_t count, pool_task *task, void *argument) {
    lnorm_pool *pool = context;
    if (pool->threads == 1 || count <= 1 || !enter(pool)) {
        run_alone(count, task, argument);
        return;
    }
    run_job(pool, count, task, argument);
    leave(pool);
}

/* The processors that this process may run on. */
static int32_t processors(void) {
    long count = 0;
#if defined __linux__
    enum { MASKS = 8192 / CPU_SETSIZE }; /* as many processors as the kernel can be built for */
    cpu_set_t set[MASKS];
    if (sched_getaffinity(0, sizeof set, set) == 0)
        count = CPU_COUNT_S(sizeof set, set);
#endif
    if (count < 1)
        count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > POOL_THREADS_MAX ? POOL_THREADS_MAX : (int32_t)count;
}

static lnorm_pool *allocate(int32_t threads) {
    lnorm_pool *pool;
    pthread_once(&watching, watch_forks);
    pool = watching_failed ? NULL : malloc(sizeof *pool + (size_t)(threads - 1) * sizeof *pool->helper);
    if (!pool)
        return NULL;
    begin_anew(pool);
    atomic_init(&pool->state, atomic_load(&forks) * 2);
    atomic_init(&pool->next, 0);
    return pool;
}

/* In a child that has not used the pool there are no threads to end. */
static void end_helpers(lnorm_pool *pool) {
    if (atomic_load(&pool->state) / 2 != atomic_load(&forks))
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = 1;
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_broadcast(&pool->work);
    for (int32_t i = 0; i < pool->helpers; i++)
        pthread_join(pool->helper[i], NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
}

#else

static void run_in_pool(void *context, int64_t count, pool_task *task, void *argument) {
    (void)context;
    run_alone(count, task, argument);
}

static int32_t processors(void) {
    return 1;
}

static lnorm_pool *allocate(int32_t threads) {
    (void)threads;
    return malloc(sizeof(lnorm_pool));
}

static void end_helpers(lnorm_pool *pool) {
    (void)pool;
}

#endif

/* -- The interface ------------------------------------------------------------------------------------------------ */

lnorm_pool *lnorm_pool_create(int32_t threads, lnorm_error *user) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_pool *pool = NULL;
    if (threads < 0 || threads > POOL_THREADS_MAX) {
        lnorm_fail(&error, LNORM_INVALID_ARGUMENT, "threads: expected 0 (all that this process may use) to %d, got %d",
                   (int)POOL_THREADS_MAX, (int)threads);
    } else {
        threads = POOL_HAS_THREADS && threads ? threads : processors();
        pool = allocate(threads);
        if (!pool)
            lnorm_fail(&error, LNORM_OUT_OF_MEMORY, "lnorm_pool_create: no memory for a pool of %d threads",
                       (int)threads);
    }
    if (pool) {
        pool->threads = threads;
        pool->executor = (lnorm_executor){sizeof pool->executor, pool, run_in_pool};
    }
    lnorm_report(user, &error);
    return pool;
}

void lnorm_pool_destroy(lnorm_pool *pool) {
    if (!pool)
        return;
    end_helpers(pool);
    free(pool);
}

int32_t lnorm_pool_threads(const lnorm_pool *pool) {
    return pool ? pool->threads : 1;
}

const lnorm_executor *lnorm_pool_executor(const lnorm_pool *pool) {
    return pool ? &pool->executor : NULL;
}
