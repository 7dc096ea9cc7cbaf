/* What the general form works on at a time: a few groups (or affine entries) side by side, walked element by element.
 * Compiled once, not per instruction set: vectors are the loops' (loops.h).
 *
 * Side by side, because one group's elements may lie far apart while its neighbour's lie next to each: a line of the
 * cache is then read once for all of them. */
#ifndef LNORM_KERNELS_BUNDLE_H
#define LNORM_KERNELS_BUNDLE_H

#include "../access.h"
#include "../general.h"
#include "../kernels.h"
#include "../stream.h"
#include "fast.h"
#include "statistics.h"

struct lnorm_loops;
typedef struct lnorm_loops lnorm_loops;

typedef struct ln_bundle {
    const lnorm_loops *loops;
    const lnorm_problem *problem;
    const lnorm_data *data;
    const lnorm_space *space;     /* what each lane walks: the elements of a group, or the inner axes of an entry */
    int lanes;                    /* 1 .. LNORM_BUNDLE */
    int axis;                     /* the lanes lie along this axis; -1 where there is only one */
    int64_t base[LNORM_OPERANDS]; /* offset in elements of lane 0, index 0 */
    int64_t soon[2];              /* elements from x and dy to those that come next; 0: none do */
} ln_bundle;

enum {
    LN_AHEAD = 16,           /* steps of a run that memory is asked for ahead of time: wide strides surprise hardware */
    LN_STAGE_BYTES = 1 << 11 /* of finished results, on their way past the caches */
};

/* Sums of x over a group's elements. */
enum ln_sum_of {
    LN_SUM_OF_X,      /* x and x*x */
    LN_SUM_SHIFTED_X, /* d and d*d, d = x - c */
    LN_SUM_RUNS       /* x and x*x in runs (docs/arithmetic.md, section 22) */
};

/* A block's sums, before they are added to others. */
typedef union ln_block_sum {
    ln_pair pair;
    float run[2][LNORM_LANES];
} ln_block_sum;

/* What becomes of the blocks of one group, in their order. */
typedef struct ln_block_order {
    ln_tree_pair tree;
    double lanes[2][LNORM_LANES]; /* of runs */
    int runs;
} ln_block_order;

/* The sums of terms that come one after the other, a pair of them, and the lanes of the block that is not complete yet.
 * Loops leave blocks that they complete in `block`. */
enum { LN_TERMS = 1 << 10, LN_TERM_BLOCKS = LN_TERMS / LNORM_BLOCK + 2 };
typedef struct ln_term_sums {
    ln_tree_pair tree;
    double lanes[2][LNORM_LANES];
    int64_t left, whole; /* elements: to the block's end, of a block */
    int blocks;
    ln_pair block[LN_TERM_BLOCKS];
} ln_term_sums;

/* A block of every lane, as elements are in memory: there, where they are contiguous, or a copy. f64 input is wide
 * arithmetic, and not ours. */
typedef struct ln_tile {
    const char *at[LNORM_BUNDLE];
    char lane[LNORM_BUNDLE][LNORM_BLOCK * 4];
} ln_tile;

/* n elements of a group, which lie together and have one weight and one bias. Those that go together are equally long,
 * and y is x for all of them or none. */
typedef struct ln_channel_run {
    const char *x, *next; /* next: what will be read soon */
    char *y;
    int64_t n;
    const ln_record *s;
    const ln_fast_form *form; /* in the fast arithmetic, of a group that is regular */
    double weight, bias;      /* 1.0 and -0.0, which change no bit, where there is none */
} ln_channel_run;

/* A block of x and dy of one lane in f32, and what xhat and g are made with. Whole vectors of everything can be read,
 * and of dx written: what is beyond n is +0, of the weight some number. */
