/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution of one channel block, and convolution in groups so narrow that a vector of
 * output channels meets a vector of input channels, picked lane by lane, for each channel of a
 * group. There is one multiply-add per weight and pixel, so the common windows slide over the
 * image: a column of input is loaded (and picked) once and goes into every pixel of a few output
 * rows that it touches, whose sums stay in registers until their last column has come by. Rows
 * outside of the image are rows of zeros, columns outside add nothing. Other windows go eight
 * pixels at a time. Included by depthwise_<isa>.c after the vocabulary.
 *
 * N, a constant, is the number of planes that a lane may come from: 0 where every lane reads
 * itself. */
#include "kernels/kernels.h"

#define DW_WIDE   (SN_REGS >= 32)
#define DW_ROWS   (DW_WIDE ? 4 : 2) /* output rows at once, if the window is small */
#define DW_PIXELS 8                 /* at once, of windows that do not slide */

SN_INLINE void depthwise_store(float *y, const float *z, ptrdiff_t at, sn_v v, sn_v lo, sn_v hi)
{
    if (z)
        v = v_add(v, v_load(z + at));
    v_store(y + at, v_at_most(v_at_least(v, lo), hi));
}

/* A vector of a plane whose two parts have their pixel at p and q. */
SN_INLINE sn_v depthwise_pick(const float *p, const float *q, const sn_f32_plane *plane,
                              ptrdiff_t lane, const int N)
{
    if (N == 0)
        return v_load(p + lane);
    const sn_vi lanes = vi_load(plane->lane + lane);
    return N == 1 ? v_lanes(p, lanes) : v_lanes2(p, q, lanes);
}

/* The same of the pixel x; keep: -1 in the image, 0 where x is zeros. */
SN_INLINE sn_v depthwise_read(const float *x, const sn_f32_plane *plane, ptrdiff_t keep,
                              ptrdiff_t lane, const int N)
{
    return depthwise_pick(N ? x + (plane->at[0] & keep) : x, N ? x + (plane->at[1] & keep) : x,
                          plane, lane, N);
}

/* How many steps of a dilation fit; a division takes as long as a few pixels. */
SN_INLINE ptrdiff_t depthwise_steps(ptrdiff_t n, ptrdiff_t dilation)
{
    return dilation == 1 ? n : (n - 1) / dilation + 1;
}

/* KH × KW taps, stride S, R output rows from `row` of which the first `n` are stored; the capital
 * ones are constants. One vector of the block from lane `lane`. Rows and columns that share input
 * are a dilation apart (S is 1 then): the columns are first, first + dilation, … While pixel p
 * takes its last S columns, the pixels up to p + F - 1 behind it have begun: acc[f] is the sum of
 * pixel p + f. INSIDE: all rows of x are in the image; not asked where N is 0. */
