/* The pool: results, callers at once, nesting, forks, threads that cannot be had, signals, and what it does when
 * idle. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool_system.h"
#include "refusal.h"

#include <fenv.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int32_t thread_counts[] = {1, 2, 3, 8};
enum { COUNTS = sizeof thread_counts / sizeof *thread_counts };

/* -- Jobs --------------------------------------------------------------------------------------------------------- */

enum { TASKS_MAX = 1000 };

typedef struct tally {
    atomic_int calls[TASKS_MAX];
} tally;

static void count_call(void *argument, int64_t index) {
    tally *t = argument;
    t->calls[index]++;
}

static int each_once(const lnorm_executor *executor, int64_t count) {
    tally t = {{0}};
    int right = 1;
    executor->parallel_for(executor->context, count, count_call, &t);
    for (int64_t i = 0; i < TASKS_MAX; i++)
        right &= t.calls[i] == (i < count);
    return right;
}

/* Two tasks that end only when both have begun, so that there must be two threads. One thread alone would take one
 * after the other: the first gives up, after a minute of sleep at least, and does not meet the second. */
typedef struct meeting {
    atomic_int begun, met;
} meeting;

static void meet(void *argument, int64_t index) {
    meeting *m = argument;
    (void)index;
    m->begun++;
    for (int tries = 0; m->begun < 2 && tries < 60000; tries++)
        usleep(1000);
    m->met += m->begun == 2;
}

static int has_two_threads(const lnorm_executor *executor) {
    meeting m = {0, 0};
    executor->parallel_for(executor->context, 2, meet, &m);
    return m.met == 2;
}

static lnorm_pool *pool_of(int32_t threads) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_pool *pool = lnorm_pool_create(threads, &error);
    assert_non_null(pool);
    assert_error(&error, LNORM_OK, "");
    assert_int_equal(lnorm_pool_threads(pool), threads);
    return pool;
}

static void test_each_task_once(void **state) {
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 100, TASKS_MAX};
    (void)state;
    for (int i = 0; i < COUNTS; i++) {
        lnorm_pool *pool = pool_of(thread_counts[i]);
        for (int round = 0; round < 50; round++)
            for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
                assert_true(each_once(lnorm_pool_executor(pool), counts[k]));
        if (thread_counts[i] > 1)
            assert_true(has_two_threads(lnorm_pool_executor(pool)));
        lnorm_pool_destroy(pool);
    }
}

/* -- Results ------------------------------------------------------------------------------------------------------ */

/* Many rows, one long row, a layout of the general form; forward and backward. */
static void make_scene(scene *s, int which, lnorm_pass pass) {
    static const int64_t shapes[][2] = {{150, 700}, {1, 140001}, {90, 500}};
    static const mix types = {{2, 32, 1}, {2, 32, 1}, {2, 32, 1}};
    lnorm_op op = LNORM_OP_INIT;
    op.pass = pass;
    scene_make(s, &op, 2, shapes[which], types, which == 2 ? TRANSPOSED : DENSE, 11);
}

/* With the workspace of the plan, or without. */
static void run_scene(scene *s, const lnorm_executor *executor, int with_workspace) {
    lnorm_plan plan;
    assert_int_equal(lnorm_plan_init(&plan, &s->op, &s->io, NULL), LNORM_OK);
    s->io.workspace_size = lnorm_plan_workspace(&plan);
    s->io.workspace = with_workspace ? malloc(s->io.workspace_size + 1) : NULL;
    assert_int_equal(lnorm_execute(&plan, &s->io, executor), LNORM_OK);
    free(s->io.workspace);
    s->io.workspace = NULL;
}

static void check_results(int which, lnorm_pass pass) {
    scene s, expected;
    make_scene(&s, which, pass);
    make_scene(&expected, which, pass);
    run_scene(&expected, NULL, 1);
    for (int i = 0; i < COUNTS; i++) {
        lnorm_pool *pool = pool_of(thread_counts[i]);
        for (int with_workspace = 0; with_workspace < 2; with_workspace++) {
            scene_reset(&s, 11);
            run_scene(&s, lnorm_pool_executor(pool), with_workspace);
            assert_same_outputs(&s, &expected);
        }
        lnorm_pool_destroy(pool);
    }
    scene_free(&s);
    scene_free(&expected);
}

