/* The benchmark's memory and numbers. The C workers link this, the Python workers load it as a shared library, so that
 * every implementation computes on the same bytes in the same kind of memory, and its results are summed up alike. */
#ifndef LNORM_BENCH_DATA_H
#define LNORM_BENCH_DATA_H

#include <stddef.h>
#include <stdint.h>

enum bench_dtype { BENCH_F32, BENCH_F64, BENCH_F16, BENCH_BF16, BENCH_DTYPES };

/* What an array is for: each role has numbers of its own. Output arrays begin as zeros. */
enum bench_role { BENCH_X, BENCH_DY, BENCH_WEIGHT, BENCH_BIAS, BENCH_OUTPUT };

enum { BENCH_SAMPLES = 512 };

/* What two workers compare instead of whole arrays: elements spread evenly over the array, the sum of all magnitudes,
 * and how many elements are infinite or NaN (those are left out of the sum and are 0 in the samples). */
struct bench_digest {
    int64_t count, not_finite, samples_count;
    double magnitude;
    double samples[BENCH_SAMPLES];
};

size_t bench_item_size(enum bench_dtype dtype);

/* Zeroed memory, every page touched, large arrays in huge pages where the system gives them; NULL where there is none.
 * Arrays of one case get different colours: addresses that differ modulo 4096, as processors compare stores with later
 * loads by those bits alone. All are aligned to 64 bytes. */
void *bench_allocate(size_t bytes, int colour);
void bench_release(void *array);

void bench_fill(void *array, enum bench_dtype dtype, enum bench_role role, int64_t count);
void bench_digest(struct bench_digest *digest, const void *array, enum bench_dtype dtype, int64_t count);

#endif
