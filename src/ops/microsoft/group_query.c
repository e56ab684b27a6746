/* SPDX-License-Identifier: Apache-2.0 */
/* GroupQueryAttention of com.microsoft: rotary embedding, a cache that may be longer than what it
 * holds, and causal attention of many query heads to few key heads. The cache lives in the present
 * outputs (f32) or in the workspace; each batch entry has its own length. */
#include <string.h>

#include "compute/rotary.h"
#include "compute/split.h"
#include "ops/microsoft/attention.h"
#include "ops/shared/converted.h"
#include "ops/shared/data_movement.h"

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_K,
    PAST_V,
    LENS,
    TOTAL,
    COS,
    SIN,
    IDS,
    ATTENTION_BIAS,
    SINK,
    K_SCALE
};
enum { Y, PRESENT_K, PRESENT_V, QK };

typedef struct gqa_params {
    int64_t heads, kv_heads, window;
    float scale, softcap;
    bool rotary, interleaved, smooth, causal;
    int64_t qk_output;
} gqa_params;

typedef struct gqa_bound {
    sn_attention_plan plan;
    int64_t batch, len, size;
    int64_t total;    /* longest sequence of the batch */
    int64_t capacity; /* positions of the cache */
    int64_t row;      /* of the query, packed or not */
    bool total_known; /* else `total` is the most it can be */
    bool packed, past, ids;
    sn_ms_bias bias;
    int64_t table_rows, table_half;
    sn_attn_query q, new_k;
    sn_attn_cache k, v;
    sn_piece y, qk, cos, sin, sink; /* in f32 */
    sn_piece lens, core;
} gqa_bound;

