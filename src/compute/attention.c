/* SPDX-License-Identifier: Apache-2.0 */
/* Planning attention, and handing it out. A piece of work is a run of queries of one head
 * (attention_block.c); its scores stay in the cache from the first product to the last. When there
 * are at least as many heads as threads, each thread packs the head of a piece for itself, right
 * before it reads it, unless it still holds it from the piece before: neighbours mostly go to the
 * same thread. Else all heads are packed first. */
#include "compute/attention.h"

#include <string.h>

#include "base/alloc.h"
#include "compute/attention_rows.h"
#include "compute/attention_tiles.h"
#include "compute/slot_arithmetic.h"
#include "compute/split.h"
#include "compute/tiles.h"

enum {
    PACK_ROWS = 4,           /* fewer queries than this do not pay for packing */
    SCORE_BYTES = 128 << 10, /* of a piece of work: half a usual second-level cache */
    MAX_ROWS = 224,
    WHOLE_KEYS = 1024, /* rows up to this length are done in one go, longer ones … */
    BLOCK_KEYS = 512,  /* … in blocks of so many keys */
    FEW_KEYS = 4096,   /* the same without packing, where nothing is shared between rows */
    PIECES_PER_THREAD = 4,
    TASK_FLOPS = 200000
};

static int64_t round_to(int64_t n, int64_t step)
{
    return sn_ceil_div(n, step) * step;
}

static sonde_status too_large(const sn_attention_desc *d, sonde_error *err)
{
    return sn_fail(err, SONDE_LIMIT, "the attention of %lld queries to %lld keys is too large",
                   (long long)d->q_len, (long long)d->kv_len);
}

/* How many queries and keys a piece of work has, and who packs. */
static void plan_pieces(sn_attention_plan *p)
{
    const sn_attention_desc *d = &p->d;
    const int64_t block = p->tiles ? SN_STEP_HALVES : p->block, all = round_to(d->kv_len, block);
    if (!p->packed) {
        p->rows = p->blocks ? d->q_len : 1;
        p->keys = sn_min(all, FEW_KEYS);
        return;
    }
    const int64_t tile = p->tiles ? SN_ROWS_TILE : p->kernels->f32_gemm_geometry.pixels[1];
    const int64_t heads = d->batch * d->heads;
    const int64_t groups = d->batch * d->kv_heads;
    p->keys = all <= WHOLE_KEYS ? all : BLOCK_KEYS;
    const int64_t fit = SCORE_BYTES / (int64_t)sizeof(float) / p->keys;
    int64_t pieces = sn_ceil_div(d->q_len, sn_min(sn_max(fit, tile), MAX_ROWS));
    p->by_head = groups >= p->threads;
    if (p->threads > 1) /* cores differ: a few pieces each even that out */
        pieces = sn_max(pieces, sn_ceil_div((int64_t)p->threads * PIECES_PER_THREAD, heads));
    p->rows = sn_min(round_to(sn_ceil_div(d->q_len, pieces), tile), d->q_len);
}

/* By tiles: floats of a packed head and of a piece's scratch memory; false: too many. */
static bool tiles_sizes(sn_attention_plan *p, size_t *pack, size_t *scratch)
{
    const int64_t rows = round_to(p->rows, SN_ROWS_TILE), k = sn_attention_tiles_keys(&p->d);
    const int64_t v = sn_attention_tiles_values(&p->d), more = sn_attention_tiles_scratch(p, rows);
    const int64_t scores = sn_count(rows, p->keys + 3, 1, 1), limit = INT64_MAX / 16;
    if (k < 0 || v < 0 || more < 0 || scores < 0 || k > limit || v > limit || more > limit ||
        scores > limit)
        return false;
    p->pack_k = (size_t)k;
    *pack = (size_t)(k + v);
    *scratch = (size_t)(scores + more);
    return true;
}

