/* SPDX-License-Identifier: Apache-2.0 */
/* Driving matrix products. An item is a few panels of columns (chunk) times a run of rows (segment)
 * of one batch; the rows of a segment fit the second-level cache while all chunks pass over them.
 * With few rows the kernel takes more panels at once, which is all a matrix-vector product needs.
 */
#include "compute/gemm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/gemm_finish.h"
#include "compute/gemm_sparse.h"
#include "compute/gemm_tiles.h"
#include "compute/packs.h"
#include "compute/slot_arithmetic.h"
#include "compute/small_floats.h"
#include "compute/split.h"
#include "compute/variant.h"

enum {
    TASK_FLOPS = 500000, /* below this a task is not worth handing out */
    TASKS_PER_THREAD = 16,
    FEW_ROWS = 12,              /* up to here packing B costs more than it saves */
    SMALL_B = 32 << 10,         /* bytes: such a B stays in the first-level cache as it is */
    PART = 1024,                /* of k at a time: that many rows of a chunk's panels stay near */
    LINE = 16,                  /* floats of a cache line */
    FAR = 4096 / sizeof(float), /* rows of A so far apart lie in the same set of the cache; … */
    SET = 4,                    /* … so many of a tile find room there, beside B */
    LONG_COLUMN = 192,          /* numbers of a column of A, which lie in as many lines */
    NEAR_PANELS = 12,           /* of B that repay a copy of the rows of A, one behind the other */
};

static void plan_split(sn_gemm_plan *p, size_t l2_bytes)
{
    const sn_gemm_desc *d = &p->d;
    const sn_variant v = sn_variant_of(d->variant);
    const int64_t model_q =
        sn_tile_pick_blocks(&p->k->f32_gemm_geometry, d->m, 1, p->panels, !d->trans_a);
    const int64_t q = sn_variant_blocks(&v, model_q, p->panels);
    p->chunks = sn_max(sn_ceil_div(p->panels, q), 1);
    p->chunk_panels = sn_ceil_div(p->panels, p->chunks);
    const int64_t tile = p->k->f32_gemm_geometry.pixels[sn_max(p->chunk_panels, 1) - 1];
    const int64_t units = sn_max(sn_ceil_div(d->m, tile), 1);
    p->part = sn_max(d->k, 1);
    p->parts = 1;
    if (!p->in_place) { /* even parts, of whole cache lines of A */
        const int64_t most = v.other ? PART / 2 : PART;
        p->part = sn_ceil_div(sn_ceil_div(p->part, sn_ceil_div(p->part, most)), LINE) * LINE;
        p->parts = sn_max(sn_ceil_div(d->k, p->part), 1);
    }
    int64_t seg = sn_max(sn_min(units, (int64_t)l2_bytes / 4 / (p->part * 4 * tile)), 1);
    if (p->post && d->n * d->k * 4 <= (int64_t)l2_bytes / 4) /* whole rows for the second pass */
        seg = sn_max(sn_min(seg, (int64_t)l2_bytes / 8 / (sn_max(d->n, 1) * 4 * tile)), 1);
    const int64_t by_flops = sn_max((int64_t)((p->flops + TASK_FLOPS / 2) / TASK_FLOPS), 1);
    const int64_t wanted = sn_task_count(by_flops, p->threads, TASKS_PER_THREAD);
    const int64_t others = sn_max(p->batches * p->chunks, 1);
    if (others * sn_ceil_div(units, seg) < wanted)
        seg = sn_max(units / sn_ceil_div(wanted, others), 1);
    seg = sn_variant_length(&v, seg, units);
    p->seg = sn_ceil_div(units, sn_ceil_div(units, seg)) * tile;
    p->segs = sn_max(sn_ceil_div(d->m, p->seg), 1);
    p->items = (size_t)(p->batches * p->chunks * p->segs);
    const bool far = d->trans_a ? d->k >= LONG_COLUMN : d->k % FAR == 0 && sn_min(tile, d->m) > SET;
    if (far && !p->in_place && d->k > 0 && p->panels >= NEAR_PANELS)
        p->near_pitch = p->part + LINE;
    const int64_t item_bytes = sn_min(p->seg, d->m) * p->chunk_panels * p->block * 4;
    p->together = (size_t)sn_max((int64_t)l2_bytes / 4 / sn_max(item_bytes, 1), 1);
    p->tasks = (size_t)sn_min((int64_t)p->items, sn_max(v.coarse ? wanted / 4 : wanted, 1));
}