static sonde_status prepare_gqa(sn_prep *p)
{
    gqa_params *g = p->params;
    int64_t rotary, interleaved, smooth, causal, sliding;
    SN_TRY(sn_prep_int(p, "num_heads", 0, &g->heads));
    SN_TRY(sn_prep_int(p, "kv_num_heads", 0, &g->kv_heads));
    SN_TRY(sn_prep_int(p, "local_window_size", -1, &g->window));
    SN_TRY(sn_prep_float(p, "scale", 0.0f, &g->scale));
    SN_TRY(sn_prep_float(p, "softcap", 0.0f, &g->softcap));
    SN_TRY(sn_prep_int(p, "do_rotary", 0, &rotary));
    SN_TRY(sn_prep_int(p, "rotary_interleaved", 0, &interleaved));
    SN_TRY(sn_prep_int(p, "smooth_softmax", 0, &smooth));
    SN_TRY(sn_prep_int(p, "causal", 1, &causal));
    SN_TRY(sn_prep_int(p, "sliding_window_cache", 0, &sliding));
    SN_TRY(sn_prep_int(p, "qk_output", 0, &g->qk_output));
    if (g->kv_heads < 1 || g->heads < 1 || g->heads % g->kv_heads || g->heads > INT32_MAX)
        return sn_prep_fail(p, "%lld query heads cannot share %lld key heads", (long long)g->heads,
                            (long long)g->kv_heads);
    if (sliding)
        return sn_prep_fail(p, "sliding_window_cache is not supported");
    if (g->qk_output < 0 || g->qk_output > 2)
        return sn_prep_fail(p, "attribute 'qk_output' is %lld, expected 0 to 2",
                            (long long)g->qk_output);
    g->rotary = rotary != 0;
    g->interleaved = interleaved != 0;
    g->smooth = smooth > 0;
    g->causal = causal != 0;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ infer */
static sn_dim head_size(const gqa_params *g, const sn_type *q, bool packed)
{
    if (q->rank != 3 || !sn_dim_known(q->dims[2]))
        return SN_DIM_UNKNOWN;
    return q->dims[2] / (g->heads + (packed ? 2 * g->kv_heads : 0));
}

static sonde_status infer_gqa(sn_infer *c)
{
    const gqa_params *g = c->params;
    const sn_type *q = &c->in[QUERY]->type;
    const bool packed = !sn_infer_has(c, KEY);
    if (q->rank >= 0 && q->rank != 3)
        return sn_infer_fail(c, "the query must have rank 3");
    sn_dim y[3] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    const sn_dim size = head_size(g, q, packed);
    if (q->rank == 3)
        memcpy(y, q->dims, 2 * sizeof *y);
    y[2] = sn_dim_mul(size, g->heads);
    SN_TRY(sn_infer_tensor(c, Y, q->dtype, y, 3));
    const sn_dim *v;
    int64_t n;
    SN_TRY(sn_infer_ints(c, TOTAL, &v, &n));
    const sn_dim total = v && n == 1 ? v[0] : SN_DIM_UNKNOWN;
    sn_dim length = total, most = y[1]; /* a sequence is what was there and what is new */
    if (sn_infer_has(c, PAST_K)) {
        const sn_type *past = &c->in[PAST_K]->type;
        if (past->rank >= 0 && past->rank != 4)
            return sn_infer_fail(c, "past_key must have rank 4");
        const sn_dim before = past->rank == 4 ? past->dims[2] : SN_DIM_UNKNOWN;
        const bool known = sn_dim_known(before) && sn_dim_known(total);
        length = !known ? SN_DIM_UNKNOWN : before > total ? before : total;
        most = sn_dim_add(before, y[1]);
    }
    if (sn_dim_known(total) && sn_dim_known(most) && (total > most || total < 1))
        return sn_infer_fail(c, "total_sequence_length is %lld, at most %lld tokens are there",
                             (long long)total, (long long)most);
    const sn_dim present[4] = {y[0], g->kv_heads, length, size},
                 qk[4] = {y[0], g->heads, y[1], total};
    SN_TRY(sn_infer_tensor(c, PRESENT_K, q->dtype, present, 4));
    SN_TRY(sn_infer_tensor(c, PRESENT_V, q->dtype, present, 4));
    return sn_infer_tensor(c, QK, q->dtype, qk, 4);
}

/* ------------------------------------------------------------------ bind */
static sonde_status bind_total(sn_bind *b, gqa_bound *k)
{
    if (!sn_bind_has(b, LENS) || !sn_bind_has(b, TOTAL))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "seqlens_k and total_sequence_length are required");
    const sn_fact *t = b->in[TOTAL];
    int64_t count = 0;
    if (t->type.dtype != SONDE_DTYPE_I32 || !sn_type_count(&t->type, &count) || count != 1)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "total_sequence_length must be one number of type i32");
    k->total_known = true;
    if (t->ints && t->n_ints == 1 && sn_dim_known(t->ints[0])) {
        k->total = t->ints[0];
    } else if (t->data) {
        k->total = sn_tensor_int(t->data, 0);
    } else {
        k->total_known = false;
        k->total = k->len;
        if (sn_bind_has(b, PAST_K) && b->in[PAST_K]->type.rank == 4 &&
            !sn_i64_add(k->total, b->in[PAST_K]->type.dims[2], &k->total))
            k->total = -1;
    }
    if (k->total < 1 || k->total > INT32_MAX)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "total_sequence_length is %lld",
                            (long long)k->total);
    return SONDE_OK;
}

static sonde_status bind_shapes(sn_bind *b, gqa_bound *k)
{
    const gqa_params *g = b->params;
    const sn_type *q = &b->in[QUERY]->type;
    k->packed = !sn_bind_has(b, KEY);
    const int64_t parts = g->heads + (k->packed ? 2 * g->kv_heads : 0);
    k->batch = q->dims[0];
    k->len = q->dims[1];
    k->row = q->dims[2];
    k->size = k->row / parts;
    if (k->row % parts || sn_compute_float(q->dtype) != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "%s rows of %lld numbers do not fit the heads",
                            sn_dtype_onnx_name(q->dtype), (long long)k->row);
    for (uint32_t i = KEY; i <= VALUE && !k->packed; i++) {
        const sn_type *t = sn_bind_has(b, i) ? &b->in[i]->type : NULL;
        if (!t || t->rank != 3 || t->dims[0] != k->batch || t->dims[1] != k->len ||
            t->dims[2] != g->kv_heads * k->size || t->dtype != q->dtype)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u does not fit the query", i);
    }
    SN_TRY(bind_total(b, k));
    k->capacity = k->total;
    k->past = sn_bind_has(b, PAST_K);
    if (k->past != sn_bind_has(b, PAST_V))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "past_key and past_value must come together");
    for (uint32_t i = PAST_K; i <= PAST_V && k->past; i++) {
        const sn_type *t = &b->in[i]->type;
        if (t->rank != 4 || t->dims[0] != k->batch || t->dims[1] != g->kv_heads ||
            t->dims[3] != k->size || t->dtype != q->dtype ||
            t->dims[2] != b->in[PAST_K]->type.dims[2])
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u does not fit the query", i);
        if (t->dims[2] > k->capacity)
            k->capacity = t->dims[2];
    }
    const sn_type *lens = &b->in[LENS]->type;
    int64_t count = 0;
    if (lens->dtype != SONDE_DTYPE_I32 || !sn_type_count(lens, &count) || count != k->batch)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "seqlens_k must be %lld numbers of type i32",
                            (long long)k->batch);
    for (uint32_t i = K_SCALE; i < b->n_in; i++)
        if (b->in[i])
            return sn_bind_fail(b, SONDE_UNSUPPORTED,
                                "input %u (quantised caches, norms of heads) is "
                                "not supported",
                                i);
    return SONDE_OK;
}

