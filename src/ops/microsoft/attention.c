/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of com.microsoft, the operator BERT and GPT-2 exporters write: one matrix projects the
 * input to queries, keys and values, which are then attended to. */
#include <string.h>

#include "compute/gemm.h"
#include "compute/split.h"
#include "ops/microsoft/attention.h"
#include "ops/shared/converted.h"
#include "ops/shared/product.h"
#include "ops/shared/sparse_weights.h"

enum { INPUT, WEIGHTS, BIAS, MASK, PAST, ATTENTION_BIAS, PAST_LEN };
enum { Y, PRESENT };

typedef struct msa_params {
    int64_t heads;
    int64_t hidden[3]; /* columns of Q, K, V; 0: a third each */
    float scale, filter;
    bool causal;
} msa_params;

typedef struct msa_bound {
    sn_attention_plan plan;
    sn_gemm_plan gemm;
    int64_t batch, len, past, total;
    int64_t size, v_size, row; /* of a head; of the projected row */
    sn_ms_mask mask;
    sn_ms_bias bias;
    sn_attn_cache k, v;
    sn_piece x, w, c, y; /* in f32 */
    sn_piece qkv, lens;
    sn_piece core; /* of the projection, then of the attention */
} msa_bound;

static sonde_status prepare_msa(sn_prep *p)
{
    msa_params *m = p->params;
    const int64_t *sizes;
    size_t n;
    int64_t causal, rotary, shared;
    SN_TRY(sn_prep_int(p, "num_heads", 0, &m->heads));
    SN_TRY(sn_prep_ints(p, "qkv_hidden_sizes", &sizes, &n));
    SN_TRY(sn_prep_float(p, "scale", 0.0f, &m->scale));
    SN_TRY(sn_prep_float(p, "mask_filter_value", -10000.0f, &m->filter));
    SN_TRY(sn_prep_int(p, "unidirectional", 0, &causal));
    SN_TRY(sn_prep_int(p, "do_rotary", 0, &rotary));
    SN_TRY(sn_prep_int(p, "past_present_share_buffer", 0, &shared));
    if (m->heads < 1)
        return sn_prep_fail(p, "attribute 'num_heads' is %lld", (long long)m->heads);
    if (n != 0 && n != 3)
        return sn_prep_fail(p, "attribute 'qkv_hidden_sizes' has %zu numbers, expected 3", n);
    for (size_t i = 0; i < n; i++) {
        if (sizes[i] < 1 || sizes[i] > INT32_MAX || sizes[i] % m->heads)
            return sn_prep_fail(p, "a hidden size of %lld cannot be %lld heads",
                                (long long)sizes[i], (long long)m->heads);
        m->hidden[i] = sizes[i];
    }
    if (n && m->hidden[0] != m->hidden[1])
        return sn_prep_fail(p, "the hidden sizes of Q and K differ");
    if (rotary || shared)
        return sn_prep_fail(p, "do_rotary and past_present_share_buffer are not supported");
    m->causal = causal != 0;
    return SONDE_OK;
}

/* Columns of Q (and K) and of V. */
static bool hidden_sizes(const msa_params *m, int64_t columns, int64_t *qk, int64_t *v)
{
    *qk = m->hidden[0] ? m->hidden[0] : columns / 3;
    *v = m->hidden[0] ? m->hidden[2] : columns / 3;
    return columns == 2 * *qk + *v && *qk % m->heads == 0 && *v % m->heads == 0;
}

static sonde_status infer_msa(sn_infer *c)
{
    const msa_params *m = c->params;
    const sn_type *x = &c->in[INPUT]->type, *w = &c->in[WEIGHTS]->type;
    sn_dim y[3] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN}, size = SN_DIM_UNKNOWN;
    if ((x->rank >= 0 && x->rank != 3) || (w->rank >= 0 && w->rank != 2))
        return sn_infer_fail(c, "the input must have rank 3 and the weights rank 2");
    if (x->rank == 3)
        memcpy(y, x->dims, 2 * sizeof *y);
    if (w->rank == 2 && sn_dim_known(w->dims[1])) {
        int64_t qk;
        if (!hidden_sizes(m, w->dims[1], &qk, &y[2]))
            return sn_infer_fail(c, "%lld columns of weights do not fit %lld heads",
                                 (long long)w->dims[1], (long long)m->heads);
        size = qk / m->heads;
    }
    SN_TRY(sn_infer_tensor(c, Y, x->dtype, y, 3));
    sn_dim total = y[1];
    if (sn_infer_has(c, PAST)) {
        const sn_type *past = &c->in[PAST]->type;
        if (past->rank >= 0 && past->rank != 5)
            return sn_infer_fail(c, "past must have rank 5");
        total = past->rank == 5 ? sn_dim_add(past->dims[3], total) : SN_DIM_UNKNOWN;
    }
    const sn_dim present[5] = {2, y[0], m->heads, total, size};
    return sn_infer_tensor(c, PRESENT, x->dtype, present, 5);
}

