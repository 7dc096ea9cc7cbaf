#include "case_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const case_slot_name[CASE_SLOTS] = {
    [CASE_X] = "x",         [CASE_WEIGHT] = "weight", [CASE_BIAS] = "bias", [CASE_DY] = "dy",
    [CASE_V] = "v",         [CASE_Y] = "y",           [CASE_MEAN] = "mean", [CASE_RSTD] = "rstd",
    [CASE_DX] = "dx",       [CASE_DWEIGHT] = "dweight", [CASE_DBIAS] = "dbias", [CASE_DDY] = "ddy"};

/* Everything a case may say. A key that is not here would be a demand that nobody tests. */
static const char *const known_keys[] = {
    "id", "about", "source", "op", "dtype", "shape", "normalized_shape", "axes", "groups", "strides", "x", "weight",
    "bias", "dy", "v", "weight_shape", "affine_broadcast", "profile", "alias", "size", "x_gen", "dy_gen", "eps",
    "expect", "expect_sampled", "expect_error", "message", "tolerance_ulp", "tolerance_abs", NULL};

typedef struct word {
    const char *text;
    int value;
} word;

/* The value of a text in a list that ends with NULL; -1 if it is not there. */
static int look_up(const word *list, const char *text) {
    for (; text && list->text; list++)
        if (!strcmp(list->text, text))
            return list->value;
    return -1;
}

static int refuse(const char *id, const char *what) {
    fprintf(stderr, "case %s: cannot read %s\n", id ? id : "(without id)", what);
    return 0;
}

/* "0x1.8p+1", "nan", "inf", "-inf"; nothing else may follow. */
static int read_number(const json_t *json, double *value) {
    const char *text = json_string_value(json);
    char *end;
    if (!text || !*text)
        return 0;
    *value = strtod(text, &end);
    return *end == '\0';
}

static int read_array(const json_t *json, case_array *array) {
    if (!json || json_is_null(json))
        return 1;
    if (!json_is_array(json))
        return 0;
    size_t count = json_array_size(json);
    array->present = 1;
    array->count = (int64_t)count;
    array->value = calloc(count + 1, sizeof *array->value);
    array->any = calloc(count + 1, 1);
    if (!array->value || !array->any)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(json, i);
        const char *text = json_string_value(entry);
        if (text && !strcmp(text, "any"))
            array->any[i] = 1;
        else if (!read_number(entry, &array->value[i]))
            return 0;
    }
    return 1;
}

/* A list of integers, or one bare integer. */
static int read_shape(const json_t *json, case_shape *shape) {
    if (!json)
        return 1;
    shape->present = 1;
    if (json_is_integer(json)) {
        shape->ndim = 1;
        shape->extent[0] = json_integer_value(json);
        return 1;
    }
    if (!json_is_array(json) || json_array_size(json) > LNORM_MAX_NDIM)
        return 0;
    shape->ndim = (int)json_array_size(json);
    for (int i = 0; i < shape->ndim; i++) {
        const json_t *entry = json_array_get(json, (size_t)i);
        if (!json_is_integer(entry))
            return 0;
        shape->extent[i] = json_integer_value(entry);
    }
    return 1;
}

static int read_generator(const json_t *json, case_generator *generator) {
    if (!json)
        return 1;
    const json_t *kind = json_object_get(json, "kind"), *seed = json_object_get(json, "seed");
    const json_t *a = json_object_get(json, "a"), *s = json_object_get(json, "s"), *e = json_object_get(json, "e");
    if (json_object_size(json) != 5 || !json_is_string(kind) || strcmp(json_string_value(kind), "mix24") != 0 ||
        !json_is_integer(seed) || !json_is_integer(a) || !json_is_integer(s) || !json_is_integer(e))
        return 0;
    *generator = (case_generator){1, (uint64_t)json_integer_value(seed), json_integer_value(a),
                                  (int)json_integer_value(s), (int)json_integer_value(e)};
    return 1;
}

