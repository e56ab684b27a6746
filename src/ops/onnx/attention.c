/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of the standard domain. Q, K and V are 3-D or 4-D; keys and values may be appended to a
 * past. 16-bit floats are computed in f32: what is not f32 (or f64) already goes through the
 * workspace, and a wanted `present` doubles as the place where past and new keys meet. */
#include <math.h>
#include <string.h>

#include "compute/cast.h"
#include "compute/eltwise.h"
#include "compute/split.h"
#include "ops/shared/elementwise.h"
#include "ops/shared/heads.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, NONPAD };
enum { Y, PRESENT_K, PRESENT_V, QK };

typedef struct attention_params {
    int64_t q_heads, kv_heads; /* 0: not given */
    int64_t left, right;       /* as in sn_attention_desc */
    float scale, softcap;
    bool has_scale, short_mask;
    sn_attention_qk mode;
} attention_params;

typedef struct attention_bound {
    sn_attention_plan plan;
    sn_dtype compute;
    int64_t batch, q_heads, kv_heads, past, total;
    sn_attention_mask mask;
    /* Offsets into the workspace; the flags say which are used. */
    size_t q, k, v, y, qk, bias, lens, core;
    bool ws_q, ws_k, ws_v, ws_y, ws_qk, ws_bias;
} attention_bound;

static sonde_status prepare_23(sn_prep *p)
{
    attention_params *a = p->params;
    int64_t mode, causal, precision;
    a->has_scale = sn_node_attr(p->node, "scale") != NULL;
    SN_TRY(sn_prep_int(p, "q_num_heads", 0, &a->q_heads));
    SN_TRY(sn_prep_int(p, "kv_num_heads", 0, &a->kv_heads));
    SN_TRY(sn_prep_float(p, "scale", 0.0f, &a->scale));
    SN_TRY(sn_prep_float(p, "softcap", 0.0f, &a->softcap));
    SN_TRY(sn_prep_int(p, "is_causal", 0, &causal));
    SN_TRY(sn_prep_int(p, "qk_matmul_output_mode", 0, &mode));
    /* At least f32 is used whatever is asked for. */
    SN_TRY(sn_prep_int(p, "softmax_precision", SONDE_DTYPE_F32, &precision));
    if (precision != SONDE_DTYPE_F32 && precision != SONDE_DTYPE_F16 &&
        precision != SONDE_DTYPE_BF16 && precision != SONDE_DTYPE_F64)
        return sn_prep_fail(p, "attribute 'softmax_precision' is not a float type");
    if (a->q_heads < 0 || a->kv_heads < 0)
        return sn_prep_fail(p, "the number of heads is negative");
    if (mode < 0 || mode > 3)
        return sn_prep_fail(p, "attribute 'qk_matmul_output_mode' is %lld, expected 0 to 3",
                            (long long)mode);
    a->left = -1;
    a->right = causal ? 0 : -1;
    a->mode = (sn_attention_qk)mode;
    return SONDE_OK;
}

static sonde_status prepare_24(sn_prep *p)
{
    ((attention_params *)p->params)->short_mask = true;
    return prepare_23(p);
}