static sonde_status plan_workspace(sn_attention_plan *p, sonde_error *err)
{
    const sn_attention_desc *d = &p->d;
    const size_t elem = d->dtype == SONDE_DTYPE_F64 ? 8 : 4;
    const bool pack_v = p->packed && (d->v_head % p->block != 0 || d->v[2] != d->v_head ||
                                      sn_attention_stages_keys(d));
    size_t heads, values = 0, pack_bytes, scores, score_bytes;
    if (pack_v)
        p->v_row = round_to(d->v_head, p->block);
    /* Rows have one maximum, one sum and one factor; plain queries need room for all their scores.
     */
    if (!sn_size_mul((size_t)d->batch, (size_t)d->kv_heads, &heads) ||
        !sn_size_mul((size_t)round_to(d->kv_len, p->block), (size_t)d->head, &p->pack_k) ||
        !sn_size_mul((size_t)d->kv_len, (size_t)p->v_row, &values) ||
        !sn_size_add(p->pack_k, values, &pack_bytes) ||
        !sn_size_mul(pack_bytes, sizeof(float), &pack_bytes) ||
        !sn_size_mul((size_t)p->rows, (size_t)p->keys + 3, &scores) ||
        !sn_size_mul(scores > (size_t)d->kv_len ? scores : (size_t)d->kv_len, elem, &score_bytes))
        return too_large(d, err);
    if (p->tiles) {
        size_t pack, floats;
        if (!tiles_sizes(p, &pack, &floats))
            return too_large(d, err);
        pack_bytes = pack * sizeof(float);
        score_bytes = (floats > (size_t)d->kv_len ? floats : (size_t)d->kv_len) * sizeof(float);
    }
    const size_t threads = (size_t)p->threads;
    if (p->packed)
        p->packs = sn_carve_each(&p->workspace, p->by_head ? threads : heads, pack_bytes);
    p->scratch = sn_carve_each(&p->workspace, threads, score_bytes);
    p->held = sn_carve(&p->workspace, p->threads, sizeof(int64_t));
    if (p->packed) {
        const int64_t staging = sn_attention_staging(d, p->rows);
        if (staging < 0)
            return too_large(d, err);
        p->staging = sn_carve_each(&p->workspace, threads, (size_t)staging * sizeof(float));
    }
    return p->workspace.overflow ? too_large(d, err) : SONDE_OK;
}

static bool is_staged(const sn_attention_desc *d)
{
    return sn_attention_stages_queries(d) || sn_attention_stages_keys(d) || d->y_listed;
}

/* Rows that are brought together are dense. */
static void see_staged(sn_attention_desc *d)
{
    if (sn_attention_stages_queries(d))
        d->q[2] = d->head;
    if (sn_attention_stages_keys(d)) {
        d->k[2] = d->head;
        d->v[2] = d->v_head;
    }
    if (d->y_listed)
        d->y[2] = d->v_head;
}

sonde_status sn_attention_plan_make(sn_attention_plan *p, const sn_attention_desc *d,
                                    uint32_t cpu_flags, int threads, sonde_error *err)
{
    memset(p, 0, sizeof *p);
    p->d = *d;
    p->kernels = sn_kernels_get(cpu_flags);
    p->block = p->kernels->f32_gemm_geometry.block;
    p->threads = threads > 0 ? threads : 1;
    p->blocks = d->dtype == SONDE_DTYPE_F32 && d->batch > 0 && d->heads > 0 && d->q_len > 0 &&
                d->head > 0 && d->v_head > 0 && d->kv_len > 0;
    p->source = *d;
    p->packed = p->blocks && (d->q_len >= PACK_ROWS || is_staged(d));
    if (p->packed && is_staged(d))
        see_staged(&p->d);
    p->tiles = d->in_bf16 && p->packed && p->block == SN_ROWS_TILE;
    if (d->kv_len > INT64_MAX / 2 || d->v_head > INT64_MAX / 2)
        return too_large(d, err);
    plan_pieces(p);
    p->name = p->tiles                      ? "bf16_attention_tiles"
              : p->packed                   ? "f32_attention_packed"
              : p->blocks                   ? "f32_attention_rows"
              : d->dtype == SONDE_DTYPE_F64 ? "f64_attention_plain"
                                            : "f32_attention_plain";
    p->arithmetic = p->tiles                      ? SN_SLOT_ARITHMETIC(bf16_rows)
                    : p->blocks                   ? SN_SLOT_ARITHMETIC(f32_gemm)
                    : d->dtype == SONDE_DTYPE_F64 ? SN_ARITH_F64
                                                  : SN_ARITH_F32;
    p->flops = 2 * (uint64_t)d->batch * (uint64_t)d->heads * (uint64_t)d->q_len *
               (uint64_t)d->kv_len * ((uint64_t)d->head + (uint64_t)d->v_head);
    return plan_workspace(p, err);
}

typedef struct call {
    const sn_attention_plan *p;
    const sn_attention_args *a;
    void *workspace;
    int64_t *held;  /* as in the plan */
    int64_t pieces; /* of a head */
    size_t items, per_task;
} call;

