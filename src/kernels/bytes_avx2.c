/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors with AVX2. */
#include <stdbool.h>

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
SN_INLINE __m256i vb_xor(__m256i a, uint8_t flip)
{
    return _mm256_xor_si256(a, _mm256_set1_epi8((char)flip));
}

typedef struct vb_sums {
    __m256i even, odd; /* of bytes 0, 2, … and 1, 3, … */
} vb_sums;
SN_INLINE void vb_sums_add(vb_sums *s, __m256i v)
{
    s->even = _mm256_add_epi16(s->even, _mm256_and_si256(v, _mm256_set1_epi16(255)));
    s->odd = _mm256_add_epi16(s->odd, _mm256_srli_epi16(v, 8));
}
SN_INLINE void vb_sums_wide(sn_vi v[4], const vb_sums *s)
{
    const __m256i a = _mm256_unpacklo_epi16(s->even, s->odd);
    const __m256i b = _mm256_unpackhi_epi16(s->even, s->odd);
    v[0] = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(a));
    v[1] = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(b));
    v[2] = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1));
    v[3] = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(b, 1));
}

/* The halves of 128 bits that packing leaves side by side are put in order at the end. */
SN_INLINE void vi_store_steps(uint8_t *p, const sn_vi v[4], int32_t zero, uint8_t flip)
{
    const __m256i z = _mm256_set1_epi16((short)zero);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), z);
    const __m256i b = _mm256_adds_epi16(_mm256_packs_epi32(v[2], v[3]), z);
    vb_store(p, vb_xor(_mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order), flip));
}

#include "kernels/bytes_pool.tmpl.h"
