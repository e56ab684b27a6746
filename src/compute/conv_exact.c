/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of one pixel, from the taps and channels that belong to it and nothing else. Ways that are
 * faster make sums of more than that, which cancel or are multiplied by zero: Winograd's of a whole
 * patch, merged groups of each other's channels. An infinity or a NaN there is not lost. So they
 * look for one, which costs next to nothing, and where they find it come here. */
#include "compute/conv_exact.h"

#include <math.h>
#include <string.h>

#include "compute/split.h"

enum { MOST_LANES = 16 };

bool sn_conv_merges(const sn_conv_plan *p)
{
    return p->b.group_in != p->b.in;
}

/* Adds what input channels from … to-1 of the group give, all of one block. */
static void add_block(const sn_conv_plan *p, const sn_conv_window *v, const float *w,
                      const int64_t *at, int64_t from, int64_t to, float *sums)
{
    const sn_conv_desc *d = &p->d;
    const int64_t block = p->block;
    int64_t first[3], end[3], begin[3];
    for (int i = 0; i < 3; i++) {
        sn_conv_taps(at[i], d->stride[i], d->pad[i], d->dilation[i], d->kernel[i], d->in[i],
                     &first[i], &end[i]);
        begin[i] = at[i] * d->stride[i] - d->pad[i];
        if (first[i] == end[i])
            return;
    }
    sn_f32_tile t = {.y = sums,
                     .z = sums,
                     .pixels = 1,
                     .blocks = 1,
                     .block = p->block,
                     .ic_blocks = 1,
                     .ic = (size_t)(to - from),
                     .ic_last = (size_t)(to - from),
                     .kh = (size_t)(end[1] - first[1]),
                     .kw = (size_t)(end[2] - first[2]),
                     .last_kw = (size_t)(end[2] - first[2]),
                     .x_pixel = block,
                     .x_ic = 1,
                     .x_kh = d->dilation[1] * v->x_row,
                     .x_kw = d->dilation[2] * block,
                     .w_kh = v->w_tap[1],
                     .w_kw = v->w_tap[2],
                     .w_ic = block,
                     .y_pixel = block,
                     .z_pixel = block,
                     .lo = -INFINITY,
                     .hi = INFINITY};
    for (int64_t k = first[0]; k < end[0]; k++) {
        t.x = v->x + from / block * v->x_block + (begin[0] + k * d->dilation[0]) * v->x_slice +
              (begin[1] + first[1] * d->dilation[1]) * v->x_row +
              (begin[2] + first[2] * d->dilation[2]) * block + from % block;
        t.w = w + k * v->w_tap[0] + first[1] * v->w_tap[1] + first[2] * v->w_tap[2] +
              from % block * block;
        p->k->f32_conv(&t);
    }
}

/* Adds what input channels from … to-1 of the group give. */
static void add(const sn_conv_call *c, const sn_conv_window *v, const int64_t *at, int64_t from,
                int64_t to, float *sums)
{
    const int64_t block = c->p->block;
    for (int64_t next; from < to; from = next) {
        next = sn_min((from / block + 1) * block, to);
        const float *w =
            sn_conv_weights(c, v->w_at + from / block * v->w_block, v->w_block, v->room);
        add_block(c->p, v, w + v->w_first, at, from, next, sums);
    }
}

static bool has_nan(const float *x, int64_t n)
{
    bool found = false;
    for (int64_t i = 0; i < n; i++)
        found |= isnan(x[i]);
    return found;
}

void sn_conv_exact(const sn_conv_call *c, const sn_conv_window *v, const int64_t *at, float *sums)
{
    const sn_conv_blocks *b = &c->p->b;
    const int64_t block = c->p->block, end = v->first + v->lanes;
    memset(sums, 0, (size_t)block * sizeof *sums);
    add(c, v, at, 0, v->channels, sums);
    memset(sums + v->lanes, 0, (size_t)(block - v->lanes) * sizeof *sums);
    if (!sn_conv_merges(c->p) || !has_nan(sums, v->lanes))
        return;
    for (int64_t lane = v->first, next; lane < end; lane = next) { /* group by group */
        float own[MOST_LANES] = {0};
        const int64_t group = lane / b->group_out;
        next = sn_min((group + 1) * b->group_out, end);
        add(c, v, at, group * b->group_in, sn_min((group + 1) * b->group_in, v->channels), own);
        memcpy(sums + (lane - v->first), own + (lane - v->first),
               (size_t)(next - lane) * sizeof *sums);
    }
}

void sn_conv_exact_store(const sn_conv_plan *p, const float *sums, const float *bias,
                         const float *z, float *y)
{
    for (int64_t l = 0; l < p->block; l++) {
        float v = sums[l];
        if (bias)
            v = v + bias[l];
        if (z)
            v = v + z[l];
        y[l] = v < p->lo ? p->lo : v > p->hi ? p->hi : v; /* a NaN stays */
    }
}

