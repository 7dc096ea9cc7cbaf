/* Bounds of the fast arithmetic, derived in docs/arithmetic.md, section 22. They take the place of the running bounds,
 * which follow the f64 arithmetic. */
#include "exact_row.h"

/* 1 + 2^-9 leaves room for terms of second order and for the f64 parts. */
#define UNIT (0x1p-24L * (1 + 0x1p-9L))
#define SMALLEST 0x1p-149L
/* A sum or product of f32 may have overflowed on the way: the stated exceptions. */
#define LARGE 0x1p126L

long double exact_fast_reach(const exact_row *row) {
    long double c = row->mean[EXACT_MEAN].size * row->mean[EXACT_R].size * 0x1p-23L;
    return row->problem->statistics == LNORM_COMPUTED || !(c > 1) ? 1 : c;
}

/* In units of 2^-24 of the scale; 0: as in the narrow arithmetic. */
static long double units_of(const lnorm_problem *problem, enum lnorm_operand operand) {
    const int runs = problem->statistics == LNORM_COMPUTED, center = problem->center;
    const int f32 = problem->operand[LNORM_X].element == LNORM_ELEMENT_F32;
    switch (operand) {
    case LNORM_Y:
        return !runs ? 9 : f32 ? 24 : 436;
    case LNORM_MEAN:
    case LNORM_RUNNING_MEAN:
        return runs ? 5 : 0;
    case LNORM_RSTD:
        return !runs ? 0 : f32 ? center ? 11 : 3 : center ? 389 : 2;
    case LNORM_RUNNING_VAR:
        return !runs ? 0 : f32 ? 22 : 778;
    case LNORM_DX:
        return !runs ? 25 : f32 ? 65 : 1267;
    case LNORM_DWEIGHT:
        return !runs ? 11 : f32 ? 26 : 438;
    default:
        return 4;
    }
}

/* What products below 2^-126 may lose besides. */
static long double underflow_of(const exact_row *row, enum lnorm_operand operand) {
    int64_t terms = row->n * row->e->groups;
    switch (operand) {
    case LNORM_DX:
        return SMALLEST * (1 + 4 * row->mean[EXACT_R].size * row->reach);
    case LNORM_DWEIGHT:
    case LNORM_DBIAS:
        return SMALLEST * (long double)terms;
    default:
        return 2 * SMALLEST;
    }
}

static int may_overflow(const exact_row *row, enum lnorm_operand operand, long double scale) {
    long double n = (long double)row->n;
    if (operand == LNORM_DX && row->reach * n * (row->of_g.one + row->of_g.wide) >= LARGE)
        return 1;
    return row->reach >= LARGE || row->reach_of_all >= LARGE || scale >= LARGE;
}

long double exact_fast_error(const exact_row *row, enum lnorm_operand operand, long double scale, long double error) {
    long double units = units_of(row->problem, operand);
    int per_element = operand == LNORM_Y || operand > LNORM_RUNNING_VAR;
    if (per_element && may_overflow(row, operand, scale))
        return (long double)INFINITY;
    if (error == 0 || units == 0)
        return error;
    return (units * UNIT * scale + underflow_of(row, operand)) / EXACT_U;
}
