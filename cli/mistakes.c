#include "mistakes.h"
#include "report.h"
#include "ulp.h"

#include <stdio.h>
#include <string.h>

static const double other_eps[] = {1e-5, 1e-6, 1e-12, 1e-3, 1e-8, 0x1p-23, 0x1p-52};
enum { OTHER_EPS = sizeof other_eps / sizeof *other_eps };
static const enum lnorm_element halves[] = {LNORM_ELEMENT_F16, LNORM_ELEMENT_BF16};
static const enum lnorm_element narrower[] = {LNORM_ELEMENT_F16, LNORM_ELEMENT_BF16, LNORM_ELEMENT_F32};

static int has_weight(const subject *s) {
    return s->weight.ndim >= 0;
}

static int has_bias(const subject *s) {
    return s->bias.ndim >= 0;
}

static int computed(const subject *s) {
    return s->op->statistics == LNORM_COMPUTED;
}

static int centred(const subject *s) {
    return s->op->kind != LNORM_RMS_NORM;
}

/* A different norm mostly comes with its own default. */
static double eps_of_rms(const subject *s, int k) {
    const double eps[] = {s->eps, s->x_element == LNORM_ELEMENT_F64 ? DBL_EPSILON : (double)FLT_EPSILON, 1e-6};
    return eps[k];
}

static double eps_of_layer(const subject *s, int k) {
    const double eps[] = {s->eps, 1e-5, 1e-6};
    return eps[k];
}

/* Single axes, then trailing ones, then all but the channels. */
static uint32_t axes_of(const subject *s, int k) {
    int ndim = s->x->ndim;
    uint32_t all = (1u << ndim) - 1;
    if (k < ndim)
        return 1u << k;
    return k < 2 * ndim ? all & ~((1u << (2 * ndim - 1 - k)) - 1) : all & ~2u;
}

/* The same, 0 for those that are the right ones or have been before. */
static uint32_t other_axes(const subject *s, int k) {
    uint32_t axes = axes_of(s, k);
    for (int before = 0; before < k; before++)
        if (axes_of(s, before) == axes)
            return 0;
    return axes == s->axes ? 0 : axes;
}

enum which {
#define MISTAKE(ID, name, remedy, applies, variants, change) ID,
#include "mistakes.def"
#undef MISTAKE
    MISTAKES,
    FITTED = OTHER_STATISTICS
};

static const struct text {
    const char *name, *remedy;
} texts[] = {
#define MISTAKE(ID, name, remedy, applies, variants, change) {name, remedy},
#include "mistakes.def"
#undef MISTAKE
};

/* False where there is no variant k. */
static int make(recipe *r, enum which which, const subject *s, int k) {
    switch (which) {
#define MISTAKE(ID, name, remedy, applies, variants, change) \
    case ID:                                                 \
        if (!(applies) || k >= (variants))                   \
            return 0;                                        \
        change;                                              \
        return 1;
#include "mistakes.def"
#undef MISTAKE
    default:
        return 0;
    }
}

/* -- Detail ------------------------------------------------------------------------------------------------------- */

static const char *element_name(enum lnorm_element element) {
    static const char *const names[] = {
#define DTYPE(ID, name, code, bits) #name,
#include "lists/dtypes.def"
#undef DTYPE
    };
    return names[element];
}

static void name_axes(char *text, size_t size, uint32_t axes) {
    int length = snprintf(text, size, "axes ");
    for (int i = 0, first = 1; i < LNORM_MAX_NDIM; i++)
        if (axes >> i & 1) {
            length += snprintf(text + length, size - (size_t)length, "%s%d", first ? "" : ",", i);
            first = 0;
        }
}

/* What tells the variant from others of the same mistake. */
static void describe(mistake *m, const recipe *r, const recipe *right, const fit *f) {
    const enum lnorm_element types[] = {r->statistics_rounded, r->xhat_rounded, r->y_rounded};
    char *text = m->detail;
    size_t size = sizeof m->detail;
    text[0] = '\0';
    if (r->eps != right->eps)
        snprintf(text, size, "eps %.6g", r->eps);
    else if (r->axes)
        name_axes(text, size, r->axes);
    else if (r->sums == HALF_IN_ORDER)
        snprintf(text, size, "%s", element_name(r->half));
    else if (r->sums != ACCURATE)
        snprintf(text, size, "%s", r->sums == F32_SQUARES_IN_ORDER ? "summed in order" : "summed in a tree");
    else if (r->y_layout != r->x_layout)
        snprintf(text, size, "%s", r->y_layout == LAST_TWO_SWAPPED || r->x_layout == LAST_TWO_SWAPPED
                                       ? "the last two swapped" : "column-major");
    else if (r->fitted == STATISTICS)
        snprintf(text, size, "variance off by up to %.2g, mean by %.2g deviations", f->variance_off, f->mean_off);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] != LNORM_ELEMENT_ABSENT)
            snprintf(text, size, "%s", element_name(types[i]));
}

/* -- Search ------------------------------------------------------------------------------------------------------- */

/* Variants of a mistake may come to the same. */
static int known(const mistakes *m, const mistake *found) {
    for (int i = 0; i < m->count; i++)
        if (m->found[i].name == found->name && !strcmp(m->found[i].detail, found->detail))
            return 1;
    return 0;
}

static void keep(mistakes *m, const mistake *found) {
    int at = m->count < MOST_MISTAKES ? m->count++ : MOST_MISTAKES;
    for (; at > 0 && m->found[at - 1].distance > found->distance; at--)
        if (at < MOST_MISTAKES)
            m->found[at] = m->found[at - 1];
    if (at < MOST_MISTAKES)
        m->found[at] = *found;
}

static void try_out(mistakes *m, enum which which, const recipe *r, const recipe *right, const subject *s) {
    fit f = recipe_fit(r, s);
    mistake found = {.name = texts[which].name, .remedy = texts[which].remedy, .distance = f.distance};
    if (!(f.distance <= m->right / 16) || !(f.distance <= 4.0 + 4.0 * f.noise))
        return;
    describe(&found, r, right, &f);
    if (!known(m, &found))
        keep(m, &found);
}

void mistakes_find(mistakes *m, const subject *s) {
    recipe right = right_recipe(s), r;
    memset(m, 0, sizeof *m);
    m->right = recipe_fit(&right, s).distance;
    progress_begin("trying the usual mistakes", MISTAKES * s->n * (int64_t)sizeof(double)); /* long for large groups */
    for (int which = 0; which < MISTAKES && !(which >= FITTED && m->count); which++) {
        memcpy(&r, &right, sizeof r);
        for (int k = 0; make(&r, (enum which)which, s, k); k++) {
            if (memcmp(&r, &right, sizeof r))
                try_out(m, (enum which)which, &r, &right, s);
            memcpy(&r, &right, sizeof r);
        }
        progress((which + 1) * s->n * (int64_t)sizeof(double));
    }
    progress_end();
    double best = m->found[0].distance, most = fmax(4 * best, best + 0.05);
    while (m->count > 1 && m->found[m->count - 1].distance > most)
        m->count--;
}
