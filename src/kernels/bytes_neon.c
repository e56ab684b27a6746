/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors with NEON. */
#include <stdbool.h>
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
SN_INLINE uint8x16_t vb_xor(uint8x16_t a, uint8_t flip)
{
    return veorq_u8(a, vdupq_n_u8(flip));
}

typedef struct vb_sums {
    uint16x8_t low, high; /* of the first and the last bytes */
} vb_sums;
SN_INLINE void vb_sums_add(vb_sums *s, uint8x16_t v)
{
    s->low = vaddw_u8(s->low, vget_low_u8(v));
    s->high = vaddw_high_u8(s->high, v);
}
SN_INLINE void vb_sums_wide(sn_vi v[4], const vb_sums *s)
{
    v[0] = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(s->low)));
    v[1] = vreinterpretq_s32_u32(vmovl_high_u16(s->low));
    v[2] = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(s->high)));
    v[3] = vreinterpretq_s32_u32(vmovl_high_u16(s->high));
}

SN_INLINE void vi_store_steps(uint8_t *p, const sn_vi v[4], int32_t zero, uint8_t flip)
{
    const int16x8_t z = vdupq_n_s16((int16_t)zero);
    const int16x8_t a = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(v[0]), v[1]), z);
    const int16x8_t b = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(v[2]), v[3]), z);
    vb_store(p, vb_xor(vqmovun_high_s16(vqmovun_s16(a), b), flip));
}

#include "kernels/bytes_pool.tmpl.h"
