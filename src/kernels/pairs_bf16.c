/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of f32 become bf16 with AVX512-BF16: one instruction rounds two vectors. */
#include <immintrin.h>
#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

/* What rounding took away from x, and where it gave a finite number. */
SN_INLINE __m512 what_is_left(__m512 x, __m256i rounded, __mmask16 *finite)
{
    const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16);
    const __m512 back = _mm512_castsi512_ps(bits);
    *finite = _mm512_cmp_ps_mask(_mm512_abs_ps(back), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
    return _mm512_sub_ps(x, back);
}

SN_INLINE void pairs(const sn_bf16_pairs *t, const bool two, const bool gated, const bool split)
{
    const __m512 low_gate = gated ? _mm512_loadu_ps(t->gate) : _mm512_setzero_ps();
    const __m512 high_gate = gated && two ? _mm512_loadu_ps(t->gate + SN_PAIR_BLOCK) : low_gate;
    __m512 high = _mm512_setzero_ps();
    for (size_t i = 0; i < t->n; i++) {
        __m512 low = _mm512_loadu_ps(t->a + i * t->step);
        if (two)
            high = _mm512_loadu_ps(t->b + i * t->step);
        if (gated) {
            low = _mm512_mul_ps(low, low_gate);
            high = two ? _mm512_mul_ps(high, high_gate) : high;
        }
        __m512i y = (__m512i)_mm512_cvtne2ps_pbh(high, low);
        if (split) {
            __mmask16 below, above;
            const __m512 a = what_is_left(low, _mm512_castsi512_si256(y), &below);
            const __m512 b = what_is_left(high, _mm512_extracti64x4_epi64(y, 1), &above);
            const __mmask32 finite = (__mmask32)above << SN_PAIR_BLOCK | below;
            const __m512i rest = (__m512i)_mm512_cvtne2ps_pbh(b, a);
            _mm512_storeu_si512(t->rest + i * 2 * SN_PAIR_BLOCK,
                                _mm512_mask_mov_epi16(y, finite, rest));
            y = _mm512_maskz_mov_epi16(finite, y);
        }
        _mm512_storeu_si512(t->y + i * 2 * SN_PAIR_BLOCK, y);
    }
}

void sn_bf16_pairs_bf16(const sn_bf16_pairs *t)
{
    if (t->rest || !t->b)
        pairs(t, t->b != NULL, t->gate != NULL, t->rest != NULL);
    else if (t->gate)
        pairs(t, true, true, false);
    else
        pairs(t, true, false, false);
}
