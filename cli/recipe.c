#include "fitted.h"
#include "ulp.h"

#include <stdlib.h>

/* -- Subject ------------------------------------------------------------------------------------------------------ */

/* Of group norm none: C is split, which a recipe does not know. */
static uint32_t reduced_axes(const lnorm_op *op, int ndim) {
    return op->kind == LNORM_GROUP_NORM ? 0 : operation_reduced(op, ndim);
}

static void broadcast(lnorm_tensor *to, int64_t shape[LNORM_MAX_NDIM], const lnorm_tensor *from, const lnorm_tensor *x,
                      uint32_t axes) {
    to->ndim = -1;
    if (!from)
        return;
    for (int i = 0; i < x->ndim; i++)
        shape[i] = axes >> i & 1 ? x->shape[i] : 1;
    *to = lnorm_dense(from->data, from->dtype, x->ndim, shape);
}

void subject_init(subject *s, const lnorm_problem *problem, const lnorm_op *op, const lnorm_io *io) {
    memset(s, 0, sizeof *s);
    s->x = io->x;
    s->y = io->y;
    s->op = op;
    s->mean = io->mean;
    s->variance = io->variance;
    s->x_element = (enum lnorm_element)problem->operand[LNORM_X].element;
    s->y_element = (enum lnorm_element)problem->operand[LNORM_Y].element;
    s->eps = problem->eps;
    s->n = problem->element.count;
    s->axes = reduced_axes(op, io->x->ndim);
    uint32_t indexed = operation_affine(op, io->x->ndim);
    broadcast(&s->weight, s->weight_shape, io->weight, io->x, indexed);
    broadcast(&s->bias, s->bias_shape, io->bias, io->x, indexed);
}

recipe right_recipe(const subject *s) {
    recipe r;
    memset(&r, 0, sizeof r);
    r.eps = s->eps;
    r.statistics_rounded = r.xhat_rounded = r.y_rounded = LNORM_ELEMENT_ABSENT;
    if (s->op->kind == LNORM_RMS_NORM)
        r.keeps_mean = r.about_zero = 1;
    return r;
}

/* -- The problem that a recipe describes -------------------------------------------------------------------------- */

typedef struct arrangement {
    lnorm_op op;
    lnorm_io io;
    lnorm_tensor x, y;
    int64_t axes[LNORM_MAX_NDIM], x_strides[LNORM_MAX_NDIM], y_strides[LNORM_MAX_NDIM];
    lnorm_problem problem;
} arrangement;

static void lay_out(lnorm_tensor *tensor, int64_t strides[LNORM_MAX_NDIM], enum layout layout) {
    int ndim = tensor->ndim, order[LNORM_MAX_NDIM]; /* axes, the slowest first */
    int64_t step = 1;
    if (layout == ROW_MAJOR)
        return;
    for (int i = 0; i < ndim; i++)
        order[i] = layout == COLUMN_MAJOR ? ndim - 1 - i : i;
    if (layout == LAST_TWO_SWAPPED) {
        order[ndim - 1] = ndim - 2;
        order[ndim - 2] = ndim - 1;
    }
    for (int i = ndim; i-- > 0; step *= tensor->shape[order[i]])
        strides[order[i]] = step;
    tensor->strides = strides;
}

static const lnorm_tensor *parameter(enum parameter which, const lnorm_tensor *own, const lnorm_tensor *other) {
    const lnorm_tensor *chosen = which == OWN ? own : which == OTHER ? other : NULL;
    return chosen && chosen->ndim >= 0 ? chosen : NULL;
}

/* Whether mean and variance are removed is the recipe's, not the problem's, business: it is read, not run. */
static int arrange(arrangement *a, const recipe *r, const subject *s) {
    static const lnorm_io init = LNORM_IO_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    a->op = *s->op;
    a->op.affine_broadcast = 1;
    a->op.weight_offset ^= r->other_offset;
    if (r->axes) {
        a->op.kind = LNORM_LAYER_NORM;
        a->op.normalized_shape = NULL;
        a->op.normalized_ndim = a->op.axes_count = 0;
        a->op.axes = a->axes;
        for (int i = 0; i < s->x->ndim; i++)
            if (r->axes >> i & 1)
                a->axes[a->op.axes_count++] = i;
    }
    if (r->computes_statistics)
        a->op.statistics = LNORM_COMPUTED;
    a->x = *s->x;
    a->y = *s->y;
    lay_out(&a->x, a->x_strides, r->x_layout);
    lay_out(&a->y, a->y_strides, r->y_layout);
    a->io = init;
    a->io.x = &a->x;
    a->io.y = &a->y;
    a->io.weight = parameter(r->weight, &s->weight, &s->bias);
    a->io.bias = parameter(r->bias, &s->bias, &s->weight);
    if (a->op.statistics == LNORM_CONSTANT) {
        a->io.mean = s->mean;
        a->io.variance = s->variance;
    }
    return lnorm_problem_init(&a->problem, &a->op, &a->io, &error) == LNORM_OK;
}