static sonde_status pack_msa(sn_pack_request *p)
{
    if (p->in[WEIGHTS]->data && !sn_weights_pack_sparse(p, WEIGHTS, false))
        p->pack[WEIGHTS] = (uint8_t)sn_product_pack_id(p, WEIGHTS);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ bind */
static sonde_status bind_shapes(sn_bind *b, msa_bound *k)
{
    const msa_params *m = b->params;
    const sn_type *x = &b->in[INPUT]->type, *w = &b->in[WEIGHTS]->type;
    int64_t qk, v;
    k->batch = x->dims[0];
    k->len = x->dims[1];
    k->row = w->dims[1];
    if (w->dims[0] != x->dims[2] || !hidden_sizes(m, k->row, &qk, &v) || w->dtype != x->dtype)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the weights do not fit the input");
    if (sn_compute_float(x->dtype) != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    k->size = qk / m->heads;
    k->v_size = v / m->heads;
    if (sn_bind_has(b, BIAS)) {
        const sn_type *t = &b->in[BIAS]->type;
        if (t->rank != 1 || t->dims[0] != k->row || t->dtype != x->dtype)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the bias does not fit the weights");
    }
    k->past = 0;
    if (sn_bind_has(b, PAST)) {
        const sn_type *t = &b->in[PAST]->type;
        if (t->rank != 5 || t->dims[0] != 2 || t->dims[1] != k->batch || t->dims[2] != m->heads ||
            t->dims[4] != k->size || t->dtype != x->dtype || k->size != k->v_size)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "past does not fit the projections");
        k->past = t->dims[3];
    }
    if (sn_bind_wants(b, PRESENT) && k->size != k->v_size)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "present needs keys and values of one size");
    if (sn_bind_has(b, PAST_LEN))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "shared past buffers are not supported");
    if (!sn_i64_add(k->past, k->len, &k->total))
        return sn_bind_fail(b, SONDE_LIMIT, "the sequence is too long");
    return SONDE_OK;
}

static sonde_status bind_projection(sn_bind *b, msa_bound *k)
{
    const sn_type *x = &b->in[INPUT]->type;
    int64_t rows;
    if (!sn_i64_mul(k->batch, k->len, &rows))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    k->x = sn_converted_carve(&b->workspace, b->in[INPUT], SONDE_DTYPE_F32);
    k->w = sn_converted_carve(&b->workspace, b->in[WEIGHTS], SONDE_DTYPE_F32);
    k->c = sn_converted_carve(&b->workspace, b->n_in > BIAS ? b->in[BIAS] : NULL, SONDE_DTYPE_F32);
    k->qkv = sn_carve(&b->workspace, sn_count(rows, k->row, 1, 1), sizeof(float));
    int64_t entries = 0;
    const unsigned sparse = sn_weights_sparse(b->in[WEIGHTS], &entries);
    const sn_gemm_desc d = {.m = rows,
                            .n = k->row,
                            .k = x->dims[2],
                            .b_count = 1,
                            .packed = b->in[WEIGHTS]->pack != 0,
                            .sparse = sparse,
                            .entries = entries,
                            .b_dtype = sn_packed_dtype(b->in[WEIGHTS]),
                            .f16 = b->in[WEIGHTS]->type.dtype == SONDE_DTYPE_F16,
                            .tiles = sn_packed_tiles(b->in[WEIGHTS]),
                            .has_c = sn_bind_has(b, BIAS),
                            .c_n = 1,
                            .alpha = 1.0f,
                            .beta = 1.0f};
    return sn_gemm_plan_make(&k->gemm, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err);
}

