/* Threads, executors, and the caller's floating-point environment: nothing of them reaches a result. */
#define _POSIX_C_SOURCE 200809L
#include "refusal.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 4 };

/* How a sample is run. Between them: every conversion, both arithmetics, the kernels of rows and those of columns. */
typedef struct variety {
    mix types;
    lnorm_arithmetic arithmetic;
    layout order;
} variety;
static const variety varieties[] = {
    {{{2, 32, 1}, {2, 32, 1}, {2, 32, 1}}, LNORM_ACCURATE, DENSE},
    {{{4, 16, 1}, {4, 16, 1}, {2, 32, 1}}, LNORM_ACCURATE, DENSE},
    {{{2, 64, 1}, {2, 64, 1}, {2, 64, 1}}, LNORM_ACCURATE, DENSE},
    {{{2, 16, 1}, {2, 32, 1}, {2, 64, 1}}, LNORM_ACCURATE, TRANSPOSED},
    {{{2, 32, 1}, {2, 32, 1}, {2, 32, 1}}, LNORM_FAST, DENSE},
    {{{4, 16, 1}, {2, 32, 1}, {2, 32, 1}}, LNORM_FAST, NEGATIVE},
};
enum { VARIETIES = sizeof varieties / sizeof *varieties };

static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { MODES = sizeof modes / sizeof *modes };

/* Numbers that a flushing processor would lose: the first few columns of x are f32 subnormals, weight makes y one. */
static void add_subnormals(scene *s) {
    int64_t cols = s->op.kind >= LNORM_GROUP_NORM ? 0 : s->io.x->shape[s->io.x->ndim - 1];
    for (int64_t i = 0; i < tensor_count(s->io.x); i += 3)
        tensor_set(s->io.x, i, tensor_get(s->io.x, i) * 0x1p-140);
    for (int64_t j = 0; s->io.weight && j < cols && j < 8; j++)
        tensor_set(s->io.weight, j, tensor_get(s->io.weight, j) * 0x1p-130);
}

/* A sample with its expected outputs in `expected`. */
static void prepare(scene *s, scene *expected, const sample *p, const variety *v, uint64_t seed) {
    sample chosen = *p;
    chosen.op.arithmetic = v->arithmetic;
    scene_of_sample(s, &chosen, v->types, v->order, seed);
    scene_of_sample(expected, &chosen, v->types, DENSE, seed);
    add_subnormals(s);
    add_subnormals(expected);
    scene_run_with_workspace(expected);
}

static void give_workspace(scene *s) {
    lnorm_plan plan;
    assert_int_equal(lnorm_plan_init(&plan, &s->op, &s->io, NULL), LNORM_OK);
    s->io.workspace_size = lnorm_plan_workspace(&plan);
    s->io.workspace = malloc(s->io.workspace_size + 1);
    assert_non_null(s->io.workspace);
}

/* ---- thread i of n, with a barrier ---- */

typedef struct engine {
    const lnorm_plan *plan;
    const lnorm_io *io;
    pthread_barrier_t barrier;
    atomic_int failures;
} engine;

typedef struct worker {
    engine *engine;
    int64_t number;
} worker;

static void *work(void *argument) {
    const worker *w = argument;
    engine *e = w->engine;
    environment_set(modes[w->number % MODES], (int)(w->number % 2), w->number > 1);
    for (int phase = 0; phase < lnorm_plan_phases(e->plan); phase++) {
        for (int64_t i = w->number; i < lnorm_plan_tasks(e->plan, phase); i += THREADS)
            if (lnorm_plan_run(e->plan, e->io, phase, i))
                e->failures++;
        pthread_barrier_wait(&e->barrier);
    }
    return NULL;
}

static void run_engine(const lnorm_plan *plan, const lnorm_io *io) {
    pthread_t thread[THREADS];
    worker w[THREADS];
    engine e = {.plan = plan, .io = io};
    assert_int_equal(pthread_barrier_init(&e.barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){&e, i};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&e.barrier);
    assert_int_equal(e.failures, 0);
}

static void test_thread_i_of_n(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < VARIETIES; m++) {
            scene s, expected;
            lnorm_plan plan;
            prepare(&s, &expected, &p, &varieties[m], 1);
            assert_int_equal(lnorm_plan_init(&plan, &s.op, &s.io, NULL), LNORM_OK);
            run_engine(&plan, &s.io);
            assert_same_outputs(&s, &expected);
            scene_reset(&s, 1);
            give_workspace(&s);
            run_engine(&plan, &s.io);
            assert_same_outputs(&s, &expected);
            free(s.io.workspace);
            scene_free(&s);
            scene_free(&expected);
        }
}

