/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes by pointers: a tile is a few rows of the result times a few blocks of output
 * channels, with a pointer to every row of x that its taps read. */
#include "compute/q8_ways.h"

#include <string.h>

#include "compute/parallel.h"

typedef struct q8_tile_at {
    int64_t image, row, n; /* rows row … row+n-1 of an image */
    const uint8_t **pointers;
    int32_t *sums;
    int64_t *wide;
    float *factors;
} q8_tile_at;

/* Lines of the copy (q8.h): what is outside, the pixels of a line, what is outside. */
static void copy_lines(void *arg, size_t lo, size_t hi)
{
    const sn_q8_call *c = arg;
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    const size_t pixel = (size_t)d->c, before = (size_t)d->pad[2] * pixel;
    const size_t there = (size_t)d->in[2] * pixel;
    uint8_t *to = (uint8_t *)sn_piece_at(c->a->workspace, p->copy) + lo * (size_t)p->line;
    for (size_t i = lo; i < hi; i++, to += p->line) {
        const uint8_t *from = (const uint8_t *)c->a->x + (int64_t)i * d->in[2] * p->d.x_pitch;
        memset(to, c->outside, before);
        memset(to + before + there, c->outside, (size_t)p->line - before - there);
        if (p->d.x_pitch == d->c)
            memcpy(to + before, from, there);
        for (size_t k = 0; k < there && p->d.x_pitch != d->c; k += pixel, from += p->d.x_pitch)
            memcpy(to + before + k, from, pixel);
    }
}

/* Of every row of the kernel, where its first tap reads the copy. */
static void point_at_runs(const sn_q8_call *c, const q8_tile_at *t)
{
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    const uint8_t *zeros = sn_piece_at(c->a->workspace, p->zeros);
    const uint8_t *x = (const uint8_t *)sn_piece_at(c->a->workspace, p->copy) +
                       t->image * d->in[0] * d->in[1] * p->line;
    for (int64_t r = 0; r < t->n; r++) {
        const int64_t row = t->row + r, rest = row / d->out[2];
        const int64_t at = row % d->out[2] * d->stride[2] * d->c;
        const int64_t y0 = rest % d->out[1] * d->stride[1] - d->pad[1];
        const int64_t z0 = rest / d->out[1] * d->stride[0] - d->pad[0];
        const uint8_t **to = t->pointers + r;
        for (int64_t k = 0; k < p->w.runs; k++, to += t->n) {
            const int64_t iz = z0 + k / d->kernel[1] * d->dilation[0];
            const int64_t iy = y0 + k % d->kernel[1] * d->dilation[1];
            const bool inside = iz >= 0 && iz < d->in[0] && iy >= 0 && iy < d->in[1];
            *to = inside ? x + (iz * d->in[1] + iy) * p->line + at : zeros;
        }
    }
}

static void point_at_rows(const sn_q8_call *c, const q8_tile_at *t)
{
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    const int64_t pitch = p->d.x_pitch;
    const uint8_t *zeros = sn_piece_at(c->a->workspace, p->zeros);
    const int64_t image = p->d.product ? sn_q8_matrix_of(&p->d, p->d.x_batch, t->image) : t->image;
    const uint8_t *x = (const uint8_t *)c->a->x + image * p->in_pixels * pitch;
    if (p->w.merged) {
        point_at_runs(c, t);
        return;
    }
    if (p->flat) {
        for (int64_t r = 0; r < t->n; r++)
            t->pointers[r] = x + (t->row + r) * pitch;
        return;
    }
    for (int64_t r = 0; r < t->n; r++) {
        const int64_t row = t->row + r, ox = row % d->out[2], rest = row / d->out[2];
        const int64_t x0 = ox * d->stride[2] - d->pad[2];
        const int64_t y0 = rest % d->out[1] * d->stride[1] - d->pad[1];
        const int64_t z0 = rest / d->out[1] * d->stride[0] - d->pad[0];
        const uint8_t **to = t->pointers + r;
        for (int64_t i = 0; i < d->kernel[0]; i++)
            for (int64_t j = 0; j < d->kernel[1]; j++) {
                const int64_t iz = z0 + i * d->dilation[0], iy = y0 + j * d->dilation[1];
                const bool inside = iz >= 0 && iz < d->in[0] && iy >= 0 && iy < d->in[1];
                const uint8_t *line = inside ? x + (iz * d->in[1] + iy) * d->in[2] * pitch : zeros;
                for (int64_t k = 0; k < d->kernel[2]; k++, to += t->n) {
                    const int64_t ix = x0 + k * d->dilation[2];
                    *to = inside && ix >= 0 && ix < d->in[2] ? line + ix * pitch : zeros;
                }
            }
    }
}

