/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of up to four channels become pixels of four numbers of 16 bits (signatures.h, bf16_join and
 * f16_join), for files of AVX-512 that say how 16 numbers of a row are loaded into low halves. */
#ifndef SN_KERNELS_JOIN_AVX512_H
#define SN_KERNELS_JOIN_AVX512_H

#include <immintrin.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

/* The numbers of the 16 pixels from i on that there are. */
SN_INLINE __mmask16 join_some(size_t i, size_t n)
{
    return (__mmask16)(n - i < SN_PAIR_BLOCK ? (1u << (n - i)) - 1 : 0xffff);
}

/* 16 pixels, or `some` of them, to y; which numbers have the exponent `top`, and are not finite. */
SN_INLINE __mmask32 join_store(uint16_t *y, const __m512i x[SN_JOIN_CHANNELS], __mmask16 some,
                               short top)
{
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i high =
        _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
    const __m512i a = _mm512_or_si512(x[0], _mm512_slli_epi32(x[1], 16));
    const __m512i b = _mm512_or_si512(x[2], _mm512_slli_epi32(x[3], 16));
    const __m512i tops = _mm512_set1_epi16(top);
    const uint32_t pixels = some; /* 8 bytes each */
    _mm512_mask_storeu_epi64(y, (__mmask8)(pixels & 0xff), _mm512_permutex2var_epi32(a, low, b));
    _mm512_mask_storeu_epi64(y + 2 * SN_PAIR_BLOCK, (__mmask8)(pixels >> 8),
                             _mm512_permutex2var_epi32(a, high, b));
    return _mm512_cmpeq_epi16_mask(_mm512_and_si512(a, tops), tops) |
           _mm512_cmpeq_epi16_mask(_mm512_and_si512(b, tops), tops);
}

#endif