SN_INLINE void depthwise_strip(const sn_f32_depthwise *t, ptrdiff_t row, ptrdiff_t first,
                               ptrdiff_t lane, ptrdiff_t n, const int KH, const int KW, const int S,
                               const int R, const int N, const int INSIDE)
{
    enum { MOST = 13, SUMS = 20, KEPT = 9 };
    const int LEAST = R > 2 ? 2 : R; /* fewer rows go another way */
    const int F = (KW - 1) / S + 1, RS = KH == 1 ? 1 : S, H = (R - 1) * RS + KH;
    const int KEEP = N == 0 && KH * KW <= KEPT ? KH * KW : 0; /* weights that stay in registers */
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    const sn_v bias = t->bias ? v_load(t->bias + lane) : v_zero();
    const float *weights = t->w + lane, *z = t->z, *rows[MOST];
    const ptrdiff_t in_cols = t->in[1], right = S > 1 ? 1 : t->dilation[1], last = KW - S;
    const ptrdiff_t cols = depthwise_steps(t->cols - first, right), left = first * S - t->pad[1];
    const ptrdiff_t down = KH == 1 ? t->stride[0] : t->dilation[0]; /* of the rows of x */
    const ptrdiff_t line = (KH == 1 || S > 1 ? 1 : down) * t->cols * SN_BLOCK;
    const ptrdiff_t top = row * t->stride[0] - t->pad[0], planes = N ? t->n_planes : 1;
    const ptrdiff_t next = down * in_cols * SN_BLOCK; /* row of x */
    ptrdiff_t at = (row * t->cols + first) * SN_BLOCK + lane, keep[MOST];
    float *y = t->y;
    sn_v acc[SUMS], kept[KEPT];
    for (int i = 0; i < H; i++) {
        const ptrdiff_t from = top + i * down;
        const int inside = from >= 0 && from < t->in[0];
        rows[i] = inside ? t->x + from * in_cols * SN_BLOCK : t->zeros;
        keep[i] = -(ptrdiff_t)inside;
    }
    SN_UNROLL for (int k = 0; k < KEEP; k++) kept[k] = v_load(weights + k * SN_BLOCK);
    SN_UNROLL for (int k = 0; k < F * R; k++) acc[k] = bias;
    ptrdiff_t col = ((1 - F) * S + last) * right + left;
    for (ptrdiff_t p = 1 - F; p < cols; p++, col += S * right) {
        SN_UNROLL for (int s = 0; s < S; s++)
        {
            const ptrdiff_t c = col + s * right;
            if ((size_t)c >= (size_t)in_cols)
                continue;
            const float *w = weights;
            for (ptrdiff_t q = 0; q < planes; q++, w += KH * KW * SN_BLOCK) {
                const sn_f32_plane *plane = N ? t->planes + q : NULL;
                sn_v x[MOST];
                if (N && INSIDE) {
                    const float *a = rows[0] + c * SN_BLOCK + plane->at[0];
                    const float *b = rows[0] + c * SN_BLOCK + plane->at[1];
                    SN_UNROLL for (int i = 0; i < H; i++, a += next, b += next) x[i] =
                        depthwise_pick(a, b, plane, lane, N);
                } else {
                    SN_UNROLL for (int i = 0; i < H; i++) x[i] =
                        depthwise_read(rows[i] + c * SN_BLOCK, plane, keep[i], lane, N);
                }
                SN_UNROLL for (int f = 0; f < F; f++)
                {
                    const int j = KW - S + s - f * S;
                    SN_UNROLL for (int i = 0; i < KH && j >= 0; i++)
                    {
                        const int k = i * KW + j;
                        const sn_v v = KEEP ? kept[k] : v_load(w + k * SN_BLOCK);
                        SN_UNROLL for (int r = 0; r < R; r++) acc[f * R + r] =
                            v_fma(x[r * RS + i], v, acc[f * R + r]);
                    }
                }
            }
        }
        if (p >= 0) {
            SN_UNROLL for (int r = 0; r < R; r++) if (r < LEAST || r < n)
                depthwise_store(y, z, at + r * line, acc[r], lo, hi);
            at += right * SN_BLOCK;
        }
        SN_UNROLL for (int k = 0; k < (F - 1) * R; k++) acc[k] = acc[k + R];
        SN_UNROLL for (int r = 0; r < R; r++) acc[(F - 1) * R + r] = bias;
    }
}

/* n rows or R of them, whichever is less, from `row` on, all columns. */
SN_INLINE void depthwise_band(const sn_f32_depthwise *t, ptrdiff_t row, ptrdiff_t lane, ptrdiff_t n,
                              const int KH, const int KW, const int S, const int R, const int N)
{
    const int H = KH == 1 ? R : (R - 1) * S + KH;
    const ptrdiff_t top = row * t->stride[0] - t->pad[0];
    const ptrdiff_t down = KH == 1 ? t->stride[0] : t->dilation[0];
    const int inside = top >= 0 && top + (H - 1) * down < t->in[0];
    for (ptrdiff_t first = 0; first < t->dilation[1] && first < t->cols; first++) {
        if (N && inside)
            depthwise_strip(t, row, first, lane, n, KH, KW, S, R, N, 1);
        else
            depthwise_strip(t, row, first, lane, n, KH, KW, S, R, N, 0);
    }
}