typedef struct ln_terms {
    const float *x, *dy;     /* x NULL: the statistics are constants */
    const double *weight;    /* as it is used; 1.0 where there is none */
    const float *weight_f32; /* the same, in the fast arithmetic */
    int64_t weight_step;     /* 1, or 0: the first stands for all */
    int64_t n;
    const ln_record *s;      /* statistics, and for dx the means of its gradients */
    ln_fast_form form;       /* the same, in the fast arithmetic */
    const char *soon[2];     /* what will be needed soon: dx asks for both as it goes on */
    int64_t soon_size[2];    /* of its elements; or 0, with any address: there is nothing */
} ln_terms;

static inline void ln_terms_on(ln_terms *f, int fast, int64_t n) {
    f->x += n;
    f->dy += n;
    if (fast)
        f->weight_f32 += f->weight_step * n;
    else
        f->weight += f->weight_step * n;
    f->n -= n;
}

static inline int64_t ln_element_size(enum lnorm_element element) {
    return element == LNORM_ELEMENT_F64 ? 8 : element == LNORM_ELEMENT_F32 ? 4 : 2;
}

static inline enum lnorm_element ln_element_of(const ln_bundle *b, enum lnorm_operand operand) {
    return (enum lnorm_element)b->problem->operand[operand].element;
}

static inline int64_t ln_size_of(const ln_bundle *b, enum lnorm_operand operand) {
    return ln_element_size(ln_element_of(b, operand));
}

static inline void ln_fill(double *values, double value, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        values[i] = value;
}

static inline int64_t ln_lane_stride(const ln_bundle *b, enum lnorm_operand operand) {
    return b->axis < 0 ? 0 : b->problem->operand[operand].stride[b->axis];
}

/* The coordinates of an index of a space, by axis. */
static inline void ln_coordinates(const lnorm_problem *problem, const lnorm_space *space, int64_t index, int64_t *at) {
    for (int i = space->axes; i-- > 0; index /= problem->extent[space->axis[i]])
        at[space->axis[i]] = index % problem->extent[space->axis[i]];
}

/* The bases at index i of `first` and index j of `second`, sets of axes without a common one. */
static inline void ln_set_base(ln_bundle *b, const lnorm_space *first, int64_t i, const lnorm_space *second,
                               int64_t j) {
    const lnorm_problem *problem = b->problem;
    int64_t at[LNORM_MAX_AXES] = {0};
    ln_coordinates(problem, first, i, at);
    ln_coordinates(problem, second, j, at);
    for (int k = 0; k < problem->present.count; k++) {
        const int operand = problem->present.at[k];
        int64_t offset = 0;
        for (int axis = 0; axis < problem->axes; axis++)
            offset += at[axis] * problem->operand[operand].stride[axis];
        b->base[operand] = offset;
    }
}

/* Of the indices index, index + 1, ... of a space, those that lie along its last axis, at most LNORM_BUNDLE of them and
 * below `end`. */
static inline int ln_lanes_from(const lnorm_problem *problem, const lnorm_space *space, int64_t index, int64_t end,
                                int *axis) {
    int64_t lanes = end - index < LNORM_BUNDLE ? end - index : LNORM_BUNDLE, left;
    *axis = -1;
    if (space->axes == 0)
        return 1;
    *axis = space->axis[space->axes - 1];
    left = problem->extent[*axis] - index % problem->extent[*axis];
    return (int)(lanes < left ? lanes : left);
}

static inline int64_t ln_distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* Groups from `group` on, below `end`. */
ln_bundle lnorm_bundle_of_groups(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data,
                                 int64_t group, int64_t end);

/* What an index of `space`, a set of axes, contributes to the row-major number of the axes in `set` (bits). */
static inline int64_t ln_step_in(const lnorm_problem *problem, uint32_t set, int axis) {
    int64_t step = 1;
    for (int later = axis + 1; later < problem->axes; later++)
        if (set >> later & 1)
            step *= problem->extent[later];
    return set >> axis & 1 ? step : 0;
}

static inline int64_t ln_part(const lnorm_problem *problem, uint32_t set, const lnorm_space *space, int64_t index) {
    int64_t part = 0;
    for (int i = space->axes; i-- > 0;) {
        int axis = space->axis[i];
        part += index % problem->extent[axis] * ln_step_in(problem, set, axis);
        index /= problem->extent[axis];
    }
    return part;
}

