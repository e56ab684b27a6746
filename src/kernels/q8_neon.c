/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with NEON, and their sums to bytes. */
#include <string.h>

#include "kernels/q8_neon.tmpl.h"

/* A register holds two sums, of even and of odd pairs of channels, for each of two lanes. */
enum { Q8_SUMS = 4 };
SN_INLINE void q8_dot(q8_v *sums, q8_a a, const q8_v *w)
{
    for (int i = 0; i < 2; i++) {
        const int8x16_t v = vreinterpretq_s8_s32(w[i]);
        sums[2 * i] = vpadalq_s16(sums[2 * i], vmull_s8(vget_low_s8(v), vget_low_s8(a)));
        sums[2 * i + 1] = vpadalq_s16(sums[2 * i + 1], vmull_high_s8(v, a));
    }
}
SN_INLINE void q8_store(int32_t *y, const q8_v *sums, const int32_t *start)
{
    vst1q_s32(y, vaddq_s32(vpaddq_s32(sums[0], sums[1]), vld1q_s32(start)));
    vst1q_s32(y + 4, vaddq_s32(vpaddq_s32(sums[2], sums[3]), vld1q_s32(start + 4)));
}
#include "kernels/q8_tile.tmpl.h"

void sn_i8_tile_neon(const sn_q8_tile *t)
{
    q8_walk(t);
}

/* ------------------------------------------------------------------ depthwise */
enum { LANES = 8, BLOCK = 16 };

/* One row of channels `first` … first+n-1, all of one block. */
static void depthwise_row(const sn_q8_tile *t, size_t row, size_t first, size_t n)
{
    enum { KR = Q8_KR };
    const size_t groups = (t->taps + KR - 1) / KR;
    const int8x8_t flip = vdup_n_s8((int8_t)t->flip);
    const int8_t *w = t->w + (first / BLOCK * groups * BLOCK + first % BLOCK) * KR;
    int32x4_t lo = vld1q_s32(t->start + first), hi = vld1q_s32(t->start + first + 4);
    for (size_t g = 0; g < groups; g++, w += BLOCK * KR) {
        const int8x8x4_t wv = vld4_s8(w);
        SN_UNROLL for (size_t i = 0; i < KR; i++)
        {
            const size_t tap = g * KR + i < t->taps ? g * KR + i : t->taps - 1;
            const uint8_t *x = t->x[tap * t->rows + row] + t->x_at + first;
            uint8_t part[LANES] = {0};
            if (n < LANES)
                memcpy(part, x, n);
            const int8x8_t v =
                veor_s8(vld1_s8((const int8_t *)(const void *)(n < LANES ? part : x)), flip);
            const int16x8_t product = vmull_s8(v, wv.val[i]);
            lo = vaddw_s16(lo, vget_low_s16(product));
            hi = vaddw_high_s16(hi, product);
        }
    }
    int32_t *y = t->y + (ptrdiff_t)row * t->y_row + (ptrdiff_t)first, part[LANES];
    int32_t *to = n < LANES ? part : y;
    vst1q_s32(to, lo);
    vst1q_s32(to + 4, hi);
    if (n < LANES)
        memcpy(y, part, n * sizeof *y);
}

void sn_i8_depthwise_neon(const sn_q8_tile *t)
{
    for (size_t c = 0; c < t->channels; c += LANES)
        for (size_t row = 0; row < t->rows; row++)
            depthwise_row(t, row, c, t->channels - c < LANES ? t->channels - c : LANES);
}
