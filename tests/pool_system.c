#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool_system.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

atomic_int may_create = INT_MAX, created, alive;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

typedef struct life {
    void *(*run)(void *);
    void *argument;
} life;

static void *live(void *argument) {
    life own = *(life *)argument;
    void *result;
    free(argument);
    result = own.run(own.argument);
    usleep(20000); /* who does not wait for it finds it alive */
    alive--;
    return result;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    life *own;
    int failed;
    if (may_create-- <= 0)
        return EAGAIN;
    own = malloc(sizeof *own);
    if (!own)
        return EAGAIN;
    *own = (life){run, argument};
    created++;
    alive++;
    failed = __real_pthread_create(thread, attributes, live, own);
    if (failed) {
        fprintf(stderr, "this test needs 8 threads; the system refuses one: %s\n", strerror(failed));
        created--;
        alive--;
        free(own);
    }
    return failed;
}

int no_attributes, no_affinity;
size_t usual_stack, asked_stack;

int __real_pthread_attr_init(pthread_attr_t *attributes);
int __wrap_pthread_attr_init(pthread_attr_t *attributes);
int __real_pthread_attr_getstacksize(const pthread_attr_t *attributes, size_t *size);
int __wrap_pthread_attr_getstacksize(const pthread_attr_t *attributes, size_t *size);
int __real_pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size);
int __wrap_pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size);
int __real_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);

int __wrap_pthread_attr_init(pthread_attr_t *attributes) {
    return no_attributes ? ENOMEM : __real_pthread_attr_init(attributes);
}

int __wrap_pthread_attr_getstacksize(const pthread_attr_t *attributes, size_t *size) {
    int failed = __real_pthread_attr_getstacksize(attributes, size);
    if (usual_stack)
        *size = usual_stack;
    return failed;
}

int __wrap_pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size) {
    asked_stack = size;
    return __real_pthread_attr_setstacksize(attributes, size);
}

int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
    return no_affinity ? -1 : __real_sched_getaffinity(process, size, set);
}
