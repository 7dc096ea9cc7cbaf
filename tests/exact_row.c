/* The formulas of one group, every operation in the order of the narrow arithmetic, so that the bounds follow it. */
#include "exact_row.h"

static int has(const exact_row *row, enum lnorm_operand operand) {
    return lnorm_has(row->problem, operand);
}

static long double larger(long double a, long double b) {
    return a > b ? a : b;
}

void exact_store(exact_row *row, enum lnorm_operand operand, int64_t index, const number *n, long double scale) {
    exact_result *result = &row->e->result[operand];
    if (!result->count)
        return;
    mpfr_set(result->value[index], n->value, MPFR_RNDN);
    result->scale[index] = larger(scale, n->size);
    result->error[index] = n->error;
    if (row->problem->fast)
        result->error[index] = exact_fast_error(row, operand, result->scale[index], n->error);
}

/* -- Statistics ---------------------------------------------------------------------------------------------------- */

/* The value of the mean and of the variance, nothing about errors. */
static void exact_statistics(exact_row *row) {
    number *mean = &row->mean[EXACT_MEAN], *v = &row->mean[EXACT_VARIANCE], *t = &row->temporary[0];
    number_sums *sum = &row->sum[0];
    const double *x = row->in[LNORM_X];
    sums_clear(sum);
    for (int64_t i = 0; i < row->n; i++) {
        number_set(t, x[i]);
        sums_push(sum, t);
    }
    row->mean_abs_x = sum->size / (long double)row->n;
    number_set(mean, 0.0);
    if (row->problem->center)
        sums_mean(mean, sum, exact_chain(row->n), row->n);
    sums_clear(sum);
    for (int64_t i = 0; i < row->n; i++) {
        mpfr_d_sub(t->value, x[i], mean->value, MPFR_RNDN);
        mpfr_sqr(t->value, t->value, MPFR_RNDN);
        mpfr_add(sum->value, sum->value, t->value, MPFR_RNDN);
    }
    mpfr_div_si(v->value, sum->value, (long)row->n, MPFR_RNDN);
    v->size = exact_size(v->value);
}

static int constant_row(const exact_row *row) {
    const double *x = row->in[LNORM_X];
    for (int64_t i = 0; i < row->n; i++)
        if (!isfinite(x[i]) || x[i] != x[0])
            return 0;
    return 1;
}

/* Q/N: the mean of x^2, whose terms are exact in the narrow arithmetic. */
static void mean_of_squares(exact_row *row, number *q) {
    number_sums *sum = &row->sum[0];
    sums_clear(sum);
    for (int64_t i = 0; i < row->n; i++) {
        number_set(q, row->in[LNORM_X][i]);
        mpfr_sqr(q->value, q->value, MPFR_RNDN);
        q->size = exact_size(q->value);
        sums_push(sum, q);
    }
    sums_mean(q, sum, exact_chain(row->n), row->n);
}

/* Path A: v = Q/N - m*m, deviations x - m. With L = exact_chain(N) the mean errs by (L + 1)*u*M(x), v by about u*((L
 * + 1)*(v + m^2) + 2*(L + 1)*|m|*M(x) + m^2 + v); M(x)^2 <= v + m^2 = (1 + kappa)*v, so relative to v that is at
 * most u*(1 + kappa)*(3*L + 4): 5900 u at kappa = 64, N = 65536, and half of it in r. */
static void errors_of_path_a(exact_row *row) {
    number *mean = &row->mean[EXACT_MEAN], *v = &row->mean[EXACT_VARIANCE];
    number *q = &row->temporary[0], *squared = &row->temporary[1];
    mean_of_squares(row, q);
    number_mul(squared, mean, mean);
    number_sub(q, q, squared);
    v->error = q->error;
    for (int64_t i = 0; i < row->n; i++) {
        number_set(&row->xhat[i], row->in[LNORM_X][i]);
        number_sub(&row->xhat[i], &row->xhat[i], mean);
    }
}

/* Path B: c misses the mean by at most delta = (L + 1)*u*M(x). Then d = x - c, rounded, with |d| <= |x - mean| +
 * delta and M(d) <= D = M(x - mean) + delta. t = M(d), of size delta: u*D of the terms, L*u*D of the sum, u*D of the
 * division. v = M(d^2) - t^2: (L + 4)*u of M(d^2) = v + delta^2 (two roundings of d in d^2, one of the square, L of
 * the sum, one of the division), 2*|t|*te + te^2 and one rounding of t^2, one of the difference. (x - c) - t: the
 * rounding of d, te, and its own. None of it grows with kappa while delta << sqrt(v). Setting v < 0 to 0 only comes
 * nearer to the true v. */
