/* The narrow arithmetic of docs/arithmetic.md, to be read beside that document: one function per named quantity, every
 * sum a tree over a term. Nothing here is fast. */
#include "compact.inc"

#include "access.h"
#include "reference.h"
#include <math.h>

/* What is kept of a group: its statistics (as in lnorm_statistics_narrow), and means over it. */
typedef struct group_record {
    double c, t, v, r;
    double c1, c2; /* M(g), M(g*xhat) */
    double a1, a2; /* M(w), M(w*xhat), where w is v of the double backward or x_tangent */
    double b;      /* M(v*g) */
} group_record;
_Static_assert(sizeof(group_record) <= LNORM_RECORD_MAX, "the engine keeps a record on its stack");

/* Elements of a group, or those of a group that share one entry of weight: the space whose index i the terms take, and
 * where its index 0 is in every operand. */
typedef struct group_view {
    const lnorm_problem *problem;
    const lnorm_data *data;
    const lnorm_space *space;
    int64_t base[LNORM_OPERANDS];
    group_record *record;
} group_view;

static int computed(const group_view *view) {
    return view->problem->statistics == LNORM_COMPUTED;
}

static int constant(const group_view *view) {
    return view->problem->statistics == LNORM_CONSTANT;
}

static int has(const group_view *view, enum lnorm_operand operand) {
    return lnorm_has(view->problem, operand);
}

/* -- Elements ----------------------------------------------------------------------------------------------------- */

static void set_base(group_view *view, const lnorm_space *first, int64_t i, const lnorm_space *second, int64_t j) {
    for (int k = 0; k < LNORM_OPERANDS; k++) {
        enum lnorm_operand operand = (enum lnorm_operand)k;
        if (has(view, operand))
            view->base[k] = lnorm_offset(view->problem, operand, first, i) +
                            lnorm_offset(view->problem, operand, second, j);
    }
}

static const lnorm_space no_axes = {0, {0}, 1};

static group_view view_of_group(const lnorm_problem *problem, const lnorm_data *data, int64_t group,
                                group_record *record) {
    group_view view = {problem, data, &problem->element, {0}, record};
    set_base(&view, &problem->group, group, &no_axes, 0);
    return view;
}

static double at(const group_view *view, enum lnorm_operand operand, int64_t i) {
    int64_t offset = view->base[operand] + lnorm_offset(view->problem, operand, view->space, i);
    return lnorm_load((enum lnorm_element)view->problem->operand[operand].element, view->data->at[operand], offset);
}

static void put(const group_view *view, enum lnorm_operand operand, int64_t i, double value) {
    int64_t offset = view->base[operand] + lnorm_offset(view->problem, operand, view->space, i);
    lnorm_store((enum lnorm_element)view->problem->operand[operand].element, view->data->at[operand], offset, value);
}

/* Statistics and running statistics have one element per group: stride 0 along the reduced axes. */
static double one(const group_view *view, enum lnorm_operand operand) {
    return lnorm_load((enum lnorm_element)view->problem->operand[operand].element, view->data->at[operand],
                      view->base[operand]);
}

static void put_one(const group_view *view, enum lnorm_operand operand, double value) {
    if (has(view, operand))
        lnorm_store((enum lnorm_element)view->problem->operand[operand].element, view->data->at[operand],
                    view->base[operand], value);
}

/* a*gamma; no operation where there is no weight. */
static double times_weight(const group_view *view, int64_t i, double a) {
    if (!has(view, LNORM_WEIGHT))
        return a;
    double weight = at(view, LNORM_WEIGHT, i);
    if (view->problem->weight_offset)
        weight = 1.0 + weight;
    return a * weight;
}

/* RMS has c = t = +0, which changes no bit of x. */
static double xhat(const group_view *view, int64_t i) {
    const group_record *s = view->record;
    return ((at(view, LNORM_X, i) - s->c) - s->t) * s->r;
}

