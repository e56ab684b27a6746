/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of products of bytes with the dot product instructions of ARMv8.2. */
#include <arm_neon.h>

#include "kernels/simd_common.h"

enum { PEAK_CHAINS = 16, PEAK_LANES = 4 };
typedef int8x16_t peak_v;
typedef int32x4_t peak_sums;

SN_INLINE peak_sums peak_zero(void)
{
    return vdupq_n_s32(0);
}
SN_INLINE peak_v peak_load(const void *x)
{
    return vld1q_s8((const int8_t *)x);
}
SN_INLINE peak_sums peak_product(peak_sums sums, peak_v x, peak_v w)
{
    return vdotq_s32(sums, x, w);
}
SN_INLINE peak_sums peak_add(peak_sums a, peak_sums b)
{
    return vaddq_s32(a, b);
}
SN_INLINE void peak_store(void *y, peak_sums sums)
{
    vst1q_s32((int32_t *)y, sums);
}
#include "kernels/product_peak.tmpl.h"

void sn_i8_peak_dotprod(void *y, const void *x, const void *w, size_t rounds)
{
    peak_of_products(y, x, w, rounds);
}
