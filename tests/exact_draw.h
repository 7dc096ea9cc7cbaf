/* Random operations with the hard inputs drawn on purpose. Everything follows from one seed. */
#ifndef LNORM_EXACT_DRAW_H
#define LNORM_EXACT_DRAW_H

#include "problem.h"

typedef struct exact_random {
    uint64_t state;
} exact_random;

uint64_t random_bits(exact_random *random);
int64_t random_below(exact_random *random, int64_t bound); /* 0 .. bound-1; 0 for bound <= 1 */
int random_chance(exact_random *random, int percent);
double random_unit(exact_random *random); /* [-1, 1), multiples of 2^-52 */

/* One operation, its tensors and their memory. Must not be moved: its parts point at each other. */
typedef struct exact_case {
    lnorm_op op;
    lnorm_io io;
    lnorm_problem problem;
    lnorm_data data;
    int64_t groups, size; /* M and N */
    lnorm_tensor tensor[LNORM_OPERANDS];
    int64_t shape[LNORM_OPERANDS][LNORM_MAX_NDIM], strides[LNORM_OPERANDS][LNORM_MAX_NDIM];
    int64_t normalized[LNORM_MAX_NDIM], axes[LNORM_MAX_NDIM];
    uint32_t reduced; /* bit a: axis a of x */
    void *storage[LNORM_OPERANDS];
    int unbounded; /* some element of x is NaN or infinite */
} exact_case;

/* Draws shapes, axes, options, element types, strides and values; `element`: that of x and, mostly, of the rest.
 * Inputs and outputs that are read have values, all other outputs a filling. Fails the running test where
 * lnorm_problem_init refuses. */
void exact_draw(exact_case *c, exact_random *random, lnorm_arithmetic arithmetic, lnorm_kind kind, lnorm_pass pass,
                enum lnorm_element element);
void exact_case_free(exact_case *c);

/* Values of every input operand, by group (exact_values.c). */
void exact_fill(exact_case *c, exact_random *random);

#endif
