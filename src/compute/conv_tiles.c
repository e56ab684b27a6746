/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in bf16, f16, or f32 in halves, by tiles (kernels/signatures.h, bf16_rows and
 * f16_rows). A task is a part of the result, some lines of an image, times a range of chunks, a few
 * blocks of output channels each. It copies the lines of x that it reads, a group at a time, as
 * numbers of 16 bits:
 *
 *   [slab of 32 channels][lines][32 channels]     rows of 64 bytes, one step of the kernel
 *   [lines][channels of a pixel]                  narrow: fewer channels, a step has several pixels
 *
 * A step of narrow pixels reads pixels that do not belong to its run, too, and multiplies them by
 * zero, as merged groups do with each other's channels. That is only wrong if they are not finite,
 * and gives NaN: then rows are gathered one by one, and computed again. */
#include "compute/conv_tiles.h"

#include <math.h>
#include <string.h>

#include "compute/halves.h"
#include "compute/packs.h"
#include "compute/tiles.h"

enum {
    ROWS = SN_ROWS_GROUP, /* at a time */
    BLOCKS = 4,           /* of output channels at a time */
    NUMBERS = SN_STEP_HALVES,
    BLOCK = SN_ROWS_TILE,
    COPY_BYTES = 256 << 10, /* of the lines of a part */
    MOST_PIECES = 4,        /* of the last tasks */
    PAGE = 4096
};

static int64_t part_of_pages(int64_t bytes) /* no two slabs on the same lines of the cache */
{
    bytes = sn_ceil_div(bytes, SN_ROWS_STEP) * SN_ROWS_STEP;
    return bytes % PAGE == 0 ? bytes + SN_ROWS_STEP : bytes;
}

unsigned sn_conv_tiles_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                               unsigned in_block, unsigned out_block, uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    sn_conv_tiles t;
    if ((rank == 4 && sn_conv_is_depthwise(w, groups)) ||
        out_block != k->bf16_rows_geometry.block || (in_block != 0 && in_block != out_block) ||
        !sn_conv_tiles_of(w, rank, sn_conv_tiles_pack_arg(groups, in_block == 0, 1, 1), &t) ||
        (dtype == SONDE_DTYPE_F32 && !sn_conv_tiles_in_halves(&t)))
        return SN_PACK_NONE;
    return sn_pack_find(SN_WEIGHTS_CONV_TILES, dtype, &k->bf16_rows_geometry);
}

/* Splitting costs as much for each number of x and of y as some products do, and a number of x is
 * multiplied at every tap. With few pixels it is reading the weights that takes the time. */
bool sn_conv_halves_pay(int64_t pixels, const int64_t *w, int rank, bool winograd)
{
    enum { EACH = 72, EACH_WINOGRAD = 96, TAPS_WINOGRAD = 4, FEW = 64, LEAST_WORK = 1 << 21 };
    int64_t taps = 1;
    for (int i = 2; i < rank; i++)
        taps = sn_count(taps, w[i], 1, 1);
    const int64_t products = sn_count(w[0], w[1], winograd ? TAPS_WINOGRAD : taps, 1);
    return products >= (winograd ? EACH_WINOGRAD : EACH) * (w[1] + w[0]) &&
           (pixels < 0 || (pixels > FEW && sn_count(products, pixels, 1, 1) >= LEAST_WORK));
}

/* Are there zeros between channels of different groups? */
static bool merges(const sn_conv_tiles *t)
{
    return t->b.in != t->b.group_in;
}

static int64_t x_bytes(const sn_conv_desc *d) /* of an element */
{
    return d->x_half ? sizeof(uint16_t) : sizeof(float);
}

