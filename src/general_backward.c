/* The general form, backward: sums of gradients, and dx, block by block. Blocks of x and dy are read where they are if
 * they lie together there, and gathered to the stack if not; loops read f32. */
#include "compact.inc"

#include "kernels/loops.h"

/* -- Blocks of x, dy and the weight ------------------------------------------------------------------------------- */

/* What a lane's blocks need on the stack. */
typedef struct ln_block_copies {
    float x[LNORM_BLOCK], dy[LNORM_BLOCK], weight_f32[LNORM_BLOCK];
    double weight[LNORM_BLOCK];
} ln_block_copies;

const float *lnorm_block_as_f32(const ln_bundle *b, enum lnorm_operand operand, const char *at, int64_t n,
                                float copy[LNORM_BLOCK]) {
    const enum lnorm_element element = ln_element_of(b, operand);
    if (n == LNORM_BLOCK && element == LNORM_ELEMENT_F32)
        return (const float *)(const void *)at;
    b->loops->to_f32(element, at, copy, n);
    memset(copy + n, 0, (size_t)(LNORM_BLOCK - n) * sizeof *copy);
    return copy;
}

/* The next n weights are one number. */
static int ln_one_weight(const ln_bundle *b, const ln_walk *walk, int64_t n) {
    const int64_t *stride = b->problem->operand[LNORM_WEIGHT].stride;
    const lnorm_space *space = walk->space;
    int last = space->axes - 1, i = 0;
    if (last < 0 || !lnorm_has(b->problem, LNORM_WEIGHT))
        return 1;
    while (i <= last && stride[space->axis[i]] == 0)
        i++;
    return i > last || (stride[space->axis[last]] == 0 && b->problem->extent[space->axis[last]] - walk->at[last] >= n);
}

int64_t lnorm_piece(const ln_bundle *b, const ln_walk *walk, int64_t left) {
    const int64_t one = left < LNORM_BLOCK ? left : LNORM_BLOCK;
    const int last = walk->space->axes ? walk->space->axis[walk->space->axes - 1] : -1;
    int64_t whole = last < 0 ? left : b->problem->extent[last] - walk->at[walk->space->axes - 1];
    whole = (whole < left ? whole : left) / LNORM_BLOCK * LNORM_BLOCK;
    return last < 0 || whole <= LNORM_BLOCK || b->problem->operand[LNORM_X].stride[last] != 1 ? one : whole;
}

/* One number for all of a lane's next blocks. */
static double ln_weight_of_lane(const ln_bundle *b, const ln_walk *walk, int lane) {
    return ln_affine_at(b, LNORM_WEIGHT,
                        ln_offset_at(b, LNORM_WEIGHT, walk) + lane * ln_lane_stride(b, LNORM_WEIGHT), 1.0);
}

/* The weight of a lane: lanes are asked for in order, as lnorm_gather_affine wants it. */
static void ln_set_weight(const ln_bundle *b, int weighted, const ln_walk *walk, int64_t n, int lane,
                          ln_block_copies *copies, ln_terms *f) {
    f->weight = copies->weight;
    f->weight_f32 = copies->weight_f32;
    weighted &= lnorm_has(b->problem, LNORM_WEIGHT);
    f->weight_step = weighted && !ln_one_weight(b, walk, n);
    if (!f->weight_step) {
        copies->weight[0] = weighted ? ln_weight_of_lane(b, walk, lane) : 1.0;
        copies->weight_f32[0] = (float)copies->weight[0]; /* 1 + weight, too: f64 in between changes no bit */
    } else if (lane == 0 || ln_lane_stride(b, LNORM_WEIGHT) != 0) {
        lnorm_gather_affine(b, LNORM_WEIGHT, walk, n, lane, copies->weight);
        ln_fill(copies->weight + n, 1.0, LNORM_BLOCK - n);
        if (b->problem->fast)
            b->loops->narrow(LNORM_ELEMENT_F32, copies->weight, copies->weight_f32, LNORM_BLOCK);
    }
}

/* -- The fast arithmetic of groups that are not regular ------------------------------------------------------------ */

static float ln_irregular_g(const ln_terms *f, int64_t i) {
    float g = f->dy[i] * f->weight_f32[f->weight_step * i];
    return g;
}

static float ln_irregular_xhat(const ln_terms *f, int64_t i) {
    return (float)((((double)f->x[i] - f->s->c) - f->s->t) * f->s->r);
}

static void ln_irregular_dx(const ln_terms *f, float *dx) {
    for (int64_t i = 0; i < f->n; i++) {
        float w = ln_irregular_g(f, i);
        if (f->x) {
            float product = ln_irregular_xhat(f, i) * (float)f->s->c2;
            w = w - (float)f->s->c1;
            w = w - product;
        }
        dx[i] = (float)((double)w * f->s->r);
    }
}

