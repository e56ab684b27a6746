/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits with AVX-512. */
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

/* 16 numbers of a row, or `some` of them, in the low halves. */
SN_INLINE __m512i join_load(const uint16_t *x, size_t i, __mmask16 some)
{
    return x ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, x + i))
             : _mm512_setzero_si512();
}

bool sn_f16_join_avx512(uint16_t *y, const uint16_t *const x[SN_JOIN_CHANNELS], size_t n)
{
    enum { BLOCK = SN_PAIR_BLOCK };
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i high =
        _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
    const __m512i top = _mm512_set1_epi16(0x7c00); /* the exponent of what is not finite */
    __mmask32 wrong = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t left = n - i;
        const __mmask16 some = (__mmask16)(left < BLOCK ? (1u << left) - 1 : 0xffff);
        const __m512i a = _mm512_or_si512(join_load(x[0], i, some),
                                          _mm512_slli_epi32(join_load(x[1], i, some), 16));
        const __m512i b = _mm512_or_si512(join_load(x[2], i, some),
                                          _mm512_slli_epi32(join_load(x[3], i, some), 16));
        wrong |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(a, top), top) |
                 _mm512_cmpeq_epi16_mask(_mm512_and_si512(b, top), top);
        uint16_t *to = y + SN_JOIN_CHANNELS * i;
        const uint32_t pixels = (uint32_t)some; /* 8 bytes each */
        _mm512_mask_storeu_epi64(to, (__mmask8)(pixels & 0xff),
                                 _mm512_permutex2var_epi32(a, low, b));
        _mm512_mask_storeu_epi64(to + 2 * BLOCK, (__mmask8)(pixels >> 8),
                                 _mm512_permutex2var_epi32(a, high, b));
    }
    return wrong == 0;
}