/* Numbers from … from+n-1 of taps tap … tap+taps-1, all where there are several; of a depthwise
 * convolution, all channels of one block. */
static void sum_part(const sn_q8_call *c, const q8_tile_at *t, sn_q8_tile tile, int64_t tap,
                     int64_t taps, int64_t from, int64_t n)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_weights *w = &p->w;
    tile.x += tap * t->n;
    tile.x_at += (size_t)from;
    tile.w += ((p->depthwise ? tap : tap * w->run) + from) * w->block;
    tile.taps = (size_t)taps;
    tile.channels = (size_t)n;
    p->tile(&tile);
    sn_q8_wide_join(t->wide + (tile.y - t->sums), tile.y, tile.start, tile.y_row, t->n,
                    p->depthwise ? n : (int64_t)tile.blocks * w->block, tap == 0 && from == 0);
}

/* All of a tile in parts that int32 holds. */
static void sum_parts(const sn_q8_call *c, const q8_tile_at *t, const sn_q8_tile *tile)
{
    const sn_q8_weights *w = &c->p->w;
    const int64_t all = (int64_t)tile->taps, channels = (int64_t)tile->channels;
    if (c->p->depthwise) {
        sn_q8_tile one = *tile;
        one.blocks = 1;
        for (int64_t b = 0; b < (int64_t)tile->blocks; b++) {
            for (int64_t tap = 0; tap < all; tap += SN_Q8_PART)
                sum_part(c, t, one, tap, sn_min(SN_Q8_PART, all - tap), 0,
                         sn_min(w->block, channels - b * w->block));
            one.x_at += w->block;
            one.w += w->block_bytes;
            one.start += w->block;
            one.y += w->block;
        }
        return;
    }
    const int64_t step = sn_max(SN_Q8_PART / channels, 1);
    for (int64_t tap = 0; tap < all; tap += step)
        for (int64_t from = 0; from < channels; from += SN_Q8_PART)
            sum_part(c, t, *tile, tap, sn_min(step, all - tap), from,
                     sn_min(SN_Q8_PART, channels - from));
}

