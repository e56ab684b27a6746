/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that move along pixels with one vector per channel block: pooling, resizing, and the
 * change between plain and blocked layout. Bound by loads, so the tile only has to be long enough
 * to hide latency. Included by blocked_<isa>.c after the vocabulary. */
#include <math.h>

#include "kernels/kernels.h"

SN_INLINE sn_v pool_join(sn_v a, sn_v b, const int max)
{
    return max ? v_max_or_nan(a, b) : v_add(a, b);
}

/* P pixels (a constant), one sum each; their chains hide each other's latency. */
SN_INLINE void pool_pixels(const sn_f32_pool *t, size_t at, const int P, const int max)
{
    const ptrdiff_t x_pixel = t->x_pixel, x_kw = t->x_kw;
    const float *x = t->x + (ptrdiff_t)at * x_pixel;
    const sn_v scale = v_set1(t->scale);
    sn_v acc[4 * SN_BV];
    SN_UNROLL for (int k = 0; k < P * SN_BV; k++) acc[k] = max ? v_set1(-INFINITY) : v_zero();
    for (size_t i = 0; i < t->kh; i++) {
        const float *xj = x + (ptrdiff_t)i * t->x_kh;
        for (size_t j = 0; j < t->kw; j++, xj += x_kw) {
            SN_UNROLL for (int k = 0; k < P * SN_BV; k++) acc[k] =
                pool_join(acc[k], v_load(xj + k / SN_BV * x_pixel + k % SN_BV * SN_VL), max);
        }
    }
    SN_UNROLL for (int k = 0; k < P * SN_BV; k++)
        v_store(t->y + at * SN_BLOCK + k * SN_VL, max ? acc[k] : v_mul(acc[k], scale));
}

/* One pixel of a wide window (a global pool): four chains along its rows. */
SN_INLINE void pool_wide(const sn_f32_pool *t, const float *x, float *y, const int max)
{
    const ptrdiff_t x_kw = t->x_kw;
    const sn_v none = max ? v_set1(-INFINITY) : v_zero();
    for (int v = 0; v < SN_BLOCK; v += SN_VL) {
        sn_v acc[4] = {none, none, none, none};
        for (size_t i = 0; i < t->kh; i++) {
            const float *xj = x + (ptrdiff_t)i * t->x_kh + v;
            size_t j = 0;
            for (; j + 4 <= t->kw; j += 4, xj += 4 * x_kw)
                SN_UNROLL for (int c = 0; c < 4; c++) acc[c] =
                    pool_join(acc[c], v_load(xj + c * x_kw), max);
            for (; j < t->kw; j++, xj += x_kw)
                acc[0] = pool_join(acc[0], v_load(xj), max);
        }
        const sn_v all =
            pool_join(pool_join(acc[0], acc[1], max), pool_join(acc[2], acc[3], max), max);
        v_store(y + v, max ? all : v_mul(all, v_set1(t->scale)));
    }
}

/* Maxima of P pixels (a constant) whose windows of three columns overlap: each column is joined
 * once. S: pixels of x from one window to the next, a constant. */
SN_INLINE void pool_overlapping(const sn_f32_pool *t, size_t at, const int P, const int S)
{
    const int columns = (P - 1) * S + 3;
    const float *x = t->x + (ptrdiff_t)at * t->x_pixel;
    for (int v = 0; v < SN_BLOCK; v += SN_VL) {
        sn_v col[9];
        SN_UNROLL for (int c = 0; c < columns; c++) col[c] = v_load(x + c * SN_BLOCK + v);
        for (size_t i = 1; i < t->kh; i++) {
            const float *xi = x + (ptrdiff_t)i * t->x_kh + v;
            SN_UNROLL for (int c = 0; c < columns; c++) col[c] =
                v_max_or_nan(col[c], v_load(xi + c * SN_BLOCK));
        }
        SN_UNROLL for (int k = 0; k < P; k++)
            v_store(t->y + (at + (size_t)k) * SN_BLOCK + v,
                    v_max_or_nan(v_max_or_nan(col[k * S], col[k * S + 1]), col[k * S + 2]));
    }
}

