/* SPDX-License-Identifier: Apache-2.0 */
/* The references of the convolution and matrix kernels: the formulas of signatures.h, one loop per
 * index. They are what "right" means for every other variant, and what runs on a CPU without
 * vectors. */
#include <math.h>

#include "kernels/kernels.h"

static float clip(float v, float lo, float hi)
{
    if (v < lo)
        v = lo;
    if (v > hi)
        v = hi;
    return v;
}

void sn_f32_conv_ref(const sn_f32_tile *t)
{
    for (unsigned q = 0; q < t->blocks; q++) {
        unsigned lanes = q + 1 == t->blocks && t->lanes ? t->lanes : t->block;
        for (size_t p = 0; p < t->pixels; p++) {
            size_t j0 = p == 0 ? t->first_kw : 0, j1 = p + 1 == t->pixels ? t->last_kw : t->kw;
            const float *xp = t->x + (ptrdiff_t)p * t->x_pixel;
            float *y = t->y + (ptrdiff_t)q * t->y_q + (ptrdiff_t)p * t->y_pixel;
            float acc[16];
            for (unsigned l = 0; l < lanes; l++)
                acc[l] = t->bias ? t->bias[q * t->block + l] : 0.0f;
            for (size_t b = 0; b < t->ic_blocks; b++) {
                size_t channels = b + 1 == t->ic_blocks ? t->ic_last : t->ic;
                for (size_t i = 0; i < t->kh; i++) {
                    for (size_t j = j0; j < j1; j++) {
                        const float *x = xp + (ptrdiff_t)b * t->x_block + (ptrdiff_t)i * t->x_kh +
                                         (ptrdiff_t)j * t->x_kw;
                        const float *w = t->w + (ptrdiff_t)q * t->w_q + (ptrdiff_t)b * t->w_block +
                                         (ptrdiff_t)i * t->w_kh + (ptrdiff_t)j * t->w_kw;
                        for (size_t c = 0; c < channels; c++)
                            for (unsigned l = 0; l < lanes; l++)
                                acc[l] = acc[l] +
                                         x[(ptrdiff_t)c * t->x_ic] * w[(ptrdiff_t)c * t->w_ic + l];
                    }
                }
            }
            const float *z = t->z ? t->z + (ptrdiff_t)q * t->z_q + (ptrdiff_t)p * t->z_pixel : NULL;
            for (unsigned l = 0; l < lanes; l++)
                y[l] = clip(z ? acc[l] + z[l] : acc[l], t->lo, t->hi);
        }
    }
}

/* Lane l of pixel `at` of plane q. */
static float depthwise_lane(const sn_f32_depthwise *t, ptrdiff_t q, ptrdiff_t at, unsigned l)
{
    if (!t->planes)
        return t->x[at * t->block + l];
    const int32_t lane = t->planes[q].lane[l], block = (int32_t)t->block;
    if (lane < 0)
        return 0.0f;
    return t->x[t->planes[q].at[lane / block] + at * block + lane % block];
}

static float depthwise_sum(const sn_f32_depthwise *t, ptrdiff_t r, ptrdiff_t p, unsigned l)
{
    const ptrdiff_t n = t->planes ? t->n_planes : 1;
    const float *w = t->w + l;
    float acc = t->bias ? t->bias[l] : 0.0f;
    for (ptrdiff_t q = 0; q < n; q++) {
        for (ptrdiff_t i = 0; i < t->kernel[0]; i++) {
            for (ptrdiff_t j = 0; j < t->kernel[1]; j++, w += t->block) {
                const ptrdiff_t row = r * t->stride[0] - t->pad[0] + i * t->dilation[0];
                const ptrdiff_t col = p * t->stride[1] - t->pad[1] + j * t->dilation[1];
                if (row >= 0 && row < t->in[0] && col >= 0 && col < t->in[1])
                    acc = acc + depthwise_lane(t, q, row * t->in[1] + col, l) * *w;
            }
        }
    }
    return acc;
}

void sn_f32_depthwise_ref(const sn_f32_depthwise *t)
{
    for (ptrdiff_t r = t->from; r < t->to; r++) {
        for (ptrdiff_t p = 0; p < t->cols; p++) {
            for (unsigned l = 0; l < t->block; l++) {
                const ptrdiff_t at = (r * t->cols + p) * t->block + l;
                const float v = depthwise_sum(t, r, p, l);
                t->y[at] = clip(t->z ? v + t->z[at] : v, t->lo, t->hi);
            }
        }
    }
}

void sn_f32_maxpool_ref(const sn_f32_pool *t)
{
    for (size_t p = 0; p < t->pixels; p++) {
        for (unsigned l = 0; l < t->block; l++) {
            float best = -INFINITY;
            for (size_t i = 0; i < t->kh; i++) {
                for (size_t j = 0; j < t->kw; j++) {
                    float v = t->x[(ptrdiff_t)p * t->x_pixel + (ptrdiff_t)i * t->x_kh +
                                   (ptrdiff_t)j * t->x_kw + l];
                    if (v > best || isnan(v))
                        best = v;
                }
            }
            t->y[p * t->block + l] = best;
        }
    }
}

void sn_f32_avgpool_ref(const sn_f32_pool *t)
{
    for (size_t p = 0; p < t->pixels; p++) {
        for (unsigned l = 0; l < t->block; l++) {
            float sum = 0.0f;
            for (size_t i = 0; i < t->kh; i++)
                for (size_t j = 0; j < t->kw; j++)
                    sum = sum + t->x[(ptrdiff_t)p * t->x_pixel + (ptrdiff_t)i * t->x_kh +
                                     (ptrdiff_t)j * t->x_kw + l];
            t->y[p * t->block + l] = sum * t->scale;
        }
    }
}

void sn_f32_mix_ref(float *y, const float *x, size_t n, size_t inner, const int32_t *index,
                    const float *weight, size_t taps)
{
    for (size_t o = 0; o < n; o++) {
        for (size_t i = 0; i < inner; i++) {
            float sum = 0.0f;
            for (size_t t = 0; t < taps; t++)
                sum = sum + weight[o * taps + t] * x[(size_t)index[o * taps + t] * inner + i];
            y[o * inner + i] = sum;
        }
    }
}

void sn_f32_block_ref(float *y, const float *x, size_t n, unsigned lanes, unsigned block,
                      size_t x_channel)
{
    for (size_t p = 0; p < n; p++)
        for (unsigned l = 0; l < block; l++)
            y[p * block + l] = l < lanes ? x[l * x_channel + p] : 0.0f;
}

void sn_f32_unblock_ref(float *y, const float *x, size_t n, unsigned lanes, unsigned block,
                        size_t y_channel)
{
    for (unsigned l = 0; l < lanes; l++)
        for (size_t p = 0; p < n; p++)
            y[l * y_channel + p] = x[p * block + l];
}
