/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of the standard domain. Q, K and V are 3-D or 4-D; keys and values may be appended to a
 * past. 16-bit floats are computed in f32: what is not f32 (or f64) already goes through the
 * workspace, and a wanted `present` doubles as the place where past and new keys meet. */
#include <math.h>
#include <string.h>

#include "compute/split.h"
#include "ops/shared/attention.h"
#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"

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
    int64_t q_heads, kv_heads, past, total;
    sn_attention_mask mask;
    sn_attn_query q;
    sn_attn_cache k, v;
    sn_piece y, qk, bias; /* in the type it computes in */
    sn_piece lens, core;
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
static sonde_status check_views(sn_bind *b, const sn_heads *q, const sn_heads *k, const sn_heads *v)
{
    if (q->batch != k->batch || k->batch != v->batch || k->len != v->len || k->heads != v->heads ||
        q->size != k->size)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the shapes of Q, K and V do not match");
    if (q->heads < 1 || k->heads < 1 || q->heads % k->heads != 0)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "%lld query heads cannot share %lld key heads",
                            (long long)q->heads, (long long)k->heads);
    return SONDE_OK;
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
    if (sn_bind_has(b, PAST_K) != sn_bind_has(b, PAST_V))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "past_key and past_value must come together");
    if (sn_bind_has(b, PAST_K)) {
        SN_TRY(check_past(b, PAST_K, key, &k->past));
        SN_TRY(check_past(b, PAST_V, value, &past_v));
        if (past_v != k->past)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "past_key and past_value differ in length");
    }
    if (!sn_i64_add(k->past, key->len, &k->total))
        return sn_bind_fail(b, SONDE_LIMIT, "the sequence is too long");
    return SONDE_OK;
}

static sonde_status bind_masks(sn_bind *b, attention_bound *k, const sn_heads *q)
{
    const attention_params *a = b->params;
    int64_t count = 0;
    if (sn_bind_has(b, MASK)) {
        const sn_type *t = &b->in[MASK]->type;
        if (!sn_attn_mask_strides(t->dims, t->rank, q->batch, k->q_heads, q->len, k->total,
                                  a->short_mask, &k->mask) ||
            !sn_type_count(t, &count))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the mask does not fit the scores");
        if (t->dtype != SONDE_DTYPE_BOOL && !sn_cast_supported(t->dtype))
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "masks of type %s are not supported",
                                sn_dtype_onnx_name(t->dtype));
        if (t->dtype != SONDE_DTYPE_BOOL)
            k->bias = sn_converted_carve(&b->workspace, b->in[MASK], k->compute);
    }
    if (sn_bind_has(b, NONPAD)) {
        const sn_type *t = &b->in[NONPAD]->type;
        if (t->rank != 1 || t->dims[0] != q->batch || t->dtype != SONDE_DTYPE_I64)
            return sn_bind_fail(b, SONDE_INVALID_MODEL,
                                "nonpad_kv_seqlen must be %lld numbers of type i64",
                                (long long)q->batch);
    }
    return SONDE_OK;
}

