/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's way to convolve 3×3 at stride 1, on blocked tensors: input patches are transformed to
 * n×n positions (n = m + 2), each position is a matrix product over channels, and the products are
 * transformed back to m×m pixels. That is 4 (m = 4) or 2.25 (m = 2) times fewer multiplications
 * than the direct way.
 *
 * An item is a batch of patches, of one group and of as many images as there are. Its transformed
 * input stays in the second-level cache while all output channels pass over it, a chunk of blocks
 * at a time. The weights come as the direct way has them: those of a chunk are transformed a few
 * input blocks at a time, used at once by all patches of the item, and forgotten. They would be 4
 * (m = 4) or 1.78 times as large, and to fetch them would take longer than to compute them.
 *
 * Of a volume, slices are images: each tap of depth is one more input block for every one there is,
 * transformed from its own slice. With dilation every d-th row and column of an image is an image
 * of its own, which is convolved without: patches are those of all d×d of them.
 *
 * Most items belong to one thread. Those that are left over when every thread has had as many as
 * the others are worked on by all: first the input blocks, then the chunks.
 *
 * What is not finite in a patch would be in all of its results: the transform back looks for it,
 * and then each pixel is computed from its own window (conv_exact.h).
 *
 * Accuracy: the transforms of m = 4 multiply by up to 100 before they cancel, those of m = 2 by up
 * to 4, and all pixels of a patch take part in each of its results. The error stays below 4e-6 (m =
 * 4) or 1e-6 (m = 2) of the largest sum of |x||w| in the image; tests/compute/test_conv.c holds it
 * to that. */
#include <math.h>
#include <string.h>

#include "compute/conv_exact.h"
#include "compute/split.h"
#include "compute/tile_cost.h"

typedef struct item {
    int64_t group, from, to; /* patches, counted over all images */
    bool last;               /* of its group: the next one has other weights */
} item;

static item item_at(const sn_conv_plan *p, size_t index)
{
    const int64_t batch = (int64_t)index % p->segs;
    const int64_t all =
        p->d.n * p->d.out[0] * p->d.dilation[1] * p->d.dilation[2] * p->rows * p->cols;
    return (item){.group = (int64_t)index / p->segs,
                  .from = batch * p->seg,
                  .to = sn_min((batch + 1) * p->seg, all),
                  .last = batch + 1 == p->segs};
}

/* Where a patch is. */
typedef struct place {
    int64_t image, slice, row, col; /* of the output, in pixels */
} place;

static place place_of(const sn_conv_plan *p, int64_t patch)
{
    const int64_t m = p->d.winograd, each = p->rows * p->cols, i = patch % each;
    const int64_t down = p->d.dilation[1], right = p->d.dilation[2], image = patch / each;
    return (place){.image = image / (down * right) / p->d.out[0],
                   .slice = image / (down * right) % p->d.out[0],
                   .row = image / right % down + i / p->cols * m * down,
                   .col = image % right + i % p->cols * m * right};
}

/* How many of `size` rows or columns lie before `at`, or from it on, d apart and at most n. */
static int before(int64_t at, int64_t d, int64_t n)
{
    return at < 0 ? (int)sn_min(sn_ceil_div(-at, d), n) : 0;
}
static int until(int64_t at, int64_t size, int64_t d, int64_t n)
{
    return at < size ? (int)sn_min(sn_ceil_div(size - at, d), n) : 0;
}

/* A thread's space: transformed input, transformed weights, products. The first is laid out as
 * [input][position][patch][block], weights as [out block][input][position][channel][block]
 * and products as [out block][position][patch][block]. */
typedef struct space {
    float *input, *filters, *products;
    float *wide; /* a filter before it is transformed, where weights come narrower than f32 */
} space;

static space space_of(const sn_conv_call *c, int worker)
{
    const sn_conv_plan *p = c->p;
    const int64_t n = p->d.winograd + 2;
    float *at = sn_conv_panel(c, worker);
    float *products = at + p->inputs * n * n * p->patch_pos;
    return (space){at, products + p->chunk_blocks * n * n * p->patch_pos, products,
                   sn_conv_wide(c, worker)};
}

