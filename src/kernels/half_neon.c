/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits with NEON. */
#include "kernels/simd_neon.h"

SN_INLINE sn_v v_load_f16(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
SN_INLINE void v_store_f16(uint16_t *p, sn_v v)
{
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}
SN_INLINE sn_vi vi_load_u16(const uint16_t *p)
{
    return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p)));
}
SN_INLINE void vi_store_u16(uint16_t *p, sn_vi v)
{
    vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(v)));
}

#include "kernels/half.tmpl.h"
