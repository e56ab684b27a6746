/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_images.h. First every block of output channels becomes a block of steps in halves, with
 * what undoes its scale behind them; packed weights, [channel][16 output channels], have the order
 * of sn_halves_tile. A task is then a part of the rows times a range of chunks, a few blocks of
 * output channels each. It copies the rows as steps, [slab of 32 channels][rows][32], high parts
 * before low ones. Every image has a scale of its own, which is found beside the weights. */
#include "compute/conv_images.h"

#include <string.h>

#include "compute/conv_tiles.h"
#include "compute/tiles.h"

enum {
    ROWS = SN_ROWS_GROUP,
    BLOCKS = 4,
    BLOCK = SN_ROWS_TILE,
    HALVES_STEP = 2 * SN_ROWS_WEIGHTS,
    TAIL_BYTES = BLOCK * sizeof(float),
    COPY_BYTES = 256 << 10,
    MOST_PIECES = 4 /* of the last tasks */
};

static int64_t pixels_of(const sn_conv_desc *d)
{
    return sn_count(d->out[0], d->out[1], d->out[2], 1);
}

bool sn_conv_images_pay(const sn_conv_desc *d)
{
    enum { FEWEST_ROWS = 128 }; /* that pay for splitting the weights */
    const int64_t w[2] = {d->oc, d->c}, rows = sn_count(pixels_of(d), d->n, 1, 1);
    if (d->n < 2 || d->groups != 1 || !d->packed || d->tiles || d->sparse || d->x_half ||
        d->y_half || d->z_half || d->w_dtype != SONDE_DTYPE_F32 || d->in_block != BLOCK ||
        d->out_block != BLOCK || rows < FEWEST_ROWS)
        return false;
    for (int i = 0; i < 3; i++)
        if (d->kernel[i] != 1 || d->stride[i] != 1 || d->pad[i] != 0 || d->in[i] != d->out[i])
            return false;
    return sn_conv_halves_pay(rows, w, 2, false);
}

bool sn_conv_images_plan(sn_conv_plan *p, size_t l2_bytes)
{
    const sn_conv_desc *d = &p->d;
    sn_conv_images *t = &p->images;
    const size_t n = (size_t)p->threads;
    const int64_t want = p->threads > 1 ? 4 * (int64_t)p->threads : 1;
    t->pixels = pixels_of(d);
    t->rows = sn_count(d->n, t->pixels, 1, 1);
    t->in_blocks = sn_ceil_div(d->c, BLOCK);
    t->out_blocks = sn_ceil_div(d->oc, BLOCK);
    t->slabs = sn_ceil_div(t->in_blocks, 2);
    t->block_bytes = sn_count(t->slabs, HALVES_STEP, 1, 1);
    t->block_bytes = t->block_bytes < 0 ? -1 : t->block_bytes + TAIL_BYTES;
    const int64_t weights = sn_count(t->block_bytes, t->out_blocks, 1, 1);
    if (t->rows < 0 || weights < 0 || weights >= PTRDIFF_MAX / 2)
        return false;
    /* Weights that the cache cannot hold come once for every part: then parts are larger. */
    const bool held = weights <= (int64_t)(l2_bytes / 4);
    const int64_t room = held ? COPY_BYTES : sn_max((int64_t)(l2_bytes / 2), COPY_BYTES);
    const int64_t most = sn_max(room / (2 * SN_ROWS_STEP * t->slabs) / ROWS, 1) * ROWS;
    const int64_t even = sn_ceil_div(sn_ceil_div(t->rows, held ? want : 1), ROWS) * ROWS;
    t->part_rows = sn_min(most, even);
    t->parts = sn_ceil_div(t->rows, t->part_rows);
    t->chunks = sn_ceil_div(t->out_blocks, BLOCKS);
    t->chunk_parts =
        t->parts < want ? sn_unit_parts(t->chunks, sn_ceil_div(want, t->parts), p->threads) : 1;
    t->ending = sn_ending_of(t->parts * t->chunk_parts, p->threads,
                             sn_min(sn_ceil_div(t->chunks, t->chunk_parts), MOST_PIECES));
    t->slab_bytes = t->part_rows * SN_ROWS_STEP + SN_ROWS_STEP; /* not on the same cache lines */
    const int64_t copy = sn_count(t->slab_bytes, t->slabs, 2, 1);
    const int64_t steps = sn_count(t->slabs, SN_SPLIT_STEPS, 2, (int64_t)sizeof(ptrdiff_t));
    if (copy < 0 || steps < 0)
        return false;
    t->tops = sn_carve(&p->workspace, d->n, sizeof(float));
    t->weights = sn_carve_bytes(&p->workspace, (size_t)weights);
    p->copies = sn_carve_each(&p->workspace, n, (size_t)copy);
    p->sums = sn_carve_each(&p->workspace, n, (ROWS + 1) * BLOCKS * BLOCK * sizeof(float));
    p->offsets = sn_carve_each(&p->workspace, n, (size_t)steps);
    t->back = sn_carve_each(&p->workspace, n, (size_t)t->part_rows * sizeof(float));
    p->held = sn_carve_each(&p->workspace, n, sizeof(int64_t));
    return true;
}

