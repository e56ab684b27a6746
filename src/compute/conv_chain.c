/* SPDX-License-Identifier: Apache-2.0 */
/* Two convolutions as one. Channels of a depthwise convolution do not mix, so a chunk of output
 * channels of the first is all that a chunk of the second needs, and a band of its rows needs few
 * more rows of the first, which the bands on both sides compute again. A task is a chunk of a band
 * and runs on one thread with a buffer of its own; neighbours share the input's rows. When a
 * thread's cache holds everything between the two, they run one after the other instead, each over
 * the whole pool. */
#include "compute/conv_chain.h"

#include <string.h>

#include "compute/conv_tiles.h"
#include "compute/split.h"
#include "compute/tile_cost.h"
#include "compute/tiles.h"

/* Input rows that one output row needs. */
static int64_t window_rows(const sn_conv_desc *second)
{
    return (second->kernel[1] - 1) * second->dilation[1] + 1;
}

/* Chunks as large as the kernel likes them, bands so that what is between fills a quarter of the
 * cache. Rows too long for that, or windows too high: fewer channels of all rows. */
static void pick_parts(sn_conv_chain *p, const sn_conv_desc *first, const sn_conv_desc *second,
                       const sn_geometry *tiles, size_t l2_bytes)
{
    const int64_t block = first->out_block, l2 = (int64_t)l2_bytes, rows = second->out[1];
    const int64_t pixels = first->out[1] * first->out[2];
    p->chunk = first->oc;
    p->band = rows;
    if (block == 0 || !first->packed || pixels <= 0 || rows <= 0 || first->oc % block == 1)
        return; /* a last chunk of one channel would be no depthwise convolution */
    const int64_t blocks = sn_ceil_div(first->oc, block), plane = pixels * block * 4;
    if (blocks < 3 || plane * blocks < l2 / 4 * 3)
        return;
    p->apart = true;
    const int64_t q = first->tiles ? sn_min(blocks, SN_TILE_MAX_BLOCKS)
                                   : sn_tile_pick_blocks(tiles, pixels, 1, blocks, false);
    const int64_t window = window_rows(second), stride = second->stride[1];
    const int64_t fit = l2 / 4 / (q * block * 4 * first->out[2]);
    const int64_t least = sn_max(4 * (window - stride) / stride, 1); /* else too much twice */
    const int64_t most = fit < window ? 0 : (fit - window) / stride + 1;
    if (most >= least) {
        const int64_t bands = sn_ceil_div(sn_ceil_div(rows, most), p->threads) * p->threads;
        p->chunk = q * block;
        p->band = sn_max(sn_ceil_div(rows, bands), sn_min(least, rows));
        return;
    }
    const int64_t whole = sn_max(l2 / 2 / plane, 1), fair = sn_max(blocks / (p->threads * 3), 1);
    p->chunk = sn_min(whole, fair) * block;
}

static int64_t weight_bytes(const sn_conv_desc *d)
{
    return (int64_t)sn_dtype_bytes(d->w_dtype ? d->w_dtype : SONDE_DTYPE_F32);
}

static sonde_status plan_part(sn_conv_chain *p, int part, const sn_conv_desc *first,
                              const sn_conv_desc *second, int64_t channels, uint32_t cpu_flags,
                              size_t l2_bytes, int threads, sonde_error *err)
{
    sn_conv_desc a = *first, b = *second;
    a.oc = b.c = b.oc = b.groups = channels;
    if (p->apart)
        a.n = b.n = 1;
    SN_TRY(sn_conv_plan_make(&p->first[part], &a, cpu_flags, l2_bytes, threads, err));
    return sn_conv_plan_make(&p->second[part], &b, cpu_flags, l2_bytes, threads, err);
}

static size_t plan_space(const sn_conv_chain *p, int part)
{
    const size_t a = p->first[part].workspace.bytes, b = p->second[part].workspace.bytes;
    return a > b ? a : b;
}

sonde_status sn_conv_chain_make(sn_conv_chain *p, const sn_conv_desc *first,
                                const sn_conv_desc *second, uint32_t cpu_flags, size_t l2_bytes,
                                int threads, sonde_error *err)
{
    const int64_t block = sn_max(first->out_block, 1);
    memset(p, 0, sizeof *p);
    p->threads = threads > 0 ? threads : 1;
    p->images = first->n;
    p->channels = first->oc;
    pick_parts(p, first, second, &sn_kernels_get(cpu_flags)->f32_conv_geometry, l2_bytes);
    p->chunks = sn_max(sn_ceil_div(p->channels, sn_max(p->chunk, 1)), 1);
    p->bands = sn_max(sn_ceil_div(second->out[1], sn_max(p->band, 1)), 1);
    const int inner_threads = p->apart ? 1 : p->threads;
    const int64_t last = p->channels - (p->chunks - 1) * p->chunk;
    SN_TRY(plan_part(p, 0, first, second, p->chunk, cpu_flags, l2_bytes, inner_threads, err));
    SN_TRY(plan_part(p, 1, first, second, last, cpu_flags, l2_bytes, inner_threads, err));
    /* Weights of whole blocks, as conv_pack.c lays them out. */
    const int64_t chunk_blocks = sn_ceil_div(p->chunk, block);
    p->first_weights = first->tiles ? chunk_blocks * p->first[0].t.block_bytes
                                    : chunk_blocks * sn_ceil_div(first->c, block) * block * block *
                                          weight_bytes(first);
    p->second_weights =
        chunk_blocks * second->kernel[1] * second->kernel[2] * block * weight_bytes(second);
    p->in = sn_ceil_div(first->c, block) * block * first->in[1] * first->in[2];
    p->out = second->out[1] * second->out[2];
    const int64_t rows =
        sn_min(first->out[1], (p->band - 1) * second->stride[1] + window_rows(second));
    size_t floats = (size_t)(p->apart ? 1 : sn_max(p->images, 0)), bytes;
    if (!sn_size_mul(floats, (size_t)(chunk_blocks * block), &floats) ||
        !sn_size_mul(floats, (size_t)((p->apart ? rows : first->out[1]) * first->out[2]),
                     &floats) ||
        !sn_size_mul(floats, sizeof(float), &bytes) || bytes > PTRDIFF_MAX / 2)
        return sn_fail(err, SONDE_LIMIT, "the convolution's input is too large");
    const size_t workers = (size_t)(p->apart ? p->threads : 1);
    const size_t spaces[2] = {plan_space(p, 0), plan_space(p, 1)};
    p->between = sn_carve_each(&p->workspace, workers, bytes);
    p->core = sn_carve_each(&p->workspace, workers, spaces[spaces[1] > spaces[0]]);
    for (int64_t i = 0; i < p->chunks; i++) {
        const int part = i + 1 == p->chunks;
        p->flops += p->first[part].flops + p->second[part].flops;
    }
    p->flops *= p->apart ? (uint64_t)sn_max(p->images, 0) : 1;
    return SONDE_OK;
}