bool sn_conv_tiles_plan(sn_conv_plan *p, size_t l2_bytes)
{
    const sn_conv_desc *d = &p->d;
    const int64_t w[4] = {d->oc, d->c / d->groups, d->kernel[1], d->kernel[2]};
    sn_conv_tiles *t = &p->t;
    const bool plain = d->in_block == 0;
    if (!sn_conv_tiles_of(
            w, 4, sn_conv_tiles_pack_arg(d->groups, plain, d->kernel[2], d->dilation[2]), t))
        return false;
    p->block = BLOCK;
    t->halves = d->w_dtype == SONDE_DTYPE_F32;
    if (t->halves && !sn_conv_tiles_in_halves(t))
        return false;
    if (d->n <= 0 || d->out[1] <= 0 || d->out[2] <= 0) { /* lines are at least one pixel long */
        p->lines = (sn_lines){0};
        return true;
    }
    t->f16 = d->f16 && d->w_dtype == SONDE_DTYPE_F16 && sn_pack_has_f16_tiles(p->cpu_flags);
    t->split = d->w_dtype == SONDE_DTYPE_F16 && !t->f16;
    const bool two = t->split || t->halves;
    t->kernel_steps = t->steps * (two ? SN_SPLIT_STEPS : 1);
    const int64_t threads = p->threads, want = threads > 1 ? 4 * threads : 1;
    const int64_t images = sn_max(d->n, 1);
    /* Weights that the cache cannot hold come once for every part: then parts are larger. */
    const int64_t weights = t->b.groups * t->b.out_blocks * t->block_bytes;
    const int64_t image = d->in[1] * d->in[2] * d->c * (int64_t)sizeof(uint16_t);
    const bool held = weights <= (int64_t)(l2_bytes / 4);
    const int64_t copy_bytes = held ? COPY_BYTES : sn_max((int64_t)(l2_bytes / 2), COPY_BYTES);
    const sn_lines_request r = {
        .conv = d,
        .x_pixel = x_bytes(d) * (plain ? 1 : BLOCK),
        .channels_bytes = t->pixel * (int64_t)sizeof(uint16_t),
        .merged = t->merged,
        .converted = true,
        .row_multiple = SN_ROWS_TILE,
        .run_end = t->run_steps * SN_ROWS_STEP,
        .budget = sn_max(copy_bytes / t->slabs, 1),
        .want = sn_cut_rows(image, weights, l2_bytes) ? sn_ceil_div(want, images) : 1};
    if (!sn_lines_plan(&p->lines, &r))
        return false;
    t->slab_bytes = part_of_pages(p->lines.bytes);
    t->chunks = sn_ceil_div(t->b.out_blocks, BLOCKS);
    const int64_t units = t->b.groups * t->chunks, parts = images * sn_lines_parts(&p->lines);
    t->chunk_parts =
        parts < want ? sn_unit_parts(units, sn_ceil_div(want, sn_max(parts, 1)), threads) : 1;
    t->ending = sn_ending_of(sn_count(parts, t->chunk_parts, 1, 1), p->threads,
                             sn_min(sn_ceil_div(units, t->chunk_parts), MOST_PIECES));
    const int64_t parts_of_x = two ? 2 : 1;
    const int64_t copy = sn_count(t->slab_bytes, t->slabs, parts_of_x, 1);
    const bool gathers = t->narrow || merges(t);
    const int64_t columns = gathers ? sn_count(ROWS, t->steps, SN_ROWS_STEP, parts_of_x) : 0;
    const int64_t own = merges(t) ? ROWS * BLOCKS * BLOCK * (int64_t)sizeof(float) : 0;
    const int64_t split = sn_count(BLOCKS, t->kernel_steps, SN_ROWS_WEIGHTS, 1);
    if (copy < 0 || columns < 0 || split < 0)
        return false;
    const size_t n = (size_t)p->threads;
    p->copies = sn_carve_each(&p->workspace, n, (size_t)copy);
    p->sums = sn_carve_each(&p->workspace, n, ((ROWS + 1) * BLOCKS + ROWS) * BLOCK * sizeof(float));
    p->offsets = sn_carve_each(&p->workspace, n, 3 * (size_t)t->kernel_steps * sizeof(ptrdiff_t));
    p->columns = sn_carve_each(&p->workspace, n, (size_t)columns);
    p->own = sn_carve_each(&p->workspace, n, (size_t)own);
    p->parts = sn_carve_each(&p->workspace, n, t->split ? (size_t)split : 0);
    p->held = sn_carve_each(&p->workspace, n, sizeof(sn_lines_held));
    return true;
}

/* ------------------------------------------------------------------ lines of x */
enum { SOME = 128 }; /* pixels at a time */

/* What the pixels of a slab are made from. */
typedef struct slab_source {
    const sn_conv_plan *p;
    int64_t plane; /* bytes from a block, or channel, of x to the next */
    int64_t there; /* blocks, or channels, that there are */
    int64_t low;   /* bytes from the high part of x to its low one; 0: there is none */
    const float *gate;
    bool *finite; /* becomes false where it is not, or nobody looked */
    float *top;   /* halves: the largest number so far */
    float scale;  /* halves: what numbers are multiplied by */
} slab_source;

static void take_blocks(const void *arg, uint8_t *to, const uint8_t *from, int64_t n)
{
    const slab_source *s = arg;
    const sn_bf16_pairs t = {
        .a = (const float *)(const void *)from,
        .b = s->there > 1 ? (const float *)(const void *)(from + s->plane) : NULL,
        .gate = s->gate,
        .y = (uint16_t *)(void *)to,
        .rest = s->low ? (uint16_t *)(void *)(to + s->low) : NULL,
        .n = (size_t)n,
        .step = BLOCK,
    };
    s->p->k->bf16_pairs(&t);
}

/* The same of images that are bf16 in memory. */
static void take_halves(const void *arg, uint8_t *to, const uint8_t *from, int64_t n)
{
    const slab_source *s = arg;
    const sn_bf16_pairs t = {
        .a16 = (const uint16_t *)(const void *)from,
        .b16 = s->there > 1 ? (const uint16_t *)(const void *)(from + s->plane) : NULL,
        .gate = s->gate,
        .y = (uint16_t *)(void *)to,
        .n = (size_t)n,
        .step = BLOCK,
    };
    s->p->k->bf16_pairs(&t);
}

