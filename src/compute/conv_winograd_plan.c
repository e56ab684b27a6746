/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing Winograd's way: whether it is faster than the direct one, with which tile, and how its
 * work is cut. Cycles are those of a model, fitted to one core of a machine with AVX-512; blocks of
 * half the size cost half, in the direct way as in this one. */
#include <stdio.h>
#include <string.h>

#include "compute/conv.h"
#include "compute/split.h"
#include "compute/variant.h"

enum {
    MIN_BATCH = 16,  /* patches that are worth a pass over the weights */
    GOOD_BATCH = 64, /* more are hardly better */
    MAX_BLOCKS = 3,  /* output blocks of a chunk: with four less of the input fits the cache */
    SPACE_BYTES_A_CYCLE = 6, /* other layers have used the caches since */
};

/* Rows or columns times taps inside the image, of one axis. */
static double taps_inside(const sn_conv_desc *d, int axis)
{
    double sum = 0;
    for (int64_t o = 0; o < d->out[axis]; o++) {
        int64_t first, end;
        sn_conv_taps(o, d->stride[axis], d->pad[axis], d->dilation[axis], d->kernel[axis],
                     d->in[axis], &first, &end);
        sum += (double)(end - first);
    }
    return sum;
}

/* All filters of a group. They are written to the second-level cache, which counts bytes. */
static double filter_cycles(const sn_conv_plan *p, int m)
{
    const sn_conv_blocks *b = &p->b;
    const sn_geometry *g =
        m == 4 ? &p->k->f32_wino4_filter_geometry : &p->k->f32_wino2_filter_geometry;
    const double each = (m == 4 ? 110.0 : 50.0) * (double)g->speed;
    return each * (double)(p->inputs * b->block * b->out_blocks);
}

/* One patch: its products and the transforms of all its blocks. */
static double patch_cycles(const sn_conv_plan *p, int m)
{
    const double n = m + 2, in = (double)(p->inputs * p->b.block), out = (double)p->b.out_blocks;
    const double transforms = (m == 4 ? 150.0 : 65.0) * (double)(p->inputs + p->b.out_blocks);
    return n * n * in * out / 2 / 0.9 + transforms;
}

/* Of one axis of an image of every dilation-th pixel. */
static int64_t patches_along(const sn_conv_desc *d, int axis)
{
    return sn_ceil_div(sn_ceil_div(d->out[axis], d->dilation[axis]), d->winograd);
}

static int64_t patches_of(const sn_conv_desc *d)
{
    return d->n * d->out[0] * d->dilation[1] * d->dilation[2] * patches_along(d, 1) *
           patches_along(d, 2);
}

static bool fits(const sn_conv_desc *d, const sn_conv_blocks *b)
{
    for (int i = 1; i < 3; i++)
        if (d->kernel[i] != 3 || d->stride[i] != 1 || d->dilation[i] > d->out[i])
            return false;
    return d->in_block == d->out_block && d->in_block != 0 && b->group_in == b->in;
}

/* How many batches of patches: few, since each transforms all weights again, but each within the
 * second-level cache, and so many that all threads have the same to do. What is left over when
 * every thread had as many items as the others is shared. */
static int64_t pick_batches(const sn_conv_plan *p, int64_t patches, size_t l2_bytes)
{
    const int m = p->d.winograd, n = m + 2;
    const int64_t bytes = n * n * p->inputs * p->b.block * (int64_t)sizeof(float);
    const int64_t l2 = (int64_t)l2_bytes;
    const int64_t good = sn_min(GOOD_BATCH, 2 * l2 / bytes);
    const int64_t most = sn_max(sn_max(good, l2 / 3 / bytes), MIN_BATCH);
    const int64_t fewest = sn_max(sn_ceil_div(patches, most), 1);
    const int64_t last = sn_min(sn_max(patches / MIN_BATCH, fewest), fewest + 2 * p->threads);
    int64_t best = fewest;
    double least = 0;
    for (int64_t batches = fewest; batches <= last; batches++) {
        const int64_t items = p->b.groups * batches, rest = items % p->threads;
        const double item =
            filter_cycles(p, m) + (double)patches / (double)batches * patch_cycles(p, m);
        const double together = 0.9 * (double)sn_min(p->threads, p->b.out_blocks);
        const double cycles =
            item * ((double)(items / p->threads) + (double)rest / (p->threads > 1 ? together : 1));
        if (batches == fewest || cycles < least) {
            least = cycles;
            best = batches;
        }
    }
    return best;
}

