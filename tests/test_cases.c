/* Every case of tests/cases through level 2 and, where it fits, level 1.
 *
 *     test_cases [small | large | huge] [directory of the cases]
 *
 * Without an argument: all but the large and huge ones. `large` needs about 500 MB of memory, `huge` 9 GB; a huge case
 * for which there is no memory is reported as not run. The environment variable LNORM_CASES stands for the first. */
#include "case_run.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef LNORM_TEST_CASES
#define LNORM_TEST_CASES "tests/cases"
#endif

static const char *directory = LNORM_TEST_CASES;
static enum case_size largest = CASE_MEDIUM;

/* What the files hold, written down so that a case that is lost is noticed. */
typedef struct expected_file {
    const char *name;
    int cases, level_1; /* level_1: at any size */
    int large, huge;    /* of `cases` */
} expected_file;

static const expected_file files[] = {
    {"worked_examples", 24, 17, 4, 0}, {"cancellation", 27, 21, 1, 0}, {"range", 28, 23, 2, 0},
    {"eps_definition", 36, 33, 0, 0},  {"tails", 268, 268, 0, 0},      {"tails_rms_backward", 133, 133, 0, 0},
    {"shapes", 61, 19, 0, 0},          {"strides", 14, 0, 0, 0},       {"dtypes", 31, 17, 0, 0},
    {"backward", 34, 25, 0, 0},        {"sizes", 4, 4, 2, 2},          {"axis_grid", 24, 24, 0, 0},
    {"float64", 24, 23, 0, 0}};
enum { FILES = sizeof files / sizeof files[0] };

