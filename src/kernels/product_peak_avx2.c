/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of products of bytes with AVX2: pairs of them in 16 bits, then pairs of those. Kernels
 * for models do not go this way: with bytes of 128 and more a pair does not fit. */
#include <immintrin.h>

#include "kernels/simd_common.h"

enum { PEAK_CHAINS = 8, PEAK_LANES = 8 };
typedef __m256i peak_v, peak_sums;

SN_INLINE peak_sums peak_zero(void)
{
    return _mm256_setzero_si256();
}
SN_INLINE peak_v peak_load(const void *x)
{
    return _mm256_loadu_si256((const __m256i *)x);
}
SN_INLINE peak_sums peak_product(peak_sums sums, peak_v x, peak_v w)
{
    const __m256i pairs = _mm256_maddubs_epi16(x, w);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
SN_INLINE peak_sums peak_add(peak_sums a, peak_sums b)
{
    return _mm256_add_epi32(a, b);
}
SN_INLINE void peak_store(void *y, peak_sums sums)
{
    _mm256_storeu_si256((__m256i *)y, sums);
}
#include "kernels/product_peak.tmpl.h"

void sn_i8_peak_avx2(void *y, const void *x, const void *w, size_t rounds)
{
    peak_of_products(y, x, w, rounds);
}