static double g(const group_view *view, int64_t i) {
    return times_weight(view, i, at(view, LNORM_DY, i));
}

/* -- Sums --------------------------------------------------------------------------------------------------------- */

typedef double term_function(const group_view *view, int64_t i);

/* The tree over the view's elements. */
static double sum(const group_view *view, term_function *term) {
    int64_t count = view->space->count;
    lnorm_tree tree;
    lnorm_tree_clear(&tree);
    for (int64_t first = 0; first < count; first += LNORM_BLOCK) {
        int64_t length = count - first < LNORM_BLOCK ? count - first : LNORM_BLOCK;
        double lane[LNORM_LANES] = {0.0};
        for (int64_t i = 0; i < length; i++)
            lane[i % LNORM_LANES] = lane[i % LNORM_LANES] + term(view, first + i);
        lnorm_tree_push(&tree, lnorm_fold(lane));
    }
    return lnorm_tree_total(&tree);
}

/* M(term): 0/0, a NaN, for an empty group. */
static double mean(const group_view *view, term_function *term) {
    return sum(view, term) / (double)view->space->count;
}

static double term_x(const group_view *view, int64_t i) {
    return at(view, LNORM_X, i);
}

static double term_x_x(const group_view *view, int64_t i) {
    double x = at(view, LNORM_X, i);
    return x * x;
}

static double term_d(const group_view *view, int64_t i) {
    return at(view, LNORM_X, i) - view->record->c;
}

static double term_d_d(const group_view *view, int64_t i) {
    double d = term_d(view, i);
    return d * d;
}

static double term_dy(const group_view *view, int64_t i) {
    return at(view, LNORM_DY, i);
}

static double term_dy_xhat(const group_view *view, int64_t i) {
    return at(view, LNORM_DY, i) * xhat(view, i);
}

static double term_g_xhat(const group_view *view, int64_t i) {
    return g(view, i) * xhat(view, i);
}

static double term_v(const group_view *view, int64_t i) {
    return at(view, LNORM_V, i);
}

static double term_v_xhat(const group_view *view, int64_t i) {
    return at(view, LNORM_V, i) * xhat(view, i);
}

static double term_v_g(const group_view *view, int64_t i) {
    return at(view, LNORM_V, i) * g(view, i);
}

static double term_x_tangent(const group_view *view, int64_t i) {
    return at(view, LNORM_X_TANGENT, i);
}

static double term_x_tangent_xhat(const group_view *view, int64_t i) {
    return at(view, LNORM_X_TANGENT, i) * xhat(view, i);
}

/* -- Statistics --------------------------------------------------------------------------------------------------- */

static double reciprocal_root(const group_view *view, double v) {
    double radicand = v + view->problem->eps;
    if (radicand == 0.0)
        return 0.0;
    if (radicand < 0.0) /* a given variance below -eps; sqrt would say NaN, too, and set errno */
        return (double)NAN;
    return 1.0 / sqrt(radicand);
}

static void given_statistics(const group_view *view) {
    group_record *s = view->record;
    s->c = view->problem->center ? one(view, LNORM_MEAN) : 0.0;
    s->t = 0.0;
    if (has(view, LNORM_RSTD)) {
        s->r = one(view, LNORM_RSTD);
    } else {
        s->v = one(view, LNORM_VARIANCE);
        s->r = reciprocal_root(view, s->v);
    }
}

/* Path A: one pass. False where the difference of squares has cancelled too much (or is NaN). */
static int path_a(const group_view *view) {
    group_record *s = view->record;
    double m = mean(view, term_x), q = mean(view, term_x_x);
    s->c = m;
    s->t = 0.0;
    s->v = q - m * m;
    return view->space->count > LNORM_SHORT && s->v * LNORM_KAPPA >= m * m;
}

/* Path B: a second pass around c, the mean that path A has left; t is what c missed. */
static void path_b(const group_view *view) {
    group_record *s = view->record;
    s->t = mean(view, term_d);
    s->v = lnorm_shifted_variance(mean(view, term_d_d), s->t);
}

