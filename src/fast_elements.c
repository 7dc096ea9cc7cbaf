/* The fast arithmetic's backward pass of rows that are out of the ordinary, an element at a time: for all instruction
 * sets. */
#include "compact.inc"

#include "kernels/fast.h"

/* Column j of row k: one element at a time, any row. */
static float ln_fast_xhat_at(const ln_fast_group *group, int k, int64_t j) {
    const ln_record *s = &group->s[k];
    const ln_fast_form *f = &group->form[k];
    double x = lnorm_load(group->element, group->x[k], j);
    float xhat = (float)x;
    if (!f->regular)
        return (float)(((x - s->c) - s->t) * s->r);
    xhat = xhat - f->h;
    xhat = xhat - f->l;
    xhat = xhat * f->rho;
    return xhat;
}

static float ln_fast_g_at(const ln_fast_group *group, int k, int64_t j) {
    float g = (float)lnorm_load(group->element, group->dy[k], j);
    if (group->weight)
        g = g * (float)lnorm_load(group->affine, group->weight, j);
    return g;
}

static void ln_fast_dx_at(const ln_fast_group *group, int k, int64_t j, float xhat) {
    float w = ln_fast_g_at(group, k, j), product = xhat * group->c2[k];
    w = w - group->c1[k];
    w = w - product;
    if (group->form[k].regular)
        w = w * group->form[k].rho;
    else
        w = (float)((double)w * group->s[k].r);
    lnorm_store(group->element, group->dx[k], j, (double)w);
}

static double ln_fast_sum_of_eight(const float term[LNORM_ROW_GROUP]) {
    float a = term[0] + term[1], b = term[2] + term[3], c = term[4] + term[5], d = term[6] + term[7];
    a = a + b;
    c = c + d;
    a = a + c;
    return (double)a;
}

void lnorm_fast_column(const ln_fast_group *group, ln_column_sums sums, int64_t j) {
    float dy[LNORM_ROW_GROUP] = {0.0f}, product[LNORM_ROW_GROUP] = {0.0f};
    for (int k = 0; k < group->rows; k++) {
        float xhat = ln_fast_xhat_at(group, k, j);
        dy[k] = (float)lnorm_load(group->element, group->dy[k], j);
        product[k] = dy[k] * xhat;
        if (group->dx[k])
            ln_fast_dx_at(group, k, j, xhat);
    }
    if (sums.dweight)
        sums.dweight[j - sums.first] += ln_fast_sum_of_eight(product);
    if (sums.dbias)
        sums.dbias[j - sums.first] += ln_fast_sum_of_eight(dy);
}

void lnorm_fast_begin_column(ln_column_sums sums, int64_t j) {
    if (sums.dweight)
        sums.dweight[j - sums.first] = 0.0;
    if (sums.dbias)
        sums.dbias[j - sums.first] = 0.0;
}

/* Terms of a run of n <= 256 elements, g and g*xhat, added as eight rows of 32. */
static void ln_fast_run_lanes(const ln_fast_group *group, int k, int64_t first, int64_t n,
                                     double g_lane[LNORM_LANES], double product_lane[LNORM_LANES]) {
    float g[LNORM_BLOCK] = {0.0f}, product[LNORM_BLOCK] = {0.0f};
    for (int64_t j = 0; j < n; j++) {
        g[j] = ln_fast_g_at(group, k, first + j);
        product[j] = g[j] * ln_fast_xhat_at(group, k, first + j);
    }
    for (int half = LNORM_RUN_ROWS / 2; half; half /= 2) /* rows 2i and 2i + 1 make row i */
        for (int i = 0; i < half * LNORM_RUN_COLS; i++) {
            const int from = i / LNORM_RUN_COLS * 2 * LNORM_RUN_COLS + i % LNORM_RUN_COLS;
            g[i] = g[from] + g[from + LNORM_RUN_COLS];
            product[i] = product[from] + product[from + LNORM_RUN_COLS];
        }
    for (int i = 0; i < LNORM_LANES; i++) {
        g[i] = g[i] + g[i + LNORM_LANES];
        product[i] = product[i] + product[i + LNORM_LANES];
        g_lane[i] += (double)g[i];
        product_lane[i] += (double)product[i];
    }
}

ln_pair lnorm_fast_sums(const ln_fast_group *group, int k, int64_t cols) {
    ln_tree_pair tree;
    ln_clear_trees(&tree);
    for (int64_t block = 0; block < cols; block += LNORM_BLOCK * LNORM_BLOCK_RUNS) {
        double g[LNORM_LANES] = {0.0}, product[LNORM_LANES] = {0.0};
        ln_pair sum;
        for (int64_t j = block; j < cols && j < block + LNORM_BLOCK * LNORM_BLOCK_RUNS; j += LNORM_BLOCK)
            ln_fast_run_lanes(group, k, j, ln_block_length(cols, j), g, product);
        sum.a = lnorm_fold(g);
        sum.b = lnorm_fold(product);
        ln_push_pair(&tree, sum);
    }
    return ln_total_of(&tree);
}

int lnorm_fast_row(const lnorm_rows *a, ln_pair sum, ln_fast_form *form) {
    ln_record s;
    if (!lnorm_fast_finish_runs((enum lnorm_element)a->element, &s, sum, a->cols, a->eps, a->center))
        return 0;
    if (a->rstd) {
        a->mean[0] = s.c;
        a->rstd[0] = s.r;
    }
    *form = ln_fast_form_of(&s);
    return 1;
}

void lnorm_fast_group_way(ln_fast_group *group) {
    group->by_vectors = 1;
    for (int k = 0; k < group->rows; k++)
        group->by_vectors &= group->form[k].regular && !ln_fast_is_far(&group->form[k]);
}

void lnorm_fast_group_records(ln_fast_group *group, const ln_record *s) {
    for (int k = 0; k < group->rows; k++) {
        group->s[k] = s[k];
        group->form[k] = ln_fast_form_of(&s[k]);
        group->c1[k] = (float)s[k].c1;
        group->c2[k] = (float)s[k].c2;
    }
    lnorm_fast_group_way(group);
}

/* Rows that go together from row `row` on. Where y goes past the caches they fit the level 1 cache, and those of more
 * than one piece go one by one, so that memory is read and written in its order. */
void lnorm_fast_begin(ln_fast_tile *tile, int64_t row, int64_t rows_left) {
    const lnorm_rows *a = tile->a;
    const enum lnorm_element element = (enum lnorm_element)a->element;
    tile->row = row;
    tile->rows = ln_tile_of(rows_left, a->cols);
    tile->whole = element != LNORM_ELEMENT_F32 && a->cols <= LN_FAST_TILE;
    if (tile->streams)
        tile->rows = ln_streamed_of(tile->rows, a->cols);
    else if (tile->whole && tile->rows * a->cols > LN_FAST_WIDE)
        tile->rows = (int)(LN_FAST_WIDE / a->cols);
    else if (element != LNORM_ELEMENT_F32 && !tile->whole)
        tile->rows = 1;
    tile->ahead = tile->rows < rows_left ? tile->rows * a->x_pitch * (element == LNORM_ELEMENT_F32 ? 4 : 2) : 0;
}

#include "compact_end.inc"
