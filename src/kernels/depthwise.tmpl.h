/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution of one channel block. There is one multiply-add per weight and pixel, so
 * the common square windows slide over the image: a column of input is loaded once and goes into
 * every pixel of a few output rows that it touches, whose sums stay in registers until their last
 * column has come by. Rows outside of the image are rows of zeros, columns outside add nothing.
 * Other windows go pixel by pixel. Included by depthwise_<isa>.c after the vocabulary. */
#include "kernels/kernels.h"

#define DW_ROWS (SN_REGS >= 32 ? 4 : 2) /* output rows at once, if the window is small */

SN_INLINE void depthwise_store(float *y, const float *z, ptrdiff_t at, sn_v v, sn_v lo, sn_v hi)
{
    if (z)
        v = v_add(v, v_load(z + at));
    v_store(y + at, v_at_most(v_at_least(v, lo), hi));
}

/* K × K taps, stride S in both axes, R output rows from `row`; all three are constants. One vector
 * of the block from lane `lane`. While pixel p takes its last S columns, the pixels up to p + F - 1
 * behind it have begun: acc[f] is the sum of pixel p + f. */
SN_INLINE void depthwise_strip(const sn_f32_depthwise *t, ptrdiff_t row, ptrdiff_t lane,
                               const int K, const int S, const int R)
{
    enum { MOST = 10 };
    const int F = (K - 1) / S + 1, H = (R - 1) * S + K;
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    const sn_v bias = t->bias ? v_load(t->bias + lane) : v_zero();
    const float *w = t->w + lane, *z = t->z, *rows[MOST];
    const ptrdiff_t cols = t->cols, in_cols = t->in[1], pad = t->pad[1], line = cols * SN_BLOCK;
    ptrdiff_t at = row * line + lane;
    float *y = t->y;
    sn_v acc[7 * 4], kept[9]; /* nine weights stay in registers, more are loaded for every pixel */
    for (int i = 0; i < H; i++) {
        const ptrdiff_t from = row * S - t->pad[0] + i;
        rows[i] = from >= 0 && from < t->in[0] ? t->x + from * in_cols * SN_BLOCK : t->zeros;
        rows[i] += lane;
    }
    SN_UNROLL for (int k = 0; k < 9 && K == 3; k++) kept[k] = v_load(w + k * SN_BLOCK);
    SN_UNROLL for (int k = 0; k < F * R; k++) acc[k] = bias;
    for (ptrdiff_t p = 1 - F; p < cols; p++) {
        SN_UNROLL for (int s = 0; s < S; s++)
        {
            const ptrdiff_t c = p * S + K - S + s - pad;
            if ((size_t)c >= (size_t)in_cols)
                continue;
            sn_v x[MOST];
            SN_UNROLL for (int i = 0; i < H; i++) x[i] = v_load(rows[i] + c * SN_BLOCK);
            SN_UNROLL for (int f = 0; f < F; f++)
            {
                const int j = K - S + s - f * S;
                SN_UNROLL for (int i = 0; i < K && j >= 0; i++)
                {
                    const sn_v v = K == 3 ? kept[i * K + j] : v_load(w + (i * K + j) * SN_BLOCK);
                    SN_UNROLL for (int r = 0; r < R; r++) acc[f * R + r] =
                        v_fma(x[r * S + i], v, acc[f * R + r]);
                }
            }
        }
        if (p >= 0) {
            SN_UNROLL for (int r = 0; r < R; r++)
                depthwise_store(y, z, at + r * line, acc[r], lo, hi);
            at += SN_BLOCK;
        }
        SN_UNROLL for (int k = 0; k < (F - 1) * R; k++) acc[k] = acc[k + R];
        SN_UNROLL for (int r = 0; r < R; r++) acc[(F - 1) * R + r] = bias;
    }
}

SN_INLINE void depthwise_square(const sn_f32_depthwise *t, const int K, const int S, const int R)
{
    for (ptrdiff_t lane = 0; lane < SN_BLOCK; lane += SN_VL) {
        ptrdiff_t row = t->from;
        for (; row + R <= t->to; row += R)
            depthwise_strip(t, row, lane, K, S, R);
        for (; row < t->to; row++)
            depthwise_strip(t, row, lane, K, S, 1);
    }
}

