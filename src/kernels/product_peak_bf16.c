/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of products of bf16 with AVX512-BF16. */
#include <immintrin.h>

#include "kernels/simd_common.h"

enum { PEAK_CHAINS = 16, PEAK_LANES = 16 };
typedef __m512i peak_v;
typedef __m512 peak_sums;

SN_INLINE peak_sums peak_zero(void)
{
    return _mm512_setzero_ps();
}
SN_INLINE peak_v peak_load(const void *x)
{
    return _mm512_loadu_si512(x);
}
SN_INLINE peak_sums peak_product(peak_sums sums, peak_v x, peak_v w)
{
    return _mm512_dpbf16_ps(sums, (__m512bh)x, (__m512bh)w);
}
SN_INLINE peak_sums peak_add(peak_sums a, peak_sums b)
{
    return _mm512_add_ps(a, b);
}
SN_INLINE void peak_store(void *y, peak_sums sums)
{
    _mm512_storeu_ps(y, sums);
}
#include "kernels/product_peak.tmpl.h"

void sn_bf16_peak_bf16(void *y, const void *x, const void *w, size_t rounds)
{
    peak_of_products(y, x, w, rounds);
}
