/* Values for the inputs of a drawn case: one pattern per group, most of them hard on purpose. */
#include "exact_draw.h"
#include "access.h"
#include <math.h>
#include <stdlib.h>

/* Exponents: values are in [2^low, 2^high). */
static const struct range {
    int low, high, digits;
} ranges[] = {{-1074, 1024, 53}, {-149, 128, 24}, {-24, 16, 11}, {-133, 128, 8}};

static double largest(enum lnorm_element element) {
    return ldexp(2.0 - ldexp(1.0, 1 - ranges[element].digits), ranges[element].high - 1);
}

/* Roughly normal: enough for values that are not special. */
static double draw_normal(exact_random *random) {
    return random_unit(random) + random_unit(random) + random_unit(random);
}

static double any_finite(exact_random *random, enum lnorm_element element) {
    const struct range *range = &ranges[element];
    return ldexp(random_unit(random), range->low + 1 + (int)random_below(random, range->high - range->low));
}

/* A magnitude that the type holds with room for factors of 2^10 both ways: 1 mostly, now and then any. */
static double draw_scale(exact_random *random, enum lnorm_element element) {
    const struct range *range = &ranges[element];
    int room = range->high - range->low - 20;
    if (random_chance(random, 60) || room <= 4)
        return ldexp(1.0, (int)random_below(random, 5) - 2);
    return ldexp(1.0, range->low + 10 + (int)random_below(random, room));
}

/* -- Patterns: row[0 .. n-1] --------------------------------------------------------------------------------------- */

typedef void pattern(exact_random *random, double *row, int64_t n, enum lnorm_element element);

static void normal(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    double scale = draw_scale(random, element);
    for (int64_t i = 0; i < n; i++)
        row[i] = scale * draw_normal(random);
}

/* A mean far from 0 against a small spread: kappa from 1 to what the type holds. */
static void shifted(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    double scale = draw_scale(random, element);
    double spread = ldexp(1.0, -(int)random_below(random, ranges[element].digits + 2));
    double mean = random_below(random, 2) ? 1.0 : -1.0 - random_unit(random);
    for (int64_t i = 0; i < n; i++)
        row[i] = scale * (mean + spread * draw_normal(random));
}

/* m - s and m + s in turn: kappa = (m/s)^2 for even n, on both sides of 64 and, with m = 8*s, on it; the same with 1,
 * which decides about f32 in the fast arithmetic. */
static void near_kappa(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    static const double means[] = {8.0, 8.0, 7.0, 9.0, 7.875, 8.125, 8.0 + 0x1p-18, 8.0 - 0x1p-18, 8.0 + 0x1p-40,
                                   1.0, 1.0 - 0x1p-10, 1.0 + 0x1p-10};
    double mean = means[random_below(random, sizeof means / sizeof *means)];
    double scale = draw_scale(random, element) * 0.125;
    int64_t offset = random_below(random, 2);
    for (int64_t i = 0; i < n; i++)
        row[i] = scale * (mean + (double)(2 * ((i + offset) % 2) - 1));
}

/* Pairs +a, -a far above the rest. */
static void outliers(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    normal(random, row, n, element);
    for (int64_t pairs = 1 + random_below(random, 2); pairs > 0 && n >= 2; pairs--) {
        int64_t i = random_below(random, n), j = (i + 1 + random_below(random, n - 1)) % n;
        double giant = random_below(random, 2) ? largest(element) * 0.5
                                               : ldexp(fabs(row[i]), (int)random_below(random, 60));
        row[i] = giant;
        row[j] = -giant;
    }
}

/* Multiples of a power of two in mirrored pairs around m; what is left is the mean itself. */
static void on_the_mean(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    double scale = draw_scale(random, element) / 16, mean = (double)(random_below(random, 17) - 8);
    int64_t pairs = random_below(random, n / 2 + 1);
    for (int64_t i = 0; i < n; i++)
        row[i] = scale * mean;
    for (int64_t i = 0; i < pairs; i++) {
        double distance = (double)(1 + random_below(random, 8));
        row[i] = scale * (mean + distance);
        row[n - 1 - i] = scale * (mean - distance);
    }
}

