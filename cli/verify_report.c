#include "verify_report.h"
#include "arguments.h"
#include "message.h"
#include "report.h"
#include "tensor.h"
#include "ulp.h"

#include <stdio.h>

/* The index of the element that is number `at` in row-major order. */
static lnorm_text index_text(const lnorm_tensor *y, int64_t at) {
    int64_t index[LNORM_MAX_NDIM];
    for (int i = y->ndim; i-- > 0; at /= y->shape[i])
        index[i] = at % y->shape[i];
    return lnorm_shape_text("", y->ndim, index);
}

static void print_array(const char *what, const char *path, const lnorm_tensor *tensor) {
    printf("%-12s '", what);
    print_text(stdout, path);
    printf("', %s %s\n", lnorm_shape_text("", tensor->ndim, tensor->shape).at,
           dtype_name(tensor->dtype));
}

/* Cut, not rounded, so that 100 % means all. */
static void print_share(const char *what, int64_t count, int64_t of) {
    double percent = floor(1e4 * (double)count / (double)of) / 100.0;
    printf("%-20s %g %% (%lld of %lld)\n", what, percent, (long long)count, (long long)of);
}

static void print_nan(const char *text, int64_t count, int64_t first, const lnorm_tensor *y) {
    if (count)
        printf("%s: %lld element%s, the first %s\n", text, (long long)count, count > 1 ? "s" : "",
               index_text(y, first).at);
}

static void print_nans(const verification *v) {
    const survey *s = &v->survey;
    print_nan("NaN or infinity where Y should have a number", s->nan_unexpected, s->nan_unexpected_at, v->y);
    print_nan("A number where Y should have a NaN", s->nan_missing, s->nan_missing_at, v->y);
    if (s->nan_due)
        printf("NaN or infinity where the result is undefined, as it should be: %lld element%s\n",
               (long long)s->nan_due, s->nan_due > 1 ? "s" : "");
    if (s->nan_unexpected || s->nan_missing || s->nan_due)
        printf("\n");
}

static void print_errors(const verification *v) {
    const survey *s = &v->survey;
    printf("%-20s %.5g ulp (%.5g ulp of y itself)\n", "largest error", s->max, s->max_own);
    printf("%-20s %.5g ulp\n", "mean error", s->sum / (double)s->measured);
    print_share("correctly rounded", s->correct, s->measured);
    print_share("within 1 ulp", s->within_1, s->measured);
}

static void print_worst(const verification *v) {
    const survey *s = &v->survey;
    int digits = formats[lnorm_element_of(v->y->dtype)].shown;
    printf("\nworst element %s: %.5g ulp\n", index_text(v->y, s->worst_at).at, s->max);
    printf("  %-10s %.*g\n  %-10s %s\n", "Y", digits, s->worst_y, "exact", s->worst.y);
    printf("  its group, %lld of %lld:\n", (long long)s->worst_group, (long long)s->groups);
    printf("  %-10s %s\n  %-10s %s\n  %-10s %s\n", "mean", s->worst.mean, "variance", s->worst.variance, "rstd",
           s->worst.rstd);
}

static void print_verdict(const verification *v) {
    const survey *s = &v->survey;
    if (s->measured)
        printf("\nAn ulp here is the spacing of %s numbers at max(|y|, |weight|, |weight*xhat|, |bias|).\n",
               dtype_name(v->y->dtype));
    if (!verification_failed(v))
        printf("Within the limit of %g ulp.\n", s->limit);
    else
        printf("BEYOND the limit of %g ulp: %lld of %lld elements.\n", s->limit, (long long)survey_wrong(s),
               (long long)s->elements);
}

static void print_places(const verification *v) {
    char groups[200], positions[200];
    places_text(&v->groups, "group", "groups", groups, sizeof groups);
    places_text(&v->positions, "position", "positions in a group", positions, sizeof positions);
    printf("Where: %s;\n       %s.\n", groups, positions);
}

static void print_mistakes(const verification *v) {
    const mistakes *m = &v->mistakes;
    if (!m->count) {
        printf("\nNone of the usual mistakes gives this Y.\n");
        return;
    }
    printf("\nThis would give Y (mean difference, where the right formula has %.4g ulp):\n", m->right);
    for (int i = 0; i < m->count; i++) {
        const mistake *found = &m->found[i];
        printf("  %s%s%s%s: %.2g ulp\n      %s\n", found->name, found->detail[0] ? " (" : "", found->detail,
               found->detail[0] ? ")" : "", found->distance, found->remedy);
    }
}

void report_text(const verification *v) {
    const survey *s = &v->survey;
    print_array("X", v->x_path, v->x);
    print_array("Y", v->y_path, v->y);
    printf("%-12s %s\n%-12s %lld, of %lld elements each\n\n", "operation", v->operation, "groups", (long long)s->groups,
           (long long)s->group_size);
    print_nans(v);
    if (s->measured) {
        print_errors(v);
        print_worst(v);
    } else {
        printf("no element to measure\n");
    }
    print_verdict(v);
    if (verification_failed(v)) {
        print_places(v);
        print_mistakes(v);
    }
}
