/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions whose weights are sparse, in blocks of four output channels, or of one, at one k,
 * which is a tap of an input channel. Vectors run over pixels, so x has to be plain, and every k at
 * one distance from a pixel, whatever the pixel:
 *
 *   1×1 at stride 1   a task copies the pixels of a group, [channel][pixel of the group]
 *   others            x is copied with its borders first, [channel][phase][depth][row][column],
 *                     where a phase is what strides reach from one tap: of stride 2, the even
 *                     columns, then the odd ones
 *
 * In a copy with borders, windows are computed at all positions from the first to the last pixel,
 * also at those that lie between the last pixel of a row and the first of the next; these are left
 * out when results go where they belong.
 *
 * Every sum is made in ascending order of k, however the work is cut. */
#include "compute/conv_sparse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/packs.h"
#include "compute/sparse.h"
#include "compute/split.h"

enum {
    CHUNK = 64, /* output channels, a multiple of a panel's and of every layout's block */
    TASK_FLOPS = 500000,
    TASKS_PER_THREAD = 4,
    START_CYCLES = 1500,
    LEAST_PIXELS = 16,      /* a vector of them: with fewer, copying takes longest */
    COPY_CHANNELS = 16,     /* of plain tensors, at a time */
    COPIES_BYTES = 8 << 20, /* of images that are copied at a time, if they have less */
};

/* ------------------------------------------------------------------ plan */
static double reach(int64_t kernel, int64_t dilation, int64_t stride)
{
    return floor((double)(kernel - 1) * (double)dilation / (double)stride);
}

/* Cycles of a pixel, as measured with AVX-512: others are slower in everything alike. */
static bool pays_at(const sn_conv_sparse_case *c, const int64_t *out)
{
    const double margin = 0.95, taps = (double)(c->kernel[0] * c->kernel[1] * c->kernel[2]);
    const double k = (double)c->ic * taps;
    const double oc = (double)c->oc, ic = (double)c->ic, entries = (double)c->entries;
    double pixels = 1, positions = 1;
    for (int i = 0; i < 3; i++) {
        pixels *= (double)out[i];
        positions *= (double)out[i] + reach(c->kernel[i], c->dilation[i], c->stride[i]);
    }
    const bool flat = taps <= 1; /* but for strides, which make it smaller */
    const double vectors = ceil((flat ? pixels : positions) / 16);
    const double copied = flat ? 0.5 * pixels * ic : 0.8 * positions * ic;
    const double sparse =
        copied + 0.5 * pixels * oc + (vectors > 1 ? 2.9 : 3.6) * vectors * entries;
    const bool winograd = c->winograd && pixels >= 100; /* smaller images do not gain by it */
    const double rate = c->tiles ? 230 : c->plain ? 20 : winograd ? 75 : 29;
    const double lanes = c->tiles || c->plain ? oc : 16 * ceil(oc / 16); /* some of them empty */
    const double products = pixels * lanes * k / rate;
    const double weights = (oc * k * 4 > (double)SN_SPARSE_FAR_BYTES ? 0.3 : 0.085) * oc * k;
    return pixels >= (double)LEAST_PIXELS &&
           (double)START_CYCLES + sparse < margin * (products > weights ? products : weights);
}

bool sn_conv_sparse_pays(const sn_conv_sparse_case *c)
{
    static const int64_t usual[] = {7, 14, 56};
    bool known = true;
    for (int i = 0; i < 3; i++) {
        if (c->out[i] == 0)
            return false;
        known &= c->out[i] > 0;
    }
    if (known)
        return pays_at(c, c->out);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (!pays_at(c, (int64_t[3]){1, usual[i], usual[i]}))
            return false;
    return true;
}

/* Groups of vectors, as even as they can be, and parts of the output channels where these are too
 * few for the threads. */
