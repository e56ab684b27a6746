/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of quantised tensors with AVX-512. */
#include <stdbool.h>

#include "kernels/simd_avx512.h"

SN_INLINE sn_vi vi_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SN_INLINE sn_vi vi_load_i8(const uint8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SN_INLINE void vi_store_u8(uint8_t *p, sn_vi v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(v));
}

enum { VB_BYTES = 64 };
SN_INLINE __m512i vb_load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}
SN_INLINE void vb_store(uint8_t *p, __m512i v)
{
    _mm512_storeu_si512(p, v);
}
SN_INLINE __m512i vb_max(__m512i a, __m512i b, uint8_t flip)
{
    return flip ? _mm512_max_epi8(a, b) : _mm512_max_epu8(a, b);
}

SN_INLINE __m512i vb_xor(__m512i a, uint8_t flip)
{
    return _mm512_xor_si512(a, _mm512_set1_epi8((char)flip));
}

typedef struct vb_sums {
    __m512i even, odd; /* of bytes 0, 2, … and 1, 3, … */
} vb_sums;
SN_INLINE void vb_sums_add(vb_sums *s, __m512i v)
{
    s->even = _mm512_add_epi16(s->even, _mm512_and_si512(v, _mm512_set1_epi16(255)));
    s->odd = _mm512_add_epi16(s->odd, _mm512_srli_epi16(v, 8));
}
SN_INLINE void vb_sums_wide(sn_vi v[4], const vb_sums *s)
{
    const __m512i a = _mm512_unpacklo_epi16(s->even, s->odd);
    const __m512i b = _mm512_unpackhi_epi16(s->even, s->odd);
    /* Quarters of a and b in turn, eight sums each, are those of bytes in order. */
    const __m512i ab = _mm512_shuffle_i64x2(a, b, 0x44), more = _mm512_shuffle_i64x2(a, b, 0xEE);
    const __m512i order = _mm512_setr_epi64(0, 1, 4, 5, 2, 3, 6, 7);
    const __m512i low = _mm512_permutexvar_epi64(order, ab);
    const __m512i high = _mm512_permutexvar_epi64(order, more);
    v[0] = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(low));
    v[1] = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(low, 1));
    v[2] = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(high));
    v[3] = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(high, 1));
}

/* The halves of 128 bits that packing leaves side by side are put in order at the end. */
SN_INLINE void vi_store_steps(uint8_t *p, const sn_vi v[4], int32_t zero, uint8_t flip)
{
    const __m512i z = _mm512_set1_epi16((short)zero);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), z);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), z);
    vb_store(p, vb_xor(_mm512_permutexvar_epi32(order, _mm512_packus_epi16(a, b)), flip));
}

#define BYTES_HAVE_REQUANTIZE 1
#include "kernels/bytes_pool.tmpl.h"

/* ------------------------------------------------------------------ sums to bytes */
/* 64 sums at a time: packing to 16 and 8 bits cuts to the type. An integer that is too large for an
 * int32 would come out as the smallest, so that scales must be below 1 (sums · scale are integers
 * of 32 bits then); others take the way of 16 sums, which cuts before it rounds. NaN is the
 * smallest number, too, which is what it has to be. */
enum { WIDE = 64, QUARTERS = 4 };

SN_INLINE __mmask16 lanes(size_t left) /* those that are there of the last vectors */
{
    return (__mmask16)(left < SN_VL ? (1u << left) - 1 : 0xffff);
}

static bool scales_are_small(const float *scale, size_t n)
{
    __mmask16 large = 0;
    for (size_t i = 0; i < n; i += SN_VL) {
        const __m512 s = _mm512_abs_ps(_mm512_maskz_loadu_ps(lanes(n - i), scale + i));
        large = (__mmask16)(large | _mm512_cmp_ps_mask(s, _mm512_set1_ps(1.0f), _CMP_GE_OQ));
    }
    return large == 0;
}

typedef struct wide_limits {
    __m512i zero, lo, hi; /* of 16 bits; of bytes */
    __m512i order;        /* packing works on quarters: where each of their fours belongs */
} wide_limits;

SN_INLINE __m512i wide_bytes(const int32_t *x, const float *scale, __mmask64 there,
                             const wide_limits *l, const bool is_signed, const bool whole)
{
    __m512i v[QUARTERS];
    SN_UNROLL for (int q = 0; q < QUARTERS; q++)
    {
        const __mmask16 m = (__mmask16)(there >> (q * SN_VL));
        const __m512 s = whole ? _mm512_loadu_ps(scale + q * SN_VL)
                               : _mm512_maskz_loadu_ps(m, scale + q * SN_VL);
        const __m512i sum =
            whole ? _mm512_loadu_si512(x + q * SN_VL) : _mm512_maskz_loadu_epi32(m, x + q * SN_VL);
        v[q] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), s));
    }
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), l->zero);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), l->zero);
    __m512i y = is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    y = is_signed ? _mm512_min_epi8(_mm512_max_epi8(y, l->lo), l->hi)
                  : _mm512_min_epu8(_mm512_max_epu8(y, l->lo), l->hi);
    return _mm512_permutexvar_epi32(l->order, y);
}

/* 16 bytes, as integers of 32 bits, with what is added to them. */
typedef struct wide_sum {
    __m512 a_scale, b_scale, offset, lo, hi;
    bool second, is_signed;
} wide_sum;

