/* Backward, double backward and forward mode have the same source as the library's: the derivations of
 * docs/arithmetic.md. That they are the derivatives of y is checked here, by differences of exact values: everything
 * moves along one direction, s -> x + s*x', weight + s*weight', bias + s*bias', dy + s*dy', and then
 *
 *     y' = y_tangent,   mean' = mean_tangent,   rstd' = rstd_tangent
 *     sum(y*dy)'  at fixed dy = sum(dx*x') + sum(dweight*weight') + sum(dbias*bias')
 *     sum(v*dx)'  at fixed v  = sum(2nd dx*x') + sum(2nd dweight*weight') + sum(ddy*dy')
 *
 * The difference quotient (f(h) - f(-h))/2h with h = 2^-24 is off by h^2/6 = 2^-50 of the third derivative. Values
 * are below 2 in magnitude and eps = 1, so r <= 1, |xhat| < 2, and every derivative by s of r or xhat adds a few
 * factors below 2 each in a few dozen terms: sums of 15 elements stay below 2^14 in the third derivative. Tolerance
 * 2^-36. */
#include "exact_identities.h"
#include "exact.h"
#include "exact_draw.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ROWS = 3, COLS = 5, COUNT = ROWS * COLS };
static const int64_t element_shape[] = {ROWS, COLS}, row_shape[] = {ROWS}, col_shape[] = {COLS};

enum input { X, WEIGHT, BIAS, DY, V, INPUTS };

/* Inputs and their direction; multiples of 2^-20, so that x + h*x' is exact. */
typedef struct point {
    double at[INPUTS][COUNT], along[INPUTS][COUNT];
} point;

static void draw_point(point *p, uint64_t seed) {
    exact_random random = {seed};
    for (int k = 0; k < INPUTS; k++)
        for (int i = 0; i < COUNT; i++) {
            p->at[k][i] = (double)(random_below(&random, 1 << 22) - (1 << 21)) * 0x1p-20;
            p->along[k][i] = (double)(random_below(&random, 1 << 21) - (1 << 20)) * 0x1p-20;
        }
}

/* The exact results of a pass at point + s*direction. */
static exact *compute(lnorm_kind kind, lnorm_pass pass, const point *p, double s) {
    static double outputs[8][COUNT]; /* never written: exact_compute needs their description only */
    double in[INPUTS][COUNT];
    lnorm_tensor tensor[INPUTS], direction[INPUTS], output[8];
    for (int k = 0; k < INPUTS; k++) {
        int elements = k != WEIGHT && k != BIAS;
        for (int i = 0; i < COUNT; i++)
            in[k][i] = p->at[k][i] + s * p->along[k][i];
        tensor[k] = lnorm_dense(in[k], LNORM_F64, elements ? 2 : 1, elements ? element_shape : col_shape);
        direction[k] = lnorm_dense(p->along[k], LNORM_F64, elements ? 2 : 1, elements ? element_shape : col_shape);
    }
    for (int k = 0; k < 8; k++) /* 0, 1: elements; 2, 3: weight and bias; 4 and up: one per row */
        output[k] = lnorm_dense(outputs[k], LNORM_F64, k < 2 ? 2 : 1,
                                k < 2 ? element_shape : k < 4 ? col_shape : row_shape);
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    op.kind = kind;
    op.pass = pass;
    op.eps = 1.0;
    io.x = &tensor[X];
    io.weight = &tensor[WEIGHT];
    io.bias = &tensor[BIAS];
    io.dy = &tensor[DY];
    io.v = &tensor[V];
    io.x_tangent = &direction[X];
    io.weight_tangent = &direction[WEIGHT];
    io.bias_tangent = &direction[BIAS];
    io.y = io.dx = io.y_tangent = &output[0];
    io.ddy = &output[1];
    io.dweight = &output[2];
    io.dbias = &output[3];
    io.mean = io.mean_tangent = &output[4];
    io.rstd = io.rstd_tangent = &output[5];
    lnorm_problem problem;
    lnorm_data data;
    lnorm_error error = LNORM_ERROR_INIT;
    if (lnorm_problem_init(&problem, &op, &io, &error))
        fail_msg("%s", error.message);
    lnorm_problem_data(&problem, &io, 0, &data);
    return exact_compute(&problem, &data);
}

