#include "case_run.h"
#include "case_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const variant variants[] = {
    {"level 2, one call", 2, 0, 0, 0, 0}, {"level 2, plan and workspace", 2, 1, 0, 0, 0},
    {"level 2, in place", 2, 0, 1, 0, 0}, {"level 2, negative strides", 2, 1, 0, 1, 0},
    {"level 2, saved statistics", 2, 1, 0, 0, 1}, {"level 1", 1, 0, 0, 0, 0},
    {"level 1, workspace", 1, 1, 0, 0, 0}, {"level 1, in place", 1, 1, 1, 0, 0}};

/* ---- what a pass reads and writes -------------------------------------------------------------------------------- */

/* Forward passes give every statistic there is; gradients exist where the case expects them. */
static int writes(const runner *r, enum case_slot slot) {
    if (r->item->status != LNORM_OK)
        return slot == CASE_Y;
    if (r->pass != LNORM_FORWARD)
        return case_is_gradient(slot) && r->item->expect[slot].array.present;
    return slot == CASE_Y || slot == CASE_RSTD || (slot == CASE_MEAN && r->item->kind != LNORM_RMS_NORM);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static int fill_input(runner *r, enum case_slot slot, int mirrored) {
    const case_array *array = &r->item->input[slot];
    const case_generator *generator = &r->item->generator[slot];
    enum case_element element = r->item->element[slot];
    double scale = ldexp(1.0, generator->e);
    int64_t count = r->count[slot];
    for (int64_t i = 0; i < count; i++) {
        double value = array->present ? array->value[i] : case_generate(generator, (uint64_t)i, scale);
        uint64_t bits;
        if (!case_encode(element, value, &bits)) {
            case_fail(r, "%s[%" PRId64 "] = %a is no value of its type", case_slot_name[slot], i, value);
            return 0;
        }
        case_store(element, r->buffer[slot].data, mirrored ? count - 1 - i : i, bits);
    }
    r->input_digest[slot] = case_digest(element, r->buffer[slot].data, count);
    return 1;
}

static int fill_inputs(runner *r) {
    if (r->layout == r->variant->mirrored)
        return 1;
    for (int slot = 0; slot < CASE_FIRST_RESULT; slot++)
        if (case_has_input(r, (enum case_slot)slot) && !fill_input(r, (enum case_slot)slot, r->variant->mirrored))
            return 0;
    r->layout = r->variant->mirrored;
    return 1;
}

/* Chooses where results go and clears that memory. */
static void place_results(runner *r) {
    for (int slot = CASE_FIRST_RESULT; slot < CASE_SLOTS; slot++) {
        if (!writes(r, (enum case_slot)slot))
            continue;
        r->at[slot] = &r->buffer[slot];
        if (r->variant->in_place && (slot == CASE_Y || slot == CASE_DX)) {
            r->at[slot] = &r->buffer[slot == CASE_Y ? CASE_X : CASE_DY];
            r->layout = -1;
            r->totals->aliased += slot == CASE_DX && r->item->alias;
        } else
            case_buffer_clear(r->at[slot]);
    }
}

/* ---- level 2 ----------------------------------------------------------------------------------------------------- */

typedef struct level_2 {
    lnorm_op op;
    lnorm_io io;
    lnorm_tensor tensor[CASE_SLOTS];
    int64_t stride[CASE_FIRST_RESULT][LNORM_MAX_NDIM];
    int64_t flat; /* extent of statistics given as one axis */
} level_2;

static void describe_input(runner *r, level_2 *call, enum case_slot slot) {
    size_t size = case_element_size(r->item->element[slot]);
    lnorm_tensor *tensor = &call->tensor[slot];
    *tensor = lnorm_dense(r->buffer[slot].data, case_dtype(r->item->element[slot]), r->shape[slot].ndim,
                          r->shape[slot].extent);
    if (!r->variant->mirrored && !(slot == CASE_X && r->item->strides.present))
        return;
    for (int i = 0; i < tensor->ndim; i++)
        call->stride[slot][i] = r->variant->mirrored ? -r->strides[slot][i] : r->strides[slot][i];
    tensor->strides = call->stride[slot];
    if (r->variant->mirrored && r->count[slot] > 0)
        tensor->byte_offset = (uint64_t)(r->count[slot] - 1) * size;
}

static void describe_result(runner *r, level_2 *call, enum case_slot slot) {
    lnorm_tensor *tensor = &call->tensor[slot];
    *tensor = lnorm_dense(r->at[slot]->data, case_dtype(r->item->element[slot]), r->shape[slot].ndim,
                          r->shape[slot].extent);
    if ((slot == CASE_MEAN || slot == CASE_RSTD) && r->variant->workspace) {
        tensor->ndim = 1; /* the other form that statistics may have */
        tensor->shape = &call->flat;
    }
}

static void describe_op(runner *r, lnorm_op *op) {
    const layer_case *item = r->item;
    *op = (lnorm_op)LNORM_OP_INIT;
    op->kind = item->kind;
    op->pass = r->pass;
    op->eps = item->eps;
    op->groups = item->groups;
    op->affine_broadcast = item->broadcast;
    if (r->variant->saved && r->pass == LNORM_BACKWARD)
        op->statistics = LNORM_SAVED;
    if (item->axes.present) {
        op->axes = item->axes.extent;
        op->axes_count = item->axes.ndim;
    } else if (item->normalized_shape.present) {
        op->normalized_shape = item->normalized_shape.extent;
        op->normalized_ndim = item->normalized_shape.ndim;
    }
}

static void describe(runner *r, level_2 *call) {
    memset(call, 0, sizeof *call);
    describe_op(r, &call->op);
    call->io = (lnorm_io)LNORM_IO_INIT;
    call->flat = r->geometry.groups;
    const lnorm_tensor **in_io[CASE_SLOTS] = {
        [CASE_X] = &call->io.x,       [CASE_WEIGHT] = &call->io.weight,   [CASE_BIAS] = &call->io.bias,
        [CASE_DY] = &call->io.dy,     [CASE_V] = &call->io.v,             [CASE_Y] = &call->io.y,
        [CASE_MEAN] = &call->io.mean, [CASE_RSTD] = &call->io.rstd,       [CASE_DX] = &call->io.dx,
        [CASE_DDY] = &call->io.ddy,   [CASE_DWEIGHT] = &call->io.dweight, [CASE_DBIAS] = &call->io.dbias};
    for (int i = 0; i < CASE_SLOTS; i++) {
        enum case_slot slot = (enum case_slot)i;
        int saved = call->op.statistics == LNORM_SAVED &&
                    (slot == CASE_RSTD || (slot == CASE_MEAN && r->item->kind != LNORM_RMS_NORM));
        if (slot < CASE_FIRST_RESULT && case_has_input(r, slot))
            describe_input(r, call, slot);
        else if (slot >= CASE_FIRST_RESULT && (writes(r, slot) || saved))
            describe_result(r, call, slot);
        else
            continue;
        *in_io[slot] = &call->tensor[slot];
    }
}

/* A plan that failed must say so again, and whatever a plan says of the groups must be so. */
static void check_plan(runner *r, const lnorm_plan *plan, const level_2 *call, lnorm_status status) {
    if (status != LNORM_OK) {
        if (lnorm_execute(plan, &call->io, NULL) != status || lnorm_plan_workspace(plan) != 0 ||
            lnorm_plan_groups(plan) != 0)
            case_fail(r, "a plan that failed does not stay failed");
    } else if (lnorm_plan_groups(plan) != r->geometry.groups ||
               lnorm_plan_group_size(plan) != r->geometry.group_size)
        case_fail(r, "the plan has %" PRId64 " groups of %" PRId64 ", not %" PRId64 " of %" PRId64,
             lnorm_plan_groups(plan), lnorm_plan_group_size(plan), r->geometry.groups, r->geometry.group_size);
}

static lnorm_status execute_plan(runner *r, level_2 *call, lnorm_error *error) {
    lnorm_plan plan;
    lnorm_status status = lnorm_plan_init(&plan, &call->op, &call->io, error);
    check_plan(r, &plan, call, status);
    if (status != LNORM_OK)
        return status;
    case_buffer workspace;
    size_t bytes = lnorm_plan_workspace(&plan);
    if (!case_buffer_create(&workspace, bytes, 1)) /* any alignment will do: an odd one */
        return LNORM_OUT_OF_MEMORY;
    call->io.workspace = workspace.data;
    call->io.workspace_size = bytes;
    status = lnorm_plan_check(&plan, &call->io, error);
    if (status == LNORM_OK)
        status = lnorm_execute(&plan, &call->io, NULL);
    if (!case_buffer_intact(&workspace))
        case_fail(r, "bytes around the workspace were written");
    case_buffer_free(&workspace);
    return status;
}

static lnorm_status run_level_2(runner *r, lnorm_error *error) {
    level_2 call;
    describe(r, &call);
    return r->variant->workspace ? execute_plan(r, &call, error) : lnorm_run(&call.op, &call.io, NULL, error);
}

/* ---- level 1 ----------------------------------------------------------------------------------------------------- */

static lnorm_status run_level_1(runner *r) {
    case_level_1 call = {.kind = r->item->kind, .element = r->item->element[CASE_X], .eps = r->item->eps};
    call.rows = r->geometry.groups;
    call.cols = r->geometry.group_size;
    for (int slot = 0; slot < CASE_FIRST_RESULT; slot++)
        if (case_has_input(r, (enum case_slot)slot))
            call.in[slot] = r->buffer[slot].data;
    for (int slot = CASE_FIRST_RESULT; slot < CASE_SLOTS; slot++)
        if (writes(r, (enum case_slot)slot))
            call.out[slot] = r->at[slot]->data;
    if (r->pass == LNORM_FORWARD)
        return case_level_1_forward(&call);
    case_buffer workspace = {0};
    if (r->variant->workspace) {
        call.workspace_size = lnorm_backward_workspace(call.rows, call.cols);
        if (!case_buffer_create(&workspace, call.workspace_size, 1))
            return LNORM_OUT_OF_MEMORY;
        call.workspace = workspace.data;
    }
    lnorm_status status = case_level_1_backward(&call);
    if (workspace.memory && !case_buffer_intact(&workspace))
        case_fail(r, "bytes around the workspace were written");
    case_buffer_free(&workspace);
    return status;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void run_pass(runner *r, lnorm_pass pass) {
    lnorm_error error = LNORM_ERROR_INIT;
    r->pass = pass;
    if (!fill_inputs(r))
        return;
    place_results(r);
    lnorm_status status = r->variant->level == 1 ? run_level_1(r) : run_level_2(r, &error);
    if (r->item->status != LNORM_OK)
        case_check_error(r, status, &error);
    else if (status != LNORM_OK)
        case_fail(r, "\"%s\": %s", lnorm_status_string(status), error.message);
    else
        for (int slot = CASE_FIRST_RESULT; slot < CASE_SLOTS; slot++)
            if (writes(r, (enum case_slot)slot)) {
                case_check_result(r, (enum case_slot)slot);
                case_check_same_bits(r, (enum case_slot)slot);
            }
    case_check_memory(r);
    for (int slot = CASE_FIRST_RESULT; slot < CASE_SLOTS; slot++)
        r->at[slot] = &r->buffer[slot];
}

static int fits(const runner *r, const variant *v) {
    const layer_case *item = r->item;
    int small = item->size <= CASE_MEDIUM;
    if (v->level == 1 && !case_fits_level_1(item, &r->geometry))
        return 0;
    if (item->status != LNORM_OK)
        return !v->in_place && !v->mirrored && !v->saved && !(v->level == 1 && v->workspace);
    if (v->level == 1 && v->workspace && !v->in_place && !case_has_input(r, CASE_DY))
        return 0;
    if (item->size == CASE_HUGE) /* half the memory: y takes x's place */
        return v->in_place;
    if (v->in_place && (!small || item->strides.present || item->element[CASE_X] != item->element[CASE_Y] ||
                        item->double_backward)) /* whose outputs need memory of their own */
        return 0;
    if (v->saved && (!small || !case_has_input(r, CASE_DY) || item->double_backward))
        return 0;
    return !v->mirrored || small;
}

static void run_variant(runner *r, const variant *v) {
    r->variant = v;
    if (!r->item->double_backward)
        run_pass(r, LNORM_FORWARD);
    if (r->item->status == LNORM_OK && case_has_input(r, CASE_DY))
        run_pass(r, r->item->double_backward ? LNORM_DOUBLE_BACKWARD : LNORM_BACKWARD);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void row_major(const case_shape *shape, int64_t *strides) {
    int64_t step = 1;
    for (int i = shape->ndim; i-- > 0; step *= shape->extent[i])
        strides[i] = step;
}

/* Shapes, strides and counts of every array; 0: the case contradicts itself. */
static int lay_out(runner *r) {
    const layer_case *item = r->item;
    for (int i = 0; i < CASE_SLOTS; i++) {
        enum case_slot slot = (enum case_slot)i;
        int affine = slot == CASE_WEIGHT || slot == CASE_BIAS || slot == CASE_DWEIGHT || slot == CASE_DBIAS;
        if (slot == CASE_MEAN || slot == CASE_RSTD)
            r->shape[slot] = r->geometry.statistic;
        else if (affine)
            r->shape[slot] = case_affine_shape(item, &r->geometry,
                                               slot == CASE_WEIGHT || slot == CASE_DWEIGHT ? CASE_WEIGHT : CASE_BIAS);
        else
            r->shape[slot] = item->shape;
        r->count[slot] = case_shape_count(&r->shape[slot]);
        r->at[slot] = &r->buffer[slot];
        if (slot >= CASE_FIRST_RESULT)
            continue;
        row_major(&r->shape[slot], r->strides[slot]);
        if (slot == CASE_X && item->strides.present) {
            memcpy(r->strides[slot], item->strides.extent, sizeof item->strides.extent);
            r->count[slot] = item->input[slot].count;
        } else if (item->input[slot].present && item->input[slot].count != r->count[slot]) {
            case_fail(r, "%s lists %" PRId64 " values for %" PRId64 " elements", case_slot_name[slot],
                 item->input[slot].count, r->count[slot]);
            return 0;
        }
    }
    return 1;
}

static int needs_memory(const runner *r, enum case_slot slot) {
    if (slot < CASE_FIRST_RESULT)
        return case_has_input(r, slot);
    if (slot == CASE_Y)
        return r->item->size != CASE_HUGE; /* runs in place */
    return slot == CASE_MEAN || slot == CASE_RSTD || r->item->expect[slot].array.present;
}

/* What the system can give, in bytes; SIZE_MAX where it does not say. An overcommitted malloc would succeed and the
 * process be killed later. */
static size_t available_memory(void) {
    char line[128];
    size_t kib = SIZE_MAX;
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file)
        return SIZE_MAX;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %zu kB", &kib) == 1)
            break;
    fclose(file);
    return kib == SIZE_MAX ? SIZE_MAX : kib * 1024;
}

/* 0: no memory, which is printed. */
static int allocate(runner *r, int number) {
    size_t bytes[CASE_SLOTS] = {0}, total = 0;
    for (int slot = 0; slot < CASE_SLOTS; slot++)
        if (needs_memory(r, (enum case_slot)slot)) {
            bytes[slot] = (size_t)r->count[slot] * case_element_size(r->item->element[slot]);
            total += bytes[slot];
        }
    int enough = r->item->size < CASE_LARGE || total < available_memory();
    for (int slot = 0; enough && slot < CASE_SLOTS; slot++)
        if (needs_memory(r, (enum case_slot)slot)) /* the shift: arrays at every alignment their type allows */
            enough = case_buffer_create(&r->buffer[slot], bytes[slot],
                                        (size_t)((number + slot) % 8) * case_element_size(r->item->element[slot]));
    if (!enough)
        printf("NOT RUN: %s.json, case %s needs %.1f GB of memory; this machine has %.1f GB available\n",
               r->totals->file, r->item->id, (double)total * 1e-9, (double)available_memory() * 1e-9);
    return enough;
}

void case_run(const layer_case *item, int number, enum case_size largest, case_totals *totals) {
    if (item->size > largest) {
        totals->not_run++;
        return;
    }
    runner *r = calloc(1, sizeof *r);
    if (!r) {
        totals->not_run++;
        return;
    }
    r->item = item;
    r->totals = totals;
    r->layout = -1;
    r->geometry = case_geometry_of(item);
    if (!lay_out(r) || !allocate(r, number))
        totals->not_run++;
    else {
        totals->run++;
        totals->level_1 += case_fits_level_1(item, &r->geometry);
        for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
            if (fits(r, &variants[i]))
                run_variant(r, &variants[i]);
        for (int slot = CASE_FIRST_RESULT; slot < CASE_SLOTS; slot++)
            if (item->expect[slot].array.present && !r->has_digest[slot])
                case_fail(r, "%s is expected and no run gave it", case_slot_name[slot]);
    }
    for (int slot = 0; slot < CASE_SLOTS; slot++)
        case_buffer_free(&r->buffer[slot]);
    free(r);
}
