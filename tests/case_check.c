#include "case_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void case_fail(runner *r, const char *format, ...) {
    enum { SHOWN = 25 };
    va_list arguments;
    if (++r->totals->failures > SHOWN || r->totals->quiet)
        return;
    fprintf(stderr, "FAILED %s.json, case %s, %s: ", r->totals->file, r->item->id,
            r->variant ? r->variant->name : "before any run");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    if (r->totals->failures == SHOWN)
        fprintf(stderr, "(more failures of %s.json are counted, not shown)\n", r->totals->file);
}

/* tolerance_abs of the README: for gradients 2 units of the statistics' type, 2^-23 for f32, times a scale (the largest
 * sum of term magnitudes times 1 + |mean|*rstd), because mean and rstd arrive rounded. Recomputed statistics are f64,
 * so only f64 rounding is left of it, on the same scale. With u = 2^-53, N < 2^13 and kappa = mean^2/variance <= 64:
 * S and Q end chains of h <= 16 + 4 + 5 = 25 additions, so v = Q/N - m*m is off by at most about
 * (h*(1 + 64) + 2*h*64) u*v < 5000 u*v and r by 2500 u; x^hat by that and (h + 2)*8 u from the mean, below 2750 u; dx
 * takes r once and x^hat twice (in c2 and beside it): 3*2750 u < 2^13.1 u; above kappa 64, and for short groups, path B
 * leaves less. 2^14 u = 2^-39 = 2^-16 * 2^-23. */
static double tolerance_abs(const runner *r, enum case_slot slot) {
    const case_expectation *expect = &r->item->expect[slot];
    int recomputed = case_is_gradient(slot) && !r->variant->saved && r->item->element[CASE_RSTD] == CASE_F32;
    if (!expect->has_tolerance_abs)
        return -1;
    return recomputed ? expect->tolerance_abs * 0x1p-16 : expect->tolerance_abs;
}

static void check_value(runner *r, enum case_slot slot, int64_t position, double value) {
    enum case_element element = r->item->element[slot];
    uint64_t expected, got = case_load(element, r->at[slot]->data, position);
    if (!case_encode(element, value, &expected)) {
        case_fail(r, "the expectation %s[%" PRId64 "] = %a is no value of its type", case_slot_name[slot], position,
                  value);
        return;
    }
    r->totals->compared++;
    if (!case_passes(element, expected, got, r->item->expect[slot].tolerance_ulp, tolerance_abs(r, slot)))
        case_fail(r, "%s[%" PRId64 "] expected %a, got %a, %" PRIu64 " ulp apart", case_slot_name[slot], position,
                  value, case_decode(element, got), case_distance(element, expected, got));
}

void case_check_result(runner *r, enum case_slot slot) {
    const case_expectation *expect = &r->item->expect[slot];
    if (!expect->array.present)
        return;
    if (!expect->index && expect->array.count != r->count[slot]) {
        case_fail(r, "%s: %" PRId64 " expectations for %" PRId64 " elements", case_slot_name[slot], expect->array.count,
             r->count[slot]);
        return;
    }
    for (int64_t i = 0; i < expect->array.count; i++) {
        int64_t position = expect->index ? expect->index[i] : i;
        if (position < 0 || position >= r->count[slot])
            case_fail(r, "%s: index %" PRId64 " is out of range", case_slot_name[slot], position);
        else if (!expect->array.any[i])
            check_value(r, slot, position, expect->array.value[i]);
    }
}

void case_check_same_bits(runner *r, enum case_slot slot) {
    if (r->variant->saved && case_is_gradient(slot))
        return;
    uint64_t digest = case_digest(r->item->element[slot], r->at[slot]->data, r->count[slot]);
    if (r->has_digest[slot] && r->digest[slot] != digest)
        case_fail(r, "%s has other bits than in the first run", case_slot_name[slot]);
    r->digest[slot] = digest;
    r->has_digest[slot] = 1;
}

void case_check_memory(runner *r) {
    for (int i = 0; i < CASE_SLOTS; i++) {
        enum case_slot slot = (enum case_slot)i;
        if (r->buffer[slot].memory && !case_buffer_intact(&r->buffer[slot]))
            case_fail(r, "bytes around %s were written", case_slot_name[slot]);
        int replaced = r->at[CASE_Y] == &r->buffer[slot] || r->at[CASE_DX] == &r->buffer[slot];
        if (slot < CASE_FIRST_RESULT && case_has_input(r, slot) && !replaced &&
            case_digest(r->item->element[slot], r->buffer[slot].data, r->count[slot]) != r->input_digest[slot])
            case_fail(r, "the input %s was written", case_slot_name[slot]);
    }
}

void case_check_error(runner *r, lnorm_status status, const lnorm_error *error) {
    const layer_case *item = r->item;
    if (status != item->status)
        case_fail(r, "expected the error \"%s\", got \"%s\" (%s)", lnorm_status_string(item->status),
             lnorm_status_string(status), error->message);
    if (!case_buffer_untouched(&r->buffer[CASE_Y]))
        case_fail(r, "y was written in spite of the error");
    if (r->variant->level != 2)
        return;
    if (error->status != status || !error->message[0])
        case_fail(r, "the error has status %d and message \"%s\"", (int)error->status, error->message);
    if (item->message && !strstr(error->message, item->message))
        case_fail(r, "the message \"%s\" does not contain \"%s\"", error->message, item->message);
}
