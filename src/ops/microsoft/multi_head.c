/* SPDX-License-Identifier: Apache-2.0 */
/* MultiHeadAttention of com.microsoft: queries, keys and values come projected, apart or packed,
 * with the projection's bias still to be added. */
#include <string.h>

#include "compute/split.h"
#include "ops/microsoft/attention.h"
#include "ops/shared/converted.h"

enum { QUERY, KEY, VALUE, BIAS, MASK, ATTENTION_BIAS, PAST_K, PAST_V, PAST_LEN, INDIRECTION };
enum { Y, PRESENT_K, PRESENT_V, QK };

typedef struct mha_params {
    int64_t heads;
    float scale, filter;
    bool causal;
} mha_params;

/* Q, K and V as the inputs hold them. */
typedef struct mha_views {
    sn_heads q, k, v;
    bool kv_ready; /* 4-D keys and values: no bias belongs to them */
} mha_views;

typedef struct mha_bound {
    sn_attention_plan plan;
    mha_views views;                     /* no data */
    int64_t past, total, bias_q, bias_k; /* bias: columns of Q and of K before the next part */
    sn_ms_mask mask;
    sn_ms_bias bias;
    sn_attn_query q;
    sn_attn_cache k, v;
    bool bias_kv;
    sn_piece y, qk, column_bias; /* in f32 */
    sn_piece lens, core;
} mha_bound;

