/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits with AVX2 and F16C. */
#include "kernels/simd_avx2.h"

SN_INLINE sn_v v_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SN_INLINE void v_store_f16(uint16_t *p, sn_v v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
SN_INLINE sn_vi vi_load_u16(const uint16_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SN_INLINE void vi_store_u16(uint16_t *p, sn_vi v)
{
    __m128i lo = _mm256_castsi256_si128(v), hi = _mm256_extracti128_si256(v, 1);
    _mm_storeu_si128((__m128i *)(void *)p, _mm_packus_epi32(lo, hi)); /* below 65536: exact */
}

#include "kernels/half.tmpl.h"