/* Returns the path taken: A, B, or - where there is no choice. */
static char statistics(const group_view *view) {
    group_record *s = view->record;
    char path = '-';
    if (!computed(view)) {
        given_statistics(view);
        return path;
    }
    if (!view->problem->center) {
        s->c = s->t = 0.0;
        s->v = mean(view, term_x_x);
    } else if (path_a(view)) {
        path = 'A';
    } else {
        path_b(view);
        path = 'B';
    }
    s->r = reciprocal_root(view, s->v);
    return path;
}

lnorm_statistics_narrow lnorm_reference_statistics(const lnorm_problem *problem, const lnorm_data *data,
                                                   int64_t group) {
    group_record s = {0};
    group_view view = view_of_group(problem, data, group, &s);
    statistics(&view);
    return (lnorm_statistics_narrow){s.c, s.t, s.v, s.r};
}

char lnorm_reference_path(const lnorm_problem *problem, const lnorm_data *data, int64_t group) {
    group_record record = {0};
    group_view view = view_of_group(problem, data, group, &record);
    return statistics(&view);
}

/* -- Means that the gradients need: none where the statistics are constants ---------------------------------------- */

/* ((w - a1) - xhat*a2), the part of w orthogonal to 1 and xhat; RMS omits a1. */
static double project(const group_view *view, int64_t i, double w, double mean_w, double mean_w_xhat) {
    double centered = view->problem->center ? w - mean_w : w;
    return centered - xhat(view, i) * mean_w_xhat;
}

static void means_of_dy(const group_view *view) {
    group_record *s = view->record;
    if (view->problem->center)
        s->c1 = mean(view, g);
    s->c2 = mean(view, term_g_xhat);
}

static void means_of_v(const group_view *view) {
    group_record *s = view->record;
    if (view->problem->center)
        s->a1 = mean(view, term_v);
    s->a2 = mean(view, term_v_xhat);
}

static void means_of_x_tangent(const group_view *view) {
    group_record *s = view->record;
    if (view->problem->center)
        s->a1 = mean(view, term_x_tangent);
    s->a2 = mean(view, term_x_tangent_xhat);
}

/* u = r*A; r*v where the statistics are constants. */
static double u(const group_view *view, int64_t i) {
    const group_record *s = view->record;
    double v = at(view, LNORM_V, i);
    return s->r * (constant(view) ? v : project(view, i, v, s->a1, s->a2));
}

static double term_dy_u(const group_view *view, int64_t i) {
    return at(view, LNORM_DY, i) * u(view, i);
}

/* -- What is one per group or one per element ---------------------------------------------------------------------- */

/* Running statistics of batch norm. An empty batch says nothing: they stay. */
static void update_running(const group_view *view) {
    const group_record *s = view->record;
    double q = view->problem->update, count = (double)view->space->count;
    if (view->space->count >= 1 && has(view, LNORM_RUNNING_MEAN)) {
        double old = one(view, LNORM_RUNNING_MEAN);
        put_one(view, LNORM_RUNNING_MEAN, (1.0 - q) * old + q * (s->c + s->t));
    }
    if (view->space->count >= 2 && has(view, LNORM_RUNNING_VAR)) {
        double old = one(view, LNORM_RUNNING_VAR), unbiased = (s->v * count) / (count - 1.0);
        put_one(view, LNORM_RUNNING_VAR, (1.0 - q) * old + q * unbiased);
    }
}

static void put_statistics(const group_view *view) {
    const group_record *s = view->record;
    put_one(view, LNORM_MEAN, s->c + s->t);
    put_one(view, LNORM_RSTD, s->r);
    update_running(view);
}

void lnorm_reference_put_statistics(const lnorm_problem *problem, const lnorm_data *data, int64_t group,
                                    lnorm_statistics_narrow statistics) {
    group_record record = {.c = statistics.c, .t = statistics.t, .v = statistics.v, .r = statistics.r};
    group_view view = view_of_group(problem, data, group, &record);
    put_statistics(&view);
}

