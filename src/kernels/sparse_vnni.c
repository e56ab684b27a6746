/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights of bytes with AVX-512 VNNI: 64 rows of x, of four k each, are interleaved to four
 * registers of 16 rows × four bytes, which meet the weights of four outputs. */
#include <immintrin.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { VECTORS = 4, FETCH = 64 }; /* FETCH: groups fetched before they are needed */

/* Interleaving leaves rows 4j … 4j+3 of every quarter in register j. */
SN_INLINE void interleave(__m512i *out, const uint8_t *const x[4])
{
    const __m512i a = _mm512_loadu_si512(x[0]), b = _mm512_loadu_si512(x[1]);
    const __m512i c = _mm512_loadu_si512(x[2]), d = _mm512_loadu_si512(x[3]);
    const __m512i ab = _mm512_unpacklo_epi8(a, b), ab2 = _mm512_unpackhi_epi8(a, b);
    const __m512i cd = _mm512_unpacklo_epi8(c, d), cd2 = _mm512_unpackhi_epi8(c, d);
    out[0] = _mm512_unpacklo_epi16(ab, cd);
    out[1] = _mm512_unpackhi_epi16(ab, cd);
    out[2] = _mm512_unpacklo_epi16(ab2, cd2);
    out[3] = _mm512_unpackhi_epi16(ab2, cd2);
}

/* v[i] becomes quarter i of all four: rows are in order then. */
SN_INLINE void put_in_order(__m512i v[VECTORS])
{
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x44),
                  b = _mm512_shuffle_i32x4(v[0], v[1], 0xEE),
                  c = _mm512_shuffle_i32x4(v[2], v[3], 0x44),
                  d = _mm512_shuffle_i32x4(v[2], v[3], 0xEE);
    v[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    v[1] = _mm512_shuffle_i32x4(a, c, 0xDD);
    v[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    v[3] = _mm512_shuffle_i32x4(b, d, 0xDD);
}

SN_INLINE __m512i four(const int8_t *w)
{
    int word;
    __builtin_memcpy(&word, w, sizeof word);
    return _mm512_set1_epi32(word);
}

static void panel(const sn_q8_sparse *t, size_t p)
{
    const size_t o0 = p * SN_SPARSE_PANEL;
    const uint16_t *at = t->index + 4 * (size_t)t->first[p];
    const uint16_t *end = t->index + 4 * (size_t)t->first[p + 1];
    const int8_t *w = t->w + 16 * (size_t)t->first[p];
    const ptrdiff_t x_k = t->x_k;
    __m512i acc[SN_SPARSE_PANEL][VECTORS];
    SN_UNROLL for (size_t o = 0; o < SN_SPARSE_PANEL; o++)
    {
        const __m512i first = _mm512_set1_epi32(o0 + o < t->outputs ? t->start[o0 + o] : 0);
        SN_UNROLL for (int i = 0; i < VECTORS; i++) acc[o][i] = first;
    }
    SN_NO_UNROLL for (; at < end; at += 4, w += 16)
    {
        const uint8_t *const x[4] = {t->x + at[0] * x_k, t->x + at[1] * x_k, t->x + at[2] * x_k,
                                     t->x + at[3] * x_k};
        __m512i v[VECTORS];
        SN_FETCH_L1(w + 16 * FETCH);
        SN_FETCH_L1(at + 4 * FETCH);
        interleave(v, x);
        SN_UNROLL for (int o = 0; o < SN_SPARSE_PANEL; o++)
        {
            const __m512i weights = four(w + 4 * o);
            SN_UNROLL for (int i = 0; i < VECTORS; i++) acc[o][i] =
                _mm512_dpbusd_epi32(acc[o][i], v[i], weights);
        }
    }
    SN_UNROLL for (size_t o = 0; o < SN_SPARSE_PANEL; o++)
    {
        if (o0 + o == t->outputs)
            return;
        int32_t *y = t->y + (ptrdiff_t)(o0 + o) * t->y_o;
        put_in_order(acc[o]);
        SN_UNROLL for (int i = 0; i < VECTORS; i++) _mm512_storeu_si512(y + i * t->y_v, acc[o][i]);
    }
}

void sn_u8_sparse4_vnni(const sn_q8_sparse *t)
{
    for (size_t p = 0; p * SN_SPARSE_PANEL < t->outputs; p++)
        panel(t, p);
}

typedef __m128i b16;
#define b16_load(p)         _mm_loadu_si128((const __m128i *)(const void *)(p))
#define b16_store(p, v)     _mm_storeu_si128((__m128i *)(void *)(p), v)
#define b16_zero()          _mm_setzero_si128()
#define b16_bytes(word)     _mm_set1_epi32((int)(word))
#define b16_add(a, b)       _mm_add_epi32(a, b)
#define b16_dot(sums, x, w) _mm_dpbusd_epi32(sums, x, w)
#include "kernels/sparse_bytes.tmpl.h"

void sn_u8_sparse4_row_vnni(const sn_q8_sparse_row *t)
{
    sparse_row(t);
}
