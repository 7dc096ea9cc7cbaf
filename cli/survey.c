#include "survey.h"
#include "report.h"
#include "ulp.h"

#include <stdlib.h>

static void count_place(int64_t *count, int64_t *first, int64_t at) {
    if (!(*count)++ || at < *first)
        *first = at;
}

static int measure(survey *s, const group *g, int64_t i, const verdict *v) {
    s->measured++;
    s->sum += v->ulps;
    s->correct += v->correct;
    s->within_1 += v->ulps <= 1.0;
    s->beyond += v->ulps > s->limit;
    s->max_own = v->own_ulps > s->max_own ? v->own_ulps : s->max_own;
    if (s->measured == 1 || v->ulps > s->max) {
        s->max = v->ulps;
        s->worst_group = g->index;
        s->worst_element = i;
    }
    return v->ulps > s->limit;
}

/* 1 if the element is wrong */
static int record(survey *s, const group *g, int64_t i, const verdict *v) {
    switch (v->finding) {
    case MEASURED:
        return measure(s, g, i, v);
    case NAN_DUE:
        s->nan_due++;
        return 0;
    case NAN_MISSING:
        count_place(&s->nan_missing, &s->nan_missing_at, group_place(g, i));
        return 1;
    default:
        count_place(&s->nan_unexpected, &s->nan_unexpected_at, group_place(g, i));
        return 1;
    }
}

static void judge_group(survey *s, exact_y *e, group *g, int64_t index) {
    verdict v;
    group_read(g, index);
    exact_y_begin(e, g);
    for (int64_t i = 0; i < g->n; i++) {
        exact_y_judge(e, i, &v);
        int wrong = record(s, g, i, &v);
        s->bad_groups[index] += wrong;
        s->bad_positions[i] += wrong;
    }
}

static void show_worst(survey *s, exact_y *e, group *g) {
    if (!s->measured)
        return;
    group_read(g, s->worst_group);
    exact_y_begin(e, g);
    exact_y_show(e, s->worst_element, &s->worst);
    s->worst_y = g->y[s->worst_element];
    s->worst_at = group_place(g, s->worst_element);
}

static void judge_all(survey *s, exact_y *e, group *g) {
    int64_t bytes = s->group_size * (int64_t)(lnorm_element_size(g->problem->operand[LNORM_X].element) +
                                              lnorm_element_size(g->problem->operand[LNORM_Y].element));
    progress_begin("verify", s->groups * bytes);
    for (int64_t index = 0; s->elements && index < s->groups; index++) {
        judge_group(s, e, g, index);
        progress((index + 1) * bytes);
    }
    progress_end();
    show_worst(s, e, g);
    s->by_mpfr = e->by_mpfr;
}

static int64_t *zeros(int64_t n) {
    return calloc((size_t)(n ? n : 1), sizeof(int64_t));
}

int survey_run(survey *s, const lnorm_problem *problem, const lnorm_io *io, double limit) {
    exact_y e;
    group g;
    memset(s, 0, sizeof *s);
    s->limit = limit;
    s->groups = problem->group.count;
    s->group_size = problem->element.count;
    s->elements = s->groups * s->group_size;
    s->bad_groups = zeros(s->elements ? s->groups : 0);
    s->bad_positions = zeros(s->elements ? s->group_size : 0);
    int enough = exact_y_init(&e, limit) & group_init(&g, problem, io);
    enough = enough && s->bad_groups && s->bad_positions;
    if (enough)
        judge_all(s, &e, &g);
    group_free(&g);
    exact_y_free(&e);
    return enough;
}

void survey_free(survey *s) {
    free(s->bad_groups);
    free(s->bad_positions);
    s->bad_groups = s->bad_positions = NULL;
}
