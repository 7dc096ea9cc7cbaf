/* The wide arithmetic, docs/arithmetic.md section 14: backward, double backward, forward mode, affine gradients.
 *
 * All of them are made of one map, the derivative of xhat by x (which is its own transpose):
 * w -> r*((w - M(w)) - xhat*M(w*xhat)), or w -> r*w where the statistics are constants. dx is the image of dy*weight,
 * u of the double backward that of v, the tangent of xhat that of x_tangent. */
#include "compact.inc"

#include "reference_wide.h"

static int wide_constant(const lnorm_problem *problem) {
    return problem->statistics == LNORM_CONSTANT;
}

/* A block of everything the gradients read, at the block's elements. */
typedef struct wide_block {
    int64_t first;
    int length;
    lnorm_scaled xhat[LNORM_BLOCK], g[LNORM_BLOCK], w[LNORM_BLOCK]; /* w: v or x_tangent */
} wide_block;

static void wide_read_xhat(const lnorm_wide_run *run, const lnorm_wide_record *record, wide_block *block) {
    double x[LNORM_BLOCK];
    lnorm_wide_read(run, LNORM_X, block->first, block->length, 0.0, x);
    lnorm_wide_xhat(run->problem, record, x, block->length, block->xhat);
    if (run->problem->statistics == LNORM_SAVED)
        for (int i = 0; i < block->length; i++)
            block->xhat[i] = lnorm_scaled_pair(lnorm_scaled_at(block->xhat[i], record->h), record->h);
}

/* g = dy*weight; v and x_tangent as they are; 0 where absent. */
static void wide_read_direction(const lnorm_wide_run *run, enum lnorm_operand which, const wide_block *block,
                                lnorm_scaled *direction) {
    double value[LNORM_BLOCK], weight[LNORM_BLOCK];
    lnorm_wide_read(run, which, block->first, block->length, 0.0, value);
    for (int i = 0; i < block->length; i++)
        direction[i] = lnorm_scaled_of(value[i]);
    if (which != LNORM_DY)
        return;
    lnorm_wide_read_weight(run, block->first, block->length, weight);
    for (int i = 0; i < block->length; i++)
        direction[i] = lnorm_scaled_mul(direction[i], lnorm_scaled_of(weight[i]));
}

/* -- Means --------------------------------------------------------------------------------------------------------- */

static int32_t wide_largest_exponent(const lnorm_wide_run *run, enum lnorm_operand which, wide_block *block) {
    int k = LNORM_NO_EXPONENT;
    for (block->first = 0; block->first < run->space->count; block->first += LNORM_BLOCK) {
        block->length = lnorm_wide_length(run->space->count, block->first);
        wide_read_direction(run, which, block, block->g);
        for (int i = 0; i < block->length; i++)
            k = block->g[i].e > k ? block->g[i].e : k;
    }
    return k;
}

/* A sum that becomes a factor. */
static lnorm_pair wide_factor(lnorm_pair a) {
    return lnorm_pair_flush(lnorm_pair_norm(a));
}

lnorm_pair lnorm_wide_mean(const lnorm_pair_tree *sum, int64_t count) {
    return wide_factor(lnorm_pair_quo(lnorm_pair_tree_total(sum), (double)count));
}

static lnorm_wide_means wide_means(const lnorm_wide_run *run, const lnorm_wide_record *record,
                                   enum lnorm_operand which) {
    wide_block block;
    lnorm_wide_means means = {{0.0, 0.0}, {0.0, 0.0}, wide_largest_exponent(run, which, &block), 0};
    lnorm_pair_tree sum, products;
    lnorm_pair_tree_clear(&sum);
    lnorm_pair_tree_clear(&products);
    for (block.first = 0; block.first < run->space->count; block.first += LNORM_BLOCK) {
        lnorm_pair w[LNORM_BLOCK], product[LNORM_BLOCK];
        block.length = lnorm_wide_length(run->space->count, block.first);
        wide_read_xhat(run, record, &block);
        wide_read_direction(run, which, &block, block.g);
        for (int i = 0; i < block.length; i++) {
            w[i] = lnorm_scaled_at(block.g[i], means.k);
            product[i] = lnorm_pair_mul(w[i], block.xhat[i].p);
        }
        lnorm_pair_tree_block(&sum, w, block.length);
        lnorm_pair_tree_block(&products, product, block.length);
    }
    if (run->problem->center)
        means.mean = lnorm_wide_mean(&sum, run->space->count);
    means.product = lnorm_wide_mean(&products, run->space->count);
    return means;
}

