#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    char call[16]; /* "": nothing fails */
    long nth;
    int effect, told; /* told: a descriptor, or -1 */
    _Atomic long calls, fired;
} armed = {.told = -1};
static _Atomic long blocks;

void faults_arm(const char *call, long nth, int effect) {
    armed.nth = nth;
    armed.effect = effect;
    armed.calls = armed.fired = 0;
    snprintf(armed.call, sizeof armed.call, "%s", call);
}

long faults_disarm(void) {
    armed.call[0] = 0;
    return armed.fired;
}

long faults_blocks(void) {
    return blocks;
}

__attribute__((constructor)) static void read_environment(void) {
    const char *fault = getenv("LNORM_FAULT"), *told = getenv("LNORM_FAULT_FD");
    char call[16];
    long nth;
    int effect;
    if (told)
        armed.told = atoi(told);
    if (fault && sscanf(fault, "%15[a-z]:%ld:%d", call, &nth, &effect) == 3)
        faults_arm(call, nth, effect);
}

/* Whether this call is the one. */
static int strikes(const char *call) {
    if (strcmp(armed.call, call))
        return 0;
    long number = atomic_fetch_add(&armed.calls, 1) + 1;
    if (armed.nth ? number != armed.nth : number % 2 == 0)
        return 0;
    atomic_fetch_add(&armed.fired, 1);
    if (armed.told >= 0)
        syscall(SYS_write, armed.told, "!", 1);
    return 1;
}

/* The errno that a call is to fail with; 0: it is made. */
static int refusal(const char *call) {
    if (!strikes(call) || armed.effect == 0)
        return 0;
    if (armed.effect < 0)
        kill(getpid(), -armed.effect);
    return armed.effect > 0 ? armed.effect : 0;
}

/* The same for calls that transfer. */
static int refusal_of(const char *call, size_t *count) {
    if (!strikes(call))
        return 0;
    if (armed.effect < 0)
        kill(getpid(), -armed.effect);
    if (armed.effect == 0 && *count > 1)
        *count = 1;
    return armed.effect > 0 ? armed.effect : 0;
}

/* -- Memory: glibc's own names for what stands behind ours -------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static int no_memory(void) {
    int reason = refusal("malloc");
    if (reason)
        errno = ENOMEM;
    return reason;
}

static void *counted(void *block) {
    blocks += block != NULL;
    return block;
}

void *malloc(size_t size) {
    return no_memory() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return no_memory() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
    if (no_memory())
        return NULL;
    void *moved = __libc_realloc(block, size);
    if (!block)
        counted(moved);
    else if (!size && !moved)
        blocks--;
    return moved;
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *block = no_memory() ? NULL : counted(__libc_memalign(alignment, size));
    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}

void free(void *block) {
    blocks -= block != NULL;
    __libc_free(block);
}

/* -- Files and threads -------------------------------------------------------------------------------------------- */

/* `real` becomes what the name means in the libraries behind this one. */
#define REAL(name, type, ...)                                                                                         \
    static type (*real)(__VA_ARGS__);                                                                                 \
    if (!real)                                                                                                        \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

#define SIMPLE(name, call, type, parameters, arguments, ...)                                                          \
    type name parameters {                                                                                            \
        REAL(name, type, __VA_ARGS__);                                                                                \
        int reason = refusal(call);                                                                                   \
        if (!reason)                                                                                                  \
            return real arguments;                                                                                    \
        errno = reason;                                                                                               \
        return -1;                                                                                                    \
    }

#define TRANSFER(name, call, parameters, arguments, ...)                                                              \
    ssize_t name parameters {                                                                                         \
        REAL(name, ssize_t, __VA_ARGS__);                                                                             \
        int reason = refusal_of(call, &count);                                                                        \
        if (!reason)                                                                                                  \
            return real arguments;                                                                                    \
        errno = reason;                                                                                               \
        return -1;                                                                                                    \
    }

TRANSFER(read, "read", (int fd, void *to, size_t count), (fd, to, count), int, void *, size_t)
TRANSFER(pread, "read", (int fd, void *to, size_t count, off_t at), (fd, to, count, at), int, void *, size_t, off_t)
TRANSFER(pread64, "read", (int fd, void *to, size_t count, off64_t at), (fd, to, count, at), int, void *, size_t,
         off64_t)
TRANSFER(write, "write", (int fd, const void *from, size_t count), (fd, from, count), int, const void *, size_t)
TRANSFER(pwrite, "write", (int fd, const void *from, size_t count, off_t at), (fd, from, count, at), int, const void *,
         size_t, off_t)
TRANSFER(pwrite64, "write", (int fd, const void *from, size_t count, off64_t at), (fd, from, count, at), int,
         const void *, size_t, off64_t)
SIMPLE(fsync, "fsync", int, (int fd), (fd), int)
SIMPLE(rename, "rename", int, (const char *from, const char *to), (from, to), const char *, const char *)
SIMPLE(fchmod, "fchmod", int, (int fd, mode_t mode), (fd, mode), int, mode_t)
SIMPLE(mkstemp64, "mkstemp", int, (char *path), (path), char *)
SIMPLE(mkostemp64, "mkstemp", int, (char *path, int flags), (path, flags), char *, int)
SIMPLE(fstat64, "fstat", int, (int fd, struct stat64 *about), (fd, about), int, struct stat64 *)
SIMPLE(lseek64, "lseek", off64_t, (int fd, off64_t at, int from), (fd, at, from), int, off64_t, int)

/* The argument after the flags or the command, whether there is one or not: reading it is what the C library does. */
#define WITH_ARGUMENT(name, call, first, kind)                                                                        \
    int name(first one, int two, ...) {                                                                               \
        va_list list;                                                                                                 \
        REAL(name, int, first, int, ...);                                                                             \
        va_start(list, two);                                                                                          \
        kind argument = va_arg(list, kind);                                                                           \
        va_end(list);                                                                                                 \
        int reason = refusal(call);                                                                                   \
        if (!reason)                                                                                                  \
            return real(one, two, argument);                                                                          \
        errno = reason;                                                                                               \
        return -1;                                                                                                    \
    }

WITH_ARGUMENT(open, "open", const char *, unsigned)
WITH_ARGUMENT(open64, "open", const char *, unsigned)
WITH_ARGUMENT(fcntl64, "fcntl", int, void *)

int close(int fd) {
    REAL(close, int, int);
    int reason = refusal("close"), result = real(fd);
    if (!reason)
        return result;
    errno = reason;
    return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *), void *argument) {
    REAL(pthread_create, int, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int reason = refusal("thread");
    return reason ? reason : real(thread, attributes, begin, argument);
}
