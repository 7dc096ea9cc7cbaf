/* What an lnorm_model is. */
#ifndef LNORM_FILES_MODEL_H
#define LNORM_FILES_MODEL_H

#include "element.h"
#include "input.h"

#include <jansson.h>

typedef struct lnorm_model_entry {
    lnorm_model_tensor tensor; /* first: a tensor given to users is its entry. Name and dtype_name belong to the JSON */
    int64_t *shape;            /* owned */
    int64_t begin, end;        /* in the data */
    size_t position;           /* in the header */
} lnorm_model_entry;

struct lnorm_model {
    lnorm_input input;
    char *path;
    json_t *header;
    int64_t data; /* place of the data in the file */
    int64_t count;
    lnorm_model_entry *entries;  /* in the order of the data */
    lnorm_model_entry **by_name; /* sorted */
    int64_t norm_count;
    lnorm_model_norm *norms;
    char *norm_names; /* all of them, each with its end */
};

/* The header's objects, checked one by one: fills entries. */
lnorm_status lnorm_model_parse(lnorm_model *model, lnorm_error *error);

/* Finds the norms among the entries. */
lnorm_status lnorm_model_find_norms(lnorm_model *model, lnorm_error *error);

#endif
