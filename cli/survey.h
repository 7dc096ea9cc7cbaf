/* All elements of Y against the exact y: what `lnorm verify` reports. */
#ifndef LNORM_CLI_SURVEY_H
#define LNORM_CLI_SURVEY_H

#include "exact_y.h"

typedef struct survey {
    double limit;
    int64_t groups, group_size, elements;
    int64_t measured, nan_due;                        /* elements; the two kinds below are the rest */
    int64_t nan_missing, nan_missing_at;              /* how many, and the first one's place in Y */
    int64_t nan_unexpected, nan_unexpected_at;
    int64_t correct, within_1, beyond;                /* of those measured */
    double max, sum, max_own;                         /* ulps of the scale; of y itself */
    int64_t worst_group, worst_element, worst_at;     /* in the group; in Y */
    double worst_y;
    exact_texts worst;
    int64_t *bad_groups, *bad_positions;              /* [groups], [group_size]: how many are wrong there */
    int64_t by_mpfr;
} survey;

/* False where there is not enough memory. survey_free in any case. */
int survey_run(survey *s, const lnorm_problem *problem, const lnorm_io *io, double limit);
void survey_free(survey *s);

static inline int64_t survey_wrong(const survey *s) {
    return s->nan_missing + s->nan_unexpected + s->beyond;
}

#endif