static void read_or_fail(case_file *file, const char *name) {
    if (!case_file_read(file, directory, name))
        fail_msg("%s/%s.json cannot be read", directory, name);
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

static void report(const case_file *file, const case_totals *totals) {
    printf("%s: %d of %d cases run, %d of them at level 1 too, %" PRId64 " values compared\n", file->name, totals->run,
           file->count, totals->level_1, totals->compared);
    for (int i = 0; i < file->count; i++)
        if (file->cases[i].size > largest)
            printf("NOT RUN: %s.json, case %s: of size \"%s\", which was not asked for\n", file->name,
                   file->cases[i].id, file->cases[i].size == CASE_HUGE ? "huge" : "large");
}

static void test_file(void **state) {
    const expected_file *expected = *state;
    case_totals totals = {.file = expected->name};
    case_file file;
    read_or_fail(&file, expected->name);
    int left_out = 0, left_out_level_1 = 0, aliases = 0;
    for (int i = 0; i < file.count; i++) {
        case_geometry geometry = case_geometry_of(&file.cases[i]);
        aliases += file.cases[i].alias;
        if (file.cases[i].size > largest) {
            left_out++;
            left_out_level_1 += case_fits_level_1(&file.cases[i], &geometry);
        }
        case_run(&file.cases[i], i, largest, &totals);
    }
    report(&file, &totals);
    assert_int_equal(file.count, expected->cases);
    assert_int_equal(left_out, (largest < CASE_LARGE ? expected->large : 0) +
                                   (largest < CASE_HUGE ? expected->huge : 0));
    assert_int_equal(totals.run + totals.not_run, expected->cases);
    if (totals.not_run == left_out) /* else memory was missing for a huge one, which case_run printed */
        assert_int_equal(totals.level_1, expected->level_1 - left_out_level_1);
    if (largest < CASE_HUGE)
        assert_int_equal(totals.not_run, left_out);
    assert_true(totals.aliased >= aliases);
    case_file_free(&file);
    if (totals.failures)
        fail_msg("%d failures in %s.json", totals.failures, expected->name);
}

/* ---- the checks of the checks ------------------------------------------------------------------------------------ */

static uint64_t bits_of(enum case_element element, double value) {
    uint64_t bits;
    assert_true(case_encode(element, value, &bits));
    return bits;
}

/* All 16-bit patterns, and every exponent of the wider types, survive decoding and encoding. */
static void test_numbers(void **state) {
    (void)state;
    for (int element = CASE_F64; element <= CASE_BF16; element++) {
        enum case_element type = (enum case_element)element;
        int shift = (int)case_element_size(type) * 8 - 16;
        for (uint64_t top = 0; top < 65536; top++) {
            uint64_t bits = top << shift, again;
            double value = case_decode(type, bits);
            assert_true(case_encode(type, value, &again));
            if (value == value)
                assert_true(again == bits);
        }
    }
    uint64_t bits;
    assert_false(case_encode(CASE_F16, 1.0 + 0x1p-11, &bits));
    assert_false(case_encode(CASE_F16, 65536.0, &bits));
    assert_false(case_encode(CASE_F16, 0x1p-25, &bits));
    assert_false(case_encode(CASE_F32, 0x1p128, &bits));
    assert_false(case_encode(CASE_BF16, 1.0 + 0x1p-8, &bits));
    assert_true(case_encode(CASE_F32, 0x1p-149, &bits) && bits == 1);
    assert_true(case_encode(CASE_BF16, -1.5, &bits) && bits == 0xBFC0);
    assert_true(case_encode(CASE_F16, 1.5, &bits) && bits == 0x3E00);
}

static void test_comparison(void **state) {
    (void)state;
    for (int element = CASE_F64; element <= CASE_BF16; element++) {
        enum case_element type = (enum case_element)element;
        uint64_t one = bits_of(type, 1.0), zero = bits_of(type, 0.0), minus_zero = bits_of(type, -0.0);
        uint64_t nan = bits_of(type, (double)NAN), inf = bits_of(type, (double)INFINITY);
        for (int64_t way = -1; way <= 1; way += 2) {
            assert_true(case_passes(type, one, case_move(type, one, way), 1, -1));
            assert_false(case_passes(type, one, case_move(type, one, 2 * way), 1, -1));
            assert_false(case_passes(type, one, case_move(type, one, way), 0, -1));
            assert_true(case_passes(type, zero, case_move(type, zero, way), 1, -1));
            assert_false(case_passes(type, case_move(type, zero, 1), case_move(type, zero, -1), 1, -1));
        }
        assert_true(case_distance(type, case_move(type, zero, 1), case_move(type, zero, -1)) == 2);
        assert_true(case_passes(type, zero, minus_zero, 0, -1));
        assert_true(case_passes(type, nan, nan, 0, -1) && case_passes(type, inf, inf, 0, -1));
        assert_false(case_passes(type, nan, one, 1, 1e9) || case_passes(type, one, nan, 1, 1e9));
        assert_false(case_passes(type, inf, bits_of(type, -(double)INFINITY), 1, 1e9));
        assert_false(case_passes(type, inf, case_move(type, inf, -1), 1, 1e9));
        /* 1 + 4 steps: a step of 1 is 2*(1 - its predecessor); 3 steps absolute + 1 relative pass, 2 + 1 do not */
        double ulp = 2 * (1.0 - case_decode(type, case_move(type, one, -1)));
        assert_true(case_passes(type, one, case_move(type, one, 4), 1, 3 * ulp));
        assert_false(case_passes(type, one, case_move(type, one, 4), 1, 2 * ulp));
    }
}

static void test_guards(void **state) {
    (void)state;
    case_buffer buffer;
    assert_true(case_buffer_create(&buffer, 10, 6));
    assert_true(case_buffer_intact(&buffer) && case_buffer_untouched(&buffer));
    const size_t guarded[] = {0, CASE_GUARD + 5, CASE_GUARD + 6 + 10, CASE_GUARD + 6 + 10 + CASE_GUARD - 1};
    for (size_t i = 0; i < sizeof guarded / sizeof guarded[0]; i++) {
        buffer.memory[guarded[i]] ^= 1;
        assert_false(case_buffer_intact(&buffer));
        buffer.memory[guarded[i]] ^= 1;
    }
    buffer.data[9] = 0;
    assert_true(case_buffer_intact(&buffer));
    assert_false(case_buffer_untouched(&buffer));
    case_buffer_free(&buffer);
}

/* Runs a case with one expectation moved by at least two steps, and by more than its tolerance_abs. */
static int failures_when_moved(const layer_case *item, int number, enum case_slot slot, int64_t entry, int64_t way) {
    const case_expectation *expect = &item->expect[slot];
    enum case_element element = item->element[slot];
    double *value = &expect->array.value[entry], kept = *value;
    double apart = 3 * expect->tolerance_abs;
    uint64_t bits = bits_of(element, element == CASE_F64 ? kept + (double)way * apart : kept);
    int64_t steps = 2 * way;
    while (fabs(case_decode(element, case_move(element, bits, steps)) - kept) <= apart)
        steps *= 2; /* in the narrow types that ends before it leaves int64_t */
    *value = case_decode(element, case_move(element, bits, steps));
    case_totals totals = {.file = "tampered", .quiet = 1};
    case_run(item, number, CASE_SMALL, &totals);
    *value = kept;
    return totals.failures;
}

/* The first finite entry of a result, or -1. */
static int64_t finite_entry(const case_array *array) {
    for (int64_t i = 0; array->present && i < array->count; i++)
        if (!array->any[i] && isfinite(array->value[i]))
            return i;
    return -1;
}

/* A result may be one step to one side of its expectation, so that a move by two steps that way may pass. It cannot
 * pass both ways. */
static int tamper(const case_file *file) {
    int moved = 0;
    for (int i = 0; i < file->count; i++) {
        const layer_case *item = &file->cases[i];
        for (int slot = CASE_FIRST_RESULT; item->size == CASE_SMALL && slot < CASE_SLOTS; slot++) {
            int64_t entry = finite_entry(&item->expect[slot].array);
            if (entry < 0)
                continue;
            moved++;
            if (!failures_when_moved(item, i, (enum case_slot)slot, entry, 1) &&
                !failures_when_moved(item, i, (enum case_slot)slot, entry, -1))
                fail_msg("%s.json, case %s: a wrong expectation of %s passes", file->name, item->id,
                         case_slot_name[slot]);
        }
    }
    return moved;
}

static void test_tampered_expectations(void **state) {
    (void)state;
    int moved = 0;
    for (size_t i = 0; i < FILES; i++) {
        case_file file;
        read_or_fail(&file, files[i].name);
        moved += tamper(&file);
        case_file_free(&file);
    }
    printf("%d expectations were moved, one at a time, and each was reported\n", moved);
    assert_true(moved > 1500);
}

/* An expected error that does not come, another message, and an error where a result is due. */
static void test_tampered_errors(void **state) {
    (void)state;
    case_file file;
    read_or_fail(&file, "worked_examples");
    int messages = 0;
    for (int i = 0; i < file.count; i++) {
        layer_case item = file.cases[i];
        if (item.size != CASE_SMALL)
            continue;
        case_totals totals = {.file = "tampered", .quiet = 1};
        if (item.message) {
            item.message = "no such text";
            messages++;
        } else
            item.status = item.status == LNORM_OK ? LNORM_INVALID_ARGUMENT : LNORM_OK;
        case_run(&item, i, CASE_SMALL, &totals);
        assert_true(totals.failures > 0);
    }
    assert_int_equal(messages, 3);
    case_file_free(&file);
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static int parse_size(const char *text) {
    largest = !strcmp(text, "huge") ? CASE_HUGE : !strcmp(text, "large") ? CASE_LARGE : CASE_MEDIUM;
    return largest != CASE_MEDIUM || !strcmp(text, "small");
}

int main(int argc, char **argv) {
    const char *size = argc > 1 ? argv[1] : getenv("LNORM_CASES");
    if (argc > 3 || (size && *size && !parse_size(size))) {
        fprintf(stderr, "usage: %s [small | large | huge] [directory of the cases]\n", argv[0]);
        return 2;
    }
    if (argc > 2)
        directory = argv[2];
    printf("instruction set: %s\n", lnorm_isa() ? lnorm_isa() : "none");
    const struct CMUnitTest checks[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_comparison),
                                        cmocka_unit_test(test_guards), cmocka_unit_test(test_tampered_expectations),
                                        cmocka_unit_test(test_tampered_errors)};
    struct CMUnitTest tests[FILES] = {{0}};
    for (size_t i = 0; i < FILES; i++)
        tests[i] = (struct CMUnitTest){files[i].name, test_file, NULL, NULL, (void *)(uintptr_t)&files[i]};
    int failed = cmocka_run_group_tests(checks, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