/* += sum of a result's elements times numbers */
static void add_product(mpfr_t sum, const exact_result *result, const double *factor) {
    mpfr_t term;
    mpfr_init(term);
    for (int64_t i = 0; i < result->count; i++) {
        mpfr_mul_d(term, result->value[i], factor[i], MPFR_RNDN);
        mpfr_add(sum, sum, term, MPFR_RNDN);
    }
    mpfr_clear(term);
}

static const double step = 0x1p-24;

static void assert_slope(const mpfr_t up, const mpfr_t down, const mpfr_t derivative) {
    mpfr_t slope;
    mpfr_init(slope);
    mpfr_sub(slope, up, down, MPFR_RNDN);
    mpfr_div_d(slope, slope, 2 * step, MPFR_RNDN);
    mpfr_sub(slope, slope, derivative, MPFR_RNDN);
    assert_true(mpfr_number_p(slope) && fabs(mpfr_get_d(slope, MPFR_RNDN)) <= 0x1p-36);
    mpfr_clear(slope);
}

/* sum(result*factor) at point + s*direction */
static void product_at(mpfr_t sum, lnorm_kind kind, lnorm_pass pass, const point *p, double s, enum lnorm_operand which,
                       const double *factor) {
    exact *e = compute(kind, pass, p, s);
    mpfr_set_zero(sum, 1);
    add_product(sum, &e->result[which], factor);
    exact_free(e);
}

static void check_tangents(lnorm_kind kind, const point *p) {
    static const enum lnorm_operand of[][2] = {
        {LNORM_Y, LNORM_Y_TANGENT}, {LNORM_MEAN, LNORM_MEAN_TANGENT}, {LNORM_RSTD, LNORM_RSTD_TANGENT}};
    exact *up = compute(kind, LNORM_FORWARD, p, step), *down = compute(kind, LNORM_FORWARD, p, -step);
    exact *tangent = compute(kind, LNORM_FORWARD_MODE, p, 0.0);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(up->result[of[k][0]].count, tangent->result[of[k][1]].count);
        for (int64_t i = 0; i < up->result[of[k][0]].count; i++)
            assert_slope(up->result[of[k][0]].value[i], down->result[of[k][0]].value[i],
                         tangent->result[of[k][1]].value[i]);
    }
    exact_free(up);
    exact_free(down);
    exact_free(tangent);
}

/* The slope of sum(result*factor), a result of `pass`, against the gradients of `gradient_pass`. */
static void check_gradients(lnorm_kind kind, const point *p, lnorm_pass pass, enum lnorm_operand result,
                            const double *factor, lnorm_pass gradient_pass) {
    mpfr_t up, down, derivative;
    mpfr_inits2(1000, up, down, derivative, (mpfr_ptr)NULL);
    product_at(up, kind, pass, p, step, result, factor);
    product_at(down, kind, pass, p, -step, result, factor);
    exact *gradient = compute(kind, gradient_pass, p, 0.0);
    mpfr_set_zero(derivative, 1);
    add_product(derivative, &gradient->result[LNORM_DX], p->along[X]);
    add_product(derivative, &gradient->result[LNORM_DWEIGHT], p->along[WEIGHT]);
    if (gradient_pass == LNORM_BACKWARD)
        add_product(derivative, &gradient->result[LNORM_DBIAS], p->along[BIAS]);
    else
        add_product(derivative, &gradient->result[LNORM_DDY], p->along[DY]);
    exact_free(gradient);
    assert_slope(up, down, derivative);
    mpfr_clears(up, down, derivative, (mpfr_ptr)NULL);
}

void exact_formulas_are_derivatives(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        lnorm_kind kind = seed % 2 ? LNORM_LAYER_NORM : LNORM_RMS_NORM;
        point p;
        draw_point(&p, seed);
        check_tangents(kind, &p);
        check_gradients(kind, &p, LNORM_FORWARD, LNORM_Y, p.at[DY], LNORM_BACKWARD);
        check_gradients(kind, &p, LNORM_BACKWARD, LNORM_DX, p.at[V], LNORM_DOUBLE_BACKWARD);
    }
}