SN_INLINE wide_sum sum_of(const sn_requantize_sum *s)
{
    const float lo = s->is_signed ? -128.0f : 0.0f;
    return (wide_sum){_mm512_set1_ps(s->a_scale),
                      _mm512_set1_ps(s->b_scale),
                      _mm512_set1_ps(s->offset),
                      _mm512_set1_ps(lo),
                      _mm512_set1_ps(lo + 255),
                      s->second,
                      s->is_signed};
}

SN_INLINE __m512 as_floats(__m128i bytes, const bool is_signed)
{
    return _mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(bytes)
                                        : _mm512_cvtepu8_epi32(bytes));
}

SN_INLINE void store_sum(uint8_t *y, __m128i own, const uint8_t *z, __mmask16 m, const wide_sum *s)
{
    const __m512 v = as_floats(own, s->is_signed);
    const __m512 w = as_floats(_mm_maskz_loadu_epi8(m, z), s->is_signed);
    const __m512 a = s->second ? w : v, b = s->second ? v : w;
    const __m512 f = _mm512_fmadd_ps(a, s->a_scale, _mm512_fmadd_ps(b, s->b_scale, s->offset));
    const __m512 cut = _mm512_min_ps(_mm512_max_ps(f, s->lo), s->hi); /* NaN is lo */
    _mm_mask_storeu_epi8(y, m, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(cut)));
}

SN_INLINE void store_wide(uint8_t *y, __m512i bytes, __mmask64 there, const uint8_t *z,
                          const wide_sum *s)
{
    if (!s) {
        _mm512_mask_storeu_epi8(y, there, bytes);
        return;
    }
    store_sum(y, _mm512_castsi512_si128(bytes), z, (__mmask16)there, s);
    store_sum(y + SN_VL, _mm512_extracti32x4_epi32(bytes, 1), z + SN_VL,
              (__mmask16)(there >> SN_VL), s);
    if (!(there >> 2 * SN_VL))
        return;
    store_sum(y + 2 * SN_VL, _mm512_extracti32x4_epi32(bytes, 2), z + 2 * SN_VL,
              (__mmask16)(there >> 2 * SN_VL), s);
    store_sum(y + 3 * SN_VL, _mm512_extracti32x4_epi32(bytes, 3), z + 3 * SN_VL,
              (__mmask16)(there >> 3 * SN_VL), s);
}

/* `s`: NULL, or what t->sum says. */
SN_INLINE void requantize_wide(const sn_requantize_args *t, const wide_sum *s, const bool is_signed)
{
    const wide_limits l = {
        .zero = _mm512_set1_epi16((short)t->zero),
        .lo = _mm512_set1_epi8((char)(int)t->lo),
        .hi = _mm512_set1_epi8((char)(int)t->hi),
        .order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)};
    for (size_t r = 0; r < t->rows; r++) {
        const ptrdiff_t at = (ptrdiff_t)r * t->y_row;
        const int32_t *x = t->x + (ptrdiff_t)r * t->x_row;
        const uint8_t *z = s ? t->sum->z + at : NULL;
        uint8_t *y = t->y + at;
        size_t i = 0;
        for (; i + WIDE <= t->n; i += WIDE)
            store_wide(y + i, wide_bytes(x + i, t->scale + i, ~(__mmask64)0, &l, is_signed, true),
                       ~(__mmask64)0, s ? z + i : NULL, s);
        if (i == t->n)
            continue;
        const __mmask64 there = ((__mmask64)1 << (t->n - i)) - 1;
        store_wide(y + i, wide_bytes(x + i, t->scale + i, there, &l, is_signed, false), there,
                   s ? z + i : NULL, s);
    }
}

/* Scales below 1. */
SN_INLINE void requantize_small(const sn_requantize_args *t, const bool is_signed)
{
    if (!t->sum) {
        requantize_wide(t, NULL, is_signed);
        return;
    }
    const wide_sum s = sum_of(t->sum);
    requantize_wide(t, &s, is_signed);
}

void sn_i32_requantize_avx512(const sn_requantize_args *t)
{
    const byte_limits l = limits_of(t->zero, t->lo, t->hi);
    const bool is_signed = t->lo < 0 || t->zero < 0;
    if (scales_are_small(t->scale, t->n)) {
        if (is_signed)
            requantize_small(t, true);
        else
            requantize_small(t, false);
        return;
    }
    const wide_sum s = t->sum ? sum_of(t->sum) : (wide_sum){.second = false};
    for (size_t r = 0; r < t->rows; r++)
        for (size_t i = 0; i < t->n; i += SN_VL) {
            const ptrdiff_t at = (ptrdiff_t)r * t->y_row + (ptrdiff_t)i;
            const __mmask16 m = lanes(t->n - i);
            const __m512i x = _mm512_maskz_loadu_epi32(m, t->x + (ptrdiff_t)r * t->x_row + i);
            const __m512 scale = _mm512_maskz_loadu_ps(m, t->scale + i);
            const __m128i y =
                _mm512_cvtepi32_epi8(to_bytes(_mm512_mul_ps(_mm512_cvtepi32_ps(x), scale), &l));
            if (t->sum)
                store_sum(t->y + at, y, t->sum->z + at, m, &s);
            else
                _mm_mask_storeu_epi8(t->y + at, m, y);
        }
}
