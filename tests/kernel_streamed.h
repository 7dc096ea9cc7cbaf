/* Tests of rows that go past the caches, part of test_kernels. */
#ifndef KERNEL_STREAMED_H
#define KERNEL_STREAMED_H

void test_rows_past_caches(void **state);

#endif
