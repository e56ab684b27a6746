/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary over AVX2 + FMA + F16C: 8 floats, masks as vectors of all-ones lanes.
 * See simd_avx512.h for the meaning of each name. Only for files whose name ends in _avx2.c. */
#ifndef SN_KERNELS_SIMD_AVX2_H
#define SN_KERNELS_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd_common.h"

#define SN_ISA(name) name##_avx2
#define SN_VL        8
#define SN_BLOCK     8
#define SN_BV        1
#define SN_REGS      16
#define SN_REACH     28

typedef __m256 sn_v;
typedef __m256i sn_vi;
typedef __m256 sn_vm;

static inline __m256i v_tail(size_t n) /* n <= 8 lanes */
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline sn_v v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void v_store(float *p, sn_v v)
{
    _mm256_storeu_ps(p, v);
}
static inline sn_v v_load_n(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, v_tail(n));
}
static inline void v_store_n(float *p, sn_v v, size_t n)
{
    _mm256_maskstore_ps(p, v_tail(n), v);
}
static inline sn_v v_set1(float f)
{
    return _mm256_set1_ps(f);
}
static inline sn_v v_bcast(const float *p)
{
    return _mm256_broadcast_ss(p);
}
static inline sn_v v_bcast_at(const float *p, ptrdiff_t by, int shift)
{
    return v_bcast((const float *)(const void *)((const char *)p + by * (1 << shift)));
}
static inline sn_v v_zero(void)
{
    return _mm256_setzero_ps();
}

