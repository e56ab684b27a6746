/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse weights of bytes with AVX-VNNI: 32 rows of x, of four k each, are interleaved to four
 * registers of eight rows × four bytes. Two outputs of a panel at a time leave room for that. */
#include <immintrin.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { VECTORS = 4, OUTPUTS = 2 };

SN_INLINE __m256i load32(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* Interleaving leaves rows 4j … 4j+3 of each half in register j. */
SN_INLINE void interleave(__m256i *out, const uint8_t *const x[4])
{
    const __m256i a = load32(x[0]), b = load32(x[1]), c = load32(x[2]), d = load32(x[3]);
    const __m256i ab = _mm256_unpacklo_epi8(a, b), ab2 = _mm256_unpackhi_epi8(a, b);
    const __m256i cd = _mm256_unpacklo_epi8(c, d), cd2 = _mm256_unpackhi_epi8(c, d);
    out[0] = _mm256_unpacklo_epi16(ab, cd);
    out[1] = _mm256_unpackhi_epi16(ab, cd);
    out[2] = _mm256_unpacklo_epi16(ab2, cd2);
    out[3] = _mm256_unpackhi_epi16(ab2, cd2);
}

SN_INLINE void store_in_order(int32_t *y, ptrdiff_t y_v, const __m256i v[VECTORS])
{
    _mm256_storeu_si256((__m256i *)(void *)y, _mm256_permute2x128_si256(v[0], v[1], 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(y + y_v), _mm256_permute2x128_si256(v[2], v[3], 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(y + 2 * y_v),
                        _mm256_permute2x128_si256(v[0], v[1], 0x31));
    _mm256_storeu_si256((__m256i *)(void *)(y + 3 * y_v),
                        _mm256_permute2x128_si256(v[2], v[3], 0x31));
}

SN_INLINE __m256i four(const int8_t *w)
{
    int word;
    __builtin_memcpy(&word, w, sizeof word);
    return _mm256_set1_epi32(word);
}

/* Outputs `from` and the next of panel p. */
static void outputs(const sn_q8_sparse *t, size_t p, size_t from)
{
    const size_t o0 = p * SN_SPARSE_PANEL + from;
    const uint16_t *at = t->index + 4 * (size_t)t->first[p];
    const uint16_t *end = t->index + 4 * (size_t)t->first[p + 1];
    const int8_t *w = t->w + 16 * (size_t)t->first[p] + 4 * from;
    const ptrdiff_t x_k = t->x_k;
    __m256i acc[OUTPUTS][VECTORS];
    SN_UNROLL for (size_t o = 0; o < OUTPUTS; o++)
    {
        const __m256i first = _mm256_set1_epi32(o0 + o < t->outputs ? t->start[o0 + o] : 0);
        SN_UNROLL for (int i = 0; i < VECTORS; i++) acc[o][i] = first;
    }
    SN_NO_UNROLL for (; at < end; at += 4, w += 16)
    {
        const uint8_t *const x[4] = {t->x + at[0] * x_k, t->x + at[1] * x_k, t->x + at[2] * x_k,
                                     t->x + at[3] * x_k};
        __m256i v[VECTORS];
        interleave(v, x);
        SN_UNROLL for (int o = 0; o < OUTPUTS; o++)
        {
            const __m256i weights = four(w + 4 * o);
            SN_UNROLL for (int i = 0; i < VECTORS; i++) acc[o][i] =
                _mm256_dpbusd_avx_epi32(acc[o][i], v[i], weights);
        }
    }
    SN_UNROLL for (size_t o = 0; o < OUTPUTS; o++) if (o0 + o < t->outputs)
        store_in_order(t->y + (ptrdiff_t)(o0 + o) * t->y_o, t->y_v, acc[o]);
}

void sn_u8_sparse4_avxvnni(const sn_q8_sparse *t)
{
    for (size_t p = 0; p * SN_SPARSE_PANEL < t->outputs; p++)
        for (size_t o = 0; o < SN_SPARSE_PANEL; o += OUTPUTS)
            outputs(t, p, o);
}

typedef __m128i b16;
#define b16_load(p)         _mm_loadu_si128((const __m128i *)(const void *)(p))
#define b16_store(p, v)     _mm_storeu_si128((__m128i *)(void *)(p), v)
#define b16_zero()          _mm_setzero_si128()
#define b16_bytes(word)     _mm_set1_epi32((int)(word))
#define b16_add(a, b)       _mm_add_epi32(a, b)
#define b16_dot(sums, x, w) _mm_dpbusd_avx_epi32(sums, x, w)
#include "kernels/sparse_bytes.tmpl.h"

void sn_u8_sparse4_row_avxvnni(const sn_q8_sparse_row *t)
{
    sparse_row(t);
}
