/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions of bytes by quads (kernels/signatures.h). A task is some lines of the
 * result, of a block of 64 channels. It keeps the lines of x that a line of the result reads in a
 * ring, as quads: going on by one line, it makes those of the new lines. */
#include "compute/q8_ways.h"

#include <math.h>
#include <string.h>

enum { DEPTH, HEIGHT, WIDTH };

typedef struct q8_ring {
    const sn_q8_call *c;
    const uint8_t *x; /* the image, from the block's first channel on */
    const uint8_t *outside;
    uint8_t *quads;
    ptrdiff_t *at;
    int64_t image, z, block, channels;
    int64_t line_bytes;
    int64_t made; /* lines of x up to this one were made */
} q8_ring;

static uint8_t *slot_of(const q8_ring *t, int64_t slice, int64_t line)
{
    const int64_t ring = t->c->p->ring;
    return t->quads + (slice * ring + (line % ring + ring) % ring) * t->line_bytes;
}

/* Line y of x, in slice z, both maybe outside. */
static void make_line(const q8_ring *t, int64_t slice, int64_t y)
{
    const sn_q8_plan *p = t->c->p;
    const sn_conv_desc *d = &p->d.conv;
    const int64_t z = t->z * d->stride[DEPTH] - d->pad[DEPTH] + slice * d->dilation[DEPTH];
    const bool inside = z >= 0 && z < d->in[DEPTH] && y >= 0 && y < d->in[HEIGHT];
    sn_quads_args q = {.x = t->outside,
                       .outside = t->outside,
                       .y = slot_of(t, slice, y),
                       .pairs = (size_t)p->pairs,
                       .channels = (size_t)t->channels,
                       .before = (size_t)d->pad[WIDTH],
                       .x_pixel = p->d.x_pitch,
                       .flip = p->flips ? 0x80 : 0};
    if (inside) {
        q.x = t->x + (z * d->in[HEIGHT] + y) * d->in[WIDTH] * p->d.x_pitch;
        q.there = (size_t)d->in[WIDTH];
    }
    p->k->u8_quads(&q);
}

/* Where result `row` of line (z, y) reads every tap. */
static void point_at_taps(const q8_ring *t, int64_t y, int64_t row, const uint8_t **taps)
{
    const sn_q8_plan *p = t->c->p;
    const sn_conv_desc *d = &p->d.conv;
    for (int64_t k = 0; k < p->w.taps; k++) {
        const int64_t kx = k % d->kernel[WIDTH], rest = k / d->kernel[WIDTH];
        const int64_t at[] = {
            t->z * d->stride[DEPTH] - d->pad[DEPTH] + rest / d->kernel[HEIGHT] * d->dilation[DEPTH],
            y * d->stride[HEIGHT] - d->pad[HEIGHT] + rest % d->kernel[HEIGHT] * d->dilation[HEIGHT],
            row * d->stride[WIDTH] - d->pad[WIDTH] + kx};
        bool inside = true;
        for (int i = 0; i < 3; i++)
            inside = inside && at[i] >= 0 && at[i] < d->in[i];
        taps[k] =
            inside ? t->x + ((at[0] * d->in[HEIGHT] + at[1]) * d->in[WIDTH] + at[2]) * p->d.x_pitch
                   : t->outside;
    }
}

/* Sums of a line, a few rows at a time, to what they become. */
static void finish_sums(const q8_ring *t, sn_q8_depthwise_args *a, int64_t y, int worker)
{
    const sn_q8_call *c = t->c;
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    const uint8_t **taps = sn_pieces_at(c->a->workspace, p->pointers, (size_t)worker);
    const uint8_t *first = a->x;
    a->sums = sn_pieces_at(c->a->workspace, p->sums, (size_t)worker);
    a->sums_row = SN_QUAD_CHANNELS;
    for (int64_t row = 0; row < d->out[WIDTH]; row += p->rows) { /* an even number of rows */
        const int64_t n = sn_min(p->rows, d->out[WIDTH] - row);
        a->x = first + row * d->stride[WIDTH] / 2 * SN_QUAD_BYTES;
        a->rows = (size_t)n;
        p->by_quads(a);
        sn_q8_sums s = {.image = t->image,
                        .first = t->block * SN_QUAD_CHANNELS,
                        .n = t->channels,
                        .sums_row = a->sums_row,
                        .factors = sn_pieces_at(c->a->workspace, p->factors, (size_t)worker),
                        .taps = taps,
                        .taps_step = 1};
        const int64_t each = c->w_zeros ? 1 : n;
        for (int64_t r = 0; r < n; r += each) {
            if (c->w_zeros)
                point_at_taps(t, y, row + r, taps);
            s.row = (t->z * d->out[HEIGHT] + y) * d->out[WIDTH] + row + r;
            s.rows = each;
            s.sums = a->sums + r * a->sums_row;
            sn_q8_finish(c, &s);
        }
    }
}