/* Pixels of a block in f32, by their factors. */
static const float *gated(float *to, const float *x, const float *gate, int64_t n)
{
    if (!gate)
        return x;
    for (int64_t i = 0; i < n * BLOCK; i++)
        to[i] = x[i] * gate[i % BLOCK];
    return to;
}

/* Halves: how large x is, and then x itself. */
static void look_at_blocks(const void *arg, uint8_t *to, const uint8_t *from, int64_t n)
{
    const slab_source *s = arg;
    (void)to;
    for (int i = 0; i < 2 && i < s->there; i++) {
        const float *x = (const float *)(const void *)(from + i * s->plane);
        if (!s->gate) {
            *s->top = fmaxf(*s->top, s->p->k->f32_rowabs(x, (size_t)(n * BLOCK)));
            continue;
        }
        for (int64_t at = 0; at < n; at += SOME) {
            float wide[SOME * BLOCK];
            const int64_t m = sn_min(SOME, n - at);
            const float *y = gated(wide, x + at * BLOCK, s->gate + i * BLOCK, m);
            *s->top = fmaxf(*s->top, s->p->k->f32_rowabs(y, (size_t)(m * BLOCK)));
        }
    }
}

static void take_both_halves(const void *arg, uint8_t *to, const uint8_t *from, int64_t n)
{
    enum { FEW = 32 };
    const slab_source *s = arg;
    const int64_t most = s->gate ? FEW : n;
    for (int64_t at = 0, m; at < n; at += m, to += m * SN_ROWS_STEP) {
        float wide[2][FEW * BLOCK];
        const float *x[2] = {NULL, NULL};
        m = sn_min(most, n - at);
        for (int i = 0; i < 2 && i < s->there; i++) {
            x[i] = (const float *)(const void *)(from + i * s->plane) + at * BLOCK;
            x[i] = gated(wide[i], x[i], s->gate ? s->gate + i * BLOCK : NULL, m);
        }
        sn_halves_pixels(s->p->k, to, s->low, x[0], x[1], m, s->scale);
    }
}

/* With weights of f16. Where there are products of f16, x becomes that, or is it already; else it
 * is split. */
static void take_f16(const void *arg, uint8_t *to, const uint8_t *from, int64_t n)
{
    enum { FEW = 32, ROW = FEW * BLOCK };
    const slab_source *s = arg;
    const sn_kernels *k = s->p->k;
    const bool f16 = s->p->t.f16, stored = s->p->d.x_half != 0;
    const int64_t pixel = BLOCK * (stored ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float));
    for (int64_t at = 0, m; at < n; at += m, to += m * SN_ROWS_STEP) {
        float wide[2][ROW];
        uint16_t halves[2][ROW];
        m = sn_min(FEW, n - at);
        sn_bf16_pairs t = {.y = (uint16_t *)(void *)to,
                           .rest = s->low ? (uint16_t *)(void *)(to + s->low) : NULL,
                           .n = (size_t)m,
                           .step = BLOCK};
        for (int i = 0; i < 2 && i < s->there; i++) {
            const uint8_t *block = from + i * s->plane + at * pixel;
            const uint16_t *ready = (const uint16_t *)(const void *)block;
            const float *gate = s->gate ? s->gate + i * BLOCK : NULL;
            const float *x = (const float *)(const void *)block;
            if (stored && (gate || !f16)) {
                k->f16_load(wide[i], ready, (size_t)(m * BLOCK));
                x = wide[i];
            }
            if (!stored || gate || !f16)
                x = gated(wide[i], x, gate, m);
            if (f16 && (!stored || gate)) {
                k->f16_store(halves[i], x, (size_t)(m * BLOCK));
                ready = halves[i];
            }
            *(i ? &t.b16 : &t.a16) = f16 ? ready : NULL;
            *(i ? &t.b : &t.a) = f16 ? NULL : x;
        }
        k->bf16_pairs(&t);
    }
}

/* Channels that lie apart become pixels. */
static void join_channels(uint16_t *y, uint16_t lanes[BLOCK][SOME], int64_t pixel, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < pixel; c++)
            y[i * pixel + c] = lanes[c][i];
}

