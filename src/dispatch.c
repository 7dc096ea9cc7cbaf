/* Which instruction set runs: decided at the first call, from what the machine has or from LNORM_ISA, and kept in the
 * library's only mutable state, one atomic pointer. Threads that decide at the same time decide the same. */
#include "environment.h"
#include "kernels.h"
#include "simd/isa_build.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if LNORM_TARGET_X86 && (LNORM_BUILD_AVX2 || LNORM_BUILD_AVX512)
#include <cpuid.h>

/* Asked by cpuid itself: __builtin_cpu_supports does not know f16c in every compiler that we build with, and brings 4 kB
 * with it. The machine has all of `leaf_1`'s features (ecx) and of `leaf_7`'s (ebx), and the system saves `state`. */
static inline int cpu_has(unsigned leaf_1, unsigned leaf_7, unsigned state) {
    const unsigned system_saves = 1u << 27; /* xgetbv can be asked what */
    unsigned a, b, c, d, saved;
    if (!__get_cpuid(1, &a, &b, &c, &d) || ~c & (leaf_1 | system_saves))
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || ~b & leaf_7)
        return 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    return !(~saved & state);
}

/* Leaf 1 */
#define CPU_FMA (1u << 12)
#define CPU_AVX (1u << 28)
#define CPU_F16C (1u << 29)
/* Leaf 7 */
#define CPU_AVX2 (1u << 5)
#define CPU_AVX512F (1u << 16)
#define CPU_AVX512DQ (1u << 17)
#define CPU_AVX512BW (1u << 30)
#define CPU_AVX512VL (1u << 31)
/* What the system saves: with xmm ymm, and with those zmm and masks. */
#define SAVED_YMM 0x06u
#define SAVED_ZMM 0xe6u
#endif

#if LNORM_BUILD_AVX2
static inline int lnorm_cpu_avx2(void) {
    return cpu_has(CPU_AVX | CPU_FMA | CPU_F16C, CPU_AVX2, SAVED_YMM);
}
#endif

#if defined LNORM_SIMDE
static inline int lnorm_cpu_avx512(void) {
    return 1;
}
#elif LNORM_BUILD_AVX512
static inline int lnorm_cpu_avx512(void) {
    return cpu_has(CPU_AVX | CPU_FMA | CPU_F16C,
                   CPU_AVX2 | CPU_AVX512F | CPU_AVX512DQ | CPU_AVX512BW | CPU_AVX512VL, SAVED_ZMM);
}
#endif

/* IF_BUILT(LNORM_BUILD_X)(tokens): the tokens, or none. */
#define TOKENS(...) __VA_ARGS__
#define NO_TOKENS(...)
#define IF_BUILT_1 TOKENS
#define IF_BUILT_0 NO_TOKENS
#define IF_BUILT_(built) IF_BUILT_##built
#define IF_BUILT(built) IF_BUILT_(built)

static const lnorm_kernels *const tables[] = {
#define ISA(name, built, runs) IF_BUILT(built)(&lnorm_kernels_##name, )
#include "lists/isas.def"
#undef ISA
};

enum { TABLES = sizeof tables / sizeof *tables };

static int runs_here(const lnorm_kernels *kernels) {
    return 0
#define ISA(name, built, runs) IF_BUILT(built)(|| (kernels == &lnorm_kernels_##name && (runs)))
#include "lists/isas.def"
#undef ISA
        ;
}

const lnorm_kernels *lnorm_kernels_at(int index, int *runs) {
    if (index < 0 || index >= TABLES)
        return NULL;
    *runs = runs_here(tables[index]);
    return tables[index];
}

/* contracts.inc's question to code that is compiled for no instruction set in particular: the reference, for one. */
static int plain_code_contracts(void) {
    volatile double factor = 1.0 + 0x1p-27, rounded_square = 1.0 + 0x1p-26;
    double a = factor;
    return a * a - rounded_square != 0.0;
}

int lnorm_contracts(const lnorm_kernels *kernels) {
    lnorm_environment caller = lnorm_environment_enter();
    int contracts = plain_code_contracts() || kernels->contracts();
    lnorm_environment_leave(caller);
    return contracts;
}

/* An empty LNORM_ISA is none. */
static const lnorm_kernels *choose(void) {
    const char *name = getenv("LNORM_ISA");
    for (int i = TABLES; i-- > 0;)
        if ((!name || !*name || !strcmp(name, tables[i]->name)) && runs_here(tables[i]))
            return lnorm_contracts(tables[i]) ? NULL : tables[i];
    return NULL;
}

static const lnorm_kernels not_available;
static _Atomic(const lnorm_kernels *) chosen;

const lnorm_kernels *lnorm_dispatch(void) {
    const lnorm_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!kernels) {
        kernels = choose();
        if (!kernels)
            kernels = &not_available;
        atomic_store_explicit(&chosen, kernels, memory_order_relaxed); /* the tables are constant: nothing to order */
    }
    return kernels == &not_available ? NULL : kernels;
}

const char *lnorm_isa(void) {
    const lnorm_kernels *kernels = lnorm_dispatch();
    return kernels ? kernels->name : NULL;
}
