/* Tests of runs with one weight and one bias, part of test_kernels. */
#ifndef KERNEL_RUNS_H
#define KERNEL_RUNS_H

void test_channel_runs(void **state);
void test_runs_of_strange_statistics(void **state);

#endif
