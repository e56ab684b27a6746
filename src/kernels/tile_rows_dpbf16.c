/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bf16 with AVX512-BF16, for processors without AMX that do them faster than those of
 * f32: two products of a lane at a time. P rows × Q blocks of sums stay in registers; a pair of
 * numbers of a row is broadcast once, and meets the weights of Q blocks. */
#include <immintrin.h>
#include <string.h>

#include "kernels/tile_rows.h"

enum { LINE = 64 /* bytes: pairs of 16 channels */, PAIRS = SN_ROWS_STEP / 4, MAX_SUMS = 16 };

SN_INLINE __m512bh pair_of(const uint8_t *x)
{
    int pair;
    memcpy(&pair, x, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

SN_INLINE void rows(const sn_tile_rows *t, size_t r, size_t q, sn_fetch *f, const int P,
                    const int Q)
{
    const uint8_t *x = (const uint8_t *)t->x + (ptrdiff_t)r * t->x_row;
    const uint8_t *w = (const uint8_t *)t->w + (ptrdiff_t)q * t->w_q;
    const float *start = (const float *)t->start + q * SN_ROWS_TILE;
    float *y = (float *)t->y + sn_rows_y(t, r) + (ptrdiff_t)q * t->y_q;
    __m512 sums[MAX_SUMS];
    SN_UNROLL for (int i = 0; i < P * Q; i++) sums[i] = _mm512_loadu_ps(start + i % Q * LINE / 4);
    for (size_t s = 0; s < t->steps; s++) {
        const uint8_t *from = x + t->at[s];
        SN_NO_UNROLL for (size_t c = 0; c < PAIRS; c++, from += 4, w += LINE)
        {
            __m512bh wv[4];
            SN_UNROLL for (int k = 0; k < Q; k++) wv[k] =
                (__m512bh)_mm512_loadu_si512(w + k * t->w_q);
            SN_UNROLL for (int p = 0; p < P; p++)
            {
                const __m512bh a = pair_of(from + p * t->x_row);
                SN_UNROLL for (int k = 0; k < Q; k++) sums[p * Q + k] =
                    _mm512_dpbf16_ps(sums[p * Q + k], wv[k], a);
            }
        }
        sn_fetch_some(f);
    }
    SN_UNROLL for (int p = 0; p < P; p++) SN_UNROLL for (int k = 0; k < Q; k++)
        _mm512_storeu_ps(y + p * t->y_row + k * t->y_q, sums[p * Q + k]);
}

/* P rows times all blocks, Q at a time. */
#define DEFINE_ROWS(P, Q)                                                                          \
    static void rows_##P(const sn_tile_rows *t, size_t r, sn_fetch *f)                             \
    {                                                                                              \
        size_t q = 0;                                                                              \
        for (; q + Q <= t->blocks; q += Q)                                                         \
            rows(t, r, q, f, P, Q);                                                                \
        for (; q < t->blocks; q++)                                                                 \
            rows(t, r, q, f, P, 1);                                                                \
    }
DEFINE_ROWS(8, 2)
DEFINE_ROWS(4, 4)
DEFINE_ROWS(2, 4)
DEFINE_ROWS(1, 4)

void sn_bf16_rows_dpbf16(const sn_tile_rows *t)
{
    sn_fetch f = sn_fetch_begin(t, (t->rows + 7) / 8 * ((t->blocks + 1) / 2) * t->steps);
    for (size_t r = 0; r < t->rows; sn_rows_done(t, r)) {
        const size_t left = t->rows - r, n = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        (n == 8 ? rows_8 : n == 4 ? rows_4 : n == 2 ? rows_2 : rows_1)(t, r, &f);
        r += n;
    }
}
