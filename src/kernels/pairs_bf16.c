/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of f32 become bf16 with AVX512-BF16: one instruction rounds two vectors. */
#include <immintrin.h>
#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

SN_INLINE void pairs(uint16_t *y, const float *a, const float *b, size_t n, size_t step,
                     const float *gate, const bool two, const bool gated)
{
    const __m512 low_gate = gated ? _mm512_loadu_ps(gate) : _mm512_setzero_ps();
    const __m512 high_gate = gated && two ? _mm512_loadu_ps(gate + SN_PAIR_BLOCK) : low_gate;
    __m512 high = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i++, y += 2 * SN_PAIR_BLOCK) {
        __m512 low = _mm512_loadu_ps(a + i * step);
        if (two)
            high = _mm512_loadu_ps(b + i * step);
        if (gated) {
            low = _mm512_mul_ps(low, low_gate);
            high = two ? _mm512_mul_ps(high, high_gate) : high;
        }
        _mm512_storeu_si512(y, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

void sn_bf16_pairs_bf16(uint16_t *y, const float *a, const float *b, size_t n, size_t step,
                        const float *gate)
{
    if (b && gate)
        pairs(y, a, b, n, step, gate, true, true);
    else if (b)
        pairs(y, a, b, n, step, gate, true, false);
    else if (gate)
        pairs(y, a, b, n, step, gate, false, true);
    else
        pairs(y, a, b, n, step, gate, false, false);
}