static void plan_groups(sn_conv_plan *p, size_t l2_bytes)
{
    const sn_conv_desc *d = &p->d;
    sn_conv_sparse *s = &p->sparse;
    const sn_geometry *g = &p->k->f32_sparse4_geometry;
    s->lanes = g->block;
    const int64_t all = sn_max(sn_ceil_div(s->positions, s->lanes), 1);
    const int64_t vector_bytes = d->c * s->lanes * (int64_t)sizeof(float);
    const int64_t fit = sn_max((int64_t)(l2_bytes / 2) / sn_max(vector_bytes, 1), 1);
    const int64_t at_once = g->pixels[d->sparse == 1];
    const int64_t most = s->flat ? sn_min(at_once, fit) : at_once;
    s->groups = sn_ceil_div(all, most);
    s->vectors = sn_ceil_div(all, s->groups);
    s->chunks = sn_ceil_div(d->oc, CHUNK);
    const int64_t want =
        sn_task_count((int64_t)(p->flops / TASK_FLOPS) + 1, p->threads, TASKS_PER_THREAD);
    const int64_t others = sn_max(s->images * s->groups, 1);
    s->parts = p->threads == 1 ? 1 : sn_max(sn_min(s->chunks, sn_ceil_div(want, others)), 1);
}

/* What windows cover, axis by axis. */
static bool plan_copy(sn_conv_plan *p)
{
    const sn_conv_desc *d = &p->d;
    sn_conv_sparse *s = &p->sparse;
    s->volume = 1;
    int64_t phases = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t window = sn_count(d->kernel[i] - 1, d->dilation[i], 1, 1);
        if (window < 0 || window > INT32_MAX || d->out[i] > INT32_MAX)
            return false;
        s->extent[i] = d->out[i] + window / d->stride[i];
        s->phases[i] = sn_min(d->stride[i], window + 1);
        s->volume = sn_count(s->volume, s->extent[i], 1, 1);
        phases = sn_count(phases, s->phases[i], 1, 1);
    }
    s->plane = sn_count(s->volume, phases, 1, 1);
    const int64_t all = sn_count(s->plane, d->c, 1, 1);
    if (all < 0 || all > INT32_MAX / 2) /* places are numbers of 32 bits */
        return false;
    s->positions =
        sn_min(d->out[0], sn_min(d->out[1], d->out[2])) <= 0
            ? 0
            : ((d->out[0] - 1) * s->extent[1] + d->out[1] - 1) * s->extent[2] + d->out[2];
    return true;
}

static bool is_flat(const sn_conv_desc *d)
{
    bool flat = true;
    for (int i = 0; i < 3; i++)
        flat = flat && d->kernel[i] == 1 && d->stride[i] == 1 && d->pad[i] == 0 &&
               d->out[i] == d->in[i];
    return flat;
}

bool sn_conv_sparse_plan(sn_conv_plan *p, size_t l2_bytes)
{
    const sn_conv_desc *d = &p->d;
    sn_conv_sparse *s = &p->sparse;
    const int64_t taps = sn_count(d->kernel[0], d->kernel[1], d->kernel[2], 1);
    const int64_t pixels = sn_count(d->out[0], d->out[1], d->out[2], 1);
    if (!plan_copy(p) || pixels < 0 || sn_count(taps, d->c, 1, 1) < 0)
        return false;
    s->taps = taps;
    s->pixels = pixels;
    s->flat = is_flat(d);
    p->flops = 2 * (uint64_t)d->n * (uint64_t)pixels * (uint64_t)d->entries * d->sparse;
    s->copy_floats = s->plane * d->c + p->k->f32_sparse4_geometry.block;
    const int64_t copy_bytes = sn_count(s->copy_floats, sizeof(float), 1, 1);
    s->images = s->flat ? d->n : sn_max(sn_min(COPIES_BYTES / sn_max(copy_bytes, 1), d->n), 1);
    plan_groups(p, l2_bytes);
    s->wide = s->vectors * s->lanes;
    s->channels = d->in_block ? d->in_block : COPY_CHANNELS;
    s->in_blocks = sn_ceil_div(d->c, s->channels);
    const size_t threads = (size_t)p->threads;
    if (s->flat) {
        s->copy = sn_carve_each(&p->workspace, threads,
                                (size_t)sn_count(d->c, s->wide, sizeof(float), 1));
    } else {
        s->copies = sn_carve(&p->workspace, s->images, (size_t)copy_bytes);
        s->bad = sn_carve(&p->workspace, sn_count(s->images, s->in_blocks, 1, 1), 1);
        s->line = sn_carve_each(&p->workspace, threads,
                                (size_t)sn_count(d->in_block, d->in[2], sizeof(float), 1));
        s->at = sn_carve(&p->workspace, sn_count(taps, d->c, 1, 1), sizeof(int32_t));
    }
    s->sums = sn_carve_each(&p->workspace, threads, (size_t)(CHUNK * s->wide) * sizeof(float));
    s->room = sn_carve_each(&p->workspace, threads,
                            (size_t)(s->wide * sn_max(d->out_block, 1)) * sizeof(float));
    const char *isa = strrchr(p->k->f32_sparse4_name, '_');
    char form[24] = "pixels"; /* nothing is zero: few outputs, and vectors of pixels */
    if (d->entries < s->taps * d->c * sn_ceil_div(d->oc, d->sparse))
        snprintf(form, sizeof form, "sparse%ux1", d->sparse);
    snprintf(p->name, sizeof p->name, "f32_conv%dx%d_%s_%s", (int)d->kernel[1], (int)d->kernel[2],
             form, isa ? isa + 1 : "ref");
    return copy_bytes >= 0 && !p->workspace.overflow;
}

