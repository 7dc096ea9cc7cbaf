/* A worker of lnorm-bench: one implementation in a process of its own.
 *
 *     worker list                  one JSON line: the implementations and their versions
 *     worker NAME THREADS          reads commands from standard input, answers each with one JSON line:
 *         case KEY=VALUE...        gets ready, computes once: digests of the results
 *         round SECONDS            calls it over and over: seconds per call, best and median
 *         free                     gives the case's memory back
 */
#define _POSIX_C_SOURCE 200809L
#include "implementation.h"
#include "threads.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A clock reading costs some 30 ns: batches of at least this long make that a hundredth of a percent. */
#define BATCH_SECONDS 300e-6
#define MAX_BATCHES 4096

/* Answers go to what was standard output; standard output itself becomes standard error, as libraries print there. */
static FILE *answers;

static struct {
    const struct bench_implementation *implementation;
    struct bench_context context;
    struct bench_problem problem;
    struct bench_memory memory;
    void *state;
    int set;    /* the next call's */
    long batch; /* calls between two readings of the clock */
} worker;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds per call of `calls` calls; below 0 where one of them failed. */
static double time_batch(long calls) {
    bool (*run)(void *, int) = worker.implementation->run;
    void *state = worker.state;
    int set = worker.set, sets = worker.problem.sets;
    bool right = true;
    double begin = now();
    for (long i = 0; i < calls; i++) {
        right &= run(state, set);
        set = set + 1 == sets ? 0 : set + 1;
    }
    double end = now();
    worker.set = set;
    return right ? (end - begin) / (double)calls : -1;
}

static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(answers, format, arguments);
    va_end(arguments);
}

/* A JSON string; control characters are left out. */
static void say_string(const char *text) {
    putc('"', answers);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', answers);
        if ((unsigned char)*text >= ' ')
            putc(*text, answers);
    }
    putc('"', answers);
}

static void answer(const char *key, const char *text) {
    say("{\"%s\": ", key);
    say_string(text);
    say("}\n");
}

/* `separator` stands between two digests; none is said of an array that the case has not. */
static void say_digest(const char *name, const void *array, enum bench_dtype dtype, int64_t count,
                       const char **separator) {
    if (!array)
        return;
    static struct bench_digest digest;
    bench_digest(&digest, array, dtype, count);
    say("%s\"%s\": {\"count\": %lld, \"not_finite\": %lld, \"magnitude\": %.17g, \"samples\": [", *separator, name,
        (long long)digest.count, (long long)digest.not_finite, digest.magnitude);
    for (int64_t i = 0; i < digest.samples_count; i++)
        say("%s%.17g", i ? "," : "", digest.samples[i]);
    say("]}");
    *separator = ", ";
}

static enum bench_dtype parameters_dtype(void) {
    return worker.implementation->f32_parameters ? BENCH_F32 : worker.problem.dtype;
}

static void say_case(const char *remark, double seconds) {
    const struct bench_problem *p = &worker.problem;
    const struct bench_memory *m = &worker.memory;
    const char *separator = "";
    say("{\"remark\": ");
    say_string(remark);
    say(", \"seconds\": %.9g, \"results\": {", seconds);
    if (!worker.implementation->no_results) {
        say_digest("y", m->sets[0].y, p->dtype, p->count, &separator);
        say_digest("dx", m->sets[0].dx, p->dtype, p->count, &separator);
        say_digest("dweight", m->dweight, parameters_dtype(), p->parameters, &separator);
        say_digest("dbias", p->op == BENCH_RMS ? NULL : m->dbias, parameters_dtype(), p->parameters, &separator);
    }
    say("}}\n");
}

static void free_case(void) {
    if (worker.state)
        worker.implementation->close(worker.state);
    worker.state = NULL;
    bench_memory_release(&worker.memory);
}

/* Warms up, and finds a batch that is long enough for the clock. Seconds per call; below 0 where a call failed. */
static double find_batch(void) {
    double seconds = 0;
    for (worker.batch = 1; worker.batch < 1000000; worker.batch *= 4) {
        seconds = time_batch(worker.batch);
        if (seconds < 0)
            return seconds;
        if (seconds * (double)worker.batch >= BATCH_SECONDS / 4)
            break;
    }
    double calls = BATCH_SECONDS / seconds;
    worker.batch = calls < 1 ? 1 : (long)calls;
    return seconds;
}

static void open_case(const char *line) {
    char message[BENCH_MESSAGE] = "";
    free_case();
    if (!bench_parse(&worker.problem, line, message)) {
        answer("error", message);
        return;
    }
    if (!bench_memory_create(&worker.memory, &worker.problem, parameters_dtype())) {
        free_case();
        answer("unsupported", "too little memory");
        return;
    }
    worker.set = 0;
    worker.state = worker.implementation->open(&worker.context, message);
    if (!worker.state) {
        free_case();
        answer("unsupported", message[0] ? message : "no reason given");
        return;
    }
    double seconds = worker.implementation->run(worker.state, 0) ? find_batch() : -1;
    if (seconds < 0) {
        free_case();
        answer("error", "the call failed");
        return;
    }
    say_case(message, seconds);
}

static int by_value(const void *left, const void *right) {
    double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void run_round(double seconds) {
    static double times[MAX_BATCHES];
    int n = 0;
    if (!worker.state) {
        answer("error", "round: expected a case first");
        return;
    }
    double end = now() + seconds, first = time_batch(worker.batch);
    if (first * (double)worker.batch > seconds / 4)
        times[n++] = first; /* otherwise it was the warm-up after the others' rounds */
    while (n < MAX_BATCHES && (n == 0 || now() < end))
        times[n++] = time_batch(worker.batch);
    qsort(times, (size_t)n, sizeof times[0], by_value);
    if (first < 0 || times[0] < 0)
        answer("error", "a call failed");
    else
        say("{\"best\": %.9g, \"median\": %.9g, \"batches\": %d, \"calls\": %ld}\n", times[0], times[n / 2], n,
            worker.batch);
}

static int list(void) {
    say("{");
    for (const struct bench_implementation *i = bench_implementations; i->name; i++) {
        say("%s\"%s\": ", i == bench_implementations ? "" : ", ", i->name);
        say_string(i->version());
    }
    say("}\n");
    return 0;
}

int main(int argc, char **argv) {
    int copy = dup(STDOUT_FILENO);
    answers = copy < 0 ? NULL : fdopen(copy, "w");
    if (!answers || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 1;
    if (argc == 2 && !strcmp(argv[1], "list"))
        return list();
    int threads = argc == 3 ? atoi(argv[2]) : 0;
    if (threads < 1 || threads > 4096) {
        fprintf(stderr, "usage: %s list | %s NAME THREADS\n", argv[0], argv[0]);
        return 2;
    }
    const struct bench_implementation *i = bench_implementations;
    while (i->name && strcmp(i->name, argv[1]))
        i++;
    if (!i->name) {
        fprintf(stderr, "%s: NAME: expected one that `list` prints, got: %s\n", argv[0], argv[1]);
        return 2;
    }
    worker.implementation = i;
    worker.context = (struct bench_context){&worker.problem, &worker.memory, bench_threads_start(threads), threads};
    static char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "case ", 5))
            open_case(line + 5);
        else if (!strncmp(line, "round ", 6))
            run_round(atof(line + 6));
        else if (!strcmp(line, "free\n")) {
            free_case();
            answer("freed", worker.implementation->name);
        } else
            answer("error", "expected case, round or free");
        fflush(answers);
    }
    free_case();
    return 0;
}
