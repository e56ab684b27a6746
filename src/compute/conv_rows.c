/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of plain tensors in bf16 by tiles (kernels/signatures.h, bf16_rows), one to three
 * spatial dims, any groups. Channels of x are rounded and joined in pairs first, once, with the
 * borders of the image:
 *
 *   [image][group][pair of channels][pixel][2]
 *
 * A task is a segment of output pixels of one image and group. It gathers what they read into
 * panels of 16 pixels, which are in the order of tiles as pairs are,
 *
 *   [panel][tap][pair][16 pixels][2]
 *
 * and multiplies rows of weights with these. So the weights are the left side, and results lie as
 * they do in y. */
#include "compute/conv_rows.h"

#include <string.h>

#include "compute/gemm.h"
#include "compute/packs.h"
#include "compute/split.h"
#include "compute/tiles.h"

enum {
    ROWS = 2 * SN_ROWS_TILE, /* at a time */
    PANELS = 8,              /* at a time */
    LANES = SN_ROWS_TILE,    /* pixels of a panel */
    WIDE = PANELS * LANES,
    STEP_PAIRS = SN_STEP_HALVES / 2,
    COLUMN_BYTES = 256 << 10, /* of the panels of a segment */
    PAIR_BYTES = 8 << 20,     /* of images whose channels are joined at a time, if they have less */
    WAYS = 1024               /* bytes: planes at such distances share lines of the cache */
};

unsigned sn_conv_rows_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                              uint32_t cpu_flags)
{
    sn_conv_rows r;
    if (dtype != SONDE_DTYPE_BF16 || !sn_conv_rows_of(w, rank, groups, &r))
        return SN_PACK_NONE;
    return sn_pack_find(SN_WEIGHTS_CONV_ROWS, dtype,
                        &sn_kernels_get(cpu_flags)->bf16_rows_geometry);
}

/* ------------------------------------------------------------------ plan */
/* Panels of a segment: weights that the cache cannot hold come once for each, then they are long.
 */
static int64_t panels_of(const sn_conv_plan *p, size_t l2_bytes)
{
    const sn_conv_rows *r = &p->r;
    const int64_t all = sn_max(sn_ceil_div(p->cols, LANES), 1), l2 = (int64_t)l2_bytes;
    const bool held = r->group_rows * r->row_bytes <= l2 / 4;
    const int64_t budget = held ? COLUMN_BYTES : sn_max(l2 / 2, COLUMN_BYTES);
    int64_t panels = sn_min(sn_max(budget / (r->steps * SN_ROWS_WEIGHTS), PANELS), all);
    const int64_t wanted = p->threads > 1 ? 4 * (int64_t)p->threads : 1;
    const int64_t outer = sn_max(r->images * p->d.groups, 1);
    while (panels > 2 && outer * sn_ceil_div(all, panels) < wanted)
        panels = sn_ceil_div(panels, 2);
    return sn_ceil_div(all, sn_ceil_div(all, panels)); /* even segments */
}

bool sn_conv_rows_plan(sn_conv_plan *p, size_t l2_bytes)
{
    const sn_conv_desc *d = &p->d;
    const int64_t w[5] = {d->oc, d->c / d->groups, d->kernel[0], d->kernel[1], d->kernel[2]};
    sn_conv_rows *r = &p->r;
    if (!sn_conv_rows_of(w, 5, d->groups, r))
        return false;
    p->block = LANES;
    p->cols = sn_count(d->out[0], d->out[1], d->out[2], 1);
    int64_t volume = 1;
    for (int i = 0; i < 3; i++) { /* what windows cover */
        const int64_t reach = sn_count(sn_max(d->out[i] - 1, 0), d->stride[i], 1, 1);
        const int64_t window = sn_count(d->kernel[i] - 1, d->dilation[i], 1, 1);
        if (reach < 0 || window < 0 || reach > INT64_MAX / 4 || window > INT64_MAX / 4)
            return false;
        r->extent[i] = reach + window + 1;
        volume = sn_count(volume, r->extent[i], 1, 1);
    }
    if (p->cols < 0 || volume < 0 || volume > INT64_MAX / 64)
        return false;
    r->plane = sn_ceil_div(volume, LANES) * LANES;
    if (r->plane * (int64_t)sizeof(uint32_t) % WAYS == 0)
        r->plane += LANES;
    const int64_t image = sn_count(d->groups, r->pairs, r->plane, sizeof(uint32_t));
    if (image < 0)
        return false;
    r->images = sn_max(sn_min(PAIR_BYTES / sn_max(image, 1), d->n), 1);
    const int64_t panels = panels_of(p, l2_bytes);
    p->seg = panels * LANES;
    p->segs = sn_ceil_div(p->cols, p->seg);
    p->items = (size_t)(r->images * d->groups * p->segs);
    const size_t n = (size_t)p->threads;
    const int64_t columns = sn_count(panels, r->steps, SN_ROWS_WEIGHTS, 1);
    if (columns < 0)
        return false;
    p->copies = sn_carve_each(&p->workspace, (size_t)r->images, (size_t)image);
    p->columns = sn_carve_each(&p->workspace, n, (size_t)columns);
    p->sums = sn_carve_each(&p->workspace, n, (ROWS + 1) * WIDE * sizeof(float));
    p->offsets = sn_carve_each(&p->workspace, 1, (size_t)r->steps * sizeof(ptrdiff_t));
    return !p->workspace.overflow;
}

