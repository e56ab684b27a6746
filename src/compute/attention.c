/* SPDX-License-Identifier: Apache-2.0 */
/* Driving attention. A piece of work is a run of queries of one head: its scores stay in the cache
 * from the first product to the last. Packing keys and values is a parallel region of its own. */
#include "compute/attention.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/split.h"

enum {
    PACK_ROWS = 4,           /* fewer queries than this do not pay for packing */
    SCORE_BYTES = 128 << 10, /* of a piece of work: half a usual second-level cache */
    TILE_ROWS = 14,
    MAX_ROWS = 56,
    TASK_FLOPS = 200000
};

static bool size_of(int64_t a, int64_t b, size_t *out)
{
    return sn_size_mul((size_t)a, (size_t)b, out);
}

static sonde_status plan_workspace(sn_attention_plan *p, sonde_error *err)
{
    const sn_attention_desc *d = &p->d;
    const size_t elem = d->dtype == SONDE_DTYPE_F64 ? 8 : 4;
    const int64_t block = p->block;
    const bool pack_v = d->v_head % block != 0; /* whole blocks are read where they lie */
    size_t heads, packs, scores, total;
    if (!size_of(d->batch, d->kv_heads, &heads) ||
        !size_of(sn_ceil_div(d->kv_len, block) * block, d->head, &p->pack_k) ||
        !size_of(pack_v ? sn_ceil_div(d->v_head, block) * block : 0, d->kv_len, &p->pack_v) ||
        !sn_size_add(p->pack_k, p->pack_v, &packs) || !sn_size_mul(packs, heads, &packs) ||
        !size_of(p->rows, p->row_len, &scores) ||
        !sn_size_mul(scores, (size_t)p->threads, &scores) ||
        !sn_size_add(p->packed ? packs : 0, scores, &total) ||
        !sn_size_mul(total, elem, &p->workspace_bytes) || p->workspace_bytes > PTRDIFF_MAX)
        return sn_fail(err, SONDE_LIMIT, "the attention of %lld queries to %lld keys is too large",
                       (long long)d->q_len, (long long)d->kv_len);
    return SONDE_OK;
}

sonde_status sn_attention_plan_make(sn_attention_plan *p, const sn_attention_desc *d,
                                    uint32_t cpu_flags, int threads, sonde_error *err)
{
    memset(p, 0, sizeof *p);
    p->d = *d;
    p->kernels = sn_kernels_get(cpu_flags);
    p->block = (unsigned)sn_cpu_block(cpu_flags);
    p->threads = threads > 0 ? threads : 1;
    p->packed = d->dtype == SONDE_DTYPE_F32 && d->q_len >= PACK_ROWS && d->head > 0 &&
                d->v_head > 0 && d->kv_len > 0;
    if (d->kv_len > INT64_MAX / 2 || d->v_head > INT64_MAX / 2)
        return sn_fail(err, SONDE_LIMIT, "an attention over %lld keys is too large",
                       (long long)d->kv_len);
    p->row_len = sn_ceil_div(d->kv_len, p->block) * (int64_t)p->block;
    p->rows = 1;
    if (p->packed) {
        int64_t fit = SCORE_BYTES / (int64_t)sizeof(float) / sn_max(p->row_len, 1);
        p->rows = sn_min(sn_max(fit / TILE_ROWS * TILE_ROWS, TILE_ROWS), MAX_ROWS);
        p->rows = sn_min(p->rows, d->q_len);
    }
    p->name = p->packed                     ? "f32_attention_packed"
              : d->dtype == SONDE_DTYPE_F64 ? "f64_attention_plain"
                                            : "f32_attention_plain";
    p->flops = 2 * (uint64_t)d->batch * (uint64_t)d->heads * (uint64_t)d->q_len *
               (uint64_t)d->kv_len * ((uint64_t)d->head + (uint64_t)d->v_head);
    return plan_workspace(p, err);
}

