/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bf16 with the matrix instructions of ARMv8.6: two rows of four numbers times two
 * columns of four are four sums. Rows come in pairs, as those up to a multiple of 16 are there, and
 * half a block of columns at a time. Weights have two numbers of a column side by side; two lines
 * of them are zipped, which makes four.
 *
 * The instruction rounds its sums to odd and takes denormals as zero, whatever FPCR says. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/tile_rows.h"

enum {
    LINE = 64,                /* bytes: pairs of 16 channels */
    FOURS = SN_ROWS_STEP / 8, /* of a step */
    HALF = SN_ROWS_TILE / 2,  /* a block's columns at a time */
    WS = HALF / 2,
    MAX_PAIRS = 4 /* registers of two columns each; pairs of rows */
};

SN_INLINE bfloat16x8_t both(const uint8_t *a, const uint8_t *b)
{
    return vreinterpretq_bf16_u8(vcombine_u8(vld1_u8(a), vld1_u8(b)));
}

/* Four numbers of eight columns, which lie in two lines. */
SN_INLINE void load_weights(bfloat16x8_t *w, const uint8_t *from)
{
    SN_UNROLL for (int i = 0; i < 2; i++)
    {
        const uint32x4_t a = vreinterpretq_u32_u8(vld1q_u8(from + 16 * i));
        const uint32x4_t b = vreinterpretq_u32_u8(vld1q_u8(from + LINE + 16 * i));
        w[2 * i] = vreinterpretq_bf16_u32(vzip1q_u32(a, b));
        w[2 * i + 1] = vreinterpretq_bf16_u32(vzip2q_u32(a, b));
    }
}

/* R pairs of rows from r on, half `h` of the blocks' columns. */
SN_INLINE void pairs(const sn_tile_rows *t, size_t r, size_t h, sn_fetch *f, const int R)
{
    const size_t q = h / 2, lane = h % 2 * HALF;
    const uint8_t *x = (const uint8_t *)t->x + (ptrdiff_t)r * t->x_row;
    const uint8_t *w = (const uint8_t *)t->w + (ptrdiff_t)q * t->w_q + lane * 4;
    const float *start = (const float *)t->start + h * HALF;
    float *y = (float *)t->y + sn_rows_y(t, r) + (ptrdiff_t)q * t->y_q + lane;
    float32x4_t sums[MAX_PAIRS * WS];
    SN_UNROLL for (int i = 0; i < R * WS; i++)
    {
        const float32x2_t two = vld1_f32(start + i % WS * 2);
        sums[i] = vcombine_f32(two, two);
    }
    for (size_t s = 0; s < t->steps; s++) {
        const uint8_t *from = x + t->at[s];
        SN_NO_UNROLL for (size_t c = 0; c < FOURS; c++, from += 8, w += 2 * LINE)
        {
            bfloat16x8_t wv[WS];
            load_weights(wv, w);
            SN_UNROLL for (int i = 0; i < R; i++)
            {
                const bfloat16x8_t a = both(from + 2 * i * t->x_row, from + (2 * i + 1) * t->x_row);
                SN_UNROLL for (int j = 0; j < WS; j++) sums[i * WS + j] =
                    vbfmmlaq_f32(sums[i * WS + j], a, wv[j]);
            }
        }
        sn_fetch_some(f);
    }
    SN_UNROLL for (int i = 0; i < R; i++) SN_UNROLL for (int j = 0; j < WS; j++)
    {
        vst1_f32(y + 2 * i * t->y_row + 2 * j, vget_low_f32(sums[i * WS + j]));
        vst1_f32(y + (2 * i + 1) * t->y_row + 2 * j, vget_high_f32(sums[i * WS + j]));
    }
}

void sn_bf16_rows_armbf16(const sn_tile_rows *t)
{
    const size_t halves = 2 * t->blocks;
    sn_fetch f = sn_fetch_begin(t, (t->rows + 7) / 8 * halves * t->steps);
    for (size_t r = 0; r < t->rows; sn_rows_done(t, r)) {
        const size_t left = t->rows - r;
        for (size_t h = 0; h < halves; h++)
            if (left > 4)
                pairs(t, r, h, &f, 4);
            else if (left > 2)
                pairs(t, r, h, &f, 2);
            else
                pairs(t, r, h, &f, 1);
        r += left > 4 ? 8 : left > 2 ? 4 : 2;
    }
}
