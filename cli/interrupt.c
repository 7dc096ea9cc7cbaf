#include "interrupt.h"
#include "report.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Temporary files there are now. A handler reads the pointers, so they change only while its signals are blocked. */
enum { MAX_OUTPUTS = 8 };
static lnorm_file_writer *outputs[MAX_OUTPUTS];
static const char *volatile temporaries[MAX_OUTPUTS];

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { FATAL = sizeof fatal / sizeof *fatal };

/* Dies of the same signal, so that a shell sees it. */
static void die(int number) {
    for (int i = 0; i < MAX_OUTPUTS; i++)
        if (temporaries[i])
            unlink(temporaries[i]);
    signal(number, SIG_DFL);
    raise(number);
}

void interrupt_prepare(void) {
    struct sigaction action = {0}, old;
    action.sa_handler = die;
    sigfillset(&action.sa_mask);
    for (int i = 0; i < FATAL; i++)
        if (!sigaction(fatal[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(fatal[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static void block(sigset_t *before) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < FATAL; i++)
        sigaddset(&set, fatal[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

static void unblock(const sigset_t *before) {
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

lnorm_file_writer *output_create(const char *path, lnorm_dtype dtype, int32_t ndim, const int64_t *shape,
                                 lnorm_error *error) {
    sigset_t before;
    block(&before);
    lnorm_file_writer *writer = lnorm_file_create(path, dtype, ndim, shape, error);
    for (int i = 0; writer && i < MAX_OUTPUTS; i++)
        if (!outputs[i]) {
            outputs[i] = writer;
            temporaries[i] = lnorm_file_writer_temporary(writer);
            break;
        }
    unblock(&before);
    return writer;
}

static void forget(const lnorm_file_writer *writer) {
    for (int i = 0; i < MAX_OUTPUTS; i++)
        if (outputs[i] == writer) {
            temporaries[i] = NULL;
            outputs[i] = NULL;
        }
}

/* Signals stay blocked for the rename only as long as the flush to the disk takes; then they are delivered. */
lnorm_status output_commit(lnorm_file_writer *writer, lnorm_error *error) {
    sigset_t before;
    block(&before);
    forget(writer);
    lnorm_status status = lnorm_file_commit(writer, error);
    unblock(&before);
    return status;
}

void output_abort(lnorm_file_writer *writer) {
    sigset_t before;
    if (!writer)
        return;
    block(&before);
    forget(writer);
    lnorm_file_abort(writer);
    unblock(&before);
}
