/* A hostile caller, for same_bits.c: other rounding modes, flushed subnormals, unmasked traps. */
#ifndef LNORM_SAME_BITS_HOSTILE_H
#define LNORM_SAME_BITS_HOSTILE_H

#include <fenv.h>
#include <stdint.h>
#if defined __SSE2__
#include <emmintrin.h>
#endif

static int hostile;

enum { RESULTS = 1, OPERANDS = 2, TRAPS = 4, FLUSH = RESULTS | OPERANDS };

/* Subnormal results or operands are flushed to zero, traps unmasked, where the machine has such modes. */
static void set_modes(int modes) {
#if defined __SSE2__
    unsigned int control = _mm_getcsr() & ~0x3Fu; /* without old flags, which would trap at once */
    control |= (modes & RESULTS ? 0x8000u : 0) | (modes & OPERANDS ? 0x40u : 0);
    _mm_setcsr(modes & TRAPS ? control & ~0x1F80u : control);
#elif defined __aarch64__
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control |= modes & FLUSH ? UINT64_C(1) << 24 : 0;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    (void)modes;
#endif
}

/* The control register, without the status flags. */
static uint64_t get_modes(void) {
#if defined __SSE2__
    return _mm_getcsr() & ~0x3Fu;
#elif defined __aarch64__
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
}

static fenv_t friendly;
static int rounding;
static uint64_t modes_before;

static void enter_hostile(int way) {
    static const struct {
        int rounding, modes;
    } callers[] = {{FE_UPWARD, FLUSH},         {FE_DOWNWARD, TRAPS}, {FE_TOWARDZERO, FLUSH | TRAPS},
                   {FE_TONEAREST, OPERANDS},   {FE_TONEAREST, TRAPS}, {FE_DOWNWARD, 0},
                   {FE_TONEAREST, RESULTS},    {FE_UPWARD, FLUSH | TRAPS}};
    enum { CALLERS = sizeof callers / sizeof *callers };
    fegetenv(&friendly);
    if (!hostile)
        return;
    rounding = callers[way % CALLERS].rounding;
    fesetround(rounding);
    set_modes(callers[way % CALLERS].modes);
    modes_before = get_modes();
}

/* The library must have left the environment as it was. */
static int leave_hostile(void) {
    int kept = !hostile || (fegetround() == rounding && get_modes() == modes_before);
    fesetenv(&friendly);
    return kept;
}

#endif