/* Batches, chunks, parts and the workspace for them; false: too large. */
static bool cut(sn_conv_plan *p, size_t l2_bytes)
{
    const sn_conv_desc *d = &p->d;
    const int64_t m = d->winograd, n = m + 2, block = p->b.block, l2 = (int64_t)l2_bytes;
    const int64_t patches = patches_of(d);
    p->inputs = p->b.in_blocks * d->kernel[0];
    p->rows = patches_along(d, 1);
    p->cols = patches_along(d, 2);
    const sn_variant v = sn_variant_of(d->variant);
    p->seg = sn_max(sn_ceil_div(patches, pick_batches(p, patches, l2_bytes)), 1);
    p->seg = sn_variant_length(&v, p->seg, sn_max(patches, 1));
    p->segs = sn_ceil_div(patches, p->seg);
    p->items = (size_t)(p->b.groups * p->segs);
    p->tasks = p->items - p->items % (size_t)p->threads;
    int64_t q = sn_tile_pick_blocks(&p->k->f32_gemm_geometry, p->seg, 1, p->b.out_blocks, false);
    q = sn_variant_blocks(&v, sn_min(q, MAX_BLOCKS), p->b.out_blocks);
    if (p->tasks < p->items) /* chunks for all threads */
        q = sn_max(sn_min(q, p->b.out_blocks / p->threads), 1);
    p->chunks = sn_ceil_div(p->b.out_blocks, q);
    p->chunk_blocks = sn_ceil_div(p->b.out_blocks, p->chunks);
    p->tiles = sn_ceil_div(p->seg, p->k->f32_gemm_geometry.pixels[p->chunk_blocks - 1]);
    p->patch_pos = p->seg * block + SN_WINO_GAP;
    const int64_t filter = n * n * (block * block + SN_WINO_GAP) * p->chunk_blocks;
    const int64_t part = sn_max(l2 / 4 / (filter * (int64_t)sizeof(float)), 1);
    p->part = sn_ceil_div(p->inputs, sn_ceil_div(p->inputs, part));
    size_t floats;
    if (!sn_size_mul((size_t)(p->inputs + p->chunk_blocks), (size_t)(n * n * p->patch_pos),
                     &floats) ||
        floats > PTRDIFF_MAX / 8)
        return false;
    p->panel_bytes = sn_round_up((floats + (size_t)(p->part * filter)) * sizeof(float), 64);
    return true;
}

int sn_conv_winograd_pick(const sn_conv_plan *p, size_t l2_bytes)
{
    const sn_conv_desc *d = &p->d;
    const sn_conv_blocks *b = &p->b;
    if (!fits(d, b))
        return 0;
    const double pairs = (double)(b->groups * b->in_blocks * b->block * b->out_blocks);
    const double taps = taps_inside(d, 0) * taps_inside(d, 1) * taps_inside(d, 2);
    const double direct = (double)d->n * taps * pairs / 2;
    double least = direct * 0.85; /* what is gained should be worth the error */
    int best = 0;
    for (int m = 2; m <= 4; m += 2) {
        sn_conv_plan w = *p;
        w.d.winograd = m;
        w.threads = 1; /* the same way, whatever their number and the variant */
        w.d.variant = 0;
        if (!cut(&w, l2_bytes))
            continue;
        const double group =
            (double)w.segs * filter_cycles(&w, m) + (double)patches_of(&w.d) * patch_cycles(&w, m);
        const double cycles =
            (double)b->groups * group + (double)w.panel_bytes / (double)SPACE_BYTES_A_CYCLE;
        if (cycles < least) {
            least = cycles;
            best = m;
        }
    }
    return best;
}

sonde_status sn_conv_plan_winograd(sn_conv_plan *p, size_t l2_bytes, sonde_error *err)
{
    const int m = p->d.winograd;
    if ((m != 2 && m != 4) || !fits(&p->d, &p->b))
        return sn_fail(err, SONDE_INTERNAL, "Winograd is for 3×3 at stride 1");
    if (!cut(p, l2_bytes))
        return sn_fail(err, SONDE_LIMIT, "the convolution is too large");
    p->tile = p->k->f32_conv;
    const char *isa = strrchr(p->k->f32_conv_name, '_');
    snprintf(p->name, sizeof p->name, "f32_winograd%dx%d_%dx%d_%s", m, m,
             (int)sn_min(p->k->f32_gemm_geometry.pixels[p->chunk_blocks - 1], p->seg),
             (int)p->chunk_blocks, isa ? isa + 1 : "ref");
    return SONDE_OK;
}