/* (w' - M(w')) - xhat*M(w*xhat), at the scale of w' */
static lnorm_pair wide_project(const lnorm_wide_record *record, const lnorm_wide_means *means, lnorm_scaled w,
                               lnorm_pair xhat) {
    lnorm_pair centered = lnorm_pair_sub(lnorm_scaled_at(w, means->k), means->mean);
    lnorm_pair along = lnorm_pair_times(lnorm_pair_mul(xhat, means->product), record->square);
    return wide_factor(lnorm_pair_sub(centered, along));
}

/* The image of w under the derivative of xhat by x. */
static lnorm_scaled wide_image(const lnorm_problem *problem, const lnorm_wide_record *record,
                               const lnorm_wide_means *means, lnorm_scaled w, lnorm_pair xhat) {
    if (wide_constant(problem))
        return lnorm_scaled_pair(lnorm_pair_mul(w.p, record->r), w.e - record->j);
    return lnorm_scaled_pair(lnorm_pair_mul(wide_project(record, means, w, xhat), record->r), means->k - record->j);
}

/* -- Backward ------------------------------------------------------------------------------------------------------ */

static void wide_finish_backward(const lnorm_wide_run *run, const lnorm_wide_record *record) {
    wide_block block;
    lnorm_wide_means g = {{0.0, 0.0}, {0.0, 0.0}, 0, 0};
    double dx[LNORM_BLOCK];
    if (!wide_constant(run->problem))
        g = wide_means(run, record, LNORM_DY);
    for (block.first = 0; block.first < run->space->count; block.first += LNORM_BLOCK) {
        block.length = lnorm_wide_length(run->space->count, block.first);
        wide_read_xhat(run, record, &block);
        wide_read_direction(run, LNORM_DY, &block, block.g);
        for (int i = 0; i < block.length; i++)
            dx[i] = lnorm_scaled_round(wide_image(run->problem, record, &g, block.g[i], block.xhat[i].p));
        lnorm_wide_write(run, LNORM_DX, block.first, block.length, dx);
    }
}

/* -- Double backward ----------------------------------------------------------------------------------------------- */

/* What the gradient by x needs of a group: the means of g, and D = (M(v*g) - a1*c1) - a2*c2. */
typedef struct wide_second {
    lnorm_wide_means g;
    lnorm_pair D;
} wide_second;

static wide_second wide_prepare_second(const lnorm_wide_run *run, const lnorm_wide_record *record) {
    const lnorm_wide_means *v = &record->along_v;
    wide_block block;
    wide_second second = {wide_means(run, record, LNORM_DY), {0.0, 0.0}};
    lnorm_pair_tree products;
    lnorm_pair_tree_clear(&products);
    for (block.first = 0; block.first < run->space->count; block.first += LNORM_BLOCK) {
        lnorm_pair product[LNORM_BLOCK];
        block.length = lnorm_wide_length(run->space->count, block.first);
        wide_read_direction(run, LNORM_DY, &block, block.g);
        wide_read_direction(run, LNORM_V, &block, block.w);
        for (int i = 0; i < block.length; i++)
            product[i] = lnorm_pair_mul(lnorm_scaled_at(block.w[i], v->k), lnorm_scaled_at(block.g[i], second.g.k));
        lnorm_pair_tree_block(&products, product, block.length);
    }
    lnorm_pair b = lnorm_pair_quo(lnorm_pair_tree_total(&products), (double)run->space->count);
    lnorm_pair means = lnorm_pair_mul(v->mean, second.g.mean);
    lnorm_pair along = lnorm_pair_times(lnorm_pair_mul(v->product, second.g.product), record->square);
    second.D = wide_factor(lnorm_pair_sub(lnorm_pair_sub(b, means), along));
    return second;
}