static sonde_status prepare_mha(sn_prep *p)
{
    mha_params *m = p->params;
    int64_t causal;
    SN_TRY(sn_prep_int(p, "num_heads", 0, &m->heads));
    SN_TRY(sn_prep_float(p, "scale", 0.0f, &m->scale));
    SN_TRY(sn_prep_float(p, "mask_filter_value", -10000.0f, &m->filter));
    SN_TRY(sn_prep_int(p, "unidirectional", 0, &causal));
    m->causal = causal != 0;
    if (m->heads < 1)
        return sn_prep_fail(p, "attribute 'num_heads' is %lld", (long long)m->heads);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ shapes */
/* rank 3: [batch, len, heads * size]; rank 4: [batch, heads, len, size]. */
static bool view_apart(const sn_type *t, int64_t heads, sn_heads *out)
{
    if ((t->rank != 3 && t->rank != 4) || (t->rank == 3 && t->dims[2] % heads))
        return false;
    *out = sn_heads_of_type(t, heads);
    return out->heads == heads;
}

/* One part of [batch, len, heads, parts, size]. */
static sn_heads view_packed(sn_dtype t, const int64_t *d)
{
    sn_heads h = {.dtype = t, .batch = d[0], .heads = d[2], .len = d[1], .size = d[4]};
    h.stride[0] = d[1] * d[2] * d[3] * d[4];
    h.stride[1] = d[3] * d[4];
    h.stride[2] = d[2] * d[3] * d[4];
    return h;
}

/* False: the ranks or head counts do not fit. */
static bool views_of(const sn_fact *const *in, uint32_t n_in, int64_t heads, mha_views *v)
{
    const sn_type *q = &in[QUERY]->type;
    const bool has_k = n_in > KEY && in[KEY], has_v = n_in > VALUE && in[VALUE];
    v->kv_ready = false;
    if (q->rank == 5) {
        if (has_k || has_v || q->dims[2] != heads || q->dims[3] != 3)
            return false;
        v->q = view_packed(q->dtype, q->dims);
        v->k = view_packed(q->dtype, q->dims);
        v->v = view_packed(q->dtype, q->dims);
        return true;
    }
    if (!has_k || q->rank != 3 || !view_apart(q, heads, &v->q))
        return false;
    const sn_type *k = &in[KEY]->type;
    if (k->rank == 5) {
        if (has_v || k->dims[2] != heads || k->dims[3] != 2)
            return false;
        v->k = view_packed(k->dtype, k->dims);
        v->v = view_packed(k->dtype, k->dims);
        return true;
    }
    v->kv_ready = k->rank == 4;
    return has_v && in[VALUE]->type.rank == k->rank && view_apart(k, heads, &v->k) &&
           view_apart(&in[VALUE]->type, heads, &v->v);
}

/* Data pointers of the views while running. */
static void views_data(const sn_step *s, sn_frame *f, mha_views *v)
{
    const sn_tensor *q = sn_in(s, f, QUERY);
    const sn_tensor *k = sn_has(s, KEY) ? sn_in(s, f, KEY) : q;
    const size_t elem = sn_dtype_bytes(q->dtype);
    v->q.data = q->data;
    if (q->rank == 5) {
        v->k.data = (uint8_t *)q->data + (size_t)v->q.size * elem;
        v->v.data = (uint8_t *)q->data + 2 * (size_t)v->q.size * elem;
    } else if (k->rank == 5) {
        v->k.data = k->data;
        v->v.data = (uint8_t *)k->data + (size_t)v->k.size * elem;
    } else {
        v->k.data = k->data;
        v->v.data = sn_in(s, f, VALUE)->data;
    }
}

static sonde_status infer_mha(sn_infer *c)
{
    const mha_params *m = c->params;
    const sn_dtype t = c->in[QUERY]->type.dtype;
    bool known = true;
    for (uint32_t i = QUERY; i <= PAST_V; i++)
        known &= !sn_infer_has(c, i) || sn_type_is_concrete(&c->in[i]->type);
    if (!known) {
        /* Symbolic: what can be said without the sizes of heads. */
        const sn_type *q = &c->in[QUERY]->type;
        sn_dim y[3] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
        if (q->rank >= 2)
            memcpy(y, q->dims, 2 * sizeof *y);
        if (sn_infer_has(c, VALUE) && c->in[VALUE]->type.rank == 3)
            y[2] = c->in[VALUE]->type.dims[2];
        SN_TRY(sn_infer_tensor(c, Y, t, y, 3));
        const sn_dim u[4] = {y[0], m->heads, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
        const sn_dim qk[4] = {y[0], m->heads, y[1], SN_DIM_UNKNOWN};
        SN_TRY(sn_infer_tensor(c, PRESENT_K, t, u, 4));
        SN_TRY(sn_infer_tensor(c, PRESENT_V, t, u, 4));
        return sn_infer_tensor(c, QK, t, qk, 4);
    }
    mha_views v;
    if (!views_of(c->in, c->n_in, m->heads, &v))
        return sn_infer_fail(c, "query, key and value do not fit %lld heads", (long long)m->heads);
    const sn_type *past = sn_infer_has(c, PAST_K) ? &c->in[PAST_K]->type : NULL;
    if (past && past->rank != 4)
        return sn_infer_fail(c, "past_key must have rank 4");
    const sn_dim total = sn_dim_add(v.k.len, past ? past->dims[2] : 0);
    const sn_dim y[3] = {v.q.batch, v.q.len, sn_dim_mul(m->heads, v.v.size)};
    const sn_dim pk[4] = {v.q.batch, m->heads, total, v.k.size};
    const sn_dim pv[4] = {v.q.batch, m->heads, total, v.v.size};
    const sn_dim qk[4] = {v.q.batch, m->heads, v.q.len, total};
    SN_TRY(sn_infer_tensor(c, Y, t, y, 3));
    SN_TRY(sn_infer_tensor(c, PRESENT_K, t, pk, 4));
    SN_TRY(sn_infer_tensor(c, PRESENT_V, t, pv, 4));
    return sn_infer_tensor(c, QK, t, qk, 4);
}

/* ------------------------------------------------------------------ bind */
static sonde_status check_mha(sn_bind *b, mha_bound *k)
{
    const mha_views *v = &k->views;
    if (sn_bind_has(b, PAST_LEN) || sn_bind_has(b, INDIRECTION))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "shared past buffers are not supported");
    if (v->k.batch != v->q.batch || v->v.batch != v->q.batch || v->k.len != v->v.len ||
        v->k.size != v->q.size || v->k.dtype != v->q.dtype || v->v.dtype != v->q.dtype)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the shapes of query, key and value do not match");
    if (sn_compute_float(v->q.dtype) != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(v->q.dtype));
    if (sn_bind_has(b, PAST_K) != sn_bind_has(b, PAST_V))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "past_key and past_value must come together");
    k->past = 0;
    for (uint32_t i = PAST_K; i <= PAST_V && sn_bind_has(b, i); i++) {
        const sn_type *t = &b->in[i]->type;
        const sn_heads *now = i == PAST_K ? &v->k : &v->v;
        if (t->rank != 4 || t->dims[0] != now->batch || t->dims[1] != now->heads ||
            t->dims[3] != now->size || t->dtype != now->dtype ||
            (i == PAST_V && t->dims[2] != k->past))
            return sn_bind_fail(b, SONDE_INVALID_MODEL,
                                "input %u does not fit the new keys or values", i);
        k->past = t->dims[2];
    }
    if (!sn_i64_add(k->past, v->k.len, &k->total))
        return sn_bind_fail(b, SONDE_LIMIT, "the sequence is too long");
    return SONDE_OK;
}

static sonde_status bind_column_bias(sn_bind *b, mha_bound *k)
{
    const mha_views *v = &k->views;
    if (!sn_bind_has(b, BIAS))
        return SONDE_OK;
    const sn_type *t = &b->in[BIAS]->type;
    k->bias_q = v->q.heads * v->q.size;
    k->bias_k = v->k.heads * v->k.size;
    k->bias_kv = !v->kv_ready;
    if (t->rank != 1 || t->dims[0] != k->bias_q + k->bias_k + v->v.heads * v->v.size ||
        t->dtype != v->q.dtype)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the bias does not fit the projections");
    k->column_bias = sn_converted_carve(&b->workspace, b->in[BIAS], SONDE_DTYPE_F32);
    return SONDE_OK;
}

