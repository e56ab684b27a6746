/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing how a convolution runs. The unit of work is an item: a few output blocks (chunk) of a
 * run of rows (segment) of one image and group. Items are numbered so that neighbours share what is
 * large: when all weights of a group fit well into the second-level cache, neighbours share the
 * input rows, otherwise they share the weights. A task is a range of neighbouring items. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/conv_images.h"
#include "compute/conv_rows.h"
#include "compute/conv_runs.h"
#include "compute/conv_sample.h"
#include "compute/conv_sparse.h"
#include "compute/conv_tiles.h"
#include "compute/packs.h"
#include "compute/slot_arithmetic.h"
#include "compute/split.h"
#include "compute/variant.h"

enum {
    TASK_FLOPS = 1000000, /* below this a task is not worth handing out */
    TASKS_PER_THREAD = 16,
    FLOPS_A_BYTE = 8, /* a core does so many while a byte comes from beyond the first-level cache */
};

bool sn_conv_can_block(const int64_t *w, int rank, int64_t groups, unsigned block, bool plain_input)
{
    sn_conv_blocks b;
    if (rank < 3 || rank > 5)
        return false;
    if (!plain_input && sn_conv_by_planes(w, rank, groups, block))
        return true;
    return !sn_conv_is_depthwise(w, groups) && sn_conv_blocks_of(w, groups, block, plain_input, &b);
}

unsigned sn_conv_pack_id(sn_dtype dtype, const int64_t *w, int rank, int64_t groups,
                         unsigned in_block, unsigned out_block, uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    if (out_block == 0 || (in_block != 0 && in_block != out_block) ||
        out_block != k->f32_conv_geometry.block ||
        !sn_conv_can_block(w, rank, groups, out_block, in_block == 0))
        return SN_PACK_NONE;
    if (in_block == 0)
        return sn_pack_find(SN_WEIGHTS_CONV_PLAIN, dtype, &k->f32_conv_any_geometry);
    if (sn_conv_by_planes(w, rank, groups, out_block))
        return sn_pack_find(SN_WEIGHTS_DEPTHWISE, dtype, &k->f32_depthwise_geometry);
    return sn_pack_find(SN_WEIGHTS_CONV, dtype, &k->f32_conv_geometry);
}

unsigned sn_conv_block(uint32_t cpu_flags)
{
    return sn_kernels_get(cpu_flags)->f32_conv_geometry.block;
}

/* The kernel's tiles: those with and without borders have the same. */
static const sn_geometry *tiles(const sn_conv_plan *p)
{
    return &p->k->f32_conv_geometry;
}

static int64_t tile_pixels(const sn_conv_plan *p)
{
    return sn_min(tiles(p)->pixels[p->chunk_blocks - 1], p->cols);
}

static const char *isa(const sn_conv_plan *p)
{
    const char *at = strrchr(p->k->f32_conv_name, '_');
    return at ? at + 1 : "ref";
}