/* -(r*r)*((xhat*D + A*c2) + C*a2): each of the three products has one factor of xhat, hence 2^h. */
static double wide_second_dx(const lnorm_wide_record *record, const wide_second *second, const wide_block *block,
                             int i) {
    const lnorm_wide_means *v = &record->along_v, *g = &second->g;
    lnorm_pair xhat = block->xhat[i].p;
    lnorm_pair A = wide_project(record, v, block->w[i], xhat), C = wide_project(record, g, block->g[i], xhat);
    lnorm_pair sum = lnorm_pair_add(lnorm_pair_add(lnorm_pair_mul(xhat, second->D), lnorm_pair_mul(A, g->product)),
                                    lnorm_pair_mul(C, v->product));
    lnorm_pair scaled = lnorm_pair_mul(lnorm_pair_mul(record->r, record->r), lnorm_pair_negate(sum));
    return lnorm_scaled_round(lnorm_scaled_pair(scaled, v->k + g->k + record->h - 2 * record->j));
}

static void wide_finish_double_backward(const lnorm_wide_run *run, const lnorm_wide_record *record) {
    const lnorm_problem *problem = run->problem;
    int moving = lnorm_has(problem, LNORM_DX) && !wide_constant(problem);
    wide_block block;
    wide_second second;
    double dx[LNORM_BLOCK] = {0.0}, ddy[LNORM_BLOCK], weight[LNORM_BLOCK];
    if (moving)
        second = wide_prepare_second(run, record);
    for (block.first = 0; block.first < run->space->count; block.first += LNORM_BLOCK) {
        block.length = lnorm_wide_length(run->space->count, block.first);
        wide_read_xhat(run, record, &block);
        wide_read_direction(run, LNORM_DY, &block, block.g);
        wide_read_direction(run, LNORM_V, &block, block.w);
        lnorm_wide_read_weight(run, block.first, block.length, weight);
        for (int i = 0; i < block.length; i++) {
            lnorm_scaled u = wide_image(problem, record, &record->along_v, block.w[i], block.xhat[i].p);
            ddy[i] = lnorm_scaled_round(lnorm_scaled_mul(u, lnorm_scaled_of(weight[i])));
            if (moving)
                dx[i] = wide_second_dx(record, &second, &block, i);
        }
        if (lnorm_has(problem, LNORM_DX))
            lnorm_wide_write(run, LNORM_DX, block.first, block.length, dx);
        if (lnorm_has(problem, LNORM_DDY))
            lnorm_wide_write(run, LNORM_DDY, block.first, block.length, ddy);
    }
}

/* -- Forward mode -------------------------------------------------------------------------------------------------- */

/* An absent tangent takes its term with it: times an infinite weight even a zero would be NaN. */
static void wide_write_y_tangent(const lnorm_wide_run *run, const lnorm_wide_record *record,
                                 const lnorm_wide_means *means) {
    wide_block block;
    double weight[LNORM_BLOCK], weight_tangent[LNORM_BLOCK], bias_tangent[LNORM_BLOCK], y_tangent[LNORM_BLOCK];
    for (block.first = 0; block.first < run->space->count; block.first += LNORM_BLOCK) {
        block.length = lnorm_wide_length(run->space->count, block.first);
        wide_read_xhat(run, record, &block);
        wide_read_direction(run, LNORM_X_TANGENT, &block, block.w);
        lnorm_wide_read_weight(run, block.first, block.length, weight);
        lnorm_wide_read(run, LNORM_WEIGHT_TANGENT, block.first, block.length, 0.0, weight_tangent);
        lnorm_wide_read(run, LNORM_BIAS_TANGENT, block.first, block.length, 0.0, bias_tangent);
        for (int i = 0; i < block.length; i++) {
            lnorm_scaled term[3];
            int terms = 0;
            if (lnorm_has(run->problem, LNORM_X_TANGENT))
                term[terms++] = lnorm_scaled_mul(wide_image(run->problem, record, means, block.w[i], block.xhat[i].p),
                                                 lnorm_scaled_of(weight[i]));
            if (lnorm_has(run->problem, LNORM_WEIGHT_TANGENT))
                term[terms++] = lnorm_scaled_mul(block.xhat[i], lnorm_scaled_of(weight_tangent[i]));
            if (lnorm_has(run->problem, LNORM_BIAS_TANGENT))
                term[terms++] = lnorm_scaled_of(bias_tangent[i]);
            y_tangent[i] = terms ? lnorm_scaled_sum(term, terms) : 0.0;
        }
        lnorm_wide_write(run, LNORM_Y_TANGENT, block.first, block.length, y_tangent);
    }
}