/* … in f16. */
static void take_f16_channels(const slab_source *s, uint8_t *to, const uint8_t *from, int64_t n)
{
    const int64_t pixel = s->p->t.pixel;
    const bool stored = s->p->d.x_half != 0;
    uint16_t lanes[BLOCK][SOME];
    memset(lanes, 0, sizeof lanes);
    *s->finite &= pixel == SN_JOIN_CHANNELS;
    for (int64_t at = 0; at < n; at += SOME, to += SOME * pixel * (int64_t)sizeof(uint16_t)) {
        const int64_t m = sn_min(SOME, n - at);
        const uint16_t *x[SN_JOIN_CHANNELS] = {NULL};
        for (int64_t c = 0; c < s->there; c++) {
            const uint8_t *channel = from + c * s->plane;
            const uint16_t *ready = (const uint16_t *)(const void *)channel + at;
            if (!stored)
                s->p->k->f16_store(lanes[c], (const float *)(const void *)channel + at, (size_t)m);
            else if (pixel != SN_JOIN_CHANNELS)
                memcpy(lanes[c], ready, (size_t)m * sizeof *ready);
            if (c < SN_JOIN_CHANNELS)
                x[c] = stored ? ready : lanes[c];
        }
        if (pixel == SN_JOIN_CHANNELS)
            *s->finite &= s->p->k->f16_join((uint16_t *)(void *)to, x, (size_t)m);
        else
            join_channels((uint16_t *)(void *)to, lanes, pixel, m);
    }
}

/* Pixels at … at+m-1 of a channel in f32; `wide` has room for them where they are f16. */
static const float *channel_at(const slab_source *s, const uint8_t *from, int64_t c, int64_t at,
                               int64_t m, float *wide)
{
    const uint8_t *channel = from + c * s->plane;
    if (!s->p->d.x_half)
        return (const float *)(const void *)channel + at;
    s->p->k->f16_load(wide, (const uint16_t *)(const void *)channel + at, (size_t)m);
    return wide;
}

static void take_channels(const void *arg, uint8_t *to, const uint8_t *from, int64_t n)
{
    const slab_source *s = arg;
    const int64_t pixel = s->p->t.pixel;
    const bool stored = s->p->d.x_half != 0;
    if (pixel == SN_JOIN_CHANNELS && !s->low && !s->p->t.f16) { /* three channels, most often */
        const float *x[SN_JOIN_CHANNELS] = {NULL};
        for (int64_t at = 0, m; at < n; at += m, to += m * SN_JOIN_CHANNELS * 2) {
            float wide[SN_JOIN_CHANNELS][SOME];
            m = stored ? sn_min(SOME, n - at) : n;
            for (int64_t c = 0; c < s->there; c++)
                x[c] = channel_at(s, from, c, at, m, wide[c]);
            *s->finite &= s->p->k->bf16_join((uint16_t *)(void *)to, x, (size_t)m);
        }
        return;
    }
    if (s->p->t.f16) {
        take_f16_channels(s, to, from, n);
        return;
    }
    *s->finite = false;
    uint16_t high[BLOCK][SOME], low[BLOCK][SOME]; /* of whole steps */
    for (int64_t c = s->there; c < pixel; c++) {
        memset(high[c], 0, sizeof high[c]);
        memset(low[c], 0, sizeof low[c]);
    }
    for (int64_t at = 0; at < n; at += SOME, to += SOME * pixel * (int64_t)sizeof(uint16_t)) {
        const int64_t m = sn_min(SOME, n - at);
        for (int64_t c = 0; c < s->there; c++) {
            float wide[SOME];
            const float *x = channel_at(s, from, c, at, m, wide);
            sn_tiles_round(s->p->k, high[c], s->low ? low[c] : NULL, x, (size_t)m);
        }
        join_channels((uint16_t *)(void *)to, high, pixel, m);
        if (s->low)
            join_channels((uint16_t *)(void *)(to + s->low), low, pixel, m);
    }
}

/* ------------------------------------------------------------------ a task */
typedef struct tiles_strip {
    const sn_conv_call *c;
    int64_t image, out_pixels; /* of a plane of y */
    int64_t part_index;
    sn_lines_part part;
    sn_lines_held *held; /* what x has: of a part, the lines of a group */
    const float *gate;   /* of the image; NULL: none */
    uint8_t *x, *columns;
    float *sums, *start, *wide; /* wide: of z */
    float *own;                 /* sums of one of merged groups */
    ptrdiff_t *at, *in_columns; /* where a row reads its steps: in x, in `columns` */
    ptrdiff_t *w_at;            /* halves: where the steps of weights are */
    uint8_t *w;                 /* a unit's weights, split */
} tiles_strip;

static tiles_strip strip_of(const sn_conv_call *c, int64_t out_pixels, int worker)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_tiles *t = &p->t;
    const size_t i = (size_t)worker;
    tiles_strip s = {.c = c,
                     .out_pixels = out_pixels,
                     .held = sn_pieces_at(c->workspace, p->held, i),
                     .x = sn_pieces_at(c->workspace, p->copies, i),
                     .columns = sn_pieces_at(c->workspace, p->columns, i),
                     .own = sn_pieces_at(c->workspace, p->own, i),
                     .sums = sn_pieces_at(c->workspace, p->sums, i),
                     .at = sn_pieces_at(c->workspace, p->offsets, i),
                     .w = sn_pieces_at(c->workspace, p->parts, i)};
    s.start = s.sums + ROWS * BLOCKS * BLOCK;
    s.wide = s.start + BLOCKS * BLOCK;
    s.in_columns = s.at + t->kernel_steps;
    s.w_at = s.in_columns + t->kernel_steps;
    const int64_t each = t->kernel_steps / t->steps;
    for (int64_t k = 0; k < t->kernel_steps; k++) {
        const int64_t step = k / each, run = step / t->run_steps;
        const bool low = t->halves ? sn_halves_low_x(k) : k % each == SN_SPLIT_STEPS - 1;
        s.at[k] = run / t->runs * t->slab_bytes + sn_lines_run_at(&p->lines, run % t->runs) +
                  step % t->run_steps * SN_ROWS_STEP + (low ? t->slabs * t->slab_bytes : 0);
        s.in_columns[k] = (step + (low ? t->steps : 0)) * SN_ROWS_STEP;
        s.w_at[k] = (2 * step + sn_halves_low_w(k)) * SN_ROWS_WEIGHTS;
    }
    return s;
}