void sn_attention_range(const sn_attention_desc *d, const sn_attention_args *a, int64_t b,
                        int64_t i, int64_t *lo, int64_t *hi)
{
    int64_t from = a->begin ? a->begin[b] : 0, to = a->end ? a->end[b] : d->kv_len;
    if (d->causal) {
        const int64_t at = i + (a->offset ? a->offset[b] : 0);
        to = sn_min(to, at + 1);
        if (d->window >= 0)
            from = sn_max(from, at - d->window);
    }
    *lo = sn_min(sn_max(from, 0), d->kv_len);
    *hi = sn_max(sn_min(to, d->kv_len), *lo);
}

/* ------------------------------------------------------------------ packed */
typedef struct call {
    const sn_attention_plan *p;
    const sn_attention_args *a;
    float *packs;    /* per batch and key head: keys, then values */
    uint8_t *scores; /* per worker */
    size_t score_bytes;
    int64_t pieces; /* of a head */
    size_t items, per_task;
} call;

/* keys [position][head] ► panels [panel][head][block]: columns of kᵀ. */
static void pack_keys(const sn_attention_plan *p, const float *k, float *dst)
{
    const sn_attention_desc *d = &p->d;
    const int64_t block = p->block;
    for (int64_t t = 0; t < d->kv_len; t += block, dst += d->head * block) {
        const int64_t lanes = sn_min(block, d->kv_len - t);
        if (lanes < block)
            memset(dst, 0, sizeof(float) * (size_t)(d->head * block));
        for (int64_t l = 0; l < lanes; l++) {
            const float *row = k + (t + l) * d->k[2];
            for (int64_t c = 0; c < d->head; c++)
                dst[c * block + l] = row[c];
        }
    }
}

/* values [position][v_head] ► panels [panel][position][block]. */
static void pack_values(const sn_attention_plan *p, const float *v, float *dst)
{
    const sn_attention_desc *d = &p->d;
    const int64_t block = p->block;
    for (int64_t c = 0; c < d->v_head; c += block) {
        const int64_t lanes = sn_min(block, d->v_head - c);
        for (int64_t t = 0; t < d->kv_len; t++, dst += block) {
            memcpy(dst, v + t * d->v[2] + c, sizeof(float) * (size_t)lanes);
            if (lanes < block)
                memset(dst + lanes, 0, sizeof(float) * (size_t)(block - lanes));
        }
    }
}

static void pack_task(void *arg, size_t task, int worker)
{
    const call *c = arg;
    const sn_attention_desc *d = &c->p->d;
    const int64_t b = (int64_t)task / d->kv_heads, h = (int64_t)task % d->kv_heads;
    float *dst = c->packs + task * (c->p->pack_k + c->p->pack_v);
    (void)worker;
    pack_keys(c->p, (const float *)c->a->k + b * d->k[0] + h * d->k[1], dst);
    if (c->p->pack_v > 0)
        pack_values(c->p, (const float *)c->a->v + b * d->v[0] + h * d->v[1], dst + c->p->pack_k);
}

/* y[rows][cols] = x[rows][k] · w, where column block q of w begins at w + q * w_panel and its rows
 * are w_row apart; x_row and y_row are row strides. `whole_blocks`: y has room for whole blocks. */
static void product(const sn_attention_plan *p, const float *x, ptrdiff_t x_row, const float *w,
                    ptrdiff_t w_panel, ptrdiff_t w_row, int64_t k, float *y, ptrdiff_t y_row,
                    int64_t rows, int64_t cols, bool whole_blocks)
{
    const int64_t block = p->block, panels = sn_ceil_div(cols, block);
    const int64_t most = rows <= 7 ? 4 : 2;
    for (int64_t at = 0; at < panels; at += most) {
        const int64_t n = sn_min(most, panels - at);
        const bool last = at + n == panels;
        const sn_f32_tile t = {
            .x = x,
            .w = w + at * w_panel,
            .y = y + at * block,
            .pixels = (size_t)rows,
            .blocks = (unsigned)n,
            .lanes = last && !whole_blocks ? (unsigned)(cols % block) : 0,
            .block = p->block,
            .ic_blocks = 1,
            .ic = (size_t)k,
            .ic_last = (size_t)k,
            .kh = 1,
            .kw = 1,
            .last_kw = 1,
            .x_pixel = x_row,
            .x_ic = 1,
            .w_q = w_panel,
            .w_ic = w_row,
            .y_pixel = y_row,
            .y_q = block,
            .lo = -INFINITY,
            .hi = INFINITY,
        };
        p->kernels->f32_gemm(&t);
    }
}

