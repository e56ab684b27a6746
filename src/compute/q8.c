/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of convolutions and products of bytes; see q8.h: which kernel, and how the work is
 * cut. */
#include "compute/q8.h"

#include <stdio.h>
#include <string.h>

#include "compute/parallel.h"
#include "compute/q8_ways.h"
#include "compute/slot_arithmetic.h"

enum { MAX_BLOCKS = 4, DEPTHWISE_ROWS = 4, DEPTHWISE_BLOCKS = 16, MANY_TAPS = 4096 };
enum { LINES_BYTES = 128 << 10 }; /* of a part that goes by lines */

/* ------------------------------------------------------------------ which kernel */
typedef struct q8_kernel {
    sn_q8_tile_fn *fn;
    const char *name;
    const sn_geometry *geometry;
    sonde_dtype type; /* of the activations it reads */
} q8_kernel;

/* The faster of the two kinds; the activations' own where they are the same. */
static q8_kernel kernel_for(const sn_kernels *k, bool depthwise, sonde_dtype x_type)
{
    const q8_kernel tiles[] = {{k->u8_tile, k->u8_tile_name, &k->u8_tile_geometry, SONDE_DTYPE_U8},
                               {k->i8_tile, k->i8_tile_name, &k->i8_tile_geometry, SONDE_DTYPE_I8}};
    const q8_kernel taps[] = {
        {k->u8_depthwise, k->u8_depthwise_name, &k->u8_depthwise_geometry, SONDE_DTYPE_U8},
        {k->i8_depthwise, k->i8_depthwise_name, &k->i8_depthwise_geometry, SONDE_DTYPE_I8}};
    const q8_kernel *two = depthwise ? taps : tiles;
    if (two[0].geometry->speed > two[1].geometry->speed)
        return two[0];
    if (two[0].geometry->speed < two[1].geometry->speed)
        return two[1];
    return two[x_type == SONDE_DTYPE_I8];
}

/* Is there a kernel of rows that is faster than those of tiles? It reads both kinds of bytes. */
static bool goes_by_lines(const sn_kernels *k)
{
    return k->u8_rows_geometry.speed > kernel_for(k, false, SONDE_DTYPE_U8).geometry->speed;
}

static bool is_depthwise(int64_t group_in, int64_t group_out, int64_t groups)
{
    return group_in == 1 && group_out == 1 && groups > 1;
}

static unsigned pack_id(sn_arrangement arrangement, sonde_dtype w_type, uint32_t cpu_flags)
{
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    const bool depthwise = arrangement == SN_WEIGHTS_DEPTHWISE;
    if (!depthwise && goes_by_lines(k))
        return sn_pack_find(arrangement == SN_WEIGHTS_PANELS ? SN_WEIGHTS_PANEL_TILES
                                                             : SN_WEIGHTS_CONV_TILES,
                            (sn_dtype)w_type, &k->u8_rows_geometry);
    return sn_pack_find(arrangement, (sn_dtype)w_type,
                        kernel_for(k, depthwise, SONDE_DTYPE_U8).geometry);
}

/* Depthwise by quads: taps of a row must be neighbours. */
static bool goes_by_quads(const sn_kernels *k, int64_t arg, const int64_t *w, int rank)
{
    int64_t taps = 1;
    for (int i = 2; i < rank; i++)
        taps = sn_count(taps, w[i], 1, 1);
    return arg > 0 && taps >= 0 && taps <= SN_Q8_PART &&
           k->u8_by_quads_geometry.speed > kernel_for(k, true, SONDE_DTYPE_U8).geometry->speed;
}

unsigned sn_q8_conv_pack_id(sonde_dtype w_type, const int64_t *w, int rank, int64_t arg,
                            uint32_t cpu_flags)
{
    const int64_t groups = arg < 0 ? -arg : arg;
    if (rank < 3 || groups <= 0 || w[0] <= 0 || w[0] % groups != 0)
        return SN_PACK_NONE;
    if (!is_depthwise(w[1], w[0] / groups, groups))
        return pack_id(SN_WEIGHTS_CONV_LAST, w_type, cpu_flags);
    const sn_kernels *k = sn_kernels_get(cpu_flags);
    if (goes_by_quads(k, arg, w, rank))
        return sn_pack_find(SN_WEIGHTS_DEPTHWISE_QUADS, (sn_dtype)w_type, &k->u8_by_quads_geometry);
    return pack_id(SN_WEIGHTS_DEPTHWISE, w_type, cpu_flags);
}

unsigned sn_q8_gemm_pack_id(sonde_dtype w_type, uint32_t cpu_flags)
{
    return pack_id(SN_WEIGHTS_PANELS, w_type, cpu_flags);
}