static void *scratch(const call *c, int worker)
{
    return sn_pieces_at(c->workspace, c->p->scratch, (size_t)worker);
}

static void plain_item(const call *c, size_t item, void *scores)
{
    const sn_attention_desc *d = &c->p->d;
    const int64_t i = (int64_t)item % d->q_len, head = (int64_t)item / d->q_len;
    if (d->dtype == SONDE_DTYPE_F64)
        sn_attention_query_f64(c->p, c->a, head / d->heads, head % d->heads, i, scores);
    else
        sn_attention_query_f32(c->p, c->a, head / d->heads, head % d->heads, i, scores);
}

static void plain_task(void *arg, size_t task, int worker)
{
    const call *c = arg;
    const size_t end = (task + 1) * c->per_task;
    for (size_t i = task * c->per_task; i < end && i < c->items; i++)
        plain_item(c, i, scratch(c, worker));
}

static float *staging(const call *c, int worker)
{
    return sn_pieces_at(c->workspace, c->p->staging, (size_t)worker);
}

static void pack_group(const call *c, int64_t group, float *dst, int worker)
{
    const int64_t kv_heads = c->p->d.kv_heads;
    sn_attention_pack(c->p, c->a, group / kv_heads, group % kv_heads, dst, staging(c, worker));
}

static void pack_task(void *arg, size_t task, int worker)
{
    const call *c = arg;
    pack_group(c, (int64_t)task, sn_pieces_at(c->workspace, c->p->packs, task), worker);
}

static const float *packed_group(const call *c, int64_t group, int worker)
{
    if (!c->p->packed)
        return NULL;
    if (!c->p->by_head)
        return sn_pieces_at(c->workspace, c->p->packs, (size_t)group);
    float *pack = sn_pieces_at(c->workspace, c->p->packs, (size_t)worker);
    if (c->held[worker] != group)
        pack_group(c, group, pack, worker);
    c->held[worker] = group;
    return pack;
}

static void piece_task(void *arg, size_t task, int worker)
{
    const call *c = arg;
    const sn_attention_desc *d = &c->p->d;
    const size_t end = (task + 1) * c->per_task;
    for (size_t i = task * c->per_task; i < end && i < c->items; i++) {
        const int64_t head = (int64_t)i / c->pieces, first = (int64_t)i % c->pieces * c->p->rows;
        const int64_t b = head / d->heads, h = head % d->heads;
        const sn_attention_piece q = {
            .batch = b,
            .head = h,
            .first = first,
            .rows = sn_min(c->p->rows, d->q_len - first),
            .pack = packed_group(c, b * d->kv_heads + h / (d->heads / d->kv_heads), worker),
            .staging = staging(c, worker),
            .next = c->pieces == 1 && i + 1 < c->items ? head + 1 : -1,
        };
        sn_attention_piece_run(c->p, c->a, &q, scratch(c, worker));
    }
}

void sn_attention_run(const sn_attention_plan *p, const sn_attention_args *a, void *workspace,
                      sn_pool *pool)
{
    const sn_attention_desc *d = &p->d;
    if (d->batch == 0 || d->heads == 0 || d->q_len == 0)
        return;
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL; /* scratch was made for fewer workers */
    const bool plain = !p->blocks || a->qk;
    call c = {.p = p,
              .a = a,
              .workspace = workspace,
              .held = sn_piece_at(workspace, p->held),
              .pieces = sn_ceil_div(d->q_len, plain ? 1 : p->rows)};
    for (int i = 0; i < p->threads; i++)
        c.held[i] = -1;
    c.items = (size_t)(d->batch * d->heads * c.pieces);
    const uint64_t each = p->flops / c.items + 1;
    c.per_task = (size_t)sn_max(TASK_FLOPS / (int64_t)sn_min((int64_t)each, TASK_FLOPS), 1);
    if (!plain && p->packed && !p->by_head)
        sn_pool_run(pool, (size_t)(d->batch * d->kv_heads), pack_task, &c);
    const size_t tasks = (c.items + c.per_task - 1) / c.per_task;
    const sn_thread_hook hook = sn_tiles_hook(p->kernels);
    if (p->tiles && !plain)
        sn_pool_run_hooked(pool, tasks, piece_task, &c, &hook);
    else
        sn_pool_run(pool, tasks, plain ? plain_task : piece_task, &c);
}
