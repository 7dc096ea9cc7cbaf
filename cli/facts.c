#include "facts.h"
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add(facts *f, const char *label, const char *format, ...) LNORM_PRINTF(3, 4);
static void add(facts *f, const char *label, const char *format, ...) {
    fact *to = &f->at[f->count++];
    va_list values;
    to->label = label;
    va_start(values, format);
    vsnprintf(to->text, sizeof to->text, format, values);
    va_end(values);
}

static lnorm_kind kind_of(const scheme *s) {
    return s->op.kind;
}

static int is_rms(const scheme *s) {
    return kind_of(s) == LNORM_RMS_NORM;
}

static int per_channel(const scheme *s) {
    return kind_of(s) != LNORM_LAYER_NORM && kind_of(s) != LNORM_RMS_NORM;
}

/* "axis 2", "axes 1 and 2", "axes 0, 2 and 3" */
typedef struct axes_text {
    char at[100];
} axes_text;

static axes_text axes_between(uint32_t axes, int32_t from, int32_t to) {
    axes_text text;
    int32_t last = to - 1;
    while (last > from && !(axes >> last & 1))
        last--;
    uint32_t before = axes & ((1u << last) - 1) & ~((1u << from) - 1);
    size_t used = (size_t)snprintf(text.at, sizeof text.at, before ? "axes " : "axis ");
    for (int32_t a = from; a <= last; a++) {
        if (!(axes >> a & 1))
            continue;
        int more = (before >> a) != 0, two = (before >> a) > 1 && a < last;
        used += (size_t)snprintf(text.at + used, sizeof text.at - used, "%d%s", (int)a,
                                 a == last ? "" : two && more ? ", " : " and ");
    }
    return text;
}

static axes_text axes_text_of(uint32_t axes, int32_t ndim) {
    return axes_between(axes, 0, ndim);
}

/* -- Title and layout --------------------------------------------------------------------------------------------- */

static void add_title(facts *f, const scheme *s) {
    static const char *const names[] = {"Layer norm", "RMS norm", "Group norm", "Instance norm", "Batch norm"};
    const char *name = names[kind_of(s)];
    lnorm_text shape = lnorm_shape_text("", s->ndim, s->shape);
    lnorm_text affine = lnorm_shape_text("", s->affine_ndim, s->affine);
    axes_text axes = axes_text_of(s->axes, s->ndim);
    if (kind_of(s) == LNORM_GROUP_NORM)
        snprintf(f->title, sizeof f->title, "%s of %s: each sample's %lld channels (axis 1) in groups of %lld", name,
                 shape.at, (long long)s->shape[1], (long long)scheme_channels(s));
    else if (!per_channel(s) && !s->op.axes)
        snprintf(f->title, sizeof f->title, "%s of %s over %s: normalized_shape = %s", name, shape.at, axes.at,
                 affine.at);
    else if (s->axes)
        snprintf(f->title, sizeof f->title, "%s of %s over %s", name, shape.at, axes.at);
    else
        snprintf(f->title, sizeof f->title, "%s of %s: every element alone", name, shape.at);
}

static void add_layout(facts *f, const scheme *s) {
    const int32_t last = s->ndim - 1;
    char blocks[200] = "";
    if (s->ndim > 3)
        snprintf(blocks, sizeof blocks, "blocks downwards: %s; to the right: axis %d; in a block, ",
                 axes_between(~0u, 0, s->ndim - 3).at, (int)last - 2);
    else if (s->ndim == 3)
        snprintf(blocks, sizeof blocks, "blocks to the right: axis 0; in a block, ");
    if (s->ndim == 1)
        snprintf(f->layout, sizeof f->layout, "columns: axis 0. A number is that of the element's group.");
    else
        snprintf(f->layout, sizeof f->layout, "%srows: axis %d, columns: axis %d. A number is that of the element's "
                 "group.", blocks, (int)last - 1, (int)last);
    if (f->layout[0] >= 'a')
        f->layout[0] = (char)(f->layout[0] - 'a' + 'A');
}

/* -- Facts -------------------------------------------------------------------------------------------------------- */

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