/* One input, a block of channels at a tap of depth, all patches of an item. */
static void transform_in(const sn_conv_call *c, const item *it, int64_t input, float *v)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const int64_t n = d->winograd + 2, block = p->b.block, pixels = d->in[1] * d->in[2];
    sn_f32_wino_in_fn *fn = n == 6 ? p->k->f32_wino4_in : p->k->f32_wino2_in;
    const int64_t down = d->dilation[1], right = d->dilation[2];
    sn_f32_wino_in t = {.block = p->b.block,
                        .x_row = down * d->in[2] * block,
                        .x_pixel = right * block,
                        .v_pos = p->patch_pos};
    const int64_t in_block = input / d->kernel[0], tap = input % d->kernel[0];
    t.v = v + input * n * n * p->patch_pos;
    for (int64_t i = it->from; i < it->to; i++, t.v += block) {
        const place at = place_of(p, i);
        const int64_t row = at.row - d->pad[1], col = at.col - d->pad[2];
        const int64_t plane = (at.image * p->b.groups + it->group) * p->b.in_blocks + in_block;
        const int64_t slice = at.slice * d->stride[0] - d->pad[0] + tap * d->dilation[0];
        const bool inside = slice >= 0 && slice < d->in[0];
        t.row_from = before(row, down, n);
        t.row_to = inside ? until(row, d->in[1], down, n) : 0;
        t.col_from = before(col, right, n);
        t.col_to = until(col, d->in[2], right, n);
        t.x = c->x + ((plane * d->in[0] + slice) * pixels + row * d->in[2] + col) * block;
        fn(&t);
    }
}

/* What the kernel leaves to do on the pixels of a patch. */
static void finish(const sn_conv_plan *p, const sn_f32_wino_out *t, int64_t lanes)
{
    const int run = p->d.dilation[2] == 1 ? t->cols : 1; /* pixels side by side */
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < t->cols; j += run)
            sn_conv_finish(p, t->y + i * t->y_row + j * t->y_pixel, run, lanes);
}

/* A patch with something in it that is not finite, which would be in all of its pixels: each of
 * them from its own window. `out_block` is of the group. */
static void exact_patch(const sn_conv_call *c, const place *to, int64_t group, int64_t out_block,
                        const sn_f32_wino_out *t, float *wide)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_blocks *b = &p->b;
    const int64_t block = b->block, tap = block * block, row = d->in[2] * block;
    const int64_t w_block = d->kernel[0] * 9 * tap, slice = d->in[1] * row;
    const int64_t first = out_block * block, plane = d->in[0] * slice;
    const sn_conv_window v = {.x = c->x + (to->image * b->groups + group) * b->in_blocks * plane,
                              .x_block = plane,
                              .x_slice = slice,
                              .x_row = row,
                              .w_at = (group * b->out_blocks + out_block) * b->in_blocks * w_block,
                              .w_block = w_block,
                              .w_tap = {9 * tap, 3 * tap, tap},
                              .first = first,
                              .lanes = sn_min(block, b->out - first),
                              .channels = b->in,
                              .room = wide};
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < t->cols; j++) {
            float sums[16];
            const int64_t at[3] = {to->slice, to->row + i * d->dilation[1],
                                   to->col + j * d->dilation[2]};
            const ptrdiff_t pixel = i * t->y_row + j * t->y_pixel;
            sn_conv_exact(c, &v, at, sums);
            sn_conv_exact_store(p, sums, t->bias, t->z ? t->z + pixel : NULL, t->y + pixel);
        }
}

/* Products of output blocks from b0 on, back to pixels. */
static void transform_out(const sn_conv_call *c, const item *it, int64_t b0, int64_t blocks,
                          const space *s)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const int64_t m = d->winograd, n = m + 2, block = p->b.block, pixels = d->out[1] * d->out[2];
    const int64_t lanes = sn_min(p->b.out - b0 * block, blocks * block);
    const int64_t down = d->dilation[1], right = d->dilation[2];
    float bias[SN_TILE_MAX_BLOCKS * 16] = {0};
    if (c->bias)
        memcpy(bias, c->bias + it->group * p->b.out + b0 * block, (size_t)lanes * sizeof(float));
    sn_f32_wino_out_fn *fn = m == 4 ? p->k->f32_wino4_out : p->k->f32_wino2_out;
    sn_f32_wino_out t = {.block = p->b.block,
                         .m_pos = p->patch_pos,
                         .y_row = down * d->out[2] * block,
                         .y_pixel = right * block,
                         .lo = p->lo,
                         .hi = p->hi};
    for (int64_t q = 0; q < blocks; q++) {
        t.m = s->products + q * n * n * p->patch_pos;
        t.bias = bias + q * block;
        for (int64_t i = it->from; i < it->to; i++, t.m += block) {
            const place to = place_of(p, i);
            const int64_t plane = (to.image * p->b.groups + it->group) * p->b.out_blocks + b0 + q;
            const int64_t at =
                ((plane * d->out[0] + to.slice) * pixels + to.row * d->out[2] + to.col) * block;
            t.z = c->z ? c->z + at : NULL;
            t.y = c->y + at;
            t.rows = until(to.row, d->out[1], down, m);
            t.cols = until(to.col, d->out[2], right, m);
            if (!fn(&t))
                exact_patch(c, &to, it->group, b0 + q, &t, s->wide);
            if (p->post || p->clear)
                finish(p, &t, lanes - q * block);
        }
    }
}

/* All positions of a few inputs, t->ic_blocks from i0 on. `w_next` (NULL: unknown): weights
 * that are needed next, of as many blocks; every position fetches some of them. */
