/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights on AVX2; the code is sparse.tmpl.h and sparse_rows.tmpl.h. */
#include "kernels/simd_avx2.h"

#define SN_SPARSE_MOST SN_SPARSE_MOST8
#include "kernels/sparse.tmpl.h"

typedef __m128 v4;
#define v4_load(p)        _mm_loadu_ps(p)
#define v4_store(p, v)    _mm_storeu_ps(p, v)
#define v4_set1(f)        _mm_set1_ps(f)
#define v4_bcast(p)       _mm_broadcast_ss(p)
#define v4_add(a, b)      _mm_add_ps(a, b)
#define v4_fma(a, b, c)   _mm_fmadd_ps(a, b, c)
#define v4_at_least(v, l) _mm_max_ps(l, v) /* a NaN in v stays */
#define v4_at_most(v, h)  _mm_min_ps(h, v)
#include "kernels/sparse_rows.tmpl.h"

void sn_f32_sparse4_rows_avx2(const sn_f32_sparse_rows *t)
{
    sparse_rows_run(t);
}

/* ------------------------------------------------------------------ bytes */
/* Bytes become 16 bits wide, as the instruction for bytes saturates: 16 rows of two k each are two
 * registers of pairs, rows 0 … 3 and 8 … 11 in the first. */
enum { VECTORS = 2 };

SN_INLINE void pairs(__m256i out[VECTORS], const uint8_t *a, const uint8_t *b)
{
    const __m256i wide_a = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)a));
    const __m256i wide_b = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)b));
    out[0] = _mm256_unpacklo_epi16(wide_a, wide_b);
    out[1] = _mm256_unpackhi_epi16(wide_a, wide_b);
}

static void bytes_panel(const sn_q8_sparse *t, size_t p)
{
    const size_t o0 = p * SN_SPARSE_PANEL;
    const uint16_t *at = t->index + 4 * (size_t)t->first[p];
    const uint16_t *end = t->index + 4 * (size_t)t->first[p + 1];
    const int8_t *w = t->w + 16 * (size_t)t->first[p];
    const ptrdiff_t x_k = t->x_k;
    __m256i acc[SN_SPARSE_PANEL][VECTORS];
    SN_UNROLL for (size_t o = 0; o < SN_SPARSE_PANEL; o++)
    {
        const __m256i first = _mm256_set1_epi32(o0 + o < t->outputs ? t->start[o0 + o] : 0);
        SN_UNROLL for (int i = 0; i < VECTORS; i++) acc[o][i] = first;
    }
    SN_NO_UNROLL for (; at < end; at += 4, w += 16)
    {
        int wide[2 * SN_SPARSE_PANEL]; /* two weights each */
        _mm256_storeu_si256((__m256i *)(void *)wide,
                            _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w)));
        SN_UNROLL for (int k = 0; k < 2; k++)
        {
            __m256i v[VECTORS];
            pairs(v, t->x + at[2 * k] * x_k, t->x + at[2 * k + 1] * x_k);
            SN_UNROLL for (int o = 0; o < SN_SPARSE_PANEL; o++)
            {
                const __m256i weights = _mm256_set1_epi32(wide[2 * o + k]);
                SN_UNROLL for (int i = 0; i < VECTORS; i++) acc[o][i] =
                    _mm256_add_epi32(acc[o][i], _mm256_madd_epi16(v[i], weights));
            }
        }
    }
    SN_UNROLL for (size_t o = 0; o < SN_SPARSE_PANEL; o++)
    {
        if (o0 + o == t->outputs)
            return;
        int32_t *y = t->y + (ptrdiff_t)(o0 + o) * t->y_o;
        _mm256_storeu_si256((__m256i *)(void *)y,
                            _mm256_permute2x128_si256(acc[o][0], acc[o][1], 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(y + t->y_v),
                            _mm256_permute2x128_si256(acc[o][0], acc[o][1], 0x31));
    }
}

void sn_u8_sparse4_avx2(const sn_q8_sparse *t)
{
    for (size_t p = 0; p * SN_SPARSE_PANEL < t->outputs; p++)
        bytes_panel(t, p);
}

/* Sums of four products: widened, multiplied in pairs, pairs added. */
SN_INLINE __m128i dot16(__m128i sums, __m128i x, __m128i w)
{
    const __m256i two = _mm256_madd_epi16(_mm256_cvtepu8_epi16(x), _mm256_cvtepi8_epi16(w));
    return _mm_add_epi32(
        sums, _mm_hadd_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1)));
}

typedef __m128i b16;
#define b16_load(p)         _mm_loadu_si128((const __m128i *)(const void *)(p))
#define b16_store(p, v)     _mm_storeu_si128((__m128i *)(void *)(p), v)
#define b16_zero()          _mm_setzero_si128()
#define b16_bytes(word)     _mm_set1_epi32((int)(word))
#define b16_add(a, b)       _mm_add_epi32(a, b)
#define b16_dot(sums, x, w) dot16(sums, x, w)
#include "kernels/sparse_bytes.tmpl.h"

void sn_u8_sparse4_row_avx2(const sn_q8_sparse_row *t)
{
    sparse_row(t);
}