/* Rows that share input are a dilation apart. Few rows do not have others computed with them. */
SN_INLINE void depthwise_slide(const sn_f32_depthwise *t, const int KH, const int KW, const int S,
                               const int R, const int N)
{
    const ptrdiff_t down = KH == 1 ? 1 : t->dilation[0];
    for (ptrdiff_t lane = 0; lane < SN_BLOCK; lane += SN_VL) {
        for (ptrdiff_t top = t->from; top < t->from + down && top < t->to; top++) {
            for (ptrdiff_t row = top; row < t->to; row += R * down) {
                const ptrdiff_t n = depthwise_steps(t->to - row, down);
                if (R == 1 || n == 1)
                    depthwise_band(t, row, lane, n, KH, KW, S, 1, N);
                else if (R > 2 && S == 1 && n == 2)
                    depthwise_band(t, row, lane, n, KH, KW, S, 2, N);
                else
                    depthwise_band(t, row, lane, n, KH, KW, S, R, N);
            }
        }
    }
}

/* Is the window this one, and may it slide? */
SN_INLINE int depthwise_is(const sn_f32_depthwise *t, int kh, int kw, int s)
{
    return t->kernel[0] == kh && t->kernel[1] == kw && t->stride[1] == s &&
           (kh == 1 || t->stride[0] == s) &&
           (s == 1 || (t->dilation[0] == 1 && t->dilation[1] == 1));
}

/* ---- any window ---- */

/* Pixels from column p, of which the first n are stored, with taps i of rows[0] … rows[1]-1. EDGE:
 * some taps are outside, which are read from the zeros. */
SN_INLINE void depthwise_pixels(const sn_f32_depthwise *t, ptrdiff_t row, ptrdiff_t p, ptrdiff_t n,
                                const ptrdiff_t rows[2], const int EDGE, const int N)
{
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    const ptrdiff_t top = row * t->stride[0] - t->pad[0], left = p * t->stride[1] - t->pad[1];
    const ptrdiff_t kh = t->kernel[0], kw = t->kernel[1], planes = N ? t->n_planes : 1;
    sn_v acc[DW_PIXELS * SN_BV];
    SN_UNROLL for (int k = 0; k < DW_PIXELS * SN_BV; k++) acc[k] =
        t->bias ? v_load(t->bias + k % SN_BV * SN_VL) : v_zero();
    for (ptrdiff_t q = 0; q < planes; q++) {
        const sn_f32_plane *plane = N ? t->planes + q : NULL;
        for (ptrdiff_t i = rows[0]; i < rows[1]; i++) {
            const float *line = t->x + (top + i * t->dilation[0]) * t->in[1] * SN_BLOCK;
            const float *w = t->w + (q * kh + i) * kw * SN_BLOCK;
            for (ptrdiff_t j = 0; j < kw; j++, w += SN_BLOCK) {
                SN_UNROLL for (int k = 0; k < DW_PIXELS; k++)
                {
                    const ptrdiff_t c = left + j * t->dilation[1] + k * t->stride[1];
                    const int inside = !EDGE || (k < n && (size_t)c < (size_t)t->in[1]);
                    const float *x = inside ? line + c * SN_BLOCK : t->zeros;
                    SN_UNROLL for (int v = 0; v < SN_BV; v++) acc[k * SN_BV + v] =
                        v_fma(depthwise_read(x, plane, -(ptrdiff_t)inside, v * SN_VL, N),
                              v_load(w + v * SN_VL), acc[k * SN_BV + v]);
                }
            }
        }
    }
    SN_UNROLL for (int k = 0; k < DW_PIXELS * SN_BV; k++) if (!EDGE || k / SN_BV < n)
        depthwise_store(t->y, t->z, (row * t->cols + p) * SN_BLOCK + k * SN_VL, acc[k], lo, hi);
}

SN_INLINE void depthwise_any(const sn_f32_depthwise *t, const int N)
{
    const ptrdiff_t reach = (DW_PIXELS - 1) * t->stride[1] + (t->kernel[1] - 1) * t->dilation[1];
    for (ptrdiff_t row = t->from; row < t->to; row++) {
        const ptrdiff_t top = row * t->stride[0] - t->pad[0], step = t->dilation[0];
        ptrdiff_t rows[2] = {0, t->kernel[0]}; /* the part of the window inside of the image */
        while (rows[0] < rows[1] && top + rows[0] * step < 0)
            rows[0]++;
        while (rows[1] > rows[0] && top + (rows[1] - 1) * step >= t->in[0])
            rows[1]--;
        for (ptrdiff_t p = 0; p < t->cols; p += DW_PIXELS) {
            const ptrdiff_t left = p * t->stride[1] - t->pad[1], n = t->cols - p;
            if (n >= DW_PIXELS && left >= 0 && left + reach < t->in[1])
                depthwise_pixels(t, row, p, n, rows, 0, N);
            else
                depthwise_pixels(t, row, p, n, rows, 1, N);
        }
    }
}

