/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's way to convolve 3×3 at stride 1, on blocked tensors: input patches are transformed to
 * n×n positions (n = m + 2), each position is a matrix product over channels, and the products are
 * transformed back to m×m pixels. That is 4 (m = 4) or 2.25 (m = 2) times fewer multiplications
 * than the direct way, for weights 4 or 1.78 times as large.
 *
 * An item is a batch of patches of one image and group: its transformed input stays in the
 * second-level cache while all output channels pass over it, a few blocks at a time.
 *
 * Accuracy: the transforms of m = 4 multiply by up to 100 before they cancel, those of m = 2 by up
 * to 4, and all pixels of a patch take part in each of its results. The error stays below 4e-6 (m =
 * 4) or 1e-6 (m = 2) of the largest sum of |x||w| in the image; tests/compute/test_conv.c holds it
 * to that. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/conv.h"
#include "compute/packs.h"
#include "compute/split.h"
#include "compute/tile_cost.h"

enum {
    LINE = 16,          /* floats; keeps positions from falling into the same cache sets */
    MIN_BATCH = 16,     /* patches that are worth a pass over the weights */
    ITEMS_A_THREAD = 4, /* at most so many are made for the threads' sake */
};

unsigned sn_conv_winograd_id(const int64_t *w, int rank, int64_t groups, unsigned block, int m)
{
    sn_conv_blocks b;
    if ((m != 2 && m != 4) || (block != 8 && block != 16) || rank != 4 || w[2] != 3 || w[3] != 3 ||
        !sn_conv_blocks_of(w, groups, block, false, &b) || b.group_in != b.in)
        return SN_PACK_NONE;
    if (m == 4)
        return block == 16 ? SN_PACK_F32_WINO4_16 : SN_PACK_F32_WINO4_8;
    return block == 16 ? SN_PACK_F32_WINO2_16 : SN_PACK_F32_WINO2_8;
}

int sn_conv_winograd_of(unsigned pack)
{
    return pack == SN_PACK_F32_WINO4_8 || pack == SN_PACK_F32_WINO4_16   ? 4
           : pack == SN_PACK_F32_WINO2_8 || pack == SN_PACK_F32_WINO2_16 ? 2
                                                                         : 0;
}

double sn_conv_winograd_gain(const int64_t *w, int64_t groups, unsigned block, int m, int64_t rows,
                             int64_t cols)
{
    sn_conv_blocks b;
    if (sn_conv_winograd_id(w, 4, groups, block, m) == SN_PACK_NONE || rows < 1 || cols < 1 ||
        !sn_conv_blocks_of(w, groups, block, false, &b))
        return 0;
    /* Two multiply-adds a cycle at nine parts in ten; the cycles of transforming one block of one
     * patch both ways; and weights on their way from the third-level cache. Fitted to one core of a
     * machine with AVX-512, where halves of the blocks would cost half. */
    const double n = m + 2, in = (double)(b.in_blocks * block), blocks = (double)b.out_blocks;
    const double patches = (double)sn_ceil_div(rows, m) * (double)sn_ceil_div(cols, m);
    const double transforms = (m == 4 ? 480.0 : 155.0) * (double)(b.in_blocks + b.out_blocks);
    const double products = n * n * in * blocks / 2 / 0.9;
    const double weights = n * n * in * blocks * block * sizeof(float) / 10;
    const double direct = (double)rows * (double)cols * 9 * in * blocks / 2;
    const double winograd = patches * (products + transforms) + weights;
    return winograd < 0.85 * direct ? (double)b.groups * (direct - winograd) : 0;
}

/* Floats from one position to the next, of the transformed input and of the products. */
static int64_t in_step(const sn_conv_plan *p)
{
    return p->b.in_blocks * p->seg * p->b.block + LINE;
}

static int64_t out_step(const sn_conv_plan *p)
{
    return p->chunk_blocks * p->seg * p->b.block + LINE;
}