/* -- Distance ----------------------------------------------------------------------------------------------------- */

/* |Y - y| in ulps, after y has been rounded to Y's type */
double recipe_distance(const subject *s, const recipe *r, const group *g, int64_t i, double y) {
    double got = g->y[i], parameters = fmax(fabs(group_weight(g, i)), fabs(group_bias(g, i)));
    y = round_to(s->y_element, round_to(r->y_rounded, y));
    if (!isfinite(got) || !isfinite(y))
        return isfinite(got) || isfinite(y) ? MOST_DISTANT : 0.0;
    double size = fmax(fmax(fabs(got), fabs(y)), parameters);
    return fmin(ldexp(fabs(got - y), -spacing_of(&formats[s->y_element], size)), MOST_DISTANT);
}

static double group_distance(const group *g, const recipe *r, const subject *s, const moments *m) {
    double total = 0.0, rstd = moments_rstd(r, m->variance);
    for (int64_t i = 0; i < g->n; i++) {
        double xhat = round_to(r->xhat_rounded, moments_deviation(m, r, g->x[i]) * rstd);
        total += recipe_distance(s, r, g, i, xhat * group_weight(g, i) + group_bias(g, i));
    }
    return total;
}

/* f32 arithmetic in ulps of Y */
static double noise_of(const subject *s, const recipe *r, const moments *m) {
    double deviation = sqrt(m->variance + r->eps), ratio = fabs(m->shift + m->rest) / deviation;
    const format *y = &formats[s->y_element];
    double unit = y->digits < 24 ? ldexp(1.0, y->digits - 24) : 1.0;
    return isfinite(ratio) ? fmin(ratio * unit, MOST_DISTANT) : 0.0;
}

/* -- Sample ------------------------------------------------------------------------------------------------------- */

/* Groups spread evenly, then the worst one where the recipe's groups are the right ones. */
int64_t sample_count(const group *g, const recipe *r) {
    const int64_t elements = 1 << 17;
    int64_t groups = g->problem->group.count, most = elements / g->n + 1;
    return groups <= most ? groups : most + !r->axes;
}

int64_t sample_group(const group *g, const subject *s, int64_t k) {
    int64_t groups = g->problem->group.count, spread = (1 << 17) / g->n + 1;
    if (groups <= spread)
        return k;
    return k == spread ? s->worst : (int64_t)((double)groups / (double)spread * (double)k);
}

static fit fit_of(group *g, const recipe *r, const subject *s) {
    int64_t count = sample_count(g, r);
    fit f = {0.0, 0.0, 0.0, 0.0};
    for (int64_t k = 0; k < count; k++) {
        group_read(g, sample_group(g, s, k));
        moments m = moments_of(g, r);
        f.distance += group_distance(g, r, s, &m);
        f.noise += noise_of(s, r, &m);
    }
    f.distance /= (double)count * (double)g->n;
    f.noise /= (double)count;
    return f;
}

fit recipe_fit(const recipe *r, const subject *s) {
    fit f = {(double)INFINITY, 0.0, 0.0, 0.0};
    arrangement *a = malloc(sizeof *a);
    group g;
    memset(&g, 0, sizeof g);
    if (a && arrange(a, r, s) && a->problem.element.count && a->problem.group.count &&
        group_init(&g, &a->problem, &a->io))
        f = r->fitted == STATISTICS   ? fit_statistics(&g, r, s)
            : r->fitted == PARAMETERS ? fit_parameters(&g, r, s)
                                      : fit_of(&g, r, s);
    group_free(&g);
    free(a);
    return f;
}
