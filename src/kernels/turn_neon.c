/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bytes to columns with NEON. */
#include "kernels/simd_neon.h"

typedef uint8x16_t vb;
SN_INLINE vb vb_load(const uint8_t *p)
{
    return vld1q_u8(p);
}
SN_INLINE void vb_store(uint8_t *p, vb v)
{
    vst1q_u8(p, v);
}
SN_INLINE vb vb_low(vb a, vb b)
{
    return vzip1q_u8(a, b);
}
SN_INLINE vb vb_high(vb a, vb b)
{
    return vzip2q_u8(a, b);
}
SN_INLINE void vb_store3(uint8_t *p, vb a, vb b, vb c)
{
    const uint8x16x3_t three = {{a, b, c}};
    vst3q_u8(p, three); /* a macro in clang, to which a literal's commas would be arguments */
}
SN_INLINE void vb_load3(vb v[3], const uint8_t *p)
{
    const uint8x16x3_t three = vld3q_u8(p);
    v[0] = three.val[0];
    v[1] = three.val[1];
    v[2] = three.val[2];
}
#include "kernels/turn.tmpl.h"