sonde_status sn_conv_plan_winograd(sn_conv_plan *p, size_t l2_bytes, sonde_error *err)
{
    const sn_conv_desc *d = &p->d;
    const int64_t m = d->winograd, n = m + 2, outer = d->n * p->b.groups;
    for (int i = 1; i < 3; i++)
        if (d->kernel[i] != 3 || d->stride[i] != 1 || d->dilation[i] != 1)
            return sn_fail(err, SONDE_INTERNAL, "Winograd is for 3×3 at stride 1");
    p->rows = sn_ceil_div(d->out[1], m); /* of patches */
    p->cols = sn_ceil_div(d->out[2], m);
    const int64_t patches = p->rows * p->cols;
    const int64_t bytes = n * n * p->b.in_blocks * p->b.block * 4;
    const int64_t most = sn_max((int64_t)l2_bytes / 3 / sn_max(bytes, 1), MIN_BATCH);
    int64_t batches = sn_max(sn_ceil_div(patches, most), 1);
    /* As many items for one thread as for another, if batches stay worth their while. */
    while (outer * batches % p->threads != 0 && outer * batches < p->threads * ITEMS_A_THREAD &&
           patches / (batches + 1) >= MIN_BATCH)
        batches++;
    p->seg = sn_max(sn_ceil_div(patches, batches), 1);
    p->segs = sn_ceil_div(patches, p->seg);
    const int64_t q = sn_tile_pick_blocks(p->block, p->seg, 1, p->b.out_blocks, false);
    p->chunks = sn_ceil_div(p->b.out_blocks, q);
    p->chunk_blocks = sn_ceil_div(p->b.out_blocks, p->chunks);
    p->tile = p->k->f32_conv;
    p->items = (size_t)(outer * p->segs);
    p->tasks = p->items;
    if (p->items > 0 && !sn_size_mul((size_t)(in_step(p) + out_step(p)) * sizeof(float),
                                     (size_t)(n * n), &p->panel_bytes))
        return sn_fail(err, SONDE_LIMIT, "the convolution is too large");
    p->panel_bytes = sn_round_up(p->panel_bytes, 64);
    const char *isa = strrchr(p->k->f32_conv_name, '_');
    snprintf(p->name, sizeof p->name, "f32_winograd%dx%d_%dx%d_%s", (int)m, (int)m,
             (int)sn_min(sn_tile_pixels(p->block, p->chunk_blocks), p->seg), (int)p->chunk_blocks,
             isa ? isa + 1 : "ref");
    return SONDE_OK;
}

/* Patches from … to-1 of all input blocks, transformed to v. */
static void transform_in(const sn_conv_plan *p, const float *x, float *v, int64_t from, int64_t to)
{
    const sn_conv_desc *d = &p->d;
    const int64_t m = d->winograd, n = m + 2, block = p->b.block;
    sn_f32_wino_in_fn *fn = m == 4 ? p->k->f32_wino4_in : p->k->f32_wino2_in;
    sn_f32_wino_in t = {.block = p->b.block, .x_row = d->in[2] * block, .v_pos = in_step(p)};
    for (int64_t i = from; i < to; i++) {
        const int64_t row = i / p->cols * m - d->pad[1], col = i % p->cols * m - d->pad[2];
        t.row_from = (int)sn_min(sn_max(-row, 0), n);
        t.row_to = (int)sn_max(sn_min(d->in[1] - row, n), 0);
        t.col_from = (int)sn_min(sn_max(-col, 0), n);
        t.col_to = (int)sn_max(sn_min(d->in[2] - col, n), 0);
        for (int64_t b = 0; b < p->b.in_blocks; b++) {
            t.x = x + (b * d->in[1] * d->in[2] + row * d->in[2] + col) * block;
            t.v = v + (b * p->seg + i - from) * block;
            fn(&t);
        }
    }
}