/* ------------------------------------------------------------------ pairs of channels */
typedef struct rows_call {
    const sn_conv_call *c;
    int64_t first; /* image of those that are done together */
    const ptrdiff_t *at;
} rows_call;

/* A line of the copy: n of its pixels come from channels a and b, if there is one, behind `before`
 * that are outside. */
static void join_line(const sn_conv_plan *p, uint32_t *to, const float *a, const float *b,
                      int64_t before, int64_t n)
{
    const int64_t line = p->r.extent[2];
    memset(to, 0, (size_t)before * sizeof *to);
    p->k->bf16_zip((uint16_t *)(to + before), a, b, (size_t)n);
    memset(to + before + n, 0, (size_t)(line - before - n) * sizeof *to);
}

/* A pair of channels. */
static void join_task(void *arg, size_t index, int worker)
{
    const rows_call *j = arg;
    const sn_conv_plan *p = j->c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_rows *r = &p->r;
    const int64_t channels = d->c / d->groups, volume = d->in[0] * d->in[1] * d->in[2];
    const int64_t all = d->groups * r->pairs, image = (int64_t)index / all;
    const int64_t pair = (int64_t)index % all, channel = pair % r->pairs * 2;
    const float *a =
        j->c->x + ((j->first + image) * d->c + pair / r->pairs * channels + channel) * volume;
    const float *b = channel + 1 < channels ? a + volume : NULL;
    uint32_t *to = sn_pieces_at(j->c->workspace, p->copies, (size_t)image);
    to += pair * r->plane;
    (void)worker;
    const int64_t before = sn_min(d->pad[2], r->extent[2]);
    const int64_t n = sn_max(sn_min(d->in[2], r->extent[2] - before), 0);
    for (int64_t z = -d->pad[0]; z < r->extent[0] - d->pad[0]; z++)
        for (int64_t y = -d->pad[1]; y < r->extent[1] - d->pad[1]; y++, to += r->extent[2]) {
            const bool inside = z >= 0 && z < d->in[0] && y >= 0 && y < d->in[1];
            const int64_t at = (z * d->in[1] + y) * d->in[2];
            join_line(p, to, inside ? a + at : a, inside && b ? b + at : NULL, inside ? before : 0,
                      inside ? n : 0);
        }
}

/* ------------------------------------------------------------------ columns */
/* Where the windows of a panel's pixels start in a plane of the copy. Lanes behind the last pixel
 * read what the first one does, and are no results. */
typedef struct corners {
    int64_t at[LANES];
    bool neighbours; /* they lie side by side */
} corners;

static corners corners_of(const sn_conv_plan *p, int64_t first, int64_t n)
{
    const sn_conv_desc *d = &p->d;
    const int64_t *extent = p->r.extent;
    int64_t x = first % d->out[2], y = first / d->out[2] % d->out[1];
    int64_t z = first / d->out[2] / d->out[1];
    corners c = {.neighbours = n == LANES};
    for (int64_t l = 0; l < LANES; l++) {
        c.at[l] = l == 0 || l < n ? (z * d->stride[0] * extent[1] + y * d->stride[1]) * extent[2] +
                                        x * d->stride[2]
                                  : c.at[0];
        c.neighbours &= c.at[l] == c.at[0] + l;
        if (++x < d->out[2])
            continue;
        x = 0;
        if (++y < d->out[1])
            continue;
        y = 0;
        z++;
    }
    return c;
}