/* As many pixels as go this way; how many. */
SN_INLINE size_t pool_overlaps(const sn_f32_pool *t)
{
    size_t at = 0;
    if (t->kw != 3 || t->kh < 1 || t->x_kw != SN_BLOCK)
        return 0;
    if (t->x_pixel == SN_BLOCK)
        for (; at + 6 <= t->pixels; at += 6)
            pool_overlapping(t, at, 6, 1);
    else if (t->x_pixel == 2 * SN_BLOCK)
        for (; at + 4 <= t->pixels; at += 4)
            pool_overlapping(t, at, 4, 2);
    return at;
}

SN_INLINE void pool_run(const sn_f32_pool *t, const int max)
{
    size_t at = max ? pool_overlaps(t) : 0;
    for (; at + 4 <= t->pixels; at += 4)
        pool_pixels(t, at, 4, max);
    for (; at < t->pixels; at++) {
        if (t->kw >= 8)
            pool_wide(t, t->x + (ptrdiff_t)at * t->x_pixel, t->y + at * SN_BLOCK, max);
        else
            pool_pixels(t, at, 1, max);
    }
}

void SN_ISA(sn_f32_maxpool)(const sn_f32_pool *t)
{
    pool_run(t, 1);
}

void SN_ISA(sn_f32_avgpool)(const sn_f32_pool *t)
{
    pool_run(t, 0);
}

void SN_ISA(sn_f32_mix)(float *y, const float *x, size_t n, size_t inner, const int32_t *index,
                        const float *weight, size_t taps)
{
    for (size_t o = 0; o < n; o++, y += inner, index += taps, weight += taps) {
        size_t i = 0;
        for (; i + SN_VL <= inner; i += SN_VL) {
            sn_v sum = v_mul(v_set1(weight[0]), v_load(x + (size_t)index[0] * inner + i));
            for (size_t t = 1; t < taps; t++)
                sum = v_fma(v_set1(weight[t]), v_load(x + (size_t)index[t] * inner + i), sum);
            v_store(y + i, sum);
        }
        if (i == inner)
            continue;
        sn_v sum = v_zero();
        for (size_t t = 0; t < taps; t++)
            sum = v_fma(v_set1(weight[t]), v_load_n(x + (size_t)index[t] * inner + i, inner - i),
                        sum);
        v_store_n(y + i, sum, inner - i);
    }
}

/* Squares of SN_VL pixels × SN_VL channels are transposed in registers; what remains at the end of
 * a row goes one by one. `block` is always SN_BLOCK here. */
void SN_ISA(sn_f32_block)(float *y, const float *x, size_t n, unsigned lanes, unsigned block,
                          size_t x_channel)
{
    size_t p = 0;
    (void)block;
    for (; p + SN_VL <= n; p += SN_VL) {
        for (unsigned l0 = 0; l0 < SN_BLOCK; l0 += SN_VL) {
            sn_v r[SN_VL];
            SN_UNROLL for (unsigned l = 0; l < SN_VL; l++) r[l] =
                l0 + l < lanes ? v_load(x + (l0 + l) * x_channel + p) : v_zero();
            v_transpose(r);
            SN_UNROLL for (unsigned i = 0; i < SN_VL; i++)
                v_store(y + (p + i) * SN_BLOCK + l0, r[i]);
        }
    }
    for (; p < n; p++)
        for (unsigned l = 0; l < SN_BLOCK; l++)
            y[p * SN_BLOCK + l] = l < lanes ? x[l * x_channel + p] : 0.0f;
}

void SN_ISA(sn_f32_unblock)(float *y, const float *x, size_t n, unsigned lanes, unsigned block,
                            size_t y_channel)
{
    size_t p = 0;
    (void)block;
    for (; p + SN_VL <= n; p += SN_VL) {
        for (unsigned l0 = 0; l0 < lanes; l0 += SN_VL) {
            sn_v r[SN_VL];
            SN_UNROLL for (unsigned i = 0; i < SN_VL; i++) r[i] =
                v_load(x + (p + i) * SN_BLOCK + l0);
            v_transpose(r);
            SN_UNROLL for (unsigned l = 0; l < SN_VL; l++) if (l0 + l < lanes)
                v_store(y + (l0 + l) * y_channel + p, r[l]);
        }
    }
    for (; p < n; p++)
        for (unsigned l = 0; l < lanes; l++)
            y[l * y_channel + p] = x[p * SN_BLOCK + l];
}