static sonde_status bind_mha(sn_bind *b)
{
    const mha_params *m = b->params;
    mha_bound *k = SN_NEW(b->arena, mha_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (!views_of(b->in, b->n_in, m->heads, &k->views))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "query, key and value do not fit %lld heads",
                            (long long)m->heads);
    SN_TRY(check_mha(b, k));
    SN_TRY(bind_column_bias(b, k));
    sn_workspace *w = &b->workspace;
    const sn_dtype f32 = SONDE_DTYPE_F32;
    const bool past = sn_bind_has(b, PAST_K);
    sn_heads q = k->views.q, key = k->views.k, value = k->views.v;
    const sn_heads y =
        sn_heads_bshd(f32, NULL, q.batch, q.heads, q.len, value.size, q.heads * value.size, 0);
    sn_attn_query_bind(&k->q, &q, f32, sn_bind_has(b, BIAS), w);
    k->y = sn_converted_carve(w, &b->out[Y], f32);
    if (sn_bind_wants(b, QK))
        k->qk = sn_converted_carve(w, &b->out[QK], f32);
    sn_attn_cache_bind(&k->k, &key, f32, past, k->bias_kv, sn_bind_wants(b, PRESENT_K), k->total,
                       w);
    sn_attn_cache_bind(&k->v, &value, f32, past, k->bias_kv, sn_bind_wants(b, PRESENT_V), k->total,
                       w);
    SN_TRY(sn_ms_mask_bind(b, MASK, q.batch, q.len, k->total, k->past, &k->mask));
    SN_TRY(sn_ms_bias_bind(b, ATTENTION_BIAS, q.batch, q.heads, q.len, k->total, &k->bias));
    k->lens = sn_carve(w, q.batch, 2 * sizeof(int64_t));
    sn_attention_desc d = {.scale = m->scale != 0.0f ? (double)m->scale : sn_attn_scale(q.size),
                           .left = -1,
                           .right = m->causal ? 0 : -1,
                           .qk = SN_ATTENTION_MASKED};
    SN_TRY(sn_attn_plan(b, &d, &q, &key, &value, &y, &k->plan));
    k->core = sn_carve_inner(w, &k->plan.workspace);
    b->bound = k;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
static sonde_status run_mha(const sn_step *s, sn_frame *f)
{
    const mha_params *m = s->params;
    const mha_bound *k = s->bound;
    const sn_dtype f32 = SONDE_DTYPE_F32;
    mha_views v = k->views;
    views_data(s, f, &v);
    int64_t *start = sn_piece_ptr(f, k->lens), *offset = start + v.q.batch;
    for (int64_t b = 0; b < v.q.batch; b++) {
        start[b] = k->past;
        offset[b] = k->total - v.q.len;
    }
    const float *bias = sn_converted_in(s, f, BIAS, f32, k->column_bias);
    const sn_heads q = sn_attn_query_run(&k->q, f, &v.q, f32);
    if (bias)
        sn_heads_add(&q, bias, f->pool);
    const sn_heads past_k = sn_heads_in(s, f, PAST_K), past_v = sn_heads_in(s, f, PAST_V);
    const sn_heads present_k = sn_heads_out(s, f, PRESENT_K),
                   present_v = sn_heads_out(s, f, PRESENT_V);
    const float *bias_k = k->bias_kv ? bias + k->bias_q : NULL;
    const float *bias_v = k->bias_kv ? bias + k->bias_q + k->bias_k : NULL;
    const sn_heads key =
        sn_attn_cache_run(&k->k, f, &past_k, &v.k, &present_k, f32, k->total, start, bias_k);
    const sn_heads value =
        sn_attn_cache_run(&k->v, f, &past_v, &v.v, &present_v, f32, k->total, start, bias_v);
    sn_attention_args a = {.q = q.data,
                           .k = key.data,
                           .v = value.data,
                           .y = sn_converted_out(s, f, Y, f32, k->y),
                           .qk = sn_converted_out(s, f, QK, f32, k->qk),
                           .filter = (double)m->filter,
                           .offset = offset};
    sn_ms_mask_run(&k->mask, s, f, MASK, &a.keep);
    sn_ms_bias_run(&k->bias, s, f, ATTENTION_BIAS, &a.bias);
    sn_attention_run(&k->plan, &a, sn_piece_ptr(f, k->core), f->pool);
    sn_converted_done(s, f, Y, f32, k->y);
    sn_converted_done(s, f, QK, f32, k->qk);
    return SONDE_OK;
}

const sn_op sn_op_ms_multi_head_attention[] = {
    {.name = "MultiHeadAttention",
     .domain = SN_MS_DOMAIN,
     .since = 1,
     .min_in = 1,
     .max_in = 10,
     .min_out = 1,
     .max_out = 4,
     .params_size = sizeof(mha_params),
     .prepare = prepare_mha,
     .infer = infer_mha,
     .bind = bind_mha,
     .run = run_mha,
     .types = "f32 f16 bf16",
     .attributes = "mask_filter_value num_heads scale unidirectional"},
    {.name = NULL}};
