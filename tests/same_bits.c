/* A fixed list of operations, one line each: a hash of all result bits, and what was computed. Every build of lnorm, on
 * every machine, must print exactly tests/vectors/same_bits.txt. Needs lnorm.h and the C library, nothing else.
 *
 *     same_bits            as it is
 *     same_bits hostile    called in each rounding mode and, where there is such a thing, with subnormals flushed to 0
 *                          and traps unmasked; a way of running an operation has an environment of its own
 *
 * Each operation runs in several ways: memory layouts, with and without workspace, tasks from the last to the first,
 * level 1 where it fits. A way whose bits differ from the first one's is printed, and the exit status is 1.
 *
 * Hash: 64-bit FNV-1a over the results in the order of `roles` below, elements in logical order, bytes from the lowest,
 * every NaN replaced by the positive quiet one without payload. Inputs are bit patterns made of integers by splitmix64:
 * there is no floating-point arithmetic in this file that a rounding mode or a compiler could change. */
#include "same_bits_data.h"
#include <inttypes.h>

/* ---- operations ------------------------------------------------------------------------------------------------ */

typedef struct mix {
    const char *name;
    int in, out, weight, bias, statistic; /* formats of x dy v; y dx ddy; ... */
} mix;

typedef struct operation {
    lnorm_op op;
    const mix *mix;
    int fill;
    int ndim;
    int64_t shape[MAX_NDIM];
    int64_t group_size;
    int weight_ndim, bias_ndim;
    int64_t weight_shape[MAX_NDIM], bias_shape[MAX_NDIM];
    unsigned absent;     /* bit r: roles[r] is NULL */
    int variance_given;  /* constant statistics: variance instead of rstd */
    int rows_of_level1;  /* this is a level 1 operation as well */
    const char *note;    /* ends the line */
} operation;

enum shape_class { ELEMENTS, WEIGHT, BIAS, GROUPS, CHANNELS };
#define PASS(pass) (1u << LNORM_##pass)
#define ALL (PASS(FORWARD) | PASS(BACKWARD) | PASS(DOUBLE_BACKWARD) | PASS(FORWARD_MODE))
enum { X, WEIGHT_ROLE, BIAS_ROLE, Y, MEAN, RSTD, VARIANCE, RUNNING_MEAN, RUNNING_VAR, DX = 10, DWEIGHT, DBIAS };
static const struct {
    size_t member; /* of lnorm_io */
    enum shape_class shape;
    unsigned reads, writes; /* by which passes; mean, rstd and variance: see uses() */
} roles[] = {
    {offsetof(lnorm_io, x), ELEMENTS, ALL, 0},
    {offsetof(lnorm_io, weight), WEIGHT, ALL, 0},
    {offsetof(lnorm_io, bias), BIAS, ALL, 0},
    {offsetof(lnorm_io, y), ELEMENTS, 0, PASS(FORWARD)},
    {offsetof(lnorm_io, mean), GROUPS, 0, 0},
    {offsetof(lnorm_io, rstd), GROUPS, 0, 0},
    {offsetof(lnorm_io, variance), GROUPS, 0, 0},
    {offsetof(lnorm_io, running_mean), CHANNELS, PASS(FORWARD), PASS(FORWARD)},
    {offsetof(lnorm_io, running_var), CHANNELS, PASS(FORWARD), PASS(FORWARD)},
    {offsetof(lnorm_io, dy), ELEMENTS, PASS(BACKWARD) | PASS(DOUBLE_BACKWARD), 0},
    {offsetof(lnorm_io, dx), ELEMENTS, 0, PASS(BACKWARD) | PASS(DOUBLE_BACKWARD)},
    {offsetof(lnorm_io, dweight), WEIGHT, 0, PASS(BACKWARD) | PASS(DOUBLE_BACKWARD)},
    {offsetof(lnorm_io, dbias), BIAS, 0, PASS(BACKWARD)},
    {offsetof(lnorm_io, v), ELEMENTS, PASS(DOUBLE_BACKWARD), 0},
    {offsetof(lnorm_io, ddy), ELEMENTS, 0, PASS(DOUBLE_BACKWARD)},
    {offsetof(lnorm_io, x_tangent), ELEMENTS, PASS(FORWARD_MODE), 0},
    {offsetof(lnorm_io, weight_tangent), WEIGHT, PASS(FORWARD_MODE), 0},
    {offsetof(lnorm_io, bias_tangent), BIAS, PASS(FORWARD_MODE), 0},
    {offsetof(lnorm_io, y_tangent), ELEMENTS, 0, PASS(FORWARD_MODE)},
    {offsetof(lnorm_io, mean_tangent), GROUPS, 0, PASS(FORWARD_MODE)},
    {offsetof(lnorm_io, rstd_tangent), GROUPS, 0, PASS(FORWARD_MODE)},
};
enum { ROLES = sizeof roles / sizeof roles[0] };