static void errors_of_path_b(exact_row *row) {
    number *mean = &row->mean[EXACT_MEAN], *v = &row->mean[EXACT_VARIANCE];
    long double chain = exact_chain(row->n), spread = 0;
    long double delta = (chain + 1) * EXACT_SECOND_ORDER * EXACT_U * row->mean_abs_x;
    for (int64_t i = 0; i < row->n; i++) {
        number *d = &row->xhat[i];
        number_set(d, row->in[LNORM_X][i]);
        mpfr_sub(d->value, d->value, mean->value, MPFR_RNDN);
        d->size = exact_size(d->value);
        spread += d->size;
    }
    spread = spread / (long double)row->n + delta;
    long double te = (chain + 2) * EXACT_SECOND_ORDER * spread, t = delta + EXACT_U * te;
    for (int64_t i = 0; i < row->n; i++) {
        number *d = &row->xhat[i];
        long double p = d->size + delta + te;
        d->error = p + d->size + EXACT_U * p;
    }
    long double squares = (chain + 4) * EXACT_SECOND_ORDER * (v->size + delta * delta);
    long double p = squares + 2 * delta * te + EXACT_U * te * te + t * t;
    v->error = p + v->size + EXACT_U * p;
    mean->error = te + mean->size + EXACT_U * te;
}

/* A constant row: k*x is exact for every count k < 2^29 and x of 24 bits, so c = x, and all deviations are exactly 0
 * (of the narrow arithmetic; the wide one promises the same). */
static void errors_of_constant_row(exact_row *row) {
    row->mean[EXACT_MEAN].error = row->mean[EXACT_VARIANCE].error = 0;
    for (int64_t i = 0; i < row->n; i++)
        number_set(&row->xhat[i], 0.0);
}

/* Leaves the deviations in xhat. The choice between the paths is made on rounded numbers: 2^-30 more than they can
 * be off by. Just above 64, where either may be taken, A has the larger bounds. */
static void computed_statistics(exact_row *row) {
    number *mean = &row->mean[EXACT_MEAN], *v = &row->mean[EXACT_VARIANCE];
    exact_statistics(row);
    row->e->kappa[row->group] = mean->size * mean->size / v->size;
    row->e->constant[row->group] = (uint8_t)constant_row(row);
    if (!row->problem->center) {
        mean_of_squares(row, v);
        for (int64_t i = 0; i < row->n; i++)
            number_set(&row->xhat[i], row->in[LNORM_X][i]);
    } else if (row->e->constant[row->group]) {
        errors_of_constant_row(row);
    } else if (row->n > EXACT_SHORT && mean->size * mean->size <= EXACT_KAPPA * (1 + 0x1p-30L) * v->size) {
        errors_of_path_a(row);
    } else {
        errors_of_path_b(row);
    }
}

static void root_of_variance(exact_row *row) {
    number *eps = &row->temporary[0], *radicand = &row->temporary[1];
    number_set(eps, row->problem->eps);
    number_add(radicand, &row->mean[EXACT_VARIANCE], eps);
    number_rsqrt(&row->mean[EXACT_R], radicand);
}

static void statistics(exact_row *row) {
    number *mean = &row->mean[EXACT_MEAN], *v = &row->mean[EXACT_VARIANCE], *r = &row->mean[EXACT_R];
    if (row->problem->statistics == LNORM_COMPUTED) {
        computed_statistics(row);
        root_of_variance(row);
    } else {
        row->e->kappa[row->group] = (long double)NAN;
        number_set(mean, row->problem->center ? row->one[LNORM_MEAN] : 0.0);
        number_set(v, row->one[LNORM_VARIANCE]);
        if (has(row, LNORM_RSTD))
            number_set(r, row->one[LNORM_RSTD]);
        else
            root_of_variance(row);
        for (int64_t i = 0; i < row->n; i++) {
            number_set(&row->xhat[i], row->in[LNORM_X][i]);
            if (row->problem->center)
                number_sub(&row->xhat[i], &row->xhat[i], mean);
        }
    }
    row->least_x = row->problem->fast ? exact_fast_reach(row) : 1;
    row->reach = 1;
    for (int64_t i = 0; i < row->n; i++) {
        number_mul(&row->xhat[i], &row->xhat[i], r);
        row->reach = larger(row->reach, row->xhat[i].size);
    }
    row->reach_of_all = larger(row->reach_of_all, row->reach);
}

/* -- Parts of the formulas ----------------------------------------------------------------------------------------- */

