/* What the tests of plans, level 1 and layers share: tensors with memory of their own, and scenes, an operation
 * together with all tensors that it reads and writes. */
#ifndef HELPERS_H
#define HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "access.h"

enum { UNTOUCHED = 0xA5 }; /* outputs are filled with this byte beforehand */

typedef enum layout { DENSE, PADDED, TRANSPOSED, NEGATIVE } layout;

/* A tensor in memory of its own. shape and strides point into the box: a box is not moved. */
typedef struct box {
    lnorm_tensor tensor;
    int64_t shape[LNORM_MAX_NDIM], strides[LNORM_MAX_NDIM];
    unsigned char *memory;
    size_t bytes;
} box;

void box_make(box *b, lnorm_dtype dtype, int ndim, const int64_t *shape, layout order);
void box_free(box *b);
/* Numbers in [low, high) with all fraction bits of f64 drawn, then rounded to the element type. */
void box_random(box *b, uint64_t seed, double low, double high);
int box_untouched(const box *b);

/* Elements by their logical (row-major) number. */
int64_t tensor_count(const lnorm_tensor *tensor);
double tensor_get(const lnorm_tensor *tensor, int64_t index);
void tensor_set(const lnorm_tensor *tensor, int64_t index, double value);
/* The same shape, element type and bits in logical order; any two NaN are equal. */
int tensor_same(const lnorm_tensor *a, const lnorm_tensor *b);

typedef struct mix {
    lnorm_dtype x, parameter, statistic; /* x: everything of x's shape */
} mix;
extern const mix all_f32;

/* An operation and its tensors: io holds everything that the pass can read or write. */
typedef struct scene {
    lnorm_op op;
    lnorm_io io;
    box at[LNORM_OPERANDS];
    unsigned char written[LNORM_OPERANDS];
} scene;

/* Inputs depend on seed and logical positions only, so scenes of other layouts hold the same numbers. No workspace. */
void scene_make(scene *s, const lnorm_op *op, int ndim, const int64_t *shape, mix types, layout order, uint64_t seed);
void scene_free(scene *s);
const lnorm_tensor **scene_slot(lnorm_io *io, int operand);
/* Outputs that are also read (running statistics) are put back to their first values, the others are filled. */
void scene_reset(scene *s, uint64_t seed);
int scene_untouched(const scene *s);
void assert_same_outputs(const scene *a, const scene *b);
/* Without and with workspace. */
void scene_run(scene *s);
void scene_run_with_workspace(scene *s);

/* Ten operations that between them use every kind, pass and way of statistics. Returns 0 past the last. */
typedef struct sample {
    lnorm_op op;
    int ndim;
    int64_t shape[4];
} sample;
int sample_at(int index, sample *result);
/* Smaller where x is f64: that arithmetic is slow, and without workspace even more so. */
void scene_of_sample(scene *s, const sample *p, mix types, layout order, uint64_t seed);

uint64_t random_bits(uint64_t *state);
double random_in(uint64_t *state, double low, double high);

/* The floating-point environment of this thread: a rounding mode of <fenv.h>, and subnormals flushed (0 or 1) and traps
 * unmasked where the machine has that. */
void environment_set(int rounding, int flush, int traps);
uint64_t environment_get(void); /* without the status flags */
void environment_reset(void);

#endif
