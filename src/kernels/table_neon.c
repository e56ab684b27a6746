/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes through a table with NEON, which looks up in 64 bytes at once and keeps what it has where
 * an index is larger: a quarter of the table after the other. */
#include "kernels/kernels.h"
#include "kernels/simd_neon.h"

enum { LANES = 16, QUARTER = 64 };

SN_INLINE uint8x16x4_t quarter(const uint8_t *p)
{
    return (uint8x16x4_t){
        {vld1q_u8(p), vld1q_u8(p + LANES), vld1q_u8(p + 2 * LANES), vld1q_u8(p + 3 * LANES)}};
}

void sn_u8_table_neon(uint8_t *y, const uint8_t *x, size_t n, const uint8_t *table)
{
    const uint8x16x4_t t0 = quarter(table), t1 = quarter(table + QUARTER),
                       t2 = quarter(table + 2 * QUARTER), t3 = quarter(table + 3 * QUARTER);
    const uint8x16_t step = vdupq_n_u8(QUARTER);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        uint8x16_t v = vld1q_u8(x + i);
        uint8x16_t found = vqtbl4q_u8(t0, v);
        v = vsubq_u8(v, step); /* below 0 is above 63, too */
        found = vqtbx4q_u8(found, t1, v);
        v = vsubq_u8(v, step);
        found = vqtbx4q_u8(found, t2, v);
        v = vsubq_u8(v, step);
        vst1q_u8(y + i, vqtbx4q_u8(found, t3, v));
    }
    sn_u8_table_ref(y + i, x + i, n - i, table);
}