/* ------------------------------------------------------------------ plan */
sn_q8_desc sn_q8_product(const sn_gemm_desc *d)
{
    sn_q8_desc q = {.product = true,
                    .batch_rank = d->batch_rank,
                    .matrices = d->b_count,
                    .x_pitch = d->k,
                    .y_pitch = d->n};
    q.conv = (sn_conv_desc){.n = 1, .c = d->k, .oc = d->n, .groups = 1};
    for (int i = 0; i < d->batch_rank; i++) {
        q.batch[i] = d->batch[i];
        q.x_batch[i] = d->a_batch[i];
        q.w_batch[i] = d->b_batch[i];
        q.conv.n *= d->batch[i];
    }
    for (int i = 0; i < 3; i++) {
        q.conv.kernel[i] = q.conv.stride[i] = q.conv.dilation[i] = 1;
        q.conv.in[i] = q.conv.out[i] = i == 2 ? d->m : 1;
    }
    return q;
}

/* Dims of the weights as packing sees them, 3 of products, else 5. Without channels they are taken
 * to have one: nothing of it is read. */
static void weight_dims(const sn_q8_desc *d, int64_t *dims)
{
    const sn_conv_desc *c = &d->conv;
    const int64_t in = sn_max(c->c, 1);
    if (d->product) {
        dims[0] = sn_max(d->matrices, 1);
        dims[1] = d->turned ? c->oc : in;
        dims[2] = d->turned ? in : c->oc;
        return;
    }
    dims[0] = c->oc;
    dims[1] = sn_max(c->c / c->groups, 1);
    for (int i = 0; i < 3; i++)
        dims[i + 2] = c->kernel[i];
}

static sn_packing packing_of(const sn_q8_plan *p, int64_t *dims)
{
    const sn_q8_desc *d = &p->d;
    const sn_conv_desc *c = &d->conv;
    weight_dims(d, dims);
    if (d->product)
        return (sn_packing){sn_pack_get(p->pack), dims, 3, d->turned, p->cpu_flags};
    return (sn_packing){sn_pack_get(p->pack), dims, 5,
                        sn_q8_conv_pack_arg(c->groups, c->kernel[2], c->dilation[2]), p->cpu_flags};
}

/* Rows and blocks of a tile: few blocks, evenly filled, and the rows that registers leave. */
static void plan_tiles(sn_q8_plan *p, const sn_geometry *g)
{
    const sn_q8_weights *w = &p->w;
    int64_t most = MAX_BLOCKS;
    while (most > 1 && g->pixels[most - 1] == 0)
        most--;
    if (p->depthwise)
        most = DEPTHWISE_BLOCKS;
    p->chunks = sn_ceil_div(w->blocks, most);
    p->chunk = sn_ceil_div(w->blocks, p->chunks);
    p->rows = p->depthwise ? DEPTHWISE_ROWS : g->pixels[p->chunk - 1];
    if (w->taps > MANY_TAPS)
        p->rows = 1;
    p->rows = sn_min(p->rows, sn_max(p->out_pixels, 1));
}

/* Tasks: parts of the rows while the weights fit the cache, else parts of the weights. */
static void plan_tasks(sn_q8_plan *p, size_t l2_bytes, int threads)
{
    const int64_t tiles = sn_ceil_div(p->out_pixels, p->rows);
    const int64_t units = (p->d.product ? 1 : p->w.groups) * p->chunks;
    const int64_t images = sn_max(p->d.conv.n, 1);
    const int64_t want = threads > 1 ? sn_ceil_div(4 * (int64_t)threads, images) : 1;
    p->chunks_outer = p->chunks * p->chunk * p->w.block_bytes > (int64_t)(l2_bytes / 2);
    if (p->chunks_outer) {
        p->chunk_parts = sn_min(units, want);
        p->row_parts = sn_min(tiles, sn_ceil_div(want, p->chunk_parts));
    } else {
        p->row_parts = sn_max(sn_min(tiles, want), 1);
        p->chunk_parts = sn_min(units, sn_ceil_div(want, p->row_parts));
    }
    p->row_parts = sn_max(p->row_parts, 1);
    p->chunk_parts = sn_max(p->chunk_parts, 1);
}

static void name_plan(sn_q8_plan *p, const char *kernel)
{
    const char *suffix = strrchr(kernel, '_'), *type = p->d.x_type == SONDE_DTYPE_U8 ? "u8" : "i8";
    const int64_t *k = p->d.conv.kernel;
    if (p->d.product)
        snprintf(p->name, sizeof p->name, "%s_gemm%s", type, suffix);
    else
        snprintf(p->name, sizeof p->name, "%s_%s%lldx%lld%s", type,
                 p->depthwise ? "depthwise" : "conv", (long long)(k[0] * k[1]), (long long)k[2],
                 suffix);
}

