/* The implementations that this program can run. */
#include "implementation.h"
#include "implementations.h"

const struct bench_implementation bench_implementations[] = {
    {"lnorm", bench_lnorm_version, bench_lnorm_open, bench_lnorm_run, bench_lnorm_close, false, false},
    {"plan", bench_lnorm_version, bench_plan_open, bench_plan_run, bench_plan_close, false, false},
    {"fast", bench_lnorm_version, bench_fast_open, bench_plan_run, bench_plan_close, false, false},
    {"saved", bench_lnorm_version, bench_saved_open, bench_plan_run, bench_plan_close, false, false},
    {"fast-saved", bench_lnorm_version, bench_fast_saved_open, bench_plan_run, bench_plan_close, false, false},
    {"memcpy", bench_copy_version, bench_memcpy_open, bench_copy_run, bench_copy_close, false, true},
    {"stream", bench_copy_version, bench_stream_open, bench_copy_run, bench_copy_close, false, true},
    {"loop", bench_loop_version, bench_loop_open, bench_loop_run, bench_loop_close, false, false},
#if BENCH_LOOP_AVX2
    {"loop-avx2", bench_loop_avx2_version, bench_loop_avx2_open, bench_loop_avx2_run, bench_loop_avx2_close, false,
     false},
#endif
    {NULL, NULL, NULL, NULL, NULL, false, false},
};
