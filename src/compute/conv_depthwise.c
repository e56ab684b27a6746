/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution on blocked tensors: an item is rows of one channel block, which the kernel
 * does with all borders in one call. Only an activation that is more than a clip cuts an item into
 * slices, so that it finds them in the first-level cache. */
#include <string.h>

#include "compute/conv.h"
#include "compute/split.h"

enum { SLICE_BYTES = 16 << 10 };

static void depthwise_rows(const sn_conv_call *c, const float *zeros, float *wide, int64_t plane,
                           const sn_conv_band *band)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const int64_t block = p->block, blocks = sn_ceil_div(d->c, block), cb = plane % blocks;
    const int64_t lanes = sn_min(d->c - cb * block, block), line = d->out[2] * block;
    const int64_t out_at = plane * d->out[1] * line;
    const int64_t weights = d->kernel[1] * d->kernel[2] * block;
    float bias[16] = {0};
    if (c->bias)
        memcpy(bias, c->bias + cb * block, (size_t)lanes * sizeof(float));
    sn_f32_depthwise t = {.x = c->x + plane * band->in_rows * d->in[2] * block,
                          .w = sn_conv_weights(c, cb * weights, weights, wide),
                          .bias = bias,
                          .z = c->z ? c->z + out_at : NULL,
                          .zeros = zeros,
                          .y = c->y + out_at,
                          .cols = d->out[2],
                          .in = {band->in_rows, d->in[2]},
                          .kernel = {d->kernel[1], d->kernel[2]},
                          .stride = {d->stride[1], d->stride[2]},
                          .dilation = {d->dilation[1], d->dilation[2]},
                          .pad = {d->pad[1] + band->in_from, d->pad[2]},
                          .block = p->block,
                          .lo = p->lo,
                          .hi = p->hi};
    const int64_t fit = sn_max(SLICE_BYTES / sn_max(line * (int64_t)sizeof(float), 1), 4);
    const int64_t slice =
        p->post ? fit - fit % 4 : band->to - band->from; /* the kernel likes fours */
    for (int64_t row = band->from; row < band->to; row += slice) {
        t.from = row;
        t.to = sn_min(row + slice, band->to);
        p->k->f32_depthwise(&t);
        sn_conv_finish(p, t.y + row * line, (t.to - row) * d->out[2], lanes);
    }
}

void sn_conv_depthwise_band(const sn_conv_call *c, const sn_conv_band *band)
{
    float *zeros = sn_conv_panel(c, 0);
    memset(zeros, 0, c->p->panel_bytes);
    for (int64_t plane = 0; plane < sn_ceil_div(c->p->d.c, c->p->block); plane++)
        depthwise_rows(c, zeros, sn_conv_wide(c, 0), plane, band);
}

void sn_conv_depthwise_task(void *call, size_t task, int worker)
{
    const sn_conv_call *c = call;
    const sn_conv_plan *p = c->p;
    const int64_t blocks = sn_ceil_div(p->d.c, p->block);
    float *zeros = sn_conv_panel(c, worker);
    memset(zeros, 0, p->panel_bytes);
    for (size_t i = sn_split(p->items, p->tasks, task); i < sn_split(p->items, p->tasks, task + 1);
         i++) {
        const int64_t block = (int64_t)i % blocks, rest = (int64_t)i / blocks;
        const int64_t seg = rest % p->segs, plane = rest / p->segs * blocks + block;
        const sn_conv_band band = {
            .from = seg * p->seg, .to = sn_min(p->rows, (seg + 1) * p->seg), .in_rows = p->d.in[1]};
        depthwise_rows(c, zeros, sn_conv_wide(c, worker), plane, &band);
    }
}