void lnorm_fast_products(const ln_bundle *b, const ln_terms *f, float term[LNORM_BLOCK]) {
    if (f->form.regular)
        b->loops->fast_products(f, term);
    else
        for (int64_t i = 0; i < f->n; i++)
            term[i] = f->dy[i] * ln_irregular_xhat(f, i);
}

/* -- Sums --------------------------------------------------------------------------------------------------------- */

void lnorm_irregular_sums(const ln_bundle *b, const ln_terms *f, int64_t n, ln_term_sums *to) {
    float g[LNORM_BLOCK], product[LNORM_BLOCK];
    ln_terms of_g = *f;
    ln_block_sum sum, second;
    for (int64_t i = 0; i < LNORM_BLOCK; i++)
        g[i] = i < n ? ln_irregular_g(f, i) : 0.0f;
    of_g.dy = g;
    of_g.n = n;
    lnorm_fast_products(b, &of_g, product);
    b->loops->sum_block(LNORM_ELEMENT_F32, LN_SUM_RUNS, (const char *)g, n, 0.0, 0, &sum);
    b->loops->sum_block(LNORM_ELEMENT_F32, LN_SUM_RUNS, (const char *)product, n, 0.0, 0, &second);
    memcpy(sum.run[1], second.run[0], sizeof second.run[0]);
    b->loops->add_run(to->lanes[0], sum.run[0]);
}

/* A block of dy alone. */
static void ln_sum_of_dy(const ln_bundle *b, const char *dy, int64_t n, ln_term_sums *to) {
    ln_block_sum sum;
    b->loops->sum_block(ln_element_of(b, LNORM_DY), b->problem->fast ? LN_SUM_RUNS : LN_SUM_OF_X, dy, n, 0.0, 0, &sum);
    if (b->problem->fast) {
        b->loops->add_run(to->lanes[0], sum.run[0]);
        lnorm_next_runs(to, LNORM_BLOCK);
    } else {
        ln_push_pair(&to->tree, sum.pair);
    }
}

void lnorm_gradient_sums(const ln_bundle *b, int weighted, int products, const ln_record *s, ln_pair *total) {
    ln_term_sums sums[LNORM_BUNDLE], other;
    ln_block_copies copies;
    ln_tile x, dy;
    ln_walk walk = ln_walk_from(b, 0);
    int64_t count = b->space->count, n;
    for (int lane = 0; lane < b->lanes; lane++)
        lnorm_begin_terms(&sums[lane], b->problem->fast);
    lnorm_begin_terms(&other, b->problem->fast);
    for (int64_t first = 0; first < count; first += n) {
        n = ln_block_length(count, first);
        lnorm_gather(b, LNORM_DY, &walk, n, &dy);
        if (products)
            lnorm_gather(b, LNORM_X, &walk, n, &x);
        for (int lane = 0; lane < b->lanes; lane++) {
            ln_terms f = {.n = n, .soon = {dy.at[lane], dy.at[lane]}};
            if (!products) {
                ln_sum_of_dy(b, dy.at[lane], n, &sums[lane]);
                continue;
            }
            ln_set_weight(b, weighted, &walk, n, lane, &copies, &f);
            lnorm_set_statistics(b, &s[lane], &f);
            f.x = lnorm_block_as_f32(b, LNORM_X, x.at[lane], n, copies.x);
            f.dy = lnorm_block_as_f32(b, LNORM_DY, dy.at[lane], n, copies.dy);
            lnorm_sum_of_terms(b, &f, &sums[lane], &other);
        }
        ln_walk_on(&walk, n);
    }
    for (int lane = 0; lane < b->lanes; lane++)
        total[lane] = lnorm_end_terms(&sums[lane]);
}

/* -- dx ----------------------------------------------------------------------------------------------------------- */

static void ln_fast_dx_of(const ln_bundle *b, const ln_terms *f, float *dx) {
    if (f->form.regular)
        b->loops->dx_terms(1, LNORM_ELEMENT_F32, f, dx);
    else
        ln_irregular_dx(f, dx);
}

void lnorm_dx_block(const ln_bundle *b, const ln_terms *f, char *to, int room) {
    const enum lnorm_element element = ln_element_of(b, LNORM_DX);
    double wide[LNORM_BLOCK];
    float narrow[LNORM_BLOCK];
    room &= element == LNORM_ELEMENT_F32;
    if (b->problem->fast) {
        ln_fast_dx_of(b, f, room ? (float *)(void *)to : narrow);
        if (!room)
            b->loops->from_f32(element, narrow, to, f->n);
    } else {
        b->loops->dx_terms(0, room ? LNORM_ELEMENT_F32 : LNORM_ELEMENT_F64, f, room ? (void *)to : wide);
        if (!room)
            b->loops->narrow(element, wide, to, f->n);
    }
}

static void ln_dx_in_f64(const ln_bundle *b, const ln_terms *f, double *dx) {
    float narrow[LNORM_BLOCK];
    if (!b->problem->fast) {
        b->loops->dx_terms(0, LNORM_ELEMENT_F64, f, dx);
        return;
    }
    ln_fast_dx_of(b, f, narrow);
    b->loops->widen(LNORM_ELEMENT_F32, narrow, dx, f->n);
}

