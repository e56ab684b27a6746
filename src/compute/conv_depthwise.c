/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution on blocked tensors: an item is rows of one channel block, which the kernel
 * does with all borders in one call. An activation that is more than a clip cuts an item into
 * slices, so that it finds them in the first-level cache. Images that are bf16 or f16 in memory go
 * through f32 by bands of rows. */
#include <string.h>

#include "compute/conv.h"
#include "compute/halves.h"
#include "compute/split.h"

enum { SLICE_BYTES = 16 << 10 };

/* Rows of an image that is bf16 or f16 in memory, or becomes it. t: of the whole plane. */
static void stored_rows(const sn_conv_call *c, sn_f32_depthwise t, int64_t plane, int64_t lanes,
                        const sn_conv_band *band, int worker)
{
    static const sn_act none = {SN_ACT_NONE, {0}};
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const int64_t line = d->in[2] * p->block, result = d->out[2] * p->block;
    const int64_t in_at = plane * band->in_rows * line, out_at = plane * d->out[1] * result;
    const int64_t window = (d->kernel[1] - 1) * d->dilation[1] + 1;
    float *x = sn_pieces_at(c->workspace, p->copies, (size_t)worker);
    float *y = sn_pieces_at(c->workspace, p->sums, (size_t)worker);
    for (int64_t row = band->from, n; row < band->to; row += n) {
        n = sn_min(p->band, band->to - row);
        const int64_t top = row * d->stride[1] - d->pad[1] - band->in_from; /* a line of x */
        const int64_t first = sn_min(sn_max(top, 0), band->in_rows), at = in_at + first * line;
        const int64_t end = sn_min(top + (n - 1) * d->stride[1] + window, band->in_rows);
        t.in[0] = sn_max(end - first, 0);
        t.pad[0] = sn_max(first - top, 0);
        t.to = n;
        t.x = d->x_half ? x : c->x + at;
        if (d->x_half)
            sn_halves_load(p->k, d->x_half, x, (const uint16_t *)(const void *)c->x + at,
                           (size_t)(t.in[0] * line));
        t.y = d->y_half ? y : c->y + out_at + row * result;
        t.z = c->z ? c->z + out_at + row * result : NULL;
        p->k->f32_depthwise(&t);
        if (!d->y_half || p->clear)
            sn_conv_finish(p, t.y, n * d->out[2], lanes);
        if (d->y_half)
            sn_act_store_half(p->clear ? &none : &d->act, p->k, d->y_half,
                              (uint16_t *)(void *)c->y + out_at + row * result, y,
                              (size_t)(n * result));
    }
}

static void depthwise_rows(const sn_conv_call *c, const float *zeros, int64_t plane,
                           const sn_conv_band *band, int worker)
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
    const bool stored = d->x_half || d->y_half;
    sn_f32_depthwise t = {.x = stored ? NULL : c->x + plane * band->in_rows * d->in[2] * block,
                          .w = sn_conv_weights(c, cb * weights, weights, sn_conv_wide(c, worker)),
                          .bias = bias,
                          .z = c->z && !stored ? c->z + out_at : NULL,
                          .zeros = zeros,
                          .y = stored ? NULL : c->y + out_at,
                          .cols = d->out[2],
                          .in = {band->in_rows, d->in[2]},
                          .kernel = {d->kernel[1], d->kernel[2]},
                          .stride = {d->stride[1], d->stride[2]},
                          .dilation = {d->dilation[1], d->dilation[2]},
                          .pad = {d->pad[1] + band->in_from, d->pad[2]},
                          .block = p->block,
                          .lo = p->lo,
                          .hi = p->hi};
    if (stored) {
        stored_rows(c, t, plane, lanes, band, worker);
        return;
    }
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
        depthwise_rows(c, zeros, plane, band, 0);
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
        depthwise_rows(c, zeros, plane, &band, worker);
    }
}
