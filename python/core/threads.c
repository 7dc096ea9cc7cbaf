/* Pools: one for each number of threads that was ever asked for, made when first needed and kept until the process
 * ends, so that none is ever taken from a call that uses it. Their threads sleep when idle, and a forked child's pools
 * start threads of their own (lnorm.h, section 5). */
#include "core.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS_MAX = 4096 }; /* as lnorm_pool_create */

typedef struct kept_pool {
    struct kept_pool *next;
    lnorm_pool *pool;
    int32_t asked; /* 0: all processors */
} kept_pool;

static _Atomic(kept_pool *) pools;
static _Atomic int32_t default_threads; /* 0: all processors */

int threads_begin(void) {
    const char *text = getenv("LNORM_NUM_THREADS");
    char *end;
    long threads;
    if (!text || !*text)
        return 0;
    errno = 0;
    threads = strtol(text, &end, 10);
    if (errno || *end || threads < 1 || threads > THREADS_MAX) {
        PyErr_Format(PyExc_ValueError, "the environment variable LNORM_NUM_THREADS: expected 1 to %d, got '%s'",
                     (int)THREADS_MAX, text);
        return -1;
    }
    atomic_store(&default_threads, (int32_t)threads);
    return 0;
}

/* Two threads may add the same number at the same time: the list then has it twice, which harms nobody. */
static const lnorm_pool *pool_of(int32_t threads) {
    kept_pool *head = atomic_load(&pools), *kept;
    lnorm_error error = LNORM_ERROR_INIT;
    for (kept = head; kept; kept = kept->next)
        if (kept->asked == threads)
            return kept->pool;
    kept = malloc(sizeof *kept);
    if (!kept) {
        PyErr_NoMemory();
        return NULL;
    }
    kept->asked = threads;
    kept->pool = lnorm_pool_create(threads, &error);
    if (!kept->pool) {
        free(kept);
        raise_status(error.status, error.message);
        return NULL;
    }
    do
        kept->next = head;
    while (!atomic_compare_exchange_weak(&pools, &head, kept));
    return kept->pool;
}

static int check_threads(int64_t threads, int64_t least) {
    if (threads >= least && threads <= THREADS_MAX)
        return 0;
    PyErr_Format(PyExc_ValueError, "threads: expected %d to %d, got %lld", (int)least, (int)THREADS_MAX,
                 (long long)threads);
    return -1;
}

int executor_for(workers who, int64_t elements, lnorm_executor *executor) {
    const lnorm_pool *pool;
    *executor = (lnorm_executor)LNORM_EXECUTOR_INIT;
    if (check_threads(who.threads, 0))
        return -1;
    if (elements < ALONE_BELOW)
        return 0;
    if (who.threads == 0)
        who.threads = atomic_load(&default_threads);
    if (who.threads == 1 || (who.openmp && openmp_executor(who.threads, executor)))
        return 0;
    pool = pool_of((int32_t)who.threads);
    if (!pool)
        return -1;
    *executor = *lnorm_pool_executor(pool);
    return 0;
}

PyObject *set_num_threads(PyObject *module, PyObject *argument) {
    int64_t threads = 0;
    (void)module;
    if (argument != Py_None && (read_integer(argument, "threads", &threads) || check_threads(threads, 1)))
        return NULL;
    atomic_store(&default_threads, (int32_t)threads);
    Py_RETURN_NONE;
}

PyObject *get_num_threads(PyObject *module, PyObject *none) {
    int32_t threads = atomic_load(&default_threads);
    const lnorm_pool *pool;
    (void)module, (void)none;
    if (threads)
        return PyLong_FromLong(threads);
    pool = pool_of(0);
    return pool ? PyLong_FromLong(lnorm_pool_threads(pool)) : NULL;
}
