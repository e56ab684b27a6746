/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with the dot product instructions of ARMv8.2. */
#include "kernels/q8_neon.tmpl.h"

enum { Q8_SUMS = 2 };
SN_INLINE void q8_dot(q8_v *sums, q8_a a, const q8_v *w)
{
    sums[0] = vdotq_s32(sums[0], vreinterpretq_s8_s32(w[0]), a);
    sums[1] = vdotq_s32(sums[1], vreinterpretq_s8_s32(w[1]), a);
}
SN_INLINE void q8_store(int32_t *y, const q8_v *sums, const int32_t *start)
{
    vst1q_s32(y, vaddq_s32(sums[0], vld1q_s32(start)));
    vst1q_s32(y + 4, vaddq_s32(sums[1], vld1q_s32(start + 4)));
}
#include "kernels/q8_tile.tmpl.h"

void sn_i8_tile_dotprod(const sn_q8_tile *t)
{
    q8_walk(t);
}
