/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's transforms for 3×3 convolution, F(4×4) and F(2×2): a patch of (M+2)² input pixels into
 * as many positions, the positions of a result back into M×M pixels, and a filter into positions,
 * one channel block at a time. The interpolation points are 0, ±1, ±2, ∞ and 0, ±1, ∞; what the
 * transforms cost in accuracy is stated in compute/conv_winograd.c. All are the same line transform
 * first down the columns, then along the rows. */
#include <stdbool.h>

#include "kernels/kernels.h"

enum { WINO_MAX = 6 };

/* Bᵀ of one line: M+2 values at d, `step` apart, to t; for M = 4 times 1/4, -1/6, -1/6, 1/24, 1/24,
 * 1, which are G's denominators: so a filter, of which there are more than patches where it
 * matters, needs none. */
SN_INLINE void wino_line_in(sn_v *t, const sn_v *d, const int step, const int M)
{
    if (M == 2) {
        t[0] = v_sub(d[0], d[2 * step]);
        t[1] = v_add(d[step], d[2 * step]);
        t[2] = v_sub(d[2 * step], d[step]);
        t[3] = v_sub(d[step], d[3 * step]);
        return;
    }
    const sn_v four = v_set1(4), less_five = v_set1(-5), quarter = v_set1(0.25f);
    const sn_v less_sixth = v_set1(-1.0f / 6), two_thirds = v_set1(2.0f / 3);
    const sn_v twelfth = v_set1(1.0f / 12), less_twelfth = v_set1(-1.0f / 12);
    const sn_v a = v_fma(two_thirds, d[2 * step], v_mul(less_sixth, d[4 * step]));
    const sn_v b = v_fma(two_thirds, d[step], v_mul(less_sixth, d[3 * step]));
    const sn_v c = v_mul(v_set1(1.0f / 24), v_sub(d[4 * step], d[2 * step]));
    const sn_v e = v_sub(d[3 * step], d[step]);
    t[0] = v_fma(quarter, d[4 * step], v_fma(v_set1(-1.25f), d[2 * step], d[0]));
    t[1] = v_add(a, b);
    t[2] = v_sub(a, b);
    t[3] = v_fma(twelfth, e, c);
    t[4] = v_fma(less_twelfth, e, c);
    t[5] = v_fma(four, d[step], v_fma(less_five, d[3 * step], d[5 * step]));
}

/* Aᵀ of one line: M+2 values to M. */
SN_INLINE void wino_line_out(sn_v *t, const sn_v *d, const int step, const int M)
{
    const sn_v p = v_add(d[step], d[2 * step]), q = v_sub(d[step], d[2 * step]);
    if (M == 2) {
        t[0] = v_add(d[0], p);
        t[1] = v_sub(q, d[3 * step]);
        return;
    }
    const sn_v r = v_add(d[3 * step], d[4 * step]), s = v_sub(d[3 * step], d[4 * step]);
    t[0] = v_add(d[0], v_add(p, r));
    t[1] = v_fma(v_set1(2), s, q);
    t[2] = v_fma(v_set1(4), r, p);
    t[3] = v_add(v_fma(v_set1(8), s, q), d[5 * step]);
}

/* Value i of G of one line of 3 values; for M = 4 without its denominators. */
SN_INLINE sn_v wino_filter_at(const sn_v *g, const int step, const int i, const int M)
{
    if (i == 0)
        return g[0];
    if (i == M + 1)
        return g[2 * step];
    if (M == 2)
        return v_fma(v_set1(i == 1 ? 0.5f : -0.5f), g[step],
                     v_mul(v_set1(0.5f), v_add(g[0], g[2 * step])));
    if (i < 3) {
        const sn_v outer = v_add(g[0], g[2 * step]);
        return i == 1 ? v_add(outer, g[step]) : v_sub(outer, g[step]);
    }
    return v_fma(v_set1(i == 3 ? 2 : -2), g[step], v_fma(v_set1(4), g[2 * step], g[0]));
}

/* x_pixel: that of t, a constant where it is the usual one. */
SN_INLINE void wino_in(const sn_f32_wino_in *t, const int M, const ptrdiff_t x_pixel)
{
    const int N = M + 2;
    const bool whole = t->row_from == 0 && t->col_from == 0 && t->row_to == N && t->col_to == N;
    for (size_t l = 0; l < SN_BLOCK; l += SN_VL) {
        sn_v d[WINO_MAX * WINO_MAX], s[WINO_MAX * WINO_MAX], line[WINO_MAX];
        if (whole) {
            SN_UNROLL for (int i = 0; i < N * N; i++) d[i] =
                v_load(t->x + i / N * t->x_row + i % N * x_pixel + l);
        } else {
            SN_UNROLL for (int i = 0; i < N; i++)
            {
                const int to = i >= t->row_from && i < t->row_to ? t->col_to : 0;
                const float *row = t->x + i * t->x_row + l;
                SN_UNROLL for (int j = 0; j < N; j++) d[i * N + j] =
                    j >= t->col_from && j < to ? v_load(row + j * x_pixel) : v_zero();
            }
        }
        SN_UNROLL for (int j = 0; j < N; j++)
        {
            wino_line_in(line, d + j, N, M);
            SN_UNROLL for (int i = 0; i < N; i++) s[i * N + j] = line[i];
        }
        SN_UNROLL for (int i = 0; i < N; i++)
        {
            wino_line_in(line, s + i * N, 1, M);
            SN_UNROLL for (int j = 0; j < N; j++)
                v_store(t->v + (i * N + j) * t->v_pos + l, line[j]);
        }
    }
}

