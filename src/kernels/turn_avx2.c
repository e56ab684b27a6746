/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bytes to columns on x86. */
#include "kernels/simd_avx2.h"

typedef __m128i vb;
SN_INLINE vb vb_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
SN_INLINE void vb_store(uint8_t *p, vb v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}
SN_INLINE vb vb_low(vb a, vb b)
{
    return _mm_unpacklo_epi8(a, b);
}
SN_INLINE vb vb_high(vb a, vb b)
{
    return _mm_unpackhi_epi8(a, b);
}
#include "kernels/turn.tmpl.h"