/* Rows of a tile times chunk `unit` (of all groups, or of the batch's matrix). */
static void compute_tile(const sn_q8_call *c, const q8_tile_at *t, int64_t unit)
{
    const sn_q8_plan *p = c->p;
    const sn_q8_weights *w = &p->w;
    const int64_t block = w->block, q = unit % p->chunks * p->chunk;
    const int64_t group =
        p->d.product ? sn_q8_matrix_of(&p->d, p->d.w_batch, t->image) : unit / p->chunks;
    const int64_t blocks = sn_min(p->chunk, w->blocks - q), columns = blocks * block;
    const int64_t first = q * block, n = sn_min(w->out - first, columns);
    const int64_t at = group * w->blocks + q; /* block, of all */
    const int64_t x_at = p->depthwise ? first : p->d.product ? 0 : group * w->in;
    if (blocks <= 0)
        return;
    const sn_q8_tile tile = {.x = t->pointers,
                             .w = (const int8_t *)c->weights + at * w->block_bytes,
                             .start = c->start + at * block,
                             .y = t->sums,
                             .x_at = (size_t)x_at,
                             .rows = (size_t)t->n,
                             .taps = (size_t)(w->merged ? w->runs : w->taps),
                             .channels = (size_t)(p->depthwise ? n
                                                  : w->merged  ? w->run
                                                               : w->in),
                             .w_q = w->block_bytes,
                             .y_row = columns,
                             .blocks = (unsigned)blocks,
                             .block = w->block,
                             .kr = w->kr,
                             .flip = p->flips ? 0x80 : 0};
    const bool parts = c->wide && p->parted;
    if (parts)
        sum_parts(c, t, &tile);
    else if (!p->empty)
        p->tile(&tile);
    for (int64_t r = 0; p->empty && r < t->n; r++)
        memcpy(t->sums + r * columns, tile.start, (size_t)columns * sizeof *t->sums);
    const sn_q8_sums s = {.image = t->image,
                          .row = t->row,
                          .rows = t->n,
                          .group = group,
                          .first = first,
                          .n = n,
                          .sums = t->sums,
                          .sums_row = columns,
                          .wide = parts ? t->wide : NULL,
                          .factors = t->factors,
                          .taps = t->pointers,
                          .taps_step = t->n,
                          .along = w->merged ? w->taps / w->runs - 1 : 0,
                          .x_at = x_at};
    sn_q8_finish(c, &s);
}

static void task(void *arg, size_t index, int worker)
{
    sn_q8_call *c = arg;
    const sn_q8_plan *p = c->p;
    const size_t tiles = (size_t)sn_ceil_div(p->out_pixels, p->rows);
    const size_t units = (size_t)((p->d.product ? 1 : p->w.groups) * p->chunks);
    const size_t chunk_parts = (size_t)p->chunk_parts, row_parts = (size_t)p->row_parts;
    const size_t cp = index % chunk_parts, rp = index / chunk_parts % row_parts;
    const size_t u0 = sn_split(units, chunk_parts, cp), u1 = sn_split(units, chunk_parts, cp + 1);
    const size_t t0 = sn_split(tiles, row_parts, rp), t1 = sn_split(tiles, row_parts, rp + 1);
    q8_tile_at t = {.image = (int64_t)(index / chunk_parts / row_parts),
                    .pointers = sn_pieces_at(c->a->workspace, p->pointers, (size_t)worker),
                    .sums = sn_pieces_at(c->a->workspace, p->sums, (size_t)worker),
                    .wide = sn_pieces_at(c->a->workspace, p->wide, (size_t)worker),
                    .factors = sn_pieces_at(c->a->workspace, p->factors, (size_t)worker)};
    /* Weights that do not stay in the cache go through it once, all rows meet a chunk of them; else
     * rows do. */
    const size_t outer = p->chunks_outer ? u1 - u0 : 1;
    for (size_t k = 0; k < outer; k++)
        for (size_t i = t0; i < t1; i++) {
            if (sn_q8_cancelled(c))
                return;
            t.row = (int64_t)i * p->rows;
            t.n = sn_min(p->rows, p->out_pixels - t.row);
            point_at_rows(c, &t);
            for (size_t u = u0; u < u1; u++)
                if (!p->chunks_outer || u == u0 + k)
                    compute_tile(c, &t, (int64_t)u);
        }
}

void sn_q8_by_pointers(sn_q8_call *c, sn_pool *pool)
{
    const sn_q8_plan *p = c->p;
    const sn_conv_desc *d = &p->d.conv;
    memset(sn_piece_at(c->a->workspace, p->zeros), c->outside,
           (size_t)(p->w.merged ? p->w.run : d->c));
    if (p->w.merged)
        sn_parallel_range(pool, (size_t)(sn_max(d->n, 0) * d->in[0] * d->in[1]), (size_t)p->line,
                          copy_lines, c);
    sn_pool_run(pool, (size_t)(sn_max(p->d.conv.n, 0) * p->row_parts * p->chunk_parts), task, c);
}
