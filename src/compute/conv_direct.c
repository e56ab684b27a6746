/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution on blocked tensors: walks the items of a task and calls the kernel row by row.
 * Rows of taps outside of the image are left out; columns outside are left to the kernel for the
 * pixels at both ends of a run, or cut by calling it for the pixels that read the same taps. Where
 * each reads others (long kernels), rows lie in a copy with zeros at both ends (conv_runs.c). */
#include <math.h>
#include <string.h>

#include "compute/conv_exact.h"
#include "compute/conv_runs.h"
#include "compute/split.h"

void sn_conv_finish(const sn_conv_plan *p, float *y, int64_t pixels, int64_t lanes)
{
    const int64_t block = p->block;
    if (p->post && p->d.tiles && p->d.w_dtype == SONDE_DTYPE_BF16)
        sn_act_apply_rough(&p->d.act, p->k, y, (size_t)(pixels * block));
    else if (p->post)
        sn_act_apply(&p->d.act, p->k, y, (size_t)(pixels * block));
    for (int64_t i = 0; p->clear && lanes < block && i < pixels; i++)
        memset(y + i * block + lanes, 0, (size_t)(block - lanes) * sizeof(float));
}

typedef struct item {
    int64_t image, group, chunk, from, to; /* rows, or pixels of the one row */
    bool last_use; /* the next item has other weights, which lie behind this one's */
} item;

static item item_at(const sn_conv_plan *p, size_t index)
{
    const int64_t i = (int64_t)index;
    const int64_t inner = p->chunk_outer ? p->segs : p->chunks;
    const int64_t outer = p->chunk_outer ? p->chunks : p->segs;
    const int64_t a = i % inner, b = i / inner % outer, rest = i / inner / outer;
    const int64_t seg = p->chunk_outer ? a : b;
    const int64_t end = p->by_pixels ? p->cols : p->rows;
    return (item){.image = rest / p->b.groups,
                  .group = rest % p->b.groups,
                  .chunk = p->chunk_outer ? b : a,
                  .from = seg * p->seg,
                  .to = sn_min(end, (seg + 1) * p->seg),
                  .last_use =
                      p->chunk_outer ? seg + 1 == p->segs : p->chunks == 1 && b + 1 == p->segs};
}

/* Blocks of chunk c: spread evenly, so that no chunk is much smaller than the others. */
static int64_t chunk_start(const sn_conv_plan *p, int64_t c)
{
    return c * p->b.out_blocks / p->chunks;
}

/* Pixels [from, from + n) of a row whose first pixel has taps from `first`, the last up to `end`; x
 * is at tap (first row, column 0) of output column 0. */
static void call_tile(const sn_conv_plan *p, sn_f32_tile *t, const float *x, const float *z,
                      float *y, int64_t from, int64_t n, int64_t first, int64_t end)
{
    t->x = x + from * t->x_pixel;
    t->y = y + from * t->y_pixel;
    t->z = z ? z + from * t->z_pixel : NULL;
    t->pixels = (size_t)n;
    t->first_kw = (size_t)first;
    t->last_kw = (size_t)end;
    p->tile(t);
}

/* Pixels that miss taps, those together that read the same ones. */
static void border(const sn_conv_plan *p, sn_f32_tile *t, const float *x, const float *z, float *y,
                   int64_t from, int64_t to)
{
    const sn_f32_tile whole = *t;
    for (sn_conv_run_of r = {.from = from, .to = from}; r.to < to;) {
        r = sn_conv_next_run(p, r.to, to);
        t->kw = (size_t)(r.end - r.first);
        t->w = whole.w + r.first * t->w_kw;
        call_tile(p, t, x + r.first * t->x_kw, z, y, r.from, r.to - r.from, 0, r.end - r.first);
    }
    t->kw = whole.kw;
    t->w = whole.w;
}

/* Pixels [from, to) of a row. */
static void run_row(const sn_conv_plan *p, sn_f32_tile *t, const float *x, const float *z, float *y,
                    int64_t from, int64_t to)
{
    const int64_t a = sn_max(from, p->run_from), b = sn_min(to, p->run_to);
    if (a >= b) {
        border(p, t, x, z, y, from, to);
        return;
    }
    border(p, t, x, z, y, from, a);
    call_tile(p, t, x, z, y, a, b - a, a == p->run_from ? p->run_first : 0,
              b == p->run_to ? p->run_end : p->d.kernel[2]);
    border(p, t, x, z, y, b, to);
}

/* Taps of depth are the kernel's rows, of which it has no others: all of them in one sum. */
static bool is_tall(const sn_conv_desc *d)
{
    return d->kernel[0] > 1 && d->kernel[1] == 1;
}

/* All rows (or the one flat row) of an item for the input channels t speaks of. `next_size` floats
 * from `w_next` on (NULL: none) are needed after this; every row fetches a part of them. */