static sonde_status prepare_25(sn_prep *p)
{
    attention_params *a = p->params;
    int64_t left, right;
    SN_TRY(prepare_24(p));
    SN_TRY(sn_prep_int(p, "left_window_size", -1, &left));
    SN_TRY(sn_prep_int(p, "right_window_size", -1, &right));
    if (left < -1 || right < -1)
        return sn_prep_fail(p, "a window size is %lld, expected -1 or more",
                            (long long)sn_min(left, right));
    a->left = sn_min(left, SN_ATTENTION_FAR);
    if (a->right < 0) /* else causal, which no window widens */
        a->right = sn_min(right, SN_ATTENTION_FAR);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ infer */
static sn_dim dim_div(sn_dim a, int64_t b)
{
    return sn_dim_known(a) && b > 0 ? a / b : SN_DIM_UNKNOWN;
}

/* [batch, heads, len, size] of a 3-D or 4-D input; false: the rank is not known. */
static sonde_status split_dims(sn_infer *c, uint32_t i, int64_t heads, sn_dim *out, bool *known)
{
    const sn_type *t = &c->in[i]->type;
    *known = t->rank >= 0;
    if (!*known)
        return SONDE_OK;
    if (t->rank == 4) {
        memcpy(out, t->dims, 4 * sizeof *out);
        return SONDE_OK;
    }
    if (t->rank != 3)
        return sn_infer_fail(c, "input %u has rank %d, expected 3 or 4", i, t->rank);
    if (heads < 1)
        return sn_infer_fail(c, "3-D inputs need q_num_heads and kv_num_heads");
    if (sn_dim_known(t->dims[2]) && t->dims[2] % heads != 0)
        return sn_infer_fail(c, "input %u has %lld columns for %lld heads", i,
                             (long long)t->dims[2], (long long)heads);
    out[0] = t->dims[0];
    out[1] = heads;
    out[2] = t->dims[1];
    out[3] = dim_div(t->dims[2], heads);
    return SONDE_OK;
}

static sonde_status infer_attention(sn_infer *c)
{
    const attention_params *a = c->params;
    sn_dim q[4], k[4], v[4];
    bool known_q, known_k, known_v;
    const sn_dtype t = c->in[Q]->type.dtype, tv = c->in[V]->type.dtype;
    SN_TRY(split_dims(c, Q, a->q_heads, q, &known_q));
    SN_TRY(split_dims(c, K, a->kv_heads, k, &known_k));
    SN_TRY(split_dims(c, V, a->kv_heads, v, &known_v));
    if (!known_q || !known_k || !known_v) {
        SN_TRY(sn_infer_tensor(c, Y, t, NULL, -1));
        SN_TRY(sn_infer_tensor(c, PRESENT_K, t, NULL, -1));
        SN_TRY(sn_infer_tensor(c, PRESENT_V, tv, NULL, -1));
        return sn_infer_tensor(c, QK, t, NULL, -1);
    }
    sn_dim total = k[2];
    if (sn_infer_has(c, PAST_K)) {
        const sn_type *past = &c->in[PAST_K]->type;
        if (past->rank >= 0 && past->rank != 4)
            return sn_infer_fail(c, "past_key has rank %d, expected 4", past->rank);
        total = past->rank == 4 ? sn_dim_add(past->dims[2], k[2]) : SN_DIM_UNKNOWN;
    }
    const sn_dim y4[4] = {q[0], q[1], q[2], v[3]};
    const sn_dim y3[3] = {q[0], q[2], sn_dim_mul(q[1], v[3])};
    const bool flat = c->in[Q]->type.rank == 3;
    SN_TRY(sn_infer_tensor(c, Y, t, flat ? y3 : y4, flat ? 3 : 4));
    const sn_dim pk[4] = {k[0], k[1], total, k[3]}, pv[4] = {v[0], v[1], total, v[3]};
    const sn_dim qk[4] = {q[0], q[1], q[2], total};
    SN_TRY(sn_infer_tensor(c, PRESENT_K, t, pk, 4));
    SN_TRY(sn_infer_tensor(c, PRESENT_V, tv, pv, 4));
    return sn_infer_tensor(c, QK, t, qk, 4);
}

/* ------------------------------------------------------------------ bind */
/* The view of an input as its fact describes it; data is filled in when running. */
static sn_heads view_of(const sn_fact *f, int64_t heads)
{
    sn_tensor t = {.dtype = f->type.dtype, .rank = f->type.rank};
    memcpy(t.dims, f->type.dims, sizeof(int64_t) * (size_t)f->type.rank);
    return sn_heads_of(&t, heads);
}

static sonde_status check_views(sn_bind *b, const sn_heads *q, const sn_heads *k, const sn_heads *v)
{
    if (q->batch != k->batch || k->batch != v->batch || k->len != v->len || k->heads != v->heads ||
        q->size != k->size)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the shapes of Q, K and V do not fit each other");
    if (q->heads < 1 || k->heads < 1 || q->heads % k->heads != 0)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "%lld query heads cannot share %lld key heads",
                            (long long)q->heads, (long long)k->heads);
    return SONDE_OK;
}

static bool has(const sn_bind *b, uint32_t i)
{
    return i < b->n_in && b->in[i];
}