/* ---- one plan, several threads, outputs of their own ---- */

typedef struct own_run {
    const lnorm_plan *plan;
    scene s;
    lnorm_status status;
} own_run;

static void *execute_own(void *argument) {
    own_run *own = argument;
    own->status = lnorm_execute(own->plan, &own->s.io, NULL);
    return NULL;
}

static void test_shared_plan(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++) {
        pthread_t thread[THREADS];
        own_run own[THREADS];
        scene expected;
        lnorm_plan plan;
        scene_of_sample(&expected, &p, all_f32, DENSE, 2);
        scene_run(&expected);
        assert_int_equal(lnorm_plan_init(&plan, &expected.op, &expected.io, NULL), LNORM_OK);
        for (int t = 0; t < THREADS; t++) {
            own[t].plan = &plan;
            scene_of_sample(&own[t].s, &p, all_f32, DENSE, 2);
            assert_int_equal(pthread_create(&thread[t], NULL, execute_own, &own[t]), 0);
        }
        for (int t = 0; t < THREADS; t++) {
            pthread_join(thread[t], NULL);
            assert_int_equal(own[t].status, LNORM_OK);
            assert_same_outputs(&own[t].s, &expected);
            scene_free(&own[t].s);
        }
        scene_free(&expected);
    }
}

/* ---- a hostile executor: tasks in random order on threads of odd environments, all at once or one at a time ---- */

typedef struct hostile {
    int one_at_a_time, calls;
    uint64_t seed;
    int64_t tasks, altered; /* environments that a task changed */
    void (*between)(void *argument);
    void *between_argument;
} hostile;

typedef struct hostile_run {
    void (*task)(void *argument, int64_t index);
    void *argument;
    int64_t *number, count;
    atomic_llong next, altered;
    int mode; /* of a lone thread */
} hostile_run;

static void take_one(hostile_run *run, int64_t k, int mode) {
    uint64_t before;
    environment_set(modes[mode], 1, mode % 2);
    before = environment_get();
    run->task(run->argument, run->number[k]);
    if (environment_get() != before)
        run->altered++;
    environment_reset();
}

static void *take_all(void *argument) {
    hostile_run *run = argument;
    int64_t k;
    while ((k = run->next++) < run->count)
        take_one(run, k, (int)(k % MODES));
    return NULL;
}

static void *take_next(void *argument) {
    hostile_run *run = argument;
    take_one(run, run->next, run->mode);
    return NULL;
}

static void shuffle(int64_t *number, int64_t count, uint64_t *seed) {
    for (int64_t i = 0; i < count; i++) {
        int64_t k = (int64_t)(random_bits(seed) % (uint64_t)(i + 1));
        number[i] = number[k];
        number[k] = i;
    }
}

static void run_together(hostile_run *run) {
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, take_all, run), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
}

static void run_apart(hostile_run *run) {
    pthread_t thread;
    for (; run->next < run->count; run->next++) {
        run->mode = (int)(run->next % MODES);
        assert_int_equal(pthread_create(&thread, NULL, take_next, run), 0);
        pthread_join(thread, NULL);
    }
}

static void hostile_for(void *context, int64_t count, void (*task)(void *argument, int64_t index), void *argument) {
    hostile *h = context;
    hostile_run run = {.task = task, .argument = argument, .count = count};
    assert_true(count > 0);
    run.number = malloc((size_t)count * sizeof *run.number);
    assert_non_null(run.number);
    shuffle(run.number, count, &h->seed);
    if (h->between)
        h->between(h->between_argument);
    if (h->one_at_a_time)
        run_apart(&run);
    else
        run_together(&run);
    h->calls++;
    h->tasks += count;
    h->altered += run.altered;
    free(run.number);
}

static lnorm_executor executor_of(hostile *h) {
    lnorm_executor executor = LNORM_EXECUTOR_INIT;
    executor.context = h;
    executor.parallel_for = hostile_for;
    return executor;
}

typedef struct phase_tasks {
    const lnorm_plan *plan;
    const lnorm_io *io;
    int phase;
    atomic_int failures;
} phase_tasks;

static void run_numbered(void *argument, int64_t index) {
    phase_tasks *tasks = argument;
    if (lnorm_plan_run(tasks->plan, tasks->io, tasks->phase, index))
        tasks->failures++;
}

