/* What the library says of itself: names of statuses, its version, its instruction set; and what every function says
 * where LNORM_ISA names one that is not there. That is decided at the first call, so each answer is a child's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lnorm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_statuses(void **state) {
    static const char *const names[] = {"ok", "invalid argument", "shape mismatch", "unsupported dtype", "unsupported",
                                        "out of memory", "not available"};
    (void)state;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        assert_string_equal(lnorm_status_string((lnorm_status)i), names[i]);
    assert_string_equal(lnorm_status_string((lnorm_status)99), "unknown status");
    assert_string_equal(lnorm_version(), LNORM_VERSION_STRING);
}

/* A child of this process, which has not called the library for its instruction set yet. */
static void expect_in_child(int (*function)(void), const char *isa) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        setenv("LNORM_ISA", isa, 1);
        exit(function());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The line of the first thing that is not so. */
#define EXPECT(condition)                                                                                             \
    do                                                                                                                \
        if (!(condition))                                                                                             \
            return __LINE__ % 256;                                                                                    \
    while (0)

static int without_instruction_set(void) {
    static const char message[] = "LNORM_ISA: expected an instruction set that runs here (scalar";
    const int64_t shape[] = {2, 2};
    float x[] = {1, 3, 3, 1}, y[] = {9, 9, 9, 9}, nines[] = {9, 9, 9, 9};
    const lnorm_tensor in = lnorm_dense(x, LNORM_F32, 2, shape), out = lnorm_dense(y, LNORM_F32, 2, shape);
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    lnorm_plan plan;
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    io.x = &in;
    io.y = &out;
    EXPECT(!lnorm_isa());
    EXPECT(lnorm_layer_norm_f32(y, NULL, NULL, x, NULL, NULL, 2, 2, 0) == LNORM_NOT_AVAILABLE);
    EXPECT(lnorm_rms_norm_backward_f32(y, NULL, x, x, NULL, 2, 2, 0, NULL, 0) == LNORM_NOT_AVAILABLE);
    EXPECT(lnorm_plan_init(&plan, &op, &io, &error) == LNORM_NOT_AVAILABLE);
    EXPECT(!strncmp(error.message, message, sizeof message - 1) && strstr(error.message, "got nonsense"));
    EXPECT(lnorm_execute(&plan, &io, NULL) == LNORM_NOT_AVAILABLE);
    EXPECT(lnorm_run(&op, &io, NULL, &error) == LNORM_NOT_AVAILABLE);
    config.normalized_size = 2;
    lnorm_layer *layer = lnorm_layer_create(&config, &error);
    EXPECT(!layer || lnorm_layer_forward(layer, &out, &in, &error) == LNORM_NOT_AVAILABLE);
    lnorm_layer_destroy(layer);
    EXPECT(!memcmp(y, nines, sizeof y));
    return 0;
}

static int scalar(void) {
    EXPECT(lnorm_isa() && !strcmp(lnorm_isa(), "scalar"));
    setenv("LNORM_ISA", "nonsense", 1); /* too late */
    EXPECT(lnorm_isa() && !strcmp(lnorm_isa(), "scalar"));
    return 0;
}

static int any(void) {
    EXPECT(lnorm_isa() && *lnorm_isa());
    return 0;
}

static void test_instruction_sets(void **state) {
    (void)state;
    expect_in_child(without_instruction_set, "nonsense");
    expect_in_child(scalar, "scalar");
    expect_in_child(any, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_statuses), cmocka_unit_test(test_instruction_sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