static int read_dtype(const json_t *json, layer_case *item) {
    static const word names[] = {{"f64", CASE_F64}, {"f32", CASE_F32}, {"f16", CASE_F16}, {"bf16", CASE_BF16},
                                 {"i64", CASE_I64}, {NULL, 0}};
    /* dy, v, dx, ddy have x's type, dweight the weight's, dbias the bias's; mean and rstd "stat" */
    static const char *const key[CASE_SLOTS] = {"x",    "weight", "bias", "x",      "x",    "y",
                                                "stat", "stat",   "x",    "weight", "bias", "x"};
    for (int slot = 0; slot < CASE_SLOTS; slot++) {
        int element = look_up(names, json_string_value(json_object_get(json, key[slot])));
        if (element < 0)
            return 0;
        item->element[slot] = (enum case_element)element;
    }
    return json_object_size(json) == 5;
}

static int read_operation(const json_t *json, layer_case *item) {
    enum { DOUBLE_BACKWARD = 100 };
    static const word operations[] = {{"layer_norm", LNORM_LAYER_NORM},
                                      {"rms_norm", LNORM_RMS_NORM},
                                      {"group_norm", LNORM_GROUP_NORM},
                                      {"instance_norm", LNORM_INSTANCE_NORM},
                                      {"batch_norm", LNORM_BATCH_NORM},
                                      {"layer_norm_double_backward", DOUBLE_BACKWARD},
                                      {NULL, 0}};
    static const word sizes[] = {{"medium", CASE_MEDIUM}, {"large", CASE_LARGE}, {"huge", CASE_HUGE}, {NULL, 0}};
    int operation = look_up(operations, json_string_value(json_object_get(json, "op")));
    if (operation < 0)
        return 0;
    item->double_backward = operation == DOUBLE_BACKWARD;
    item->kind = item->double_backward ? LNORM_LAYER_NORM : (lnorm_kind)operation;
    const json_t *size = json_object_get(json, "size"), *profile = json_object_get(json, "profile");
    const json_t *alias = json_object_get(json, "alias");
    int value = size ? look_up(sizes, json_string_value(size)) : CASE_SMALL;
    if (value < 0)
        return 0;
    item->size = (enum case_size)value;
    item->groups = json_integer_value(json_object_get(json, "groups"));
    item->broadcast = profile != NULL;
    item->alias = alias != NULL;
    return (!profile || !strcmp(json_string_value(profile), "onnx")) &&
           (!alias || !strcmp(json_string_value(alias), "dx=dy")) &&
           item->broadcast == (json_object_get(json, "affine_broadcast") != NULL);
}

static int read_index(const json_t *expect, enum case_slot slot, case_expectation *expectation) {
    const char *key = slot == CASE_Y ? "y_index" : slot == CASE_DX ? "dx_index"
                    : slot == CASE_MEAN || slot == CASE_RSTD ? "row_index" : "";
    const json_t *json = json_object_get(expect, key);
    if (!json)
        return 1;
    size_t count = json_array_size(json);
    expectation->index = calloc(count + 1, sizeof *expectation->index);
    if (!expectation->index || (int64_t)count != expectation->array.count)
        return 0;
    for (size_t i = 0; i < count; i++)
        expectation->index[i] = json_integer_value(json_array_get(json, i));
    return 1;
}

static int read_tolerance(const json_t *json, enum case_slot slot, case_expectation *expectation) {
    const char *name = case_slot_name[slot];
    const json_t *ulp = json_object_get(json_object_get(json, "tolerance_ulp"), name);
    const json_t *absolute = json_object_get(json_object_get(json, "tolerance_abs"), name);
    expectation->tolerance_ulp = (int)json_integer_value(ulp);
    expectation->has_tolerance_abs = absolute != NULL;
    return json_is_integer(ulp) && (!absolute || read_number(absolute, &expectation->tolerance_abs));
}

/* Results under "expect" or "expect_sampled"; every entry there must be one that is known here. */
static int read_results(const json_t *json, const json_t *expect, layer_case *item) {
    size_t read = json_object_get(expect, "row_index") != NULL;
    for (int i = CASE_FIRST_RESULT; i < CASE_SLOTS; i++) {
        enum case_slot slot = (enum case_slot)i;
        case_expectation *expectation = &item->expect[slot];
        const json_t *values = json_object_get(expect, case_slot_name[slot]);
        if (!values)
            continue;
        if (!read_array(values, &expectation->array) || !expectation->array.present ||
            !read_index(expect, slot, expectation) || !read_tolerance(json, slot, expectation))
            return 0;
        read += expectation->index && (slot == CASE_Y || slot == CASE_DX) ? 2 : 1;
    }
    return read == json_object_size(expect);
}