static void add_bias(const sn_attention_plan *p, const sn_attention_mask *m, float *s, int64_t b,
                     int64_t h, int64_t i, int64_t lo, int64_t hi)
{
    const float *bias =
        (const float *)m->data + b * m->stride[0] + h * m->stride[1] + i * m->stride[2];
    const int64_t end = sn_min(hi, m->len);
    if (end > lo && m->stride[3] == 1)
        p->kernels->f32_add(s + lo, s + lo, bias + lo, (size_t)(end - lo), SN_BINARY_VV);
    else
        for (int64_t j = lo; j < end; j++)
            s[j] += bias[j * m->stride[3]];
    for (int64_t j = sn_max(end, lo); j < hi; j++)
        s[j] = -INFINITY;
}

static void add_filter(const sn_attention_args *a, float *s, int64_t b, int64_t h, int64_t i,
                       int64_t lo, int64_t hi)
{
    const sn_attention_mask *m = &a->keep;
    const uint8_t *keep =
        (const uint8_t *)m->data + b * m->stride[0] + h * m->stride[1] + i * m->stride[2];
    const float filter = (float)a->filter;
    for (int64_t j = lo; j < hi; j++) {
        if (j >= m->len)
            s[j] = -INFINITY;
        else if (!keep[j * m->stride[3]])
            s[j] += filter;
    }
}

/* With a sink the largest score and the sum have one term more than the row. */
static void softmax_sink(float *s, int64_t n, float sink)
{
    float max = sink;
    for (int64_t j = 0; j < n; j++)
        max = s[j] > max || isnan(s[j]) ? s[j] : max;
    double sum = (double)expf(sink - max);
    for (int64_t j = 0; j < n; j++) {
        s[j] = expf(s[j] - max);
        sum += (double)s[j];
    }
    for (int64_t j = 0; j < n; j++)
        s[j] = (float)((double)s[j] / sum);
}

/* Raw products ► probabilities, for one query; keys outside of what it sees get 0. [from, to) is
 * what was computed. */
static void finish_row(const sn_attention_plan *p, const sn_attention_args *a, float *s, int64_t b,
                       int64_t h, int64_t i, int64_t from, int64_t to)
{
    const sn_attention_desc *d = &p->d;
    const sn_kernels *k = p->kernels;
    const size_t all = sizeof(float) * (size_t)d->kv_len, n = (size_t)(to - from);
    float *qk = a->qk ? (float *)a->qk + ((b * d->heads + h) * d->q_len + i) * d->kv_len : NULL;
    const float scale = (float)d->scale, cap = (float)d->softcap;
    int64_t lo, hi;
    sn_attention_range(d, a, b, i, &lo, &hi);
    k->f32_mul(s + from, s + from, &scale, n, SN_BINARY_VS);
    if (qk && d->qk == SN_ATTENTION_SCALED)
        memcpy(qk, s, all);
    if (cap > 0) {
        const float inv = 1.0f / cap;
        k->f32_mul(s + from, s + from, &inv, n, SN_BINARY_VS);
        k->f32_tanh(s + from, s + from, n, NULL);
        k->f32_mul(s + from, s + from, &cap, n, SN_BINARY_VS);
    }
    if (qk && d->qk == SN_ATTENTION_CAPPED)
        memcpy(qk, s, all);
    if (a->bias.data)
        add_bias(p, &a->bias, s, b, h, i, lo, hi);
    if (a->keep.data)
        add_filter(a, s, b, h, i, lo, hi);
    if (qk && d->qk == SN_ATTENTION_MASKED)
        for (int64_t j = 0; j < d->kv_len; j++)
            qk[j] = j < lo || j >= hi ? -INFINITY : s[j];
    if (a->sink)
        softmax_sink(s + lo, hi - lo, ((const float *)a->sink)[h]);
    else if (hi > lo)
        k->f32_softmax(s + lo, s + lo, (size_t)(hi - lo));
    if (lo > from)
        memset(s + from, 0, sizeof(float) * (size_t)(lo - from));
    if (to > hi)
        memset(s + hi, 0, sizeof(float) * (size_t)(to - hi));
    if (qk && d->qk == SN_ATTENTION_SOFTMAX)
        memcpy(qk, s, all);
}