/* Does the operation read (1) or write (2) this role? */
static int uses(const operation *o, int role) {
    unsigned pass = 1u << o->op.pass;
    int rms = o->op.kind == LNORM_RMS_NORM, given = o->op.statistics != LNORM_COMPUTED;
    const size_t member = roles[role].member;
    if (o->absent >> role & 1)
        return 0;
    if (rms && (member == offsetof(lnorm_io, mean) || member == offsetof(lnorm_io, mean_tangent)))
        return 0;
    if (role == VARIANCE)
        return given && o->variance_given;
    if (role == RSTD && given)
        return !o->variance_given;
    if (role == MEAN || role == RSTD)
        return given ? 1 : o->op.pass == LNORM_FORWARD ? 2 : 0;
    if (roles[role].shape == CHANNELS && (o->op.kind != LNORM_BATCH_NORM || given))
        return 0;
    return (roles[role].reads & pass ? 1 : 0) | (roles[role].writes & pass ? 2 : 0);
}

static void make_role(const operation *o, int role, view *v, enum layout layout, uint64_t seed) {
    int written = uses(o, role) & 2, fill = NORMAL;
    int64_t total = 1, groups;
    for (int axis = 0; axis < o->ndim; axis++)
        total *= o->shape[axis];
    groups = o->group_size > 0 ? total / o->group_size : o->shape[0];
    switch (roles[role].shape) {
    case ELEMENTS:
        make_view(v, written ? o->mix->out : o->mix->in, o->ndim, o->shape, layout);
        break;
    case WEIGHT:
        make_view(v, o->mix->weight, o->weight_ndim, o->weight_shape, layout);
        break;
    case BIAS:
        make_view(v, o->mix->bias, o->bias_ndim, o->bias_shape, layout);
        break;
    case GROUPS:
        make_view(v, o->mix->statistic, 1, &groups, layout);
        break;
    case CHANNELS:
        make_view(v, o->mix->statistic, 1, &o->shape[1], layout);
        break;
    }
    if (role == X)
        fill = o->fill;
    else if (role == RSTD || role == VARIANCE || role == RUNNING_VAR)
        fill = POSITIVE;
    fill_view(v, fill, o->ndim && o->shape[o->ndim - 1] > 0 ? o->shape[o->ndim - 1] : 1, seed + (uint64_t)role);
}

#include "same_bits_hostile.h"

/* ---- running --------------------------------------------------------------------------------------------------- */

enum { WITHOUT_WORKSPACE = 1, LAST_TASK_FIRST = 2, LEVEL1 = 4 };
static const struct way {
    const char *name;
    enum layout layout;
    int flags;
} ways[] = {
    {"dense", DENSE, 0},
    {"dense, without workspace", DENSE, WITHOUT_WORKSPACE},
    {"dense, last task first", DENSE, LAST_TASK_FIRST},
    {"rows with gaps", PADDED, 0},
    {"negative strides", BACKWARDS, LAST_TASK_FIRST},
    {"column-major", COLUMN_MAJOR, 0},
    {"level 1", DENSE, LEVEL1},
    {"level 1, without workspace", DENSE, LEVEL1 | WITHOUT_WORKSPACE},
};

