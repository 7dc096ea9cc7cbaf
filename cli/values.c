#include "values.h"
#include "access.h"
#include "message.h"
#include "picture.h"

#include <stdlib.h>
#include <string.h>

/* An array of at most so many elements in so many groups is shown whole; of others, so many groups and of each so many
 * elements, what is left out included. A group of more than LARGE elements is not read: it need not fit into memory. */
enum { WHOLE_ELEMENTS = 128, WHOLE_GROUPS = 32, SOME_GROUPS = 3, SOME_ELEMENTS = 12, LARGE = 1 << 22 };

/* One group: its elements in the order of the library's index, as a row of their own. */
typedef struct values {
    int64_t count;
    char *x, *y; /* of x's element type */
    double mean, variance;
} values;

/* Elements that follow each other are read together. */
static lnorm_status gather(values *v, const scheme *s, const elements *from, int64_t group, lnorm_error *error) {
    const lnorm_problem *problem = s->problem;
    const size_t size = s->dtype.bits / 8;
    const int64_t first = lnorm_offset(problem, LNORM_X, &problem->group, group);
    lnorm_status status = LNORM_OK;
    for (int64_t i = 0, run; i < v->count && !status; i += run) {
        int64_t place = lnorm_offset(problem, LNORM_X, &problem->element, i);
        for (run = 1; i + run < v->count; run++)
            if (lnorm_offset(problem, LNORM_X, &problem->element, i + run) != place + run)
                break;
        status = from->read(from->where, v->x + (size_t)i * size, first + place, run, error);
    }
    return status;
}

/* The group as one row gives the bits that it gives in its array. The variance is 1/rstd^2 at eps = 0. */
static lnorm_status compute(values *v, const scheme *s, lnorm_error *error) {
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    const int64_t shape[] = {1, v->count}, one = 1;
    double rstd = 0;
    lnorm_tensor x = lnorm_dense(v->x, s->dtype, 2, shape), y = lnorm_dense(v->y, s->dtype, 2, shape);
    lnorm_tensor mean = lnorm_dense(&v->mean, LNORM_F64, 1, &one), root = lnorm_dense(&rstd, LNORM_F64, 1, &one);
    op.kind = s->problem->center ? LNORM_LAYER_NORM : LNORM_RMS_NORM;
    op.eps = s->problem->eps;
    io.x = &x;
    io.y = &y;
    io.mean = &mean;
    lnorm_status status = lnorm_run(&op, &io, NULL, error);
    op.eps = 0;
    io.y = NULL;
    io.rstd = &root;
    if (!status)
        status = lnorm_run(&op, &io, NULL, error);
    v->variance = rstd == 0 ? 0 : 1 / rstd / rstd;
    return status;
}

/* -- Printing ----------------------------------------------------------------------------------------------------- */

typedef struct number {
    char at[32];
} number;

/* "..." for index -1 */
static number number_at(const scheme *s, const char *data, int64_t index) {
    const enum lnorm_element element = (enum lnorm_element)s->problem->operand[LNORM_X].element;
    number text = {"..."};
    if (index >= 0)
        snprintf(text.at, sizeof text.at, "%.6g", lnorm_load(element, data, index));
    return text;
}

static int widest(const values *v, const scheme *s, const int64_t *shown, int count) {
    int width = 1;
    for (int i = 0; i < 2 * count; i++) {
        int length = (int)strlen(number_at(s, i & 1 ? v->y : v->x, shown[i / 2]).at);
        width = length > width ? length : width;
    }
    return width;
}

static void print_elements(FILE *to, const values *v, const scheme *s, int width) {
    int64_t shown[WHOLE_ELEMENTS];
    int most = scheme_count(s) <= WHOLE_ELEMENTS ? WHOLE_ELEMENTS : SOME_ELEMENTS;
    int count = picture_pick(v->count, most, shown);
    int cell = widest(v, s, shown, count), per_line = (width - 3) / (cell + 2);
    for (int from = 0; from < count; from += per_line)
        for (int which = 0; which < 2; which++) {
            fputs(which ? "  y" : "  x", to);
            for (int i = from; i < from + per_line && i < count; i++)
                fprintf(to, "  %*s", cell, number_at(s, which ? v->y : v->x, shown[i]).at);
            fputc('\n', to);
        }
}

static void print_group(FILE *to, const values *v, const scheme *s, int64_t group, int width) {
    fprintf(to, "\nGroup %lld: %s", (long long)group, scheme_members(s, group).at);
    if (s->problem->center)
        fprintf(to, ", mean %.6g, variance %.6g\n", v->mean, v->variance);
    else
        fprintf(to, ", mean square %.6g\n", v->variance);
    print_elements(to, v, s, width);
}

static lnorm_status show_group(FILE *to, const scheme *s, const elements *from, int64_t group, int width,
                               lnorm_error *error) {
    values v = {.count = s->problem->element.count};
    const size_t bytes = (size_t)v.count * (s->dtype.bits / 8) + 1;
    if (v.count > LARGE) {
        fprintf(to, "\nGroup %lld: %s, %lld elements: too many to read here. %s\n", (long long)group,
                scheme_members(s, group).at, (long long)v.count, from->elsewhere);
        return LNORM_OK;
    }
    v.x = malloc(bytes);
    v.y = malloc(bytes);
    lnorm_status status = v.x && v.y ? LNORM_OK
                                     : lnorm_fail(error, LNORM_OUT_OF_MEMORY, "x: not enough memory for a group");
    if (!status && !(status = gather(&v, s, from, group, error)) && !(status = compute(&v, s, error)))
        print_group(to, &v, s, group, width);
    free(v.x);
    free(v.y);
    return status;
}

lnorm_status values_print(FILE *to, const scheme *s, const elements *from, int width, lnorm_error *error) {
    const int64_t groups = s->problem->group.count;
    int64_t shown[WHOLE_GROUPS];
    lnorm_status status = LNORM_OK;
    int whole = scheme_count(s) <= WHOLE_ELEMENTS && groups <= WHOLE_GROUPS;
    int count = picture_pick(groups, whole ? WHOLE_GROUPS : SOME_GROUPS, shown);
    fputs("\nValues, before weight and bias:\n", to);
    for (int i = 0; i < count && !status; i++)
        if (shown[i] < 0)
            fputs("\n...\n", to);
        else
            status = show_group(to, s, from, shown[i], width, error);
    return status;
}