static sonde_status bind_msa(sn_bind *b)
{
    const msa_params *m = b->params;
    msa_bound *k = SN_NEW(b->arena, msa_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    SN_TRY(bind_shapes(b, k));
    SN_TRY(bind_projection(b, k));
    sn_workspace *w = &b->workspace;
    const sn_dtype f32 = SONDE_DTYPE_F32;
    const int64_t hidden = m->heads * k->size;
    const sn_heads q = sn_heads_bshd(f32, NULL, k->batch, m->heads, k->len, k->size, k->row, 0);
    sn_heads key = sn_heads_bshd(f32, NULL, k->batch, m->heads, k->len, k->size, k->row, hidden);
    sn_heads value =
        sn_heads_bshd(f32, NULL, k->batch, m->heads, k->len, k->v_size, k->row, 2 * hidden);
    const sn_heads y =
        sn_heads_bshd(f32, NULL, k->batch, m->heads, k->len, k->v_size, m->heads * k->v_size, 0);
    const bool past = sn_bind_has(b, PAST);
    const bool keep = sn_bind_wants(b, PRESENT) && b->in[INPUT]->type.dtype == f32;
    sn_attn_cache_bind(&k->k, &key, f32, past, false, keep, k->total, w);
    sn_attn_cache_bind(&k->v, &value, f32, past, false, keep, k->total, w);
    k->y = sn_converted_carve(w, &b->out[Y], f32);
    SN_TRY(sn_ms_mask_bind(b, MASK, k->batch, k->len, k->total, k->past, &k->mask));
    SN_TRY(sn_ms_bias_bind(b, ATTENTION_BIAS, k->batch, m->heads, k->len, k->total, &k->bias));
    k->lens = sn_carve(w, k->batch, sizeof(int64_t));
    sn_attention_desc d = {.scale = m->scale != 0.0f ? (double)m->scale : sn_attn_scale(k->size),
                           .left = -1,
                           .right = m->causal ? 0 : -1};
    SN_TRY(sn_attn_plan(b, &d, &q, &key, &value, &y, &k->plan));
    /* The projection is done before the attention starts. */
    k->core = sn_carve_either(w, &k->plan.workspace, &k->gemm.workspace);
    b->bound = k;
    b->flops = k->plan.flops + k->gemm.flops;
    b->arithmetic = k->gemm.arithmetic;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
/* Half `part` (0 keys, 1 values) of past or present, [2, batch, heads, len, size]. */
static sn_heads half_of(const sn_tensor *t, int part)
{
    if (!t)
        return (sn_heads){.data = NULL};
    const int64_t *d = t->dims;
    const size_t bytes = t->bytes / 2;
    return sn_heads_bhsd(t->dtype, (uint8_t *)t->data + (size_t)part * bytes, d[1], d[2], d[3],
                         d[4]);
}

static sonde_status run_msa(const sn_step *s, sn_frame *f)
{
    const msa_params *m = s->params;
    const msa_bound *k = s->bound;
    const sn_dtype f32 = SONDE_DTYPE_F32;
    float *qkv = sn_piece_ptr(f, k->qkv);
    sn_gemm_run(&k->gemm, sn_converted_in(s, f, INPUT, f32, k->x),
                sn_converted_in(s, f, WEIGHTS, f32, k->w), sn_converted_in(s, f, BIAS, f32, k->c),
                NULL, qkv, sn_piece_ptr(f, k->core), f->pool);
    const int64_t hidden = m->heads * k->size;
    const sn_heads now_k =
        sn_heads_bshd(f32, qkv, k->batch, m->heads, k->len, k->size, k->row, hidden);
    const sn_heads now_v =
        sn_heads_bshd(f32, qkv, k->batch, m->heads, k->len, k->v_size, k->row, 2 * hidden);
    const sn_tensor *past = sn_has(s, PAST) ? sn_in(s, f, PAST) : NULL;
    const sn_tensor *present = sn_wants(s, PRESENT) ? sn_out(s, f, PRESENT) : NULL;
    const sn_heads past_k = half_of(past, 0), past_v = half_of(past, 1);
    const sn_heads present_k = half_of(present, 0), present_v = half_of(present, 1);
    int64_t *start = sn_piece_ptr(f, k->lens);
    for (int64_t b = 0; b < k->batch; b++)
        start[b] = k->past;
    const sn_heads key =
        sn_attn_cache_run(&k->k, f, &past_k, &now_k, &present_k, f32, k->total, start, NULL);
    const sn_heads value =
        sn_attn_cache_run(&k->v, f, &past_v, &now_v, &present_v, f32, k->total, start, NULL);
    sn_attention_args a = {.q = qkv,
                           .k = key.data,
                           .v = value.data,
                           .y = sn_converted_out(s, f, Y, f32, k->y),
                           .filter = (double)m->filter,
                           .offset = start};
    sn_ms_mask_run(&k->mask, s, f, MASK, &a.keep);
    sn_ms_bias_run(&k->bias, s, f, ATTENTION_BIAS, &a.bias);
    sn_attention_run(&k->plan, &a, sn_piece_ptr(f, k->core), f->pool);
    sn_converted_done(s, f, Y, f32, k->y);
    return SONDE_OK;
}

const sn_op sn_op_ms_attention[] = {
    {.name = "Attention",
     .domain = SN_MS_DOMAIN,
     .since = 1,
     .min_in = 2,
     .max_in = 7,
     .min_out = 1,
     .max_out = 2,
     .params_size = sizeof(msa_params),
     .prepare = prepare_msa,
     .infer = infer_msa,
     .pack = pack_msa,
     .bind = bind_msa,
     .run = run_msa,
     .types = "f32 f16 bf16",
     .attributes = "do_rotary mask_filter_value num_heads past_present_share_buffer "
                   "qkv_hidden_sizes rotary_embedding_dim scale unidirectional"},
    {.name = NULL}};
