#include "exact.h"
#include "exact_row.h"
#include <stdlib.h>
#include <string.h>

/* -- Elements ------------------------------------------------------------------------------------------------------ */

static double decode(uint32_t bits, int fraction_bits, int exponent_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    uint32_t fraction = bits & ((1u << fraction_bits) - 1);
    int field = (int)(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    double sign = bits >> (fraction_bits + exponent_bits) & 1 ? -1.0 : 1.0;
    if (field == (1 << exponent_bits) - 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (field == 0)
        return sign * ldexp((double)fraction, 1 - bias - fraction_bits);
    return sign * ldexp((double)(fraction | 1u << fraction_bits), field - bias - fraction_bits);
}

double exact_load(enum lnorm_element element, const void *data, int64_t index) {
    uint16_t half;
    uint32_t word;
    double f64;
    switch (element) {
    case LNORM_ELEMENT_F64:
        memcpy(&f64, (const char *)data + 8 * index, sizeof f64);
        return f64;
    case LNORM_ELEMENT_F32:
        memcpy(&word, (const char *)data + 4 * index, sizeof word);
        return decode(word, 23, 8);
    default:
        memcpy(&half, (const char *)data + 2 * index, sizeof half);
        return element == LNORM_ELEMENT_F16 ? decode(half, 10, 5) : decode(half, 7, 8);
    }
}

static uint32_t all_axes(const lnorm_problem *problem) {
    return (1u << problem->axes) - 1;
}

static int64_t count_of(const lnorm_problem *problem, uint32_t axes) {
    int64_t count = 1;
    for (int a = 0; a < problem->axes; a++)
        if (axes >> a & 1)
            count *= problem->extent[a];
    return count;
}

/* Splits an index of the axes into coordinates; the other coordinates stay as they are. */
static void coordinates_of(const lnorm_problem *problem, uint32_t axes, int64_t index, int64_t *coordinate) {
    for (int a = problem->axes; a-- > 0;)
        if (axes >> a & 1) {
            coordinate[a] = index % problem->extent[a];
            index /= problem->extent[a];
        }
}

static int64_t index_of(const lnorm_problem *problem, uint32_t axes, const int64_t *coordinate) {
    int64_t index = 0;
    for (int a = 0; a < problem->axes; a++)
        if (axes >> a & 1)
            index = index * problem->extent[a] + coordinate[a];
    return index;
}

static int64_t offset_at(const lnorm_problem *problem, enum lnorm_operand operand, const int64_t *coordinate) {
    int64_t offset = 0;
    for (int a = 0; a < problem->axes; a++)
        offset += coordinate[a] * problem->operand[operand].stride[a];
    return offset;
}

int64_t exact_offset(const lnorm_problem *problem, enum lnorm_operand operand, uint32_t axes, int64_t index) {
    int64_t coordinate[LNORM_MAX_AXES] = {0};
    coordinates_of(problem, axes, index, coordinate);
    return offset_at(problem, operand, coordinate);
}

static double load(const exact_row *row, enum lnorm_operand operand, const int64_t *coordinate) {
    return exact_load((enum lnorm_element)row->problem->operand[operand].element, row->data->at[operand],
                      offset_at(row->problem, operand, coordinate));
}

/* -- Memory -------------------------------------------------------------------------------------------------------- */

void *exact_memory(int64_t count, size_t size) {
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory)
        abort();
    return memory;
}

static number *new_numbers(int64_t count) {
    number *numbers = exact_memory(count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        mpfr_init(numbers[i].value);
    return numbers;
}

static void free_numbers(number *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        mpfr_clear(numbers[i].value);
    free(numbers);
}

static exact_affine new_affine(int64_t count) {
    exact_affine affine = {count, exact_memory(count, sizeof *affine.sum), exact_memory(count, sizeof *affine.scale)};
    for (int64_t i = 0; i < count; i++) {
        mpfr_init(affine.sum[i].value);
        sums_clear(&affine.sum[i]);
    }
    return affine;
}

static void free_affine(exact_affine *affine) {
    for (int64_t i = 0; i < affine->count; i++)
        mpfr_clear(affine->sum[i].value);
    free(affine->sum);
    free(affine->scale);
}

static void new_result(exact_result *result, const lnorm_problem *problem, uint32_t axes) {
    result->axes = axes;
    result->count = count_of(problem, axes);
    result->value = exact_memory(result->count, sizeof *result->value);
    result->scale = exact_memory(result->count, sizeof *result->scale);
    result->error = exact_memory(result->count, sizeof *result->error);
    for (int64_t i = 0; i < result->count; i++)
        mpfr_init(result->value[i]);
}

void exact_free(exact *e) {
    for (int k = 0; k < LNORM_OPERANDS; k++) {
        exact_result *result = &e->result[k];
        for (int64_t i = 0; i < result->count; i++)
            mpfr_clear(result->value[i]);
        free(result->value);
        free(result->scale);
        free(result->error);
    }
    free(e->kappa);
    free(e->constant);
    free(e);
}

static exact *new_exact(const lnorm_problem *problem) {
    exact *e = exact_memory(1, sizeof *e);
    uint32_t all = all_axes(problem);
    e->groups = count_of(problem, all & ~problem->reduced);
    e->kappa = exact_memory(e->groups, sizeof *e->kappa);
    e->constant = exact_memory(e->groups, sizeof *e->constant);
    for (int k = 0; k < LNORM_OPERANDS; k++) {
        static const uint8_t per_group[LNORM_OPERANDS] = {
            [LNORM_MEAN] = 1,        [LNORM_RSTD] = 1,         [LNORM_RUNNING_MEAN] = 1,
            [LNORM_RUNNING_VAR] = 1, [LNORM_MEAN_TANGENT] = 1, [LNORM_RSTD_TANGENT] = 1};
        if (!lnorm_has(problem, (enum lnorm_operand)k) || !problem->operand[k].written)
            continue;
        new_result(&e->result[k], problem,
                   k == LNORM_DWEIGHT  ? problem->weight_axes
                   : k == LNORM_DBIAS  ? problem->bias_axes
                   : per_group[k]      ? all & ~problem->reduced
                                       : all);
    }
    return e;
}

/* -- Precision ----------------------------------------------------------------------------------------------------- */

/* Widens [low, high] to the bits of a value: from its lowest set bit to its highest. */
static void span_of(double value, int *low, int *high) {
    int exponent, trailing = 0;
    if (value == 0.0 || !isfinite(value))
        return;
    uint64_t fraction = (uint64_t)ldexp(fabs(frexp(value, &exponent)), 53);
    while (!(fraction >> trailing & 1))
        trailing++;
    if (exponent > *high)
        *high = exponent;
    if (exponent - 53 + trailing < *low)
        *low = exponent - 53 + trailing;
}

/* Enough bits that sum(x) is exact, that x - mean keeps 128 bits where it is not zero, and that it is zero where it
 * ought to be: a nonzero N*x - sum(x) is at least one lowest bit of x, so x - mean is at least that over N.
 * Everything else is judged on a scale that bounds what cancels. */
static mpfr_prec_t precision_for(const lnorm_problem *problem, const lnorm_data *data) {
    int low = 1 << 14, high = -(1 << 14), size = 0;
    int64_t count = count_of(problem, all_axes(problem)), n = count_of(problem, problem->reduced);
    enum lnorm_operand operands[] = {LNORM_X, LNORM_MEAN};
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < count && lnorm_has(problem, operands[k]) && problem->operand[operands[k]].read; i++)
            span_of(exact_load((enum lnorm_element)problem->operand[operands[k]].element, data->at[operands[k]],
                               exact_offset(problem, operands[k], all_axes(problem), i)), &low, &high);
    while (n >> size)
        size++;
    return (high > low ? high - low : 0) + 2 * size + 128;
}

/* -- Affine gradients ---------------------------------------------------------------------------------------------- */

static int halvings(int64_t count) {
    int depth = 0;
    while (((int64_t)1 << depth) < count)
        depth++;
    return depth;
}

/* Additions on the longest way of the tree over `count` terms: a lane begins at +0, so its first addition is exact; the
 * fold; the blocks. */
int exact_chain(int64_t count) {
    int64_t block = count < EXACT_BLOCK ? count : EXACT_BLOCK, lane = (block + EXACT_LANES - 1) / EXACT_LANES;
    int fold = halvings(block < EXACT_LANES ? block : EXACT_LANES);
    return count <= 1 ? 0 : (int)lane - 1 + fold + halvings((count + EXACT_BLOCK - 1) / EXACT_BLOCK);
}

/* The inner axes by the tree; the outer ones in order within 64, then by halves. */
static int affine_chain(const lnorm_problem *problem, uint32_t own) {
    uint32_t others = all_axes(problem) & ~own;
    int64_t outer = count_of(problem, others & ~problem->reduced);
    int64_t in_order = outer < EXACT_ROW_BLOCK ? outer : EXACT_ROW_BLOCK;
    return exact_chain(count_of(problem, others & problem->reduced)) + (in_order > 1 ? (int)in_order - 1 : 0) +
           halvings((outer + EXACT_ROW_BLOCK - 1) / EXACT_ROW_BLOCK);
}

static void finish_affine(exact_row *row, enum lnorm_operand which, exact_affine *affine) {
    exact_result *result = &row->e->result[which];
    number *total = &row->temporary[0], *old = &row->temporary[1];
    for (int64_t i = 0; i < result->count; i++) {
        sums_total(total, &affine->sum[i], affine_chain(row->problem, result->axes));
        if (row->problem->accumulate) {
            int64_t offset = exact_offset(row->problem, which, result->axes, i);
            number_set(old, exact_load((enum lnorm_element)row->problem->operand[which].element, row->data->at[which],
                                       offset));
            number_add(total, old, total);
            affine->scale[i] += old->size;
        }
        exact_store(row, which, i, total, affine->scale[i]);
    }
}

/* -- The whole ----------------------------------------------------------------------------------------------------- */

static const enum lnorm_operand row_operands[] = {
    LNORM_X, LNORM_WEIGHT, LNORM_BIAS, LNORM_DY, LNORM_V, LNORM_X_TANGENT, LNORM_WEIGHT_TANGENT, LNORM_BIAS_TANGENT};
enum { ROW_OPERANDS = sizeof row_operands / sizeof *row_operands };

static exact_row new_row(exact *e, const lnorm_problem *problem, const lnorm_data *data) {
    int64_t n = count_of(problem, problem->reduced);
    exact_row row = {.e = e, .problem = problem, .data = data, .n = n};
    for (int k = 0; k < ROW_OPERANDS; k++)
        row.in[row_operands[k]] = exact_memory(n, sizeof(double));
    row.at = exact_memory(n, sizeof *row.at);
    row.xhat = new_numbers(n);
    row.g = new_numbers(n);
    row.w = new_numbers(n);
    row.temporary = new_numbers(EXACT_TEMPORARIES);
    row.mean = new_numbers(EXACT_MEANS);
    for (int i = 0; i < EXACT_SUMS; i++)
        mpfr_init(row.sum[i].value);
    row.dweight = new_affine(e->result[LNORM_DWEIGHT].count);
    row.dbias = new_affine(e->result[LNORM_DBIAS].count);
    return row;
}

static void free_row(exact_row *row) {
    for (int k = 0; k < ROW_OPERANDS; k++)
        free(row->in[row_operands[k]]);
    free(row->at);
    free_numbers(row->xhat, row->n);
    free_numbers(row->g, row->n);
    free_numbers(row->w, row->n);
    free_numbers(row->temporary, EXACT_TEMPORARIES);
    free_numbers(row->mean, EXACT_MEANS);
    for (int i = 0; i < EXACT_SUMS; i++)
        mpfr_clear(row->sum[i].value);
    free_affine(&row->dweight);
    free_affine(&row->dbias);
}

static void load_row(exact_row *row, int64_t group) {
    const lnorm_problem *problem = row->problem;
    int64_t coordinate[LNORM_MAX_AXES] = {0};
    coordinates_of(problem, all_axes(problem) & ~problem->reduced, group, coordinate);
    row->group = group;
    for (int k = LNORM_MEAN; k <= LNORM_RUNNING_VAR; k++)
        row->one[k] = problem->operand[k].read && lnorm_has(problem, (enum lnorm_operand)k)
                          ? load(row, (enum lnorm_operand)k, coordinate) : 0.0;
    for (int64_t i = 0; i < row->n; i++) {
        coordinates_of(problem, problem->reduced, i, coordinate);
        row->at[i].element = index_of(problem, all_axes(problem), coordinate);
        row->at[i].weight = index_of(problem, problem->weight_axes, coordinate);
        row->at[i].bias = index_of(problem, problem->bias_axes, coordinate);
        for (int k = 0; k < ROW_OPERANDS; k++)
            if (lnorm_has(problem, row_operands[k]))
                row->in[row_operands[k]][i] = load(row, row_operands[k], coordinate);
    }
}

exact *exact_compute(const lnorm_problem *problem, const lnorm_data *data) {
    mpfr_set_default_prec(precision_for(problem, data));
    exact *e = new_exact(problem);
    exact_row row = new_row(e, problem, data);
    for (int64_t group = 0; group < e->groups; group++) {
        load_row(&row, group);
        exact_row_compute(&row);
    }
    if (lnorm_has(problem, LNORM_DWEIGHT))
        finish_affine(&row, LNORM_DWEIGHT, &row.dweight);
    if (lnorm_has(problem, LNORM_DBIAS))
        finish_affine(&row, LNORM_DBIAS, &row.dbias);
    free_row(&row);
    return e;
}
