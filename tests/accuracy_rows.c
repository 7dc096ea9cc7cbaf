/* Dense rows of every type, distribution, offset and length, and a search for the worst. */
#include "accuracy.h"
#include "access.h"
#include "exact_check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *const spread_name[SPREADS] = {"normal",       "uniform",      "heavy tails",
                                          "one-sided",    "outlier pair", "all exponents"};

/* -- A case -------------------------------------------------------------------------------------------------------- */

static const lnorm_dtype dtypes[LNORM_ELEMENT_ABSENT] = {{2, 64, 1}, {2, 32, 1}, {2, 16, 1}, {4, 16, 1}};

static _Noreturn void stop(const char *what) {
    fprintf(stderr, "accuracy: %s\n", what);
    exit(2);
}

static const lnorm_tensor *add(exact_case *c, enum lnorm_operand operand, enum lnorm_element element, int ndim,
                               const int64_t *shape) {
    int64_t count = 1;
    for (int axis = 0; axis < ndim; axis++)
        count *= c->shape[operand][axis] = shape[axis];
    c->storage[operand] = calloc((size_t)count + 1, lnorm_element_size(element));
    if (!c->storage[operand])
        stop("out of memory");
    c->tensor[operand] = lnorm_dense(c->storage[operand], dtypes[element], ndim, c->shape[operand]);
    return &c->tensor[operand];
}

void rows_open(exact_case *c, const rows_form *form) {
    const int64_t shape[] = {form->rows, form->cols};
    const int centred = form->kind == LNORM_LAYER_NORM, forward = form->pass == LNORM_FORWARD;
    lnorm_error error = LNORM_ERROR_INIT;
    *c = (exact_case){.op = LNORM_OP_INIT, .io = LNORM_IO_INIT, .groups = form->rows, .size = form->cols};
    c->op.kind = form->kind;
    c->op.pass = form->pass;
    c->op.arithmetic = form->arithmetic;
    c->op.eps = form->eps;
    c->normalized[0] = form->cols;
    c->op.normalized_shape = c->normalized;
    c->op.normalized_ndim = 1;
    c->io.x = add(c, LNORM_X, form->input, 2, shape);
    c->io.weight = add(c, LNORM_WEIGHT, form->input, 1, &shape[1]);
    if (forward) {
        c->io.bias = centred ? add(c, LNORM_BIAS, form->input, 1, &shape[1]) : NULL;
        c->io.y = add(c, LNORM_Y, form->output, 2, shape);
        c->io.mean = centred ? add(c, LNORM_MEAN, form->output, 1, shape) : NULL;
        c->io.rstd = add(c, LNORM_RSTD, form->output, 1, shape);
    } else {
        c->io.dy = add(c, LNORM_DY, form->input, 2, shape);
        c->io.dx = add(c, LNORM_DX, form->output, 2, shape);
        c->io.dweight = add(c, LNORM_DWEIGHT, form->output, 1, &shape[1]);
        c->io.dbias = centred ? add(c, LNORM_DBIAS, form->output, 1, &shape[1]) : NULL;
    }
    if (lnorm_problem_init(&c->problem, &c->op, &c->io, &error))
        stop(error.message);
    lnorm_problem_data(&c->problem, &c->io, 0, &c->data);
}

int64_t accuracy_compare(const exact_case *c, int64_t *refused) {
    lnorm_error error = LNORM_ERROR_INIT;
    int64_t results = 0;
    exact *e = exact_compute(&c->problem, &c->data);
    if (lnorm_run(&c->op, &c->io, NULL, &error))
        stop(error.message);
    *refused += exact_check(&c->problem, &c->data, e);
    for (int k = 0; k < LNORM_OPERANDS; k++)
        results += e->result[k].count;
    exact_free(e);
    return results;
}

/* -- Values -------------------------------------------------------------------------------------------------------- */

/* Sums of twelve uniform numbers: near enough to normal, and bounded. */
static double normal(exact_random *random) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += random_unit(random);
    return sum / 2;
}

static double draw(exact_random *random, spread spread) {
    double u = random_unit(random);
    switch (spread) {
    case UNIFORM:
        return u;
    case HEAVY_TAILS: /* Student's t with 2 degrees of freedom */
        return u * sqrt(2.0 / (1.0 - u * u + 0x1p-40));
    case ONE_SIDED:
        return -log(fabs(u) + 0x1p-60);
    case ALL_EXPONENTS:
        return ldexp(u, (int)random_below(random, 60) - 30);
    default:
        return normal(random);
    }
}

