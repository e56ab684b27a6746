/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that move along pixels with one vector per channel block: pooling, and the change between
 * plain and blocked layout. Bound by loads, so the tile only has to be long
 * enough to hide latency. Included by blocked_<isa>.c after the vocabulary. */
#include <math.h>

#include "kernels/kernels.h"

SN_INLINE void pool_pixels(const sn_f32_pool *t, size_t at, const int P, const int max)
{
    const ptrdiff_t x_pixel = t->x_pixel;
    const float *x = t->x + (ptrdiff_t)at * x_pixel;
    const sn_v scale = v_set1(t->scale);
    sn_v acc[4 * SN_BV];
    SN_UNROLL for (int k = 0; k < P * SN_BV; k++) acc[k] = max ? v_set1(-INFINITY) : v_zero();
    for (size_t i = 0; i < t->kh; i++) {
        for (size_t j = 0; j < t->kw; j++) {
            const float *xj = x + (ptrdiff_t)i * t->x_kh + (ptrdiff_t)j * t->x_kw;
            SN_UNROLL for (int k = 0; k < P * SN_BV; k++)
            {
                sn_v v = v_load(xj + k / SN_BV * x_pixel + k % SN_BV * SN_VL);
                acc[k] =
                    max ? v_select(vm_or(v_gt(v, acc[k]), v_nan(v)), v, acc[k]) : v_add(acc[k], v);
            }
        }
    }
    SN_UNROLL for (int k = 0; k < P * SN_BV; k++)
        v_store(t->y + at * SN_BLOCK + k * SN_VL, max ? acc[k] : v_mul(acc[k], scale));
}

SN_INLINE void pool_run(const sn_f32_pool *t, const int max)
{
    size_t at = 0;
    for (; at + 4 <= t->pixels; at += 4)
        pool_pixels(t, at, 4, max);
    for (; at < t->pixels; at++)
        pool_pixels(t, at, 1, max);
}

void SN_ISA(sn_f32_maxpool)(const sn_f32_pool *t)
{
    pool_run(t, 1);
}

void SN_ISA(sn_f32_avgpool)(const sn_f32_pool *t)
{
    pool_run(t, 0);
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
            for (unsigned l = 0; l < SN_VL; l++)
                r[l] = l0 + l < lanes ? v_load(x + (l0 + l) * x_channel + p) : v_zero();
            v_transpose(r);
            for (unsigned i = 0; i < SN_VL; i++)
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
            for (unsigned i = 0; i < SN_VL; i++)
                r[i] = v_load(x + (p + i) * SN_BLOCK + l0);
            v_transpose(r);
            for (unsigned l = 0; l < SN_VL && l0 + l < lanes; l++)
                v_store(y + (l0 + l) * y_channel + p, r[l]);
        }
    }
    for (; p < n; p++)
        for (unsigned l = 0; l < lanes; l++)
            y[l * y_channel + p] = x[p * SN_BLOCK + l];
}