#define AT(role) (io->role ? io->role->data : NULL)
#define LEVEL1_FUNCTION(format, type, statistic)                                                                       \
    static lnorm_status level1_##format(const operation *o, const lnorm_io *io, void *workspace, size_t bytes) {       \
        int64_t rows = o->shape[0], cols = o->shape[1];                                                                \
        type *y = AT(y), *dx = AT(dx), *dweight = AT(dweight), *dbias = AT(dbias);                                     \
        const type *x = AT(x), *weight = AT(weight), *bias = AT(bias), *dy = AT(dy);                                   \
        statistic *mean = AT(mean), *rstd = AT(rstd);                                                                  \
        if (o->op.kind == LNORM_RMS_NORM)                                                                              \
            return o->op.pass == LNORM_FORWARD                                                                         \
                       ? lnorm_rms_norm_##format(y, rstd, x, weight, rows, cols, o->op.eps)                            \
                       : lnorm_rms_norm_backward_##format(dx, dweight, dy, x, weight, rows, cols, o->op.eps,           \
                                                          workspace, bytes);                                           \
        return o->op.pass == LNORM_FORWARD                                                                             \
                   ? lnorm_layer_norm_##format(y, mean, rstd, x, weight, bias, rows, cols, o->op.eps)                  \
                   : lnorm_layer_norm_backward_##format(dx, dweight, dbias, dy, x, weight, rows, cols, o->op.eps,      \
                                                        workspace, bytes);                                             \
    }
LEVEL1_FUNCTION(f64, double, double)
LEVEL1_FUNCTION(f32, float, float)
LEVEL1_FUNCTION(f16, uint16_t, float)
LEVEL1_FUNCTION(bf16, uint16_t, float)

static lnorm_status run_level1(const operation *o, const lnorm_io *io, int flags) {
    static lnorm_status (*const functions[])(const operation *, const lnorm_io *, void *, size_t) = {
        [F64] = level1_f64, [F32] = level1_f32, [F16] = level1_f16, [BF16] = level1_bf16};
    size_t bytes = flags & WITHOUT_WORKSPACE ? 0 : lnorm_backward_workspace(o->shape[0], o->shape[1]);
    return functions[o->mix->in](o, io, bytes ? take(bytes) : NULL, bytes);
}

static lnorm_status run_plan(const operation *o, lnorm_io *io, int flags, lnorm_error *error) {
    lnorm_plan plan;
    lnorm_status status = lnorm_plan_init(&plan, &o->op, io, error);
    if (status)
        return status;
    io->workspace_size = flags & WITHOUT_WORKSPACE ? 0 : lnorm_plan_workspace(&plan);
    io->workspace = io->workspace_size ? take(io->workspace_size) : NULL;
    if (!(flags & LAST_TASK_FIRST))
        return lnorm_execute(&plan, io, NULL);
    status = lnorm_plan_check(&plan, io, error);
    for (int phase = 0; !status && phase < lnorm_plan_phases(&plan); phase++)
        for (int64_t task = lnorm_plan_tasks(&plan, phase); !status && task-- > 0;)
            status = lnorm_plan_run(&plan, io, phase, task);
    return status;
}

/* The hash of one way of running an operation; the seed, and with it every input, is the same for all ways. */
static uint64_t run_way(const operation *o, const struct way *way, uint64_t seed) {
    static view views[ROLES];
    lnorm_io io = LNORM_IO_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_status status;
    uint64_t hash = hash_start;
    arena_used = 0;
    for (int role = 0; role < ROLES; role++) {
        const lnorm_tensor *tensor = &views[role].tensor;
        if (!uses(o, role))
            continue;
        make_role(o, role, &views[role], way->layout, seed);
        memcpy((char *)&io + roles[role].member, &tensor, sizeof tensor);
    }
    enter_hostile((int)(way - ways));
    status = way->flags & LEVEL1 ? run_level1(o, &io, way->flags) : run_plan(o, &io, way->flags, &error);
    if (!leave_hostile()) {
        printf("the floating-point environment was changed: ");
        return 0;
    }
    if (status) {
        printf("%s: %s: ", lnorm_status_string(status), error.message);
        return 0;
    }
    for (int role = 0; role < ROLES; role++)
        if (uses(o, role) & 2)
            hash = hash_view(hash, &views[role]);
    return hash;
}

/* Groups longer than this skip ways that are slow: without workspace x is read anew for each entry of dweight. */
enum { LONG_GROUP = 300, LONG_WITHOUT_WORKSPACE = 70 };

static int is_possible(const operation *o, const struct way *way) {
    if (way->flags & LEVEL1 && !o->rows_of_level1)
        return 0;
    if (way->flags & WITHOUT_WORKSPACE && (o->group_size > LONG_WITHOUT_WORKSPACE || o->op.pass == LNORM_FORWARD))
        return 0;
    return way->layout == DENSE || o->group_size <= LONG_GROUP;
}

