#include "scheme.h"

#include <stdio.h>
#include <string.h>

static void set_affine(scheme *s) {
    uint32_t axes = operation_affine(&s->op, s->ndim);
    for (int32_t a = 0; a < s->ndim; a++)
        if (axes >> a & 1)
            s->affine[s->affine_ndim++] = s->shape[a];
}

lnorm_status scheme_init(scheme *s, const lnorm_op *op, const lnorm_tensor *x, lnorm_error *error) {
    lnorm_io io = LNORM_IO_INIT;
    memset(s, 0, sizeof *s);
    io.x = x;
    lnorm_status status = lnorm_plan_init(&s->plan, op, &io, error);
    if (status)
        return status;
    s->op = *op;
    s->problem = &((const lnorm_plan_form *)(const void *)&s->plan)->problem;
    s->dtype = x->dtype;
    s->ndim = x->ndim;
    memcpy(s->shape, x->shape, (size_t)x->ndim * sizeof *s->shape);
    s->axes = operation_reduced(op, x->ndim);
    set_affine(s);
    return LNORM_OK;
}

/* The plan's axes are x's, split and merged in their order: row-major numbers stay what they are. */
int64_t scheme_group(const scheme *s, int64_t element) {
    const lnorm_problem *problem = s->problem;
    int64_t group = 0, step = 1;
    for (int axis = problem->axes; axis-- > 0; element /= problem->extent[axis])
        if (!(problem->reduced >> axis & 1)) {
            group += element % problem->extent[axis] * step;
            step *= problem->extent[axis];
        }
    return group;
}

int64_t scheme_channels(const scheme *s) {
    return s->op.kind == LNORM_GROUP_NORM ? s->shape[1] / s->op.groups : 0;
}

int64_t scheme_count(const scheme *s) {
    int64_t count = 1;
    for (int32_t a = 0; a < s->ndim; a++)
        count *= s->shape[a];
    return count;
}

/* -- Index expressions -------------------------------------------------------------------------------------------- */

/* The index of `group` along each axis that is not normalised over; along group norm's axis 1, the number of the group
 * among its sample's. */
static void place_of(const scheme *s, int64_t group, int64_t place[LNORM_MAX_NDIM]) {
    for (int32_t a = s->ndim; a-- > 0;) {
        int64_t extent = a == 1 && scheme_channels(s) ? s->op.groups : s->shape[a];
        if (s->axes >> a & 1)
            continue;
        place[a] = group % extent;
        group /= extent;
    }
}

static int any_index(const scheme *s, int32_t axis, int outer, char *text, size_t room) {
    static const char letters[LNORM_MAX_NDIM + 1] = "ijklmnopqrstuvwa";
    long long channels = (long long)scheme_channels(s);
    if (operation_chooses_axes(&s->op))
        return snprintf(text, room, "%c", letters[outer]);
    if (axis == 1 && channels == 1)
        return snprintf(text, room, "g:g+1");
    if (axis == 1 && channels)
        return snprintf(text, room, "%lldg:%lldg+%lld", channels, channels, channels);
    return snprintf(text, room, axis == 0 ? "n" : "c");
}

static int this_index(const scheme *s, int32_t axis, int64_t place, char *text, size_t room) {
    int64_t channels = axis == 1 ? scheme_channels(s) : 0;
    if (channels)
        return snprintf(text, room, "%lld:%lld", (long long)(place * channels), (long long)((place + 1) * channels));
    return snprintf(text, room, "%lld", (long long)place);
}

index_text scheme_members(const scheme *s, int64_t group) {
    index_text text;
    int64_t place[LNORM_MAX_NDIM];
    size_t used = (size_t)snprintf(text.at, sizeof text.at, "x[");
    int outer = 0;
    if (group >= 0)
        place_of(s, group, place);
    for (int32_t a = 0; a < s->ndim; a++) {
        char *at = text.at + used;
        size_t room = sizeof text.at - used;
        if (s->axes >> a & 1)
            used += (size_t)snprintf(at, room, ":");
        else
            used += (size_t)(group < 0 ? any_index(s, a, outer++, at, room) : this_index(s, a, place[a], at, room));
        used += (size_t)snprintf(text.at + used, sizeof text.at - used, a + 1 < s->ndim ? ", " : "]");
    }
    return text;
}
