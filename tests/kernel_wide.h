/* The wide engine against the reference: tests that test_kernels runs. */
#ifndef KERNEL_WIDE_H
#define KERNEL_WIDE_H

void test_wide_forward(void **state);
void test_wide_streamed(void **state);
void test_wide_backward(void **state);
void test_wide_tiny_xhat(void **state);
void test_wide_scale(void **state);

#endif