unsigned sn_gemm_pack_id(sn_dtype dtype, uint32_t cpu_flags)
{
    return sn_pack_find(SN_WEIGHTS_PANELS, dtype, &sn_kernels_get(cpu_flags)->f32_gemm_geometry);
}

sonde_status sn_gemm_plan_make(sn_gemm_plan *p, const sn_gemm_desc *d, uint32_t cpu_flags,
                               size_t l2_bytes, int threads, sonde_error *err)
{
    memset(p, 0, sizeof *p);
    p->d = *d;
    p->k = sn_kernels_get(cpu_flags);
    p->block = p->k->f32_gemm_geometry.block;
    p->threads = threads > 0 ? threads : 1;
    p->batches = 1;
    for (int i = 0; i < d->batch_rank; i++)
        p->batches *= d->batch[i];
    p->panels = sn_ceil_div(d->n, p->block);
    p->flops = 2 * (uint64_t)p->batches * (uint64_t)d->m * (uint64_t)d->n * (uint64_t)d->k;
    p->tile = d->trans_a ? p->k->f32_conv_any : p->k->f32_gemm;

    const bool clip = sn_act_limits(&d->act, &p->lo, &p->hi);
    const bool c_row = d->has_c && d->c_m == 0 && d->c_n == 1;
    const bool c_full = d->has_c && d->c_m == d->n && d->c_n == 1;
    const bool plain = d->alpha == 1.0f && (!d->has_c || d->beta == 1.0f);
    /* What the kernel can add itself: one bias row, one full matrix. */
    const bool inside = plain && (!d->has_c || c_row || (c_full && !d->residual));
    p->bias = inside && c_row;
    p->add = inside && (d->residual || (c_full && !c_row));
    p->raw = !inside;
    p->post = p->raw || !clip;
    if (!inside) {
        p->lo = -INFINITY;
        p->hi = INFINITY;
    }
    p->cpu_flags = cpu_flags;
    const bool in_halves = d->packed && d->tiles && d->b_dtype == SONDE_DTYPE_F32;
    const bool in_f16 = in_halves || (d->f16 && sn_pack_has_f16_tiles(cpu_flags));
    p->arithmetic =
        d->tiles ? sn_tiles_arithmetic(d->b_dtype, in_f16) : SN_SLOT_ARITHMETIC(f32_gemm);
    if (d->tiles) {
        p->panels = sn_ceil_div(d->n, SN_ROWS_TILE);
        snprintf(p->name, sizeof p->name, "%s_gemm%s",
                 in_halves                                    ? "f32"
                 : d->packed && d->b_dtype == SONDE_DTYPE_F16 ? "f16"
                                                              : "bf16",
                 strrchr(in_f16 ? p->k->f16_rows_name : p->k->bf16_rows_name, '_'));
        p->items = (size_t)(p->batches * p->panels);
        return sn_gemm_tiles_plan(p, l2_bytes) && !p->workspace.overflow
                   ? SONDE_OK
                   : sn_fail(err, SONDE_LIMIT, "the matrix is too large");
    }
    if (d->sparse)
        return sn_gemm_sparse_plan(p, l2_bytes) && !p->workspace.overflow
                   ? SONDE_OK
                   : sn_fail(err, SONDE_LIMIT, "the matrix is too large");
    p->in_place = !d->packed && !d->trans_a && !d->trans_b &&
                  (d->m <= FEW_ROWS || d->n * d->k <= SMALL_B / (int64_t)sizeof(float));
    if (p->in_place) {
        if (d->n % p->block != 0 && (!sn_size_mul((size_t)d->b_count * p->block * sizeof(float),
                                                  (size_t)d->k, &p->pack_bytes)))
            return sn_fail(err, SONDE_LIMIT, "the matrix is too large");
    } else if (!d->packed) {
        const int64_t dims[3] = {d->b_count, d->trans_b ? d->n : d->k, d->trans_b ? d->k : d->n};
        const sn_packing packing = {sn_pack_get(sn_gemm_pack_id(SONDE_DTYPE_F32, cpu_flags)), dims,
                                    3, d->trans_b, cpu_flags};
        if (d->n > 0 && d->k > 0 && d->b_count > 0 &&
            !packing.format->bytes(&packing, &p->pack_bytes))
            return sn_fail(err, SONDE_LIMIT, "the matrix is too large");
    }
    plan_split(p, l2_bytes);
    if (d->packed && d->b_dtype && d->b_dtype != SONDE_DTYPE_F32) {
        p->wide_floats = p->part * p->chunk_panels * p->block;
        p->wide = sn_carve_each(&p->workspace, (size_t)p->threads,
                                (size_t)p->wide_floats * sizeof(float));
    } else {
        p->pack = sn_carve_bytes(&p->workspace, p->pack_bytes);
    }
    const int64_t near = sn_min(p->seg, d->m) * p->near_pitch * (int64_t)sizeof(float);
    p->near = sn_carve_each(&p->workspace, (size_t)p->threads, (size_t)near);
    const char *isa = strrchr(p->k->f32_gemm_name, '_');
    const int64_t rows = p->k->f32_gemm_geometry.pixels[sn_max(p->chunk_panels, 1) - 1];
    snprintf(p->name, sizeof p->name, "f32_gemm_%dx%d_%s", (int)sn_min(rows, sn_max(d->m, 1)),
             (int)(p->chunk_panels * p->block), isa ? isa + 1 : "ref");
    return SONDE_OK;
}

