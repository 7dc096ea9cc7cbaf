/* The definition (docs/arithmetic.md) in plain C, in three arithmetics with one interface. */
#ifndef LNORM_REFERENCE_H
#define LNORM_REFERENCE_H

#include "problem.h"

enum { LNORM_RECORD_MAX = 512 }; /* bytes that a record has at most */

/* All functions may be called for any group or entry at any time, in any order. `record` holds what the later steps
 * need of a group: its statistics and, for the double backward, two means. */
typedef struct lnorm_definition {
    size_t record; /* bytes, a multiple of 8 */
    void (*prepare)(const lnorm_problem *problem, const lnorm_data *data, int64_t group, void *record);
    /* All that is one per element or one per group: y, mean, rstd, running statistics; dx; ddy and dx; tangents. */
    void (*finish)(const lnorm_problem *problem, const lnorm_data *data, int64_t group, const void *record);
    /* One entry of dweight or dbias (`which`). `records`: those of all groups, or NULL: prepared anew where needed. */
    void (*affine)(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand which, int64_t entry,
                   const char *records);
} lnorm_definition;

extern const lnorm_definition lnorm_definition_narrow; /* reference.c */
extern const lnorm_definition lnorm_definition_wide;   /* reference_wide.c */
extern const lnorm_definition lnorm_definition_fast;   /* tests/reference_fast.c: the library has no need of it */

/* Statistics of a group: x - c - t is the deviation, v the variance (not set where an rstd is given). */
typedef struct lnorm_statistics_narrow {
    double c, t, v, r;
} lnorm_statistics_narrow;

/* Those of the narrow arithmetic, computed or given; and what a forward pass that computes them makes of them: mean,
 * rstd, running statistics. */
lnorm_statistics_narrow lnorm_reference_statistics(const lnorm_problem *problem, const lnorm_data *data, int64_t group);
void lnorm_reference_put_statistics(const lnorm_problem *problem, const lnorm_data *data, int64_t group,
                                    lnorm_statistics_narrow statistics);

/* Which way the narrow statistics of a group take: 'A', 'B', or '-' where they are given (for tests). */
char lnorm_reference_path(const lnorm_problem *problem, const lnorm_data *data, int64_t group);

#endif