static void packed_item(const call *c, size_t item, float *scores)
{
    const sn_attention_plan *p = c->p;
    const sn_attention_desc *d = &p->d;
    const sn_attention_args *a = c->a;
    const int64_t piece = (int64_t)item % c->pieces, head = (int64_t)item / c->pieces;
    const int64_t b = head / d->heads, h = head % d->heads;
    const int64_t first = piece * p->rows, rows = sn_min(p->rows, d->q_len - first);
    const int64_t kv = h / (d->heads / d->kv_heads);
    const float *pack = c->packs + (size_t)(b * d->kv_heads + kv) * (p->pack_k + p->pack_v);
    const int64_t block = p->block;
    /* The range grows with the query: the first and the last row bound the others. */
    int64_t from, to, ignored;
    sn_attention_range(d, a, b, first, &from, &ignored);
    sn_attention_range(d, a, b, first + rows - 1, &ignored, &to);
    if (a->qk) {
        from = 0;
        to = d->kv_len;
    }
    from = from / block * block;
    float *y = (float *)a->y + b * d->y[0] + h * d->y[1] + first * d->y[2];
    const float *q = (const float *)a->q + b * d->q[0] + h * d->q[1] + first * d->q[2];
    if (to <= from) {
        for (int64_t r = 0; r < rows; r++)
            memset(y + r * d->y[2], 0, sizeof(float) * (size_t)d->v_head);
        return;
    }
    product(p, q, d->q[2], pack + from * d->head, d->head * block, block, d->head, scores + from,
            p->row_len, rows, to - from, true);
    for (int64_t r = 0; r < rows; r++)
        finish_row(p, a, scores + r * p->row_len, b, h, first + r, from, to);
    if (p->pack_v > 0)
        product(p, scores + from, p->row_len, pack + p->pack_k + (size_t)(from * block),
                d->kv_len * block, block, to - from, y, d->y[2], rows, d->v_head, false);
    else
        product(p, scores + from, p->row_len,
                (const float *)a->v + b * d->v[0] + kv * d->v[1] + from * d->v[2], block, d->v[2],
                to - from, y, d->y[2], rows, d->v_head, false);
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

static void attend_task(void *arg, size_t task, int worker)
{
    const call *c = arg;
    void *scores = c->scores + (size_t)worker * c->score_bytes;
    const size_t end = (task + 1) * c->per_task;
    for (size_t i = task * c->per_task; i < end && i < c->items; i++) {
        if (c->p->packed)
            packed_item(c, i, scores);
        else
            plain_item(c, i, scores);
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
    const size_t elem = d->dtype == SONDE_DTYPE_F64 ? 8 : 4;
    const size_t heads = (size_t)(d->batch * d->kv_heads);
    call c = {.p = p,
              .a = a,
              .packs = workspace,
              .pieces = sn_ceil_div(d->q_len, p->rows),
              .score_bytes = (size_t)(p->rows * p->row_len) * elem};
    c.scores =
        (uint8_t *)workspace + (p->packed ? heads * (p->pack_k + p->pack_v) * sizeof(float) : 0);
    c.items = (size_t)(d->batch * d->heads * c.pieces);
    const uint64_t each = p->flops / c.items + 1;
    c.per_task = (size_t)sn_max(TASK_FLOPS / (int64_t)sn_min((int64_t)each, TASK_FLOPS), 1);
    if (p->packed)
        sn_pool_run(pool, heads, pack_task, &c);
    sn_pool_run(pool, (c.items + c.per_task - 1) / c.per_task, attend_task, &c);
}