/* ------------------------------------------------------------------ weights */
static void find_top(const sn_conv_call *c, size_t image)
{
    const sn_conv_images *t = &c->p->images;
    const int64_t each = t->in_blocks * t->pixels * BLOCK;
    float *top = sn_piece_at(c->workspace, t->tops);
    top[image] = c->p->k->f32_rowabs(c->x + (int64_t)image * each, (size_t)each);
}

/* A block of weights, or behind them all, the largest number of an image. */
static void prepare_task(void *arg, size_t block, int worker)
{
    const sn_conv_call *c = arg;
    const sn_conv_plan *p = c->p;
    const sn_conv_images *t = &p->images;
    if (block >= (size_t)t->out_blocks) {
        find_top(c, block - (size_t)t->out_blocks);
        return;
    }
    const int64_t channels = t->in_blocks * BLOCK, each = channels * BLOCK;
    const float *from = (const float *)c->w + (int64_t)block * each;
    uint8_t *to =
        (uint8_t *)sn_piece_at(c->workspace, t->weights) + (int64_t)block * t->block_bytes;
    float back;
    const float scale = sn_halves_scale(p->k->f32_rowabs(from, (size_t)each), &back);
    (void)worker;
    for (int64_t at = 0; at < channels; at += SN_STEP_HALVES, to += HALVES_STEP) {
        const float *numbers = from + at * BLOCK;
        float last[SN_TILE_FLOATS * 2];
        if (channels - at < SN_STEP_HALVES) {
            memset(last, 0, sizeof last);
            memcpy(last, numbers, (size_t)((channels - at) * BLOCK) * sizeof *last);
            numbers = last;
        }
        sn_halves_tile(p->k, to, numbers, scale);
    }
    for (int l = 0; l < BLOCK; l++)
        memcpy(to + (size_t)l * sizeof back, &back, sizeof back);
}

/* ------------------------------------------------------------------ a task */
typedef struct images_task {
    const sn_conv_call *c;
    int64_t from, rows; /* of all rows */
    uint8_t *x;
    float *sums, *start, *back;
    ptrdiff_t *at, *w_at;
} images_task;

/* How many rows from row v on, of n at most, are of one image; which, and from which pixel. */
static int64_t same_image(const sn_conv_images *t, int64_t v, int64_t n, int64_t *image,
                          int64_t *pixel)
{
    *image = v / t->pixels;
    *pixel = v % t->pixels;
    return sn_min(n, t->pixels - *pixel);
}

static void copy_rows(const images_task *s)
{
    const sn_conv_plan *p = s->c->p;
    const sn_conv_images *t = &p->images;
    const int64_t low = t->slabs * t->slab_bytes, plane = t->pixels * BLOCK;
    int64_t image, pixel, n;
    for (int64_t v = 0; v < s->rows; v += n) {
        n = same_image(t, s->from + v, s->rows - v, &image, &pixel);
        const float *x = s->c->x + image * t->in_blocks * plane + pixel * BLOCK;
        const float *tops = sn_piece_at(s->c->workspace, t->tops);
        float back;
        const float scale = sn_halves_scale(tops[image], &back);
        for (int64_t i = 0; i < n; i++)
            s->back[v + i] = back;
        for (int64_t b = 0; b < t->in_blocks; b += 2)
            sn_halves_pixels(p->k, s->x + b / 2 * t->slab_bytes + v * SN_ROWS_STEP, low,
                             x + b * plane, b + 1 < t->in_blocks ? x + (b + 1) * plane : NULL, n,
                             scale);
    }
}

/* Sums of rows v … v+n-1 of the part to where they belong. */
static void store_rows(const images_task *s, int64_t first, int64_t blocks, int64_t v, int64_t n)
{
    const sn_conv_call *c = s->c;
    const sn_conv_plan *p = c->p;
    const sn_conv_images *t = &p->images;
    int64_t image, pixel, there;
    for (int64_t done = 0; done < n; done += there) {
        there = same_image(t, s->from + v + done, n - done, &image, &pixel);
        for (int64_t q = 0; q < blocks; q++) {
            const int64_t block = first + q;
            const int64_t to = ((image * t->out_blocks + block) * t->pixels + pixel) * BLOCK;
            const float *sums = s->sums + (q * ROWS + done) * BLOCK;
            p->k->f32_add_clip(c->y + to, sums, c->z ? c->z + to : NULL, (size_t)(there * BLOCK),
                               p->lo, p->hi);
            if (p->post || p->clear)
                sn_conv_finish(p, c->y + to, there, p->d.oc - block * BLOCK);
        }
    }
}

