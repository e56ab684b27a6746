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

#include "kernels/bytes.tmpl.h"