static void put(exact_case *c, enum lnorm_operand operand, int64_t i, double value) {
    static const double largest[] = {0x1p1000, 0x1.fffffep127, 65504.0, 0x1.fep127};
    enum lnorm_element element = (enum lnorm_element)c->problem.operand[operand].element;
    if (fabs(value) > largest[element])
        value = copysign(largest[element], value);
    lnorm_store(element, c->storage[operand], i, value);
}

void rows_fill(exact_case *c, exact_random *random, spread spread, double offset, double scale) {
    for (int64_t i = 0; i < c->groups * c->size; i++) {
        put(c, LNORM_X, i, scale * (offset + draw(random, spread)));
        if (c->storage[LNORM_DY])
            put(c, LNORM_DY, i, normal(random));
    }
    for (int64_t row = 0; spread == OUTLIER_PAIR && c->size > 1 && row < c->groups; row++) {
        int64_t i = random_below(random, c->size), j = (i + 1 + random_below(random, c->size - 1)) % c->size;
        double giant = ldexp(scale, (int)random_below(random, 40));
        put(c, LNORM_X, row * c->size + i, giant);
        put(c, LNORM_X, row * c->size + j, -giant);
    }
    for (int64_t j = 0; j < c->size; j++) {
        put(c, LNORM_WEIGHT, j, 1.0 + 0.5 * normal(random));
        if (c->storage[LNORM_BIAS])
            put(c, LNORM_BIAS, j, normal(random));
    }
}

/* -- Campaign ------------------------------------------------------------------------------------------------------ */

/* Mostly cheap lengths; one row in a few thousand is long, one in some hundred thousand very long. */
static int64_t draw_cols(exact_random *random) {
    static const int64_t common[] = {64, 128, 256, 257, 384, 512, 768, 1000, 1024, 4096};
    int64_t choice = random_below(random, 100000);
    if (choice == 0)
        return 1000000 + random_below(random, 1000000);
    if (choice < 20)
        return 20000 + random_below(random, 100000);
    if (choice < 50000)
        return common[random_below(random, 10)];
    return 1 + random_below(random, choice < 75000 ? 40 : 600);
}

static double draw_offset(exact_random *random) {
    static const double offsets[] = {0, 0, 0, 1, 7, 9, 100, 0x1p12, 0x1p18, 0x1p24};
    return offsets[random_below(random, 10)];
}

/* The exponents of x where its variance is a number of the type. */
static double draw_scale(exact_random *random, enum lnorm_element element) {
    static const int reach[] = {400, 120, 12, 120};
    if (random_below(random, 3))
        return 1.0;
    return ldexp(1.0, (int)random_below(random, 2 * reach[element]) - reach[element]);
}

void accuracy_rows(accuracy *a) {
    exact_random *random = &a->random;
    int64_t shown = 0;
    while (a->done < a->wanted) {
        rows_form form = {.arithmetic = random_below(random, 2) ? LNORM_FAST : LNORM_ACCURATE,
                          .kind = random_below(random, 4) ? LNORM_LAYER_NORM : LNORM_RMS_NORM,
                          .pass = random_below(random, 2) ? LNORM_BACKWARD : LNORM_FORWARD,
                          .cols = draw_cols(random),
                          .eps = random_below(random, 3) ? 1e-5 : 0.0};
        int64_t choice = random_below(random, 9);
        form.input = choice < 4   ? LNORM_ELEMENT_F32
                     : choice < 6 ? LNORM_ELEMENT_BF16
                     : choice < 8 ? LNORM_ELEMENT_F16
                                  : LNORM_ELEMENT_F64;
        form.output = random_below(random, 3) ? form.input : LNORM_ELEMENT_F64;
        form.rows = form.cols > 2000 ? 1 : 1 + random_below(random, 2000 / form.cols < 9 ? 2000 / form.cols + 1 : 9);
        exact_case c;
        rows_open(&c, &form);
        rows_fill(&c, random, (spread)random_below(random, SPREADS), draw_offset(random),
                  draw_scale(random, form.input));
        a->done += accuracy_compare(&c, &a->refused);
        exact_case_free(&c);
        if (a->done >= shown && !a->quiet) {
            fprintf(stderr, "\r%lld of %lld results, %lld beyond their bound ", (long long)a->done,
                    (long long)a->wanted, (long long)a->refused);
            shown = a->done + a->wanted / 1000;
        }
    }
    if (shown)
        fprintf(stderr, "\n");
}