/* Products whose batches all use the same weights, of rows that follow each other, are one. */
static void join_batches(sn_q8_desc *d)
{
    sn_conv_desc *c = &d->conv;
    int64_t step = 1, rows = c->out[2];
    for (int i = d->batch_rank - 1; i >= 0; i--) {
        if (d->w_batch[i] != 0 || (d->x_batch[i] != step && d->batch[i] != 1))
            return;
        step *= d->batch[i];
        rows = sn_count(rows, d->batch[i], 1, 1);
    }
    if (rows <= 0)
        return;
    d->batch_rank = 0;
    c->n = 1;
    c->in[2] = c->out[2] = rows;
}

/* Images, or matrices of x. */
static int64_t images_of(const sn_q8_desc *d)
{
    int64_t n = 1;
    if (!d->product)
        return sn_max(d->conv.n, 1);
    for (int i = 0; i < d->batch_rank; i++)
        n += (d->batch[i] - 1) * d->x_batch[i];
    return n;
}

/* By lines: parts of the rows, and of the columns where rows are too few for all threads. */
static bool plan_lines(sn_q8_plan *p, size_t l2_bytes, int threads)
{
    const sn_q8_weights *w = &p->w;
    const sn_conv_desc *c = &p->d.conv;
    const int64_t want = threads > 1 ? 4 * (int64_t)threads : 1, images = sn_max(c->n, 1);
    const int64_t pixels = c->in[0] * c->in[1] * c->in[2];
    /* Weights that the cache cannot hold come once for every part: then parts are larger. */
    const bool held = w->bytes <= (int64_t)(l2_bytes / 4);
    const sn_lines_request r = {
        .conv = c,
        .x_pixel = p->d.x_pitch,
        .channels_bytes = c->c,
        .merged = sn_lines_merge(c->groups, c->kernel[2], c->dilation[2]),
        .row_multiple = SN_ROWS_TILE,
        .run_end = (w->groups - 1) * w->in + w->run,
        .budget = held ? LINES_BYTES : sn_max((int64_t)(l2_bytes / 2), LINES_BYTES),
        .want = sn_cut_rows(pixels * c->c, w->bytes, l2_bytes) ? sn_ceil_div(want, images) : 1};
    if (!sn_lines_plan(&p->lines, &r))
        return false;
    p->steps = w->runs * (w->run / SN_ROWS_STEP);
    p->chunk = sn_min(MAX_BLOCKS, w->blocks);
    p->chunks = sn_ceil_div(w->blocks, p->chunk);
    const int64_t units = (p->d.product ? 1 : w->groups) * p->chunks;
    const int64_t parts = images * sn_lines_parts(&p->lines);
    p->chunk_parts = parts < want ? sn_unit_parts(units, sn_ceil_div(want, parts), threads) : 1;
    p->rows = 2 * SN_ROWS_TILE;
    return true;
}

/* By quads: a task is some lines of one block of channels. */
static bool plan_quads(sn_q8_plan *p, int threads)
{
    const sn_conv_desc *c = &p->d.conv;
    const int64_t lines = c->out[1], others = sn_max(c->n, 1) * c->out[0] * p->w.blocks;
    const int64_t want = threads > 1 ? sn_ceil_div(4 * (int64_t)threads, others) : 1;
    p->row_parts = sn_max(sn_min(lines, want), 1);
    p->chunk = p->chunk_parts = 1;
    p->chunks = p->w.blocks;
    p->rows = 2 * SN_ROWS_TILE;
    p->pairs = (c->out[2] - 1) * c->stride[2] / 2 + 2 * (p->w.quads - 1) + 1;
    p->ring = (c->kernel[1] - 1) * c->dilation[1] + 1;
    return sn_count(p->ring * c->kernel[0], p->pairs, SN_QUAD_BYTES, 1) >= 0;
}

/* By pointers, with runs that are rows of the kernel: they read a copy of x whose lines have their
 * borders, and room for what fills up the last run. */
static bool plan_copy(sn_q8_plan *p)
{
    const sn_conv_desc *c = &p->d.conv;
    const int64_t pixels = sn_max((c->out[2] - 1) * c->stride[2] + c->kernel[2], 0);
    const int64_t line = sn_count(sn_max(pixels, c->pad[2] + c->in[2]), c->c, 1, 1);
    if (line < 0 || line > INT32_MAX)
        return false;
    p->line = line + p->w.kr;
    const int64_t bytes = sn_count(sn_max(c->n, 1), sn_count(c->in[0], c->in[1], 1, 1), p->line, 1);
    if (bytes < 0)
        return false;
    p->copy = sn_carve(&p->workspace, bytes, 1);
    return true;
}

