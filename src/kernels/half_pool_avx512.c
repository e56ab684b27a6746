/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima of 16-bit floats with AVX-512: rows are joined first, as integers in the numbers' order,
 * then pixels of that line. */
#include <immintrin.h>

#include "kernels/kernels.h"
#include "kernels/simd_common.h"

enum { LANES = 32, BLOCK = 16 };

/* Numbers of the order: bits behind the sign flipped where it is set, turned by the NaNs. */
SN_INLINE __m512i order(__m512i x, __m512i nans)
{
    enum { A_XOR_B_AND_C = 0x78 };
    const __m512i rest = _mm512_set1_epi16(INT16_MAX);
    const __m512i flipped =
        _mm512_ternarylogic_epi32(x, _mm512_srai_epi16(x, 15), rest, A_XOR_B_AND_C);
    return _mm512_sub_epi16(flipped, nans);
}

SN_INLINE __m512i joined(const sn_half_pool *t, size_t at, __mmask32 m, __m512i nans,
                         const size_t rows)
{
    const uint16_t *x = t->x + at;
    __m512i most = order(_mm512_maskz_loadu_epi16(m, x), nans);
    SN_UNROLL for (size_t i = 1; i < rows; i++)
    {
        x += t->x_row;
        most = _mm512_max_epi16(most, order(_mm512_maskz_loadu_epi16(m, x), nans));
    }
    return most;
}

SN_INLINE void fill(int16_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = INT16_MIN;
}

SN_INLINE void join_some(const sn_half_pool *t, int16_t *line, const size_t rows)
{
    const __m512i nans = _mm512_set1_epi16((short)t->nans);
    const size_t n = t->in * BLOCK;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm512_storeu_si512(line + i, joined(t, i, ~(__mmask32)0, nans, rows));
    if (i < n) {
        const __mmask32 m = ((__mmask32)1 << (n - i)) - 1;
        _mm512_mask_storeu_epi16(line + i, m, joined(t, i, m, nans, rows));
    }
}

static void join_rows(const sn_half_pool *t)
{
    const size_t n = t->in * BLOCK, before = t->before * BLOCK;
    const size_t all =
        BLOCK * sn_half_pool_line(t->before, t->in, t->pixels, t->stride, t->kw, t->step);
    fill(t->line, before);
    if (t->rows == 3)
        join_some(t, t->line + before, 3);
    else if (t->rows == 2)
        join_some(t, t->line + before, 2);
    else
        join_some(t, t->line + before, t->rows);
    fill(t->line + before + n, all - before - n);
}

SN_INLINE __m256i pixel(const int16_t *line)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)line);
}

SN_INLINE void join_pixels(const sn_half_pool *t, const size_t kw)
{
    const __m256i nans = _mm256_set1_epi16((short)t->nans);
    const int16_t *line = t->line;
    for (size_t p = 0; p < t->pixels; p++, line += t->stride * BLOCK) {
        __m256i most = pixel(line);
        SN_UNROLL for (size_t j = 1; j < kw; j++) most =
            _mm256_max_epi16(most, pixel(line + j * t->step * BLOCK));
        const __m256i v = _mm256_add_epi16(most, nans);
        const __m256i flip = _mm256_srli_epi16(_mm256_srai_epi16(v, 15), 1);
        _mm256_storeu_si256((__m256i *)(void *)(t->y + p * BLOCK), _mm256_xor_si256(v, flip));
    }
}

void sn_half_maxpool_avx512(const sn_half_pool *t)
{
    if (t->block != BLOCK) {
        sn_half_maxpool_ref(t);
        return;
    }
    join_rows(t);
    if (t->kw == 3)
        join_pixels(t, 3);
    else if (t->kw == 2)
        join_pixels(t, 2);
    else
        join_pixels(t, t->kw);
}
