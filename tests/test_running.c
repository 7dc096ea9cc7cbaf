/* Running statistics of batch norm by hand: x of one channel, 1 and 3, has mean 2 and unbiased variance 2, and with the
 * factors below every number is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lnorm.h"

static void check(double momentum, int64_t batches, float mean, float variance) {
    const int64_t shape[] = {2, 1}, channel[] = {1};
    float x[] = {1, 3}, running_mean = 10, running_var = 6;
    const lnorm_tensor in = lnorm_dense(x, LNORM_F32, 2, shape);
    const lnorm_tensor m = lnorm_dense(&running_mean, LNORM_F32, 1, channel);
    const lnorm_tensor v = lnorm_dense(&running_var, LNORM_F32, 1, channel);
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    op.kind = LNORM_BATCH_NORM;
    op.momentum = momentum;
    op.batches = batches;
    io.x = &in;
    io.running_mean = &m;
    io.running_var = &v;
    assert_int_equal(lnorm_run(&op, &io, NULL, NULL), LNORM_OK);
    assert_true(running_mean == mean);
    assert_true(running_var == variance);
}

static void test_momentum(void **state) {
    (void)state;
    check(0.25, 0, 8, 5);
    check(0.5, 0, 6, 4);
    check(0, 0, 10, 6);
    check(1, 0, 2, 2);
}

static void test_cumulative(void **state) {
    (void)state;
    check(0.5, 4, 8, 5); /* 1/batches, whatever the momentum */
    check(0.5, 1, 2, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_momentum), cmocka_unit_test(test_cumulative)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