/* As lnorm_execute does it, however little there is to do. */
static void run_hostile(const scene *s, hostile *h) {
    lnorm_plan plan;
    assert_int_equal(lnorm_plan_init(&plan, &s->op, &s->io, NULL), LNORM_OK);
    assert_int_equal(lnorm_plan_check(&plan, &s->io, NULL), LNORM_OK);
    for (int phase = 0; phase < lnorm_plan_phases(&plan); phase++) {
        phase_tasks tasks = {&plan, &s->io, phase, 0};
        if (lnorm_plan_tasks(&plan, phase) > 0)
            hostile_for(h, lnorm_plan_tasks(&plan, phase), run_numbered, &tasks);
        assert_int_equal(tasks.failures, 0);
    }
}

static void test_hostile_executor(void **state) {
    sample p;
    int64_t more = 0;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < VARIETIES; m++)
            for (int one = 0; one < 2; one++) {
                scene s, expected;
                hostile h = {.one_at_a_time = one, .seed = (uint64_t)i};
                prepare(&s, &expected, &p, &varieties[m], 3);
                run_hostile(&s, &h);
                assert_same_outputs(&s, &expected);
                scene_reset(&s, 3);
                give_workspace(&s);
                run_hostile(&s, &h);
                assert_same_outputs(&s, &expected);
                assert_int_equal(h.altered, 0);
                more += h.tasks - h.calls;
                free(s.io.workspace);
                scene_free(&s);
                scene_free(&expected);
            }
    assert_true(more > 20); /* it was not only asked for lone tasks */
}

/* Work that is large enough for lnorm_execute to hand out: many rows, one long row; and work that is not. */
static void test_large_work(void **state) {
    static const int64_t shapes[][2] = {{64, 512}, {3, 140000}, {1, 200001}, {64, 511}};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++) {
            lnorm_op op = LNORM_OP_INIT;
            scene s, expected;
            hostile h = {.seed = 9};
            lnorm_executor executor = executor_of(&h);
            op.pass = (lnorm_pass)pass;
            scene_make(&s, &op, 2, shapes[i], all_f32, DENSE, 5);
            scene_make(&expected, &op, 2, shapes[i], all_f32, DENSE, 5);
            add_subnormals(&s);
            add_subnormals(&expected);
            scene_run_with_workspace(&expected);
            assert_int_equal(lnorm_run(&s.op, &s.io, &executor, NULL), LNORM_OK);
            assert_same_outputs(&s, &expected);
            scene_reset(&s, 5);
            give_workspace(&s);
            assert_int_equal(lnorm_run(&s.op, &s.io, &executor, NULL), LNORM_OK);
            assert_same_outputs(&s, &expected);
            assert_int_equal(h.altered, 0);
            assert_true(i < 3 ? i == 0 || h.calls > 0 : h.calls == 0);
            free(s.io.workspace);
            scene_free(&s);
            scene_free(&expected);
        }
}

/* An execution inside another one's parallel_for, with an executor of its own. */
static void run_inner(void *argument) {
    scene *inner = argument;
    hostile h = {.one_at_a_time = 1, .seed = 5};
    scene_reset(inner, 4);
    run_hostile(inner, &h);
}

static void test_nested(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++) {
        scene outer, expected, inner, inner_expected;
        prepare(&outer, &expected, &p, &varieties[i % VARIETIES], 3);
        scene_of_sample(&inner, &p, all_f32, DENSE, 4);
        scene_of_sample(&inner_expected, &p, all_f32, DENSE, 4);
        scene_run(&inner_expected);
        hostile h = {.seed = 6, .between = run_inner, .between_argument = &inner};
        run_hostile(&outer, &h);
        assert_same_outputs(&outer, &expected);
        if (h.calls)
            assert_same_outputs(&inner, &inner_expected);
        scene_free(&outer);
        scene_free(&expected);
        scene_free(&inner);
        scene_free(&inner_expected);
    }
}

/* ---- executors that are refused ---- */

static void test_refused_executors(void **state) {
    struct {
        lnorm_executor known;
        void *more;
    } newer;
    hostile h = {.seed = 1};
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_plan plan;
    scene s;
    (void)state;
    begin(&s, LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED);
    assert_int_equal(lnorm_plan_init(&plan, &s.op, &s.io, NULL), LNORM_OK);
    lnorm_executor executor = LNORM_EXECUTOR_INIT;
    assert_int_equal(lnorm_execute(&plan, &s.io, &executor), INVALID);
    assert_int_equal(lnorm_run(&s.op, &s.io, &executor, &error), INVALID);
    assert_error(&error, INVALID, "executor.parallel_for: expected a function, got NULL");
    executor = executor_of(&h);
    executor.size = 0;
    assert_int_equal(lnorm_run(&s.op, &s.io, &executor, &error), INVALID);
    assert_memory_equal(error.message, "executor.size: expected sizeof(lnorm_executor), at least ", 57);
    newer.known = executor_of(&h);
    newer.known.size = sizeof newer;
    newer.more = &h;
    assert_int_equal(lnorm_run(&s.op, &s.io, &newer.known, &error), LNORM_UNSUPPORTED);
    assert_true(scene_untouched(&s));
    newer.more = NULL;
    assert_int_equal(lnorm_run(&s.op, &s.io, &newer.known, &error), LNORM_OK);
    assert_error(&error, LNORM_OK, "");
    scene_free(&s);
}