static int failures;

static void describe(const operation *o, char *text, size_t size) {
    static const char *const kinds[] = {"layer", "rms", "group", "instance", "batch"};
    static const char *const passes[] = {"forward", "backward", "double_backward", "forward_mode"};
    static const char *const statistics[] = {"computed", "saved", "constant"};
    int used = snprintf(text, size, "%s %s %s %s [", kinds[o->op.kind], passes[o->op.pass], o->mix->name,
                        statistics[o->op.statistics]);
    for (int axis = 0; axis < o->ndim; axis++)
        used += snprintf(text + used, size - (size_t)used, axis ? ",%d" : "%d", (int)o->shape[axis]);
    snprintf(text + used, size - (size_t)used, "] %s%s%s%s", fill_names[o->fill], o->note ? " " : "",
             o->note ? o->note : "", o->op.arithmetic == LNORM_FAST ? " fast" : "");
}

static void run(const operation *o) {
    char text[200];
    uint64_t seed, first = 0;
    describe(o, text, sizeof text);
    seed = hash_text(text);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        uint64_t hash;
        if (!is_possible(o, &ways[i]))
            continue;
        hash = run_way(o, &ways[i], seed);
        if (i == 0)
            printf("%016" PRIx64 " %s\n", first = hash, text);
        else if (hash != first)
            printf("%016" PRIx64 " %s DIFFERS: %s\n", hash, text, ways[i].name);
        failures += hash == 0 || hash != first;
    }
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

static const mix mixes[] = {
    {"f64", F64, F64, F64, F64, F64},
    {"f32", F32, F32, F32, F32, F32},
    {"f16", F16, F16, F16, F16, F32},
    {"bf16", BF16, BF16, BF16, BF16, F32},
    {"bf16/f32", BF16, BF16, F32, F32, F32}, /* x and y bf16, parameters f32 */
    {"f16/f32", F16, F16, F32, F32, F64},
    {"f32/f64", F32, F32, F64, F32, F32}, /* the weight makes it wide */
    {"bf16-f64/f16+f32", BF16, F64, F16, F32, F64}, /* not wide: no input is f64 */
};
enum { HOMOGENEOUS = 4, SWEPT = 5, MIXES = sizeof mixes / sizeof mixes[0] };
static const mix *const f32_only = &mixes[1];

static operation rows_operation(lnorm_kind kind, lnorm_pass pass, int which, int64_t rows, int64_t cols, int fill) {
    operation o = {.op = LNORM_OP_INIT, .mix = &mixes[which], .fill = fill, .ndim = 2, .shape = {rows, cols}};
    o.op.kind = kind;
    o.op.pass = pass;
    o.group_size = o.weight_shape[0] = o.bias_shape[0] = cols;
    o.weight_ndim = o.bias_ndim = 1;
    o.rows_of_level1 = which < HOMOGENEOUS && pass <= LNORM_BACKWARD;
    if (kind == LNORM_RMS_NORM) /* as at level 1 */
        o.absent = 1u << BIAS_ROLE | 1u << DBIAS;
    if (fill == HARD || fill == LIMITS)
        o.op.eps = 0.0;
    return o;
}

static void run_rows(int which, int64_t cols, int fill) {
    int64_t rows = cols < 100 ? 9 : cols <= LONG_GROUP ? 5 : cols <= 1000 ? 4 : 2;
    for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++) {
            operation o = rows_operation((lnorm_kind)kind, (lnorm_pass)pass, which, rows, cols, fill);
            run(&o);
        }
}

static void list_row_lengths(void) {
    static const int64_t lengths[] = {1, 2, 3, 16, 17, 64, 67, 255, 256, 257, 768, 1000, 4097};
    for (int which = 0; which < SWEPT; which++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            run_rows(which, lengths[i], NORMAL);
            if (lengths[i] <= 1000)
                run_rows(which, lengths[i], HARD);
        }
    for (int which = 0; which < MIXES; which++) {
        run_rows(which, 35, POISON);
        run_rows(which, 67, NORMAL);
    }
}

/* More than 64 rows: the sums over rows enter the tree in blocks. No rows, no columns. */
static void list_row_counts(void) {
    static const int64_t shapes[][2] = {{64, 3}, {65, 17}, {200, 5}, {0, 5}, {3, 0}, {0, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int which = 0; which < 2; which++)
            for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++)
                for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++) {
                    operation o = rows_operation((lnorm_kind)kind, (lnorm_pass)pass, which, shapes[i][0], shapes[i][1],
                                                 NORMAL);
                    run(&o);
                }
}