/* Segments and tasks, given chunks and rows. `row_flops`: of one row and chunk. */
static void plan_split(sn_conv_plan *p, int64_t outer, int64_t row_in_bytes, int64_t weight_bytes,
                       size_t l2_bytes)
{
    const int64_t unit =
        p->by_pixels ? sn_max(tile_pixels(p), 1) : 1; /* segments are multiples of this */
    const int64_t all = p->by_pixels ? p->cols : p->rows;
    const int64_t units = sn_max(sn_ceil_div(all, unit), 1);
    const int64_t l2 = (int64_t)l2_bytes;
    const sn_variant v = sn_variant_of(p->d.variant);
    int64_t seg = units;
    p->chunk_outer = (weight_bytes > l2 / 4) != v.other;
    if (!p->chunk_outer) /* input rows of a segment stay in the cache for all chunks */
        seg = sn_max(sn_min(seg, l2 / 8 / sn_max(row_in_bytes * unit, 1)), 1);
    /* Enough items for the threads, as long as they are worth it; few operations on many bytes take
     * as long as those bytes. */
    const sn_conv_desc *d = &p->d;
    const double moved =
        (double)weight_bytes + 4.0 * (double)d->n *
                                   ((double)d->c * (double)(d->in[0] * d->in[1] * d->in[2]) +
                                    (double)d->oc * (double)(d->out[0] * d->out[1] * d->out[2]));
    const double work = fmax((double)p->flops, moved * (double)FLOPS_A_BYTE);
    const int64_t by_flops = sn_max((int64_t)fmin(work / (double)TASK_FLOPS + 0.5, 1e6), 1);
    const int64_t wanted = sn_task_count(by_flops, p->threads, TASKS_PER_THREAD);
    const int64_t others = sn_max(outer * p->chunks, 1);
    if (others * sn_ceil_div(units, seg) < wanted)
        seg = sn_max(units / sn_ceil_div(wanted, others), 1);
    seg = sn_variant_length(&v, seg, units);
    p->segs = sn_ceil_div(units, seg);
    p->seg = sn_ceil_div(units, p->segs) * unit; /* even segments */
    p->segs = sn_max(sn_ceil_div(all, p->seg), 1);
    p->items = (size_t)(outer * p->chunks * p->segs);
    p->tasks = (size_t)sn_min((int64_t)p->items, sn_max(v.coarse ? wanted / 4 : wanted, 1));
}

/* All of y, by all taps. */
static void whole(sn_conv_plan *p)
{
    for (int i = 0; i < 3; i++) {
        p->phase.y_dims[i] = p->d.out[i];
        p->phase.w_dims[i] = p->d.kernel[i];
        p->phase.y_step[i] = p->phase.w_step[i] = 1;
    }
}

static sonde_status plan_direct(sn_conv_plan *p, size_t l2_bytes, sonde_error *err)
{
    const sn_conv_desc *d = &p->d;
    const int64_t b = p->block;
    const bool plain = d->in_block == 0;
    p->flat = !plain;
    for (int i = 0; i < 3; i++)
        p->flat = p->flat && d->kernel[i] == 1 && d->stride[i] == 1 && d->pad[i] == 0 &&
                  d->out[i] == d->in[i] && p->phase.y_step[i] == 1;
    p->rows = p->flat ? 1 : d->out[0] * d->out[1];
    p->by_pixels = p->rows == 1;
    p->cols = p->flat ? d->out[0] * d->out[1] * d->out[2] : d->out[2];
    p->tile = plain ? p->k->f32_conv_any : p->k->f32_conv;
    const sn_variant v = sn_variant_of(d->variant);
    const int64_t model_q = sn_tile_pick_blocks(tiles(p), p->cols, p->rows, p->b.out_blocks, false);
    const int64_t q = sn_variant_blocks(&v, model_q, p->b.out_blocks);
    p->chunks = sn_ceil_div(p->b.out_blocks, q);
    p->chunk_blocks = sn_ceil_div(p->b.out_blocks, p->chunks);
    p->tiles = sn_ceil_div(p->cols, sn_max(tile_pixels(p), 1));
    sn_conv_plan_rows(p);
    const int64_t floats = sn_conv_margins_floats(p);
    if (floats < 0)
        return sn_fail(err, SONDE_LIMIT, "the convolution's input is too large");
    p->lines_of_x = sn_carve(&p->workspace, floats, sizeof(float));
    const int64_t taps = d->kernel[0] * d->kernel[1] * d->kernel[2];
    const int64_t weight_bytes = p->b.out_blocks * p->b.in_blocks * p->b.channels * taps * b * 4;
    /* Input channels in even parts whose weights, and those fetched meanwhile, stay in the cache.
     */
    const int64_t block_bytes = p->chunk_blocks * p->b.channels * taps * b * 4;
    const int64_t part = sn_max((int64_t)l2_bytes / 8 / sn_max(block_bytes, 1), 1);
    p->part = sn_ceil_div(p->b.in_blocks, sn_ceil_div(p->b.in_blocks, part));
    const int64_t unit_in_bytes = p->b.in * 4 * (p->by_pixels ? d->stride[2] : d->in[2]) *
                                  sn_min(d->stride[1], d->in[1]); /* of a pixel, or of a row */
    plan_split(p, d->n * p->b.groups, unit_in_bytes, weight_bytes, l2_bytes);
    char deep[16] = "";
    if (d->kernel[0] > 1)
        snprintf(deep, sizeof deep, "%dx", (int)d->kernel[0]);
    snprintf(p->name, sizeof p->name, "f32_conv%s%dx%d_%dx%d_%s", deep, (int)d->kernel[1],
             (int)d->kernel[2], (int)tile_pixels(p), (int)p->chunk_blocks, isa(p));
    return SONDE_OK;
}

