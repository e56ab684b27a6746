/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima of plain f32 images, row by row: the input rows of a window are joined first, then that
 * strip with itself moved by one tap after the other. Both are elementwise along a strip of
 * columns; of the windows that begin at each of them, every stride-th is an output. And what is
 * left of a whole image. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compute/conv.h"
#include "compute/pooling.h"
#include "compute/split.h"

enum { STRIP = 1024 }; /* columns of the input at once */

typedef struct strip {
    const sn_pooling_plan *p;
    float acc[STRIP]; /* input columns from … to-1, joined over depth and rows */
    int64_t from, to;
    int64_t taps; /* of depth and rows, inside of the image */
} strip;

static void join(const strip *s, float *acc, const float *x, int64_t n)
{
    s->p->k->f32_max(acc, acc, x, (size_t)n, SN_BINARY_VV);
}

static void join_rows(strip *s, const float *x, int64_t od, int64_t oh)
{
    const sn_pooling_desc *d = &s->p->d;
    int64_t d0, d1, h0, h1;
    sn_conv_taps(od, d->stride[0], d->pad[0], d->dilation[0], d->kernel[0], d->in[0], &d0, &d1);
    sn_conv_taps(oh, d->stride[1], d->pad[1], d->dilation[1], d->kernel[1], d->in[1], &h0, &h1);
    s->taps = (d1 - d0) * (h1 - h0);
    bool first = true;
    for (int64_t i = d0; i < d1; i++) {
        for (int64_t j = h0; j < h1; j++, first = false) {
            const int64_t z = od * d->stride[0] - d->pad[0] + i * d->dilation[0];
            const int64_t r = oh * d->stride[1] - d->pad[1] + j * d->dilation[1];
            const float *row = x + (z * d->in[1] + r) * d->in[2] + s->from;
            if (first)
                memcpy(s->acc, row, (size_t)(s->to - s->from) * sizeof(float));
            else
                join(s, s->acc, row, s->to - s->from);
        }
    }
}

/* An output whose window crosses a border. */
static float at_border(const strip *s, int64_t o)
{
    const sn_pooling_desc *d = &s->p->d;
    int64_t j0, j1;
    sn_conv_taps(o, d->stride[2], d->pad[2], d->dilation[2], d->kernel[2], d->in[2], &j0, &j1);
    const int64_t taps = s->taps * (j1 - j0);
    if (taps <= 0)
        return -FLT_MAX;
    const float *at = s->acc + o * d->stride[2] - d->pad[2] - s->from;
    float v = at[j0 * d->dilation[2]];
    for (int64_t j = j0 + 1; j < j1; j++)
        join(s, &v, at + j * d->dilation[2], 1);
    return v;
}

/* Outputs o … end-1 of a row, all between the borders. */
static void between_borders(const strip *s, int64_t o, int64_t end, float *y)
{
    const sn_pooling_desc *d = &s->p->d;
    const int64_t k = d->kernel[2], stride = d->stride[2];
    const int64_t n = (end - 1 - o) * stride + 1; /* windows from o's to the last */
    const float *at = s->acc + o * stride - d->pad[2] - s->from;
    float joined[STRIP];
    memcpy(joined, at, (size_t)n * sizeof(float));
    for (int64_t j = 1; j < k; j++)
        join(s, joined, at + j * d->dilation[2], n);
    for (int64_t i = o; i < end; i++)
        y[i] = s->taps > 0 ? joined[(i - o) * stride] : -FLT_MAX;
}

bool sn_pooling_rows(const sn_pooling_plan *p, int64_t plane, const float *x, float *y)
{
    const sn_pooling_desc *d = &p->d;
    const int64_t reach = (d->kernel[2] - 1) * d->dilation[2] + 1;
    if (d->kind == SN_POOL_LP || d->dtype != SONDE_DTYPE_F32 || (reach > STRIP && !p->whole))
        return false;
    /* Averages of small windows keep the order of a plain loop, in which other engines add: where a
     * quantised model rounds, the order shows. */
    if (d->kind == SN_POOL_AVERAGE && !p->whole)
        return false;
    const int64_t width = (STRIP - reach) / d->stride[2] + 1; /* outputs of a strip */
    strip s = {.p = p};
    const size_t pixels = (size_t)(d->in[0] * d->in[1] * d->in[2]);
    if (p->whole) {
        const float *at = x + (size_t)plane * pixels;
        y[plane] = d->kind == SN_POOL_MAX ? p->k->f32_rowmax(at, pixels)
                                          : p->k->f32_sum(at, pixels) / (float)pixels;
        return true;
    }
    x += plane * d->in[0] * d->in[1] * d->in[2];
    y += plane * d->out[0] * d->out[1] * d->out[2];
    for (int64_t o = 0; o < d->out[2]; o += width) {
        const int64_t end = sn_min(o + width, d->out[2]);
        s.from = sn_min(sn_max(o * d->stride[2] - d->pad[2], 0), d->in[2]);
        s.to = sn_max(sn_min((end - 1) * d->stride[2] - d->pad[2] + reach, d->in[2]), s.from);
        for (int64_t row = 0; row < d->out[0] * d->out[1]; row++) {
            join_rows(&s, x, row / d->out[1], row % d->out[1]);
            const int64_t a = sn_max(o, sn_min(p->inner_from, end)), b = sn_min(end, p->inner_to);
            float *to = y + row * d->out[2];
            for (int64_t i = o; i < end; i++)
                if (i < a || i >= b)
                    to[i] = at_border(&s, i);
            if (a < b)
                between_borders(&s, a, b, to);
        }
    }
    return true;
}
