/* Which tensors of a model are the weight and bias of a norm: by their names, as nothing else in the file tells. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What weight and bias are called: in PyTorch, in TensorFlow and old BERT checkpoints, in JAX. */
static const struct { const char *weight, *bias; } pairs[] = {{"weight", "bias"}, {"gamma", "beta"}, {"scale", "bias"}};

static int is_separator(char c) {
    return c == '.' || c == '/';
}

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The last part between separators that is not a number, in lower case, cut to what `part` holds. */
static void last_part(char *part, size_t room, const char *name, size_t length) {
    size_t end = length, begin, copied = 0;
    int number;
    do {
        number = 1;
        for (begin = end; begin > 0 && !is_separator(name[begin - 1]); begin--)
            number = number && is_digit(name[begin - 1]);
        if (!number || begin == 0)
            break;
        end = begin - 1;
    } while (1);
    for (size_t i = begin; i < end && copied + 1 < room; i++)
        part[copied++] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
    part[copied] = 0;
}

/* "ln" as a word of its own: ln, ln1, ln_f, attn_ln. */
static int has_ln(const char *part) {
    for (const char *at = strstr(part, "ln"); at; at = strstr(at + 1, "ln")) {
        int begins = at == part || at[-1] == '_', ends = !at[2] || at[2] == '_' || is_digit(at[2]);
        if (begins && ends)
            return 1;
    }
    return 0;
}

static int sounds_like_a_norm(const char *name, size_t length) {
    char part[256];
    last_part(part, sizeof part, name, length);
    return strstr(part, "norm") || has_ln(part);
}

/* The tensor called as `name` is up to `length`, then `leaf`. */
static const lnorm_model_tensor *sibling(const lnorm_model *model, char *buffer, const char *name, size_t length,
                                         const char *leaf) {
    memcpy(buffer, name, length);
    strcpy(buffer + length, leaf);
    return lnorm_model_find(model, buffer);
}

static int same_shape(const lnorm_model_tensor *a, const lnorm_model_tensor *b) {
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape);
}

/* If `weight` is a norm's, fills it in, with the length of its name; `buffer` has room for any name of the model. */
static int recognise(const lnorm_model *model, const lnorm_model_tensor *weight, char *buffer, lnorm_model_norm *norm,
                     size_t *length) {
    size_t full = strlen(weight->name), leaf = full;
    while (leaf > 0 && !is_separator(weight->name[leaf - 1]))
        leaf--;
    *length = leaf ? leaf - 1 : 0;
    if (weight->ndim != 1)
        return 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (strcmp(weight->name + leaf, pairs[i].weight))
            continue;
        const lnorm_model_tensor *bias = sibling(model, buffer, weight->name, leaf, pairs[i].bias);
        if (bias && !same_shape(bias, weight))
            return 0;
        norm->weight = weight;
        norm->bias = bias;
        if (!leaf) /* a file that is one layer's */
            return model->count == 1 + (bias != NULL);
        return sounds_like_a_norm(weight->name, *length) && !sibling(model, buffer, weight->name, leaf, "running_mean");
    }
    return 0;
}

/* Room for the longest name together with a sibling's leaf. */
static size_t longest_name(const lnorm_model *model) {
    size_t longest = 0;
    for (int64_t i = 0; i < model->count; i++) {
        size_t length = strlen(model->entries[i].tensor.name);
        longest = length > longest ? length : longest;
    }
    return longest + sizeof "running_mean";
}

lnorm_status lnorm_model_find_norms(lnorm_model *model, lnorm_error *error) {
    size_t names = 1, used = 0;
    for (int64_t i = 0; i < model->count; i++)
        names += strlen(model->entries[i].tensor.name) + 1;
    char *buffer = malloc(longest_name(model));
    model->norms = calloc((size_t)model->count + 1, sizeof *model->norms);
    model->norm_names = malloc(names);
    if (!buffer || !model->norms || !model->norm_names) {
        free(buffer);
        return lnorm_files_no_memory(error, model->input.name.at);
    }
    for (int64_t i = 0; i < model->count; i++) {
        lnorm_model_norm *norm = &model->norms[model->norm_count];
        size_t length;
        if (!recognise(model, &model->entries[i].tensor, buffer, norm, &length))
            continue;
        char *name = model->norm_names + used;
        memcpy(name, model->entries[i].tensor.name, length);
        name[length] = 0;
        used += length + 1;
        norm->name = name;
        model->norm_count++;
    }
    free(buffer);
    return LNORM_OK;
}

int64_t lnorm_model_norms(const lnorm_model *model) {
    return model->norm_count;
}

const lnorm_model_norm *lnorm_model_norm_at(const lnorm_model *model, int64_t index) {
    return index >= 0 && index < model->norm_count ? &model->norms[index] : NULL;
}