static bool wants(const sn_bind *b, uint32_t o)
{
    return o < b->n_out && o < b->node->n_out && b->node->out[o];
}

static sonde_status check_past(sn_bind *b, uint32_t i, const sn_heads *now, int64_t *len)
{
    const sn_type *t = &b->in[i]->type;
    if (t->rank != 4 || t->dims[0] != now->batch || t->dims[1] != now->heads ||
        t->dims[3] != now->size || t->dtype != now->dtype)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u does not fit the new keys or values",
                            i);
    *len = t->dims[2];
    return SONDE_OK;
}

static sonde_status bind_past(sn_bind *b, attention_bound *k, const sn_heads *key,
                              const sn_heads *value)
{
    int64_t past_v = 0;
    k->past = 0;
    if (has(b, PAST_K) != has(b, PAST_V))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "past_key and past_value must come together");
    if (has(b, PAST_K)) {
        SN_TRY(check_past(b, PAST_K, key, &k->past));
        SN_TRY(check_past(b, PAST_V, value, &past_v));
        if (past_v != k->past)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "past_key and past_value differ in length");
    }
    if (!sn_i64_add(k->past, key->len, &k->total))
        return sn_bind_fail(b, SONDE_LIMIT, "the sequence is too long");
    return SONDE_OK;
}

static sonde_status bind_masks(sn_bind *b, attention_bound *k, const sn_heads *q, sn_room *ws)
{
    const attention_params *a = b->params;
    int64_t count = 0;
    if (has(b, MASK)) {
        const sn_type *t = &b->in[MASK]->type;
        if (!sn_attn_mask_strides(t->dims, t->rank, k->batch, k->q_heads, q->len, k->total,
                                  a->short_mask, &k->mask) ||
            !sn_type_count(t, &count))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the mask does not fit the scores");
        if (t->dtype != SONDE_DTYPE_BOOL && !sn_cast_supported(t->dtype))
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "masks of type %s are not supported",
                                sn_dtype_onnx_name(t->dtype));
        k->ws_bias = t->dtype != SONDE_DTYPE_BOOL && t->dtype != k->compute;
    }
    if (has(b, NONPAD)) {
        const sn_type *t = &b->in[NONPAD]->type;
        if (t->rank != 1 || t->dims[0] != k->batch || t->dtype != SONDE_DTYPE_I64)
            return sn_bind_fail(b, SONDE_INVALID_MODEL,
                                "nonpad_kv_seqlen must be %lld int64 numbers", (long long)k->batch);
    }
    if (k->ws_bias)
        k->bias = sn_room_take(ws, count, sn_dtype_bytes(k->compute));
    k->lens = sn_room_take(ws, k->batch, 2 * sizeof(int64_t));
    return SONDE_OK;
}

static int64_t product4(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return sn_i64_mul(a, b, &a) && sn_i64_mul(a, c, &a) && sn_i64_mul(a, d, &a) ? a : -1;
}