/* Windows that networks have in narrow groups. */
SN_INLINE void depthwise_groups(const sn_f32_depthwise *t, const int N)
{
    if (depthwise_is(t, 1, 1, 1))
        depthwise_slide(t, 1, 1, 1, DW_ROWS, N);
    else if (depthwise_is(t, 3, 3, 1))
        depthwise_slide(t, 3, 3, 1, DW_ROWS, N);
    else if (depthwise_is(t, 3, 3, 2))
        depthwise_slide(t, 3, 3, 2, DW_ROWS, N);
    else if (depthwise_is(t, 5, 5, 1))
        depthwise_slide(t, 5, 5, 1, 2, N);
    else if (depthwise_is(t, 5, 5, 2))
        depthwise_slide(t, 5, 5, 2, DW_ROWS, N);
    else if (depthwise_is(t, 7, 7, 1))
        depthwise_slide(t, 7, 7, 1, 2, N);
    else if (depthwise_is(t, 7, 7, 2))
        depthwise_slide(t, 7, 7, 2, DW_ROWS, N);
    else
        depthwise_any(t, N);
}

static void depthwise_from_one(const sn_f32_depthwise *t)
{
    depthwise_groups(t, 1);
}

static void depthwise_from_two(const sn_f32_depthwise *t)
{
    depthwise_groups(t, 2);
}

static void depthwise_lines(const sn_f32_depthwise *t)
{
    if (depthwise_is(t, 1, 3, 1))
        depthwise_slide(t, 1, 3, 1, DW_ROWS, 0);
    else if (depthwise_is(t, 1, 5, 1))
        depthwise_slide(t, 1, 5, 1, 2, 0);
    else if (depthwise_is(t, 1, 7, 1))
        depthwise_slide(t, 1, 7, 1, 2, 0);
    else if (depthwise_is(t, 1, 9, 1))
        depthwise_slide(t, 1, 9, 1, 2, 0);
    else
        depthwise_any(t, 0);
}

static void depthwise_planes(const sn_f32_depthwise *t)
{
    for (ptrdiff_t q = 0; q < t->n_planes; q++) {
        if (t->planes[q].at[0] != t->planes[q].at[1]) {
            depthwise_from_two(t);
            return;
        }
    }
    depthwise_from_one(t);
}

void SN_ISA(sn_f32_depthwise)(const sn_f32_depthwise *t)
{
    if (t->planes)
        depthwise_planes(t);
    else if (depthwise_is(t, 1, 1, 1))
        depthwise_slide(t, 1, 1, 1, 1, 0);
    else if (depthwise_is(t, 3, 3, 1))
        depthwise_slide(t, 3, 3, 1, DW_ROWS, 0);
    else if (depthwise_is(t, 3, 3, 2))
        depthwise_slide(t, 3, 3, 2, 2, 0);
    else if (depthwise_is(t, 5, 5, 1))
        depthwise_slide(t, 5, 5, 1, 2, 0);
    else if (depthwise_is(t, 5, 5, 2))
        depthwise_slide(t, 5, 5, 2, 2, 0);
    else if (depthwise_is(t, 7, 7, 1))
        depthwise_slide(t, 7, 7, 1, 2, 0);
    else if (depthwise_is(t, 7, 7, 2))
        depthwise_slide(t, 7, 7, 2, DW_ROWS, 0);
    else if (depthwise_is(t, 9, 9, 1))
        depthwise_slide(t, 9, 9, 1, DW_WIDE ? 2 : 1, 0);
    else
        depthwise_lines(t);
}
#undef DW_PIXELS
#undef DW_ROWS
#undef DW_WIDE