static void test_results(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++) {
        check_results(which, LNORM_FORWARD);
        check_results(which, LNORM_BACKWARD);
    }
}

/* Tasks that leave the pool's threads, and the caller's, in another environment; then results as ever. */
static void spoil(void *argument, int64_t index) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    meet(argument, index);
    environment_set(modes[index], 1, (int)index % 2);
}

static void test_hostile_threads(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++) {
            scene s, expected;
            meeting m = {0, 0};
            uint64_t before, after;
            lnorm_status status;
            lnorm_pool *pool = pool_of(2);
            const lnorm_executor *executor = lnorm_pool_executor(pool);
            make_scene(&s, which, (lnorm_pass)pass);
            make_scene(&expected, which, (lnorm_pass)pass);
            run_scene(&expected, NULL, 1);
            executor->parallel_for(executor->context, 2, spoil, &m);
            before = environment_get();
            status = lnorm_run(&s.op, &s.io, executor, NULL);
            after = environment_get();
            environment_reset();
            assert_int_equal(m.met, 2);
            assert_int_equal(status, LNORM_OK);
            assert_true(before == after);
            assert_same_outputs(&s, &expected);
            lnorm_pool_destroy(pool);
            scene_free(&s);
            scene_free(&expected);
        }
}

/* -- Callers at once, and within tasks ---------------------------------------------------------------------------- */

typedef struct caller {
    const lnorm_executor *executor;
    int right;
} caller;

static void *call_often(void *argument) {
    caller *c = argument;
    c->right = 1;
    for (int round = 0; round < 300; round++)
        c->right &= each_once(c->executor, 1 + round % 40);
    return NULL;
}

