/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary over NEON (aarch64): 4 floats, masks as vectors of all-ones lanes.
 * See simd_avx512.h for the meaning of each name. Only for files whose name ends in _neon.c. */
#ifndef SN_KERNELS_SIMD_NEON_H
#define SN_KERNELS_SIMD_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd_common.h"

#define SN_ISA(name) name##_neon
#define SN_VL        4
#define SN_BLOCK     8
#define SN_BV        2
#define SN_REGS      32
#define SN_REACH     28

typedef float32x4_t sn_v;
typedef int32x4_t sn_vi;
typedef uint32x4_t sn_vm;

static inline sn_v v_load(const float *p)
{
    return vld1q_f32(p);
}
static inline void v_store(float *p, sn_v v)
{
    vst1q_f32(p, v);
}
static inline sn_v v_load_n(const float *p, size_t n) /* n < 4 */
{
    sn_v v = vdupq_n_f32(0.0f);
    if (n > 0)
        v = vld1q_lane_f32(p, v, 0);
    if (n > 1)
        v = vld1q_lane_f32(p + 1, v, 1);
    if (n > 2)
        v = vld1q_lane_f32(p + 2, v, 2);
    return v;
}
static inline void v_store_n(float *p, sn_v v, size_t n)
{
    if (n > 0)
        vst1q_lane_f32(p, v, 0);
    if (n > 1)
        vst1q_lane_f32(p + 1, v, 1);
    if (n > 2)
        vst1q_lane_f32(p + 2, v, 2);
}
static inline sn_v v_set1(float f)
{
    return vdupq_n_f32(f);
}
static inline sn_v v_bcast(const float *p)
{
    return vld1q_dup_f32(p);
}
static inline sn_v v_bcast_at(const float *p, ptrdiff_t by, int shift)
{
    return v_bcast((const float *)(const void *)((const char *)p + by * (1 << shift)));
}
static inline sn_v v_zero(void)
{
    return vdupq_n_f32(0.0f);
}

static inline sn_v v_add(sn_v a, sn_v b)
{
    return vaddq_f32(a, b);
}
static inline sn_v v_sub(sn_v a, sn_v b)
{
    return vsubq_f32(a, b);
}
static inline sn_v v_mul(sn_v a, sn_v b)
{
    return vmulq_f32(a, b);
}
static inline sn_v v_div(sn_v a, sn_v b)
{
    return vdivq_f32(a, b);
}
static inline sn_v v_sqrt(sn_v a)
{
    return vsqrtq_f32(a);
}
static inline sn_v v_fma(sn_v a, sn_v b, sn_v c)
{
    return vfmaq_f32(c, a, b);
}
static inline sn_v v_fnma(sn_v a, sn_v b, sn_v c)
{
    return vfmsq_f32(c, a, b);
}
/* a / b to 2 ulp, where 1 / b is no subnormal. */
static inline sn_v v_quotient(sn_v a, sn_v b)
{
    return vdivq_f32(a, b);
}
static inline sn_v v_at_least(sn_v v, sn_v lo)
{
    return vbslq_f32(vcltq_f32(v, lo), lo, v);
}
/* The larger of v and lo; NaN becomes lo. */
static inline sn_v v_number_least(sn_v v, sn_v lo)
{
    return vbslq_f32(vcgtq_f32(v, lo), v, lo);
}
static inline sn_v v_at_most(sn_v v, sn_v hi)
{
    return vbslq_f32(vcgtq_f32(v, hi), hi, v);
}
static inline sn_v v_abs(sn_v a)
{
    return vabsq_f32(a);
}
static inline sn_v v_neg(sn_v a)
{
    return vnegq_f32(a);
}
static inline sn_vi vi_cast(sn_v a)
{
    return vreinterpretq_s32_f32(a);
}
static inline sn_v v_cast(sn_vi a)
{
    return vreinterpretq_f32_s32(a);
}
static inline sn_v v_and(sn_v a, sn_v b)
{
    return v_cast(vandq_s32(vi_cast(a), vi_cast(b)));
}
static inline sn_v v_or(sn_v a, sn_v b)
{
    return v_cast(vorrq_s32(vi_cast(a), vi_cast(b)));
}
static inline sn_v v_xor(sn_v a, sn_v b)
{
    return v_cast(veorq_s32(vi_cast(a), vi_cast(b)));
}
static inline sn_v v_round(sn_v a)
{
    return vrndnq_f32(a);
}
static inline sn_v v_floor(sn_v a)
{
    return vrndmq_f32(a);
}
static inline sn_v v_ceil(sn_v a)
{
    return vrndpq_f32(a);
}
static inline sn_v v_trunc(sn_v a)
{
    return vrndq_f32(a);
}