static void list_statistics(void) {
    static const int64_t lengths[] = {3, 67, 257};
    for (int which = 0; which < MIXES; which++)
        for (size_t i = 0; i < 3; i++)
            for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++)
                for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++)
                    for (int way = 0; way < 3; way++) {
                        operation o = rows_operation((lnorm_kind)kind, (lnorm_pass)pass, which, 6, lengths[i], NORMAL);
                        o.op.statistics = way == 0 ? LNORM_SAVED : LNORM_CONSTANT;
                        o.variance_given = way == 2;
                        o.note = way == 2 ? "variance" : NULL;
                        o.rows_of_level1 = 0;
                        run(&o);
                    }
}

/* Layer norm of one row length with one thing changed. */
static void list_options(void) {
    static const struct {
        const char *note;
        unsigned absent;
        int weight_offset, accumulate;
        double eps;
    } options[] = {
        {"no weight", 1u << WEIGHT_ROLE, 0, 0, 1e-5},
        {"no bias", 1u << BIAS_ROLE, 0, 0, 1e-5},
        {"plain", 1u << WEIGHT_ROLE | 1u << BIAS_ROLE, 0, 0, 1e-5},
        {"1 + weight", 0, 1, 0, 1e-5},
        {"accumulate", 0, 0, 1, 1e-5},
        {"only statistics", 1u << Y, 0, 0, 1e-5},
        {"only y or dx", 1u << MEAN | 1u << RSTD | 1u << DWEIGHT | 1u << DBIAS, 0, 0, 1e-5},
        {"only dweight", 1u << DX | 1u << DBIAS, 0, 0, 1e-5},
        {"only dbias", 1u << DX | 1u << DWEIGHT, 0, 0, 1e-5},
        {"default eps", 0, 0, 0, LNORM_EPS_DEFAULT},
        {"eps 1e-12", 0, 0, 0, 1e-12},
        {"eps 1e300", 0, 0, 0, 1e300},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        for (int which = 0; which < MIXES; which++)
            for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++)
                for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++) {
                    operation o = rows_operation((lnorm_kind)kind, (lnorm_pass)pass, which, 7, 67, NORMAL);
                    o.absent |= options[i].absent;
                    o.op.weight_offset = options[i].weight_offset;
                    o.op.accumulate = options[i].accumulate;
                    o.op.eps = options[i].eps;
                    o.note = options[i].note;
                    o.rows_of_level1 &= !o.op.weight_offset && !o.op.accumulate;
                    if (pass == LNORM_FORWARD || (kind == LNORM_LAYER_NORM || strcmp(o.note, "only dbias") != 0))
                        run(&o);
                }
}

static void run_passes(operation o, int passes) {
    for (int which = 0; which < MIXES; which++)
        for (int pass = LNORM_FORWARD; pass < passes; pass++) {
            o.mix = &mixes[which];
            o.op.pass = (lnorm_pass)pass;
            run(&o);
        }
}

static void list_axes(void) {
    static const int64_t odd[] = {2, 0}, middle[] = {-2}, all[] = {0, 1, 2, 3}, first[] = {0};
    static const struct {
        const char *note;
        const int64_t *axes;
        int32_t count;
        int64_t group_size;
        int64_t affine[MAX_NDIM];
    } sets[] = {
        {"axes 0 2", odd, 2, 3 * 7, {3, 7}},
        {"axis -2", middle, 1, 7, {7}},
        {"all axes", all, 4, 3 * 5 * 7 * 4, {3, 5, 7, 4}},
        {"axis 0", first, 1, 3, {3}},
    };
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++) {
            operation o = {.op = LNORM_OP_INIT, .mix = f32_only, .ndim = 4, .shape = {3, 5, 7, 4}};
            o.op.kind = (lnorm_kind)kind;
            o.op.axes = sets[i].axes;
            o.op.axes_count = o.weight_ndim = o.bias_ndim = sets[i].count;
            o.group_size = sets[i].group_size;
            memcpy(o.weight_shape, sets[i].affine, sizeof o.weight_shape);
            memcpy(o.bias_shape, sets[i].affine, sizeof o.bias_shape);
            o.note = sets[i].note;
            run_passes(o, LNORM_FORWARD_MODE + 1);
        }
}