static int constant(const exact_row *row) {
    return row->problem->statistics == LNORM_CONSTANT;
}

/* weight, or 1 + weight: that sum is defined as an f64 addition. */
static double weight_at(const exact_row *row, int64_t i) {
    double weight = has(row, LNORM_WEIGHT) ? row->in[LNORM_WEIGHT][i] : 1.0;
    return has(row, LNORM_WEIGHT) && row->problem->weight_offset ? 1.0 + weight : weight;
}

static void times_weight(exact_row *row, number *a, int64_t i) {
    number *weight = &row->temporary[EXACT_TEMPORARIES - 1];
    if (!has(row, LNORM_WEIGHT))
        return;
    number_set(weight, weight_at(row, i));
    number_mul(a, a, weight);
}

static long double unit_xhat(const exact_row *row, int64_t i) {
    return larger(row->least_x, row->xhat[i].size);
}

/* M(a), M(a*xhat), and the means of their magnitudes. */
static void means_of(exact_row *row, const number *a, number *mean, number *mean_xhat,
                     struct exact_magnitudes *magnitudes) {
    number_sums *one = &row->sum[0], *xhat = &row->sum[1];
    number *product = &row->temporary[0];
    long double wide = 0, n = (long double)row->n;
    sums_clear(one);
    sums_clear(xhat);
    for (int64_t i = 0; i < row->n; i++) {
        number_mul(product, &a[i], &row->xhat[i]);
        sums_push(one, &a[i]);
        sums_push(xhat, product);
        wide += a[i].size * unit_xhat(row, i);
    }
    sums_mean(mean, one, exact_chain(row->n), row->n);
    sums_mean(mean_xhat, xhat, exact_chain(row->n), row->n);
    *magnitudes = (struct exact_magnitudes){one->size / n, xhat->size / n, wide / n};
}

/* (w - M(w)) - xhat*M(w*xhat) */
static void project(exact_row *row, number *out, const number *w, int64_t i, int mean, int mean_xhat) {
    number *product = &row->temporary[EXACT_TEMPORARIES - 2];
    number_mul(product, &row->xhat[i], &row->mean[mean_xhat]);
    number_copy(out, w);
    if (row->problem->center)
        number_sub(out, out, &row->mean[mean]);
    number_sub(out, out, product);
}

/* r*max(|w|, M(w), |xhat|*M(w*xhat)) */
static long double projected_scale(const exact_row *row, const number *w, int64_t i,
                                   const struct exact_magnitudes *magnitudes) {
    long double largest = w->size;
    if (!constant(row))
        largest = larger(larger(largest, magnitudes->one), row->xhat[i].size * magnitudes->xhat);
    return row->mean[EXACT_R].size * largest;
}

/* The magnitudes of a projection's terms. */
static long double terms_scale(const exact_row *row, const number *w, int64_t i,
                               const struct exact_magnitudes *magnitudes) {
    return constant(row) ? w->size : w->size + magnitudes->one + unit_xhat(row, i) * magnitudes->wide;
}

/* r*(projection of w); with constant statistics r*w */
static void projected(exact_row *row, number *out, const number *w, int64_t i, int mean, int mean_xhat) {
    if (constant(row))
        number_copy(out, w);
    else
        project(row, out, w, i, mean, mean_xhat);
    number_mul(out, &row->mean[EXACT_R], out);
}

static void push_affine(exact_affine *affine, int64_t entry, const number *term, long double scale) {
    if (!affine->count)
        return;
    sums_push(&affine->sum[entry], term);
    affine->scale[entry] += scale;
}

/* -- Passes -------------------------------------------------------------------------------------------------------- */

static void running(exact_row *row, enum lnorm_operand which, const number *now, long double now_scale, int updated) {
    number *old = &row->temporary[1], *keep = &row->temporary[2], *q = &row->temporary[3];
    if (!row->e->result[which].count)
        return;
    number_set(old, row->one[which]);
    long double scale = old->size;
    if (updated) {
        number_set(q, row->problem->update);
        number_set(keep, 1.0);
        number_sub(keep, keep, q);
        scale = keep->size * old->size + q->size * now_scale;
        number_mul(old, keep, old);
        number_mul(q, q, now);
        number_add(old, old, q);
    }
    exact_store(row, which, row->group, old, scale);
}

