/* SPDX-License-Identifier: Apache-2.0 */
/* How the calling thread's floating-point unit treats denormal numbers, those closer to 0 than
 * 1.2e-38 in f32. Arithmetic on them takes a detour of a hundred cycles and more on many
 * processors; flushing makes them 0, as inputs and as results. */
#ifndef SN_BASE_FPMODE_H
#define SN_BASE_FPMODE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Everything but the flags of what happened, which are each thread's own. */
static inline uint32_t sn_fp_get(void)
{
    return _mm_getcsr() & ~(uint32_t)_MM_EXCEPT_MASK;
}
static inline void sn_fp_set(uint32_t mode)
{
    _mm_setcsr(mode | (_mm_getcsr() & _MM_EXCEPT_MASK));
}
#define SN_FP_FLUSH 0x8040u /* results (FTZ) and inputs (DAZ) */

#elif defined(__aarch64__)

static inline uint32_t sn_fp_get(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (uint32_t)fpcr;
}
static inline void sn_fp_set(uint32_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode));
}
#define SN_FP_FLUSH (1u << 24) /* FZ: both */

#endif

static inline uint32_t sn_fp_flushing(uint32_t mode)
{
    return mode | SN_FP_FLUSH;
}

#endif