/* ---- the caller's own environment ---- */

static void check_environment(scene *s, const scene *expected, int mode, int flush, int traps) {
    uint64_t before, after;
    lnorm_status status;
    scene_reset(s, 7);
    environment_set(modes[mode], flush, traps);
    before = environment_get();
    status = lnorm_run(&s->op, &s->io, NULL, NULL); /* the plan, too */
    after = environment_get();
    environment_reset();
    assert_int_equal(status, LNORM_OK);
    assert_true(before == after);
    assert_same_outputs(s, expected);
}

static void test_environment_of_the_caller(void **state) {
    sample p;
    (void)state;
    for (int i = 0; sample_at(i, &p); i++)
        for (int m = 0; m < VARIETIES; m++) {
            scene s, expected;
            p.op.eps = 0;
            prepare(&s, &expected, &p, &varieties[m], 7);
            give_workspace(&s);
            for (int mode = 0; mode < MODES; mode++)
                for (int flush = 0; flush < 2; flush++)
                    check_environment(&s, &expected, mode, flush, (mode + m) % 2);
            free(s.io.workspace);
            scene_free(&s);
            scene_free(&expected);
        }
}

static void test_environment_at_level_1(void **state) {
    enum { ROWS = 3, COLS = 21 };
    float x[ROWS * COLS], dy[ROWS * COLS], weight[COLS], y[2][ROWS * COLS], rstd[2][ROWS], dx[2][ROWS * COLS],
        dweight[2][COLS], dbias[2][COLS];
    uint64_t seed = 8, before, after;
    (void)state;
    for (int i = 0; i < ROWS * COLS; i++) {
        x[i] = (float)(random_in(&seed, -1, 1) * (i < COLS ? 0x1p-135 : 1));
        dy[i] = (float)(random_in(&seed, -1, 1) * (i % 2 ? 0x1p-135 : 1));
    }
    for (int j = 0; j < COLS; j++)
        weight[j] = (float)(random_in(&seed, -1, 1) * (j < 9 ? 0x1p-130 : 1));
    for (int mode = 0; mode < MODES; mode++)
        for (int other = 0; other < 2; other++) { /* first in the usual environment */
            lnorm_status forward, backward;
            if (other)
                environment_set(modes[mode], 1, mode == 1);
            before = environment_get();
            forward = lnorm_layer_norm_f32(y[other], NULL, rstd[other], x, weight, NULL, ROWS, COLS, 0);
            backward = lnorm_layer_norm_backward_f32(dx[other], dweight[other], dbias[other], dy, x, weight, ROWS, COLS,
                                                     0x1p-1060, NULL, 0);
            after = environment_get();
            environment_reset();
            assert_int_equal(forward, LNORM_OK);
            assert_int_equal(backward, LNORM_OK);
            assert_true(before == after);
            assert_memory_equal(y[other], y[0], sizeof y[0]);
            assert_memory_equal(rstd[other], rstd[0], sizeof rstd[0]);
            assert_memory_equal(dx[other], dx[0], sizeof dx[0]);
            assert_memory_equal(dweight[other], dweight[0], sizeof dweight[0]);
            assert_memory_equal(dbias[other], dbias[0], sizeof dbias[0]);
        }
    lnorm_status negative, nan;
    environment_set(FE_TONEAREST, 1, 0);
    negative = lnorm_rms_norm_f32(y[0], NULL, x, NULL, ROWS, COLS, -0x1p-1060);
    environment_set(FE_TONEAREST, 0, 1);
    nan = lnorm_rms_norm_f32(y[0], NULL, x, NULL, ROWS, COLS, lnorm_f64_of_bits(0x7ff8u * (1ull << 48)));
    environment_reset();
    assert_int_equal(negative, INVALID);
    assert_int_equal(nan, INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_i_of_n),
        cmocka_unit_test(test_shared_plan),
        cmocka_unit_test(test_hostile_executor),
        cmocka_unit_test(test_large_work),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_refused_executors),
        cmocka_unit_test(test_environment_of_the_caller),
        cmocka_unit_test(test_environment_at_level_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