static void forward_statistics(exact_row *row) {
    number *mean = &row->mean[EXACT_MEAN], *unbiased = &row->temporary[0], *count = &row->temporary[1];
    long double scale = larger(row->mean_abs_x, mean->size);
    exact_store(row, LNORM_MEAN, row->group, mean, scale);
    exact_store(row, LNORM_RSTD, row->group, &row->mean[EXACT_R], 0);
    running(row, LNORM_RUNNING_MEAN, mean, scale, row->n >= 1);
    if (row->n >= 2) {
        number_set(count, (double)row->n);
        number_mul(unbiased, &row->mean[EXACT_VARIANCE], count);
        number_div(unbiased, unbiased, row->n - 1);
    }
    running(row, LNORM_RUNNING_VAR, unbiased, unbiased->size, row->n >= 2);
}

static void forward(exact_row *row) {
    number *y = &row->temporary[0], *bias = &row->temporary[1];
    if (row->problem->statistics == LNORM_COMPUTED)
        forward_statistics(row);
    for (int64_t i = 0; i < row->n; i++) {
        number_copy(y, &row->xhat[i]);
        times_weight(row, y, i);
        long double scale = larger(fabsl((long double)weight_at(row, i)) * row->least_x, y->size);
        if (has(row, LNORM_BIAS)) {
            number_set(bias, row->in[LNORM_BIAS][i]);
            number_add(y, y, bias);
            scale = larger(scale, bias->size);
        }
        exact_store(row, LNORM_Y, row->at[i].element, y, scale);
    }
}

/* g = dy*weight */
static void set_g(exact_row *row) {
    for (int64_t i = 0; i < row->n; i++) {
        number_set(&row->g[i], row->in[LNORM_DY][i]);
        times_weight(row, &row->g[i], i);
    }
    means_of(row, row->g, &row->mean[EXACT_C1], &row->mean[EXACT_C2], &row->of_g);
}

static void set_w(exact_row *row, enum lnorm_operand operand) {
    for (int64_t i = 0; i < row->n; i++)
        number_set(&row->w[i], row->in[operand][i]);
    means_of(row, row->w, &row->mean[EXACT_A1], &row->mean[EXACT_A2], &row->of_w);
}

static void backward(exact_row *row) {
    number *t = &row->temporary[0];
    set_g(row);
    for (int64_t i = 0; i < row->n; i++) {
        projected(row, t, &row->g[i], i, EXACT_C1, EXACT_C2);
        long double scale = projected_scale(row, &row->g[i], i, &row->of_g);
        if (!row->problem->wide)
            scale = row->mean[EXACT_R].size * terms_scale(row, &row->g[i], i, &row->of_g);
        exact_store(row, LNORM_DX, row->at[i].element, t, scale);
        number_set(t, row->in[LNORM_DY][i]);
        push_affine(&row->dbias, row->at[i].bias, t, t->size);
        scale = t->size * unit_xhat(row, i);
        number_mul(t, t, &row->xhat[i]);
        push_affine(&row->dweight, row->at[i].weight, t, scale);
    }
}

/* b = M(v*g); returns the mean of the magnitudes */
static long double set_b(exact_row *row) {
    number *product = &row->temporary[0];
    number_sums *sum = &row->sum[0];
    sums_clear(sum);
    for (int64_t i = 0; i < row->n; i++) {
        number_mul(product, &row->w[i], &row->g[i]);
        sums_push(sum, product);
    }
    sums_mean(&row->mean[EXACT_B], sum, exact_chain(row->n), row->n);
    return sum->size / (long double)row->n;
}

/* D = (b - a1*c1) - a2*c2 */
static void set_d(exact_row *row, number *d) {
    number *product = &row->temporary[0];
    number_copy(d, &row->mean[EXACT_B]);
    if (row->problem->center) {
        number_mul(product, &row->mean[EXACT_A1], &row->mean[EXACT_C1]);
        number_sub(d, d, product);
    }
    number_mul(product, &row->mean[EXACT_A2], &row->mean[EXACT_C2]);
    number_sub(d, d, product);
}

/* -((r*r)*((xhat*D + A*c2) + C*a2)) */
static void second_dx(exact_row *row, number *out, const number *d, int64_t i) {
    number *t = &row->temporary[1];
    number_mul(out, &row->xhat[i], d);
    project(row, t, &row->w[i], i, EXACT_A1, EXACT_A2);
    number_mul(t, t, &row->mean[EXACT_C2]);
    number_add(out, out, t);
    project(row, t, &row->g[i], i, EXACT_C1, EXACT_C2);
    number_mul(t, t, &row->mean[EXACT_A2]);
    number_add(out, out, t);
    number_mul(t, &row->mean[EXACT_R], &row->mean[EXACT_R]);
    number_mul(out, t, out);
    mpfr_neg(out->value, out->value, MPFR_RNDN);
}

