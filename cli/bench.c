/* lnorm bench: how fast the library is on a shape of the user's, on this machine, beside memcpy and plain loops. */
#include "checks.h"
#include "operation.h"
#include "report.h"
#include "threads.h"
#include "verb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is timed. The variants of a bench take turns, so that what else runs on the machine hits all of them alike. */
typedef struct variant {
    const char *name;
    int threads;
    int traffic; /* arrays of x's size that have to move: 2 forward (x, y), 3 backward (x, dy, dx) */
    void (*run)(const struct variant *v);
    const struct subject *subject;
    const lnorm_plan *plan;
    const lnorm_io *io;
    const lnorm_executor *executor;
    int64_t calls;        /* per measurement */
    double *seconds;      /* [rounds] per call */
} variant;

/* One operation on one shape, with all that it needs. */
typedef struct subject {
    operation operation;
    lnorm_dtype dtype;
    int32_t ndim, affine_ndim;
    int64_t shape[LNORM_MAX_NDIM], affine_shape[LNORM_MAX_NDIM];
    int64_t count, affine_count; /* elements */
    lnorm_tensor x, y, dy, dx, weight, bias, dweight, dbias;
    char *memory, *workspace;
    lnorm_plan forward, backward;
    lnorm_io io;
} subject;

enum { MAX_VARIANTS = 8, MAX_ROUNDS = 1000, LEAST_ROUNDS = 5, ALIGNMENT = 64 };

/* -- The subject -------------------------------------------------------------------------------------------------- */

/* Weight and bias: of the normalised axes, ascending, or of the channels. */
static void affine_shape(subject *s) {
    uint32_t own = operation_affine(&s->operation.op, s->ndim);
    s->affine_ndim = 0;
    for (int32_t axis = 0; axis < s->ndim; axis++)
        if (own >> axis & 1)
            s->affine_shape[s->affine_ndim++] = s->shape[axis];
}

static int64_t product(const int64_t *shape, int32_t ndim) {
    int64_t count = 1;
    for (int32_t i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(count, shape[i], &count))
            return -1;
    return count;
}

/* Numbers of either sign up to 1 in magnitude (16-bit types: from a half to 1, their bits directly). */
static void fill(const lnorm_tensor *t, int64_t count, uint32_t seed) {
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        double value = (double)(seed >> 8) * 0x1p-23 - 1.0; /* [-1, 1) */
        float single = (float)value;
        uint16_t half = (uint16_t)((seed >> 16 & 0x83ff) | (t->dtype.code == 4 ? 0x3f00 : 0x3800));
        if (t->dtype.bits == 64)
            ((double *)t->data)[i] = value;
        else if (t->dtype.bits == 32)
            ((float *)t->data)[i] = single;
        else
            ((uint16_t *)t->data)[i] = half;
    }
}

static lnorm_tensor take(char **memory, const subject *s, int32_t ndim, const int64_t *shape, int64_t count) {
    lnorm_tensor tensor = lnorm_dense(*memory, s->dtype, ndim, shape);
    *memory += (count * (s->dtype.bits / 8) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return tensor;
}

static int allocate(subject *s) {
    const double bytes = 4.0 * (double)(s->count + s->affine_count) * (s->dtype.bits / 8) + 8.0 * ALIGNMENT;
    char *at = NULL;
    if (bytes < 0x1p46 && posix_memalign((void **)&at, ALIGNMENT, (size_t)bytes))
        at = NULL;
    s->memory = at;
    if (!at)
        return report_failure("not enough memory for four arrays of %lld elements", (long long)s->count);
    memset(at, 0, (size_t)bytes);
    lnorm_tensor *whole[] = {&s->x, &s->y, &s->dy, &s->dx};
    lnorm_tensor *affine[] = {&s->weight, &s->bias, &s->dweight, &s->dbias};
    for (int i = 0; i < 4; i++) {
        *whole[i] = take(&at, s, s->ndim, s->shape, s->count);
        *affine[i] = take(&at, s, s->affine_ndim, s->affine_shape, s->affine_count);
    }
    fill(&s->x, s->count, 1);
    fill(&s->dy, s->count, 2);
    fill(&s->weight, s->affine_count, 3);
    fill(&s->bias, s->affine_count, 4);
    return DONE;
}

static int plan(subject *s, const arguments *a) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_op *op = &s->operation.op;
    s->io = (lnorm_io)LNORM_IO_INIT;
    s->io.x = &s->x;
    s->io.y = &s->y;
    s->io.dy = &s->dy;
    s->io.dx = &s->dx;
    s->io.weight = &s->weight;
    s->io.dweight = &s->dweight;
    if (op->kind != LNORM_RMS_NORM) {
        s->io.bias = &s->bias;
        s->io.dbias = &s->dbias;
    }
    if (lnorm_plan_init(&s->forward, op, &s->io, &error))
        return report_refused(&error, a);
    op->pass = LNORM_BACKWARD;
    if (lnorm_plan_init(&s->backward, op, &s->io, &error))
        return report_refused(&error, a);
    size_t forward = lnorm_plan_workspace(&s->forward), backward = lnorm_plan_workspace(&s->backward);
    s->io.workspace_size = forward > backward ? forward : backward;
    s->io.workspace = s->workspace = malloc(s->io.workspace_size + 1);
    return s->workspace ? DONE : report_failure("not enough memory for a workspace");
}