static void finish_forward(const group_view *view) {
    if (computed(view))
        put_statistics(view);
    if (!has(view, LNORM_Y))
        return;
    for (int64_t i = 0; i < view->space->count; i++) {
        double y = times_weight(view, i, xhat(view, i));
        if (has(view, LNORM_BIAS))
            y = y + at(view, LNORM_BIAS, i);
        put(view, LNORM_Y, i, y);
    }
}

static void finish_backward(const group_view *view) {
    const group_record *s = view->record;
    for (int64_t i = 0; i < view->space->count; i++)
        put(view, LNORM_DX, i, s->r * (constant(view) ? g(view, i) : project(view, i, g(view, i), s->c1, s->c2)));
}

static double second_dx(const group_view *view, int64_t i) {
    const group_record *s = view->record;
    if (constant(view))
        return 0.0;
    double D = view->problem->center ? (s->b - s->a1 * s->c1) - s->a2 * s->c2 : s->b - s->a2 * s->c2;
    double A = project(view, i, at(view, LNORM_V, i), s->a1, s->a2);
    double C = project(view, i, g(view, i), s->c1, s->c2);
    return -((s->r * s->r) * ((xhat(view, i) * D + A * s->c2) + C * s->a2));
}

/* dx may be dy or x: everything that element i needs is read before it is written. */
static void finish_double_backward(const group_view *view) {
    for (int64_t i = 0; i < view->space->count; i++) {
        double ddy = has(view, LNORM_DDY) ? times_weight(view, i, u(view, i)) : 0.0;
        if (has(view, LNORM_DX))
            put(view, LNORM_DX, i, second_dx(view, i));
        if (has(view, LNORM_DDY))
            put(view, LNORM_DDY, i, ddy);
    }
}

/* A tangent that is absent takes its term with it; the sum of no terms is +0. */
static double y_tangent(const group_view *view, int64_t i) {
    const group_record *s = view->record;
    double total = 0.0;
    int terms = 0;
    if (has(view, LNORM_X_TANGENT)) {
        double w = at(view, LNORM_X_TANGENT, i);
        double xhat_tangent = s->r * (constant(view) ? w : project(view, i, w, s->a1, s->a2));
        total = times_weight(view, i, xhat_tangent);
        terms++;
    }
    if (has(view, LNORM_WEIGHT_TANGENT)) {
        double term = xhat(view, i) * at(view, LNORM_WEIGHT_TANGENT, i);
        total = terms++ ? total + term : term;
    }
    if (has(view, LNORM_BIAS_TANGENT)) {
        double term = at(view, LNORM_BIAS_TANGENT, i);
        total = terms++ ? total + term : term;
    }
    return total;
}

static void finish_forward_mode(const group_view *view) {
    const group_record *s = view->record;
    int moving = has(view, LNORM_X_TANGENT) && !constant(view);
    put_one(view, LNORM_MEAN_TANGENT, moving ? s->a1 : 0.0);
    put_one(view, LNORM_RSTD_TANGENT, moving ? -((s->r * s->r) * s->a2) : 0.0);
    if (!has(view, LNORM_Y_TANGENT))
        return;
    for (int64_t i = 0; i < view->space->count; i++)
        put(view, LNORM_Y_TANGENT, i, y_tangent(view, i));
}

static void prepare(const lnorm_problem *problem, const lnorm_data *data, int64_t group, void *record) {
    group_record local = {0};
    group_view view = view_of_group(problem, data, group, &local);
    statistics(&view);
    if (!constant(&view)) {
        if (has(&view, LNORM_V))
            means_of_v(&view);
        if (has(&view, LNORM_DY) && has(&view, LNORM_DX))
            means_of_dy(&view);
        if (has(&view, LNORM_V) && has(&view, LNORM_DX))
            local.b = mean(&view, term_v_g);
        if (has(&view, LNORM_X_TANGENT))
            means_of_x_tangent(&view);
    }
    memcpy(record, &local, sizeof local);
}