static void double_backward(exact_row *row) {
    number *t = &row->temporary[0], *u = &row->temporary[2], *d = &row->temporary[3];
    long double r = row->mean[EXACT_R].size;
    set_g(row);
    set_w(row, LNORM_V);
    long double b_size = set_b(row);
    set_d(row, d);
    const struct exact_magnitudes *g = &row->of_g, *v = &row->of_w;
    for (int64_t i = 0; i < row->n; i++) {
        int64_t element = row->at[i].element;
        projected(row, u, &row->w[i], i, EXACT_A1, EXACT_A2);
        number_set(t, row->in[LNORM_DY][i]);
        long double scale = t->size * r * terms_scale(row, &row->w[i], i, v);
        number_mul(t, t, u);
        push_affine(&row->dweight, row->at[i].weight, t, scale);
        scale = larger(u->size, projected_scale(row, &row->w[i], i, v)) * fabsl((long double)weight_at(row, i));
        times_weight(row, u, i);
        exact_store(row, LNORM_DDY, element, u, scale);
        if (constant(row)) {
            number_set(u, 0.0);
            exact_store(row, LNORM_DX, element, u, 0);
            continue;
        }
        second_dx(row, u, d, i);
        scale = unit_xhat(row, i) * (b_size + v->one * g->one + v->wide * g->wide);
        scale += terms_scale(row, &row->w[i], i, v) * g->wide + terms_scale(row, &row->g[i], i, g) * v->wide;
        exact_store(row, LNORM_DX, element, u, r * r * scale);
    }
}

static void add_term(number *total, int *terms, const number *term) {
    if ((*terms)++)
        number_add(total, total, term);
    else
        number_copy(total, term);
}

static void y_tangent(exact_row *row, int64_t i) {
    number *total = &row->temporary[0], *t = &row->temporary[1];
    long double scale = 0;
    int terms = 0;
    number_set(total, 0.0);
    if (has(row, LNORM_X_TANGENT)) {
        projected(row, t, &row->w[i], i, EXACT_A1, EXACT_A2);
        scale = larger(t->size, projected_scale(row, &row->w[i], i, &row->of_w));
        scale *= fabsl((long double)weight_at(row, i));
        times_weight(row, t, i);
        add_term(total, &terms, t);
    }
    if (has(row, LNORM_WEIGHT_TANGENT)) {
        number_set(t, row->in[LNORM_WEIGHT_TANGENT][i]);
        scale = larger(scale, t->size * unit_xhat(row, i));
        number_mul(t, &row->xhat[i], t);
        add_term(total, &terms, t);
    }
    if (has(row, LNORM_BIAS_TANGENT)) {
        number_set(t, row->in[LNORM_BIAS_TANGENT][i]);
        scale = larger(scale, t->size);
        add_term(total, &terms, t);
    }
    exact_store(row, LNORM_Y_TANGENT, row->at[i].element, total, scale);
}

static void forward_mode(exact_row *row) {
    number *mean = &row->temporary[0], *rstd = &row->temporary[1];
    const number *r = &row->mean[EXACT_R];
    row->of_w = (struct exact_magnitudes){0, 0, 0};
    if (has(row, LNORM_X_TANGENT))
        set_w(row, LNORM_X_TANGENT);
    number_set(mean, 0.0);
    number_set(rstd, 0.0);
    if (has(row, LNORM_X_TANGENT) && !constant(row)) {
        number_copy(mean, &row->mean[EXACT_A1]);
        number_mul(rstd, r, r);
        number_mul(rstd, rstd, &row->mean[EXACT_A2]);
        mpfr_neg(rstd->value, rstd->value, MPFR_RNDN);
    }
    long double factor = constant(row) ? 0 : 1;
    exact_store(row, LNORM_MEAN_TANGENT, row->group, mean, factor * row->of_w.one);
    exact_store(row, LNORM_RSTD_TANGENT, row->group, rstd, factor * r->size * r->size * row->of_w.wide);
    for (int64_t i = 0; i < row->n; i++)
        y_tangent(row, i);
}

void exact_row_compute(exact_row *row) {
    statistics(row);
    switch ((lnorm_pass)row->problem->pass) {
    case LNORM_FORWARD:
        forward(row);
        break;
    case LNORM_BACKWARD:
        backward(row);
        break;
    case LNORM_DOUBLE_BACKWARD:
        double_backward(row);
        break;
    case LNORM_FORWARD_MODE:
        forward_mode(row);
        break;
    }
}