static int read_expectations(const json_t *json, layer_case *item) {
    static const word errors[] = {{"invalid_argument", LNORM_INVALID_ARGUMENT},
                                  {"shape_mismatch", LNORM_SHAPE_MISMATCH},
                                  {"unsupported_dtype", LNORM_UNSUPPORTED_DTYPE},
                                  {NULL, 0}};
    const json_t *full = json_object_get(json, "expect"), *sampled = json_object_get(json, "expect_sampled");
    const json_t *error = json_object_get(json, "expect_error");
    item->message = json_string_value(json_object_get(json, "message"));
    if ((full != NULL) + (sampled != NULL) + (error != NULL) != 1)
        return 0;
    if (error) {
        int status = look_up(errors, json_string_value(error));
        item->status = (lnorm_status)status;
        return status > 0;
    }
    return !item->message && read_results(json, full ? full : sampled, item);
}

static int read_case(const json_t *json, layer_case *item) {
    const char *key;
    json_t *value;
    item->id = json_string_value(json_object_get(json, "id"));
    json_object_foreach((json_t *)(uintptr_t)json, key, value) {
        int i = 0;
        while (known_keys[i] && strcmp(known_keys[i], key) != 0)
            i++;
        if (!known_keys[i])
            return refuse(item->id, key);
    }
    if (!item->id || !read_operation(json, item))
        return refuse(item->id, "the operation");
    if (!read_dtype(json_object_get(json, "dtype"), item))
        return refuse(item->id, "dtype");
    if (!read_shape(json_object_get(json, "shape"), &item->shape) || !item->shape.present ||
        !read_shape(json_object_get(json, "normalized_shape"), &item->normalized_shape) ||
        !read_shape(json_object_get(json, "axes"), &item->axes) ||
        !read_shape(json_object_get(json, "strides"), &item->strides) ||
        !read_shape(json_object_get(json, "weight_shape"), &item->weight_shape) ||
        (item->strides.present && item->strides.ndim != item->shape.ndim))
        return refuse(item->id, "shapes");
    for (int slot = 0; slot < CASE_FIRST_RESULT; slot++)
        if (!read_array(json_object_get(json, case_slot_name[slot]), &item->input[slot]))
            return refuse(item->id, case_slot_name[slot]);
    if (!read_generator(json_object_get(json, "x_gen"), &item->generator[CASE_X]) ||
        !read_generator(json_object_get(json, "dy_gen"), &item->generator[CASE_DY]) ||
        !read_number(json_object_get(json, "eps"), &item->eps))
        return refuse(item->id, "a generator or eps");
    if (item->input[CASE_X].present + item->generator[CASE_X].present != 1)
        return refuse(item->id, "x");
    return read_expectations(json, item) || refuse(item->id, "the expectations");
}

static int ids_are_unique(const case_file *file) {
    for (int i = 0; i < file->count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(file->cases[i].id, file->cases[k].id))
                return refuse(file->cases[i].id, "two cases of one id");
    return 1;
}

int case_file_read(case_file *file, const char *directory, const char *name) {
    char path[4096];
    json_error_t error;
    memset(file, 0, sizeof *file);
    snprintf(file->name, sizeof file->name, "%s", name);
    snprintf(path, sizeof path, "%s/%s.json", directory, name);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        fprintf(stderr, "%s: %s (line %d)\n", path, error.text, error.line);
        return 0;
    }
    file->root = root;
    const json_t *cases = json_object_get(root, "cases");
    file->cases = calloc(json_array_size(cases) + 1, sizeof *file->cases);
    if (!file->cases)
        return 0;
    for (size_t i = 0; i < json_array_size(cases); i++, file->count++)
        if (!read_case(json_array_get(cases, i), &file->cases[i])) {
            file->count++; /* what was read of it is freed with the rest */
            return 0;
        }
    return ids_are_unique(file);
}

static void free_array(case_array *array) {
    free(array->value);
    free(array->any);
}

void case_file_free(case_file *file) {
    for (int i = 0; i < file->count; i++) {
        for (int slot = 0; slot < CASE_FIRST_RESULT; slot++)
            free_array(&file->cases[i].input[slot]);
        for (int slot = CASE_FIRST_RESULT; slot < CASE_SLOTS; slot++) {
            free_array(&file->cases[i].expect[slot].array);
            free(file->cases[i].expect[slot].index);
        }
    }
    free(file->cases);
    json_decref(file->root);
    memset(file, 0, sizeof *file);
}