typedef struct gemm_call {
    const sn_gemm_plan *p;
    const float *a, *c, *z;
    const void *b; /* of b_dtype */
    float *y;
    const float *tails; /* packed last panels, when B is read in place */
    void *workspace;
} gemm_call;

/* Full panels from B itself, whose rows are n apart; a partial one from its packed copy. */
static void tile_in_place(const gemm_call *call, sn_f32_tile *t, int64_t ib, int64_t col)
{
    const sn_gemm_plan *p = call->p;
    const int64_t n = p->d.n, k = p->d.k, block = p->block;
    const unsigned lanes = t->lanes, full = t->blocks - (lanes > 0);
    t->lanes = 0;
    if (full > 0) {
        t->blocks = full;
        t->w = k > 0 ? (const float *)call->b + ib * n * k + col : t->y; /* nothing of it is read */
        t->w_q = block;
        t->w_ic = n;
        p->tile(t);
    }
    if (lanes > 0) {
        const int64_t at = (int64_t)full * block;
        t->blocks = 1;
        t->lanes = lanes;
        t->w = k > 0 ? call->tails + ib * k * block : t->y;
        t->w_ic = block;
        t->y += at;
        t->bias = t->bias ? t->bias + at : NULL;
        t->z = t->z ? t->z + at : NULL;
        p->tile(t);
    }
}

/* Part `part` of the sum over k of one item: the first starts with what the kernel adds, the later
 * ones go on from Y, the last one clips. */