static void finish(const lnorm_problem *problem, const lnorm_data *data, int64_t group, const void *record) {
    group_record local;
    memcpy(&local, record, sizeof local);
    group_view view = view_of_group(problem, data, group, &local);
    switch ((lnorm_pass)problem->pass) {
    case LNORM_FORWARD:
        finish_forward(&view);
        break;
    case LNORM_BACKWARD:
        finish_backward(&view);
        break;
    case LNORM_DOUBLE_BACKWARD:
        finish_double_backward(&view);
        break;
    case LNORM_FORWARD_MODE:
        finish_forward_mode(&view);
        break;
    }
}

/* -- Affine gradients ---------------------------------------------------------------------------------------------- */

/* Number of the group that an index of `space`, a set of axes, contributes to: its part of the row-major number. */
static int64_t group_part(const lnorm_problem *problem, const lnorm_space *space, int64_t index) {
    int64_t part = 0;
    for (int i = space->axes; i-- > 0;) {
        int axis = space->axis[i];
        int64_t coordinate = index % problem->extent[axis];
        index /= problem->extent[axis];
        if (problem->reduced >> axis & 1)
            continue;
        for (int later = axis + 1; later < problem->axes; later++)
            if (!(problem->reduced >> later & 1))
                coordinate *= problem->extent[later];
        part += coordinate;
    }
    return part;
}

/* The record of a group as far as an affine gradient reads it: dbias nothing, dweight xhat or u. */
static void record_for_affine(group_view *view, enum lnorm_operand which, int64_t group, const char *records) {
    if (which == LNORM_DBIAS)
        return;
    if (records) {
        memcpy(view->record, records + group * (int64_t)sizeof(group_record), sizeof(group_record));
        return;
    }
    group_view whole = view_of_group(view->problem, view->data, group, view->record);
    statistics(&whole);
    if (has(&whole, LNORM_V) && !constant(&whole))
        means_of_v(&whole);
}

/* One entry: the axes that do not index it are inner ones, which the tree sums, and outer ones, summed in blocks of 64
 * in order, the blocks by the binary tree. */
static void affine(const lnorm_problem *problem, const lnorm_data *data, enum lnorm_operand which, int64_t entry,
                   const char *records) {
    uint32_t own = which == LNORM_DWEIGHT ? problem->weight_axes : problem->bias_axes;
    uint32_t all = (1u << problem->axes) - 1;
    lnorm_space entries = lnorm_space_of(problem, own);
    lnorm_space inner = lnorm_space_of(problem, all & ~own & problem->reduced);
    lnorm_space outer = lnorm_space_of(problem, all & ~own & ~problem->reduced);
    term_function *term = which == LNORM_DBIAS ? term_dy : lnorm_has(problem, LNORM_V) ? term_dy_u : term_dy_xhat;
    int64_t first_group = group_part(problem, &entries, entry);
    group_record record = {0};
    group_view view = {problem, data, &inner, {0}, &record};

    lnorm_tree tree;
    lnorm_tree_clear(&tree);
    for (int64_t first = 0; first < outer.count; first += LNORM_ROW_BLOCK) {
        double block = 0.0;
        for (int64_t i = first; i < outer.count && i < first + LNORM_ROW_BLOCK; i++) {
            set_base(&view, &entries, entry, &outer, i);
            record_for_affine(&view, which, first_group + group_part(problem, &outer, i), records);
            block = block + sum(&view, term);
        }
        lnorm_tree_push(&tree, block);
    }

    double total = lnorm_tree_total(&tree);
    set_base(&view, &entries, entry, &no_axes, 0);
    if (problem->accumulate)
        total = one(&view, which) + total;
    put_one(&view, which, total);
}

const lnorm_definition lnorm_definition_narrow = {sizeof(group_record), prepare, finish, affine};

#include "compact_end.inc"
