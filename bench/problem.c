#include "problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[] = {"layer", "rms", "columns", "group", NULL};
static const char *const dtype_names[] = {"f32", "f64", "f16", "bf16", NULL};
static const char *const pass_names[] = {"forward", "backward", NULL};
static const char *const layout_names[] = {"first", "last", NULL};

/* Where `value` stands in a list, -1 where it does not. */
static int find(const char *const *names, const char *value) {
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], value))
            return i;
    return -1;
}

/* A number from 1 to 2^40, 0 where there is none; *end is behind it. */
static int64_t positive(const char *text, char **end) {
    long long value = strtoll(text, end, 10);
    return value >= 1 && value <= (INT64_C(1) << 40) ? value : 0;
}

static bool parse_shape(struct bench_problem *problem, const char *text) {
    char *end = NULL;
    for (problem->ndim = 0; problem->ndim < 4; text = end + 1) {
        int64_t extent = positive(text, &end);
        if (!extent)
            return false;
        problem->shape[problem->ndim++] = extent;
        if (*end != 'x')
            return *end == 0;
    }
    return false;
}

/* One word of the line; false where the key is unknown or the value none of its own. */
static bool parse_word(struct bench_problem *problem, const char *key, const char *value) {
    int place = -1;
    char *end = NULL;
    if (!strcmp(key, "op") && (place = find(op_names, value)) >= 0)
        problem->op = (enum bench_op)place;
    else if (!strcmp(key, "dtype") && (place = find(dtype_names, value)) >= 0)
        problem->dtype = (enum bench_dtype)place;
    else if (!strcmp(key, "pass") && (place = find(pass_names, value)) >= 0)
        problem->backward = place == 1;
    else if (!strcmp(key, "layout") && (place = find(layout_names, value)) >= 0)
        problem->channels_last = place == 1;
    else if (!strcmp(key, "shape"))
        return parse_shape(problem, value);
    else if (!strcmp(key, "stride"))
        return (problem->stride = positive(value, &end)) && *end == 0;
    else if (!strcmp(key, "groups"))
        return (problem->groups = positive(value, &end)) && *end == 0;
    else if (!strcmp(key, "sets"))
        return (problem->sets = (int)positive(value, &end)) && *end == 0 && problem->sets <= BENCH_MAX_SETS;
    else
        return false;
    return true;
}

static const char *complete(struct bench_problem *problem) {
    if (problem->ndim != (problem->op == BENCH_GROUP ? 4 : 2))
        return "shape: expected two extents, for op=group four";
    const int64_t *shape = problem->shape;
    problem->count = 1;
    for (int i = 0; i < problem->ndim; i++) {
        if (shape[i] > (INT64_C(1) << 40) / problem->count)
            return "shape: expected at most 2^40 elements";
        problem->count *= shape[i];
    }
    if (!problem->stride)
        problem->stride = shape[problem->ndim - 1];
    if (problem->stride < shape[problem->ndim - 1] || problem->stride > (INT64_C(1) << 40) / shape[0])
        return "stride: expected at least the columns, and at most 2^40 elements in all";
    if (problem->op == BENCH_GROUP && (!problem->groups || shape[1] % problem->groups))
        return "groups: expected a divisor of the channels";
    problem->stored = problem->op == BENCH_GROUP ? problem->count : shape[0] * problem->stride;
    problem->parameters = problem->op == BENCH_GROUP ? shape[1] : shape[problem->op == BENCH_COLUMNS ? 0 : 1];
    return NULL;
}

bool bench_parse(struct bench_problem *problem, const char *line, char message[BENCH_MESSAGE]) {
    *problem = (struct bench_problem){.sets = 1};
    char key[32], value[128];
    int length = 0;
    while (sscanf(line, " %31[a-z]=%127[a-z0-9]%n", key, value, &length) == 2) {
        line += length;
        if (!parse_word(problem, key, value)) {
            snprintf(message, BENCH_MESSAGE, "%s: unknown, or not a value for it: %s", key, value);
            return false;
        }
    }
    if (line[strspn(line, " \r\n")]) {
        snprintf(message, BENCH_MESSAGE, "expected words KEY=VALUE, got: %.200s", line);
        return false;
    }
    const char *wrong = complete(problem);
    if (wrong)
        snprintf(message, BENCH_MESSAGE, "%s", wrong);
    return !wrong;
}

/* Makes one array after the other; once one of them could not be had, none. */
struct maker {
    int colour;
    bool failed;
};

static void *make(struct maker *maker, enum bench_dtype dtype, enum bench_role role, int64_t count) {
    void *array = maker->failed ? NULL : bench_allocate((size_t)count * bench_item_size(dtype), maker->colour++);
    if (!array)
        maker->failed = true;
    else if (role != BENCH_OUTPUT)
        bench_fill(array, dtype, role, count);
    return array;
}

bool bench_memory_create(struct bench_memory *memory, const struct bench_problem *problem,
                         enum bench_dtype parameters) {
    const struct bench_problem *p = problem;
    struct maker maker = {0, false};
    *memory = (struct bench_memory){0};
    for (int i = 0; i < p->sets; i++) {
        struct bench_set *set = &memory->sets[i];
        set->x = make(&maker, p->dtype, BENCH_X, p->stored);
        if (p->backward) {
            set->dy = make(&maker, p->dtype, BENCH_DY, p->stored);
            set->dx = make(&maker, p->dtype, BENCH_OUTPUT, p->count);
        } else {
            set->y = make(&maker, p->dtype, BENCH_OUTPUT, p->count);
        }
    }
    memory->weight = make(&maker, parameters, BENCH_WEIGHT, p->parameters);
    memory->bias = make(&maker, parameters, BENCH_BIAS, p->parameters);
    if (p->backward) {
        memory->dweight = make(&maker, parameters, BENCH_OUTPUT, p->parameters);
        memory->dbias = make(&maker, parameters, BENCH_OUTPUT, p->parameters);
    }
    return !maker.failed;
}

void bench_memory_release(struct bench_memory *memory) {
    for (int i = 0; i < BENCH_MAX_SETS; i++) {
        struct bench_set *set = &memory->sets[i];
        bench_release(set->x);
        bench_release(set->y);
        bench_release(set->dy);
        bench_release(set->dx);
    }
    bench_release(memory->weight);
    bench_release(memory->bias);
    bench_release(memory->dweight);
    bench_release(memory->dbias);
    *memory = (struct bench_memory){0};
}