static void gemm_item(const gemm_call *call, size_t index, int64_t part, float *wide,
                      const float *near)
{
    const sn_gemm_plan *p = call->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t block = p->block;
    const int64_t chunk = (int64_t)index % p->chunks, rest = (int64_t)index / p->chunks;
    const int64_t seg = rest % p->segs, batch = rest / p->segs;
    const int64_t p0 = chunk * p->panels / p->chunks, p1 = (chunk + 1) * p->panels / p->chunks;
    const int64_t col = p0 * block, width = sn_min(d->n, p1 * block) - col;
    const int64_t row = seg * p->seg, rows = sn_min(d->m - row, p->seg);
    if (rows <= 0 || width <= 0)
        return;
    const int64_t ia = sn_batch_at(d->batch, d->a_batch, d->batch_rank, batch);
    const int64_t ib = sn_batch_at(d->batch, d->b_batch, d->batch_rank, batch);
    const int64_t out = batch * d->m * d->n + row * d->n + col;
    const float *c = call->c ? call->c + row * d->c_m + col * d->c_n : NULL;
    const float *z = call->z ? call->z + out : NULL;
    const float *addend = !p->add ? NULL : z ? z : c;
    const int64_t k0 = part * p->part, k = sn_min(d->k - k0, p->part);
    const bool first = part == 0, last = part + 1 == p->parts;
    const int64_t w_at = (ib * p->panels + p0) * d->k * block;
    const float *w = wide || p->in_place ? NULL : (const float *)call->b + w_at;
    const float *a = call->a + ia * d->m * d->k;
    const int64_t x_row = near ? p->near_pitch : d->trans_a ? 1 : d->k;
    sn_f32_tile t = {
        .x = near ? near : a + (d->trans_a ? row + k0 * d->m : row * d->k + k0),
        .w = w ? w + k0 * block : wide,
        .bias = first && p->bias ? c : NULL,
        .z = first ? addend : call->y + out,
        .y = call->y + out,
        .pixels = (size_t)rows,
        .blocks = (unsigned)(p1 - p0),
        .lanes = (unsigned)(width % block),
        .block = p->block,
        .ic_blocks = 1,
        .ic = (size_t)k,
        .ic_last = (size_t)k,
        .kh = 1,
        .kw = 1,
        .last_kw = 1,
        .x_pixel = x_row,
        .x_ic = near || !d->trans_a ? 1 : d->m,
        .w_q = (wide ? k : d->k) * block,
        .w_ic = block,
        .y_pixel = d->n,
        .y_q = block,
        .z_pixel = d->n,
        .z_q = block,
        .lo = last ? p->lo : -INFINITY,
        .hi = last ? p->hi : INFINITY,
        /* The next chunk's panels lie behind these; the runs of this one fetch them. */
        .w_next = w ? w + ((p1 - p0) * d->k + k0) * block : NULL,
    };
    for (int64_t q = 0; wide && q < p1 - p0; q++)
        sn_load_f32(p->cpu_flags, d->b_dtype, wide + q * k * block,
                    (const uint16_t *)call->b + w_at + (q * d->k + k0) * block,
                    (size_t)(k * block));
    if (p->in_place)
        tile_in_place(call, &t, ib, col);
    else
        (near ? p->k->f32_gemm : p->tile)(&t);
}

/* A copy of part `part` of the rows of A that an item and its neighbours share, where those are
 * columns in memory, or crowd each other out of the first-level cache. */
static void bring_near(const gemm_call *call, size_t index, int64_t part, float *near)
{
    const sn_gemm_plan *p = call->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t rest = (int64_t)index / p->chunks, batch = rest / p->segs;
    const int64_t row = rest % p->segs * p->seg, rows = sn_min(d->m - row, p->seg);
    const int64_t ia = sn_batch_at(d->batch, d->a_batch, d->batch_rank, batch);
    const int64_t k0 = part * p->part, k = sn_min(d->k - k0, p->part);
    if (d->trans_a) {
        const float *a = call->a + (ia * d->k + k0) * d->m + row;
        for (int64_t j = 0; j < k; j += LINE)
            for (int64_t r = 0; r < rows; r++)
                for (int64_t i = j; i < sn_min(j + LINE, k); i++)
                    near[r * p->near_pitch + i] = a[i * d->m + r];
        return;
    }
    const float *a = call->a + (ia * d->m + row) * d->k + k0;
    for (int64_t r = 0; r < rows; r++, near += p->near_pitch, a += d->k)
        memcpy(near, a, (size_t)k * sizeof *near);
}

/* What the kernel could not do, for items from … to-1 of one segment: long rows at once, as an
 * activation takes a while to get going, and yet soon enough to find them in the cache. */
static void finish_items(const gemm_call *call, size_t from, size_t to)
{
    const sn_gemm_plan *p = call->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t first = (int64_t)from % p->chunks, rest = (int64_t)from / p->chunks;
    const int64_t end = first + (int64_t)(to - from);
    const int64_t col = first * p->panels / p->chunks * p->block;
    const int64_t width = sn_min(d->n, end * p->panels / p->chunks * p->block) - col;
    const int64_t row = rest % p->segs * p->seg, rows = sn_min(d->m - row, p->seg);
    const int64_t out = (rest / p->segs * d->m + row) * d->n + col;
    sn_gemm_finish(p, call->c ? call->c + row * d->c_m + col * d->c_n : NULL,
                   call->z ? call->z + out : NULL, call->y + out, rows, width);
}

/* Items of one segment go through k part by part together, so that the part of A they share stays
 * in the second-level cache. */