static sonde_status bind_rotary(sn_bind *b, gqa_bound *k)
{
    const gqa_params *g = b->params;
    if (!g->rotary)
        return SONDE_OK;
    if (!sn_bind_has(b, COS) || !sn_bind_has(b, SIN))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "do_rotary needs cos_cache and sin_cache");
    const sn_type *t = &b->in[COS]->type, *q = &b->in[QUERY]->type;
    if (t->rank != 2 || !sn_type_same_shape(t, &b->in[SIN]->type) || t->dims[1] > k->size / 2 ||
        t->dtype != q->dtype || b->in[SIN]->type.dtype != q->dtype)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the rotary tables do not fit the heads");
    k->table_rows = t->dims[0];
    k->table_half = t->dims[1];
    k->ids = sn_bind_has(b, IDS);
    if (k->ids) {
        const sn_type *ids = &b->in[IDS]->type;
        if (ids->rank != 2 || ids->dims[0] != k->batch || ids->dims[1] != k->len ||
            ids->dtype != SONDE_DTYPE_I64)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "position_ids do not fit the query");
    }
    k->cos = sn_converted_carve(&b->workspace, b->in[COS], SONDE_DTYPE_F32);
    k->sin = sn_converted_carve(&b->workspace, b->in[SIN], SONDE_DTYPE_F32);
    return SONDE_OK;
}

