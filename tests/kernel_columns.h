/* Cases of groups that lie side by side, and of channels that come first, for test_kernels.c. Each fails the test where
 * an instruction set differs from the reference. */
#ifndef KERNEL_COLUMNS_H
#define KERNEL_COLUMNS_H

void test_columns(void **state);
void test_channels(void **state);
void test_columns_backward(void **state);
void test_channels_backward(void **state);
void test_runs_backward(void **state);
void test_infinite_weight(void **state);
void test_channels_many_rows(void **state);
void test_column_major(void **state);
void test_streamed(void **state);

#endif
