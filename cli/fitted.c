#include "fitted.h"
#include "ulp.h"

#include <stdlib.h>

/* The line v = a*u + c through weighted points: sums of 1, u, v, u^2, u*v. */
typedef struct line {
    double one, u, v, uu, uv;
} line;

static void add_point(line *l, double weight, double u, double v) {
    l->one += weight;
    l->u += weight * u;
    l->v += weight * v;
    l->uu += weight * u * u;
    l->uv += weight * u * v;
}

static void solve(const line *l, double *a, double *c) {
    double u = l->u / l->one, v = l->v / l->one, spread = l->uu - u * l->u;
    *a = spread > 0.0 ? (l->uv - u * l->v) / spread : 0.0; /* a constant group */
    *c = v - *a * u;
}

/* -- Statistics --------------------------------------------------------------------------------------------------- */

/* (Y - bias)/weight = a*(x - mean) + c, with weight^2 for weight so that small weights, whose quotient is coarse, do
 * not disturb. */
static void fit_group(const group *g, const recipe *r, const moments *m, double *a, double *c) {
    line l = {0.0, 0.0, 0.0, 0.0, 0.0};
    for (int64_t i = 0; i < g->n; i++) {
        double weight = group_weight(g, i), v = (g->y[i] - group_bias(g, i)) / weight;
        if (weight != 0.0 && isfinite(v))
            add_point(&l, weight * weight, moments_deviation(m, r, g->x[i]), v);
    }
    solve(&l, a, c);
}

fit fit_statistics(group *g, const recipe *r, const subject *s) {
    int64_t count = sample_count(g, r);
    fit f = {g->n < 8 ? (double)INFINITY : 0.0, 0.0, 0.0, 0.0};
    for (int64_t k = 0; g->n >= 8 && k < count; k++) {
        double a, c;
        group_read(g, sample_group(g, s, k));
        moments m = moments_of(g, r);
        fit_group(g, r, &m, &a, &c);
        for (int64_t i = 0; i < g->n; i++) {
            double xhat = a * moments_deviation(&m, r, g->x[i]) + c;
            f.distance += recipe_distance(s, r, g, i, xhat * group_weight(g, i) + group_bias(g, i));
        }
        f.mean_off = fmax(f.mean_off, fabs(c));
        if (a != 0.0)
            f.variance_off = fmax(f.variance_off, fabs((1.0 / (a * a) - r->eps) / m.variance - 1.0));
    }
    f.distance /= (double)count * (double)g->n;
    return f;
}

/* -- Parameters --------------------------------------------------------------------------------------------------- */

static void add_groups(group *g, const recipe *r, const subject *s, line *lines) {
    for (int64_t k = 0, count = sample_count(g, r); k < count; k++) {
        group_read(g, sample_group(g, s, k));
        moments m = moments_of(g, r);
        double rstd = moments_rstd(r, m.variance);
        for (int64_t i = 0; i < g->n; i++) {
            double xhat = moments_deviation(&m, r, g->x[i]) * rstd;
            if (isfinite(xhat) && isfinite(g->y[i]))
                add_point(&lines[i], 1.0, xhat, g->y[i]);
        }
    }
}

static double distance_from_lines(group *g, const recipe *r, const subject *s, const line *lines) {
    double total = 0.0, a, c;
    int64_t count = sample_count(g, r);
    for (int64_t k = 0; k < count; k++) {
        group_read(g, sample_group(g, s, k));
        moments m = moments_of(g, r);
        double rstd = moments_rstd(r, m.variance);
        for (int64_t i = 0; i < g->n; i++) {
            solve(&lines[i], &a, &c);
            total += recipe_distance(s, r, g, i, a * (moments_deviation(&m, r, g->x[i]) * rstd) + c);
        }
    }
    return total / ((double)count * (double)g->n);
}

fit fit_parameters(group *g, const recipe *r, const subject *s) {
    fit f = {(double)INFINITY, 0.0, 0.0, 0.0};
    if (sample_count(g, r) < 16)
        return f;
    line *lines = calloc((size_t)g->n, sizeof *lines);
    if (!lines)
        return f;
    add_groups(g, r, s, lines);
    f.distance = distance_from_lines(g, r, s, lines);
    free(lines);
    return f;
}
