/* The general form's dweight and dbias. Terms are dy*xhat and dy. Where an entry has no inner axes (layer norm), a
 * strip of entries is summed at once, outer index by outer index; where it has (batch, group, instance norm), entries
 * are summed by themselves, a bundle of them side by side. */
#include "compact.inc"

#include "kernels/loops.h"

/* -- What is to be done -------------------------------------------------------------------------------------------- */

static lnorm_affine_job ln_affine_job_of(const lnorm_problem *problem, int dweight, int dbias) {
    uint32_t own = dweight ? problem->weight_axes : problem->bias_axes;
    lnorm_affine_job job = {dweight, dbias,
                            lnorm_space_of(problem, own),
                            lnorm_space_of(problem, ~own & problem->reduced),
                            lnorm_space_of(problem, ~own & ~problem->reduced),
                            lnorm_space_of(problem, own & problem->reduced),
                            lnorm_space_of(problem, own & ~problem->reduced), 0};
    if (job.inner.axes == 0) {
        job.strip = LNORM_STRIP_DOUBLES / lnorm_strip_levels(lnorm_parts(job.outer.count, LNORM_ROW_BLOCK));
        job.strip = job.strip < LNORM_STRIP_MAX ? job.strip / LNORM_LANES * LNORM_LANES : LNORM_STRIP_MAX;
    }
    return job;
}

int lnorm_affine_jobs(const lnorm_problem *problem, lnorm_affine_job job[2]) {
    int dweight = lnorm_has(problem, LNORM_DWEIGHT), dbias = lnorm_has(problem, LNORM_DBIAS), jobs = 0;
    if (dweight && dbias && problem->weight_axes == problem->bias_axes) {
        job[0] = ln_affine_job_of(problem, 1, 1);
        return 1;
    }
    if (dweight)
        job[jobs++] = ln_affine_job_of(problem, 1, 0);
    if (dbias)
        job[jobs++] = ln_affine_job_of(problem, 0, 1);
    return jobs;
}

int lnorm_has_partials(const lnorm_problem *problem, lnorm_affine_job *job) {
    lnorm_affine_job jobs[2];
    if (problem->pass != LNORM_BACKWARD || problem->element.count == 0 || lnorm_affine_jobs(problem, jobs) != 1 ||
        jobs[0].inner.axes == 0 || (uint64_t)problem->group.count > SIZE_MAX / 32 / (uint64_t)jobs[0].each.count)
        return 0;
    *job = jobs[0];
    return 1;
}

/* Statistics of the groups first, first + step, ... of `lanes` lanes along an axis (step 0: one group for all). */
static void ln_records_of(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data, int64_t first,
                          int axis, int lanes, ln_record *s) {
    static const lnorm_space none = {0, {0}, 1};
    const ln_record *kept = data->workspace;
    int64_t step = axis < 0 ? 0 : ln_group_step(problem, axis);
    ln_bundle b = {.loops = loops, .problem = problem, .data = data, .space = &problem->element};
    b.lanes = step ? lanes : 1;
    b.axis = step ? axis : -1;
    if (kept) {
        for (int lane = 0; lane < lanes; lane++)
            s[lane] = kept[first + lane * step];
        return;
    }
    ln_set_base(&b, &problem->group, first, &none, 0);
    lnorm_groups_statistics(&b, s);
    for (int lane = b.lanes; lane < lanes; lane++)
        s[lane] = s[0];
}

/* -- Strips ------------------------------------------------------------------------------------------------------- */

/* The sums of a strip, and what it is made of. */
typedef struct ln_strip_sums {
    ln_bundle b;
    const lnorm_affine_job *job;
    ln_walk walk; /* its first entry */
    int64_t fixed, n;
    double *dweight, *dbias;                                     /* of this block of outer indices */
    float products[LNORM_ROW_GROUP][LNORM_STRIP_MAX], dy[LNORM_ROW_GROUP][LNORM_STRIP_MAX]; /* fast: of eight of them */
} ln_strip_sums;