/* The same for the number of a group. */
static inline int64_t ln_group_step(const lnorm_problem *problem, int axis) {
    return ln_step_in(problem, ~problem->reduced, axis);
}

static inline int64_t ln_group_part(const lnorm_problem *problem, const lnorm_space *space, int64_t index) {
    return ln_part(problem, ~problem->reduced, space, index);
}

static inline int64_t ln_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int ln_constant_along(const lnorm_problem *problem, enum lnorm_operand operand, int axis) {
    return !lnorm_has(problem, operand) || problem->operand[operand].stride[axis] == 0;
}

/* The weight, as it is used, or the bias at an offset; `missing` where there is none (1.0 and -0.0 change no bit). */
static inline double ln_affine_at(const ln_bundle *b, enum lnorm_operand operand, int64_t offset, double missing) {
    double value;
    if (!lnorm_has(b->problem, operand))
        return missing;
    value = lnorm_load((enum lnorm_element)b->problem->operand[operand].element, b->data->at[operand], offset);
    return operand == LNORM_WEIGHT && b->problem->weight_offset ? 1.0 + value : value;
}

/* The one element that a lane has of a statistic, or of an entry. */
static inline double ln_one(const ln_bundle *b, enum lnorm_operand operand, int lane) {
    return lnorm_load((enum lnorm_element)b->problem->operand[operand].element, b->data->at[operand],
                      b->base[operand] + lane * ln_lane_stride(b, operand));
}

static inline void ln_put_one(const ln_bundle *b, enum lnorm_operand operand, int lane, double value) {
    if (lnorm_has(b->problem, operand))
        lnorm_store((enum lnorm_element)b->problem->operand[operand].element, b->data->at[operand],
                    b->base[operand] + lane * ln_lane_stride(b, operand), value);
}

static inline void ln_put_gradient(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand which,
                            int64_t offset, double value) {
    enum lnorm_element element = (enum lnorm_element)problem->operand[which].element;
    if (problem->accumulate)
        value = lnorm_load(element, data->at[which], offset) + value;
    lnorm_store(element, data->at[which], offset, value);
}

/* Statistics come from sums in runs (docs/arithmetic.md, section 22). */
static inline int ln_by_runs(const lnorm_problem *problem) {
    return problem->fast && problem->statistics == LNORM_COMPUTED;
}

/* l has to be subtracted; -0, too, would change a sign. */
static inline int ln_fast_corrected(const ln_fast_form *form) {
    const float zero = 0.0f;
    return memcmp(&form->l, &zero, sizeof zero) != 0;
}

/* y of one element in the fast arithmetic, of a group that is regular or not. */
static inline float ln_irregular_element(const ln_record *s, double x, double weight, double bias) {
    const ln_fast_form form = ln_fast_form_of(s);
    float value = (float)x, w = (float)weight, b = (float)bias;
    if (form.regular) {
        value = value - form.h;
        value = value - form.l;
        value = value * form.rho;
    } else {
        value = (float)(((x - s->c) - s->t) * s->r);
    }
    value = value * w;
    value = value + b;
    return value;
}

/* -- Walking a space ---------------------------------------------------------------------------------------------- */

/* Where a walk is: the coordinates of its next index. */
typedef struct ln_walk {
    const lnorm_problem *problem;
    const lnorm_space *space;
    int64_t at[LNORM_MAX_AXES];
} ln_walk;

static inline void ln_walk_on(ln_walk *walk, int64_t steps) {
    for (int i = walk->space->axes; i-- > 0 && steps;) {
        int64_t extent = walk->problem->extent[walk->space->axis[i]];
        walk->at[i] += steps;
        steps = walk->at[i] / extent;
        walk->at[i] -= steps * extent;
    }
}

