/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary over AVX-512 (F, BW, DQ, VL): 16 floats, masks in mask registers.
 * The same names exist in simd_avx2.h and simd_neon.h; templates use nothing else.
 * Only for files whose name ends in _avx512.c. */
#ifndef SN_KERNELS_SIMD_AVX512_H
#define SN_KERNELS_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd_common.h"

#define SN_ISA(name) name##_avx512
#define SN_VL        16 /* floats in a vector */
#define SN_BLOCK     16 /* channels in a block of the blocked layout */
#define SN_BV        1  /* vectors in a block */
#define SN_REGS      32
#define SN_REACH     14 /* more would need more than seven registers for distances */

typedef __m512 sn_v;
typedef __m512i sn_vi;
typedef __mmask16 sn_vm;

static inline sn_vm v_tail(size_t n)
{
    return (sn_vm)((1u << n) - 1u);
} /* n <= 16 lanes */

static inline sn_v v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void v_store(float *p, sn_v v)
{
    _mm512_storeu_ps(p, v);
}
/* n < SN_VL elements; the other lanes are 0 and never touched in memory. */
static inline sn_v v_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(v_tail(n), p);
}
static inline void v_store_n(float *p, sn_v v, size_t n)
{
    _mm512_mask_storeu_ps(p, v_tail(n), v);
}
static inline sn_v v_set1(float f)
{
    return _mm512_set1_ps(f);
}
static inline sn_v v_bcast(const float *p)
{
    return _mm512_set1_ps(*p);
}
/* p[0] where p is `by` << `shift` bytes further, shift <= 3. Compilers see that the distance is the
 * same in every turn of a loop, and then keep each multiple in a register, or on the stack. */
static inline sn_v v_bcast_at(const float *p, ptrdiff_t by, int shift)
{
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    sn_v v;
#define SN_BCAST_AT(scale)                                                                         \
    __asm__("vbroadcastss (%1,%2," #scale "),%0"                                                   \
            : "=v"(v)                                                                              \
            : "r"(p), "r"(by), "m"(*(const float(*)[1 << 20])(const void *)p));                    \
    break
    switch (shift) {
    case 0:
        SN_BCAST_AT(1);
    case 1:
        SN_BCAST_AT(2);
    case 2:
        SN_BCAST_AT(4);
    default:
        SN_BCAST_AT(8);
    }
#undef SN_BCAST_AT
    return v;
#else
    return v_bcast((const float *)(const void *)((const char *)p + by * (1 << shift)));
#endif
}
static inline sn_v v_zero(void)
{
    return _mm512_setzero_ps();
}

static inline sn_v v_add(sn_v a, sn_v b)
{
    return _mm512_add_ps(a, b);
}
static inline sn_v v_sub(sn_v a, sn_v b)
{
    return _mm512_sub_ps(a, b);
}
static inline sn_v v_mul(sn_v a, sn_v b)
{
    return _mm512_mul_ps(a, b);
}
static inline sn_v v_div(sn_v a, sn_v b)
{
    return _mm512_div_ps(a, b);
}
static inline sn_v v_sqrt(sn_v a)
{
    return _mm512_sqrt_ps(a);
}
static inline sn_v v_fma(sn_v a, sn_v b, sn_v c)
{
    return _mm512_fmadd_ps(a, b, c);
} /* a*b + c */
static inline sn_v v_fnma(sn_v a, sn_v b, sn_v c)
{
    return _mm512_fnmadd_ps(a, b, c);
} /* c - a*b */
/* limit against a number; a NaN in v stays. */
static inline sn_v v_at_least(sn_v v, sn_v lo)
{
    return _mm512_max_ps(lo, v);
}
/* a / b to 2 ulp, where 1 / b is no subnormal: a third of a division's time. */
static inline sn_v v_quotient(sn_v a, sn_v b)
{
    sn_v r = _mm512_rcp14_ps(b);
    return _mm512_mul_ps(a, v_fma(v_fnma(b, r, _mm512_set1_ps(1.0f)), r, r));
}
/* a * 2^n for whole n, rounded once. */
static inline sn_v v_scale_by_2(sn_v a, sn_v n)
{
    return _mm512_scalef_ps(a, n);
}
/* The larger of v and lo; NaN becomes lo. */
static inline sn_v v_number_least(sn_v v, sn_v lo)
{
    return _mm512_max_ps(v, lo);
}
static inline sn_v v_at_most(sn_v v, sn_v hi)
{
    return _mm512_min_ps(hi, v);
}
static inline sn_v v_abs(sn_v a)
{
    return _mm512_abs_ps(a);
}
static inline sn_v v_neg(sn_v a)
{
    return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}
