/* What `lnorm verify` prints. */
#ifndef LNORM_CLI_VERIFY_REPORT_H
#define LNORM_CLI_VERIFY_REPORT_H

#include "mistakes.h"
#include "places.h"
#include "survey.h"

typedef struct verification {
    const char *x_path, *y_path;
    const lnorm_tensor *x, *y;
    char operation[160]; /* "layer norm over [768], eps 1e-05, weight, bias" */
    survey survey;
    places groups, positions; /* of wrong elements */
    mistakes mistakes;        /* only looked for beyond the limit */
} verification;

static inline int verification_failed(const verification *v) {
    return survey_wrong(&v->survey) > 0;
}

void report_text(const verification *v);

/* One JSON object and a line feed. False where there is not enough memory. */
int report_json(const verification *v);

#endif