/* ------------------------------------------------------------------ merged groups */
/* Pixels of x along an axis that pixels from … to-1 of y read. */
static void reach(const sn_conv_desc *d, int axis, int64_t from, int64_t to, int64_t out[2])
{
    const int64_t begin = from * d->stride[axis] - d->pad[axis];
    const int64_t last = (to - 1) * d->stride[axis] - d->pad[axis];
    out[0] = sn_max(begin, 0);
    out[1] = sn_min(last + (d->kernel[axis] - 1) * d->dilation[axis] + 1, d->in[axis]);
}

bool sn_conv_part_is_finite(const sn_conv_plan *p, const sn_conv_part *part)
{
    const sn_conv_desc *d = &p->d;
    const int64_t block = p->block, cols = d->out[2], rows = d->out[1];
    const int64_t from = part->from / cols, to = (part->to - 1) / cols + 1; /* rows of y */
    const int64_t slice = from / rows, slices = (to - 1) / rows + 1;
    const int64_t blocks =
        sn_min(p->b.in_blocks, sn_ceil_div(d->c, block) - part->group * p->b.in_blocks);
    const bool one_row = to - from == 1, one_slice = slices - slice == 1;
    int64_t z[2], y[2], x[2];
    reach(d, 0, slice, slices, z);
    reach(d, 1, one_slice ? from % rows : 0, one_slice ? (to - 1) % rows + 1 : rows, y);
    reach(d, 2, one_row ? part->from % cols : 0, one_row ? (part->to - 1) % cols + 1 : cols, x);
    if (y[0] >= y[1] || x[0] >= x[1])
        return true;
    /* Whole rows lie one behind the other, as do the pixels that a row is all of. */
    const bool joined = x[0] == 0 && x[1] == d->in[2];
    const int64_t high = joined ? 1 : y[1] - y[0];
    const int64_t n = joined ? (y[1] - y[0] - 1) * p->line + d->in[2] : x[1] - x[0];
    float sum = 0;
    for (int64_t i = 0; i < blocks; i++)
        for (int64_t j = z[0]; j < z[1]; j++)
            for (int64_t k = 0; k < high; k++) {
                const int64_t row = (i * d->in[0] + j) * d->in[1] + y[0] + k;
                const float *at = part->x + (row * p->line + x[0]) * block;
                sum += p->k->f32_sum(at, (size_t)(n * block));
            }
    return isfinite(sum); /* large numbers may look as if they were not */
}

void sn_conv_part_exact(const sn_conv_call *c, const sn_conv_part *part)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_blocks *b = &p->b;
    const sn_conv_phase *f = &p->phase;
    const int64_t block = p->block, tap = block * block;
    const int64_t out = sn_min(b->out, d->oc - part->group * b->out);
    sn_conv_window v = {.x = part->x,
                        .x_row = p->line * block,
                        .x_slice = d->in[1] * p->line * block,
                        .x_block = d->in[0] * d->in[1] * p->line * block,
                        .w_block = f->w_dims[0] * f->w_dims[1] * f->w_dims[2] * tap,
                        .channels = sn_min(b->in, d->c - part->group * b->in),
                        .room = part->room};
    v.w_tap[2] = f->w_step[2] * tap;
    v.w_tap[1] = f->w_step[1] * f->w_dims[2] * tap;
    v.w_tap[0] = f->w_step[0] * f->w_dims[1] * f->w_dims[2] * tap;
    v.w_first =
        ((f->w_first[0] * f->w_dims[1] + f->w_first[1]) * f->w_dims[2] + f->w_first[2]) * tap;
    for (int64_t q = 0; q < part->blocks; q++) {
        v.first = (part->block + q) * block;
        v.lanes = sn_min(block, out - v.first);
        v.w_at = (part->group * b->out_blocks + part->block + q) * b->in_blocks * v.w_block;
        for (int64_t i = part->from; i < part->to; i++) {
            float sums[MOST_LANES];
            const int64_t at[3] = {i / d->out[2] / d->out[1], i / d->out[2] % d->out[1],
                                   i % d->out[2]};
            int64_t pixel = 0;
            for (int a = 0; a < 3; a++)
                pixel = pixel * f->y_dims[a] + f->y_first[a] + at[a] * f->y_step[a];
            pixel = (q * part->out_pixels + pixel) * block;
            sn_conv_exact(c, &v, at, sums);
            sn_conv_exact_store(p, sums, part->bias ? part->bias + q * block : NULL,
                                part->z ? part->z + pixel : NULL, part->y + pixel);
        }
    }
}