static void test_many_callers(void **state) {
    enum { CALLERS = 6 };
    pthread_t thread[CALLERS];
    caller c[CALLERS];
    lnorm_pool *pool = pool_of(3);
    (void)state;
    for (int i = 0; i < CALLERS; i++) {
        c[i].executor = lnorm_pool_executor(pool);
        assert_int_equal(pthread_create(&thread[i], NULL, call_often, &c[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(c[i].right);
    }
    lnorm_pool_destroy(pool);
}

typedef struct nest {
    const lnorm_executor *inner;
    atomic_int right;
} nest;

static void run_nested(void *argument, int64_t index) {
    nest *n = argument;
    n->right += each_once(n->inner, 20 + index);
}

static void test_nested(void **state) {
    lnorm_pool *pool = pool_of(3), *other = pool_of(2);
    const lnorm_executor *outer = lnorm_pool_executor(pool);
    nest same = {outer, 0}, apart = {lnorm_pool_executor(other), 0};
    (void)state;
    outer->parallel_for(outer->context, 50, run_nested, &same);
    outer->parallel_for(outer->context, 50, run_nested, &apart);
    assert_int_equal(same.right, 50);
    assert_int_equal(apart.right, 50);
    lnorm_pool_destroy(pool);
    lnorm_pool_destroy(other);
}

/* -- Forks -------------------------------------------------------------------------------------------------------- */

enum { PATIENCE = 300 }; /* seconds, after which a child is thought to wait for ever */

/* The child must get its answers, from threads of its own, and be able to destroy the pool. */
static void fork_and_check(lnorm_pool *pool) {
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const lnorm_executor *executor = lnorm_pool_executor(pool);
        alarm(PATIENCE);
        if (!each_once(executor, 500) || !has_two_threads(executor) || !each_once(executor, 500))
            _exit(1);
        lnorm_pool_destroy(pool);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* One that does not use the pool before it destroys it, and one whose own child does. */
static void fork_twice(lnorm_pool *pool) {
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(PATIENCE);
        child = fork();
        if (child == 0)
            _exit(!has_two_threads(lnorm_pool_executor(pool)));
        if (waitpid(child, &status, 0) != child || status)
            _exit(1);
        lnorm_pool_destroy(pool);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_fork_before_and_after(void **state) {
    lnorm_pool *pool = pool_of(3);
    (void)state;
    fork_and_check(pool);
    assert_true(has_two_threads(lnorm_pool_executor(pool)));
    fork_and_check(pool);
    fork_twice(pool);
    assert_true(each_once(lnorm_pool_executor(pool), 500));
    lnorm_pool_destroy(pool);
}

typedef struct held {
    const lnorm_executor *executor;
    atomic_int begun, released;
} held;

static void hold(void *argument, int64_t index) {
    held *h = argument;
    (void)index;
    h->begun++;
    while (!h->released)
        usleep(1000);
}

static void *hold_pool(void *argument) {
    held *h = argument;
    h->executor->parallel_for(h->executor->context, 3, hold, h);
    return NULL;
}

/* Another thread has the pool, and its helpers are at work, while this one forks. */
static void test_fork_during(void **state) {
    lnorm_pool *pool = pool_of(3);
    held h = {.executor = lnorm_pool_executor(pool)};
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, hold_pool, &h), 0);
    while (h.begun < 3)
        usleep(1000);
    fork_and_check(pool);
    assert_true(each_once(h.executor, 100)); /* busy: alone */
    h.released = 1;
    pthread_join(thread, NULL);
    assert_true(has_two_threads(h.executor));
    lnorm_pool_destroy(pool);
}

/* -- Threads that cannot be had, and those that must not be ------------------------------------------------------- */

static void test_creation_fails(void **state) {
    lnorm_pool *pool = pool_of(8);
    const lnorm_executor *executor = lnorm_pool_executor(pool);
    (void)state;
    for (int allowed = 0; allowed < 3; allowed++) {
        created = 0;
        may_create = allowed ? 1 : 0;
        assert_true(each_once(executor, 100));
        assert_int_equal(created, allowed ? 1 : 0); /* one more each time */
        may_create = INT_MAX;
    }
    assert_true(has_two_threads(executor));
    created = 0;
    assert_true(each_once(executor, 100));
    assert_int_equal(created, 5); /* those that were refused before */
    lnorm_pool_destroy(pool);
}

static void test_poor_systems(void **state) {
    lnorm_pool *pool = pool_of(4);
    (void)state;
    created = 0;
    no_attributes = 1;
    assert_true(each_once(lnorm_pool_executor(pool), 100));
    assert_int_equal(created, 0);
    no_attributes = 0;
    usual_stack = 1 << 16;
    asked_stack = 0;
    assert_true(has_two_threads(lnorm_pool_executor(pool)));
    assert_true(asked_stack == 1 << 20); /* a task may need 300 KiB, and its caller some */
    usual_stack = 0;
    lnorm_pool_destroy(pool);
    no_affinity = 1;
    pool = lnorm_pool_create(0, NULL);
    assert_int_equal(lnorm_pool_threads(pool), sysconf(_SC_NPROCESSORS_ONLN));
    no_affinity = 0;
    lnorm_pool_destroy(pool);
}

static void test_threads_come_and_go(void **state) {
    scene small;
    lnorm_op op = LNORM_OP_INIT;
    const int64_t shape[2] = {16, 1024};
    lnorm_pool *pool = pool_of(8);
    (void)state;
    created = 0;
    assert_int_equal(alive, 0);
    scene_make(&small, &op, 2, shape, all_f32, DENSE, 1);
    run_scene(&small, lnorm_pool_executor(pool), 1);
    scene_free(&small);
    assert_int_equal(created, 0); /* not before they are needed, and not for little */
    assert_true(each_once(lnorm_pool_executor(pool), 3));
    assert_int_equal(created, 2);
    assert_true(each_once(lnorm_pool_executor(pool), 100));
    assert_int_equal(created, 7);
    assert_int_equal(alive, 7);
    lnorm_pool_destroy(pool);
    assert_int_equal(alive, 0);
    lnorm_pool_destroy(pool_of(4));
    lnorm_pool_destroy(NULL);
    assert_int_equal(created, 7);
}

/* Milliseconds of processor time that this process takes while its main thread sleeps for 200 ms. */
static long cost_of_a_pause(void) {
    const struct timespec pause = {0, 200000000};
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
}

/* One spinning thread would take its share of every pause. In one pause alone, on a loaded machine, threads may still
 * be on their way to sleep, and a virtual processor's clock goes on while it is not there. */
static void test_idle_costs_nothing(void **state) {
    lnorm_pool *pool = pool_of(8);
    int idle = 0;
    (void)state;
    assert_true(each_once(lnorm_pool_executor(pool), 100));
    for (int pauses = 0; pauses < 20 && !idle; pauses++)
        idle = cost_of_a_pause() < 20;
    assert_true(idle);
    lnorm_pool_destroy(pool);
}

/* -- Signals ------------------------------------------------------------------------------------------------------ */

typedef struct masks {
    pthread_t caller;
    meeting meeting;
    atomic_int wrong;
} masks;

static void look_at_mask(void *argument, int64_t index) {
    masks *m = argument;
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    if (!pthread_equal(pthread_self(), m->caller))
        m->wrong += !sigismember(&set, SIGINT) + !sigismember(&set, SIGUSR1) + sigismember(&set, SIGSEGV);
    else
        m->wrong += sigismember(&set, SIGINT) + sigismember(&set, SIGUSR1);
    meet(&m->meeting, index);
}

static void test_signals(void **state) {
    masks m = {pthread_self(), {0, 0}, 0};
    sigset_t none, before;
    lnorm_pool *pool = pool_of(2);
    const lnorm_executor *executor = lnorm_pool_executor(pool);
    (void)state;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    executor->parallel_for(executor->context, 2, look_at_mask, &m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(m.meeting.met, 2);
    assert_int_equal(m.wrong, 0);
    lnorm_pool_destroy(pool);
}

/* -- Arguments ---------------------------------------------------------------------------------------------------- */

static void test_arguments(void **state) {
    lnorm_error error = LNORM_ERROR_INIT;
    static cpu_set_t before[8], one[8]; /* as many processors as the kernel can be built for */
    size_t cpu = 0;
    lnorm_pool *pool;
    (void)state;
    assert_null(lnorm_pool_create(-1, &error));
    assert_error(&error, INVALID, "threads: expected 0 (all that this process may use) to 4096, got -1");
    assert_null(lnorm_pool_create(4097, &error));
    assert_error(&error, INVALID, "threads: expected 0 (all that this process may use) to 4096, got 4097");
    assert_null(lnorm_pool_create(-1, NULL));
    pool = lnorm_pool_create(4096, &error); /* threads are started when there is work */
    assert_non_null(pool);
    lnorm_pool_destroy(pool);
    assert_int_equal(lnorm_pool_threads(NULL), 1);
    assert_null(lnorm_pool_executor(NULL));
    assert_int_equal(sched_getaffinity(0, sizeof before, before), 0);
    pool = lnorm_pool_create(0, NULL);
    assert_int_equal(lnorm_pool_threads(pool), CPU_COUNT_S(sizeof before, before));
    lnorm_pool_destroy(pool);
    while (!CPU_ISSET_S(cpu, sizeof before, before))
        cpu++;
    CPU_SET_S(cpu, sizeof one, one);
    assert_int_equal(sched_setaffinity(0, sizeof one, one), 0);
    pool = lnorm_pool_create(0, NULL);
    assert_int_equal(lnorm_pool_threads(pool), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, before), 0);
    lnorm_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_task_once),  cmocka_unit_test(test_results),
        cmocka_unit_test(test_hostile_threads),
        cmocka_unit_test(test_many_callers),    cmocka_unit_test(test_nested),
        cmocka_unit_test(test_fork_before_and_after), cmocka_unit_test(test_fork_during),
        cmocka_unit_test(test_creation_fails),  cmocka_unit_test(test_poor_systems),
        cmocka_unit_test(test_threads_come_and_go),
        cmocka_unit_test(test_idle_costs_nothing), cmocka_unit_test(test_signals),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