static sonde_status bind_attention(sn_bind *b)
{
    const attention_params *a = b->params;
    attention_bound *k = SN_NEW(b->arena, attention_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    if (b->in[Q]->type.rank != b->in[K]->type.rank || b->in[K]->type.rank != b->in[V]->type.rank)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "Q, K and V have different ranks");
    sn_heads q = sn_heads_of_type(&b->in[Q]->type, a->q_heads);
    sn_heads key = sn_heads_of_type(&b->in[K]->type, a->kv_heads);
    sn_heads value = sn_heads_of_type(&b->in[V]->type, a->kv_heads);
    SN_TRY(check_views(b, &q, &key, &value));
    k->compute = sn_compute_float(q.dtype);
    if (k->compute == SONDE_DTYPE_UNDEFINED || key.dtype != q.dtype ||
        sn_compute_float(value.dtype) != k->compute)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element types %s, %s, %s are not supported",
                            sn_dtype_onnx_name(q.dtype), sn_dtype_onnx_name(key.dtype),
                            sn_dtype_onnx_name(value.dtype));
    k->q_heads = q.heads;
    k->kv_heads = key.heads;
    SN_TRY(bind_past(b, k, &key, &value));

    sn_workspace *w = &b->workspace;
    const bool past = sn_bind_has(b, PAST_K);
    const sn_heads y = sn_heads_of_type(&b->out[Y].type, q.heads);
    SN_TRY(bind_masks(b, k, &q));
    sn_attn_query_bind(&k->q, &q, k->compute, false, w);
    sn_attn_cache_bind(&k->k, &key, k->compute, past, false, sn_bind_wants(b, PRESENT_K), k->total,
                       w);
    sn_attn_cache_bind(&k->v, &value, k->compute, past, false, sn_bind_wants(b, PRESENT_V),
                       k->total, w);
    k->y = sn_converted_carve(w, &b->out[Y], k->compute);
    if (sn_bind_wants(b, QK))
        k->qk = sn_converted_carve(w, &b->out[QK], k->compute);
    k->lens = sn_carve(w, q.batch, sizeof(int64_t));

    sn_attention_desc d = {.scale = a->has_scale ? (double)a->scale : sn_attn_scale(q.size),
                           .softcap = (double)a->softcap,
                           .left = a->left,
                           .right = a->right,
                           .qk = a->mode,
                           .hide = SN_ATTENTION_FILL_LAST,
                           .masked_is_zero = true};
    SN_TRY(sn_attn_plan(b, &d, &q, &key, &value, &y, &k->plan));
    k->core = sn_carve_inner(w, &k->plan.workspace);
    b->bound = k;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
/* Keys (or values): past and new ones brought together where the driver reads them. */
static const void *gather(const sn_step *s, sn_frame *f, const sn_attn_cache *place, uint32_t in,
                          uint32_t past_in, uint32_t present_out, const int64_t *start)
{
    const attention_bound *k = s->bound;
    const sn_heads now = sn_heads_of(sn_in(s, f, in), k->kv_heads);
    const sn_heads past = sn_heads_in(s, f, past_in), present = sn_heads_out(s, f, present_out);
    return sn_attn_cache_run(place, f, &past, &now, &present, k->compute, k->total, start, NULL)
        .data;
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
    const int64_t batch = k->plan.d.batch;
    const sn_heads q = sn_heads_of(sn_in(s, f, Q), k->q_heads);
    int64_t *lens = sn_piece_ptr(f, k->lens);
    for (int64_t b = 0; b < batch; b++)
        lens[b] = k->past;
    sn_attention_args a = {.k = gather(s, f, &k->k, K, PAST_K, PRESENT_K, lens),
                           .v = gather(s, f, &k->v, V, PAST_V, PRESENT_V, lens),
                           .q = sn_attn_query_run(&k->q, f, &q, k->compute).data,
                           .y = sn_converted_out(s, f, Y, k->compute, k->y),
                           .qk = sn_converted_out(s, f, QK, k->compute, k->qk),
                           .filter = -INFINITY,
                           .offset = lens};
    if (sn_has(s, MASK)) {
        const bool keep = sn_in(s, f, MASK)->dtype == SONDE_DTYPE_BOOL;
        sn_attention_mask *mask = keep ? &a.keep : &a.bias;
        *mask = k->mask;
        mask->data =
            keep ? sn_in(s, f, MASK)->data : sn_converted_in(s, f, MASK, k->compute, k->bias);
    }
    a.end = sn_has(s, NONPAD) ? sn_in(s, f, NONPAD)->data : NULL;
    for (int64_t b = 0; b < batch; b++)
        lens[b] = key_of_first_query(k, a.end && !sn_has(s, PAST_K) ? &a.end[b] : NULL);
    sn_attention_run(&k->plan, &a, sn_piece_ptr(f, k->core), f->pool);
    sn_converted_done(s, f, Y, k->compute, k->y);
    sn_converted_done(s, f, QK, k->compute, k->qk);
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
