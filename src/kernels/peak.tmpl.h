/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that finds the arithmetic peak: every vector loaded feeds two multiply-adds, on as many
 * independent chains as there are registers for, so that neither latency nor the load ports stand
 * in the way on any core we know. The vector has to be loaded once: a compiler that makes it a
 * memory operand of both loads it twice, and the load ports cost a tenth of the peak. */
#include "kernels/kernels.h"

#if defined(__x86_64__)
#define PEAK_IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define PEAK_IN_REGISTER(v) __asm__("" : "+w"(v))
#endif

enum { PEAK_LOADS = SN_REGS == 32 ? 12 : 6 }; /* half as many as chains */

float SN_ISA(sn_f32_peak)(const float *x, size_t n, size_t rounds)
{
    const sn_v half = v_set1(0.5f), quarter = v_set1(0.25f);
    sn_v a[PEAK_LOADS], b[PEAK_LOADS];
    SN_UNROLL for (int k = 0; k < PEAK_LOADS; k++) a[k] = b[k] = v_zero();
    for (size_t r = 0; r < rounds; r++) {
        size_t i = 0;
        for (; i + PEAK_LOADS * SN_VL <= n; i += PEAK_LOADS * SN_VL) {
            SN_UNROLL for (int k = 0; k < PEAK_LOADS; k++)
            {
                sn_v v = v_load(x + i + (size_t)k * SN_VL);
                PEAK_IN_REGISTER(v);
                a[k] = v_fma(v, half, a[k]);
                b[k] = v_fma(v, quarter, b[k]);
            }
        }
        for (; i < n; i += SN_VL) {
            const sn_v v = n - i < SN_VL ? v_load_n(x + i, n - i) : v_load(x + i);
            a[0] = v_fma(v, half, a[0]);
            b[0] = v_fma(v, quarter, b[0]);
        }
    }
    SN_UNROLL for (int k = 1; k < PEAK_LOADS; k++)
    {
        a[0] = v_add(a[0], a[k]);
        b[0] = v_add(b[0], b[k]);
    }
    return v_sum(v_add(a[0], b[0]));
}
