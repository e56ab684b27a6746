/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution on blocked tensors, and convolution in narrow groups by planes
 * (conv_groups.c): an item is rows of one block of output channels, which the kernel does with all
 * borders in one call. Taps of depth are planes, too. An activation that is more than a clip cuts
 * an item into slices, so that it finds them in the first-level cache. Images that are bf16 or f16
 * in memory go through f32 by bands of rows. */
#include <string.h>

#include "compute/conv.h"
#include "compute/halves.h"
#include "compute/split.h"

enum { SLICE_BYTES = 16 << 10 };

/* Rows of a block of outputs of an image, at `depth`. */
typedef struct item {
    int64_t image, depth, block;
    const sn_conv_band *band;
    int worker;
} item;

/* What an item reads: planes of blocks first … end-1 of an image of x; one plane where every lane
 * reads itself. */
typedef struct item_planes {
    sn_f32_plane of[SN_CONV_MAX_PLANES]; /* `at` are numbers of blocks */
    int64_t n, first, end;
} item_planes;

static bool reads_itself(const sn_conv_desc *d)
{
    return d->c == d->groups && d->oc == d->groups && d->in[0] == 1 && d->kernel[0] == 1 &&
           d->out[0] == 1 && d->pad[0] == 0;
}

static void find_planes(const sn_conv_plan *p, const item *i, item_planes *planes)
{
    const sn_conv_desc *d = &p->d;
    planes->n = 0;
    planes->first = i->block;
    planes->end = i->block + 1;
    if (reads_itself(d))
        return;
    const int64_t w[2] = {d->oc, d->c / d->groups};
    planes->n = sn_conv_planes(w, d->groups, p->block, i->block, planes->of);
    planes->first = planes->of[0].at[0]; /* lanes and channels rise together */
    planes->end = 0;
    for (int64_t q = 0; q < planes->n; q++)
        planes->end = sn_max(planes->end, planes->of[q].at[1] + 1);
}

/* Tells the kernel: blocks of x are so many floats apart, from planes->first on. */
static void set_planes(sn_f32_depthwise *t, const item_planes *planes, sn_f32_plane *room,
                       int64_t apart)
{
    if (planes->n == 0)
        return;
    for (int64_t q = 0; q < planes->n; q++) {
        room[q] = planes->of[q];
        for (int k = 0; k < 2; k++)
            room[q].at[k] = (planes->of[q].at[k] - planes->first) * apart;
    }
    t->planes = room;
    t->n_planes = planes->n;
}

/* The planes at every tap of depth that is inside, each with its own weights. */
static void repeat_planes(const sn_conv_desc *d, sn_f32_depthwise *t, sn_f32_plane *room,
                          int64_t depth)
{
    const int64_t slice = d->in[1] * d->in[2] * t->block, n = t->n_planes;
    int64_t first, end;
    sn_conv_taps(depth, d->stride[0], d->pad[0], d->dilation[0], d->kernel[0], d->in[0], &first,
                 &end);
    for (int64_t q = n * (end - first) - 1; q >= 0; q--) { /* from behind: the first are there */
        const int64_t tap = first + q / n;
        const int64_t at = (depth * d->stride[0] - d->pad[0] + tap * d->dilation[0]) * slice;
        room[q] = room[q % n];
        room[q].at[0] += at;
        room[q].at[1] += at;
    }
    t->n_planes = n * (end - first);
    t->w += first * n * d->kernel[1] * d->kernel[2] * t->block;
}

/* Lines of blocks of x become f32, one block behind the other. at: of the first. */
static void load_lines(const sn_conv_call *c, float *x, const item_planes *planes, int64_t at,
                       int64_t apart, int64_t floats)
{
    const uint16_t *from = (const uint16_t *)(const void *)c->x + at;
    for (int64_t i = 0; i < planes->end - planes->first; i++)
        sn_halves_load(c->p->k, c->p->d.x_half, x + i * floats, from + i * apart, (size_t)floats);
}