static void all_exponents(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    for (int64_t i = 0; i < n; i++)
        row[i] = any_finite(random, element);
}

static void constant(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    double value = random_below(random, 2) ? 0.1 * (double)(1 + random_below(random, 30)) : any_finite(random, element);
    for (int64_t i = 0; i < n; i++)
        row[i] = value;
}

static void zeros(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    int64_t kind = random_below(random, 3);
    (void)element;
    for (int64_t i = 0; i < n; i++)
        row[i] = kind == 0 || (kind == 1 && random_below(random, 2)) ? -0.0 : 0.0;
}

/* The smallest magnitudes of the type. */
static void subnormal(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    int64_t span = (int64_t)1 << (1 + random_below(random, ranges[element].digits));
    for (int64_t i = 0; i < n; i++)
        row[i] = ldexp((double)(random_below(random, span) - span / 2), ranges[element].low);
}

static void enormous(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    int one_sign = (int)random_below(random, 2);
    for (int64_t i = 0; i < n; i++) {
        double value = largest(element) * (1.0 - 0.25 * fabs(random_unit(random)));
        row[i] = one_sign || random_below(random, 2) ? value : -value;
    }
}

static void one_of_many(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    for (int64_t i = 0; i < n; i++)
        row[i] = 0.0;
    if (n)
        row[random_below(random, n)] = any_finite(random, element);
}

/* A constant row but for one element that is its neighbour. */
static void one_step(exact_random *random, double *row, int64_t n, enum lnorm_element element) {
    double value = draw_scale(random, element) * (1.0 + fabs(random_unit(random)));
    int step = ilogb(value) - ranges[element].digits + 1;
    value = ldexp(floor(ldexp(value, -step)), step);
    for (int64_t i = 0; i < n; i++)
        row[i] = value;
    if (n)
        row[random_below(random, n)] = value + ldexp(1.0, step);
}

static void fill_row(exact_random *random, pattern *draw, double *row, int64_t n, enum lnorm_element element) {
    draw(random, row, n, element);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(row[i]) <= largest(element)))
            row[i] = signbit(row[i]) ? -largest(element) : largest(element);
}

/* -- Operands ------------------------------------------------------------------------------------------------------ */

static enum lnorm_element element_of(const exact_case *c, int operand) {
    return (enum lnorm_element)c->problem.operand[operand].element;
}

static void put(exact_case *c, int operand, int64_t group, int64_t i, double value) {
    enum lnorm_operand which = (enum lnorm_operand)operand;
    int64_t at = lnorm_offset(&c->problem, which, &c->problem.group, group);
    if (c->size) /* an empty group has statistics */
        at += lnorm_offset(&c->problem, which, &c->problem.element, i);
    lnorm_store(element_of(c, operand), c->data.at[operand], at, value);
}

static void fill_elements(exact_case *c, exact_random *random, int operand, pattern *const *patterns, int count) {
    double *row = malloc(sizeof *row * (size_t)(c->size + 1));
    for (int64_t group = 0; row && group < c->groups; group++) {
        fill_row(random, patterns[random_below(random, count)], row, c->size, element_of(c, operand));
        for (int64_t i = 0; i < c->size; i++)
            put(c, operand, group, i, row[i]);
    }
    free(row);
}

/* A NaN or an infinity somewhere. An infinite element of an RMS row is outside the contract. */
static void spoil(exact_case *c, exact_random *random) {
    if (c->op.statistics != LNORM_COMPUTED || !c->groups || !c->size || !random_chance(random, 3))
        return;
    double value = random_below(random, 2) || !c->problem.center ? (double)NAN : (double)-INFINITY;
    put(c, LNORM_X, random_below(random, c->groups), random_below(random, c->size), value);
    c->unbounded = 1;
}

