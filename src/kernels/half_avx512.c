/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits with AVX-512. */
#include "kernels/join_avx512.h"
#include "kernels/simd_avx512.h"

SN_INLINE sn_v v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
SN_INLINE void v_store_f16(uint16_t *p, sn_v v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
SN_INLINE sn_vi vi_load_u16(const uint16_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
SN_INLINE void vi_store_u16(uint16_t *p, sn_vi v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(v));
}

#include "kernels/half.tmpl.h"

bool sn_f16_join_avx512(uint16_t *y, const uint16_t *const x[SN_JOIN_CHANNELS], size_t n)
{
    __mmask32 wrong = 0;
    for (size_t i = 0; i < n; i += SN_PAIR_BLOCK) {
        const __mmask16 some = join_some(i, n);
        __m512i rows[SN_JOIN_CHANNELS];
        SN_UNROLL for (int c = 0; c < SN_JOIN_CHANNELS; c++) rows[c] =
            x[c] ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, x[c] + i))
                 : _mm512_setzero_si512();
        wrong |= join_store(y + SN_JOIN_CHANNELS * i, rows, some, 0x7c00);
    }
    return wrong == 0;
}