static void direct_rows(const sn_conv_plan *p, const item *it, sn_f32_tile *t, const float *x,
                        const float *w, const float *w_next, int64_t next_size, const float *z,
                        float *y)
{
    const sn_conv_desc *d = &p->d;
    const int64_t block = p->b.block, unit = d->in_block == 0 ? 1 : block;
    if (p->flat) {
        t->kh = 1;
        t->w = w;
        t->w_next = w_next;
        call_tile(p, t, x, z, y, it->from, it->to - it->from, 0, 1);
        return;
    }
    const int64_t row_fetches = p->tiles * (int64_t)t->ic_blocks * t->w_block;
    const sn_conv_phase *f = &p->phase;
    const int64_t plane = d->in[1] * p->line;
    const int64_t slice = f->w_dims[1] * f->w_dims[2] * f->w_step[0] * t->w_ic * (int64_t)t->ic;
    const bool tall = is_tall(d);
    const sn_f32_tile whole = *t;
    const item rows = p->by_pixels ? (item){.to = 1} : *it;
    const int64_t left = p->by_pixels ? it->from : 0, right = p->by_pixels ? it->to : p->cols;
    for (int64_t row = rows.from; row < rows.to; row++) {
        const int64_t above = row / d->out[1], oh = row % d->out[1];
        int64_t first, end, near, far; /* taps inside, of rows and of depth */
        sn_conv_taps(oh, d->stride[1], d->pad[1], d->dilation[1], d->kernel[1], d->in[1], &first,
                     &end);
        sn_conv_taps(above, d->stride[0], d->pad[0], d->dilation[0], d->kernel[0], d->in[0], &near,
                     &far);
        const int64_t step = tall ? sn_max(far - near, 1) : 1; /* taps of depth at a time */
        t->kh = far > near ? (size_t)((end - first) * step) : 0;
        far = sn_max(far, near + 1); /* what is added to nothing has to be written, too */
        const int64_t top = oh * d->stride[1] - d->pad[1] + first * d->dilation[1];
        const int64_t at = (f->y_first[0] + above * f->y_step[0]) * f->y_dims[1] + f->y_first[1] +
                           oh * f->y_step[1];
        const int64_t to = (at * f->y_dims[2] + f->y_first[2]) * block;
        const int64_t fetched = (row - rows.from) * row_fetches;
        t->w_next = w_next && fetched < next_size ? w_next + fetched : NULL;
        for (int64_t kd = near; kd < far; kd += step) { /* sums of the slices before are in y */
            const int64_t depth = above * d->stride[0] - d->pad[0] + kd * d->dilation[0];
            t->w = w + kd * slice + first * t->w_kh;
            t->bias = kd == near ? whole.bias : NULL;
            t->lo = kd + step == far ? whole.lo : -INFINITY;
            t->hi = kd + step == far ? whole.hi : INFINITY;
            run_row(p, t, x + (depth * plane + top * p->line - d->pad[2]) * unit,
                    kd > near ? y + to
                    : z       ? z + to
                              : NULL,
                    y + to, left, right);
        }
    }
}

/* Widened weights of the item before, which the next one may need again. */
typedef struct widened {
    float *room;
    int64_t group, chunk; /* whose weights it holds, where they are not in parts; -1: none */
} widened;

/* Input blocks i … next-1 of the output blocks of an item, one after the other. */
static const float *widen(const sn_conv_call *c, const item *it, const sn_f32_tile *t, int64_t at,
                          int64_t i, int64_t next, widened *held)
{
    const sn_conv_blocks *b = &c->p->b;
    const int64_t each = (next - i) * t->w_block;
    const bool whole = i == 0 && next == b->in_blocks;
    if (whole && held->group == it->group && held->chunk == it->chunk)
        return held->room;
    for (int64_t q = 0; q < t->blocks; q++)
        sn_conv_weights(c, at + (q * b->in_blocks + i) * t->w_block, each, held->room + q * each);
    held->group = whole ? it->group : -1;
    held->chunk = it->chunk;
    return held->room;
}