static void gemm_task(void *arg, size_t task, int worker)
{
    const gemm_call *c = arg;
    const sn_gemm_plan *p = c->p;
    const size_t end = sn_split(p->items, p->tasks, task + 1), chunks = (size_t)p->chunks;
    float *wide = p->wide_floats ? sn_pieces_at(c->workspace, p->wide, (size_t)worker) : NULL;
    float *copy = p->near_pitch ? sn_pieces_at(c->workspace, p->near, (size_t)worker) : NULL;
    for (size_t i = sn_split(p->items, p->tasks, task), next; i < end; i = next) {
        next = (i / chunks + 1) * chunks;
        next = next < end ? next : end;
        if (p->post && next - i > p->together)
            next = i + p->together;
        float *near = (int64_t)(next - i) * p->chunk_panels >= NEAR_PANELS ? copy : NULL;
        for (int64_t part = 0; part < p->parts; part++) {
            if (near)
                bring_near(c, i, part, near);
            for (size_t j = i; j < next; j++)
                gemm_item(c, j, part, wide, near);
        }
        if (p->post)
            finish_items(c, i, next);
    }
}

typedef struct pack_call {
    const sn_gemm_plan *p;
    float *dst;
    const float *src;
    size_t units, tasks;
} pack_call;

/* Panel `unit` of all matrices, or with `in_place` the last panel of matrix `unit`. */
static void pack_panel(const pack_call *c, int64_t unit)
{
    const sn_gemm_plan *p = c->p;
    const sn_gemm_desc *d = &p->d;
    const int64_t block = p->block;
    const int64_t matrix = p->in_place ? unit : unit / p->panels;
    const int64_t col = (p->in_place ? p->panels - 1 : unit % p->panels) * block;
    const int64_t lanes = sn_min(d->n - col, block);
    const float *src = c->src + matrix * d->n * d->k;
    float *dst = c->dst + unit * d->k * block;
    if (d->trans_b) { /* rows of B become lanes: the change of layout that blocks channels */
        p->k->f32_block(dst, src + col * d->k, (size_t)d->k, (unsigned)lanes, p->block,
                        (size_t)d->k);
        return;
    }
    for (int64_t i = 0; i < d->k; i++) {
        memcpy(dst + i * block, src + i * d->n + col, (size_t)lanes * sizeof(float));
        if (lanes < block)
            memset(dst + i * block + lanes, 0, (size_t)(block - lanes) * sizeof(float));
    }
}

static void pack_task(void *arg, size_t task, int worker)
{
    const pack_call *c = arg;
    (void)worker;
    for (size_t u = sn_split(c->units, c->tasks, task); u < sn_split(c->units, c->tasks, task + 1);
         u++)
        pack_panel(c, (int64_t)u);
}

void sn_gemm_run(const sn_gemm_plan *p, const void *a, const void *b, const float *c,
                 const float *z, float *y, void *workspace, sn_pool *pool)
{
    if (p->items == 0 || p->d.m == 0 || p->d.n == 0)
        return;
    const sn_gemm_operands o = {.a = a, .b = b, .c = c, .z = z, .y = y};
    if (p->d.tiles) {
        sn_gemm_tiles_run(p, &o, workspace, pool);
        return;
    }
    if (p->d.sparse) {
        sn_gemm_sparse_run(p, &o, workspace, pool);
        return;
    }
    /* Workspace is planned per worker: a larger pool than planned may not help. */
    if ((p->wide_floats || p->near_pitch) && sn_pool_threads(pool) > p->threads)
        pool = NULL;
    gemm_call call = {p, a, c, z, b, y, NULL, workspace};
    if (p->pack_bytes > 0) {
        float *packed = sn_piece_at(workspace, p->pack);
        pack_call pc = {.p = p,
                        .dst = packed,
                        .src = b,
                        .units = (size_t)(p->d.b_count * (p->in_place ? 1 : p->panels))};
        const size_t worth = p->pack_bytes / (64 << 10) + 1;
        pc.tasks = (size_t)sn_min((int64_t)pc.units, (int64_t)worth);
        sn_pool_run(pool, pc.tasks, pack_task, &pc);
        if (p->in_place)
            call.tails = packed;
        else
            call.b = packed;
    }
    sn_pool_run(pool, p->tasks, gemm_task, &call);
}
