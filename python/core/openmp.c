/* The threads of an OpenMP runtime that the process has loaded for somebody else, as an lnorm_executor. PyTorch's threads
 * spin for some milliseconds after each of its operations: a pool beside them would have to take the processors from
 * them, while they themselves are there at once.
 *
 * The runtime is whoever names it, by addresses: nothing here is compiled or linked with OpenMP. */
#include "core.h"

#include <stdatomic.h>
#if !defined _WIN32
#include <pthread.h>
#endif

typedef void gomp_parallel(void (*function)(void *data), void *data, unsigned threads, unsigned flags);
typedef int omp_get_thread_num(void);

static _Atomic(gomp_parallel *) run_team; /* NULL: no runtime */
static _Atomic(omp_get_thread_num *) number_in_team;

/* ---- The tasks of one job ---------------------------------------------------------------------------------------- */

enum { RANGES = 32, APART = 64 /* bytes of a cache line */ };

/* Tasks next .. end-1. */
typedef struct range {
    _Alignas(APART) _Atomic int64_t next;
    int64_t end;
} range;

typedef struct job {
    void (*task)(void *argument, int64_t index);
    void *argument;
    int ranges;
    range range[RANGES];
} job;

/* Thread t of a team begins with range t, so that it finds in its core's cache what it had there in the call before (and
 * where PyTorch's operators, which divide their elements likewise, have left it), and then takes what is left of the
 * others'. So all tasks run however many threads come: in a region within another it may be one. */
static void take_tasks(void *data) {
    job *j = data;
    int first = atomic_load_explicit(&number_in_team, memory_order_relaxed)();
    for (int i = 0; i < j->ranges; i++) {
        range *r = &j->range[(first + i) % j->ranges];
        int64_t index;
        while ((index = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed)) < r->end)
            j->task(j->argument, index);
    }
}

/* Always with all threads: libgomp ends those that a smaller team does not need. */
static void run_on_team(void *context, int64_t count, void (*task)(void *argument, int64_t index), void *argument) {
    unsigned threads = (unsigned)(uintptr_t)context;
    job j;
    j.task = task;
    j.argument = argument;
    j.ranges = threads < RANGES ? (int)threads : RANGES;
    for (int i = 0; i < j.ranges; i++) {
        atomic_init(&j.range[i].next, count * i / j.ranges);
        j.range[i].end = count * (i + 1) / j.ranges;
    }
    atomic_load(&run_team)(take_tasks, &j, threads, 0);
}

int openmp_executor(int64_t threads, lnorm_executor *executor) {
    if (!atomic_load(&run_team))
        return 0;
    executor->context = (void *)(uintptr_t)threads;
    executor->parallel_for = run_on_team;
    return 1;
}

/* ---- The runtime ------------------------------------------------------------------------------------------------- */

/* In a forked child libgomp waits for ever for the parent's threads. A pool starts new ones. */
static void forget(void) {
    atomic_store(&run_team, NULL);
}

static int watch_forks(void) {
#if !defined _WIN32
    static int watching;
    if (!watching && pthread_atfork(NULL, NULL, forget)) {
        PyErr_NoMemory();
        return -1;
    }
    watching = 1;
#endif
    return 0;
}

const char set_openmp_doc[] =
    "set_openmp(parallel, thread_num, /)\n--\n\n"
    "The OpenMP runtime that lnorm.torch's calls run on, by the addresses of its GOMP_parallel and omp_get_thread_num; 0, 0:\n"
    "none, as in a forked child: they take a pool's threads then. Not to be called while a call is running.";

PyObject *set_openmp(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    uintptr_t address[2];
    (void)module;
    if (check_count(given, 2, "set_openmp"))
        return NULL;
    for (int i = 0; i < 2; i++) {
        address[i] = (uintptr_t)PyLong_AsVoidPtr(arguments[i]);
        if (!address[i] && PyErr_Occurred())
            return NULL;
    }
    if (watch_forks())
        return NULL;
    atomic_store(&number_in_team, (omp_get_thread_num *)address[1]);
    atomic_store(&run_team, address[1] ? (gomp_parallel *)address[0] : NULL);
    Py_RETURN_NONE;
}