/* Items of all channels: a band of rows for each thread, which are those it wrote in a convolution
 * before this and reads in one behind, as those share rows, too. */
static void plan_bands(sn_conv_plan *p, int64_t outer)
{
    const int64_t tasks = (int64_t)p->tasks;
    p->seg = sn_ceil_div(p->rows, sn_min(p->threads, p->rows));
    p->segs = sn_ceil_div(p->rows, p->seg);
    p->items = (size_t)(outer * p->segs);
    p->tasks = (size_t)sn_min((int64_t)p->items, tasks);
}

/* Bands of rows that go through f32: several, as neighbours read the same lines. */
static bool plan_stored(sn_conv_plan *p)
{
    enum { BAND_BYTES = 40 << 10, FOUR = 4, LEAST = 8 };
    const sn_conv_desc *d = &p->d;
    const int64_t size = p->block * (int64_t)sizeof(float);
    const int64_t line = d->in[2] * size, result = d->out[2] * size;
    const int64_t window = (d->kernel[1] - 1) * d->dilation[1] + 1;
    const int64_t rows = (BAND_BYTES - window * line) / sn_max(d->stride[1] * line + result, 1);
    p->band =
        sn_max(sn_min(sn_max(rows / FOUR * FOUR, LEAST), p->rows), 1); /* the kernel likes fours */
    const int64_t lines = sn_min((p->band - 1) * d->stride[1] + window, d->in[1]);
    const int64_t w[2] = {d->oc, d->c / d->groups};
    const int64_t blocks = sn_conv_plane_blocks(w, d->groups, p->block);
    const int64_t x = sn_count(lines, line, blocks, 1), y = sn_count(p->band, result, 1, 1);
    if (x < 0 || y < 0)
        return false;
    p->copies = sn_carve_each(&p->workspace, (size_t)p->threads, d->x_half ? (size_t)x : 0);
    p->sums = sn_carve_each(&p->workspace, (size_t)p->threads, d->y_half ? (size_t)y : 0);
    return true;
}

static sonde_status plan_depthwise(sn_conv_plan *p, size_t l2_bytes, sonde_error *err)
{
    const sn_conv_desc *d = &p->d;
    p->rows = d->out[1];
    p->cols = d->out[2];
    p->chunks = 1;
    p->chunk_blocks = 1;
    const int64_t slices = d->n * d->out[0] * sn_ceil_div(d->oc, p->block);
    plan_split(p, slices, d->in[2] * p->block * 4, 0, l2_bytes);
    if (p->segs < p->threads && p->tasks > 1)
        plan_bands(p, slices);
    const size_t zeros = (size_t)sn_max(d->in[2], 1); /* pixels: a tap of an empty row reads one */
    if ((p->items > 0 && !sn_size_mul(zeros, p->block * sizeof(float), &p->panel_bytes)) ||
        ((d->x_half || d->y_half) && !plan_stored(p)))
        return sn_fail(err, SONDE_LIMIT, "the convolution's rows are too long");
    char deep[16] = "";
    if (d->kernel[0] > 1)
        snprintf(deep, sizeof deep, "%dx", (int)d->kernel[0]);
    snprintf(p->name, sizeof p->name, "f32_%s%s%dx%d_%s",
             d->c == d->groups && d->oc == d->groups ? "depthwise" : "groups", deep,
             (int)d->kernel[1], (int)d->kernel[2], isa(p));
    return SONDE_OK;
}

