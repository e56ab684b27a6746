/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's transforms for 3×3 convolution, F(4×4) and F(2×2): a patch of (M+2)² input pixels into
 * as many positions, and the positions of a result back into M×M pixels, one channel block at a
 * time. The interpolation points are 0, ±1, ±2, ∞ and 0, ±1, ∞; what the transforms cost in
 * accuracy is stated in compute/conv_winograd.c. Both directions are the same line transform first
 * down the columns, then along the rows. */
#include <stdbool.h>

#include "kernels/kernels.h"

enum { WINO_MAX = 6 };

/* Bᵀ of one line: M+2 values at d, `step` apart, to t. */
SN_INLINE void wino_line_in(sn_v *t, const sn_v *d, const int step, const int M)
{
    if (M == 2) {
        t[0] = v_sub(d[0], d[2 * step]);
        t[1] = v_add(d[step], d[2 * step]);
        t[2] = v_sub(d[2 * step], d[step]);
        t[3] = v_sub(d[step], d[3 * step]);
        return;
    }
    const sn_v two = v_set1(2), four = v_set1(4), less_four = v_set1(-4), less_five = v_set1(-5);
    const sn_v a = v_fma(less_four, d[2 * step], d[4 * step]);
    const sn_v b = v_fma(less_four, d[step], d[3 * step]);
    const sn_v c = v_sub(d[4 * step], d[2 * step]), e = v_sub(d[3 * step], d[step]);
    t[0] = v_fma(four, d[0], v_fma(less_five, d[2 * step], d[4 * step]));
    t[1] = v_add(a, b);
    t[2] = v_sub(a, b);
    t[3] = v_fma(two, e, c);
    t[4] = v_sub(c, v_mul(two, e));
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

SN_INLINE void wino_in(const sn_f32_wino_in *t, const int M)
{
    const int N = M + 2;
    const bool whole = t->row_from == 0 && t->col_from == 0 && t->row_to == N && t->col_to == N;
    for (size_t l = 0; l < SN_BLOCK; l += SN_VL) {
        sn_v d[WINO_MAX * WINO_MAX], s[WINO_MAX * WINO_MAX], line[WINO_MAX];
        if (whole) {
            SN_UNROLL for (int i = 0; i < N * N; i++) d[i] =
                v_load(t->x + i / N * t->x_row + i % N * SN_BLOCK + l);
        } else {
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++)
                    d[i * N + j] =
                        i >= t->row_from && i < t->row_to && j >= t->col_from && j < t->col_to
                            ? v_load(t->x + i * t->x_row + j * SN_BLOCK + l)
                            : v_zero();
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

SN_INLINE void wino_out(const sn_f32_wino_out *t, const int M)
{
    const int N = M + 2;
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
                const ptrdiff_t at = i * t->y_row + j * SN_BLOCK + (ptrdiff_t)l;
                if (j >= t->cols)
                    break;
                sn_v v = v_add(line[j], bias);
                if (t->z)
                    v = v_add(v, v_load(t->z + at));
                v_store(t->y + at, v_at_most(v_at_least(v, lo), hi));
            }
        }
    }
}

void SN_ISA(sn_f32_wino4_in)(const sn_f32_wino_in *t)
{
    wino_in(t, 4);
}
void SN_ISA(sn_f32_wino4_out)(const sn_f32_wino_out *t)
{
    wino_out(t, 4);
}
void SN_ISA(sn_f32_wino2_in)(const sn_f32_wino_in *t)
{
    wino_in(t, 2);
}
void SN_ISA(sn_f32_wino2_out)(const sn_f32_wino_out *t)
{
    wino_out(t, 2);
}