static sonde_status bind_gqa(sn_bind *b)
{
    const gqa_params *g = b->params;
    gqa_bound *k = SN_NEW(b->arena, gqa_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    SN_TRY(bind_shapes(b, k));
    SN_TRY(bind_rotary(b, k));
    sn_workspace *w = &b->workspace;
    const sn_dtype f32 = SONDE_DTYPE_F32, type = b->in[QUERY]->type.dtype;
    sn_heads q = sn_heads_bhsd(type, NULL, k->batch, g->heads, k->len, k->size);
    sn_heads new_k = sn_heads_bhsd(type, NULL, k->batch, g->kv_heads, k->len, k->size);
    sn_heads key = new_k, value = new_k;
    sn_attn_query_bind(&k->q, &q, f32, true, w);
    sn_attn_query_bind(&k->new_k, &new_k, f32, true, w);
    /* Each entry of the batch has a past of its own: new keys are always put behind it. */
    const bool keep = sn_bind_wants(b, PRESENT_K) && sn_bind_wants(b, PRESENT_V);
    sn_attn_cache_bind(&k->k, &key, f32, true, false, keep, k->capacity, w);
    sn_attn_cache_bind(&k->v, &value, f32, true, false, keep, k->capacity, w);
    k->y = sn_converted_carve(w, &b->out[Y], f32);
    if (sn_bind_wants(b, QK))
        k->qk = sn_carve(w, type == f32 ? 0 : sn_count(k->batch, g->heads, k->len, k->total),
                         sizeof(float));
    SN_TRY(sn_ms_bias_bind(b, ATTENTION_BIAS, k->batch, g->heads, k->len, k->total, &k->bias));
    if (sn_bind_has(b, SINK) &&
        (b->in[SINK]->type.rank != 1 || b->in[SINK]->type.dims[0] != g->heads ||
         b->in[SINK]->type.dtype != type))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "head_sink must have one number per head");
    k->sink = sn_carve(w, g->heads, sizeof(float));
    k->lens = sn_carve(w, k->batch, 2 * sizeof(int64_t));

    const sn_heads y =
        sn_heads_bshd(f32, NULL, k->batch, g->heads, k->len, k->size, g->heads * k->size, 0);
    sn_attention_desc d = {
        .scale = g->scale != 0.0f ? (double)g->scale : sn_attn_scale(k->size),
        .softcap = (double)g->softcap,
        .left = g->causal && g->window > 0 ? sn_min(g->window - 1, SN_ATTENTION_FAR) : -1,
        .right = g->causal ? 0 : -1,
        .qk = g->qk_output == 2 ? SN_ATTENTION_SOFTMAX : SN_ATTENTION_MASKED};
    key.len = value.len = k->total; /* the cache may have more room */
    SN_TRY(sn_attn_plan(b, &d, &q, &key, &value, &y, &k->plan));
    k->core = sn_carve_inner(w, &k->plan.workspace);
    b->bound = k;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
/* Where the new tokens of each batch entry go, and how far its keys reach. */
static sonde_status read_lengths(const sn_step *s, sn_frame *f, int64_t *start, int64_t *end)
{
    const gqa_bound *k = s->bound;
    const int32_t *lens = sn_in(s, f, LENS)->data;
    const int64_t total = sn_tensor_int(sn_in(s, f, TOTAL), 0);
    if (k->total_known ? total != k->total : total > k->total)
        return sn_run_fail(
            s, f, "the value of total_sequence_length does not match the planned output shape");
    const bool prompt = k->len == total;
    for (int64_t b = 0; b < k->batch; b++) {
        end[b] = (int64_t)lens[b] + 1;
        start[b] = prompt ? 0 : end[b] - k->len;
        if (end[b] < 1 || end[b] > k->total || start[b] < 0 || start[b] + k->len > k->capacity)
            return sn_run_fail(s, f, "seqlens_k says %lld for batch entry %lld, which does not fit",
                               (long long)lens[b], (long long)b);
    }
    return SONDE_OK;
}

static sonde_status rotate(const sn_step *s, sn_frame *f, const sn_heads *q, const sn_heads *key,
                           const int64_t *start)
{
    const gqa_params *g = s->params;
    const gqa_bound *k = s->bound;
    sn_rotary r = {.rows = k->table_rows, .half = k->table_half, .interleaved = g->interleaved};
    r.cos = sn_converted_in(s, f, COS, SONDE_DTYPE_F32, k->cos);
    r.sin = sn_converted_in(s, f, SIN, SONDE_DTYPE_F32, k->sin);
    if (k->ids) {
        r.ids = sn_in(s, f, IDS)->data;
        r.id_batch = k->len;
        r.id_len = 1;
    } else {
        r.start = start;
    }
    for (int64_t i = 0; i < k->batch * k->len; i++) {
        const int64_t at = k->ids ? r.ids[i] : start[i / k->len] + i % k->len;
        if (at < 0 || at >= k->table_rows)
            return sn_run_fail(s, f, "position %lld is outside of rotary tables with %lld rows",
                               (long long)at, (long long)k->table_rows);
    }
    sn_heads_rotate(q, &r, f->pool);
    sn_heads_rotate(key, &r, f->pool);
    return SONDE_OK;
}

/* The cache of keys or values: past, then the new ones at their places, then zeros. */
static sn_heads fill_cache(const sn_step *s, sn_frame *f, const sn_attn_cache *place,
                           uint32_t past_in, uint32_t present_out, const sn_heads *now,
                           const int64_t *start)
{
    const gqa_bound *k = s->bound;
    const sn_heads past = sn_heads_in(s, f, past_in), present = sn_heads_out(s, f, present_out);
    const sn_heads cache =
        sn_attn_cache_place(place, f, now, &present, SONDE_DTYPE_F32, k->capacity);
    sn_heads_clear(&cache, start, now->len);
    for (int64_t b = 0; b < now->batch && k->past; b++) {
        sn_heads before = past, entry = cache;
        before.data = sn_heads_row(&past, b, 0, 0);
        entry.data = sn_heads_row(&cache, b, 0, 0);
        before.batch = entry.batch = 1;
        before.len = sn_min(start[b], before.len);
        sn_heads_copy(&entry, &before, NULL, f->pool);
    }
    sn_heads_copy(&cache, now, start, f->pool);
    if (present.data && !place->present)
        sn_heads_copy(&present, &cache, NULL, f->pool);
    return cache;
}

/* The sinks of the softmax: given, or e^0 for each head; NULL: none. */
static const void *sinks(const sn_step *s, const sn_frame *f)
{
    const gqa_params *g = s->params;
    const gqa_bound *k = s->bound;
    if (sn_has(s, SINK))
        return sn_converted_in(s, f, SINK, SONDE_DTYPE_F32, k->sink);
    return g->smooth ? memset(sn_piece_ptr(f, k->sink), 0, sizeof(float) * (size_t)g->heads) : NULL;
}

static sonde_status run_gqa(const sn_step *s, sn_frame *f)
{
    const gqa_params *g = s->params;
    const gqa_bound *k = s->bound;
    int64_t *start = sn_piece_ptr(f, k->lens), *end = start + k->batch;
    SN_TRY(read_lengths(s, f, start, end));
    const sn_tensor *query = sn_in(s, f, QUERY);
    const sn_tensor *key = k->packed ? query : sn_in(s, f, KEY);
    const sn_tensor *value = k->packed ? query : sn_in(s, f, VALUE);
    const int64_t first_k = k->packed ? g->heads * k->size : 0;
    const int64_t first_v = k->packed ? first_k + g->kv_heads * k->size : 0;
    const sn_dtype t = query->dtype, f32 = SONDE_DTYPE_F32;
    const sn_heads in_q =
        sn_heads_bshd(t, query->data, k->batch, g->heads, k->len, k->size, k->row, 0);
    const sn_heads in_k =
        sn_heads_bshd(t, key->data, k->batch, g->kv_heads, k->len, k->size, key->dims[2], first_k);
    const sn_heads in_v = sn_heads_bshd(t, value->data, k->batch, g->kv_heads, k->len, k->size,
                                        value->dims[2], first_v);
    const sn_heads q = sn_attn_query_run(&k->q, f, &in_q, f32);
    const sn_heads new_k = sn_attn_query_run(&k->new_k, f, &in_k, f32);
    if (g->rotary)
        SN_TRY(rotate(s, f, &q, &new_k, start));
    const sn_heads keys = fill_cache(s, f, &k->k, PAST_K, PRESENT_K, &new_k, start);
    const sn_heads values = fill_cache(s, f, &k->v, PAST_V, PRESENT_V, &in_v, start);
    sn_attention_args a = {.q = q.data,
                           .k = keys.data,
                           .v = values.data,
                           .y = sn_converted_out(s, f, Y, f32, k->y),
                           .qk = sn_converted_out(s, f, QK, f32, k->qk),
                           .offset = start,
                           .end = end,
                           .sink = sinks(s, f)};
    sn_ms_bias_run(&k->bias, s, f, ATTENTION_BIAS, &a.bias);
    sn_attention_run(&k->plan, &a, sn_piece_ptr(f, k->core), f->pool);
    sn_converted_done(s, f, Y, f32, k->y);
    sn_converted_done(s, f, QK, f32, k->qk);
    return SONDE_OK;
}

const sn_op sn_op_ms_group_query_attention[] = {
    {.name = "GroupQueryAttention",
     .domain = SN_MS_DOMAIN,
     .since = 1,
     .min_in = 1,
     .max_in = 16,
     .min_out = 1,
     .max_out = 4,
     .params_size = sizeof(gqa_params),
     .prepare = prepare_gqa,
     .infer = infer_gqa,
     .bind = bind_gqa,
     .run = run_gqa,
     .types = "f32 f16 bf16",
     .attributes = "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads "
                   "local_window_size num_heads qk_norm_epsilon qk_output rotary_interleaved scale "
                   "sliding_window_cache smooth_softmax softcap v_quant_type"},
    {.name = NULL}};
