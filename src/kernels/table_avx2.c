/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes through a table with AVX2. */
#include "kernels/simd_avx2.h"

enum { VB_BYTES = 32 };
typedef __m256i vb;
SN_INLINE vb vb_load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
SN_INLINE void vb_store(uint8_t *p, vb v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}
SN_INLINE vb vb_repeat(const uint8_t *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SN_INLINE vb vb_set1(char b)
{
    return _mm256_set1_epi8(b);
}
SN_INLINE vb vb_xor(vb a, vb b)
{
    return _mm256_xor_si256(a, b);
}
SN_INLINE vb vb_less(vb a, vb b)
{
    return _mm256_subs_epi8(a, b);
}
SN_INLINE vb vb_shuffle(vb table, vb index)
{
    return _mm256_shuffle_epi8(table, index);
}
#include "kernels/table.tmpl.h"