/* Columns: the gathered matrix of a segment of pixels, K × seg, is packed per thread. */
static sonde_status plan_columns(sn_conv_plan *p, sonde_error *err)
{
    const sn_conv_desc *d = &p->d;
    const int64_t b = p->block;
    int64_t k, pixels = d->out[0] * d->out[1] * d->out[2];
    if (!sn_i64_mul(d->c / d->groups, d->kernel[0] * d->kernel[1] * d->kernel[2], &k) ||
        k > INT64_MAX / 1024)
        return sn_fail(err, SONDE_LIMIT, "the convolution's kernel is too large");
    p->rows = 1;
    p->cols = pixels;
    p->chunks = 1;
    p->chunk_blocks = 2;
    int64_t panels = sn_max((int64_t)(128 << 10) / sn_max(k * b * 4, 1), 2);
    panels = sn_min(panels - panels % 2, sn_max(sn_ceil_div(pixels, b), 1));
    const int64_t outer = d->n * d->groups;
    const int64_t wanted = p->threads == 1 ? 1 : (int64_t)p->threads * 4;
    while (panels > 2 && outer * sn_ceil_div(pixels, panels * b) < wanted)
        panels /= 2;
    p->seg = panels * b;
    p->segs = sn_ceil_div(pixels, p->seg);
    p->items = (size_t)(outer * p->segs);
    p->tasks = (size_t)sn_min((int64_t)p->items, sn_max(wanted, 1));
    if (!sn_size_mul((size_t)(k * b) * sizeof(float), (size_t)panels, &p->panel_bytes))
        return sn_fail(err, SONDE_LIMIT, "the convolution's kernel is too large");
    snprintf(p->name, sizeof p->name, "f32_conv_columns_%s", isa(p));
    return SONDE_OK;
}

static bool is_narrow(const sn_conv_desc *d)
{
    return d->packed && d->w_dtype && d->w_dtype != SONDE_DTYPE_F32;
}

/* How many weights are widened at a time: those of a kernel call, of a filter's transform, of a
 * block of channels. */
static int64_t wide_floats(const sn_conv_plan *p)
{
    const int64_t taps = p->d.kernel[0] * p->d.kernel[1] * p->d.kernel[2], block = p->block;
    switch (p->kind) {
    case SN_CONV_DIRECT:
        return p->chunk_blocks * p->part * p->b.channels * taps * block;
    case SN_CONV_WINOGRAD:
        return taps * block * block;
    default:
        return taps * block * p->room;
    }
}

/* Dims of the weights, as many as there have to be; how many. */
static int weight_dims(const sn_conv_desc *d, int64_t *w)
{
    const bool deep = d->in[0] != 1 || d->kernel[0] != 1;
    int rank = 0;
    w[rank++] = d->oc;
    w[rank++] = d->c / d->groups;
    for (int i = deep ? 0 : 1; i < 3; i++)
        w[rank++] = d->kernel[i];
    return rank;
}

static void begin(sn_conv_plan *p, const sn_conv_desc *d, uint32_t cpu_flags, int threads)
{
    memset(p, 0, sizeof *p);
    p->d = *d;
    p->k = sn_kernels_get(cpu_flags);
    p->block = tiles(p)->block;
    p->cpu_flags = cpu_flags;
    p->threads = threads > 0 ? threads : 1;
    p->post = !sn_act_limits(&d->act, &p->lo, &p->hi);
    p->clear = d->out_block != 0 && d->oc % d->out_block != 0 && !sn_act_keeps_zero(&d->act);
    p->arithmetic = SN_SLOT_ARITHMETIC(f32_conv);
    p->flops = 2 * (uint64_t)d->n * (uint64_t)d->oc * (uint64_t)(d->c / d->groups);
    for (int i = 0; i < 3; i++)
        p->flops *= (uint64_t)d->out[i] * (uint64_t)d->kernel[i];
}

sonde_status sn_conv_phase_plan(sn_conv_plan *p, const sn_conv_desc *d, const sn_conv_phase *f,
                                uint32_t cpu_flags, size_t l2_bytes, int threads, sonde_error *err)
{
    const int64_t w[2] = {d->oc, d->c / d->groups};
    begin(p, d, cpu_flags, threads);
    p->kind = SN_CONV_DIRECT;
    p->phase = *f;
    if (!sn_conv_blocks_of(w, d->groups, p->block, false, &p->b))
        return sn_fail(err, SONDE_INTERNAL, "channels do not fit blocks of %u", p->block);
    return plan_direct(p, l2_bytes, err);
}