static sonde_status bind_attention(sn_bind *b)
{
    const attention_params *a = b->params;
    attention_bound *k = SN_NEW(b->arena, attention_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (b->in[Q]->type.rank != b->in[K]->type.rank || b->in[K]->type.rank != b->in[V]->type.rank)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "Q, K and V have different ranks");
    sn_heads q = view_of(b->in[Q], a->q_heads), key = view_of(b->in[K], a->kv_heads);
    sn_heads value = view_of(b->in[V], a->kv_heads);
    SN_TRY(check_views(b, &q, &key, &value));
    k->compute = sn_attn_compute_type(q.dtype);
    if (k->compute == SONDE_DTYPE_UNDEFINED || key.dtype != q.dtype ||
        sn_attn_compute_type(value.dtype) != k->compute)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element types %s, %s, %s are not supported",
                            sn_dtype_onnx_name(q.dtype), sn_dtype_onnx_name(key.dtype),
                            sn_dtype_onnx_name(value.dtype));
    k->batch = q.batch;
    k->q_heads = q.heads;
    k->kv_heads = key.heads;
    SN_TRY(bind_past(b, k, &key, &value));

    sn_room ws = {0};
    const size_t elem = sn_dtype_bytes(k->compute);
    const bool past = has(b, PAST_K);
    sn_heads y = q;
    y.size = value.size;
    if (b->in[Q]->type.rank == 3)
        y = sn_heads_bshd(q.dtype, NULL, q.batch, q.heads, q.len, value.size, q.heads * value.size,
                          0);
    else
        y = sn_heads_bhsd(q.dtype, NULL, q.batch, q.heads, q.len, value.size);
    k->ws_q = k->ws_y = q.dtype != k->compute;
    k->ws_qk = wants(b, QK) && q.dtype != k->compute;
    k->ws_k = key.dtype != k->compute || (past && !wants(b, PRESENT_K));
    k->ws_v = value.dtype != k->compute || (past && !wants(b, PRESENT_V));
    if (k->ws_q) {
        q = sn_heads_bhsd(k->compute, NULL, q.batch, q.heads, q.len, q.size);
        y = sn_heads_bhsd(k->compute, NULL, q.batch, q.heads, q.len, value.size);
        k->q = sn_room_take(&ws, product4(q.batch, q.heads, q.len, q.size), elem);
        k->y = sn_room_take(&ws, product4(q.batch, q.heads, q.len, value.size), elem);
    }
    if (k->ws_qk)
        k->qk = sn_room_take(&ws, product4(q.batch, q.heads, q.len, k->total), elem);
    if (k->ws_k)
        k->k = sn_room_take(&ws, product4(k->batch, k->kv_heads, k->total, key.size), elem);
    if (k->ws_v)
        k->v = sn_room_take(&ws, product4(k->batch, k->kv_heads, k->total, value.size), elem);
    if (k->ws_k || past)
        key = sn_heads_bhsd(k->compute, NULL, k->batch, k->kv_heads, k->total, key.size);
    if (k->ws_v || past)
        value = sn_heads_bhsd(k->compute, NULL, k->batch, k->kv_heads, k->total, value.size);
    SN_TRY(bind_masks(b, k, &q, &ws));

    sn_attention_desc d = {.scale = a->has_scale ? (double)a->scale
                                                 : 1.0 / sqrt((double)(q.size > 0 ? q.size : 1)),
                           .softcap = (double)a->softcap,
                           .left = a->left,
                           .right = a->right,
                           .qk = a->mode,
                           .hide = SN_ATTENTION_FILL_LAST,
                           .masked_is_zero = true};
    sn_attn_desc(&d, &q, &key, &value, &y);
    SN_TRY(sn_attention_plan_make(&k->plan, &d, b->cpu_flags, b->threads, b->err));
    k->core = ws.bytes;
    if (ws.overflow || !sn_size_add(ws.bytes, k->plan.workspace_bytes, &b->workspace_bytes))
        return sn_bind_fail(b, SONDE_LIMIT, "the attention is too large");
    b->bound = k;
    b->kernel = k->plan.name;
    b->flops = k->plan.flops;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
/* Keys (or values): past and new ones brought together where the core reads them. */
static const void *gather(const sn_step *s, sn_frame *f, uint32_t in, uint32_t past_in,
                          uint32_t present, bool in_ws, size_t at)
{
    const attention_bound *k = s->bound;
    const sn_heads now = sn_heads_of(sn_in(s, f, in), k->kv_heads);
    const bool past = sn_has(s, past_in), wanted = sn_wants(s, present);
    const void *result = now.data;
    sn_heads places[2];
    int n = 0;
    if (wanted)
        places[n++] = sn_heads_bhsd(now.dtype, sn_out(s, f, present)->data, now.batch, now.heads,
                                    k->total, now.size);
    if (in_ws)
        places[n++] =
            sn_heads_bhsd(k->compute, f->workspace + at, now.batch, now.heads, k->total, now.size);
    int64_t *shift = (int64_t *)(void *)(f->workspace + k->lens);
    for (int64_t b = 0; b < k->batch; b++)
        shift[b] = k->past;
    for (int i = 0; i < n; i++) {
        if (past) {
            const sn_heads before = sn_heads_of(sn_in(s, f, past_in), k->kv_heads);
            sn_heads_copy(&places[i], &before, NULL, f->pool);
        }
        sn_heads_copy(&places[i], &now, shift, f->pool);
    }
    if (in_ws)
        result = places[n - 1].data;
    else if (past)
        result = places[0].data;
    return result;
}

