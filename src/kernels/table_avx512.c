/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes through a table with AVX-512. */
#include "kernels/simd_avx512.h"

enum { VB_BYTES = 64 };
typedef __m512i vb;
SN_INLINE vb vb_load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}
SN_INLINE void vb_store(uint8_t *p, vb v)
{
    _mm512_storeu_si512(p, v);
}
SN_INLINE vb vb_repeat(const uint8_t *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SN_INLINE vb vb_set1(char b)
{
    return _mm512_set1_epi8(b);
}
SN_INLINE vb vb_xor(vb a, vb b)
{
    return _mm512_xor_si512(a, b);
}
SN_INLINE vb vb_less(vb a, vb b)
{
    return _mm512_subs_epi8(a, b);
}
SN_INLINE vb vb_shuffle(vb table, vb index)
{
    return _mm512_shuffle_epi8(table, index);
}
#include "kernels/table.tmpl.h"
