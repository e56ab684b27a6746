/* SPDX-License-Identifier: Apache-2.0 */
/* What products of bytes share on ARM: both operands are signed. */
#include <arm_neon.h>
#include <stdint.h>

#include "kernels/simd_common.h"

enum { Q8_BLOCK = 8, Q8_WS = 2 };
typedef int8x16_t q8_a;
typedef int32x4_t q8_v;

SN_INLINE q8_v q8_zero(void)
{
    return vdupq_n_s32(0);
}
SN_INLINE void q8_weights(q8_v *w, const int8_t *from)
{
    w[0] = vreinterpretq_s32_s8(vld1q_s8(from));
    w[1] = vreinterpretq_s32_s8(vld1q_s8(from + 16));
}

SN_INLINE q8_a q8_bytes(uint32_t word)
{
    return vreinterpretq_s8_u32(vdupq_n_u32(word));
}
SN_INLINE q8_a q8_flip(q8_a a, q8_a flip)
{
    return veorq_s8(a, flip);
}

#if SONDE_FEW_TILES
#define Q8_TILES(X) SN_FEW_TILES_1(X)
#else
#define Q8_TILES(X) SN_BYTE_TILES8_1(X)
#endif