/* The lines of x that the part reads of a group's channels. */
static void prepare(tiles_strip *s, int64_t group)
{
    const sn_conv_call *c = s->c;
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_tiles *t = &p->t;
    const bool plain = d->in_block == 0;
    const int64_t pixels = d->in[1] * d->in[2], all = plain ? d->c : sn_ceil_div(d->c, BLOCK);
    const int64_t unit = plain ? 1 : BLOCK, first = plain ? 0 : group * t->b.in_blocks;
    const int64_t n = plain ? d->c : sn_min(t->b.in_blocks, all - first);
    const int64_t per_slab = plain ? n : NUMBERS / BLOCK;
    s->held->finite = true;
    /* Steps of narrow pixels read lines that a short part does not have. */
    if (t->narrow && (s->part.lines < p->lines.lines || s->part.columns < p->lines.columns))
        memset(s->x, 0, (size_t)t->slab_bytes);
    float top = 0, scale = 1;
    for (int64_t i = t->halves ? -t->slabs : 0; i < t->slabs; i++) { /* once before, to look */
        const bool looks = i < 0;
        const int64_t slab = looks ? i + t->slabs : i, from = slab * per_slab;
        uint8_t *to = s->x + slab * t->slab_bytes;
        if (i == 0 && t->halves)
            scale = sn_halves_scale(top, &s->held->back);
        const slab_source source = {
            .p = p,
            .plane = pixels * unit * x_bytes(d),
            .there = n - from,
            .low = t->split || t->halves ? t->slabs * t->slab_bytes : 0,
            .gate = s->gate ? s->gate + (first + from) * BLOCK : NULL,
            .finite = &s->held->finite,
            .top = &top,
            .scale = scale,
        };
        if (source.low && !looks) /* outside of the image, too */
            memset(to + source.low, 0, (size_t)t->slab_bytes);
        if (source.there <= 0) { /* a last group that is smaller */
            memset(to, 0, (size_t)t->slab_bytes);
            continue;
        }
        const int64_t at = (s->image * all + first + from) * source.plane;
        const sn_lines_image image = {.pixels = (const uint8_t *)c->x + at,
                                      .convert = looks                           ? look_at_blocks
                                                 : t->halves                     ? take_both_halves
                                                 : plain                         ? take_channels
                                                 : d->w_dtype == SONDE_DTYPE_F16 ? take_f16
                                                 : d->x_half                     ? take_halves
                                                                                 : take_blocks,
                                      .arg = &source};
        sn_lines_prepare(&p->lines, &s->part, &image, to);
    }
    const sn_lines *l = &p->lines;
    const int64_t copied = l->phases * l->high * l->width * l->pixel; /* what is behind is read */
    memset(s->x + copied, 0, (size_t)(t->narrow ? t->slab_bytes - copied : 0));
}

/* Rows v … v+rows-1 with nothing but what they read, and zeros. */
static void gather(const tiles_strip *s, int64_t v, int64_t rows)
{
    const sn_conv_plan *p = s->c->p;
    const sn_conv_tiles *t = &p->t;
    const int64_t numbers = (t->merged ? p->d.kernel[2] : 1) * t->pixel;
    const int64_t run = t->run_steps * SN_ROWS_STEP, parts = t->split ? 2 : 1;
    memset(s->columns, 0, ROWS * (size_t)(parts * t->steps) * SN_ROWS_STEP);
    for (int64_t i = 0; i < rows * parts * t->runs; i++) {
        const int64_t r = i / t->runs / parts, part = i / t->runs % parts, k = i % t->runs;
        memcpy(s->columns + i * run,
               s->x + part * t->slab_bytes + (v + r) * p->lines.row + sn_lines_run_at(&p->lines, k),
               (size_t)numbers * sizeof(uint16_t));
    }
}

static bool has_nan(const tiles_strip *s, int64_t blocks, int64_t rows)
{
    float most = 0; /* which a NaN wins */
    for (int64_t q = 0; q < blocks && !isnan(most); q++)
        most = s->c->p->k->f32_rowmax(s->sums + q * ROWS * BLOCK, (size_t)(rows * BLOCK));
    return isnan(most);
}