/* ------------------------------------------------------------------ copies */
typedef struct sparse_call {
    const sn_conv_call *c;
    sn_sparse_view w;
    int64_t image; /* the first one whose copy there is */
} sparse_call;

/* A line of an image in all channels of a block, where a copy of one phase of columns has it: dst,
 * whose channels are a plane apart. Its channels are src[l*channel + i]. */
typedef struct line {
    float *dst;
    const float *src;
    int64_t channel, lanes, phase;
} line;

/* What a copy has of a line: columns `from` … `to`-1 are inside. */
static void line_limits(const sn_conv_plan *p, int64_t phase, int64_t *from, int64_t *to)
{
    const sn_conv_desc *d = &p->d;
    const int64_t step = d->stride[2], extent = p->sparse.extent[2];
    const int64_t before = d->pad[2] - phase; /* column e is number e·step - before */
    *from = sn_min(before > 0 ? sn_ceil_div(before, step) : 0, extent);
    *to = sn_max(sn_min(sn_ceil_div(d->in[2] + before, step), extent), *from);
}

static void clear_line(const sn_conv_plan *p, float *dst, int64_t lanes)
{
    for (int64_t l = 0; l < lanes; l++)
        memset(dst + l * p->sparse.plane, 0, (size_t)p->sparse.extent[2] * sizeof *dst);
}

static void copy_line(const sn_conv_plan *p, const line *t)
{
    const sn_conv_desc *d = &p->d;
    const int64_t step = d->stride[2], extent = p->sparse.extent[2];
    int64_t from, to;
    line_limits(p, t->phase, &from, &to);
    for (int64_t l = 0; l < t->lanes; l++) {
        float *dst = t->dst + l * p->sparse.plane;
        const float *src = t->src + l * t->channel;
        memset(dst, 0, (size_t)from * sizeof *dst);
        memset(dst + to, 0, (size_t)(extent - to) * sizeof *dst);
        if (step == 1 && to > from)
            memcpy(dst + from, src + from + t->phase - d->pad[2],
                   (size_t)(to - from) * sizeof *dst);
        else
            for (int64_t e = from; e < to; e++)
                dst[e] = src[e * step + t->phase - d->pad[2]];
    }
}

/* One row of all channels of a block, at `src`, into the copies of all phases of columns; NULL: it
 * is outside. */
static void copy_row(const sn_conv_plan *p, float *dst, const float *src, int64_t lanes,
                     int64_t channel, float *room)
{
    const sn_conv_desc *d = &p->d;
    const sn_conv_sparse *s = &p->sparse;
    line t = {dst, src, channel, lanes, 0};
    if (src && d->in_block != 0) {
        int64_t from, to;
        line_limits(p, 0, &from, &to);
        if (d->stride[2] == 1 && to > from) { /* straight to its place */
            for (int64_t l = 0; l < lanes; l++) {
                float *at = dst + l * s->plane;
                memset(at, 0, (size_t)from * sizeof *at);
                memset(at + to, 0, (size_t)(s->extent[2] - to) * sizeof *at);
            }
            p->k->f32_unblock(dst + from, src + (from - d->pad[2]) * d->in_block,
                              (size_t)(to - from), (unsigned)lanes, d->in_block, (size_t)s->plane);
            return;
        }
        p->k->f32_unblock(room, src, (size_t)d->in[2], (unsigned)lanes, d->in_block,
                          (size_t)d->in[2]);
        t.src = room;
        t.channel = d->in[2];
    }
    for (int64_t phase = 0; phase < s->phases[2]; phase++) {
        t.dst = dst + phase * s->volume;
        t.phase = phase;
        if (src)
            copy_line(p, &t);
        else
            clear_line(p, t.dst, lanes);
    }
}

