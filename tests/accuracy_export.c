/* Rows of f32 and the exact results of their layer norm, for other libraries to be compared on the same inputs. */
#include "accuracy.h"
#include "exact_check.h"
#include "lnorm_files.h"
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 256, COLS = 768 };

static void fail(const char *message) {
    fprintf(stderr, "accuracy: --export: %s\n", message);
    exit(2);
}

static void write_array(const char *folder, const char *set, const char *name, lnorm_dtype dtype, int ndim,
                        const int64_t *shape, const void *data) {
    char path[4096];
    lnorm_error error = LNORM_ERROR_INIT;
    int64_t count = 1;
    for (int axis = 0; axis < ndim; axis++)
        count *= shape[axis];
    if (snprintf(path, sizeof path, "%s/%s.%s.npy", folder, set, name) >= (int)sizeof path)
        fail("the folder's name is too long");
    lnorm_file_writer *writer = lnorm_file_create(path, dtype, ndim, shape, &error);
    if (!writer || lnorm_file_write(writer, data, 0, count, &error))
        fail(error.message);
    if (lnorm_file_commit(writer, &error))
        fail(error.message);
}

static void run(exact_case *c, lnorm_arithmetic arithmetic) {
    lnorm_error error = LNORM_ERROR_INIT;
    c->op.arithmetic = arithmetic;
    if (lnorm_run(&c->op, &c->io, NULL, &error))
        fail(error.message);
}

static void export_set(const char *folder, const char *set, exact_random *random, spread spread, double offset) {
    static const int64_t shape[] = {ROWS, COLS};
    static double exact_y[ROWS * COLS], scale[ROWS * COLS];
    const rows_form form = {.kind = LNORM_LAYER_NORM, .pass = LNORM_FORWARD, .input = LNORM_ELEMENT_F32,
                            .output = LNORM_ELEMENT_F32, .rows = ROWS, .cols = COLS, .eps = 1e-5};
    exact_case c;
    rows_open(&c, &form);
    rows_fill(&c, random, spread, offset, 1.0);
    exact *e = exact_compute(&c.problem, &c.data);
    for (int i = 0; i < ROWS * COLS; i++) {
        exact_y[i] = mpfr_get_d(e->result[LNORM_Y].value[i], MPFR_RNDN);
        scale[i] = (double)e->result[LNORM_Y].scale[i];
    }
    write_array(folder, set, "x", LNORM_F32, 2, shape, c.storage[LNORM_X]);
    write_array(folder, set, "weight", LNORM_F32, 1, &shape[1], c.storage[LNORM_WEIGHT]);
    write_array(folder, set, "bias", LNORM_F32, 1, &shape[1], c.storage[LNORM_BIAS]);
    write_array(folder, set, "exact", LNORM_F64, 2, shape, exact_y);
    write_array(folder, set, "scale", LNORM_F64, 2, shape, scale);
    run(&c, LNORM_ACCURATE);
    write_array(folder, set, "lnorm", LNORM_F32, 2, shape, c.storage[LNORM_Y]);
    run(&c, LNORM_FAST);
    write_array(folder, set, "lnorm-fast", LNORM_F32, 2, shape, c.storage[LNORM_Y]);
    exact_free(e);
    exact_case_free(&c);
}

void accuracy_export(const char *folder) {
    exact_random random = {1};
    export_set(folder, "normal", &random, NORMAL, 0);
    export_set(folder, "mean-is-100-spreads", &random, NORMAL, 100);
    export_set(folder, "mean-is-4096-spreads", &random, NORMAL, 4096);
    export_set(folder, "outlier-pair", &random, OUTLIER_PAIR, 0);
    export_set(folder, "heavy-tails", &random, HEAVY_TAILS, 0);
}