/* A chunk of output blocks: of which group, from which block of it on, how many. */
typedef struct tiles_unit {
    int64_t group, q, blocks;
    const uint8_t *w;
} tiles_unit;

static tiles_unit unit_of(const sn_conv_call *c, int64_t index)
{
    const sn_conv_tiles *t = &c->p->t;
    tiles_unit u = {.group = index / t->chunks, .q = index % t->chunks * BLOCKS};
    const int64_t left = sn_ceil_div(c->p->d.oc, BLOCK) - u.group * t->b.out_blocks;
    u.blocks = sn_min(BLOCKS, sn_min(t->b.out_blocks, left) - u.q);
    u.w = (const uint8_t *)c->w + (u.group * t->b.out_blocks + u.q) * t->block_bytes;
    return u;
}

/* Sums of pixels of one block of channels to element `to` of y; `lanes` of them are real. */
static void store_block(const tiles_strip *s, float *sums, int64_t to, int64_t pixels,
                        int64_t lanes)
{
    const sn_conv_call *c = s->c;
    const sn_conv_plan *p = c->p;
    const sn_kernels *k = p->k;
    const size_t n = (size_t)(pixels * BLOCK), even = n / NUMBERS * NUMBERS;
    const uint16_t *halves = c->z && p->d.z_half ? (const uint16_t *)(const void *)c->z + to : NULL;
    const bool f16 = p->d.y_half == SONDE_DTYPE_F16;
    if (p->d.y_half && !c->z && !p->clear) {
        sn_act_store_half(&p->d.act, k, p->d.y_half, (uint16_t *)(void *)c->y + to, sums, n);
        return;
    }
    if (p->d.y_half && halves && !p->post && !p->clear) {
        (f16 ? k->f16_add_clip : k->bf16_add_clip)((uint16_t *)(void *)c->y + to, sums, halves, n,
                                                   p->lo, p->hi);
        return;
    }
    const float *z = c->z && !halves ? c->z + to : NULL;
    if (halves) {
        sn_halves_load(k, p->d.z_half, s->wide, halves, n);
        z = s->wide;
    }
    float *y = p->d.y_half ? sums : c->y + to;
    k->f32_add_clip(y, sums, z, n, p->lo, p->hi);
    if (p->post || p->clear)
        sn_conv_finish(p, y, pixels, lanes);
    if (!p->d.y_half)
        return;
    uint16_t *half = (uint16_t *)(void *)c->y + to;
    if (f16) {
        k->f16_store(half, y, n);
        return;
    }
    sn_tiles_round(k, half, NULL, y, even); /* whole steps, as it fills them up */
    k->bf16_store(half + even, y + even, n - even);
}

/* Sums of rows v … v+n-1 to where they belong; rows between lines are no results. */
static void store_rows(const tiles_strip *s, const tiles_unit *u, int64_t v, int64_t n)
{
    const sn_conv_call *c = s->c;
    const sn_conv_plan *p = c->p;
    const sn_conv_blocks *b = &p->t.b;
    const int64_t all = sn_ceil_div(p->d.oc, BLOCK), first = u->group * b->out_blocks + u->q;
    const int64_t out = sn_min(b->out, p->d.oc - u->group * b->out);
    for (int64_t done = 0, at; done < n;) {
        const int64_t there = sn_lines_results(&p->lines, &s->part, v + done, n - done, &at);
        if (there == 0) {
            done += at;
            continue;
        }
        for (int64_t q = 0; q < u->blocks; q++) {
            const int64_t to = ((s->image * all + first + q) * s->out_pixels + at) * BLOCK;
            store_block(s, s->sums + (q * ROWS + done) * BLOCK, to, there,
                        out - (u->q + q) * BLOCK);
        }
        done += there;
    }
}

/* Halves: sums as they are, with the bias. */
static void scale_back(const tiles_strip *s, const tiles_unit *u, float *to, int64_t rows)
{
    const sn_conv_tiles *t = &s->c->p->t;
    for (int64_t q = 0; q < u->blocks; q++) {
        const uint8_t *tail = u->w + (q + 1) * t->block_bytes - BLOCK * (int64_t)sizeof(float);
        float *sums = to + q * ROWS * BLOCK;
        s->c->p->k->f32_rescale(&(sn_f32_rescale){.y = sums,
                                                  .x = sums,
                                                  .by_row = &s->held->back,
                                                  .by = (const float *)(const void *)tail,
                                                  .start = s->start + q * BLOCK,
                                                  .rows = (size_t)rows,
                                                  .n = BLOCK,
                                                  .y_row = BLOCK,
                                                  .x_row = BLOCK});
    }
}

