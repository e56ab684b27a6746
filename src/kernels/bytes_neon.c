/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors with NEON. */
#include <string.h>

#include "kernels/simd_neon.h"

SN_INLINE uint8x8_t four_bytes(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return vreinterpret_u8_u32(vdup_n_u32(word));
}
SN_INLINE sn_vi vi_load_u8(const uint8_t *p)
{
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(four_bytes(p)))));
}
SN_INLINE sn_vi vi_load_i8(const uint8_t *p)
{
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(four_bytes(p)))));
}
SN_INLINE void vi_store_u8(uint8_t *p, sn_vi v)
{
    uint16x4_t words = vmovn_u32(vreinterpretq_u32_s32(v));
    uint32_t word = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0);
    memcpy(p, &word, sizeof word);
}

enum { VB_BYTES = 16 };
SN_INLINE uint8x16_t vb_load(const uint8_t *p)
{
    return vld1q_u8(p);
}
SN_INLINE void vb_store(uint8_t *p, uint8x16_t v)
{
    vst1q_u8(p, v);
}
SN_INLINE uint8x16_t vb_max(uint8x16_t a, uint8x16_t b, uint8_t flip)
{
    const int8x16_t sa = vreinterpretq_s8_u8(a), sb = vreinterpretq_s8_u8(b);
    return flip ? vreinterpretq_u8_s8(vmaxq_s8(sa, sb)) : vmaxq_u8(a, b);
}

#define BYTES_HAVE_REQUANTIZE 0
#include "kernels/bytes.tmpl.h"