/* Where row (depth, row) of a block of channels is, or NULL. */
static const float *row_of(const sn_conv_call *c, const float *x, int64_t depth, int64_t row)
{
    const sn_conv_desc *d = &c->p->d;
    if (depth < 0 || depth >= d->in[0] || row < 0 || row >= d->in[1])
        return NULL;
    return x + (depth * d->in[1] + row) * d->in[2] * sn_max(d->in_block, 1);
}

/* A block of channels of one image. */
static void copy_task(void *arg, size_t index, int worker)
{
    const sparse_call *call = arg;
    const sn_conv_call *c = call->c;
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_sparse *s = &p->sparse;
    const int64_t image = (int64_t)index / s->in_blocks, block = (int64_t)index % s->in_blocks;
    const int64_t first = block * s->channels, lanes = sn_min(s->channels, d->c - first);
    const int64_t volume = d->in[0] * d->in[1] * d->in[2];
    const int64_t number = call->image + image;
    const float *x = c->x + (d->in_block ? (number * s->in_blocks + block) * volume * d->in_block
                                         : (number * d->c + first) * volume);
    float *copy = (float *)sn_piece_at(c->workspace, s->copies) + image * s->copy_floats;
    float *to = copy + first * s->plane,
          *room = sn_pieces_at(c->workspace, s->line, (size_t)worker);
    for (int64_t pd = 0; pd < s->phases[0]; pd++)
        for (int64_t ph = 0; ph < s->phases[1]; ph++)
            for (int64_t e = 0; e < s->extent[0] * s->extent[1]; e++) {
                const int64_t depth = e / s->extent[1] * d->stride[0] + pd - d->pad[0];
                const int64_t row = e % s->extent[1] * d->stride[1] + ph - d->pad[1];
                float *dst =
                    to + (pd * s->phases[1] + ph) * s->phases[2] * s->volume + e * s->extent[2];
                copy_row(p, dst, row_of(c, x, depth, row), lanes, volume, room);
            }
    if (block == s->in_blocks - 1)
        memset(copy + d->c * s->plane, 0, (size_t)s->lanes * sizeof *copy);
    ((uint8_t *)sn_piece_at(c->workspace, s->bad))[index] =
        (uint8_t)!isfinite(p->k->f32_sum(to, (size_t)(lanes * s->plane)));
}

/* Where the x of each k is, from a position on. */
static void list_places(const sn_conv_plan *p, int32_t *at)
{
    const sn_conv_desc *d = &p->d;
    const sn_conv_sparse *s = &p->sparse;
    for (int64_t tap = 0; tap < s->taps; tap++) {
        const int64_t t[3] = {tap / d->kernel[2] / d->kernel[1], tap / d->kernel[2] % d->kernel[1],
                              tap % d->kernel[2]};
        int64_t phase = 0, place = 0;
        for (int i = 0; i < 3; i++) {
            phase = phase * s->phases[i] + t[i] * d->dilation[i] % d->stride[i];
            place = place * s->extent[i] + t[i] * d->dilation[i] / d->stride[i];
        }
        for (int64_t c = 0; c < d->c; c++)
            at[c * s->taps + tap] = (int32_t)(c * s->plane + phase * s->volume + place);
    }
}

/* Pixels from … of an image of a flat convolution, [channel][wide]. */
static void copy_pixels(const sn_conv_call *c, int64_t image, int64_t from, int64_t n, float *to)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_sparse *s = &p->sparse;
    for (int64_t b = 0; b < s->in_blocks; b++) {
        const int64_t first = b * s->channels, lanes = sn_min(s->channels, d->c - first);
        float *at = to + first * s->wide;
        if (d->in_block)
            p->k->f32_unblock(at,
                              c->x + ((image * s->in_blocks + b) * s->pixels + from) * d->in_block,
                              (size_t)n, (unsigned)lanes, d->in_block, (size_t)s->wide);
        for (int64_t l = 0; l < lanes; l++) {
            if (!d->in_block)
                memcpy(at + l * s->wide, c->x + (image * d->c + first + l) * s->pixels + from,
                       (size_t)n * sizeof *at);
            if (n < s->wide)
                memset(at + l * s->wide + n, 0, (size_t)(s->wide - n) * sizeof *at);
        }
    }
}