static void wide_finish_forward_mode(const lnorm_wide_run *run, const lnorm_wide_record *record) {
    lnorm_wide_means means = {{0.0, 0.0}, {0.0, 0.0}, 0, 0};
    double mean_tangent = 0.0, rstd_tangent = 0.0;
    if (lnorm_has(run->problem, LNORM_X_TANGENT) && !wide_constant(run->problem)) {
        means = wide_means(run, record, LNORM_X_TANGENT);
        lnorm_pair product = lnorm_pair_negate(lnorm_pair_mul(lnorm_pair_mul(record->r, record->r), means.product));
        lnorm_scaled mean = {means.mean, means.k}, rstd = {product, means.k + record->h - 2 * record->j};
        mean_tangent = lnorm_scaled_round(mean);
        rstd_tangent = lnorm_scaled_round(rstd);
    }
    lnorm_wide_write_one(run, LNORM_MEAN_TANGENT, mean_tangent);
    lnorm_wide_write_one(run, LNORM_RSTD_TANGENT, rstd_tangent);
    if (lnorm_has(run->problem, LNORM_Y_TANGENT))
        wide_write_y_tangent(run, record, &means);
}

void lnorm_wide_prepare_gradients(const lnorm_wide_run *run, lnorm_wide_record *record) {
    if (run->problem->pass == LNORM_DOUBLE_BACKWARD && !wide_constant(run->problem))
        record->along_v = wide_means(run, record, LNORM_V);
}

void lnorm_wide_finish_gradients(const lnorm_wide_run *run, const lnorm_wide_record *record) {
    if (run->problem->pass == LNORM_BACKWARD)
        wide_finish_backward(run, record);
    else if (run->problem->pass == LNORM_DOUBLE_BACKWARD)
        wide_finish_double_backward(run, record);
    else
        wide_finish_forward_mode(run, record);
}

/* -- Affine gradients ---------------------------------------------------------------------------------------------- */

/* One entry of dweight or dbias and the groups it gathers from. */
typedef struct wide_entry {
    lnorm_wide_run run; /* over the inner axes; seeks through the outer ones */
    lnorm_space inner, outer;
    enum lnorm_operand which;
    const char *records;
    lnorm_wide_record record; /* of the group that `run` is in */
} wide_entry;

static void wide_enter_group(wide_entry *entry, int64_t outer) {
    const lnorm_problem *problem = entry->run.problem;
    int64_t group = 0;
    lnorm_wide_seek(&entry->run, &entry->outer, outer);
    if (entry->which == LNORM_DBIAS)
        return;
    for (int i = 0; i < problem->group.axes; i++)
        group = group * problem->extent[problem->group.axis[i]] + entry->run.at[problem->group.axis[i]];
    if (entry->records)
        memcpy(&entry->record, entry->records + group * (int64_t)sizeof entry->record, sizeof entry->record);
    else
        lnorm_definition_wide.prepare(problem, entry->run.data, group, &entry->record);
}