/* One tap of all pairs, which are a plane apart, to vectors of 16 pixels. */
static void take_tap(const sn_conv_rows *r, const corners *c, const uint32_t *from, uint32_t *to)
{
    if (c->neighbours) {
        from += c->at[0];
        for (int64_t i = 0; i < r->pairs; i++, from += r->plane, to += LANES)
            memcpy(to, from, LANES * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < r->pairs; i++, from += r->plane, to += LANES)
        for (int64_t l = 0; l < LANES; l++)
            to[l] = from[c->at[l]];
}

/* One panel: n pixels from `first` on. */
static void gather(const sn_conv_plan *p, const uint32_t *x, int64_t first, int64_t n, uint32_t *to)
{
    const sn_conv_desc *d = &p->d;
    const sn_conv_rows *r = &p->r;
    const corners c = corners_of(p, first, n);
    for (int64_t z = 0; z < d->kernel[0]; z++)
        for (int64_t y = 0; y < d->kernel[1]; y++) {
            const uint32_t *line =
                x + (z * d->dilation[0] * r->extent[1] + y * d->dilation[1]) * r->extent[2];
            for (int64_t k = 0; k < d->kernel[2]; k++, to += r->pairs * LANES)
                take_tap(r, &c, line + k * d->dilation[2], to);
        }
    memset(to, 0, (size_t)((r->steps * STEP_PAIRS - r->taps * r->pairs) * LANES) * sizeof *to);
}

/* ------------------------------------------------------------------ a task */
/* n sums of output channel `channel` of an image to pixels `first` … of y. */
static void store_row(const rows_call *j, float *sums, int64_t image, int64_t channel,
                      int64_t first, int64_t n)
{
    const sn_conv_plan *p = j->c->p;
    const int64_t at = (image * p->d.oc + channel) * p->cols + first;
    float *y = j->c->y + at;
    if (j->c->bias)
        p->k->f32_add(sums, sums, j->c->bias + channel, (size_t)n, SN_BINARY_VS);
    p->k->f32_add_clip(y, sums, j->c->z ? j->c->z + at : NULL, (size_t)n, p->lo, p->hi);
    if (p->post)
        sn_act_apply(&p->d.act, p->k, y, (size_t)n);
}

static void task(void *arg, size_t index, int worker)
{
    const rows_call *j = arg;
    const sn_conv_plan *p = j->c->p;
    const sn_conv_desc *d = &p->d;
    const sn_conv_rows *r = &p->r;
    const int64_t rest = (int64_t)index / p->segs, first = (int64_t)index % p->segs * p->seg;
    const int64_t group = rest % d->groups, image = rest / d->groups;
    const int64_t n = sn_min(p->seg, p->cols - first), rows = d->oc / d->groups;
    const int64_t panel = r->steps * SN_ROWS_WEIGHTS;
    const uint32_t *x = sn_pieces_at(j->c->workspace, p->copies, (size_t)image);
    uint8_t *columns = sn_pieces_at(j->c->workspace, p->columns, (size_t)worker);
    float *sums = sn_pieces_at(j->c->workspace, p->sums, (size_t)worker);
    float *zeros = sums + ROWS * WIDE;
    memset(zeros, 0, WIDE * sizeof *zeros);
    for (int64_t i = 0; i < n; i += LANES)
        gather(p, x + group * r->pairs * r->plane, first + i, sn_min(LANES, n - i),
               (uint32_t *)(void *)(columns + i / LANES * panel));
    const uint8_t *w = (const uint8_t *)j->c->w + group * r->group_rows * r->row_bytes;
    for (int64_t o = 0; o < rows; o += ROWS)
        for (int64_t i = 0; i < n; i += WIDE) {
            const int64_t wide = sn_min(WIDE, n - i), tall = sn_min(ROWS, rows - o);
            const sn_tile_rows t = {.x = w + o * r->row_bytes,
                                    .at = j->at,
                                    .w = columns + i / LANES * panel,
                                    .start = zeros,
                                    .y = sums,
                                    .rows = (size_t)tall,
                                    .blocks = (size_t)sn_ceil_div(wide, LANES),
                                    .steps = (size_t)r->steps,
                                    .x_row = (ptrdiff_t)r->row_bytes,
                                    .w_q = (ptrdiff_t)panel,
                                    .y_row = WIDE,
                                    .y_q = LANES};
            p->k->bf16_rows(&t);
            for (int64_t v = 0; v < tall; v++)
                store_row(j, sums + v * WIDE, j->first + image, group * rows + o + v, first + i,
                          wide);
        }
}

void sn_conv_rows_run(const sn_conv_call *c, sn_pool *pool)
{
    const sn_conv_plan *p = c->p;
    const sn_conv_desc *d = &p->d;
    ptrdiff_t *at = sn_pieces_at(c->workspace, p->offsets, 0);
    for (int64_t s = 0; s < p->r.steps; s++)
        at[s] = (ptrdiff_t)(s * SN_ROWS_STEP);
    const sn_thread_hook hook = sn_tiles_hook(p->k);
    rows_call j = {.c = c, .at = at};
    if (p->cols == 0)
        return;
    for (; j.first < d->n; j.first += p->r.images) {
        const int64_t images = sn_min(p->r.images, d->n - j.first);
        sn_pool_run(pool, (size_t)(images * d->groups * p->r.pairs), join_task, &j);
        sn_pool_run_hooked(pool, (size_t)(images * d->groups * p->segs), task, &j, &hook);
    }
}
