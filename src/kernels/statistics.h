/* What needs no vectors: statistics from sums, and pairs of sums in pairs of trees. Compiled once, not per instruction
 * set; inlined into all of them. */
#ifndef LNORM_KERNELS_STATISTICS_H
#define LNORM_KERNELS_STATISTICS_H

#include "../arithmetic.h"
#include <math.h>

/* Statistics of a group or row: x - c - t is the deviation, v the variance; c1 and c2 are means of the backward. */
typedef struct ln_record {
    double c, t, v, r, c1, c2;
} ln_record;

typedef struct ln_pair {
    double a, b;
} ln_pair;

/* -- Blocks into trees -------------------------------------------------------------------------------------------- */

typedef struct ln_tree_pair {
    lnorm_tree a, b;
} ln_tree_pair;

static inline void ln_clear_trees(ln_tree_pair *tree) {
    lnorm_tree_clear(&tree->a);
    lnorm_tree_clear(&tree->b);
}

static inline void ln_push_pair(ln_tree_pair *tree, ln_pair block) {
    lnorm_tree_push(&tree->a, block.a);
    lnorm_tree_push(&tree->b, block.b);
}

static inline ln_pair ln_total_of(const ln_tree_pair *tree) {
    ln_pair total;
    total.a = lnorm_tree_total(&tree->a);
    total.b = lnorm_tree_total(&tree->b);
    return total;
}

/* What is left of the rightmost block after the tree's. */
static inline double ln_total_and(const lnorm_tree *tree, double last) {
    int k = 0;
    for (uint64_t count = tree->count; count; count >>= 1, k++)
        if (count & 1)
            last = tree->level[k] + last;
    return last;
}

/* The same of two rows at once: a tree costs as much as a quarter of a block's sums. */
typedef struct ln_two {
    ln_pair of[2];
} ln_two;

typedef struct ln_tree_two {
    ln_two level[63];
    uint64_t count;
} ln_tree_two;

static inline ln_two ln_add_two(const ln_two *x, const ln_two *y) {
    ln_two sum;
    for (int i = 0; i < 2; i++) {
        sum.of[i].a = x->of[i].a + y->of[i].a;
        sum.of[i].b = x->of[i].b + y->of[i].b;
    }
    return sum;
}

static inline void ln_push_two(ln_tree_two *tree, const ln_two *block) {
    ln_two term = *block;
    int k = 0;
    for (uint64_t count = tree->count; count & 1; count >>= 1, k++)
        term = ln_add_two(&tree->level[k], &term);
    tree->level[k] = term;
    tree->count++;
}

/* Of at least one block. */
static inline ln_two ln_total_of_two(const ln_tree_two *tree) {
    uint64_t count = tree->count;
    ln_two total;
    int k = 0;
    for (; !(count & 1); count >>= 1)
        k++;
    total = tree->level[k++];
    for (count >>= 1; count; count >>= 1, k++)
        if (count & 1)
            total = ln_add_two(&tree->level[k], &total);
    return total;
}

static inline int64_t ln_block_length(int64_t count, int64_t first) {
    return count - first < LNORM_BLOCK ? count - first : LNORM_BLOCK;
}

/* -- From sums to statistics -------------------------------------------------------------------------------------- */

static inline double ln_reciprocal_root(double v, double eps) {
    double radicand = v + eps;
    if (radicand == 0.0)
        return 0.0;
    if (radicand < 0.0) /* a variance given below -eps; sqrt would set errno */
        return (double)NAN;
    return 1.0 / sqrt(radicand);
}

/* From the sums of x and x*x. False where path B is due: then c is the shift to use. */
static inline int ln_finish_moments(ln_record *s, ln_pair sum, int64_t count, int center) {
    double n = (double)count, q = sum.b / n, m;
    s->c = s->t = 0.0;
    s->v = q;
    if (!center)
        return 1;
    m = sum.a / n;
    s->c = m;
    s->v = q - m * m;
    return count > LNORM_SHORT && s->v * LNORM_KAPPA >= m * m;
}

/* Path B, from the sums of d and d*d. */
static inline void ln_finish_shifted(ln_record *s, ln_pair sum, int64_t count) {
    double n = (double)count;
    s->t = sum.a / n;
    s->v = lnorm_shifted_variance(sum.b / n, s->t);
}

#endif
