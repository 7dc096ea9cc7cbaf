/* The floating-point environment: round to nearest even, subnormals kept, traps masked while a task runs; the
 * caller's own afterwards. The asm barriers keep the compiler from moving loads, and so arithmetic, out of the guarded
 * region. */
#ifndef LNORM_ENVIRONMENT_H
#define LNORM_ENVIRONMENT_H

#include "arithmetic.h"

#if defined __x86_64__

typedef unsigned int lnorm_environment;

enum { LNORM_MXCSR_DEFAULT = 0x1f80, LNORM_MXCSR_FLAGS = 0x3f };

static inline lnorm_environment lnorm_environment_enter(void) {
    lnorm_environment caller = __builtin_ia32_stmxcsr();
    if ((caller & ~(unsigned int)LNORM_MXCSR_FLAGS) != LNORM_MXCSR_DEFAULT)
        __builtin_ia32_ldmxcsr(LNORM_MXCSR_DEFAULT);
    __asm__ volatile("" ::: "memory");
    return caller;
}

static inline void lnorm_environment_leave(lnorm_environment caller) {
    __asm__ volatile("" ::: "memory");
    if ((caller & ~(unsigned int)LNORM_MXCSR_FLAGS) != LNORM_MXCSR_DEFAULT)
        __builtin_ia32_ldmxcsr(caller);
}

#elif defined __aarch64__

typedef uint64_t lnorm_environment;

static inline lnorm_environment lnorm_environment_enter(void) {
    lnorm_environment caller;
    __asm__ volatile("mrs %0, fpcr" : "=r"(caller)::"memory");
    if (caller)
        __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0) : "memory");
    return caller;
}

static inline void lnorm_environment_leave(lnorm_environment caller) {
    __asm__ volatile("" ::: "memory");
    if (caller)
        __asm__ volatile("msr fpcr, %0" ::"r"(caller) : "memory");
}

#else /* i386, too: its C library computes square roots on the x87, which has a control word of its own */

#include <fenv.h>

typedef fenv_t lnorm_environment;

static inline lnorm_environment lnorm_environment_enter(void) {
    fenv_t caller;
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    __asm__ volatile("" ::: "memory");
    return caller;
}

static inline void lnorm_environment_leave(lnorm_environment caller) {
    __asm__ volatile("" ::: "memory");
    fesetenv(&caller);
}

#endif
#endif