/* All but the workspace. */
static sonde_status plan_work(sn_conv_plan *p, const sn_conv_desc *d, uint32_t cpu_flags,
                              size_t l2_bytes, int threads, sonde_error *err)
{
    int64_t w[5];
    const int rank = weight_dims(d, w);
    begin(p, d, cpu_flags, threads);
    const bool in_halves = d->tiles && d->w_dtype == SONDE_DTYPE_F32;
    const bool in_f16 =
        in_halves || (d->f16 && d->w_dtype == SONDE_DTYPE_F16 && sn_pack_has_f16_tiles(cpu_flags));
    if (d->tiles)
        p->arithmetic = sn_tiles_arithmetic(d->w_dtype, in_f16);
    if (d->sparse) {
        p->kind = SN_CONV_SPARSE;
        return sn_conv_sparse_plan(p, l2_bytes)
                   ? SONDE_OK
                   : sn_fail(err, SONDE_LIMIT, "the convolution's input is too large");
    }
    if (d->tiles && d->out_block == 0) {
        p->kind = SN_CONV_ROWS;
        snprintf(p->name, sizeof p->name, "bf16_conv_columns_%s",
                 strrchr(p->k->bf16_rows_name, '_') + 1);
        return sn_conv_rows_plan(p, l2_bytes)
                   ? SONDE_OK
                   : sn_fail(err, SONDE_LIMIT, "the convolution's kernel or input is too large");
    }
    if (d->tiles) {
        p->kind = SN_CONV_TILES;
        snprintf(p->name, sizeof p->name, "%s_conv%dx%d_%s",
                 in_halves                       ? "f32"
                 : d->w_dtype == SONDE_DTYPE_F16 ? "f16"
                                                 : "bf16",
                 (int)d->kernel[1], (int)d->kernel[2],
                 strrchr(in_f16 ? p->k->f16_rows_name : p->k->bf16_rows_name, '_') + 1);
        return sn_conv_tiles_plan(p, l2_bytes)
                   ? SONDE_OK
                   : sn_fail(err, SONDE_LIMIT, "the convolution's lines are too long");
    }
    if (d->images) {
        p->kind = SN_CONV_IMAGES;
        p->arithmetic = sn_tiles_arithmetic(SONDE_DTYPE_F32, true);
        snprintf(p->name, sizeof p->name, "f32_conv1x1_images_%s",
                 strrchr(p->k->f16_rows_name, '_') + 1);
        return sn_conv_images_plan(p, l2_bytes)
                   ? SONDE_OK
                   : sn_fail(err, SONDE_LIMIT, "the convolution's input is too large");
    }
    if (d->out_block == 0 && d->in_block == 0) {
        p->kind = SN_CONV_COLUMNS;
        return plan_columns(p, err);
    }
    const unsigned pack = sn_conv_pack_id(is_narrow(d) ? d->w_dtype : SONDE_DTYPE_F32, w, rank,
                                          d->groups, d->in_block, d->out_block, cpu_flags);
    if (pack == SN_PACK_NONE || d->out_block != p->block)
        return sn_fail(err, SONDE_INTERNAL, "no kernel for a convolution from blocks of %u to %u",
                       d->in_block, d->out_block);
    const sn_packing packing = {sn_pack_get(pack), w, rank, d->groups, cpu_flags};
    if (!d->packed && !packing.format->bytes(&packing, &p->pack_bytes))
        return sn_fail(err, SONDE_LIMIT, "the convolution's weights are too large");
    if (d->in_block != 0 && sn_conv_by_planes(w, rank, d->groups, p->block)) {
        p->kind = SN_CONV_DEPTHWISE;
        p->room = sn_conv_plane_room(w, d->groups, p->block);
        return plan_depthwise(p, l2_bytes, err);
    }
    if (!sn_conv_blocks_of(w, d->groups, p->block, d->in_block == 0, &p->b))
        return sn_fail(err, SONDE_INTERNAL, "channels do not fit blocks of %u", p->block);
    if (d->winograd == SN_CONV_FREE)
        p->d.winograd = sn_variant_of(d->variant).other ? 0 : sn_conv_winograd_pick(p, l2_bytes);
    if (p->d.winograd != 0) {
        p->kind = SN_CONV_WINOGRAD;
        return sn_conv_plan_winograd(p, l2_bytes, err);
    }
    p->kind = SN_CONV_DIRECT;
    if (!sn_conv_sample_plan(p))
        return sn_fail(err, SONDE_LIMIT, "the convolution's input is too large");
    whole(p);
    return plan_direct(p, l2_bytes, err);
}

