/* The threads of an OpenMP runtime that the process has loaded for somebody else, as an lnorm_executor. PyTorch's spin
 * for some milliseconds after each of its operations: a pool beside them would have to take the processors from them,
 * while they themselves are there at once.
 *
 * The runtime is whoever names it, by addresses: nothing here is compiled or linked with OpenMP. */
#include "core.h"

#include <stdatomic.h>
#include <time.h>
#if !defined _WIN32
#include <pthread.h>
#endif

typedef void gomp_parallel(void (*function)(void *data), void *data, unsigned threads, unsigned flags);
typedef int omp_get_thread_num(void);

static _Atomic(gomp_parallel *) run_team; /* NULL: no runtime */
static _Atomic(omp_get_thread_num *) number_in_team;
static _Atomic int64_t patience, alone_until; /* nanoseconds */

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
    int64_t worked; /* nanoseconds of the calling thread, which is number 0, at tasks */
    int ranges;
    range range[RANGES];
} job;

static int64_t now(void) {
    struct timespec time;
#if defined _WIN32
    timespec_get(&time, TIME_UTC);
#else
    clock_gettime(CLOCK_MONOTONIC, &time);
#endif
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* A region begins and ends when all threads of the team have come. Where other programs have the processors that may be
 * time slices, in place of a microsecond, and the next regions would wait likewise: for ten times as long calls do
 * without. The caller may wait as long as it works, which is at least as long as another's last task. */
static void learn(int64_t waited, int64_t worked) {
    const int64_t most = 1000000000;
    if (waited > worked + atomic_load(&patience))
        atomic_store(&alone_until, now() + (waited < most / 10 ? 10 * waited : most));
}

static int alone(void) {
    int64_t until = atomic_load(&alone_until);
    return until && now() < until;
}

/* Thread t of a team begins with range t, so that it finds in its core's cache what it had there in the call before, or
 * what PyTorch's operators, which divide their elements likewise, have left there; and then takes what is left of the
 * others'. So all tasks run however many threads come: in a region within another it may be one. */
static void take_tasks(void *data) {
    job *j = data;
    int first = atomic_load_explicit(&number_in_team, memory_order_relaxed)();
    int64_t begin = now();
    for (int i = 0; i < j->ranges; i++) {
        range *r = &j->range[(first + i) % j->ranges];
        int64_t index;
        while ((index = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed)) < r->end)
            j->task(j->argument, index);
    }
    if (first == 0)
        j->worked = now() - begin;
}

/* Always with all threads: libgomp ends those that a smaller team does not need. */
static void run_on_team(void *context, int64_t count, void (*task)(void *argument, int64_t index), void *argument) {
    unsigned threads = (unsigned)(uintptr_t)context;
    int64_t begin = now();
    job j;
    j.task = task;
    j.argument = argument;
    j.worked = 0;
    j.ranges = threads < RANGES ? (int)threads : RANGES;
    for (int i = 0; i < j.ranges; i++) {
        atomic_init(&j.range[i].next, count * i / j.ranges);
        j.range[i].end = count * (i + 1) / j.ranges;
    }
    atomic_load(&run_team)(take_tasks, &j, threads, 0);
    learn(now() - begin - j.worked, j.worked);
}

int openmp_executor(int64_t threads, lnorm_executor *executor) {
    if (!atomic_load(&run_team))
        return 0;
    if (alone())
        return 1;
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
    "set_openmp(parallel, thread_num, patience, /)\n--\n\n"
    "The OpenMP runtime that lnorm.torch's calls run on, by the addresses of GOMP_parallel and omp_get_thread_num; 0,\n"
    "0: none, as in a forked child: they take a pool's threads then. patience: after a call that waited so many\n"
    "nanoseconds longer than it worked, calls do without these threads for a while. Not while a call is running.";

PyObject *set_openmp(PyObject *module, PyObject *const *arguments, Py_ssize_t given) {
    uintptr_t address[2];
    int64_t nanoseconds = 0;
    (void)module;
    if (check_count(given, 3, "set_openmp") || read_integer(arguments[2], "patience", &nanoseconds))
        return NULL;
    for (int i = 0; i < 2; i++) {
        address[i] = (uintptr_t)PyLong_AsVoidPtr(arguments[i]);
        if (!address[i] && PyErr_Occurred())
            return NULL;
    }
    if (watch_forks())
        return NULL;
    atomic_store(&patience, nanoseconds);
    atomic_store(&alone_until, 0);
    atomic_store(&number_in_team, (omp_get_thread_num *)address[1]);
    atomic_store(&run_team, address[1] ? (gomp_parallel *)address[0] : NULL);
    Py_RETURN_NONE;
}
