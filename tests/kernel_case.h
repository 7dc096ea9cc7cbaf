/* One problem in memory, run by several engines and instruction sets; results are compared bit for bit. */
#ifndef KERNEL_CASE_H
#define KERNEL_CASE_H

#include "access.h"
#include "kernels.h"
#include "kernel_memory.h"

/* -- Random numbers: the same on every machine -------------------------------------------------------------------- */

typedef struct dice {
    uint64_t state;
} dice;

uint64_t roll(dice *d);
int64_t roll_below(dice *d, int64_t count);          /* 0 .. count-1 */
int roll_one_in(dice *d, int64_t count);
double roll_unit(dice *d);                           /* -1 .. 1 */
double roll_value(dice *d, int flavour);             /* see FLAVOURS in kernel_case.c */
enum { FLAVOURS = 12 };

/* -- A case ------------------------------------------------------------------------------------------------------- */

enum { CASE_NDIM = 6 };

typedef enum layout {
    LAYOUT_DENSE,
    LAYOUT_PITCHED,   /* dense but for a gap between rows */
    LAYOUT_SCATTERED, /* axes in any order, gaps, negative strides */
    LAYOUT_REPEATED   /* some strides 0: inputs only */
} layout;

typedef struct case_tensor {
    lnorm_tensor tensor;
    int64_t shape[CASE_NDIM], strides[CASE_NDIM];
    guarded memory;
    char *image;    /* what the memory holds before a run */
    char *expected; /* what the reference has left there */
} case_tensor;

typedef struct kernel_case {
    lnorm_op op;
    lnorm_io io;
    lnorm_problem problem;
    case_tensor at[LNORM_OPERANDS];
    dice d;
    int edge; /* where memory lies between the pages that fault: 0 drawn, 1 after the first, 2 before the last */
} kernel_case;

void case_begin(kernel_case *c, uint64_t seed, lnorm_kind kind, lnorm_pass pass);
void case_end(kernel_case *c);

/* Adds an operand; its memory is not filled yet. */
void case_add(kernel_case *c, enum lnorm_operand operand, lnorm_dtype dtype, int ndim, const int64_t *shape,
              layout how);
/* `operand` is to be the same memory as `other`. */
void case_alias(kernel_case *c, enum lnorm_operand operand, enum lnorm_operand other);
int case_has(const kernel_case *c, enum lnorm_operand operand);

/* Values of one flavour for each index of axis `key`. A wild row may hold NaN, infinities and the largest numbers; one
 * of them hides whatever else goes into a gradient, so a case is to be wild only now and then. */
void case_fill(kernel_case *c, enum lnorm_operand operand, int key, int wild);
void case_fill_flavour(kernel_case *c, enum lnorm_operand operand, int flavour);
/* One element, by its logical index. */
void case_set(kernel_case *c, enum lnorm_operand operand, int64_t index, double value);

/* Any narrow problem that a forward or backward pass can have, filled: axes, strides, types, statistics, options,
 * subsets of outputs, memory shared in place. */
void case_draw(kernel_case *c, uint64_t seed);

/* Makes the problem and runs the reference. Everything must be filled. Outputs hold old values (see accumulate). */
void case_expect(kernel_case *c);

typedef struct case_way {
    const lnorm_engine *engine;
    const lnorm_kernels *kernels;
    int workspace; /* 1: given */
    int reversed;  /* 1: tasks in falling order */
} case_way;

/* Runs the case; false, with a line on standard error, where something differs from what the reference left. */
int case_agrees(kernel_case *c, case_way way);

/* The two halves of it: memory as it is before a run, and the comparison, for runs that somebody else makes. False with
 * *operand and *place (an element of its memory) where something differs. */
void case_restore(kernel_case *c);
int case_left_as_expected(const kernel_case *c, int *operand, int64_t *place);

/* The tables to be checked, from *index = 0 on: what runs here, of these only the one that LNORM_ISA names, if it names
 * one. NULL after the last. */
const lnorm_kernels *case_kernels(int *index);

/* All of these, the engine's workspace given or not, tasks in both orders. */
int case_agrees_everywhere(kernel_case *c, const lnorm_engine *engine);

#endif