static void compute_line(q8_ring *t, int64_t y, int worker)
{
    const sn_q8_call *c = t->c;
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    const int64_t y0 = y * d->stride[HEIGHT] - d->pad[HEIGHT], first = t->block * SN_QUAD_CHANNELS;
    for (int64_t line = sn_max(y0, t->made + 1); line < y0 + p->ring; line++)
        for (int64_t slice = 0; slice < d->kernel[DEPTH]; slice++)
            make_line(t, slice, line);
    t->made = y0 + p->ring - 1;
    for (int64_t k = 0; k < p->w.runs; k++)
        t->at[k] =
            slot_of(t, k / d->kernel[HEIGHT], y0 + k % d->kernel[HEIGHT] * d->dilation[HEIGHT]) -
            t->quads;
    sn_q8_depthwise_args a = {.x = t->quads,
                              .at = t->at,
                              .w = (const int8_t *)c->weights + t->block * p->w.block_bytes,
                              .start = c->start + first,
                              .scale = c->factor + first,
                              .rows = (size_t)d->out[WIDTH],
                              .runs = (size_t)p->w.runs,
                              .quads = (size_t)p->w.quads,
                              .stride = (size_t)d->stride[WIDTH],
                              .channels = (size_t)t->channels,
                              .y_row = p->d.y_pitch,
                              .zero = (float)c->a->y_zero,
                              .lo = c->lo,
                              .hi = c->hi};
    if (!c->small_factors) {
        finish_sums(t, &a, y, worker);
        return;
    }
    const int64_t row = ((t->image * d->out[DEPTH] + t->z) * d->out[HEIGHT] + y) * d->out[WIDTH];
    a.y = (uint8_t *)c->a->y + row * p->d.y_pitch + first;
    p->by_quads(&a);
}

static void task(void *arg, size_t index, int worker)
{
    sn_q8_call *c = arg;
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    const size_t parts = (size_t)p->row_parts, blocks = (size_t)p->w.blocks;
    const size_t part = index % parts, block = index / parts % blocks;
    const int64_t place = (int64_t)(index / parts / blocks);
    void *memory = c->a->workspace;
    q8_ring t = {.c = c,
                 .outside = sn_piece_at(memory, p->zeros),
                 .quads = sn_pieces_at(memory, p->quads, (size_t)worker),
                 .at = sn_pieces_at(memory, p->offsets, (size_t)worker),
                 .image = place / d->out[DEPTH],
                 .z = place % d->out[DEPTH],
                 .block = (int64_t)block,
                 .line_bytes = p->pairs * SN_QUAD_BYTES,
                 .made = INT64_MIN / 2};
    t.channels = sn_min(SN_QUAD_CHANNELS, d->c - t.block * SN_QUAD_CHANNELS);
    t.x = (const uint8_t *)c->a->x + t.image * p->in_pixels * p->d.x_pitch +
          t.block * SN_QUAD_CHANNELS;
    const size_t y0 = sn_split((size_t)d->out[HEIGHT], parts, part);
    const size_t y1 = sn_split((size_t)d->out[HEIGHT], parts, part + 1);
    for (size_t y = y0; y < y1 && !sn_q8_cancelled(c); y++)
        compute_line(&t, (int64_t)y, worker);
}

void sn_q8_by_quads(sn_q8_call *c, sn_pool *pool)
{
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    memset(sn_piece_at(c->a->workspace, p->zeros), c->outside, SN_QUAD_CHANNELS);
    c->small_factors = c->plain_bytes && p->d.y_pitch == d->oc && !c->a->sum && !c->wide;
    for (int64_t o = 0; o < d->oc; o++)
        c->small_factors = c->small_factors && !(fabsf(c->factor[o]) >= 1.0f);
    const int64_t tasks = sn_max(d->n, 0) * d->out[DEPTH] * p->w.blocks * p->row_parts;
    sn_pool_run(pool, (size_t)tasks, task, c);
}