/* Products of `blocks` output blocks, back to pixels. `lanes` channels of them are real. */
static void transform_out(const sn_conv_plan *p, const float *products, const float *bias,
                          const float *z, float *y, int64_t blocks, int64_t lanes, int64_t from,
                          int64_t to)
{
    const sn_conv_desc *d = &p->d;
    const int64_t m = d->winograd, block = p->b.block, pixels = d->out[1] * d->out[2];
    sn_f32_wino_out_fn *fn = m == 4 ? p->k->f32_wino4_out : p->k->f32_wino2_out;
    sn_f32_wino_out t = {.block = p->b.block,
                         .m_pos = out_step(p),
                         .y_row = d->out[2] * block,
                         .lo = p->lo,
                         .hi = p->hi};
    for (int64_t q = 0; q < blocks; q++) {
        t.bias = bias ? bias + q * block : NULL;
        for (int64_t i = from; i < to; i++) {
            const int64_t row = i / p->cols * m, col = i % p->cols * m;
            const int64_t at = (q * pixels + row * d->out[2] + col) * block;
            t.m = products + (q * p->seg + i - from) * block;
            t.z = z ? z + at : NULL;
            t.y = y + at;
            t.rows = (int)sn_min(m, d->out[1] - row);
            t.cols = (int)sn_min(m, d->out[2] - col);
            fn(&t);
            for (int k = 0; (p->post || p->clear) && k < t.rows; k++)
                sn_conv_finish(p, t.y + k * t.y_row, t.cols, lanes - q * block);
        }
    }
}

static void winograd_item(const sn_conv_call *c, float *v, size_t index)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_blocks *b = &p->b;
    const int64_t block = b->block, n = d->winograd + 2;
    const int64_t batch = (int64_t)index % p->segs, plane = (int64_t)index / p->segs;
    const int64_t group = plane % b->groups;
    const int64_t from = batch * p->seg, to = sn_min(from + p->seg, p->rows * p->cols);
    const int64_t w_pos = b->in_blocks * block * block, w_block = n * n * w_pos;
    float *products = v + n * n * in_step(p), padded[SN_TILE_MAX_BLOCKS * 16];
    transform_in(p, c->x + plane * b->in_blocks * d->in[1] * d->in[2] * block, v, from, to);
    for (int64_t k = 0; k < p->chunks; k++) {
        const int64_t b0 = k * b->out_blocks / p->chunks;
        const int64_t blocks = (k + 1) * b->out_blocks / p->chunks - b0;
        const int64_t out_at = (plane * b->out_blocks + b0) * d->out[1] * d->out[2] * block;
        const float *w = c->w + (group * b->out_blocks + b0) * w_block;
        sn_f32_tile t = {.pixels = (size_t)(to - from),
                         .blocks = (unsigned)blocks,
                         .block = b->block,
                         .ic_blocks = (size_t)b->in_blocks,
                         .ic = (size_t)b->channels,
                         .ic_last = (size_t)b->channels_last,
                         .kh = 1,
                         .kw = 1,
                         .last_kw = 1,
                         .x_pixel = block,
                         .x_ic = 1,
                         .x_block = p->seg * block,
                         .w_q = w_block,
                         .w_block = block * block,
                         .w_ic = block,
                         .y_pixel = block,
                         .y_q = p->seg * block,
                         .x_next = in_step(p),
                         .lo = -INFINITY,
                         .hi = INFINITY};
        for (int64_t i = 0; i < n * n; i++) {
            t.x = v + i * in_step(p);
            t.w = w + i * w_pos;
            t.y = products + i * out_step(p);
            p->tile(&t);
        }
        const int64_t lanes = sn_min(b->out - b0 * block, blocks * block);
        const float *bias = c->bias ? c->bias + group * b->out + b0 * block : NULL;
        if (bias && lanes < blocks * block) {
            memset(padded, 0, sizeof padded);
            memcpy(padded, bias, (size_t)lanes * sizeof(float));
            bias = padded;
        }
        transform_out(p, products, bias, c->z ? c->z + out_at : NULL, c->y + out_at, blocks, lanes,
                      from, to);
    }
}

void sn_conv_winograd_task(void *call, size_t task, int worker)
{
    const sn_conv_call *c = call;
    winograd_item(c, (float *)(void *)(c->panels + (size_t)worker * c->p->panel_bytes), task);
}
