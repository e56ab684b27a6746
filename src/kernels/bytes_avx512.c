/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors with AVX-512. */
#include "kernels/simd_avx512.h"

SN_INLINE sn_vi vi_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SN_INLINE sn_vi vi_load_i8(const uint8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SN_INLINE void vi_store_u8(uint8_t *p, sn_vi v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(v));
}

enum { VB_BYTES = 64 };
SN_INLINE __m512i vb_load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}
SN_INLINE void vb_store(uint8_t *p, __m512i v)
{
    _mm512_storeu_si512(p, v);
}
SN_INLINE __m512i vb_max(__m512i a, __m512i b, uint8_t flip)
{
    return flip ? _mm512_max_epi8(a, b) : _mm512_max_epu8(a, b);
}

#include "kernels/bytes.tmpl.h"