static bool plan_work(sn_q8_plan *p, const q8_kernel *kernel, size_t l2_bytes, int threads)
{
    if (p->by_rows)
        return plan_lines(p, l2_bytes, threads);
    if (p->by_quads)
        return plan_quads(p, threads);
    p->flat = sn_lines_flat(&p->d.conv);
    plan_tiles(p, kernel->geometry);
    plan_tasks(p, l2_bytes, threads);
    return !p->w.merged || plan_copy(p);
}

static bool carve(sn_q8_plan *p, int threads)
{
    const sn_q8_weights *w = &p->w;
    const size_t n = (size_t)threads;
    const int64_t columns = sn_count(w->groups, w->blocks, w->block, 1);
    const int64_t terms = sn_count(w->group_in, w->taps, 1, 1);
    const int64_t tile = (p->by_rows ? MAX_BLOCKS : p->chunk) * w->block;
    const int64_t pointers =
        sn_count(w->taps, p->by_rows || p->by_quads ? 1 : p->rows, sizeof(void *), 1);
    if (pointers < 0)
        return false;
    p->parted = terms > SN_Q8_PART && !p->empty && p->d.y_type != SONDE_DTYPE_I32 && !p->d.wraps;
    if (!p->d.packed && !p->empty)
        p->packed = sn_carve(&p->workspace, w->bytes, 1);
    p->start = sn_carve(&p->workspace, columns, sizeof(int32_t));
    p->factor = sn_carve(&p->workspace, columns, sizeof(float));
    if (p->parted)
        p->wide = sn_carve_each(&p->workspace, n, (size_t)(p->rows * tile) * sizeof(int64_t));
    if (p->parted && terms > SN_Q8_SUM_PART)
        p->wide_sums = sn_carve(&p->workspace, columns, sizeof(int64_t));
    p->pointers = sn_carve_each(&p->workspace, n, (size_t)pointers);
    p->sums = sn_carve_each(&p->workspace, n, (size_t)(p->rows * tile) * sizeof(int32_t));
    p->factors = sn_carve_each(&p->workspace, n, (size_t)tile * sizeof(float));
    if (p->by_rows) {
        p->at = sn_carve(&p->workspace, p->steps, sizeof(ptrdiff_t));
        p->copies = sn_carve_each(&p->workspace, n, (size_t)p->lines.bytes);
        p->held = sn_carve_each(&p->workspace, n, sizeof(sn_lines_held));
        p->threads = threads;
    } else {
        p->zeros =
            sn_carve(&p->workspace, sn_max(sn_max(p->d.conv.c, w->run), SN_QUAD_CHANNELS), 1);
    }
    if (p->by_quads) {
        const int64_t *kernel = p->d.conv.kernel;
        p->offsets = sn_carve_each(&p->workspace, n, (size_t)w->runs * sizeof(ptrdiff_t));
        p->quads = sn_carve_each(&p->workspace, n,
                                 (size_t)(p->ring * kernel[0] * p->pairs * SN_QUAD_BYTES));
    }
    return true;
}

/* Of one matrix, or a convolution that reads pixel r for result r. */
static sonde_status plan_sparse(sn_q8_plan *p, int threads, sonde_error *err)
{
    sn_conv_desc *c = &p->d.conv;
    if (p->d.product)
        join_batches(&p->d);
    p->in_pixels = sn_count(c->in[0], c->in[1], c->in[2], 1);
    p->out_pixels = sn_count(c->out[0], c->out[1], c->out[2], 1);
    if (!sn_q8_sparse_plan(p, threads) || p->in_pixels < 0 || p->out_pixels < 0)
        return sn_fail(err, SONDE_LIMIT, "the product is too large");
    p->arithmetic = p->by_tiles ? SN_SLOT_ARITHMETIC(i8_sparse16) : SN_SLOT_ARITHMETIC(i8_sparse4);
    const uint64_t each = p->by_tiles ? 4 * SN_ROWS_TILE : SN_SPARSE_PANEL;
    p->flops = 2 * (uint64_t)sn_max(c->n, 1) * (uint64_t)sn_max(p->out_pixels, 0) *
               (uint64_t)p->d.entries * each;
    return SONDE_OK;
}

