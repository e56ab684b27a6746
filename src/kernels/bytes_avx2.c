/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors with AVX2. */
#include "kernels/simd_avx2.h"

SN_INLINE sn_vi vi_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
SN_INLINE sn_vi vi_load_i8(const uint8_t *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
SN_INLINE void vi_store_u8(uint8_t *p, sn_vi v)
{
    v = _mm256_and_si256(v, _mm256_set1_epi32(255));
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(words, words));
}

enum { VB_BYTES = 32 };
SN_INLINE __m256i vb_load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
SN_INLINE void vb_store(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}
SN_INLINE __m256i vb_max(__m256i a, __m256i b, uint8_t flip)
{
    return flip ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b);
}

#define BYTES_HAVE_REQUANTIZE 0
#include "kernels/bytes.tmpl.h"
