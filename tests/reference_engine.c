/* The reference as tests run it, for every problem: with the fast arithmetic, which the library has kernels for. */
#define LNORM_REFERENCE_OF_TESTS
#include "../src/reference_engine.c"
