/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits and f32, one at a time. */
#include <math.h>

#include "base/codec.h"
#include "kernels/kernels.h"

void sn_f16_load_ref(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_f16_to_f32(x[i]);
}

void sn_f16_store_ref(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_f32_to_f16(x[i]);
}

void sn_bf16_load_ref(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_bf16_to_f32(x[i]);
}

void sn_bf16_store_ref(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_f32_to_bf16(x[i]);
}

/* x in bf16, and what that leaves; all of it where it is not finite. */
static uint16_t split(float x, uint16_t *rest)
{
    const uint16_t y = sn_f32_to_bf16(x);
    const float rounded = sn_bf16_to_f32(y);
    if (!isfinite(rounded)) {
        *rest = y;
        return 0;
    }
    *rest = sn_f32_to_bf16(x - rounded);
    return y;
}

void sn_bf16_pairs_ref(const sn_bf16_pairs *t)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t l = 0; l < 2 * SN_PAIR_BLOCK; l++) {
            const float *from = l < SN_PAIR_BLOCK ? t->a : t->b;
            const uint16_t *halves = l < SN_PAIR_BLOCK ? t->a16 : t->b16;
            const size_t k = i * t->step + l % SN_PAIR_BLOCK;
            float x = t->a ? from ? from[k] : 0.0f : halves ? sn_bf16_to_f32(halves[k]) : 0.0f;
            uint16_t rest = 0;
            if (t->gate && (t->a ? from != NULL : halves != NULL))
                x *= t->gate[l];
            const size_t at = i * 2 * SN_PAIR_BLOCK + l;
            t->y[at] = t->rest ? split(x, &rest) : sn_f32_to_bf16(x);
            if (t->rest)
                t->rest[at] = rest;
        }
}

void sn_f16_split_ref(uint16_t *y, uint16_t *rest, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = split(sn_f16_to_f32(x[i]), &rest[i]);
}

void sn_f16_halves_ref(uint16_t *y, uint16_t *rest, const float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        const float v = x[i] * scale;
        const uint16_t near = sn_f32_to_f16(v);
        const float back = sn_f16_to_f32(near);
        y[i] = isfinite(back) ? near : 0;
        rest[i] = isfinite(back) ? sn_f32_to_f16(v - back) : near;
    }
}

void sn_f32_rescale_ref(const sn_f32_rescale *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (size_t i = 0; i < t->n; i++) {
            const float x = t->x[(ptrdiff_t)r * t->x_row + (ptrdiff_t)i];
            const float a = t->by_row[(ptrdiff_t)r * t->row], b = t->by[i];
            t->y[(ptrdiff_t)r * t->y_row + (ptrdiff_t)i] =
                x * fminf(a, b) * fmaxf(a, b) + t->start[i]; /* the smaller one first */
        }
}

void sn_bf16_round_ref(const sn_bf16_round *t)
{
    enum { STEP = 2 * SN_PAIR_BLOCK };
    for (size_t r = 0; r < t->rows; r++) {
        const float *x = t->x + (ptrdiff_t)r * t->x_row;
        uint16_t *y = t->y + (ptrdiff_t)r * t->y_row;
        for (size_t i = 0; i < (t->n + STEP - 1) / STEP * STEP; i++)
            y[i] = i < t->n ? sn_f32_to_bf16(x[i]) : 0;
    }
}

void sn_bf16_zip_ref(uint16_t *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[2 * i] = sn_f32_to_bf16(a[i]);
        y[2 * i + 1] = b ? sn_f32_to_bf16(b[i]) : 0;
    }
}

void sn_bf16_add_clip_ref(uint16_t *y, const float *x, const uint16_t *z, size_t n, float lo,
                          float hi)
{
    for (size_t i = 0; i < n; i++) {
        const float sum = z ? x[i] + sn_bf16_to_f32(z[i]) : x[i];
        y[i] = sn_f32_to_bf16(sum < lo ? lo : sum > hi ? hi : sum);
    }
}

void sn_f16_add_clip_ref(uint16_t *y, const float *x, const uint16_t *z, size_t n, float lo,
                         float hi)
{
    for (size_t i = 0; i < n; i++) {
        const float sum = z ? x[i] + sn_f16_to_f32(z[i]) : x[i];
        y[i] = sn_f32_to_f16(sum < lo ? lo : sum > hi ? hi : sum);
    }
}

bool sn_f16_join_ref(uint16_t *y, const uint16_t *const x[SN_JOIN_CHANNELS], size_t n)
{
    enum { TOP = 0x7c00 };
    bool finite = true;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < SN_JOIN_CHANNELS; c++) {
            const uint16_t v = x[c] ? x[c][i] : 0;
            y[SN_JOIN_CHANNELS * i + c] = v;
            finite &= (v & TOP) != TOP;
        }
    return finite;
}

static float swish(float x, float beta)
{
    return (float)((double)x / (1.0 + exp(-(double)beta * (double)x)));
}

void sn_f32_swish_rough_ref(float *y, const float *x, size_t n, float beta)
{
    for (size_t i = 0; i < n; i++)
        y[i] = swish(x[i], beta);
}

void sn_bf16_swish_ref(uint16_t *y, const float *x, size_t n, float beta)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sn_f32_to_bf16(swish(x[i], beta));
}

bool sn_bf16_join_ref(uint16_t *y, const float *const x[SN_JOIN_CHANNELS], size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < SN_JOIN_CHANNELS; c++) {
            const uint16_t v = x[c] ? sn_f32_to_bf16(x[c][i]) : 0;
            y[SN_JOIN_CHANNELS * i + c] = v;
            finite = finite && (v & 0x7f80) != 0x7f80;
        }
    return finite;
}

/* ------------------------------------------------------------------ maxima */
static int16_t order(uint16_t x, uint16_t nans)
{
    const uint16_t flipped = x & 0x8000u ? (uint16_t)(x ^ 0x7fffu) : x;
    return (int16_t)(uint16_t)(flipped - nans);
}

static uint16_t number(int16_t order, uint16_t nans)
{
    const uint16_t flipped = (uint16_t)((uint16_t)order + nans);
    return flipped & 0x8000u ? (uint16_t)(flipped ^ 0x7fffu) : flipped;
}

static int16_t maximum(const sn_half_pool *t, size_t p, size_t l)
{
    int16_t most = INT16_MIN;
    for (size_t j = 0; j < t->kw; j++) {
        const size_t at = p * t->stride + j * t->step;
        for (size_t i = 0; i < t->rows && at >= t->before && at < t->before + t->in; i++) {
            const uint16_t *x = t->x + (ptrdiff_t)i * t->x_row;
            const int16_t v = order(x[(at - t->before) * t->block + l], t->nans);
            most = v > most ? v : most;
        }
    }
    return most;
}

void sn_half_maxpool_ref(const sn_half_pool *t)
{
    for (size_t p = 0; p < t->pixels; p++)
        for (size_t l = 0; l < t->block; l++)
            t->y[p * t->block + l] = number(maximum(t, p, l), t->nans);
}