typedef struct chain_job {
    const sn_conv_chain *p;
    const sn_conv_chain_call *c;
    void *workspace;
} chain_job;

static void run_whole(const sn_conv_chain *p, const sn_conv_chain_call *c, void *workspace,
                      sn_pool *pool)
{
    float *between = sn_pieces_at(workspace, p->between, 0);
    void *core = sn_pieces_at(workspace, p->core, 0);
    sn_conv_run(&p->first[1], c->x, c->w[0], c->bias[0], NULL, between, core, pool);
    sn_conv_run(&p->second[1], between, c->w[1], c->bias[1], NULL, c->y, core, pool);
}

/* The input rows that a band's output rows see. */
static sn_conv_band band_at(const sn_conv_chain *p, int64_t index)
{
    const sn_conv_desc *d = &p->second[1].d;
    sn_conv_band b = {.from = index * p->band, .to = sn_min((index + 1) * p->band, d->out[1])};
    const int64_t end = (b.to - 1) * d->stride[1] - d->pad[1] + window_rows(d);
    b.in_from = sn_min(sn_max(b.from * d->stride[1] - d->pad[1], 0), d->in[1]);
    b.in_rows = sn_max(sn_min(end, d->in[1]) - b.in_from, 0);
    return b;
}

/* Element `at` of an image that may be bf16 in memory. */
static void *elements_from(void *image, bool is_bf16, int64_t at)
{
    return (uint8_t *)image + at * (int64_t)(is_bf16 ? sizeof(uint16_t) : sizeof(float));
}

static void chain_task(void *arg, size_t task, int worker)
{
    const chain_job *j = arg;
    const sn_conv_chain *p = j->p;
    const sn_conv_chain_call *c = j->c;
    const int64_t chunk = (int64_t)task % p->chunks, rest = (int64_t)task / p->chunks;
    const int64_t image = rest / p->bands;
    const sn_conv_band band = band_at(p, rest % p->bands);
    const int part = chunk + 1 == p->chunks;
    const sn_conv_desc *d = &p->first[part].d;
    const int64_t from = chunk * p->chunk, block = d->out_block;
    const int64_t padded = sn_ceil_div(p->channels, block) * block;
    const int64_t x_at = image * p->in + band.in_from * d->in[2] * block;
    const int64_t y_at = (image * padded + from) * p->out;
    float *between = sn_pieces_at(j->workspace, p->between, (size_t)worker);
    void *core = sn_pieces_at(j->workspace, p->core, (size_t)worker);
    const sn_conv_call first = {.p = &p->first[part],
                                .x = elements_from((void *)(uintptr_t)c->x, d->x_half, x_at),
                                .w = (const uint8_t *)c->w[0] + chunk * p->first_weights,
                                .bias = c->bias[0] ? c->bias[0] + from : NULL,
                                .y = between,
                                .workspace = core};
    const sn_conv_call second = {.p = &p->second[part],
                                 .x = between,
                                 .w = (const uint8_t *)c->w[1] + chunk * p->second_weights,
                                 .bias = c->bias[1] ? c->bias[1] + from : NULL,
                                 .y = elements_from(c->y, p->second[part].d.y_half, y_at),
                                 .workspace = core};
    (d->tiles ? sn_conv_tiles_band : sn_conv_direct_band)(&first, band.in_rows * d->in[2]);
    sn_conv_depthwise_band(&second, &band);
}

void sn_conv_chain_run(const sn_conv_chain *p, const sn_conv_chain_call *c, void *workspace,
                       sn_pool *pool)
{
    if (!p->apart) {
        run_whole(p, c, workspace, pool);
        return;
    }
    chain_job j = {p, c, workspace};
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL;
    const sn_thread_hook hook = sn_tiles_hook(p->first[0].k);
    const size_t tasks = (size_t)(p->images * p->bands * p->chunks);
    if (p->first[0].d.tiles)
        sn_pool_run_hooked(pool, tasks, chain_task, &j, &hook);
    else
        sn_pool_run(pool, tasks, chain_task, &j);
}