static void ln_dx_lane(const ln_bundle *b, const ln_terms *f, const ln_walk *walk, int lane, char *to, ln_tile *tile) {
    if (ln_element_of(b, LNORM_DX) == LNORM_ELEMENT_F64) {
        double dx[LNORM_BLOCK];
        ln_dx_in_f64(b, f, dx);
        lnorm_put_lane(b, LNORM_DX, walk, f->n, lane, dx, tile);
    } else {
        lnorm_dx_block(b, f, to ? to : tile->lane[lane], !to || f->n == LNORM_BLOCK);
    }
}

/* n elements of every lane from the walk on. */
static void ln_dx_lanes(const ln_bundle *b, const ln_record *s, const ln_walk *walk, int64_t n) {
    const int64_t out = ln_offset_at(b, LNORM_DX, walk);
    const int together = lnorm_lies_together(b, LNORM_DX, walk, n), constant = b->problem->statistics == LNORM_CONSTANT;
    ln_block_copies copies;
    ln_tile x, dy, dx;
    lnorm_gather(b, LNORM_DY, walk, n, &dy);
    if (!constant)
        lnorm_gather(b, LNORM_X, walk, n, &x);
    for (int lane = 0; lane < b->lanes; lane++) {
        char *to = b->data->at[LNORM_DX] + (out + lane * ln_lane_stride(b, LNORM_DX)) * ln_size_of(b, LNORM_DX);
        ln_terms f = {.n = n, .soon = {dy.at[lane], dy.at[lane]}};
        ln_set_weight(b, 1, walk, n, lane, &copies, &f);
        lnorm_set_statistics(b, &s[lane], &f);
        f.dy = lnorm_block_as_f32(b, LNORM_DY, dy.at[lane], n, copies.dy);
        f.x = constant ? NULL : lnorm_block_as_f32(b, LNORM_X, x.at[lane], n, copies.x);
        ln_dx_lane(b, &f, walk, lane, together ? to : NULL, &dx);
    }
    if (!together)
        lnorm_scatter(b, LNORM_DX, walk, n, &dx);
}

static void ln_groups_dx(const ln_bundle *b, const ln_record *s) {
    ln_walk walk = ln_walk_from(b, 0);
    int64_t count = b->space->count, n;
    for (int64_t first = 0; first < count; first += n) {
        n = ln_block_length(count, first);
        ln_dx_lanes(b, s, &walk, n);
        ln_walk_on(&walk, n);
    }
}

void lnorm_groups_means(const ln_bundle *b, ln_record *s) {
    ln_pair sum[LNORM_BUNDLE];
    lnorm_gradient_sums(b, 1, 1, s, sum);
    for (int lane = 0; lane < b->lanes; lane++)
        lnorm_set_means(b, sum[lane], &s[lane]);
}

void lnorm_groups_backward(const ln_bundle *b, ln_record *s) {
    if (lnorm_in_runs(b->problem, NULL)) {
        lnorm_runs_gradients(b, NULL, 0, s);
        return;
    }
    if (b->problem->statistics != LNORM_CONSTANT)
        lnorm_groups_means(b, s);
    ln_groups_dx(b, s);
}

/* -- Everything of a group ---------------------------------------------------------------------------------------- */

void lnorm_put_entry(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, int64_t each, int lane,
                     ln_pair partial) {
    ln_bundle part = *b;
    ln_set_base(&part, &b->problem->group, group, &job->each, each);
    lnorm_put_partial(&part, job, group + lane, each, lane, partial);
}

/* The sums of dy and (where dweight is wanted) dy*xhat over every lane's partials; the last of them in `sum`. */
static void ln_groups_partials(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, const ln_record *s,
                               ln_pair *sum) {
    ln_bundle part = *b;
    part.space = &job->inner;
    for (int64_t each = 0; each < job->each.count; each++) {
        ln_set_base(&part, &b->problem->group, group, &job->each, each);
        lnorm_gradient_sums(&part, 0, job->dweight, s, sum);
        for (int lane = 0; lane < b->lanes; lane++)
            lnorm_put_partial(&part, job, group + lane, each, lane, sum[lane]);
    }
}

void lnorm_groups_gradients(const ln_bundle *b, const lnorm_affine_job *job, int64_t group) {
    ln_record s[LNORM_BUNDLE];
    ln_pair sum[LNORM_BUNDLE];
    const int dx = lnorm_has(b->problem, LNORM_DX);
    if (dx || job->dweight)
        lnorm_groups_statistics(b, s);
    else
        memset(s, 0, sizeof s); /* dbias alone: what is made with them is not used */
    if (lnorm_in_runs(b->problem, job)) {
        lnorm_runs_gradients(b, job, group, s);
        return;
    }
    ln_groups_partials(b, job, group, s, sum);
    if (dx)
        lnorm_groups_backward(b, s);
}

#include "compact_end.inc"