/* What is not finite stays so in every sum that it is part of: each pixel is part of one of the
 * four positions at the corners, each tap of the position at (1, 1). */
SN_INLINE bool wino_finite(const sn_f32_wino_out *t, const int M)
{
    const int N = M + 2;
    sn_v sum = v_zero();
    for (size_t l = 0; l < SN_BLOCK; l += SN_VL) {
        const float *m = t->m + l;
        const sn_v above = v_add(v_load(m), v_load(m + (N - 1) * t->m_pos));
        const sn_v below =
            v_add(v_load(m + N * (N - 1) * t->m_pos), v_load(m + (N * N - 1) * t->m_pos));
        sum = v_add(sum, v_add(v_add(above, below), v_load(m + (N + 1) * t->m_pos)));
    }
    return v_sum(v_sub(sum, sum)) == 0;
}

SN_INLINE bool wino_out(const sn_f32_wino_out *t, const int M, const ptrdiff_t y_pixel)
{
    const int N = M + 2;
    if (!wino_finite(t, M))
        return false;
    const sn_v lo = v_set1(t->lo), hi = v_set1(t->hi);
    for (size_t l = 0; l < SN_BLOCK; l += SN_VL) {
        sn_v d[WINO_MAX * WINO_MAX], s[WINO_MAX * WINO_MAX], line[WINO_MAX];
        const sn_v bias = t->bias ? v_load(t->bias + l) : v_zero();
        SN_UNROLL for (int i = 0; i < N * N; i++) d[i] = v_load(t->m + i * t->m_pos + l);
        SN_UNROLL for (int j = 0; j < N; j++)
        {
            wino_line_out(line, d + j, N, M);
            SN_UNROLL for (int i = 0; i < M; i++) s[i * N + j] = line[i];
        }
        SN_UNROLL for (int i = 0; i < M; i++)
        {
            if (i >= t->rows)
                break;
            wino_line_out(line, s + i * N, 1, M);
            SN_UNROLL for (int j = 0; j < M; j++)
            {
                const ptrdiff_t at = i * t->y_row + j * y_pixel + (ptrdiff_t)l;
                if (j >= t->cols)
                    break;
                sn_v v = v_add(line[j], bias);
                if (t->z)
                    v = v_add(v, v_load(t->z + at));
                v_store(t->y + at, v_at_most(v_at_least(v, lo), hi));
            }
        }
    }
    return true;
}

SN_INLINE void wino_filter(float *u, const float *w, const int M)
{
    enum { TAP = SN_BLOCK * SN_BLOCK, POSITION = TAP + SN_WINO_GAP };
    const int N = M + 2;
    for (size_t l = 0; l < TAP; l += SN_VL) {
        sn_v g[9], line[3];
        SN_UNROLL for (int i = 0; i < 9; i++) g[i] = v_load(w + i * TAP + l);
        SN_UNROLL for (int i = 0; i < N; i++)
        {
            SN_UNROLL for (int j = 0; j < 3; j++) line[j] = wino_filter_at(g + j, 3, i, M);
            SN_UNROLL for (int j = 0; j < N; j++)
                v_store(u + (i * N + j) * POSITION + l, wino_filter_at(line, 1, j, M));
        }
    }
}

void SN_ISA(sn_f32_wino4_in)(const sn_f32_wino_in *t)
{
    if (t->x_pixel == SN_BLOCK)
        wino_in(t, 4, SN_BLOCK);
    else
        wino_in(t, 4, t->x_pixel);
}
bool SN_ISA(sn_f32_wino4_out)(const sn_f32_wino_out *t)
{
    return t->y_pixel == SN_BLOCK ? wino_out(t, 4, SN_BLOCK) : wino_out(t, 4, t->y_pixel);
}
void SN_ISA(sn_f32_wino4_filter)(float *u, const float *w, unsigned block)
{
    (void)block;
    wino_filter(u, w, 4);
}
void SN_ISA(sn_f32_wino2_in)(const sn_f32_wino_in *t)
{
    if (t->x_pixel == SN_BLOCK)
        wino_in(t, 2, SN_BLOCK);
    else
        wino_in(t, 2, t->x_pixel);
}
bool SN_ISA(sn_f32_wino2_out)(const sn_f32_wino_out *t)
{
    return t->y_pixel == SN_BLOCK ? wino_out(t, 2, SN_BLOCK) : wino_out(t, 2, t->y_pixel);
}
void SN_ISA(sn_f32_wino2_filter)(float *u, const float *w, unsigned block)
{
    (void)block;
    wino_filter(u, w, 2);
}