/* The queries are the last ones of what is there: of the past and them, or of a cache kept outside,
 * `filled` so far. */
static int64_t key_of_first_query(const attention_bound *k, const int64_t *filled)
{
    if (!filled)
        return k->past;
    return sn_min(sn_max(*filled, -SN_ATTENTION_FAR), SN_ATTENTION_FAR) - k->plan.d.q_len;
}

static sonde_status run_attention(const sn_step *s, sn_frame *f)
{
    const attention_bound *k = s->bound;
    sn_attention_args a = {.filter = -INFINITY};
    const sn_tensor *q = sn_in(s, f, Q);
    a.k = gather(s, f, K, PAST_K, PRESENT_K, k->ws_k, k->k);
    a.v = gather(s, f, V, PAST_V, PRESENT_V, k->ws_v, k->v);
    a.q = q->data;
    a.y = sn_out(s, f, Y)->data;
    a.qk = sn_wants(s, QK) ? sn_out(s, f, QK)->data : NULL;
    const sn_heads q_in = sn_heads_of(q, k->q_heads);
    if (k->ws_q) {
        const sn_heads to = sn_heads_bhsd(k->compute, f->workspace + k->q, q_in.batch, q_in.heads,
                                          q_in.len, q_in.size);
        sn_heads_copy(&to, &q_in, NULL, f->pool);
        a.q = to.data;
        a.y = f->workspace + k->y;
    }
    if (k->ws_qk)
        a.qk = f->workspace + k->qk;
    if (sn_has(s, MASK)) {
        const sn_tensor *m = sn_in(s, f, MASK);
        sn_attention_mask *mask = m->dtype == SONDE_DTYPE_BOOL ? &a.keep : &a.bias;
        *mask = k->mask;
        mask->data = m->data;
        if (k->ws_bias) {
            mask->data = f->workspace + k->bias;
            sn_cast_run(f->ctx->cpu.flags, k->compute, f->workspace + k->bias, m->dtype, m->data,
                        (size_t)sn_tensor_count(m), (sn_rounding){0}, f->pool);
        }
    }
    int64_t *offset = (int64_t *)(void *)(f->workspace + k->lens);
    a.end = sn_has(s, NONPAD) ? sn_in(s, f, NONPAD)->data : NULL;
    a.offset = offset;
    for (int64_t b = 0; b < k->batch; b++)
        offset[b] = key_of_first_query(k, a.end && !sn_has(s, PAST_K) ? &a.end[b] : NULL);
    sn_attention_run(&k->plan, &a, f->workspace + k->core, f->pool);
    if (k->ws_y) {
        const sn_heads from = sn_heads_bhsd(k->compute, f->workspace + k->y, q_in.batch, q_in.heads,
                                            q_in.len, k->plan.d.v_head);
        const sn_heads to = sn_heads_of(sn_out(s, f, Y), k->q_heads);
        sn_heads_copy(&to, &from, NULL, f->pool);
    }
    if (k->ws_qk) {
        sn_tensor *out = sn_out(s, f, QK);
        sn_cast_run(f->ctx->cpu.flags, out->dtype, out->data, k->compute, a.qk,
                    (size_t)sn_tensor_count(out), (sn_rounding){0}, f->pool);
    }
    return SONDE_OK;
}

#define ATTENTION(SINCE, UNTIL, MAX_IN, PREPARE)                                                   \
    {                                                                                              \
        .name = "Attention", .domain = "", .since = SINCE, .until = UNTIL, .min_in = 3,            \
        .max_in = MAX_IN, .min_out = 1, .max_out = 4, .params_size = sizeof(attention_params),     \
        .prepare = PREPARE, .infer = infer_attention, .bind = bind_attention,                      \
        .run = run_attention, .types = SN_FLOATS                                                   \
    }
const sn_op sn_op_attention[] = {ATTENTION(23, 23, 6, prepare_23),
                                 ATTENTION(24, 24, 7, prepare_24),
                                 ATTENTION(25, 0, 7, prepare_25),
                                 {.name = NULL}};