/* `out_pixels`: of one plane of y. */
static void direct_item(const sn_conv_call *c, const item *it, int64_t out_pixels, widened *held)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_blocks *b = &p->b;
    const sn_conv_phase *f = &p->phase;
    const int64_t block = b->block, in_pixels = d->in[0] * d->in[1] * p->line;
    const bool plain = d->in_block == 0;
    /* The last merged group may have fewer blocks than the others. */
    const int64_t in_all = sn_ceil_div(d->c, block), out_all = sn_ceil_div(d->oc, block);
    const int64_t in_first = it->group * b->in_blocks, out_first = it->group * b->out_blocks;
    const int64_t b0 = chunk_start(p, it->chunk);
    const int64_t blocks = sn_min(chunk_start(p, it->chunk + 1), out_all - out_first) - b0;
    if (blocks <= 0)
        return;
    const int64_t unit = plain ? 1 : block; /* distance of neighbouring input pixels */
    const int64_t tap = b->channels * block;
    float bias[4 * 16];

    const float *x = c->x + (plain ? it->image * d->c * in_pixels
                                   : (it->image * in_all + in_first) * in_pixels * block);
    const int64_t out_at = (it->image * out_all + out_first + b0) * out_pixels * block;
    float *y = c->y + out_at;
    const float *z = c->z ? c->z + out_at : NULL;

    sn_f32_tile t = {
        .blocks = (unsigned)blocks,
        .block = (unsigned)block,
        .ic = (size_t)b->channels,
        .kw = (size_t)d->kernel[2],
        .x_pixel = d->stride[2] * unit,
        .x_ic = plain ? in_pixels : 1,
        .x_block = in_pixels * block,
        .x_kh = d->dilation[1] * p->line * unit,
        .x_kw = d->dilation[2] * unit,
        .w_block = f->w_dims[0] * f->w_dims[1] * f->w_dims[2] * tap,
        .w_kh = f->w_dims[2] * f->w_step[1] * tap,
        .w_kw = f->w_step[2] * tap,
        .w_ic = block,
        .y_pixel = f->y_step[2] * block,
        .y_q = out_pixels * block,
        .z_pixel = f->y_step[2] * block,
        .z_q = out_pixels * block,
        .x_next = p->flat ? 0 : d->stride[1] * p->line * unit,
    };
    t.w_q = b->in_blocks * t.w_block;
    if (is_tall(d)) {
        t.x_kh = d->dilation[0] * d->in[1] * p->line * unit;
        t.w_kh = f->w_dims[1] * f->w_dims[2] * f->w_step[0] * tap;
    }
    const int64_t w_first =
        (f->w_first[0] * f->w_dims[1] + f->w_first[1]) * f->w_dims[2] + f->w_first[2];
    const int64_t w_at = (out_first + b0) * t.w_q;
    const float *w = p->wide_floats ? NULL : (const float *)c->w + w_at;

    const int64_t out = sn_min(b->out, d->oc - it->group * b->out);
    const int64_t lanes = sn_min(out - b0 * block, blocks * block); /* real channels */
    if (c->bias) {
        t.bias = c->bias + it->group * b->out + b0 * block;
        if (lanes < blocks * block) {
            memset(bias, 0, sizeof bias);
            memcpy(bias, t.bias, (size_t)lanes * sizeof(float));
            t.bias = bias;
        }
    }
    const int64_t in_blocks = plain ? 1 : sn_min(b->in_blocks, in_all - in_first);
    const int64_t from = p->by_pixels ? it->from : it->from * d->out[2];
    const int64_t to = p->by_pixels ? it->to : it->to * d->out[2];
    const sn_conv_part part = {.group = it->group,
                               .block = b0,
                               .blocks = blocks,
                               .from = from,
                               .to = to,
                               .out_pixels = out_pixels,
                               .x = x,
                               .bias = t.bias,
                               .z = z,
                               .y = y,
                               .room = held->room};
    const bool exact = sn_conv_merges(p) && !sn_conv_part_is_finite(p, &part);
    if (exact) {
        held->group = -1;
        sn_conv_part_exact(c, &part);
    }
    for (int64_t i = 0; i < in_blocks && !exact; i += p->part) {
        const int64_t next = sn_min(i + p->part, in_blocks);
        const bool last = next == in_blocks;
        t.ic_blocks = (size_t)(next - i);
        t.ic_last = (size_t)(last ? b->channels_last : b->channels);
        t.lo = last ? p->lo : -INFINITY;
        t.hi = last ? p->hi : INFINITY;
        const float *now, *w_next = NULL;
        if (w) { /* what is needed next: this chunk's next part, or what lies behind its weights */
            now = w + i * t.w_block;
            w_next = !last ? w + next * t.w_block : it->last_use ? w + blocks * t.w_q : NULL;
            if (f->w_step[0] * f->w_step[1] * f->w_step[2] > 1)
                w_next = NULL; /* it lies here and there */
        } else {
            now = widen(c, it, &t, w_at, i, next, held);
            t.w_q = (next - i) * t.w_block;
        }
        direct_rows(p, it, &t, x + i * t.x_block, now + w_first * tap, w_next,
                    blocks * (next - i) * t.w_block, i == 0 ? z : y, y);
        t.bias = NULL;
    }
    if (!p->post && !p->clear)
        return;
    for (int64_t q = 0; q < blocks; q++)
        sn_conv_finish(p, y + (q * out_pixels + from) * block, to - from, lanes - q * block);
}

void sn_conv_direct_band(const sn_conv_call *c, int64_t pixels)
{
    widened held = {sn_conv_wide(c, 0), -1, -1};
    for (int64_t i = 0; i < c->p->chunks; i++) {
        const item it = {.chunk = i, .to = pixels};
        direct_item(c, &it, pixels, &held);
    }
}

void sn_conv_direct_task(void *call, size_t task, int worker)
{
    const sn_conv_call *c = call;
    const int64_t *y_dims = c->p->phase.y_dims;
    widened held = {sn_conv_wide(c, worker), -1, -1};
    for (size_t i = sn_split(c->p->items, c->p->tasks, task);
         i < sn_split(c->p->items, c->p->tasks, task + 1); i++) {
        item it = item_at(c->p, i);
        direct_item(c, &it, y_dims[0] * y_dims[1] * y_dims[2], &held);
    }
}