/* ------------------------------------------------------------------ run */
/* Positions of a group, and where their x begins. */
typedef struct group {
    int64_t image, from, n;
    const float *x;
    const int32_t *at; /* NULL: every k is x_k behind the one before */
    int64_t x_k;
    bool bad; /* some x seems not finite */
} group;

static bool is_bad(const group *g, int64_t k, int64_t i)
{
    return !isfinite(g->x[(g->at ? g->at[k] : k * g->x_k) + i]);
}

/* k whose x is not finite count for all channels, as 0 · x is NaN then: those that have no entry
 * for it are NaN. */
static void spoil(const sparse_call *call, const group *g, int64_t col, int64_t n, float *sums)
{
    const sn_conv_sparse *s = &call->c->p->sparse;
    const int64_t ks = s->taps * call->c->p->d.c, panel = call->c->p->d.sparse;
    for (int64_t i = 0; i < g->n; i++) {
        int64_t bad = 0;
        for (int64_t k = 0; k < ks; k++)
            bad += is_bad(g, k, i);
        for (int64_t j = 0; j < n && bad; j += panel) {
            const uint32_t *first = call->w.first + (col + j) / panel;
            int64_t met = 0;
            for (uint32_t e = first[0]; e < first[1]; e++)
                met += is_bad(g, call->w.index[e], i);
            for (int64_t o = j; o < sn_min(j + panel, n) && met < bad; o++)
                sums[o * s->wide + i] = NAN;
        }
    }
}

/* Results of neighbouring pixels, from `at` of the sums on. */
typedef struct stretch {
    int64_t at, pixel, n;
} stretch;

/* The next pixels from position *at on that follow each other in y; false: there are none left. */
static bool next_stretch(const sn_conv_plan *p, const group *g, int64_t *at, stretch *out)
{
    const sn_conv_desc *d = &p->d;
    const sn_conv_sparse *s = &p->sparse;
    while (*at < g->n) {
        const int64_t q = g->from + *at, column = q % s->extent[2], above = q / s->extent[2];
        const int64_t row = above % s->extent[1], depth = above / s->extent[1];
        const bool inside = row < d->out[1] && column < d->out[2];
        int64_t n = (inside ? d->out[2] : s->extent[2]) - column;
        if (s->volume == s->pixels) /* nothing lies between rows */
            n = g->n - *at;
        n = sn_min(n, g->n - *at);
        *out = (stretch){*at, (depth * d->out[1] + row) * d->out[2] + column, n};
        *at += n;
        if (inside)
            return true;
    }
    return false;
}

/* Output channels col … col+n-1 of a stretch, plain. */
static void store_plain(const sn_conv_call *c, const group *g, const stretch *t, int64_t col,
                        int64_t n, const float *sums)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_sparse *s = &p->sparse;
    for (int64_t o = 0; o < n; o++) {
        const int64_t at = (g->image * p->d.oc + col + o) * s->pixels + t->pixel;
        const float *from = sums + o * s->wide + t->at;
        if (c->z)
            p->k->f32_add_clip(c->y + at, from, c->z + at, (size_t)t->n, p->lo, p->hi);
        else
            memcpy(c->y + at, from, (size_t)t->n * sizeof *from);
        if (p->post)
            sn_act_apply(&p->d.act, p->k, c->y + at, (size_t)t->n);
    }
}

/* The same in blocks. */
static void store_blocks(const sn_conv_call *c, const group *g, const stretch *t, int64_t col,
                         int64_t n, const float *sums, float *room)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_sparse *s = &p->sparse;
    const int64_t block = p->d.out_block, blocks = sn_ceil_div(p->d.oc, block);
    for (int64_t o = 0; o < n; o += block) {
        const int64_t lanes = sn_min(block, n - o);
        const int64_t at = ((g->image * blocks + (col + o) / block) * s->pixels + t->pixel) * block;
        float *y = c->z ? room : c->y + at;
        p->k->f32_block(y, sums + o * s->wide + t->at, (size_t)t->n, (unsigned)lanes,
                        (unsigned)block, (size_t)s->wide);
        if (c->z)
            p->k->f32_add_clip(c->y + at, y, c->z + at, (size_t)(t->n * block), p->lo, p->hi);
        sn_conv_finish(p, c->y + at, t->n, lanes);
    }
}