static inline sn_v v_and(sn_v a, sn_v b)
{
    return _mm512_and_ps(a, b);
}
static inline sn_v v_or(sn_v a, sn_v b)
{
    return _mm512_or_ps(a, b);
}
static inline sn_v v_xor(sn_v a, sn_v b)
{
    return _mm512_xor_ps(a, b);
}
static inline sn_v v_round(sn_v a) /* to nearest, ties to even */
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline sn_v v_floor(sn_v a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
static inline sn_v v_ceil(sn_v a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
static inline sn_v v_trunc(sn_v a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

/* Comparisons are false when a NaN takes part (v_ne: true). */
static inline sn_vm v_lt(sn_v a, sn_v b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
static inline sn_vm v_le(sn_v a, sn_v b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
static inline sn_vm v_gt(sn_v a, sn_v b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
static inline sn_vm v_ge(sn_v a, sn_v b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
static inline sn_vm v_eq(sn_v a, sn_v b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
static inline sn_vm v_ne(sn_v a, sn_v b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ);
}
static inline sn_vm v_nan(sn_v a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
static inline sn_vm vm_or(sn_vm a, sn_vm b)
{
    return (sn_vm)(a | b);
}
static inline sn_vm vm_and(sn_vm a, sn_vm b)
{
    return (sn_vm)(a & b);
}
static inline sn_v v_select(sn_vm m, sn_v yes, sn_v no)
{
    return _mm512_mask_blend_ps(m, no, yes);
}
/* The larger; a NaN in either wins. */
static inline sn_v v_max_or_nan(sn_v a, sn_v b)
{
    return _mm512_mask_max_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b);
}

/* 32-bit integers in the same registers. */
static inline sn_vi vi_set1(int32_t i)
{
    return _mm512_set1_epi32(i);
}
static inline sn_vi vi_add(sn_vi a, sn_vi b)
{
    return _mm512_add_epi32(a, b);
}
static inline sn_vi vi_sub(sn_vi a, sn_vi b)
{
    return _mm512_sub_epi32(a, b);
}
static inline sn_vi vi_and(sn_vi a, sn_vi b)
{
    return _mm512_and_si512(a, b);
}
static inline sn_vi vi_or(sn_vi a, sn_vi b)
{
    return _mm512_or_si512(a, b);
}
static inline sn_vi vi_xor(sn_vi a, sn_vi b)
{
    return _mm512_xor_si512(a, b);
}
#define vi_shl(a, n) _mm512_slli_epi32(a, n)
#define vi_shr(a, n) _mm512_srli_epi32(a, n) /* zeros come in */
#define vi_sar(a, n) _mm512_srai_epi32(a, n) /* the sign comes in */
static inline sn_vm vi_eq(sn_vi a, sn_vi b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}
static inline sn_vm vi_gt(sn_vi a, sn_vi b)
{
    return _mm512_cmpgt_epi32_mask(a, b);
}
static inline sn_vi vi_from_v(sn_v a)
{
    return _mm512_cvtps_epi32(a);
} /* rounds to nearest even */
static inline sn_v v_from_vi(sn_vi a)
{
    return _mm512_cvtepi32_ps(a);
}
static inline sn_vi vi_cast(sn_v a)
{
    return _mm512_castps_si512(a);
} /* the bits */
static inline sn_v v_cast(sn_vi a)
{
    return _mm512_castsi512_ps(a);
}
static inline sn_vi vi_load(const int32_t *p)
{
    return _mm512_loadu_si512(p);
}
/* Lanes of the block at p, or of those at p and q: numbers from SN_BLOCK on are of the second, a
 * negative number is zero. */
static inline sn_v v_lanes(const float *p, sn_vi lanes)
{
    const __mmask16 some = _mm512_cmpge_epi32_mask(lanes, _mm512_setzero_si512());
    return _mm512_maskz_permutexvar_ps(some, lanes, v_load(p));
}
static inline sn_v v_lanes2(const float *p, const float *q, sn_vi lanes)
{
    const __mmask16 some = _mm512_cmpge_epi32_mask(lanes, _mm512_setzero_si512());
    return _mm512_maskz_permutex2var_ps(some, v_load(p), lanes, v_load(q));
}
static inline void vi_store(int32_t *p, sn_vi v)
{
    _mm512_storeu_si512(p, v);
}

static inline float v_sum(sn_v a)
{
    return _mm512_reduce_add_ps(a);
}
static inline float v_hmax(sn_v a)
{
    return _mm512_reduce_max_ps(a);
} /* no NaN in a */
static inline float v_hmin(sn_v a)
{
    return _mm512_reduce_min_ps(a);
}

/* r[i][j] becomes r[j][i]. Three steps: inside 128-bit lanes (pairs, then quads), then the lanes.
 */
SN_INLINE void v_transpose(sn_v r[SN_VL])
{
    sn_v t[16];
    SN_UNROLL for (int i = 0; i < 16; i += 4)
    {
        sn_v a = _mm512_unpacklo_ps(r[i], r[i + 1]), b = _mm512_unpackhi_ps(r[i], r[i + 1]);
        sn_v c = _mm512_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm512_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm512_shuffle_ps(a, c, 0xEE);
        t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm512_shuffle_ps(b, d, 0xEE);
    }
    SN_UNROLL for (int i = 0; i < 4; i++)
    {
        sn_v a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
        sn_v b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xDD);
        sn_v c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
        sn_v d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xDD);
        r[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(a, c, 0xDD);
        r[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(b, d, 0xDD);
    }
}

#endif