/* Rows v … v+rows-1 with nothing but the channels from … to-1 of merged groups, and zeros. */
static void gather_channels(const tiles_strip *s, int64_t v, int64_t rows, int64_t from, int64_t to)
{
    const sn_conv_plan *p = s->c->p;
    const sn_conv_tiles *t = &p->t;
    const int64_t parts = t->split || t->halves ? 2 : 1, size = (int64_t)sizeof(uint16_t);
    memset(s->columns, 0, (size_t)(rows * parts * t->steps) * SN_ROWS_STEP);
    for (int64_t next; from < to; from = next) {
        const int64_t slab = from / NUMBERS, at = from % NUMBERS * size;
        next = sn_min((slab + 1) * NUMBERS, to);
        for (int64_t i = 0; i < rows * parts * t->runs; i++) {
            const int64_t r = i / t->runs / parts, part = i / t->runs % parts, k = i % t->runs;
            const uint8_t *x = s->x + (part * t->slabs + slab) * t->slab_bytes +
                               (v + r) * p->lines.row + sn_lines_run_at(&p->lines, k);
            const int64_t step = (r * parts + part) * t->steps + slab * t->runs + k;
            memcpy(s->columns + step * SN_ROWS_STEP + at, x + at, (size_t)((next - from) * size));
        }
    }
}

/* Sums of merged groups that may have met each other's NaN, of `lanes` channels: each group's
 * once more, without the others. `tiles` is how all of them were computed. */
static void separate(const tiles_strip *s, const tiles_unit *u, const sn_tile_rows *tiles,
                     int64_t v, int64_t rows, int64_t lanes)
{
    const sn_conv_plan *p = s->c->p;
    const sn_conv_tiles *t = &p->t;
    const int64_t all = u->q * BLOCK + lanes;
    sn_tile_rows one = *tiles;
    one.x = s->columns;
    one.at = s->in_columns;
    one.x_row = (ptrdiff_t)((t->split || t->halves ? 2 : 1) * t->steps * SN_ROWS_STEP);
    one.y = s->own;
    for (int64_t lane = u->q * BLOCK, next; lane < all; lane = next) {
        const int64_t group = lane / t->b.group_out;
        next = sn_min((group + 1) * t->b.group_out, all);
        gather_channels(s, v, rows, group * t->b.group_in, (group + 1) * t->b.group_in);
        (t->f16 || t->halves ? p->k->f16_rows : p->k->bf16_rows)(&one);
        if (t->halves)
            scale_back(s, u, s->own, rows);
        for (int64_t l = lane - u->q * BLOCK; l < next - u->q * BLOCK; l++)
            for (int64_t r = 0; r < rows; r++) {
                const int64_t at = (l / BLOCK * ROWS + r) * BLOCK + l % BLOCK;
                s->sums[at] = s->own[at];
            }
    }
}

/* A number that is not finite makes all sums NaN but those of its own group, to which not both the
 * first and the last channel belong; or they do, and then it is the only group here. */
static bool has_foreign_nan(const tiles_strip *s, int64_t rows, int64_t lanes)
{
    const float *first = s->sums;
    const float *last = s->sums + (lanes - 1) / BLOCK * ROWS * BLOCK + (lanes - 1) % BLOCK;
    float a = 0, b = 0, c = 0, e = 0; /* sums that do not wait for each other */
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, first += 4 * BLOCK, last += 4 * BLOCK) {
        a += first[0] + last[0];
        b += first[BLOCK] + last[BLOCK];
        c += first[2 * BLOCK] + last[2 * BLOCK];
        e += first[3 * BLOCK] + last[3 * BLOCK];
    }
    for (; r < rows; r++, first += BLOCK, last += BLOCK)
        a += *first + *last;
    return isnan(a + b + c + e); /* infinities of two signs, too */
}