/* ---- any window ---- */

/* The part of a window inside of the image: taps [first, end) of position o along an axis. */
SN_INLINE void depthwise_taps(const sn_f32_depthwise *t, int axis, ptrdiff_t o, ptrdiff_t *first,
                              ptrdiff_t *end)
{
    const ptrdiff_t at = o * t->stride[axis] - t->pad[axis], step = t->dilation[axis];
    ptrdiff_t a = 0, b = t->kernel[axis];
    while (a < b && at + a * step < 0)
        a++;
    while (b > a && at + (b - 1) * step >= t->in[axis])
        b--;
    *first = a;
    *end = b;
}

/* P pixels (a constant) from column p with the same taps inside. */
SN_INLINE void depthwise_pixels(const sn_f32_depthwise *t, ptrdiff_t row, ptrdiff_t p,
                                const ptrdiff_t taps[4], const int P)
{
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    const ptrdiff_t top = row * t->stride[0] - t->pad[0], left = p * t->stride[1] - t->pad[1];
    const ptrdiff_t step = t->stride[1] * SN_BLOCK;
    sn_v acc[4 * SN_BV];
    SN_UNROLL for (int k = 0; k < P * SN_BV; k++) acc[k] =
        t->bias ? v_load(t->bias + k % SN_BV * SN_VL) : v_zero();
    for (ptrdiff_t i = taps[0]; i < taps[1]; i++) {
        const float *line = t->x + (top + i * t->dilation[0]) * t->in[1] * SN_BLOCK;
        for (ptrdiff_t j = taps[2]; j < taps[3]; j++) {
            const float *x = line + (left + j * t->dilation[1]) * SN_BLOCK;
            const float *w = t->w + (i * t->kernel[1] + j) * SN_BLOCK;
            SN_UNROLL for (int k = 0; k < P * SN_BV; k++) acc[k] =
                v_fma(v_load(x + k / SN_BV * step + k % SN_BV * SN_VL),
                      v_load(w + k % SN_BV * SN_VL), acc[k]);
        }
    }
    SN_UNROLL for (int k = 0; k < P * SN_BV; k++)
        depthwise_store(t->y, t->z, (row * t->cols + p) * SN_BLOCK + k * SN_VL, acc[k], lo, hi);
}

static void depthwise_any(const sn_f32_depthwise *t)
{
    for (ptrdiff_t row = t->from; row < t->to; row++) {
        ptrdiff_t taps[4], last[2];
        depthwise_taps(t, 0, row, &taps[0], &taps[1]);
        for (ptrdiff_t p = 0; p < t->cols;) {
            /* The window moves one way: if both ends of four pixels see the same, all do. */
            depthwise_taps(t, 1, p, &taps[2], &taps[3]);
            if (p + 4 <= t->cols)
                depthwise_taps(t, 1, p + 3, &last[0], &last[1]);
            if (p + 4 <= t->cols && last[0] == taps[2] && last[1] == taps[3]) {
                depthwise_pixels(t, row, p, taps, 4);
                p += 4;
            } else {
                depthwise_pixels(t, row, p, taps, 1);
                p++;
            }
        }
    }
}

void SN_ISA(sn_f32_depthwise)(const sn_f32_depthwise *t)
{
    const ptrdiff_t k = t->kernel[0], s = t->stride[0];
    const int square =
        k == t->kernel[1] && s == t->stride[1] && t->dilation[0] == 1 && t->dilation[1] == 1;
    if (square && k == 1 && s == 1)
        depthwise_square(t, 1, 1, 1);
    else if (square && k == 3 && s == 1)
        depthwise_square(t, 3, 1, DW_ROWS);
    else if (square && k == 3 && s == 2)
        depthwise_square(t, 3, 2, 2);
    else if (square && k == 5 && s == 1)
        depthwise_square(t, 5, 1, 2);
    else if (square && k == 5 && s == 2)
        depthwise_square(t, 5, 2, 2);
    else if (square && k == 7 && s == 1)
        depthwise_square(t, 7, 1, 2);
    else
        depthwise_any(t);
}
#undef DW_ROWS
