#include "threads.h"
#include "report.h"
#include "verb.h"

int threads_create(lnorm_pool **pool, const arguments *a) {
    lnorm_error error = LNORM_ERROR_INIT;
    int64_t threads = 0;
    *pool = NULL;
    if (!arguments_integer(a, OPTION_THREADS, 1, &threads))
        return USAGE;
    if (threads == 1)
        return DONE;
    *pool = threads > INT32_MAX ? NULL : lnorm_pool_create((int32_t)threads, &error);
    if (!*pool && error.status == LNORM_OUT_OF_MEMORY)
        return report_failure("%s", error.message);
    if (!*pool)
        return report_usage("--threads: expected at most 4096, got %lld", (long long)threads);
    if (lnorm_pool_threads(*pool) == 1) { /* one core: the calling thread, as with --threads 1 */
        lnorm_pool_destroy(*pool);
        *pool = NULL;
    }
    return DONE;
}