static inline sn_v v_add(sn_v a, sn_v b)
{
    return _mm256_add_ps(a, b);
}
static inline sn_v v_sub(sn_v a, sn_v b)
{
    return _mm256_sub_ps(a, b);
}
static inline sn_v v_mul(sn_v a, sn_v b)
{
    return _mm256_mul_ps(a, b);
}
static inline sn_v v_div(sn_v a, sn_v b)
{
    return _mm256_div_ps(a, b);
}
static inline sn_v v_sqrt(sn_v a)
{
    return _mm256_sqrt_ps(a);
}
static inline sn_v v_fma(sn_v a, sn_v b, sn_v c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline sn_v v_fnma(sn_v a, sn_v b, sn_v c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
/* a / b to 2 ulp, where 1 / b is no subnormal. */
static inline sn_v v_quotient(sn_v a, sn_v b)
{
    sn_v r = _mm256_rcp_ps(b);
    r = v_fma(v_fnma(b, r, _mm256_set1_ps(1.0f)), r, r);
    sn_v q = _mm256_mul_ps(a, r);
    return v_fma(v_fnma(b, q, a), r, q);
}
static inline sn_v v_at_least(sn_v v, sn_v lo)
{
    return _mm256_max_ps(lo, v);
}
/* The larger of v and lo; NaN becomes lo. */
static inline sn_v v_number_least(sn_v v, sn_v lo)
{
    return _mm256_max_ps(v, lo);
}
static inline sn_v v_at_most(sn_v v, sn_v hi)
{
    return _mm256_min_ps(hi, v);
}
static inline sn_v v_abs(sn_v a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
static inline sn_v v_neg(sn_v a)
{
    return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}
static inline sn_v v_and(sn_v a, sn_v b)
{
    return _mm256_and_ps(a, b);
}
static inline sn_v v_or(sn_v a, sn_v b)
{
    return _mm256_or_ps(a, b);
}
static inline sn_v v_xor(sn_v a, sn_v b)
{
    return _mm256_xor_ps(a, b);
}
static inline sn_v v_round(sn_v a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline sn_v v_floor(sn_v a)
{
    return _mm256_floor_ps(a);
}
static inline sn_v v_ceil(sn_v a)
{
    return _mm256_ceil_ps(a);
}
static inline sn_v v_trunc(sn_v a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

static inline sn_vm v_lt(sn_v a, sn_v b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
static inline sn_vm v_le(sn_v a, sn_v b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
static inline sn_vm v_gt(sn_v a, sn_v b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
static inline sn_vm v_ge(sn_v a, sn_v b)
{
    return _mm256_cmp_ps(a, b, _CMP_GE_OQ);
}
static inline sn_vm v_eq(sn_v a, sn_v b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}
static inline sn_vm v_ne(sn_v a, sn_v b)
{
    return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ);
}
static inline sn_vm v_nan(sn_v a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}
static inline sn_vm vm_or(sn_vm a, sn_vm b)
{
    return _mm256_or_ps(a, b);
}
static inline sn_vm vm_and(sn_vm a, sn_vm b)
{
    return _mm256_and_ps(a, b);
}
static inline sn_v v_select(sn_vm m, sn_v yes, sn_v no)
{
    return _mm256_blendv_ps(no, yes, m);
}
/* The larger; a NaN in either wins. */
static inline sn_v v_max_or_nan(sn_v a, sn_v b)
{
    return v_select(v_nan(a), a, _mm256_max_ps(a, b));
}

static inline sn_vi vi_set1(int32_t i)
{
    return _mm256_set1_epi32(i);
}
static inline sn_vi vi_add(sn_vi a, sn_vi b)
{
    return _mm256_add_epi32(a, b);
}
static inline sn_vi vi_sub(sn_vi a, sn_vi b)
{
    return _mm256_sub_epi32(a, b);
}
static inline sn_vi vi_and(sn_vi a, sn_vi b)
{
    return _mm256_and_si256(a, b);
}
static inline sn_vi vi_or(sn_vi a, sn_vi b)
{
    return _mm256_or_si256(a, b);
}
static inline sn_vi vi_xor(sn_vi a, sn_vi b)
{
    return _mm256_xor_si256(a, b);
}
#define vi_shl(a, n) _mm256_slli_epi32(a, n)
#define vi_shr(a, n) _mm256_srli_epi32(a, n)
#define vi_sar(a, n) _mm256_srai_epi32(a, n)
static inline sn_vm vi_eq(sn_vi a, sn_vi b)
{
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b));
}
static inline sn_vm vi_gt(sn_vi a, sn_vi b)
{
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b));
}
static inline sn_vi vi_from_v(sn_v a)
{
    return _mm256_cvtps_epi32(a);
}
static inline sn_v v_from_vi(sn_vi a)
{
    return _mm256_cvtepi32_ps(a);
}
static inline sn_vi vi_cast(sn_v a)
{
    return _mm256_castps_si256(a);
}
static inline sn_v v_cast(sn_vi a)
{
    return _mm256_castsi256_ps(a);
}
static inline sn_vi vi_load(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline sn_v v_lanes(const float *p, sn_vi lanes)
{
    const __m256 none = _mm256_castsi256_ps(_mm256_srai_epi32(lanes, 31));
    return _mm256_andnot_ps(none, _mm256_permutevar8x32_ps(v_load(p), lanes));
}
static inline sn_v v_lanes2(const float *p, const float *q, sn_vi lanes)
{
    const __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(lanes, 28));
    const __m256 none = _mm256_castsi256_ps(_mm256_srai_epi32(lanes, 31));
    const __m256 both = _mm256_blendv_ps(_mm256_permutevar8x32_ps(v_load(p), lanes),
                                         _mm256_permutevar8x32_ps(v_load(q), lanes), second);
    return _mm256_andnot_ps(none, both);
}
static inline void vi_store(int32_t *p, sn_vi v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
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
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}
static inline float v_hmax(sn_v a)
{
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)));
}
static inline float v_hmin(sn_v a)
{
    return -v_hmax(v_neg(a));
}

SN_INLINE void v_transpose(sn_v r[SN_VL])
{
    sn_v t[8];
    SN_UNROLL for (int i = 0; i < 8; i += 4)
    {
        sn_v a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
        sn_v c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm256_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm256_shuffle_ps(a, c, 0xEE);
        t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm256_shuffle_ps(b, d, 0xEE);
    }
    SN_UNROLL for (int i = 0; i < 4; i++)
    {
        r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
    }
}

#endif