static void chunk_of(const sparse_call *call, const group *g, int64_t col, int worker)
{
    const sn_conv_call *c = call->c;
    const sn_conv_plan *p = c->p;
    const sn_conv_sparse *s = &p->sparse;
    const int64_t n = sn_min(CHUNK, p->d.oc - col);
    float *sums = sn_pieces_at(c->workspace, s->sums, (size_t)worker);
    float *room = sn_pieces_at(c->workspace, s->room, (size_t)worker);
    const sn_f32_sparse tile = {.x = g->x,
                                .w = call->w.w,
                                .index = call->w.index,
                                .first = call->w.first + col / p->d.sparse,
                                .start = c->bias ? c->bias + col : NULL,
                                .x_at = g->at,
                                .y = sums,
                                .outputs = (size_t)n,
                                .panel = p->d.sparse,
                                .vectors = (unsigned)sn_ceil_div(g->n, s->lanes),
                                .block = (unsigned)s->lanes,
                                .x_k = g->x_k,
                                .x_v = s->lanes,
                                .y_o = s->wide,
                                .y_v = s->lanes,
                                .lo = c->z ? -INFINITY : p->lo,
                                .hi = c->z ? INFINITY : p->hi};
    p->k->f32_sparse4(&tile);
    if (g->bad)
        spoil(call, g, col, n, sums);
    stretch t;
    for (int64_t at = 0; next_stretch(p, g, &at, &t);)
        if (p->d.out_block)
            store_blocks(c, g, &t, col, n, sums, room);
        else
            store_plain(c, g, &t, col, n, sums);
}

static bool any_bad(const sn_conv_call *c, int64_t image)
{
    const sn_conv_sparse *s = &c->p->sparse;
    const uint8_t *bad = (const uint8_t *)sn_piece_at(c->workspace, s->bad) + image * s->in_blocks;
    return memchr(bad, 1, (size_t)s->in_blocks) != NULL;
}

static void task(void *arg, size_t index, int worker)
{
    const sparse_call *call = arg;
    const sn_conv_call *c = call->c;
    const sn_conv_plan *p = c->p;
    const sn_conv_sparse *s = &p->sparse;
    const int64_t part = (int64_t)index % s->parts, rest = (int64_t)index / s->parts;
    const int64_t image = rest / s->groups, from = rest % s->groups * s->wide;
    group g = {
        .image = call->image + image, .from = from, .n = sn_min(s->wide, s->positions - from)};
    if (g.n <= 0)
        return;
    if (s->flat) {
        float *copy = sn_pieces_at(c->workspace, s->copy, (size_t)worker);
        copy_pixels(c, g.image, from, g.n, copy);
        g.x = copy;
        g.x_k = s->wide;
        g.bad = !isfinite(p->k->f32_sum(copy, (size_t)(p->d.c * s->wide)));
    } else {
        g.x = (const float *)sn_piece_at(c->workspace, s->copies) + image * s->copy_floats + from;
        g.x_k = s->plane;
        g.at = s->taps > 1 ? sn_piece_at(c->workspace, s->at) : NULL;
        g.bad = any_bad(c, image);
    }
    for (int64_t i = part * s->chunks / s->parts; i < (part + 1) * s->chunks / s->parts; i++)
        chunk_of(call, &g, i * CHUNK, worker);
}

void sn_conv_sparse_run(const sn_conv_call *c, sn_pool *pool)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_sparse *s = &p->sparse;
    const sn_pack_format *f =
        sn_pack_get(p->d.sparse == 1 ? SN_PACK_F32_SPARSE1 : SN_PACK_F32_SPARSE4);
    sparse_call call = {c, sn_sparse_view_of(f, c->w, p->d.oc, p->d.entries), 0};
    if (s->positions == 0)
        return;
    if (!s->flat && s->taps > 1)
        list_places(p, sn_piece_at(c->workspace, s->at));
    for (; call.image < p->d.n; call.image += s->images) {
        const int64_t images = sn_min(s->images, p->d.n - call.image);
        if (!s->flat)
            sn_pool_run(pool, (size_t)(images * s->in_blocks), copy_task, &call);
        sn_pool_run(pool, (size_t)(images * s->groups * s->parts), task, &call);
    }
}
