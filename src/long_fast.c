/* The fast arithmetic's long rows as far as it is the same for all instruction sets: kernels/long_fast.inc has the rest. */
#include "compact.inc"

#include "long_fast.h"
#include "rows.h"

static lnorm_rows rows_of_part(const lnorm_long_part *part, int64_t row) {
    return lnorm_rows_part(part->problem, part->data, row, part->first, part->count);
}

ln_pair lnorm_long_fast_sum(const lnorm_long_part *part, enum lnorm_sum which, const ln_record *s) {
    const lnorm_rows a = rows_of_part(part, part->row);
    return which == LNORM_SUM_RUNS ? part->kernels->long_fast.moments(&a) : part->kernels->long_fast.gradient(&a, s);
}

void lnorm_long_fast_row(const lnorm_long_part *part, ln_record *s) {
    lnorm_rows a = rows_of_part(part, part->row);
    *s = (ln_record){0};
    a.mean = &s->c;
    a.rstd = &s->r;
    part->kernels->rows_forward[1](&a, 1);
}

/* Fewer columns than a vector, or a line of y, has. */
static void forward_padded(const lnorm_long_fast *kernels, const lnorm_rows *a, const ln_record *s) {
    enum { LEAST = LNORM_LINE / 2 };
    const size_t bytes = lnorm_element_size((enum lnorm_element)a->element) * (size_t)a->cols;
    const size_t affine = lnorm_element_size((enum lnorm_element)a->affine) * (size_t)a->cols;
    float x[LEAST] = {0.0f}, weight[LEAST] = {0.0f}, bias[LEAST] = {0.0f};
    lnorm_rows padded = *a;
    if (a->cols >= LEAST) {
        kernels->forward(a, s);
        return;
    }
    padded.cols = LEAST;
    padded.stream = 0;
    padded.x = padded.y = memcpy(x, a->x, bytes);
    if (a->weight)
        padded.weight = memcpy(weight, a->weight, affine);
    if (a->bias)
        padded.bias = memcpy(bias, a->bias, affine);
    kernels->forward(&padded, s);
    memcpy(a->y, x, bytes);
}

void lnorm_long_fast_apply(const lnorm_long_part *part, const ln_record *s) {
    const lnorm_rows a = rows_of_part(part, part->row);
    if (a.y)
        forward_padded(&part->kernels->long_fast, &a, s);
    else if (a.dx)
        part->kernels->long_fast.backward(&a, 1, s, NULL, NULL, 0);
}

/* Groups of eight rows. */
void lnorm_long_fast_columns(const lnorm_long_part *part, int64_t rows, const ln_record *s, double *dweight,
                             double *dbias) {
    for (int64_t row = 0; row < rows; row += LNORM_ROW_GROUP) {
        const lnorm_rows a = rows_of_part(part, row);
        part->kernels->long_fast.backward(&a, rows - row, s + row, dweight, dbias, row == 0);
    }
}

#include "compact_end.inc"