/* Adds the terms of one outer index, whose x and dy are narrow still, to the sums. */
static void ln_add_lane(ln_strip_sums *strip, const char *x, const char *dy, const ln_record *s) {
    const ln_bundle *b = &strip->b;
    double wide_x[LNORM_BLOCK], wide_dy[LNORM_BLOCK];
    b->loops->widen(ln_element_of(b, LNORM_DY), dy, wide_dy, strip->n);
    if (strip->job->dweight) {
        b->loops->widen(ln_element_of(b, LNORM_X), x, wide_x, strip->n);
        b->loops->add_product(strip->dweight, wide_x, wide_dy, s, strip->n);
    }
    if (strip->job->dbias)
        b->loops->add(strip->dbias, wide_dy, strip->n);
}

/* The same in the fast arithmetic, of number `k` of eight outer indices; they are added with the `last`. */
static void ln_add_fast_lane(ln_strip_sums *strip, const char *x, const char *dy, const ln_record *s, int k, int last) {
    const ln_bundle *b = &strip->b;
    float copy_x[LNORM_BLOCK], copy_dy[LNORM_BLOCK];
    ln_terms f = {.s = s, .n = strip->n};
    f.dy = lnorm_block_as_f32(b, LNORM_DY, dy, strip->n, copy_dy);
    memcpy(strip->dy[k], f.dy, (size_t)strip->n * sizeof *f.dy);
    if (strip->job->dweight) {
        f.x = lnorm_block_as_f32(b, LNORM_X, x, strip->n, copy_x);
        f.form = ln_fast_form_of(s);
        lnorm_fast_products(b, &f, strip->products[k]);
    }
    if (!last)
        return;
    memset(strip->dy + k + 1, 0, (size_t)(LNORM_ROW_GROUP - 1 - k) * sizeof strip->dy[0]);
    memset(strip->products + k + 1, 0, (size_t)(LNORM_ROW_GROUP - 1 - k) * sizeof strip->products[0]);
    if (strip->job->dweight)
        b->loops->add_eight(strip->dweight, strip->products[0], LNORM_STRIP_MAX, strip->n);
    if (strip->job->dbias)
        b->loops->add_eight(strip->dbias, strip->dy[0], LNORM_STRIP_MAX, strip->n);
}

/* One block of 64 outer indices from `first`. */
static void ln_strip_block(ln_strip_sums *strip, int64_t first) {
    const lnorm_affine_job *job = strip->job;
    const lnorm_problem *problem = strip->b.problem;
    int64_t rest = job->outer.count - first, end = first + (rest < LNORM_ROW_BLOCK ? rest : LNORM_ROW_BLOCK);
    int64_t fixed_group = ln_group_part(problem, &job->fixed, strip->fixed);
    ln_record s[LNORM_BUNDLE];
    ln_tile x, dy;
    ln_bundle *b = &strip->b;
    for (int64_t outer = first; outer < end; outer += b->lanes) {
        b->lanes = ln_lanes_from(problem, &job->outer, outer, end, &b->axis);
        ln_set_base(b, &job->fixed, strip->fixed, &job->outer, outer);
        lnorm_gather(b, LNORM_DY, &strip->walk, strip->n, &dy);
        if (job->dweight) {
            int64_t group = fixed_group + ln_group_part(problem, &job->outer, outer);
            ln_records_of(b->loops, problem, b->data, group, b->axis, b->lanes, s);
            lnorm_gather(b, LNORM_X, &strip->walk, strip->n, &x);
        }
        for (int lane = 0; lane < b->lanes; lane++) {
            int k = (int)((outer + lane - first) % LNORM_ROW_GROUP), last = outer + lane + 1 == end;
            if (problem->fast)
                ln_add_fast_lane(strip, x.at[lane], dy.at[lane], &s[lane], k, last || k + 1 == LNORM_ROW_GROUP);
            else
                ln_add_lane(strip, x.at[lane], dy.at[lane], &s[lane]);
        }
    }
}

static void ln_store_strip(const ln_bundle *b, enum lnorm_operand which, const ln_walk *walk, int64_t n,
                           const double *sums) {
    ln_cursor cursor = lnorm_cursor_at(b, which, walk);
    int64_t run;
    for (int64_t done = 0; done < n; done += run) {
        run = ln_run(&cursor, n - done);
        for (int64_t i = 0; i < run; i++)
            ln_put_gradient(b->problem, b->data, which, cursor.offset + i * cursor.run_stride, sums[done + i]);
        ln_run_on(&cursor, run);
    }
}

