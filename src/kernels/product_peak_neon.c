/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of products of bytes with NEON alone: the sums of two products fit 16 bits, and pairs of
 * those are added to the others. */
#include <arm_neon.h>

#include "kernels/simd_common.h"

enum { PEAK_CHAINS = 12, PEAK_LANES = 4 };
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
/* Sums of neighbours, so that each lane has the products of its own four bytes. */
SN_INLINE peak_sums peak_product(peak_sums sums, peak_v x, peak_v w)
{
    const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w)), high = vmull_high_s8(x, w);
    return vpadalq_s16(sums, vpaddq_s16(low, high));
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

void sn_i8_peak_neon(void *y, const void *x, const void *w, size_t rounds)
{
    peak_of_products(y, x, w, rounds);
}