static inline ln_walk ln_walk_from(const ln_bundle *b, int64_t index) {
    ln_walk walk = {b->problem, b->space, {0}};
    if (index)
        ln_walk_on(&walk, index);
    return walk;
}

/* The same walk for one operand, in runs along the last axis. */
typedef struct ln_cursor {
    ln_walk walk;
    const int64_t *stride; /* the operand's */
    int64_t offset, run_stride;
} ln_cursor;

static inline int64_t ln_offset_at(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk) {
    const int64_t *stride = b->problem->operand[operand].stride;
    int64_t offset = b->base[operand];
    for (int i = 0; i < walk->space->axes; i++)
        offset += walk->at[i] * stride[walk->space->axis[i]];
    return offset;
}

/* At a walk's next index (gather.c). */
ln_cursor lnorm_cursor_at(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk);

/* Indices from here to the end of the last axis, `left` at most: the next is at `offset`, then every `run_stride`. */
static inline int64_t ln_run(const ln_cursor *cursor, int64_t left) {
    int last = cursor->walk.space->axes - 1;
    int64_t run;
    if (last < 0)
        return left;
    run = cursor->walk.problem->extent[cursor->walk.space->axis[last]] - cursor->walk.at[last];
    return run < left ? run : left;
}

static inline void ln_run_on(ln_cursor *cursor, int64_t run) {
    const lnorm_space *space = cursor->walk.space;
    int64_t step = run;
    for (int i = space->axes; i-- > 0;) {
        int64_t extent = cursor->walk.problem->extent[space->axis[i]], stride = cursor->stride[space->axis[i]];
        cursor->walk.at[i] += step;
        cursor->offset += step * stride;
        if (cursor->walk.at[i] < extent)
            return;
        cursor->walk.at[i] = 0;
        cursor->offset -= extent * stride;
        step = 1;
    }
}

/* -- Elements from anywhere to the stack and back (gather.c) ------------------------------------------------------- */

/* The next n elements of a walk lie next to each other in an operand. */
int lnorm_lies_together(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n);

/* n elements of every lane. */
void lnorm_gather(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n, ln_tile *tile);

/* n results of one lane, rounded once, into the tile; f64 is too large for it and goes where it belongs at once. */
void lnorm_put_lane(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n, int lane,
                    double *values, ln_tile *tile);

/* The tile that lnorm_put_lane has filled. */
void lnorm_scatter(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n, ln_tile *tile);

/* weight (as it is used: 1 + weight where weight_offset says so) or bias of one lane; NULL where there is none. Lanes
 * are asked for in order: where they share their values, those of lane 0 are still in the buffer. */
const double *lnorm_gather_affine(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n,
                                  int lane, double buffer[LNORM_BLOCK]);

/* y is larger than the caches, and not where x was. */
int lnorm_streams_y(const lnorm_problem *problem, const lnorm_data *data);

/* -- Sums of blocks (blocks.c) ------------------------------------------------------------------------------------- */

void lnorm_begin_blocks(ln_block_order *order);

/* `sum` is what lnorm_loops.sum_block has left: an ln_pair, or for runs an ln_block_sum. */
void lnorm_next_block(const lnorm_loops *loops, ln_block_order *order, enum ln_sum_of what, const void *sum);

ln_pair lnorm_end_blocks(ln_block_order *order);

/* Sums of terms: runs of n elements are in the lanes (fast), or terms are added. */
void lnorm_begin_terms(ln_term_sums *sums, int fast);
void lnorm_next_runs(ln_term_sums *sums, int64_t n);
void lnorm_add_terms(const lnorm_loops *loops, ln_terms *f, ln_term_sums *of_g, ln_term_sums *of_dy);
ln_pair lnorm_end_terms(ln_term_sums *sums);

/* -- Groups (general_groups.c, general_backward.c), affine gradients (general_affine.c) ---------------------------- */

/* Statistics of every lane: computed, or given. */
void lnorm_groups_statistics(const ln_bundle *b, ln_record *s);
void lnorm_given_statistics(const ln_bundle *b, ln_record *s, int lane);

