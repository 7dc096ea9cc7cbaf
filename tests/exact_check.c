#include "exact_check.h"
#include <stdio.h>

exact_found exact_table[3][LNORM_OPERANDS][LNORM_ELEMENT_ABSENT];

/* Digits of the significand, exponent of the smallest number above 0, and the exponent that overflows. */
static const struct format {
    int digits, lowest, overflow;
} formats[LNORM_ELEMENT_ABSENT] = {{53, -1074, 1024}, {24, -149, 128}, {11, -24, 16}, {8, -133, 128}};

long double exact_spacing(enum lnorm_element element, long double magnitude) {
    const struct format *format = &formats[element];
    int exponent = magnitude > 0 ? ilogbl(magnitude) - format->digits + 1 : format->lowest;
    return ldexpl(1, exponent > format->lowest ? exponent : format->lowest);
}

/* From here on a magnitude rounds to infinity. */
static long double threshold(enum lnorm_element element) {
    const struct format *format = &formats[element];
    return ldexpl(2 - ldexpl(1, -format->digits), format->overflow - 1);
}

/* How far a result may be from the exact value.
 *
 * Narrow: the f64 before the last rounding is within E = 2^-53*error, so its rounding to a narrower type is within
 * half a spacing at |value| + E of it: half a spacing + E in all. An f64 result is that f64: E. y besides keeps the
 * promise of 0.501 ulp of its scale, where it has a type below f64 (E <= 0.001 ulp: error is below 2^29/1000 of the
 * scale). Wide: the promise is 1 ulp of the scale; a narrower result is rounded from such an f64. error = 0: the f64
 * is exactly the value, whichever arithmetic, and only the rounding to the result's type is left (a value that is an
 * f64 has no other f64 within half a spacing). */
static long double tolerance(const lnorm_problem *problem, enum lnorm_operand operand, enum lnorm_element element,
                             long double size, long double scale, long double error) {
    long double before = problem->wide ? exact_spacing(LNORM_ELEMENT_F64, scale) : EXACT_U * error;
    if (error == 0)
        return exact_spacing(element, size) / 2;
    if (element == LNORM_ELEMENT_F64)
        return before;
    long double allowed = exact_spacing(element, size + before) / 2 + before;
    long double promise = 0.501L * exact_spacing(element, scale);
    return operand == LNORM_Y && !problem->wide && !problem->fast && promise < allowed ? promise : allowed;
}

/* One result against one exact value. `judged`: by its distance; else there is nothing to measure. */
typedef struct verdict {
    int accepted, judged;
    long double difference, allowed;
} verdict;

/* The mean (and what follows it) of a group with a NaN or an infinity is outside the contract. */
static int unspecified(enum lnorm_operand operand, const mpfr_t value) {
    return !mpfr_number_p(value) &&
           (operand == LNORM_MEAN || operand == LNORM_RUNNING_MEAN || operand == LNORM_RUNNING_VAR);
}

static verdict judge(const lnorm_problem *problem, enum lnorm_operand operand, double got, const exact_result *exact,
                     int64_t i) {
    enum lnorm_element element = (enum lnorm_element)problem->operand[operand].element;
    mpfr_srcptr value = exact->value[i];
    long double scale = exact->scale[i], error = exact->error[i];
    verdict v = {1, 0, 0, 0};
    if (unspecified(operand, value))
        return v;
    if (!mpfr_number_p(value)) {
        v.accepted = isnan(got);
        return v;
    }
    if (problem->fast && isinf(error))
        return v;
    /* The stated exception of f64 gradients: r*|g| beyond 2^1024. */
    if (problem->wide && operand > LNORM_RUNNING_VAR && !(scale < 0x1p1023L))
        return v;
    long double size = exact_size(value);
    v.allowed = tolerance(problem, operand, element, size, scale, error);
    if (isinf(got)) {
        v.accepted = (signbit(got) == mpfr_signbit(value) ? size : -size) + v.allowed >= threshold(element);
        return v;
    }
    mpfr_t distance;
    mpfr_init(distance);
    mpfr_d_sub(distance, got, value, MPFR_RNDN);
    v.difference = exact_size(distance);
    mpfr_clear(distance);
    v.judged = 1;
    v.accepted = v.difference <= v.allowed && (problem->wide || isfinite(error)); /* a bound must have been derived */
    return v;
}

int exact_accepts(const lnorm_problem *problem, enum lnorm_operand operand, double got, const exact_result *exact,
                  int64_t i) {
    return judge(problem, operand, got, exact, i).accepted;
}

int exact_bin(long double ulps) {
    if (ulps < 0.5L)
        return (int)(ulps * 32);
    if (ulps <= 1)
        return ulps <= 0.501L ? 16 : 17;
    int bin = 18 + ilogbl(ulps);
    return bin < EXACT_BINS ? bin : EXACT_BINS - 1;
}