/* Rows of the part, times blocks first … first+blocks-1. */
static void compute(const images_task *s, int64_t first, int64_t blocks)
{
    const sn_conv_call *c = s->c;
    const sn_conv_plan *p = c->p;
    const sn_conv_images *t = &p->images;
    static const float zeros[BLOCKS * BLOCK];
    const uint8_t *w =
        (const uint8_t *)sn_piece_at(c->workspace, t->weights) + first * t->block_bytes;
    memset(s->start, 0, BLOCKS * BLOCK * sizeof(float));
    if (c->bias)
        memcpy(s->start, c->bias + first * BLOCK,
               (size_t)sn_min(blocks * BLOCK, p->d.oc - first * BLOCK) * sizeof(float));
    sn_tile_rows tiles = {.at = s->at,
                          .w_at = s->w_at,
                          .w = w,
                          .start = zeros,
                          .y = s->sums,
                          .blocks = (size_t)blocks,
                          .steps = (size_t)(t->slabs * SN_SPLIT_STEPS),
                          .x_row = SN_ROWS_STEP,
                          .w_q = (ptrdiff_t)t->block_bytes,
                          .y_row = BLOCK,
                          .y_q = ROWS * BLOCK,
                          .again = s->rows > SN_AGAIN_ROWS};
    for (int64_t v = 0; v < s->rows; v += ROWS) {
        const int64_t rows = sn_min(ROWS, s->rows - v);
        tiles.rows = (size_t)rows;
        tiles.x = s->x + v * SN_ROWS_STEP;
        p->k->f16_rows(&tiles);
        for (int64_t q = 0; q < blocks; q++) {
            const uint8_t *tail = w + (q + 1) * t->block_bytes - TAIL_BYTES;
            float *sums = s->sums + q * ROWS * BLOCK;
            p->k->f32_rescale(&(sn_f32_rescale){.y = sums,
                                                .x = sums,
                                                .by_row = s->back + v,
                                                .by = (const float *)(const void *)tail,
                                                .start = s->start + q * BLOCK,
                                                .rows = (size_t)rows,
                                                .n = BLOCK,
                                                .y_row = BLOCK,
                                                .x_row = BLOCK,
                                                .row = 1});
        }
        store_rows(s, first, blocks, v, rows);
    }
}

static void task(void *arg, size_t index, int worker)
{
    const sn_conv_call *c = arg;
    const sn_conv_plan *p = c->p;
    const sn_conv_images *t = &p->images;
    const size_t i = (size_t)worker, chunk_parts = (size_t)t->chunk_parts;
    size_t piece, pieces;
    index = sn_ending_task(&t->ending, index, &piece, &pieces);
    const size_t cp = index % chunk_parts, first = sn_split((size_t)t->chunks, chunk_parts, cp);
    const size_t n = sn_split((size_t)t->chunks, chunk_parts, cp + 1) - first;
    const int64_t part = (int64_t)(index / chunk_parts);
    int64_t *held = sn_pieces_at(c->workspace, p->held, i);
    images_task s = {.c = c,
                     .from = part * t->part_rows,
                     .x = sn_pieces_at(c->workspace, p->copies, i),
                     .sums = sn_pieces_at(c->workspace, p->sums, i),
                     .back = sn_pieces_at(c->workspace, t->back, i),
                     .at = sn_pieces_at(c->workspace, p->offsets, i)};
    s.start = s.sums + ROWS * BLOCKS * BLOCK;
    s.rows = sn_min(t->part_rows, t->rows - s.from);
    s.w_at = s.at + t->slabs * SN_SPLIT_STEPS;
    for (int64_t k = 0; k < t->slabs * SN_SPLIT_STEPS; k++) {
        const int64_t slab = k / SN_SPLIT_STEPS;
        s.at[k] = (slab + (sn_halves_low_x(k) ? t->slabs : 0)) * t->slab_bytes;
        s.w_at[k] = (2 * slab + sn_halves_low_w(k)) * SN_ROWS_WEIGHTS;
    }
    if (*held != part)
        copy_rows(&s);
    *held = part;
    const int64_t end = (int64_t)(first + sn_split(n, pieces, piece + 1));
    for (int64_t k = (int64_t)(first + sn_split(n, pieces, piece)); k < end; k++)
        compute(&s, k * BLOCKS, sn_min(BLOCKS, t->out_blocks - k * BLOCKS));
}

void sn_conv_images_run(const sn_conv_call *c, sn_pool *pool)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_images *t = &p->images;
    const sn_thread_hook hook = sn_tiles_hook(p->k);
    for (int i = 0; i < p->threads; i++) {
        int64_t *held = sn_pieces_at(c->workspace, p->held, (size_t)i);
        *held = -1;
    }
    sn_pool_run(pool, (size_t)(t->out_blocks + p->d.n), prepare_task, (void *)(uintptr_t)c);
    sn_pool_run_hooked(pool, sn_ending_count(&t->ending), task, (void *)(uintptr_t)c, &hook);
}