/* All rows of the part, times a unit. On the way, the next unit's weights come into the cache. */
static void compute(const tiles_strip *s, const tiles_unit *u, const tiles_unit *next)
{
    const sn_conv_call *c = s->c;
    const sn_conv_plan *p = c->p;
    const sn_conv_tiles *t = &p->t;
    const int64_t first = u->group * t->b.out + u->q * BLOCK;
    const int64_t lanes =
        sn_min(u->blocks * BLOCK, sn_min(t->b.out - u->q * BLOCK, p->d.oc - first));
    static const float zeros[BLOCKS * BLOCK];
    memset(s->start, 0, BLOCKS * BLOCK * sizeof(float));
    if (c->bias)
        memcpy(s->start, c->bias + first, (size_t)lanes * sizeof(float));
    if (t->split)
        sn_tiles_split_weights(p->k, s->w, u->w, u->blocks * t->steps);
    sn_tile_rows tiles = {
        .at = s->at,
        .w_at = t->halves ? s->w_at : NULL,
        .w = t->split ? s->w : u->w,
        .start = t->halves ? zeros : s->start,
        .y = s->sums,
        .blocks = (size_t)u->blocks,
        .steps = (size_t)t->kernel_steps,
        .x_row = (ptrdiff_t)p->lines.row,
        .w_q = (ptrdiff_t)(t->halves ? t->block_bytes : t->kernel_steps * SN_ROWS_WEIGHTS),
        .y_row = BLOCK,
        .y_q = ROWS * BLOCK,
        .again = s->part.rows > SN_AGAIN_ROWS};
    const int64_t shares = sn_ceil_div(s->part.rows, ROWS);
    for (int64_t v = 0; v < s->part.rows; v += ROWS) {
        const int64_t rows = sn_min(ROWS, s->part.rows - v);
        tiles.rows = (size_t)rows;
        tiles.x = s->x + v * p->lines.row;
        if (next && next->blocks > 0) {
            const int64_t share = sn_ceil_div(next->blocks * t->block_bytes, shares);
            tiles.ahead = next->w + v / ROWS * share;
            tiles.ahead_bytes = (size_t)share;
        }
        (t->f16 || t->halves ? p->k->f16_rows : p->k->bf16_rows)(&tiles);
        if (t->halves)
            scale_back(s, u, s->sums, rows);
        if (t->narrow && !s->held->finite && has_nan(s, u->blocks, rows)) {
            sn_tile_rows exact = tiles;
            gather(s, v, rows);
            exact.x = s->columns;
            exact.at = s->in_columns;
            exact.x_row = (ptrdiff_t)((t->split ? 2 : 1) * t->steps * SN_ROWS_STEP);
            (t->f16 ? p->k->f16_rows : p->k->bf16_rows)(&exact);
        }
        if (merges(t) && lanes > 0 && has_foreign_nan(s, rows, lanes))
            separate(s, u, &tiles, v, rows, lanes);
        store_rows(s, u, v, rows);
    }
}

/* Units from … to-1 of the part. */
static void compute_units(tiles_strip *s, int64_t from, int64_t to)
{
    tiles_unit next = unit_of(s->c, from);
    for (int64_t i = from; i < to; i++) {
        const tiles_unit u = next;
        if (i + 1 < to)
            next = unit_of(s->c, i + 1);
        if (u.blocks <= 0)
            continue;
        if (!sn_lines_holds(s->held, s->image, s->part_index, u.group))
            prepare(s, u.group);
        compute(s, &u, i + 1 < to ? &next : NULL);
    }
}

typedef struct tiles_job {
    const sn_conv_call *c;
    const sn_conv_gates *gates;
} tiles_job;

static void task(void *arg, size_t index, int worker)
{
    const tiles_job *j = arg;
    const sn_conv_plan *p = j->c->p;
    const size_t chunk_parts = (size_t)p->t.chunk_parts, parts = (size_t)sn_lines_parts(&p->lines);
    const size_t units = (size_t)(p->t.b.groups * p->t.chunks);
    size_t piece, pieces;
    index = sn_ending_task(&p->t.ending, index, &piece, &pieces);
    const size_t cp = index % chunk_parts, place = index / chunk_parts;
    const size_t from = sn_split(units, chunk_parts, cp);
    const size_t n = sn_split(units, chunk_parts, cp + 1) - from;
    tiles_strip s = strip_of(j->c, p->d.out[1] * p->d.out[2], worker);
    s.image = (int64_t)(place / parts);
    s.part_index = (int64_t)(place % parts);
    s.part = sn_lines_part_of(&p->lines, s.part_index);
    s.gate = j->gates ? j->gates->of + s.image * j->gates->image : NULL;
    compute_units(&s, (int64_t)(from + sn_split(n, pieces, piece)),
                  (int64_t)(from + sn_split(n, pieces, piece + 1)));
}

/* Nothing has been copied yet, by any worker. */
static void hold_nothing(const sn_conv_call *c)
{
    for (int i = 0; i < c->p->threads; i++) {
        sn_lines_held *h = sn_pieces_at(c->workspace, c->p->held, (size_t)i);
        *h = (sn_lines_held){.part = -1};
    }
}

void sn_conv_tiles_run(const sn_conv_call *c, const sn_conv_gates *gates, sn_pool *pool)
{
    const sn_conv_plan *p = c->p;
    tiles_job j = {c, gates};
    const sn_thread_hook hook = sn_tiles_hook(p->k);
    if (sn_max(p->d.n, 0) * sn_lines_parts(&p->lines) <= 0)
        return;
    hold_nothing(c);
    sn_pool_run_hooked(pool, sn_ending_count(&p->t.ending), task, &j, &hook);
}

void sn_conv_tiles_band(const sn_conv_call *c, int64_t pixels)
{
    const sn_conv_plan *p = c->p;
    if (sn_lines_parts(&p->lines) <= 0)
        return;
    tiles_strip s = strip_of(c, pixels, 0);
    s.held->part = -1; /* of another band */
    for (int64_t at = 0; at < pixels; at += p->lines.lines, s.part_index++) {
        const int64_t n = sn_min(p->lines.lines, pixels - at);
        s.part = (sn_lines_part){.y = at, .lines = n, .columns = 1, .rows = n};
        compute_units(&s, 0, p->t.b.groups * p->t.chunks);
    }
}