/* Computed, of groups in one piece each, from x on and `pitch` bytes apart. */
void lnorm_pieces_statistics(const ln_bundle *b, const char *x, int64_t pitch, int groups, ln_record *s);

/* Running statistics of batch norm. An empty batch says nothing: they stay. */
void lnorm_update_running(const ln_bundle *b, const ln_record *s, int lane);

/* y and the statistics that are wanted, of every lane. */
void lnorm_groups_forward(const ln_bundle *b);

/* c1 and c2 of every lane; `s` holds the statistics. */
void lnorm_groups_means(const ln_bundle *b, ln_record *s);

/* dx of every lane; `s` holds the statistics. */
void lnorm_groups_backward(const ln_bundle *b, ln_record *s);

/* The partials of every lane, of which the first is group number `group`, and then dx if it is wanted. */
void lnorm_groups_gradients(const ln_bundle *b, const lnorm_affine_job *job, int64_t group);

/* Partial number `each` of a group: a of dbias, b of dweight. It is left in the workspace, or, where there is no outer
 * index, the entry of lane `lane`; `b` stands at number `each`. */
void lnorm_put_partial(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, int64_t each, int lane,
                       ln_pair partial);

/* The same where `b` stands at the group. */
void lnorm_put_entry(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, int64_t each, int lane,
                     ln_pair partial);

/* Elements that go at once: a block, or several if they are whole and lie together in x. */
int64_t lnorm_piece(const ln_bundle *b, const ln_walk *walk, int64_t left);

/* The sums of g (a) and of g*xhat (b; only where `products` are wanted, and then `s` holds the statistics) over what
 * every lane walks. g = dy*weight where `weighted`, otherwise dy. */
void lnorm_gradient_sums(const ln_bundle *b, int weighted, int products, const ln_record *s, ln_pair *total);

/* Where x, dy and dx are contiguous along the last axis, and the weight one number, all of a group's gradients are
 * computed run by run (general_runs.c): partials where there is a job, and dx where it is wanted. */
int lnorm_in_runs(const lnorm_problem *problem, const lnorm_affine_job *job);
void lnorm_runs_gradients(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, ln_record *s);

/* Of a group that stands alone: its partials where there is a job, and c1 and c2. */
void lnorm_runs_sums(const ln_bundle *b, const lnorm_affine_job *job, int64_t group, ln_record *s);

/* All of the terms are added; in the fast arithmetic also of groups that are not regular. `f` ends behind them. */
void lnorm_sum_of_terms(const ln_bundle *b, ln_terms *f, ln_term_sums *of_g, ln_term_sums *of_dy);

/* A run of n terms of a group that is not regular, or far: without elements that continue it. */
void lnorm_irregular_sums(const ln_bundle *b, const ln_terms *f, int64_t n, ln_term_sums *to);

void lnorm_set_statistics(const ln_bundle *b, const ln_record *s, ln_terms *f);

/* c1 and c2 from the sums. */
void lnorm_set_means(const ln_bundle *b, ln_pair sum, ln_record *s);

/* At most LNORM_BLOCK elements of dx in its narrow type, or any number of them with `room` in f32: whole vectors can be
 * written. */
void lnorm_dx_block(const ln_bundle *b, const ln_terms *f, char *to, int room);

/* n terms dy*xhat of a lane, in f32; `f` as lnorm_gradient_sums has it. */
void lnorm_fast_products(const ln_bundle *b, const ln_terms *f, float term[LNORM_BLOCK]);

/* n <= LNORM_BLOCK elements as f32: where they are, if the block is whole; else in `copy`, continued by +0. */
const float *lnorm_block_as_f32(const ln_bundle *b, enum lnorm_operand operand, const char *at, int64_t n,
                                float copy[LNORM_BLOCK]);

/* A task of phase 1; the workspace holds records, partials, or nothing. */
void lnorm_affine_task(const lnorm_loops *loops, const lnorm_problem *problem, const lnorm_data *data, int64_t task);

#endif