/* Rows of an image that is bf16 or f16 in memory, or becomes it. t: of the whole plane. in_at,
 * out_at: where the planes begin. */
static void stored_rows(const sn_conv_call *c, sn_f32_depthwise t, const item *i,
                        const item_planes *planes, int64_t in_at, int64_t out_at, int64_t lanes)
{
    static const sn_act none = {SN_ACT_NONE, {0}};
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_band *band = i->band;
    const int64_t line = d->in[2] * p->block, result = d->out[2] * p->block;
    const int64_t window = (d->kernel[1] - 1) * d->dilation[1] + 1, apart = band->in_rows * line;
    float *x = sn_pieces_at(c->workspace, p->copies, (size_t)i->worker);
    float *y = sn_pieces_at(c->workspace, p->sums, (size_t)i->worker);
    sn_f32_plane room[SN_CONV_MAX_PLANES];
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
            load_lines(c, x, planes, at, apart, t.in[0] * line);
        set_planes(&t, planes, room, d->x_half ? t.in[0] * line : apart);
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

static void depthwise_rows(const sn_conv_call *c, const float *zeros, const item *i)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_band *band = i->band;
    const int64_t block = p->block, in_blocks = sn_ceil_div(d->c, block);
    const int64_t lanes = sn_min(d->oc - i->block * block, block), line = d->out[2] * block;
    const int64_t apart = d->in[0] * band->in_rows * d->in[2] * block; /* of blocks of x */
    const int64_t weights = p->room * d->kernel[0] * d->kernel[1] * d->kernel[2] * block;
    const int64_t slices = (i->image * sn_ceil_div(d->oc, block) + i->block) * d->out[0] + i->depth;
    const int64_t out_at = slices * d->out[1] * line;
    item_planes planes;
    sn_f32_plane room[SN_CONV_MAX_PLANES];
    find_planes(p, i, &planes);
    const int64_t in_at = (i->image * in_blocks + planes.first) * apart;
    float bias[16] = {0};
    if (c->bias)
        memcpy(bias, c->bias + i->block * block, (size_t)lanes * sizeof(float));
    const bool stored = d->x_half || d->y_half;
    sn_f32_depthwise t = {
        .x = stored ? NULL : c->x + in_at,
        .w = sn_conv_weights(c, i->block * weights, weights, sn_conv_wide(c, i->worker)),
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
        stored_rows(c, t, i, &planes, in_at, out_at, lanes);
        return;
    }
    set_planes(&t, &planes, room, apart);
    if (t.planes)
        repeat_planes(d, &t, room, i->depth);
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
    for (int64_t block = 0; block < sn_ceil_div(c->p->d.c, c->p->block); block++) {
        const item i = {.block = block, .band = band};
        depthwise_rows(c, zeros, &i);
    }
}

void sn_conv_depthwise_task(void *call, size_t task, int worker)
{
    const sn_conv_call *c = call;
    const sn_conv_plan *p = c->p;
    const int64_t blocks = sn_ceil_div(p->d.oc, p->block), deep = p->d.out[0];
    float *zeros = sn_conv_panel(c, worker);
    memset(zeros, 0, p->panel_bytes);
    for (size_t i = sn_split(p->items, p->tasks, task); i < sn_split(p->items, p->tasks, task + 1);
         i++) {
        const int64_t rest = (int64_t)i / blocks, seg = rest % p->segs, slice = rest / p->segs;
        const sn_conv_band band = {
            .from = seg * p->seg, .to = sn_min(p->rows, (seg + 1) * p->seg), .in_rows = p->d.in[1]};
        const item one = {.image = slice / deep,
                          .depth = slice % deep,
                          .block = (int64_t)i % blocks,
                          .band = &band,
                          .worker = worker};
        depthwise_rows(c, zeros, &one);
    }
}
