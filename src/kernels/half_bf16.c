/* SPDX-License-Identifier: Apache-2.0 */
/* f32 becomes bf16 with AVX512-BF16, where one instruction rounds two vectors: with what stands
 * between sums of products and the result (residual, clip, Silu), and on the way to tiles. */
#include <immintrin.h>
#include <stdbool.h>

#include "kernels/join_avx512.h"

/* What rounding took away from x, and where it gave a finite number. */
SN_INLINE __m512 what_is_left(__m512 x, __m256i rounded, __mmask16 *finite)
{
    const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16);
    const __m512 back = _mm512_castsi512_ps(bits);
    *finite = _mm512_cmp_ps_mask(_mm512_abs_ps(back), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
    return _mm512_sub_ps(x, back);
}

SN_INLINE __m512 widen(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

SN_INLINE __m512 widened(const uint16_t *p)
{
    return widen(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

SN_INLINE void pairs(const sn_bf16_pairs *t, const bool two, const bool gated, const bool split,
                     const bool halves)
{
    const __m512 low_gate = gated ? _mm512_loadu_ps(t->gate) : _mm512_setzero_ps();
    const __m512 high_gate = gated && two ? _mm512_loadu_ps(t->gate + SN_PAIR_BLOCK) : low_gate;
    __m512 high = _mm512_setzero_ps();
    for (size_t i = 0; i < t->n; i++) {
        const size_t at = i * t->step;
        __m512 low = halves ? widened(t->a16 + at) : _mm512_loadu_ps(t->a + at);
        if (two)
            high = halves ? widened(t->b16 + at) : _mm512_loadu_ps(t->b + at);
        if (gated) {
            low = _mm512_mul_ps(low, low_gate);
            high = two ? _mm512_mul_ps(high, high_gate) : high;
        }
        __m512i y = (__m512i)_mm512_cvtne2ps_pbh(high, low);
        if (split) {
            __mmask16 below, above;
            const __m512 a = what_is_left(low, _mm512_castsi512_si256(y), &below);
            const __m512 b = what_is_left(high, _mm512_extracti64x4_epi64(y, 1), &above);
            const __mmask32 finite = (__mmask32)above << SN_PAIR_BLOCK | below;
            const __m512i rest = (__m512i)_mm512_cvtne2ps_pbh(b, a);
            _mm512_storeu_si512(t->rest + i * 2 * SN_PAIR_BLOCK,
                                _mm512_mask_mov_epi16(y, finite, rest));
            y = _mm512_maskz_mov_epi16(finite, y);
        }
        _mm512_storeu_si512(t->y + i * 2 * SN_PAIR_BLOCK, y);
    }
}

/* Nothing to round: blocks side by side. */
SN_INLINE void put_together(const sn_bf16_pairs *t, const bool two)
{
    __m256i high = _mm256_setzero_si256();
    for (size_t i = 0; i < t->n; i++) {
        const size_t at = i * t->step;
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(t->a16 + at));
        if (two)
            high = _mm256_loadu_si256((const __m256i *)(const void *)(t->b16 + at));
        _mm512_storeu_si512(t->y + i * 2 * SN_PAIR_BLOCK,
                            _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
}

void sn_bf16_pairs_bf16(const sn_bf16_pairs *t)
{
    if (!t->a && !t->gate && !t->rest)
        put_together(t, t->b16 != NULL);
    else if (!t->a)
        pairs(t, t->b16 != NULL, t->gate != NULL, t->rest != NULL, true);
    else if (t->rest || !t->b)
        pairs(t, t->b != NULL, t->gate != NULL, t->rest != NULL, false);
    else if (t->gate)
        pairs(t, true, true, false, false);
    else
        pairs(t, true, false, false, false);
}

/* The first n of 16 numbers, and zeros. */
SN_INLINE __m512 load_some(const float *x, size_t n)
{
    const __mmask16 some = (__mmask16)(n < SN_PAIR_BLOCK ? (1u << n) - 1 : 0xffff);
    return _mm512_maskz_loadu_ps(some, x);
}

void sn_bf16_round_bf16(const sn_bf16_round *t)
{
    enum { HALF = SN_PAIR_BLOCK, STEP = 2 * HALF };
    const size_t even = t->n / STEP * STEP, left = t->n - even;
    for (size_t r = 0; r < t->rows; r++) {
        const float *x = t->x + (ptrdiff_t)r * t->x_row;
        uint16_t *y = t->y + (ptrdiff_t)r * t->y_row;
        for (size_t i = 0; i < even; i += STEP)
            _mm512_storeu_si512(y + i, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + HALF),
                                                                    _mm512_loadu_ps(x + i)));
        if (left == 0)
            continue;
        const __m512 low = load_some(x + even, left);
        const __m512 high =
            left > HALF ? load_some(x + even + HALF, left - HALF) : _mm512_setzero_ps();
        _mm512_storeu_si512(y + even, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

/* Sums of 16, where there is an addend with it, between limits; a NaN stays one. */
SN_INLINE __m512 add_clip(__m512 x, __m256i z, const bool add, __m512 lo, __m512 hi)
{
    if (add)
        x = _mm512_add_ps(x, widen(z));
    return _mm512_min_ps(hi, _mm512_max_ps(lo, x));
}

SN_INLINE __m256i load_16(const uint16_t *p, const bool there)
{
    return there ? _mm256_loadu_si256((const __m256i *)(const void *)p) : _mm256_setzero_si256();
}

SN_INLINE void add_clip_all(uint16_t *y, const float *x, const uint16_t *z, size_t n, float lo,
                            float hi, const bool add)
{
    const __m512 low = _mm512_set1_ps(lo), high = _mm512_set1_ps(hi);
    size_t i = 0;
    for (; i + 2 * SN_PAIR_BLOCK <= n; i += 2 * SN_PAIR_BLOCK) {
        const uint16_t *za = add ? z + i : NULL, *zb = add ? za + SN_PAIR_BLOCK : NULL;
        const __m512 a = add_clip(_mm512_loadu_ps(x + i), load_16(za, add), add, low, high);
        const __m512 b =
            add_clip(_mm512_loadu_ps(x + i + SN_PAIR_BLOCK), load_16(zb, add), add, low, high);
        _mm512_storeu_si512(y + i, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
    for (; i < n; i += SN_PAIR_BLOCK) {
        const size_t left = n - i;
        const __mmask16 some = (__mmask16)(left < SN_PAIR_BLOCK ? (1u << left) - 1 : 0xffff);
        const __m256i addend = add ? _mm256_maskz_loadu_epi16(some, z + i) : load_16(NULL, false);
        const __m512 a = add_clip(_mm512_maskz_loadu_ps(some, x + i), addend, add, low, high);
        _mm256_mask_storeu_epi16(y + i, some, (__m256i)_mm512_cvtneps_pbh(a));
    }
}

void sn_bf16_add_clip_bf16(uint16_t *y, const float *x, const uint16_t *z, size_t n, float lo,
                           float hi)
{
    if (z)
        add_clip_all(y, x, z, n, lo, hi, true);
    else
        add_clip_all(y, x, NULL, n, lo, hi, false);
}

/* 2^t by a polynomial in its fraction, to 13 bits; the reciprocal has 14. */
SN_INLINE __m512 swish(__m512 x, __m512 minus_beta)
{
    const __m512 t = _mm512_mul_ps(x, minus_beta), one = _mm512_set1_ps(1.0f);
    const __m512 f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(7.80244917e-2f), f, _mm512_set1_ps(2.26067573e-1f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.95833206e-1f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.99925256e-1f));
    const __m512 e = _mm512_scalef_ps(p, t); /* by its whole part */
    return _mm512_mul_ps(x, _mm512_rcp14_ps(_mm512_add_ps(e, one)));
}

void sn_bf16_swish_bf16(uint16_t *y, const float *x, size_t n, float beta)
{
    const __m512 factor = _mm512_set1_ps(-1.44269504f * beta);
    size_t i = 0;
    for (; i + 2 * SN_PAIR_BLOCK <= n; i += 2 * SN_PAIR_BLOCK) {
        const __m512 a = swish(_mm512_loadu_ps(x + i), factor);
        const __m512 b = swish(_mm512_loadu_ps(x + i + SN_PAIR_BLOCK), factor);
        _mm512_storeu_si512(y + i, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
    for (; i < n; i += SN_PAIR_BLOCK) {
        const size_t left = n - i;
        const __mmask16 some = (__mmask16)(left < SN_PAIR_BLOCK ? (1u << left) - 1 : 0xffff);
        const __m512 a = swish(_mm512_maskz_loadu_ps(some, x + i), factor);
        _mm256_mask_storeu_epi16(y + i, some, (__m256i)_mm512_cvtneps_pbh(a));
    }
}

void sn_f32_swish_rough_bf16(float *y, const float *x, size_t n, float beta)
{
    const __m512 factor = _mm512_set1_ps(-1.44269504f * beta);
    size_t i = 0;
    for (; i + SN_PAIR_BLOCK <= n; i += SN_PAIR_BLOCK)
        _mm512_storeu_ps(y + i, swish(_mm512_loadu_ps(x + i), factor));
    const __mmask16 some = (__mmask16)((1u << (n - i)) - 1);
    if (i < n)
        _mm512_mask_storeu_ps(y + i, some, swish(_mm512_maskz_loadu_ps(some, x + i), factor));
}

/* 16 numbers of a row, or `some` of them, in the low halves. */
SN_INLINE __m512i join_load(const float *x, size_t i, __mmask16 some)
{
    if (!x)
        return _mm512_setzero_si512();
    const __m512 v = _mm512_maskz_loadu_ps(some, x + i);
    return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(v));
}

bool sn_bf16_join_bf16(uint16_t *y, const float *const x[SN_JOIN_CHANNELS], size_t n)
{
    __mmask32 wrong = 0;
    for (size_t i = 0; i < n; i += SN_PAIR_BLOCK) {
        const __mmask16 some = join_some(i, n);
        __m512i rows[SN_JOIN_CHANNELS];
        SN_UNROLL for (int c = 0; c < SN_JOIN_CHANNELS; c++) rows[c] = join_load(x[c], i, some);
        wrong |= join_store(y + SN_JOIN_CHANNELS * i, rows, some, 0x7f80);
    }
    return wrong == 0;
}