/* -- Hunt ---------------------------------------------------------------------------------------------------------- */

static double seconds_now(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* How much of its bound the output uses. */
static long double share_of(const exact_case *c, enum lnorm_operand target, accuracy *a) {
    lnorm_error error = LNORM_ERROR_INIT;
    exact *e = exact_compute(&c->problem, &c->data);
    if (lnorm_run(&c->op, &c->io, NULL, &error))
        stop(error.message);
    long double share = exact_worst_share(&c->problem, &c->data, e, target);
    a->refused += exact_check(&c->problem, &c->data, e);
    for (int k = 0; k < LNORM_OPERANDS; k++)
        a->done += e->result[k].count;
    exact_free(e);
    return share;
}

/* A step of some size, from one ulp to another number altogether. */
static double changed(exact_random *random, double value) {
    int64_t choice = random_below(random, 8);
    if (choice == 0)
        return -value;
    if (choice == 1)
        return normal(random);
    return value * (1.0 + random_unit(random) * ldexp(1.0, -(int)random_below(random, 25)));
}

static long double climb(exact_case *c, enum lnorm_operand target, accuracy *a, int steps) {
    static const enum lnorm_operand inputs[] = {LNORM_X, LNORM_X, LNORM_X, LNORM_DY, LNORM_WEIGHT, LNORM_BIAS};
    long double best = share_of(c, target, a);
    for (int step = 0; step < steps; step++) {
        enum lnorm_operand input = inputs[random_below(&a->random, 6)];
        double old[4];
        int64_t at[4], count = 1 + random_below(&a->random, 4);
        if (!c->storage[input])
            continue;
        enum lnorm_element element = (enum lnorm_element)c->problem.operand[input].element;
        for (int64_t k = 0; k < count; k++) {
            at[k] = random_below(&a->random, lnorm_has(&c->problem, LNORM_DWEIGHT) && input != LNORM_WEIGHT
                                                 ? c->groups * c->size : c->size);
            old[k] = lnorm_load(element, c->storage[input], at[k]);
            put(c, input, at[k], changed(&a->random, old[k]));
        }
        long double share = share_of(c, target, a);
        if (share >= best)
            best = share;
        else
            while (count-- > 0)
                put(c, input, at[count], old[count]);
    }
    return best;
}

void accuracy_hunt(accuracy *a, double seconds) {
    static const struct {
        lnorm_pass pass;
        enum lnorm_operand target;
    } outputs[] = {{LNORM_FORWARD, LNORM_Y},   {LNORM_FORWARD, LNORM_MEAN},     {LNORM_FORWARD, LNORM_RSTD},
                   {LNORM_BACKWARD, LNORM_DX}, {LNORM_BACKWARD, LNORM_DWEIGHT}, {LNORM_BACKWARD, LNORM_DBIAS}};
    static const int64_t cols[] = {3, 17, 32, 64, 257, 600};
    long double best[2][6] = {{0}};
    for (double end = seconds_now() + seconds; seconds_now() < end;)
        for (int k = 0; k < 12 && seconds_now() < end; k++) {
            rows_form form = {.arithmetic = k / 6 ? LNORM_FAST : LNORM_ACCURATE, .kind = LNORM_LAYER_NORM,
                              .pass = outputs[k % 6].pass, .input = LNORM_ELEMENT_F32, .output = LNORM_ELEMENT_F64,
                              .cols = cols[random_below(&a->random, 6)], .eps = 0.0};
            form.rows = k % 6 < 4 ? 1 : 256 / form.cols + 1; /* those of columns need some rows */
            exact_case c;
            rows_open(&c, &form);
            rows_fill(&c, &a->random, (spread)random_below(&a->random, SPREADS), draw_offset(&a->random), 1.0);
            long double share = climb(&c, outputs[k % 6].target, a, form.cols > 100 ? 100 : 400);
            best[k / 6][k % 6] = share > best[k / 6][k % 6] ? share : best[k / 6][k % 6];
            exact_case_free(&c);
        }
    printf("hill climbing, f32 in, f64 out: share of the bound that the worst input found uses\n%-10s", "");
    for (int k = 0; k < 6; k++)
        printf(" %9s", lnorm_operand_name(outputs[k].target));
    for (int fast = 0; fast < 2; fast++) {
        printf("\n%-10s", fast ? "fast" : "accurate");
        for (int k = 0; k < 6; k++)
            printf(" %9.4Lf", best[fast][k]);
    }
    printf("\n");
}
