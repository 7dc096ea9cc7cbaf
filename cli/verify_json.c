#include "arguments.h"
#include "ulp.h"
#include "verify_report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *shape_json(const lnorm_tensor *tensor) {
    json_t *shape = json_array();
    for (int i = 0; i < tensor->ndim; i++)
        json_array_append_new(shape, json_integer(tensor->shape[i]));
    return shape;
}

static json_t *index_json(const lnorm_tensor *y, int64_t at) {
    json_t *index = json_array();
    for (int i = y->ndim; i-- > 0; at /= y->shape[i])
        json_array_insert_new(index, 0, json_integer(at % y->shape[i]));
    return index;
}

/* JSON is UTF-8, a name of a file need not be: then every byte beyond ASCII is U+FFFD. */
static json_t *name_json(const char *path) {
    json_t *name = json_string(path);
    char *text = name ? NULL : malloc(3 * strlen(path) + 1), *to = text;
    for (const char *at = path; text && *at; at++)
        to += sprintf(to, *at & 0x80 ? "\xef\xbf\xbd" : "%c", *at);
    if (text)
        name = json_stringn(text, (size_t)(to - text));
    free(text);
    return name;
}

static json_t *array_json(const char *path, const lnorm_tensor *tensor) {
    return json_pack("{s:o,s:s,s:o}", "file", name_json(path), "dtype", dtype_name(tensor->dtype), "shape",
                     shape_json(tensor));
}

static json_t *nan_json(const lnorm_tensor *y, int64_t count, int64_t first) {
    return json_pack("{s:I,s:o}", "count", (json_int_t)count, "first", count ? index_json(y, first) : json_null());
}

/* Numbers that a double does not hold are texts. */
static json_t *worst_json(const verification *v) {
    const survey *s = &v->survey;
    char y[64];
    if (!s->measured)
        return json_null();
    snprintf(y, sizeof y, "%.17g", s->worst_y);
    return json_pack("{s:o,s:f,s:s,s:s,s:{s:I,s:s,s:s,s:s}}", "index", index_json(v->y, s->worst_at), "error", s->max,
                     "y", y, "exact", s->worst.y, "group", "number", (json_int_t)s->worst_group, "mean",
                     s->worst.mean, "variance", s->worst.variance, "rstd", s->worst.rstd);
}

static json_t *places_json(const places *p) {
    if (!p->hit)
        return json_null();
    return json_pack("{s:I,s:I,s:I,s:I}", "count", (json_int_t)p->hit, "first", (json_int_t)p->first, "last",
                     (json_int_t)p->last, "tail_of", (json_int_t)p->tail_of);
}

static json_t *mistakes_json(const mistakes *m) {
    json_t *list = json_array();
    for (int i = 0; i < m->count; i++) {
        const mistake *found = &m->found[i];
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:f}", "name", found->name, "detail", found->detail,
                                              "remedy", found->remedy, "distance", found->distance));
    }
    return list;
}

static json_t *errors_json(const survey *s) {
    if (!s->measured)
        return json_null();
    return json_pack("{s:f,s:f,s:f,s:I,s:I,s:I}", "max", s->max, "max_of_y", s->max_own, "mean",
                     s->sum / (double)s->measured, "correctly_rounded", (json_int_t)s->correct, "within_1_ulp",
                     (json_int_t)s->within_1, "beyond_limit", (json_int_t)s->beyond);
}

int report_json(const verification *v) {
    const survey *s = &v->survey;
    json_t *object = json_pack(
        "{s:b,s:f,s:o,s:o,s:s,s:I,s:I,s:I,s:I,s:o,s:{s:I,s:o,s:o},s:o,s:{s:o,s:o},s:o}", "within_limit",
        !verification_failed(v), "limit", s->limit, "x", array_json(v->x_path, v->x), "y", array_json(v->y_path, v->y),
        "operation", v->operation, "groups", (json_int_t)s->groups, "group_size", (json_int_t)s->group_size,
        "elements", (json_int_t)s->elements, "measured", (json_int_t)s->measured, "ulps", errors_json(s), "nan",
        "due", (json_int_t)s->nan_due, "missing", nan_json(v->y, s->nan_missing, s->nan_missing_at), "unexpected",
        nan_json(v->y, s->nan_unexpected, s->nan_unexpected_at), "worst", worst_json(v), "places", "groups",
        places_json(&v->groups), "positions", places_json(&v->positions), "mistakes", mistakes_json(&v->mistakes));
    int written = object && !json_dumpf(object, stdout, JSON_INDENT(2));
    json_decref(object);
    if (written)
        putchar('\n');
    return written;
}