static void multiply(const sn_conv_plan *p, sn_f32_tile *t, const space *s, int64_t i0,
                     const float *w_next, int64_t w_q)
{
    const int64_t n = p->d.winograd + 2, block = p->b.block, parts = (int64_t)t->ic_blocks;
    const int64_t wanted = parts * 9 * block * block, fetches = p->tiles * parts * block * 16;
    for (int64_t i = 0; i < n * n; i++) {
        const int64_t q = i * fetches / wanted;
        t->x = s->input + (i0 * n * n + i) * p->patch_pos;
        t->w = s->filters + i * (block * block + SN_WINO_GAP);
        t->y = s->products + i * p->patch_pos;
        t->z = i0 == 0 ? NULL : t->y;
        t->w_next = w_next && q < t->blocks ? w_next + q * w_q + i * fetches % wanted : NULL;
        p->tile(t);
    }
}

/* A chunk of output blocks, from transformed input to pixels. */
static void chunk(const sn_conv_call *c, const item *it, int64_t index, const space *s)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_blocks *b = &p->b;
    const int64_t block = b->block, n = p->d.winograd + 2;
    const int64_t b0 = index * b->out_blocks / p->chunks;
    const int64_t blocks = (index + 1) * b->out_blocks / p->chunks - b0;
    const int64_t w_block = 9 * block * block, w_q = p->inputs * w_block;
    const int64_t u_block = n * n * (block * block + SN_WINO_GAP);
    const int64_t w_at = (it->group * b->out_blocks + b0) * w_q;
    const float *w = p->wide_floats ? NULL : (const float *)c->w + w_at;
    sn_f32_wino_filter_fn *fn = n == 6 ? p->k->f32_wino4_filter : p->k->f32_wino2_filter;
    sn_f32_tile t = {.pixels = (size_t)(it->to - it->from),
                     .blocks = (unsigned)blocks,
                     .block = b->block,
                     .ic = (size_t)block,
                     .kh = 1,
                     .kw = 1,
                     .last_kw = 1,
                     .x_pixel = block,
                     .x_ic = 1,
                     .x_block = n * n * p->patch_pos,
                     .w_q = p->part * u_block,
                     .w_block = u_block,
                     .w_ic = block,
                     .y_pixel = block,
                     .y_q = n * n * p->patch_pos,
                     .z_pixel = block,
                     .z_q = n * n * p->patch_pos,
                     .x_next = p->patch_pos,
                     .lo = -INFINITY,
                     .hi = INFINITY};
    for (int64_t i = 0; i < p->inputs; i += p->part) {
        const int64_t next = sn_min(i + p->part, p->inputs);
        const bool last = next == p->inputs, more = index + 1 < p->chunks || it->last;
        for (int64_t q = 0; q < blocks; q++)
            for (int64_t k = i; k < next; k++)
                fn(s->filters + q * t.w_q + (k - i) * u_block,
                   sn_conv_weights(c, w_at + q * w_q + k * w_block, w_block, s->wide), b->block);
        t.ic_blocks = (size_t)(next - i);
        t.ic_last = (size_t)(last ? b->channels_last : block);
        const float *w_next = !w      ? NULL
                              : !last ? w + next * w_block
                              : more  ? w + blocks * w_q
                                      : NULL;
        multiply(p, &t, s, i, w_next, w_q);
    }
    transform_out(c, it, b0, blocks, s);
}

static void alone_task(void *call, size_t task, int worker)
{
    const sn_conv_call *c = call;
    const space s = space_of(c, worker);
    const item it = item_at(c->p, task);
    for (int64_t i = 0; i < c->p->inputs; i++)
        transform_in(c, &it, i, s.input);
    for (int64_t i = 0; i < c->p->chunks; i++)
        chunk(c, &it, i, &s);
}

/* An item of all threads: its input is in the space of the first. */
typedef struct together {
    const sn_conv_call *c;
    item it;
} together;

static void in_task(void *arg, size_t task, int worker)
{
    const together *g = arg;
    (void)worker;
    transform_in(g->c, &g->it, (int64_t)task, space_of(g->c, 0).input);
}

static void out_task(void *arg, size_t task, int worker)
{
    const together *g = arg;
    space s = space_of(g->c, worker);
    s.input = space_of(g->c, 0).input;
    chunk(g->c, &g->it, (int64_t)task, &s);
}

void sn_conv_winograd_run(sn_conv_call *c, sn_pool *pool)
{
    const sn_conv_plan *p = c->p;
    if (p->tasks > 0)
        sn_pool_run(pool, p->tasks, alone_task, c);
    for (size_t i = p->tasks; i < p->items; i++) {
        together g = {c, item_at(p, i)};
        sn_pool_run(pool, (size_t)p->inputs, in_task, &g);
        sn_pool_run(pool, (size_t)p->chunks, out_task, &g);
    }
}
