/* A case while it runs, and what is held against its results. */
#ifndef CASE_CHECK_H
#define CASE_CHECK_H

#include "case_run.h"

/* One way of running a case. */
typedef struct variant {
    const char *name;
    int level;
    int workspace; /* level 2: plan and execute instead of the one call */
    int in_place;  /* y = x, dx = dy */
    int mirrored;  /* inputs stored backwards, strides negated */
    int saved;     /* the backward pass gets the forward pass's mean and rstd */
} variant;

typedef struct runner {
    const layer_case *item;
    case_totals *totals;
    const variant *variant;
    lnorm_pass pass;
    case_geometry geometry;
    case_shape shape[CASE_SLOTS];
    int64_t strides[CASE_FIRST_RESULT][LNORM_MAX_NDIM];
    int64_t count[CASE_SLOTS]; /* elements; of a strided x those of the storage */
    case_buffer buffer[CASE_SLOTS];
    case_buffer *at[CASE_SLOTS]; /* where a result is written: its buffer, or in place an input's */
    uint64_t input_digest[CASE_FIRST_RESULT];
    uint64_t digest[CASE_SLOTS]; /* of the first run, which all others must equal */
    int has_digest[CASE_SLOTS];
    int layout; /* what the inputs hold now: 0 as listed, 1 mirrored, -1 something was written over one */
} runner;

static inline int case_has_input(const runner *r, enum case_slot slot) {
    return r->item->input[slot].present || r->item->generator[slot].present;
}

static inline int case_is_gradient(enum case_slot slot) {
    return slot >= CASE_DX;
}

__attribute__((format(printf, 2, 3))) void case_fail(runner *r, const char *format, ...);

/* Of one result: its expectations; the same bits from every run. Saved statistics are other inputs: their gradients are
 * not compared. */
void case_check_result(runner *r, enum case_slot slot);
void case_check_same_bits(runner *r, enum case_slot slot);

void case_check_memory(runner *r); /* nothing was written but results */
void case_check_error(runner *r, lnorm_status status, const lnorm_error *error); /* refused as the case says */

#endif