/* -- Variants ----------------------------------------------------------------------------------------------------- */

static void run_memcpy(const variant *v) {
    const subject *s = v->subject;
    memcpy(s->y.data, s->x.data, (size_t)s->count * (s->dtype.bits / 8));
}

static void run_lnorm(const variant *v) {
    lnorm_execute(v->plan, v->io, v->executor);
}

/* The formula as it is usually written: f32, rows, one sum after the other. */
static void run_loops(const variant *v) {
    const subject *s = v->subject;
    const float *x = s->x.data, *weight = s->weight.data, *bias = s->bias.data;
    float *y = s->y.data;
    int64_t cols = s->affine_count, rows = cols ? s->count / cols : 0;
    for (; rows > 0; rows--, x += cols, y += cols) {
        float sum = 0, squares = 0;
        for (int64_t i = 0; i < cols; i++)
            sum += x[i];
        float mean = sum / (float)cols;
        for (int64_t i = 0; i < cols; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        float rstd = 1 / sqrtf(squares / (float)cols + 1e-5f);
        for (int64_t i = 0; i < cols; i++)
            y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    }
}

static void add(variant *variants, int *count, const subject *s, const char *name, int traffic,
                void (*run)(const variant *), const lnorm_plan *plan, lnorm_pool *pool) {
    variants[(*count)++] = (variant){.name = name,
                                     .threads = pool ? lnorm_pool_threads(pool) : 1,
                                     .traffic = traffic,
                                     .run = run,
                                     .subject = s,
                                     .plan = plan,
                                     .io = &s->io,
                                     .executor = pool ? lnorm_pool_executor(pool) : NULL};
}

static int list_variants(variant *variants, const subject *s, lnorm_pool *pool) {
    const lnorm_op *op = &s->operation.op;
    int count = 0;
    add(variants, &count, s, "memcpy", 2, run_memcpy, NULL, NULL);
    if (op->kind == LNORM_LAYER_NORM && !op->axes && s->dtype.bits == 32)
        add(variants, &count, s, "plain loops in f32", 2, run_loops, NULL, NULL);
    add(variants, &count, s, "lnorm forward", 2, run_lnorm, &s->forward, NULL);
    if (pool)
        add(variants, &count, s, "lnorm forward", 2, run_lnorm, &s->forward, pool);
    add(variants, &count, s, "lnorm backward", 3, run_lnorm, &s->backward, NULL);
    if (pool)
        add(variants, &count, s, "lnorm backward", 3, run_lnorm, &s->backward, pool);
    return count;
}

/* -- Timing ------------------------------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double measure(const variant *v) {
    double begin = now();
    for (int64_t call = 0; call < v->calls; call++)
        v->run(v);
    return (now() - begin) / (double)v->calls;
}

/* Calls that take about a millisecond together. */
static void warm_up(variant *v) {
    double seconds;
    v->calls = 1;
    measure(v);
    while ((seconds = measure(v)) * (double)v->calls < 1e-3 && v->calls < INT64_C(1) << 20)
        v->calls *= 2;
}

static int by_size(const void *a, const void *b) {
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* Rounds until the time is over, at least LEAST_ROUNDS. Returns their number; each variant's seconds are sorted. */
static int run_rounds(variant *variants, int count, double limit) {
    double end;
    int rounds = 0;
    for (int i = 0; i < count; i++)
        warm_up(&variants[i]);
    end = now() + limit;
    for (; rounds < MAX_ROUNDS && (rounds < LEAST_ROUNDS || now() < end); rounds++)
        for (int i = 0; i < count; i++)
            variants[i].seconds[rounds] = measure(&variants[i]);
    for (int i = 0; i < count; i++)
        qsort(variants[i].seconds, (size_t)rounds, sizeof(double), by_size);
    return rounds;
}

/* -- Report ------------------------------------------------------------------------------------------------------- */

static double gigabytes_per_second(const variant *v) {
    const subject *s = v->subject;
    return 1e-9 * v->traffic * (double)s->count * (s->dtype.bits / 8) / v->seconds[0];
}

static void print_table(const variant *variants, int count, int rounds) {
    const subject *s = variants->subject;
    printf("%s [", dtype_name(s->dtype));
    for (int32_t i = 0; i < s->ndim; i++)
        printf("%s%lld", i ? ", " : "", (long long)s->shape[i]);
    printf("], %lld statistics of %lld elements, %s; the best of %d rounds, in brackets the median\n\n",
           (long long)lnorm_plan_groups(&s->forward), (long long)lnorm_plan_group_size(&s->forward), lnorm_isa(),
           rounds);
    printf("%-20s %7s %12s %14s %8s %10s\n", "", "threads", "us per call", "", "GB/s", "of memcpy");
    for (int i = 0; i < count; i++) {
        const variant *v = &variants[i];
        char median[32];
        snprintf(median, sizeof median, "(%.4g)", 1e6 * v->seconds[rounds / 2]);
        printf("%-20s %7d %12.4g %14s %8.2f %10.2f\n", v->name, v->threads, 1e6 * v->seconds[0], median,
               gigabytes_per_second(v), gigabytes_per_second(v) / gigabytes_per_second(variants));
    }
    printf("\nGB/s: of the least traffic, x and y forward, x, dy and dx backward (with dweight%s).\n",
           s->io.dbias ? " and dbias" : "");
}

static int run_bench(subject *s, lnorm_pool *pool, double seconds) {
    variant variants[MAX_VARIANTS];
    int count = list_variants(variants, s, pool);
    double *times = malloc((size_t)count * MAX_ROUNDS * sizeof *times);
    if (!times)
        return report_failure("not enough memory");
    for (int i = 0; i < count; i++)
        variants[i].seconds = times + i * MAX_ROUNDS;
    int rounds = run_rounds(variants, count, seconds);
    print_table(variants, count, rounds);
    free(times);
    return report_flush(DONE);
}

static int parse(subject *s, const arguments *a, double *seconds) {
    int status = operation_parse(&s->operation, a);
    if (status)
        return status;
    s->dtype = LNORM_F32;
    if (!arguments_dtype(a, OPTION_DTYPE, &s->dtype) || !arguments_number(a, OPTION_SECONDS, 0, seconds))
        return USAGE;
    if (!parse_list(a->position[0], 1, s->shape, &s->ndim))
        return report_usage("'%s': expected a shape, as 64,768", a->position[0]);
    affine_shape(s);
    s->count = product(s->shape, s->ndim);
    s->affine_count = product(s->affine_shape, s->affine_ndim);
    if (s->count < 0 || s->affine_count < 0)
        return report_failure("'%s': too many elements", a->position[0]);
    return DONE;
}

static int run(const arguments *a) {
    subject s = {0};
    lnorm_pool *pool = NULL;
    double seconds = 2;
    int status = parse(&s, a, &seconds);
    if (!status && !(status = threads_create(&pool, a)) && !(status = allocate(&s)) && !(status = plan(&s, a)))
        status = run_bench(&s, pool, seconds);
    lnorm_pool_destroy(pool);
    free(s.workspace);
    free(s.memory);
    return status;
}

const verb verb_bench = {
    .bit = BENCH,
    .name = "bench",
    .synopsis = "SHAPE [OPTION]...",
    .summary = "how fast this is on a shape, beside memcpy and plain loops",
    .description = "Times the operation on pseudo-random numbers of the shape, forward and backward,\n"
                   "on one thread and on all of them, with memcpy of the same array beside it. The\n"
                   "variants take turns, and the best of all rounds counts: what else runs on the\n"
                   "machine disturbs it little. Weight and bias have the type of the array.\n"
                   "\n"
                   "GB/s counts the least traffic: x and y forward, x, dy and dx backward.",
    .examples = "  lnorm bench 64,768\n"
                "  lnorm bench 32,64,56,56 --op group --groups 8 --dtype bf16\n"
                "  lnorm bench 4096,4096 --axes 0 --threads 1",
    .least = 1,
    .most = 1,
    .run = run};
