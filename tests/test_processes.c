/* Forks at any moment: one thread keeps the pool at work without a pause while another forks; every child uses the pool
 * it got, whatever it was in the middle of, forks in its turn, and ends it. Results are those of the parent, and nobody
 * waits for ever: children are killed by an alarm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lnorm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 64, COLS = 1024, CHILDREN = 40, AT_ONCE = 8, PATIENCE = 120 };

static float x[ROWS * COLS], expected[ROWS * COLS];

static lnorm_status normalise(float *y, const lnorm_executor *executor) {
    const int64_t shape[] = {ROWS, COLS};
    const lnorm_tensor in = lnorm_dense(x, LNORM_F32, 2, shape), out = lnorm_dense(y, LNORM_F32, 2, shape);
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    io.x = &in;
    io.y = &out;
    return lnorm_run(&op, &io, executor, NULL);
}

static int is_right(const lnorm_pool *pool) {
    static float y[ROWS * COLS]; /* the main thread's */
    memset(y, 0, sizeof y);
    return !normalise(y, lnorm_pool_executor(pool)) && !memcmp(y, expected, sizeof y);
}

typedef struct worker {
    lnorm_pool *pool;
    float *y;
    _Atomic int stop, jobs;
} worker;

static void *work(void *argument) {
    worker *w = argument;
    while (!w->stop) {
        normalise(w->y, lnorm_pool_executor(w->pool));
        w->jobs++;
    }
    return NULL;
}

static int wait_for(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* In the child: 0 if all is well. `generations`: how often forks fork. */
static int live(lnorm_pool *pool, int generations) {
    alarm(PATIENCE);
    if (!is_right(pool) || !is_right(pool))
        return 1;
    if (generations) {
        pid_t child = fork();
        if (!child)
            _exit(live(pool, generations - 1));
        if (!wait_for(child) || !is_right(pool))
            return 2;
    }
    lnorm_pool *own = lnorm_pool_create(3, NULL);
    int right = own && is_right(own);
    lnorm_pool_destroy(own);
    lnorm_pool_destroy(pool);
    return right ? 0 : 3;
}

static void test_forks_at_any_moment(void **state) {
    pthread_t thread;
    worker w = {.pool = lnorm_pool_create(4, NULL), .y = malloc(sizeof x)};
    pid_t children[AT_ONCE] = {0};
    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = (float)(i * 7919 % 1000) / 37.0f;
    assert_int_equal(normalise(expected, NULL), LNORM_OK);
    assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
    while (w.jobs < 10)
        usleep(1000);
    for (int i = 0; i < CHILDREN + AT_ONCE; i++) {
        pid_t *child = &children[i % AT_ONCE];
        if (*child)
            assert_true(wait_for(*child));
        *child = i < CHILDREN ? fork() : 0;
        if (i < CHILDREN && !*child)
            _exit(live(w.pool, i % 3));
        assert_true(is_right(w.pool));
    }
    w.stop = 1;
    pthread_join(thread, NULL);
    assert_memory_equal(w.y, expected, sizeof x);
    lnorm_pool_destroy(w.pool);
    free(w.y);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forks_at_any_moment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