static long double x_at(const exact_case *c, int64_t group, int64_t i) {
    return (long double)lnorm_load(element_of(c, LNORM_X), c->data.at[LNORM_X],
                                   lnorm_offset(&c->problem, LNORM_X, &c->problem.group, group) +
                                       lnorm_offset(&c->problem, LNORM_X, &c->problem.element, i));
}

/* What a forward pass would have saved, or the largest number of the type. long double: for its exponents. */
static void fill_statistics(exact_case *c) {
    long double n = (long double)c->size;
    for (int64_t group = 0; group < c->groups; group++) {
        long double sum = 0, squares = 0;
        for (int64_t i = 0; i < c->size; i++)
            sum += x_at(c, group, i);
        long double mean = c->problem.center && c->size ? sum / n : 0;
        for (int64_t i = 0; i < c->size; i++)
            squares += (x_at(c, group, i) - mean) * (x_at(c, group, i) - mean);
        long double variance = c->size ? squares / n : 1, radicand = variance + (long double)c->problem.eps;
        long double values[] = {mean, radicand > 0 ? 1 / sqrtl(radicand) : 0, variance};
        for (int k = 0; k < 3; k++) {
            int operand = LNORM_MEAN + k;
            if (!lnorm_has(&c->problem, (enum lnorm_operand)operand) || !c->problem.operand[operand].read)
                continue;
            long double limit = (long double)largest(element_of(c, operand));
            put(c, operand, group, 0, (double)fmaxl(-limit, fminl(limit, values[k])));
        }
    }
}

/* Values that are there before an output is added to them. */
static void fill_old(exact_case *c, exact_random *random, int operand) {
    double scale = draw_scale(random, element_of(c, operand));
    for (int64_t group = 0; group < c->groups; group++)
        for (int64_t i = 0; i < c->size; i++)
            put(c, operand, group, i,
                operand == LNORM_RUNNING_VAR ? scale * fabs(draw_normal(random)) : scale * draw_normal(random));
}

void exact_fill(exact_case *c, exact_random *random) {
    static pattern *const of_x[] = {normal,   shifted, near_kappa, outliers,    on_the_mean, all_exponents,
                                    constant, zeros,   subnormal,  enormous,    one_step,    one_of_many,
                                    normal,   shifted, normal,     shifted};
    static pattern *const of_gradient[] = {normal,        normal,      normal,   shifted, constant,
                                           all_exponents, one_of_many, outliers, zeros};
    static pattern *const of_weight[] = {shifted, normal, shifted, all_exponents, zeros, constant, enormous, subnormal};
    fill_elements(c, random, LNORM_X, of_x, sizeof of_x / sizeof *of_x);
    spoil(c, random);
    if (c->op.statistics != LNORM_COMPUTED)
        fill_statistics(c);
    for (int k = LNORM_X + 1; k < LNORM_OPERANDS; k++) {
        int affine = k == LNORM_WEIGHT || k == LNORM_BIAS || k == LNORM_WEIGHT_TANGENT || k == LNORM_BIAS_TANGENT;
        if (!lnorm_has(&c->problem, (enum lnorm_operand)k) || (k >= LNORM_MEAN && k <= LNORM_VARIANCE))
            continue;
        int running = k == LNORM_RUNNING_MEAN || k == LNORM_RUNNING_VAR;
        if (running || (c->op.accumulate && (k == LNORM_DWEIGHT || k == LNORM_DBIAS)))
            fill_old(c, random, k);
        else if (c->problem.operand[k].read && affine)
            fill_elements(c, random, k, of_weight, sizeof of_weight / sizeof *of_weight);
        else if (c->problem.operand[k].read)
            fill_elements(c, random, k, of_gradient, sizeof of_gradient / sizeof *of_gradient);
    }
}