static void ln_affine_strip(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data,
                            const lnorm_affine_job *job, int64_t task) {
    static const lnorm_space none = {0, {0}, 1};
    double sums[2][LNORM_STRIP_DOUBLES];
    int64_t strips = lnorm_parts(problem->element.count, job->strip), fixed = task / strips;
    int64_t first = task % strips * job->strip, rest = problem->element.count - first;
    int64_t n = rest < job->strip ? rest : job->strip;
    lnorm_strip dweight = {sums[0], n, job->strip, 0, 0}, dbias = {sums[1], n, job->strip, 0, 0};
    ln_strip_sums strip;
    ln_bundle b = {
        .loops = loops, .problem = problem, .data = data, .space = &problem->element, .lanes = 1, .axis = -1};
    ln_walk walk = ln_walk_from(&b, first);
    strip.b = b;
    strip.job = job;
    strip.walk = walk;
    strip.fixed = fixed;
    strip.n = n;
    for (int64_t outer = 0; outer < job->outer.count; outer += LNORM_ROW_BLOCK) {
        strip.dweight = lnorm_strip_block(&dweight);
        strip.dbias = lnorm_strip_block(&dbias);
        ln_strip_block(&strip, outer);
        lnorm_strip_push(&dweight, loops->add);
        lnorm_strip_push(&dbias, loops->add);
    }
    ln_set_base(&b, &job->fixed, fixed, &none, 0);
    if (job->dweight)
        ln_store_strip(&b, LNORM_DWEIGHT, &walk, n, lnorm_strip_total(&dweight, loops->add));
    if (job->dbias)
        ln_store_strip(&b, LNORM_DBIAS, &walk, n, lnorm_strip_total(&dbias, loops->add));
}

/* -- Entries with inner axes -------------------------------------------------------------------------------------- */

/* One outer index: one partial for each lane, added to the sums of its block. */
static void ln_add_outer(ln_bundle *b, const lnorm_affine_job *job, int64_t entry, int64_t outer, ln_pair *block) {
    const lnorm_problem *problem = b->problem;
    int64_t group = ln_group_part(problem, &job->entries, entry) + ln_group_part(problem, &job->outer, outer);
    ln_record s[LNORM_BUNDLE];
    ln_pair partial[LNORM_BUNDLE];
    if (job->dweight)
        ln_records_of(b->loops, problem, b->data, group, b->axis, b->lanes, s);
    ln_set_base(b, &job->entries, entry, &job->outer, outer);
    lnorm_gradient_sums(b, 0, job->dweight, s, partial);
    for (int lane = 0; lane < b->lanes; lane++) {
        block[lane].a = block[lane].a + partial[lane].a;
        block[lane].b = block[lane].b + partial[lane].b;
    }
}

/* A bundle of entries. */
static void ln_affine_entries(ln_bundle *b, const lnorm_affine_job *job, int64_t entry) {
    static const lnorm_space none = {0, {0}, 1};
    ln_tree_pair tree[LNORM_BUNDLE];
    for (int lane = 0; lane < b->lanes; lane++)
        ln_clear_trees(&tree[lane]);
    for (int64_t first = 0; first < job->outer.count; first += LNORM_ROW_BLOCK) {
        ln_pair block[LNORM_BUNDLE] = {{0.0, 0.0}};
        for (int64_t i = first; i < job->outer.count && i < first + LNORM_ROW_BLOCK; i++)
            ln_add_outer(b, job, entry, i, block);
        for (int lane = 0; lane < b->lanes; lane++)
            ln_push_pair(&tree[lane], block[lane]);
    }
    ln_set_base(b, &job->entries, entry, &none, 0);
    for (int lane = 0; lane < b->lanes; lane++) {
        ln_pair total = ln_total_of(&tree[lane]);
        if (job->dweight)
            ln_put_gradient(b->problem, b->data, LNORM_DWEIGHT,
                            b->base[LNORM_DWEIGHT] + lane * ln_lane_stride(b, LNORM_DWEIGHT), total.b);
        if (job->dbias)
            ln_put_gradient(b->problem, b->data, LNORM_DBIAS,
                            b->base[LNORM_DBIAS] + lane * ln_lane_stride(b, LNORM_DBIAS), total.a);
    }
}

