/* Tests of few long rows, part of test_kernels. */
#ifndef KERNEL_LONG_H
#define KERNEL_LONG_H

void test_long_forward(void **state);
void test_long_backward(void **state);
void test_long_fast(void **state);
void test_long_accumulated(void **state);
void test_long_streams(void **state);
void test_long_streamed(void **state);
void test_long_taken(void **state);
void test_long_pieces(void **state);

#endif