sonde_status sn_conv_plan_make(sn_conv_plan *p, const sn_conv_desc *d, uint32_t cpu_flags,
                               size_t l2_bytes, int threads, sonde_error *err)
{
    SN_TRY(plan_work(p, d, cpu_flags, l2_bytes, threads, err));
    if (p->kind == SN_CONV_TILES || p->kind == SN_CONV_ROWS || p->kind == SN_CONV_SPARSE ||
        p->kind == SN_CONV_IMAGES)
        return SONDE_OK;
    p->pack = sn_carve_bytes(&p->workspace, p->pack_bytes);
    p->panels = sn_carve_each(&p->workspace, (size_t)p->threads, p->panel_bytes);
    if (is_narrow(d)) {
        p->wide_floats = wide_floats(p);
        p->wide = sn_carve_each(&p->workspace, (size_t)p->threads,
                                (size_t)p->wide_floats * sizeof(float));
    }
    return SONDE_OK;
}

typedef struct pack_call {
    sn_packing packing;
    float *dst;
    const void *src;
} pack_call;

static void pack_task(void *arg, size_t unit, int worker)
{
    const pack_call *c = arg;
    (void)worker;
    c->packing.format->pack(&c->packing, c->dst, c->src, unit);
}

void sn_conv_run(const sn_conv_plan *p, const float *x, const void *w, const float *bias,
                 const float *z, float *y, void *workspace, sn_pool *pool)
{
    static const sn_task_fn tasks[] = {[SN_CONV_DIRECT] = sn_conv_direct_task,
                                       [SN_CONV_DEPTHWISE] = sn_conv_depthwise_task,
                                       [SN_CONV_COLUMNS] = sn_conv_columns_task};
    /* Workspace is planned per worker: a larger pool than planned may not help. */
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL;
    if (p->pack_bytes > 0) {
        const sn_conv_desc *d = &p->d;
        int64_t dims[5];
        const int rank = weight_dims(d, dims);
        const sn_pack_format *f = sn_pack_get(sn_conv_pack_id(
            SONDE_DTYPE_F32, dims, rank, d->groups, d->in_block, d->out_block, p->cpu_flags));
        pack_call c = {
            {f, dims, rank, d->groups, p->cpu_flags}, sn_piece_at(workspace, p->pack), w};
        sn_pool_run(pool, f->units(&c.packing), pack_task, &c);
        w = c.dst;
    }
    sn_conv_call call = {p, w, x, bias, z, y, workspace};
    if (p->kind == SN_CONV_TILES)
        sn_conv_tiles_run(&call, NULL, pool);
    else if (p->kind == SN_CONV_ROWS)
        sn_conv_rows_run(&call, pool);
    else if (p->kind == SN_CONV_SPARSE)
        sn_conv_sparse_run(&call, pool);
    else if (p->kind == SN_CONV_IMAGES)
        sn_conv_images_run(&call, pool);
    else if (p->kind == SN_CONV_WINOGRAD)
        sn_conv_winograd_run(&call, pool);
    else if (p->tasks > 0) {
        if (p->sampled)
            call.x = sn_conv_sample(&call, pool);
        if (p->together)
            call.x = sn_conv_margins(&call, pool);
        sn_pool_run(pool, p->tasks, tasks[p->kind], &call);
    }
}