sonde_status sn_q8_plan_make(sn_q8_plan *p, const sn_q8_desc *d, uint32_t cpu_flags,
                             size_t l2_bytes, int threads, sonde_error *err)
{
    *p = (sn_q8_plan){.d = *d, .k = sn_kernels_get(cpu_flags), .cpu_flags = cpu_flags};
    const sn_conv_desc *c = &p->d.conv;
    if (d->sparse)
        return plan_sparse(p, threads, err);
    p->depthwise = !d->product && is_depthwise(c->c / c->groups, c->oc / c->groups, c->groups);
    p->empty = c->c == 0;
    q8_kernel kernel = kernel_for(p->k, p->depthwise, d->x_type);
    if (c->oc == 0) { /* no results, and weights that no format could lay out */
        name_plan(p, kernel.name);
        return SONDE_OK;
    }
    p->tile = kernel.fn;
    p->flips = kernel.type != d->x_type;
    p->out_pixels = sn_count(c->out[0], c->out[1], c->out[2], 1);
    if (!p->depthwise && !p->empty && p->out_pixels > 0 && goes_by_lines(p->k)) {
        const bool u8 = d->x_type == SONDE_DTYPE_U8;
        p->by_rows = u8 ? p->k->u8_rows : p->k->i8_rows;
        kernel.name = u8 ? p->k->u8_rows_name : p->k->i8_rows_name;
        p->flips = false;
        if (d->product)
            join_batches(&p->d);
        p->x_images = images_of(&p->d);
    }
    int64_t dims[5];
    weight_dims(&p->d, dims);
    const int64_t arg = sn_q8_conv_pack_arg(c->groups, c->kernel[2], c->dilation[2]);
    p->pack = d->product ? sn_q8_gemm_pack_id(d->w_type, cpu_flags)
                         : sn_q8_conv_pack_id(d->w_type, dims, 5, arg, cpu_flags);
    if (p->depthwise && p->out_pixels > 0 && goes_by_quads(p->k, arg, dims, 5)) {
        p->by_quads = p->k->u8_by_quads;
        kernel.name = p->k->u8_by_quads_name;
        p->flips = d->x_type != SONDE_DTYPE_U8;
    }
    p->arithmetic = p->by_rows ? SN_SLOT_ARITHMETIC(i8_rows) : SN_SLOT_ARITHMETIC(i8_tile);
    const sn_packing packing = packing_of(p, dims);
    p->in_pixels = sn_count(c->in[0], c->in[1], c->in[2], 1);
    p->out_pixels = sn_count(c->out[0], c->out[1], c->out[2], 1);
    if (!packing.format || !sn_q8_weights_of(&packing, &p->w) || p->in_pixels < 0 ||
        p->out_pixels < 0 || !plan_work(p, &kernel, l2_bytes, threads))
        return sn_fail(err, SONDE_LIMIT, "the product is too large");
    if (!carve(p, threads))
        return sn_fail(err, SONDE_LIMIT, "the window has too many taps");
    const int64_t results = sn_count(sn_max(c->n, 1), p->out_pixels, c->oc, 1);
    p->flops = 2 * (uint64_t)sn_max(results, 0) * (uint64_t)(p->w.group_in * p->w.taps);
    if (p->empty)
        p->flops = 0;
    name_plan(p, kernel.name);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ a run */
typedef struct pack_call {
    sn_packing packing;
    void *dst;
    const void *src;
} pack_call;

static void pack_range(void *arg, size_t lo, size_t hi)
{
    const pack_call *c = arg;
    for (size_t u = lo; u < hi; u++)
        c->packing.format->pack(&c->packing, c->dst, c->src, u);
}

static void pack_now(const sn_q8_plan *p, const void *src, void *dst, sn_pool *pool)
{
    int64_t dims[5];
    pack_call c = {packing_of(p, dims), dst, src};
    sn_parallel_range(pool, c.packing.format->units(&c.packing), (size_t)p->w.block_bytes,
                      pack_range, &c);
}

bool sn_q8_run(const sn_q8_plan *p, const sn_q8_args *a, sn_pool *pool)
{
    const uint8_t *w = a->w;
    if (p->d.conv.oc == 0)
        return true;
    if (!p->d.packed && !p->empty) {
        void *packed = sn_piece_at(a->workspace, p->packed);
        pack_now(p, a->w, packed, pool);
        w = packed;
    }
    sn_q8_call c;
    sn_q8_prepare(&c, p, a, w);
    sn_q8_wide_prepare(&c);
    (p->d.sparse   ? sn_q8_by_sparse
     : p->by_rows  ? sn_q8_by_lines
     : p->by_quads ? sn_q8_by_quads
                   : sn_q8_by_pointers)(&c, pool);
    return !atomic_load_explicit(&c.cancelled, memory_order_relaxed);
}
