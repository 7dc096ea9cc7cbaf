/* The constants of docs/arithmetic.md, the summation tree, and the prologue that keeps compilers from changing bits.
 * Every source file of the library includes this first. */
#ifndef LNORM_ARITHMETIC_H
#define LNORM_ARITHMETIC_H

/* Contraction (a*b + c in one rounding), reassociation and their like change results. Compilers contract by default
 * (gcc outside ISO mode, clang always), so it is switched off here, in every file, whatever the command line says.
 * Where a flag announces itself by a macro we refuse to compile instead. */
#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__) || defined __ASSOCIATIVE_MATH__ || \
    defined __RECIPROCAL_MATH__ || defined __NO_SIGNED_ZEROS__
#error "lnorm defines its results bit by bit: compile it without -ffast-math, -Ofast and their parts"
#endif
#if defined __clang__
#if defined __x86_64__ || defined __i386__
#pragma float_control(precise, on) /* first: it switches contraction on */
#endif
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__
#pragma GCC optimize("fp-contract=off", "no-associative-math", "no-reciprocal-math", "no-unsafe-math-optimizations")
#else
#pragma STDC FP_CONTRACT OFF
#endif

#include <float.h>
#include <stddef.h>
#include <stdint.h>

/* Evaluation wider than double (x87) rounds twice. Wider than float only (s390x in ISO mode) is harmless: operations in
 * f32 are assigned to a float, which rounds (tests/reference_fast.c). */
#if defined FLT_EVAL_METHOD && (FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2)
#error "lnorm needs double arithmetic evaluated as double: on i386 use -msse2 -mfpmath=sse"
#endif

enum {
    LNORM_LANES = 16,      /* f64 lanes of a block */
    LNORM_BLOCK = 256,     /* elements of a block */
    LNORM_ROW_BLOCK = 64,  /* outer indices added in order before they enter the tree */
    LNORM_SHORT = 16,      /* groups of at most this many elements take path B at once */
    LNORM_KAPPA = 64,      /* path A is kept where variance*64 >= mean^2 */

    /* the fast arithmetic */
    LNORM_RUN_ROWS = 8,    /* a run is LNORM_BLOCK elements, eight rows of 32 that are added in f32 */
    LNORM_RUN_COLS = 32,
    LNORM_BLOCK_RUNS = 16, /* runs whose sums enter the f64 lanes before these are folded */
    LNORM_KAPPA_F32 = 1,   /* LNORM_KAPPA, for statistics of f32 x from runs */
    LNORM_ROW_GROUP = 8    /* outer indices that are added in f32 */
};

/* Sums of 0, 1, 2, ... terms (block sums) in a binary tree on their index: pairs, pairs of pairs; what is left merges
 * from the right. level[k] holds the sum of an aligned run of 2^k terms where bit k of count is set. */
typedef struct lnorm_tree {
    double level[63];
    uint64_t count;
} lnorm_tree;

static inline void lnorm_tree_clear(lnorm_tree *tree) {
    tree->count = 0;
}

static inline void lnorm_tree_push(lnorm_tree *tree, double term) {
    int k = 0;
    for (uint64_t count = tree->count; count & 1; count >>= 1)
        term = tree->level[k++] + term;
    tree->level[k] = term;
    tree->count++;
}

static inline double lnorm_tree_total(const lnorm_tree *tree) {
    double total = 0.0;
    int k = 0, started = 0;
    for (uint64_t count = tree->count; count; count >>= 1, k++)
        if (count & 1) {
            total = started ? tree->level[k] + total : tree->level[k];
            started = 1;
        }
    return total;
}

/* Folds the lanes of a block: lane k += lane k+8, then +4, +2, +1. */
static inline double lnorm_fold(double lane[LNORM_LANES]) {
    for (int half = LNORM_LANES / 2; half; half /= 2)
        for (int k = 0; k < half; k++)
            lane[k] = lane[k] + lane[k + half];
    return lane[0];
}

/* Path B's variance, from the means of d*d and of d. The reference and the kernels share it: no group that anybody can
 * compute has it below 0, so only a test that calls it can tell (docs/arithmetic.md, section 4). */
static inline double lnorm_shifted_variance(double square, double t) {
    double v = square - t * t;
    return v < 0.0 ? 0.0 : v; /* a comparison: a NaN stays */
}

#endif