static void ln_affine_bundles(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data,
                              const lnorm_affine_job *job, int64_t task) {
    lnorm_grid grid = lnorm_grid_of_entries(problem, job);
    int64_t end = lnorm_grid_end(grid, task);
    ln_bundle b = {.loops = loops, .problem = problem, .data = data, .space = &job->inner};
    for (int64_t entry = lnorm_grid_begin(grid, task); entry < end; entry += b.lanes) {
        b.lanes = ln_lanes_from(problem, &job->entries, entry, end, &b.axis);
        ln_affine_entries(&b, job, entry);
    }
}

/* -- Partials ------------------------------------------------------------------------------------------------------ */

void lnorm_put_partial(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, int64_t each, int lane,
                       ln_pair partial) {
    if (job->outer.axes) {
        ((ln_pair *)b->data->workspace)[group * job->each.count + each] = partial;
        return;
    }
    if (job->dweight)
        ln_put_gradient(b->problem, b->data, LNORM_DWEIGHT,
                        b->base[LNORM_DWEIGHT] + lane * ln_lane_stride(b, LNORM_DWEIGHT), partial.b);
    if (job->dbias)
        ln_put_gradient(b->problem, b->data, LNORM_DBIAS,
                        b->base[LNORM_DBIAS] + lane * ln_lane_stride(b, LNORM_DBIAS), partial.a);
}

/* Entries of which the workspace has the partials. */
static void ln_add_partials(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data,
                            const lnorm_affine_job *job, int64_t task) {
    static const lnorm_space none = {0, {0}, 1};
    lnorm_affine_job sum = *job;
    lnorm_grid grid = lnorm_grid_of_entries(problem, job);
    const uint32_t own = job->dweight ? problem->weight_axes : problem->bias_axes;
    ln_bundle b = {.loops = loops, .problem = problem, .data = data, .lanes = 1, .axis = -1};
    sum.outer = none;
    for (int64_t entry = lnorm_grid_begin(grid, task); entry < lnorm_grid_end(grid, task); entry++) {
        const ln_pair *partial = (const ln_pair *)data->workspace +
                                 ln_part(problem, own & problem->reduced, &job->entries, entry) +
                                 ln_group_part(problem, &job->entries, entry) * job->each.count;
        ln_tree_pair tree;
        ln_clear_trees(&tree);
        for (int64_t first = 0; first < job->outer.count; first += LNORM_ROW_BLOCK) {
            ln_pair block = {0.0, 0.0};
            for (int64_t i = first; i < job->outer.count && i < first + LNORM_ROW_BLOCK; i++) {
                const ln_pair *term = partial + ln_group_part(problem, &job->outer, i) * job->each.count;
                block.a = block.a + term->a;
                block.b = block.b + term->b;
            }
            ln_push_pair(&tree, block);
        }
        ln_set_base(&b, &job->entries, entry, &none, 0);
        lnorm_put_partial(&b, &sum, 0, 0, 0, ln_total_of(&tree));
    }
}

/* -- A task -------------------------------------------------------------------------------------------------------- */

void lnorm_affine_task(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data, int64_t task) {
    lnorm_affine_job job[2];
    const lnorm_affine_job *mine = job;
    if (lnorm_affine_jobs(problem, job) > 1 && task >= lnorm_affine_tasks(problem, &job[0])) {
        task -= lnorm_affine_tasks(problem, &job[0]);
        mine = &job[1];
    }
    if (data->workspace && lnorm_has_partials(problem, job))
        ln_add_partials(loops, problem, data, job, task);
    else if (mine->strip)
        ln_affine_strip(loops, problem, data, mine, task);
    else
        ln_affine_bundles(loops, problem, data, mine, task);
}

#include "compact_end.inc"