/* `floor`: further down an f64's own spacing is what counts, or an f32's. */
static void record(exact_found *found, enum lnorm_element element, const verdict *v, const exact_result *exact,
                   int64_t i, long double floor) {
    long double scale = exact->scale[i], ulps = v->difference / exact_spacing(element, scale);
    found->results++;
    found->correct += v->difference <= exact_spacing(element, exact_size(exact->value[i])) / 2;
    found->ulps = ulps > found->ulps ? ulps : found->ulps;
    found->histogram[exact_bin(ulps)]++;
    if (scale >= floor) {
        long double units = v->difference / (EXACT_U * scale), bound = exact->error[i] / scale;
        found->units = units > found->units ? units : found->units;
        found->allowed = bound > found->allowed ? bound : found->allowed;
    }
    if (v->allowed > 0 && v->difference / v->allowed > found->share)
        found->share = v->difference / v->allowed;
}

static int table_of(const lnorm_problem *problem) {
    return problem->fast ? 2 : problem->wide;
}

int64_t exact_check(const lnorm_problem *problem, const lnorm_data *data, const exact *e) {
    static const char *const names[] = {"narrow", "wide", "fast"};
    int64_t refused = 0;
    for (int k = 0; k < LNORM_OPERANDS; k++) {
        enum lnorm_operand operand = (enum lnorm_operand)k;
        enum lnorm_element element = (enum lnorm_element)problem->operand[k].element;
        const exact_result *result = &e->result[k];
        for (int64_t i = 0; i < result->count; i++) {
            double got = exact_load(element, data->at[k], exact_offset(problem, operand, result->axes, i));
            verdict v = judge(problem, operand, got, result, i);
            if (v.judged)
                record(&exact_table[table_of(problem)][k][element], element, &v, result, i,
                       problem->fast ? 0x1p-90L : 0x1p-1000L);
            if (!v.accepted && refused++ < 3)
                printf("%s[%lld], type %d, %s arithmetic: got %a, exact %a, off by %Lg, allowed %Lg, scale %Lg\n",
                       lnorm_operand_name(operand), (long long)i, (int)element, names[table_of(problem)], got,
                       mpfr_get_d(result->value[i], MPFR_RNDN), v.difference, v.allowed, result->scale[i]);
        }
    }
    return refused;
}

long double exact_worst_share(const lnorm_problem *problem, const lnorm_data *data, const exact *e,
                              enum lnorm_operand operand) {
    const exact_result *result = &e->result[operand];
    long double worst = 0;
    for (int64_t i = 0; i < result->count; i++) {
        double got = exact_load((enum lnorm_element)problem->operand[operand].element, data->at[operand],
                                exact_offset(problem, operand, result->axes, i));
        verdict v = judge(problem, operand, got, result, i);
        if (v.judged && v.allowed > 0 && v.difference / v.allowed > worst)
            worst = v.difference / v.allowed;
    }
    return worst;
}

static void print_ulps(const exact_found *found) {
    if (found->results)
        printf(" %7.4Lf %5.1f%%", found->ulps, 100.0 * (double)found->correct / (double)found->results);
    else
        printf(" %14s", "-");
}

static void print_fast(void) {
    printf("fast arithmetic: worst error of f64 results (f32 before its last rounding) in 2^-24 of the scale; share of "
           "what is allowed, by type\n");
    for (int k = 0; k < LNORM_OPERANDS; k++) {
        const exact_found *found = exact_table[2][k];
        if (!found[LNORM_ELEMENT_F32].results)
            continue;
        printf("%-15s %8.3Lf ", lnorm_operand_name((enum lnorm_operand)k), found[LNORM_ELEMENT_F64].units * 0x1p-29L);
        for (int element = 0; element < LNORM_ELEMENT_ABSENT; element++)
            printf(" %.3Lf", found[element].share);
        printf("\n");
    }
}

void exact_print_table(void) {
    int64_t results = 0;
    long double share[2] = {0, 0};
    printf("worst error in ulps of the scale, and how many results are the exact value rounded once;\n"
           "f64 of narrow inputs: worst error and worst derived bound, both in 2^-53 of the scale\n"
           "%-15s %14s %14s %14s %20s %14s\n", "", "f32", "f16", "bf16", "f64, narrow", "f64, wide");
    for (int k = 0; k < LNORM_OPERANDS; k++) {
        const exact_found *narrow = exact_table[0][k], *wide = exact_table[1][k];
        int64_t count = 0;
        for (int element = 0; element < LNORM_ELEMENT_ABSENT; element++) {
            count += narrow[element].results + wide[element].results;
            share[0] = narrow[element].share > share[0] ? narrow[element].share : share[0];
            share[1] = wide[element].share > share[1] ? wide[element].share : share[1];
        }
        results += count;
        if (!count)
            continue;
        printf("%-15s", lnorm_operand_name((enum lnorm_operand)k));
        print_ulps(&narrow[LNORM_ELEMENT_F32]);
        print_ulps(&narrow[LNORM_ELEMENT_F16]);
        print_ulps(&narrow[LNORM_ELEMENT_BF16]);
        printf(" %9.1Lf %10.1Lf", narrow[LNORM_ELEMENT_F64].units, narrow[LNORM_ELEMENT_F64].allowed);
        print_ulps(&wide[LNORM_ELEMENT_F64]);
        printf("\n");
    }
    printf("%lld results; the worst used %.3Lf of what is allowed (narrow), %.3Lf (wide)\n", (long long)results,
           share[0], share[1]);
    print_fast();
}
