/* Which instruction sets this target and compiler can build: LNORM_BUILD_x is 1 or 0, for every x of lists/isas.def.
 * Whether the machine runs them is dispatch.c's question. LNORM_NO_AVX512, LNORM_NO_AVX2 and LNORM_NO_SSE2 leave one
 * out, LNORM_SCALAR_KERNELS adds the scalar kernels where a vector set always runs: for tests.
 *
 * LNORM_SIMDE: the AVX-512 kernels from the SIMDe headers, for tests on machines without AVX-512. */
#ifndef LNORM_ISA_BUILD_H
#define LNORM_ISA_BUILD_H

/* gcc for Windows aligns the stack to 16 bytes only, and spills of wider vectors fault (gcc bug 54412). */
#if defined __x86_64__ && !defined __ILP32__ && (defined __clang__ || (defined __GNUC__ && !defined _WIN32))
#define LNORM_TARGET_X86 1
#else
#define LNORM_TARGET_X86 0
#endif

/* Both are part of their architectures. */
#if defined __x86_64__ && (defined __GNUC__ || defined __clang__) && !defined LNORM_NO_SSE2
#define LNORM_BUILD_SSE2 1
#else
#define LNORM_BUILD_SSE2 0
#endif

#if defined __aarch64__ && defined __ARM_NEON && defined __AARCH64EL__
#define LNORM_BUILD_NEON 1
#else
#define LNORM_BUILD_NEON 0
#endif

#if defined LNORM_SCALAR_KERNELS || !(LNORM_BUILD_SSE2 || LNORM_BUILD_NEON || defined LNORM_NO_SSE2)
#define LNORM_BUILD_SCALAR 1
#else
#define LNORM_BUILD_SCALAR 0
#endif

#if LNORM_TARGET_X86 && !defined LNORM_NO_AVX2
#define LNORM_BUILD_AVX2 1
#else
#define LNORM_BUILD_AVX2 0
#endif

#if (LNORM_TARGET_X86 || defined LNORM_SIMDE) && !defined LNORM_NO_AVX512
#define LNORM_BUILD_AVX512 1
#else
#define LNORM_BUILD_AVX512 0
#endif

#if defined __GNUC__
#define LNORM_OUT_OF_LINE __attribute__((noinline))
#else
#define LNORM_OUT_OF_LINE
#endif

/* Out of line, and for size: what rarely runs. */
#if defined __GNUC__
#define LNORM_RARE __attribute__((noinline, cold))
#else
#define LNORM_RARE
#endif

/* Inlined even where nothing is optimised: a vector must not cross a call between functions of different targets, and
 * an element type is to be a constant. (SIMDe's vectors are arrays, for which this would take minutes to compile.)
 * LNORM_COVERAGE: one copy of each function, so that gcov counts a branch once. */
#if defined __GNUC__ && !defined LNORM_SIMDE && !defined LNORM_COVERAGE
#define LNORM_INLINE static inline __attribute__((always_inline))
#else
#define LNORM_INLINE static inline
#endif

/* A hint; the address need not exist. FAR: into the level 2 cache, since much else will be read before. */
#if defined __GNUC__
#define LNORM_PREFETCH(base, bytes) __builtin_prefetch((const void *)((uintptr_t)(base) + (uintptr_t)(bytes)))
#define LNORM_PREFETCH_FAR(base, bytes)                                                                               \
    __builtin_prefetch((const void *)((uintptr_t)(base) + (uintptr_t)(bytes)), 0, 2)
#else
#define LNORM_PREFETCH(base, bytes) (void)0
#define LNORM_PREFETCH_FAR(base, bytes) (void)0
#endif

/* Keeps a vector that was loaded in a register: where it is used twice, gcc would rather load it twice, which costs as
 * much as an operation where loads are what a loop waits for. */
#if defined __GNUC__ && defined __SSE2__ && !defined LNORM_SIMDE
#define LNORM_HOLD(a) __asm__("" : "+x"(a))
#else
#define LNORM_HOLD(a) (void)0
#endif

/* Before a loop of a few iterations over an array of vectors, which then lives in registers. gcc -O0 would say of some
 * that it ignores it. */
#if defined LNORM_SIMDE || !defined __OPTIMIZE__
#define LNORM_UNROLL
#elif defined __clang__
#define LNORM_UNROLL _Pragma("clang loop unroll(full)")
#elif defined __GNUC__
#define LNORM_UNROLL _Pragma("GCC unroll 16")
#else
#define LNORM_UNROLL
#endif

#endif