/* dbias: dy. dweight: dy*xhat, in the double backward dy*u. */
static void wide_read_terms(const wide_entry *entry, wide_block *block, lnorm_scaled *term) {
    double dy[LNORM_BLOCK];
    const lnorm_wide_record *record = &entry->record;
    lnorm_wide_read(&entry->run, LNORM_DY, block->first, block->length, 0.0, dy);
    for (int i = 0; i < block->length; i++)
        term[i] = lnorm_scaled_of(dy[i]);
    if (entry->which == LNORM_DBIAS)
        return;
    wide_read_xhat(&entry->run, record, block);
    if (entry->run.problem->pass == LNORM_DOUBLE_BACKWARD) {
        wide_read_direction(&entry->run, LNORM_V, block, block->w);
        for (int i = 0; i < block->length; i++)
            block->xhat[i] = wide_image(entry->run.problem, record, &record->along_v, block->w[i], block->xhat[i].p);
    }
    for (int i = 0; i < block->length; i++)
        term[i] = lnorm_scaled_mul(block->xhat[i], term[i]);
}

static int wide_entry_exponent(wide_entry *entry) {
    int k = LNORM_NO_EXPONENT;
    wide_block block;
    for (int64_t outer = 0; outer < entry->outer.count; outer++) {
        wide_enter_group(entry, outer);
        for (block.first = 0; block.first < entry->inner.count; block.first += LNORM_BLOCK) {
            lnorm_scaled term[LNORM_BLOCK];
            block.length = lnorm_wide_length(entry->inner.count, block.first);
            wide_read_terms(entry, &block, term);
            for (int i = 0; i < block.length; i++)
                k = term[i].e > k ? term[i].e : k;
        }
    }
    return k;
}

/* The tree over the inner elements of the group that the entry is in. */
static lnorm_pair wide_inner_sum(const wide_entry *entry, int k) {
    wide_block block;
    lnorm_pair_tree tree;
    lnorm_pair_tree_clear(&tree);
    for (block.first = 0; block.first < entry->inner.count; block.first += LNORM_BLOCK) {
        lnorm_scaled term[LNORM_BLOCK];
        lnorm_pair scaled[LNORM_BLOCK];
        block.length = lnorm_wide_length(entry->inner.count, block.first);
        wide_read_terms(entry, &block, term);
        for (int i = 0; i < block.length; i++)
            scaled[i] = lnorm_scaled_at(term[i], k);
        lnorm_pair_tree_block(&tree, scaled, block.length);
    }
    return lnorm_pair_tree_total(&tree);
}

void lnorm_wide_affine(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand which, int64_t entry,
                       const char *records) {
    uint32_t own = which == LNORM_DWEIGHT ? problem->weight_axes : problem->bias_axes;
    uint32_t others = ((1u << problem->axes) - 1) & ~own;
    lnorm_space entries = lnorm_space_of(problem, own);
    wide_entry state = {.inner = lnorm_space_of(problem, others & problem->reduced),
                        .outer = lnorm_space_of(problem, others & ~problem->reduced),
                        .which = which,
                        .records = records};
    state.run = (lnorm_wide_run){problem, data, &state.inner, {0}};
    lnorm_wide_seek(&state.run, &entries, entry);

    lnorm_pair_tree tree;
    lnorm_pair_tree_clear(&tree);
    int k = wide_entry_exponent(&state);
    for (int64_t first = 0; first < state.outer.count; first += LNORM_ROW_BLOCK) {
        lnorm_pair block = {0.0, 0.0};
        for (int64_t i = first; i < state.outer.count && i < first + LNORM_ROW_BLOCK; i++) {
            wide_enter_group(&state, i);
            block = lnorm_pair_add(block, wide_inner_sum(&state, k));
        }
        lnorm_pair_tree_push(&tree, block);
    }

    lnorm_scaled sum = {lnorm_pair_tree_total(&tree), k};
    double total = lnorm_scaled_round(sum);
    if (problem->accumulate)
        total = lnorm_wide_read_one(&state.run, which) + total;
    lnorm_wide_write_one(&state.run, which, total);
}

#include "compact_end.inc"