static void add_groups(facts *f, const scheme *s) {
    const long long groups = (long long)s->problem->group.count, elements = (long long)s->problem->element.count;
    const char *shared = is_rms(s) ? "a mean square" : "a mean and a variance";
    if (groups == 1)
        add(f, "groups", "1: all %lld element%s share %s", elements, plural(elements), shared);
    else
        add(f, "groups", "%lld of %lld element%s each; %s share %s", groups, elements, plural(elements),
            scheme_members(s, -1).at, shared);
    if (is_rms(s))
        add(f, "statistics", "%lld mean square%s", groups, plural(groups));
    else
        add(f, "statistics", "%lld mean%s and %lld variance%s", groups, plural(groups), groups, plural(groups));
    if (!elements)
        add(f, "", "of no elements: NaN");
    else if (elements == 1 && !is_rms(s))
        add(f, "", "of a single element: every variance is 0, every result is the bias");
}

static void add_formula(facts *f, const scheme *s) {
    const long long elements = (long long)s->problem->element.count;
    if (is_rms(s)) {
        add(f, "formula", "y = x/sqrt(sum(x^2)/%lld + %g)*weight; no mean is removed", elements, s->problem->eps);
        return;
    }
    add(f, "formula", "y = (x - mean)/sqrt(variance + %g)*weight + bias,", s->problem->eps);
    add(f, "", "mean = sum(x)/%lld, variance = sum((x - mean)^2)/%lld", elements, elements);
}

static void add_parameters(facts *f, const scheme *s) {
    lnorm_text shape = lnorm_shape_text("", s->affine_ndim, s->affine);
    int64_t count = 1;
    for (int32_t i = 0; i < s->affine_ndim; i++)
        count *= s->affine[i];
    if (is_rms(s))
        add(f, "parameters", "%lld: weight %s, the same in every group; no bias, as a rule", (long long)count,
            shape.at);
    else
        add(f, "parameters", "%lld: weight %s and bias %s, %s", 2 * (long long)count, shape.at, shape.at,
            per_channel(s)                     ? "one of each per channel (axis 1)"
            : s->problem->group.count == 1 ? "one of each per element"
                                           : "the same in every group");
}

static void add_batch(facts *f, const scheme *s) {
    if (!(s->axes & 1))
        add(f, "batch", "each sample (index of axis 0) has statistics of its own: its result is the same in any batch, "
                        "in training and at inference. Nothing is kept between calls.");
    else
        add(f, "batch", "axis 0 is normalised over. If it is the batch, a sample's result changes with the other "
                        "samples, in training and at inference alike: nothing is kept between calls.");
}

static void add_running(facts *f, const scheme *s) {
    const long long elements = (long long)s->problem->element.count, channels = (long long)s->shape[1];
    add(f, "training", "a group runs through all samples (axis 0): a sample's result changes with the others in its "
                       "batch. Kept for inference, each of shape [%lld]:", channels);
    add(f, "", "running_mean <- (1 - q)*running_mean + q*mean");
    if (elements > 1)
        add(f, "", "running_var <- (1 - q)*running_var + q*variance*%lld/%lld, the unbiased variance", elements,
            elements - 1);
    else
        add(f, "", "running_var stays: %lld element%s no unbiased variance", elements,
            elements == 1 ? " has" : "s have");
    add(f, "", "q is the momentum, 0.1 as a rule; or 1/batches, for the average of all batches so far");
    add(f, "inference", "y = (x - running_mean)/sqrt(running_var + %g)*weight + bias: no sample changes another",
        s->problem->eps);
}

/* The other operations that this one is close to. */
static void add_relatives(facts *f, const scheme *s) {
    const int64_t channels = s->ndim > 1 ? s->shape[1] : 0;
    if (kind_of(s) == LNORM_INSTANCE_NORM)
        add(f, "the same as", "--op group --groups %lld: a group for each channel", (long long)channels);
    if (kind_of(s) == LNORM_GROUP_NORM && s->op.groups == channels)
        add(f, "the same as", "--op instance: a group for each channel");
    if (kind_of(s) == LNORM_GROUP_NORM && s->op.groups == 1)
        add(f, "compare", "layer norm over %s: the same statistics, but weight and bias for each element",
            axes_text_of(s->axes | 2u, s->ndim).at);
}

void facts_collect(facts *f, const scheme *s) {
    f->count = 0;
    add_title(f, s);
    add_layout(f, s);
    add_groups(f, s);
    add_formula(f, s);
    add_parameters(f, s);
    if (kind_of(s) == LNORM_BATCH_NORM)
        add_running(f, s);
    else
        add_batch(f, s);
    add_relatives(f, s);
}