static inline sn_vm v_lt(sn_v a, sn_v b)
{
    return vcltq_f32(a, b);
}
static inline sn_vm v_le(sn_v a, sn_v b)
{
    return vcleq_f32(a, b);
}
static inline sn_vm v_gt(sn_v a, sn_v b)
{
    return vcgtq_f32(a, b);
}
static inline sn_vm v_ge(sn_v a, sn_v b)
{
    return vcgeq_f32(a, b);
}
static inline sn_vm v_eq(sn_v a, sn_v b)
{
    return vceqq_f32(a, b);
}
static inline sn_vm v_ne(sn_v a, sn_v b)
{
    return vmvnq_u32(vceqq_f32(a, b));
}
static inline sn_vm v_nan(sn_v a)
{
    return vmvnq_u32(vceqq_f32(a, a));
}
static inline sn_vm vm_or(sn_vm a, sn_vm b)
{
    return vorrq_u32(a, b);
}
static inline sn_vm vm_and(sn_vm a, sn_vm b)
{
    return vandq_u32(a, b);
}
static inline sn_v v_select(sn_vm m, sn_v yes, sn_v no)
{
    return vbslq_f32(m, yes, no);
}
/* The larger; a NaN in either wins. */
static inline sn_v v_max_or_nan(sn_v a, sn_v b)
{
    return vmaxq_f32(a, b);
}

static inline sn_vi vi_set1(int32_t i)
{
    return vdupq_n_s32(i);
}
static inline sn_vi vi_add(sn_vi a, sn_vi b)
{
    return vaddq_s32(a, b);
}
static inline sn_vi vi_sub(sn_vi a, sn_vi b)
{
    return vsubq_s32(a, b);
}
static inline sn_vi vi_and(sn_vi a, sn_vi b)
{
    return vandq_s32(a, b);
}
static inline sn_vi vi_or(sn_vi a, sn_vi b)
{
    return vorrq_s32(a, b);
}
static inline sn_vi vi_xor(sn_vi a, sn_vi b)
{
    return veorq_s32(a, b);
}
#define vi_shl(a, n) vshlq_n_s32(a, n)
#define vi_shr(a, n) vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), n))
#define vi_sar(a, n) vshrq_n_s32(a, n)
static inline sn_vm vi_eq(sn_vi a, sn_vi b)
{
    return vceqq_s32(a, b);
}
static inline sn_vm vi_gt(sn_vi a, sn_vi b)
{
    return vcgtq_s32(a, b);
}
static inline sn_vi vi_from_v(sn_v a)
{
    return vcvtnq_s32_f32(a);
}
static inline sn_v v_from_vi(sn_vi a)
{
    return vcvtq_f32_s32(a);
}
static inline sn_vi vi_load(const int32_t *p)
{
    return vld1q_s32(p);
}
/* Bytes of lanes: those of a negative number are beyond any table, which gives zero. */
static inline uint8x16_t v_lane_bytes(sn_vi lanes)
{
    const int32x4_t first = vmulq_s32(lanes, vdupq_n_s32(0x04040404));
    return vreinterpretq_u8_s32(vaddq_s32(first, vdupq_n_s32(0x03020100)));
}
static inline uint8x16_t v_bytes_at(const float *p)
{
    return vreinterpretq_u8_f32(vld1q_f32(p));
}
static inline sn_v v_lanes(const float *p, sn_vi lanes)
{
    const uint8x16x2_t table = {{v_bytes_at(p), v_bytes_at(p + SN_VL)}};
    return vreinterpretq_f32_u8(vqtbl2q_u8(table, v_lane_bytes(lanes)));
}
static inline sn_v v_lanes2(const float *p, const float *q, sn_vi lanes)
{
    const uint8x16x4_t table = {
        {v_bytes_at(p), v_bytes_at(p + SN_VL), v_bytes_at(q), v_bytes_at(q + SN_VL)}};
    return vreinterpretq_f32_u8(vqtbl4q_u8(table, v_lane_bytes(lanes)));
}
static inline void vi_store(int32_t *p, sn_vi v)
{
    vst1q_s32(p, v);
}
/* a * 2^n for whole n, |n| <= 252, in two factors so that subnormal results come out right. */
static inline sn_v v_scale_by_2(sn_v a, sn_v n)
{
    sn_vi k = vi_from_v(n), half = vi_sar(k, 1), bias = vi_set1(127);
    sn_v s0 = v_cast(vi_shl(vi_add(half, bias), 23));
    sn_v s1 = v_cast(vi_shl(vi_add(vi_sub(k, half), bias), 23));
    return v_mul(v_mul(a, s0), s1);
}

static inline float v_sum(sn_v a)
{
    return vaddvq_f32(a);
}
static inline float v_hmax(sn_v a)
{
    return vmaxvq_f32(a);
}
static inline float v_hmin(sn_v a)
{
    return vminvq_f32(a);
}

SN_INLINE void v_transpose(sn_v r[SN_VL])
{
    sn_v a = vtrn1q_f32(r[0], r[1]), b = vtrn2q_f32(r[0], r[1]);
    sn_v c = vtrn1q_f32(r[2], r[3]), d = vtrn2q_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a), vget_low_f32(c));
    r[1] = vcombine_f32(vget_low_f32(b), vget_low_f32(d));
    r[2] = vcombine_f32(vget_high_f32(a), vget_high_f32(c));
    r[3] = vcombine_f32(vget_high_f32(b), vget_high_f32(d));
}

#endif