/* Weight [4,1,33] (adaptive layer norm) with bias [1]; weight [4,6,1] (per row) with bias [33]. */
static void list_broadcast(void) {
    operation o = {.op = LNORM_OP_INIT, .mix = f32_only, .ndim = 3, .shape = {4, 6, 33}, .group_size = 33};
    o.op.affine_broadcast = 1;
    o.weight_ndim = 3;
    o.bias_ndim = 1;
    o.weight_shape[0] = 4;
    o.weight_shape[1] = 1;
    o.weight_shape[2] = 33;
    o.bias_shape[0] = 1;
    o.note = "weight [4,1,33] bias [1]";
    run_passes(o, LNORM_FORWARD_MODE + 1);
    o.weight_shape[1] = 6;
    o.weight_shape[2] = 1;
    o.bias_shape[0] = 33;
    o.note = "weight [4,6,1] bias [33]";
    run_passes(o, LNORM_FORWARD_MODE + 1);
}

static void list_channels(void) {
    static const struct {
        lnorm_kind kind;
        const char *note;
        int64_t groups, shape[MAX_NDIM], group_size;
        lnorm_statistics statistics;
        int64_t batches;
    } kinds[] = {
        {LNORM_GROUP_NORM, "2 groups", 2, {3, 8, 5, 5}, 100, LNORM_COMPUTED, 0},
        {LNORM_GROUP_NORM, "8 groups", 8, {3, 8, 5, 5}, 25, LNORM_COMPUTED, 0},
        {LNORM_GROUP_NORM, "1 group", 1, {2, 6, 1, 1}, 6, LNORM_COMPUTED, 0},
        {LNORM_INSTANCE_NORM, NULL, 0, {3, 8, 5, 5}, 25, LNORM_COMPUTED, 0},
        {LNORM_BATCH_NORM, "momentum", 0, {3, 8, 5, 5}, 75, LNORM_COMPUTED, 0},
        {LNORM_BATCH_NORM, "momentum", 0, {3, 2, 10, 10}, 300, LNORM_COMPUTED, 0}, /* a full block of a channel */
        {LNORM_BATCH_NORM, "cumulative", 0, {70, 3, 2, 1}, 140, LNORM_COMPUTED, 3},
        {LNORM_BATCH_NORM, "one element", 0, {1, 4, 1, 1}, 1, LNORM_COMPUTED, 0},
        {LNORM_BATCH_NORM, "inference", 0, {3, 8, 5, 5}, 75, LNORM_CONSTANT, 0},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        operation o = {.op = LNORM_OP_INIT, .mix = f32_only, .ndim = 4, .weight_ndim = 1, .bias_ndim = 1};
        o.op.kind = kinds[i].kind;
        o.op.groups = kinds[i].groups;
        o.op.statistics = kinds[i].statistics;
        o.op.batches = kinds[i].batches;
        o.variance_given = kinds[i].statistics == LNORM_CONSTANT;
        memcpy(o.shape, kinds[i].shape, sizeof o.shape);
        o.group_size = kinds[i].group_size;
        o.weight_shape[0] = o.bias_shape[0] = o.shape[1];
        o.note = kinds[i].note;
        run_passes(o, LNORM_BACKWARD + 1);
    }
}

#include "same_bits_fast.h"
#include "same_bits_limits.h"

int main(int argc, char **argv) {
    hostile = argc > 1 && strcmp(argv[1], "hostile") == 0;
    if (argc > 2 || (argc == 2 && !hostile)) {
        fprintf(stderr, "usage: same_bits [hostile]\n");
        return 2;
    }
    if (!lnorm_isa()) {
        fprintf(stderr, "same_bits: LNORM_ISA names an instruction set that this machine or build does not have\n");
        return 77;
    }
    list_row_lengths();
    list_row_counts();
    list_statistics();
    list_options();
    list_axes();
    list_broadcast();
    list_channels();
    list_fast_rows();
    list_fast_options();
    list_fast_tensors();
    list_limits();
    list_foreign_statistics();
    list_channel_broadcast();
    list_unrounded();
    if (failures)
        fprintf(stderr, "same_bits: %d results failed or differ from the first way of computing them\n", failures);
    return failures != 0;
}
