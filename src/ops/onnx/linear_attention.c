/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention: a state matrix per key head is decayed, corrected and extended token by token,
 * and read by the queries that share it. Computed in f32; heads run side by side, tokens in order.
 */
#include <math.h>
#include <string.h>

#include "compute/codec.h"
#include "compute/eltwise.h"
#include "ops/shared/heads.h"

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA, N_IN };

typedef struct linear_params {
    int64_t q_heads, kv_heads;
    float scale; /* 0: 1 / sqrt(key size) */
    bool gated, delta;
} linear_params;

typedef struct linear_bound {
    int64_t batch, len, dk, dv;
    int64_t decay_size; /* 1 or dk */
    int64_t beta_heads; /* 1 or kv_heads */
    float scale;
    size_t in[N_IN], state, out, row; /* workspace */
} linear_bound;

static sonde_status prepare_linear(sn_prep *p)
{
    linear_params *l = p->params;
    const char *rule;
    SN_TRY(sn_prep_int(p, "q_num_heads", 0, &l->q_heads));
    SN_TRY(sn_prep_int(p, "kv_num_heads", 0, &l->kv_heads));
    SN_TRY(sn_prep_float(p, "scale", 0.0f, &l->scale));
    SN_TRY(sn_prep_string(p, "update_rule", "gated_delta", &rule));
    l->gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
    l->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (!l->gated && !l->delta && strcmp(rule, "linear") != 0)
        return sn_prep_fail(p, "attribute 'update_rule' is '%s'", rule);
    if (l->kv_heads < 1 || l->q_heads < 1 || l->q_heads % l->kv_heads)
        return sn_prep_fail(p, "%lld query heads cannot share %lld key heads",
                            (long long)l->q_heads, (long long)l->kv_heads);
    return SONDE_OK;
}

static sonde_status infer_linear(sn_infer *c)
{
    const linear_params *l = c->params;
    const sn_type *q = &c->in[QUERY]->type, *v = &c->in[VALUE]->type;
    const sn_dtype state = sn_infer_has(c, PAST) ? c->in[PAST]->type.dtype : q->dtype;
    if (q->rank < 0 || v->rank < 0) {
        SN_TRY(sn_infer_tensor(c, 0, q->dtype, NULL, -1));
        return sn_infer_tensor(c, 1, state, NULL, -1);
    }
    if (q->rank != 3 || v->rank != 3)
        return sn_infer_fail(c, "query, key and value must have rank 3");
    const sn_dim dk = sn_dim_known(q->dims[2]) ? q->dims[2] / l->q_heads : SN_DIM_UNKNOWN;
    const sn_dim dv = sn_dim_known(v->dims[2]) ? v->dims[2] / l->kv_heads : SN_DIM_UNKNOWN;
    const sn_dim y[3] = {q->dims[0], q->dims[1], sn_dim_mul(dv, l->q_heads)};
    const sn_dim present[4] = {q->dims[0], l->kv_heads, dk, dv};
    SN_TRY(sn_infer_tensor(c, 0, q->dtype, y, 3));
    return sn_infer_tensor(c, 1, state, present, 4);
}

static bool has(const sn_bind *b, uint32_t i)
{
    return i < b->n_in && b->in[i];
}

/* Input i must be [batch, len, columns]. */
static bool is_rows(const sn_bind *b, uint32_t i, const linear_bound *k, int64_t columns)
{
    const sn_type *t = &b->in[i]->type;
    return t->rank == 3 && t->dims[0] == k->batch && t->dims[1] == k->len && t->dims[2] == columns;
}

static sonde_status bind_shapes(sn_bind *b, linear_bound *k)
{
    const linear_params *l = b->params;
    const sn_type *q = &b->in[QUERY]->type, *v = &b->in[VALUE]->type;
    k->batch = q->dims[0];
    k->len = q->dims[1];
    k->dk = q->dims[2] / l->q_heads;
    k->dv = v->dims[2] / l->kv_heads;
    if (!is_rows(b, QUERY, k, k->dk * l->q_heads) || !is_rows(b, KEY, k, k->dk * l->kv_heads) ||
        !is_rows(b, VALUE, k, k->dv * l->kv_heads))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "query, key and value do not fit each other");
    if (has(b, PAST)) {
        const sn_type *t = &b->in[PAST]->type;
        if (t->rank != 4 || t->dims[0] != k->batch || t->dims[1] != l->kv_heads ||
            t->dims[2] != k->dk || t->dims[3] != k->dv)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "past_state does not fit");
    }
    if (has(b, DECAY) != l->gated || has(b, BETA) != l->delta)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "decay and beta must be given exactly when the update rule uses them");
    if (l->gated) {
        k->decay_size =
            b->in[DECAY]->type.rank == 3 && b->in[DECAY]->type.dims[2] == l->kv_heads ? 1 : k->dk;
        if (!is_rows(b, DECAY, k, k->decay_size * l->kv_heads))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "decay does not fit");
    }
    if (l->delta) {
        k->beta_heads =
            b->in[BETA]->type.rank == 3 && b->in[BETA]->type.dims[2] == 1 ? 1 : l->kv_heads;
        if (!is_rows(b, BETA, k, k->beta_heads))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "beta does not fit");
    }
    return SONDE_OK;
}

static sonde_status bind_linear(sn_bind *b)
{
    const linear_params *l = b->params;
    linear_bound *k = SN_NEW(b->arena, linear_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    SN_TRY(bind_shapes(b, k));
    sn_room ws = {0};
    int64_t count = 0;
    for (uint32_t i = 0; i < N_IN; i++) {
        if (!has(b, i))
            continue;
        if (sn_attn_compute_type(b->in[i]->type.dtype) != SONDE_DTYPE_F32 ||
            !sn_type_count(&b->in[i]->type, &count))
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                                sn_dtype_onnx_name(b->in[i]->type.dtype));
        if (b->in[i]->type.dtype != SONDE_DTYPE_F32)
            k->in[i] = sn_room_take(&ws, count, sizeof(float));
    }
    int64_t state = k->batch, out = k->batch, row = k->batch;
    if (!sn_i64_mul(state, l->kv_heads * k->dk, &state) || !sn_i64_mul(state, k->dv, &state) ||
        !sn_i64_mul(out, k->len, &out) || !sn_i64_mul(out, l->q_heads * k->dv, &out) ||
        !sn_i64_mul(row, l->kv_heads * k->dv, &row))
        return sn_bind_fail(b, SONDE_LIMIT, "the state is too large");
    k->state = sn_room_take(&ws, state, sizeof(float));
    k->out = sn_room_take(&ws, out, sizeof(float));
    k->row = sn_room_take(&ws, row, sizeof(float));
    if (ws.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the state is too large");
    k->scale = l->scale != 0.0f ? l->scale : (float)(1.0 / sqrt((double)(k->dk > 0 ? k->dk : 1)));
    b->workspace_bytes = ws.bytes;
    b->bound = k;
    b->kernel = "f32_linear_attention";
    b->flops = (uint64_t)state * (uint64_t)k->len * (l->delta ? 6 : 4);
    return SONDE_OK;
}

typedef struct linear_job {
    const linear_params *l;
    const linear_bound *k;
    const float *q, *key, *v, *decay, *beta;
    float *state, *out, *row;
} linear_job;

/* One token of one head: its state is [dk][dv], `v` is scratch that holds the token's value. */
static void advance(const linear_job *j, float *state, const float *key, float *v,
                    const float *decay, float beta)
{
    const int64_t dk = j->k->dk, dv = j->k->dv;
    for (int64_t d = 0; decay && d < dk; d++) {
        const float g = expf(decay[j->k->decay_size == 1 ? 0 : d]);
        for (int64_t m = 0; m < dv; m++)
            state[d * dv + m] *= g;
    }
    if (j->l->delta) {
        for (int64_t d = 0; d < dk; d++)
            for (int64_t m = 0; m < dv; m++)
                v[m] -= state[d * dv + m] * key[d];
        for (int64_t m = 0; m < dv; m++)
            v[m] *= beta;
    }
    for (int64_t d = 0; d < dk; d++)
        for (int64_t m = 0; m < dv; m++)
            state[d * dv + m] += key[d] * v[m];
}

static void linear_range(void *arg, size_t lo, size_t hi)
{
    const linear_job *j = arg;
    const linear_bound *k = j->k;
    const int64_t kv = j->l->kv_heads, group = j->l->q_heads / kv, dk = k->dk, dv = k->dv;
    for (size_t i = lo; i < hi; i++) {
        const int64_t b = (int64_t)i / kv, h = (int64_t)i % kv;
        float *state = j->state + (int64_t)i * dk * dv, *v = j->row + (int64_t)i * dv;
        for (int64_t t = 0; t < k->len; t++) {
            const int64_t at = b * k->len + t;
            memcpy(v, j->v + (at * kv + h) * dv, sizeof(float) * (size_t)dv);
            advance(j, state, j->key + (at * kv + h) * dk, v,
                    j->decay ? j->decay + (at * kv + h) * k->decay_size : NULL,
                    j->beta ? j->beta[at * k->beta_heads + (k->beta_heads > 1 ? h : 0)] : 1.0f);
            for (int64_t g = 0; g < group; g++) {
                const float *q = j->q + (at * kv * group + h * group + g) * dk;
                float *y = j->out + (at * kv * group + h * group + g) * dv;
                memset(y, 0, sizeof(float) * (size_t)dv);
                for (int64_t d = 0; d < dk; d++)
                    for (int64_t m = 0; m < dv; m++)
                        y[m] += q[d] * state[d * dv + m];
                for (int64_t m = 0; m < dv; m++)
                    y[m] *= k->scale;
            }
        }
    }
}

static sonde_status run_linear(const sn_step *s, sn_frame *f)
{
    const linear_params *l = s->params;
    const linear_bound *k = s->bound;
    const float *in[N_IN] = {NULL};
    for (uint32_t i = 0; i < N_IN; i++)
        if (sn_has(s, i))
            in[i] = sn_as_f32(sn_in(s, f, i), f->workspace + k->in[i]);
    linear_job j = {.l = l,
                    .k = k,
                    .q = in[QUERY],
                    .key = in[KEY],
                    .v = in[VALUE],
                    .decay = in[DECAY],
                    .beta = in[BETA],
                    .state = (float *)(void *)(f->workspace + k->state),
                    .out = (float *)(void *)(f->workspace + k->out),
                    .row = (float *)(void *)(f->workspace + k->row)};
    const size_t heads = (size_t)(k->batch * l->kv_heads), n = heads * (size_t)(k->dk * k->dv);
    if (in[PAST])
        memcpy(j.state, in[PAST], n * sizeof(float));
    else
        memset(j.state, 0, n * sizeof(float));
    sn_parallel_range(f->pool, heads, (size_t)(k->len * k->dk * k->dv) + 1, linear_range, &j);
    sn_tensor *y = sn_out(s, f, 0);
    sn_store_f32(f->ctx->cpu.flags, y->dtype, y->data, j.out, (size_t)sn_tensor_count(y),
                 (sn_rounding){0});
    if (sn_wants(s, 1))
        sn_store_f32(f->ctx->cpu.flags, sn_out(s, f, 1)->dtype, sn_out(s, f, 1)->data, j.state, n,
                     (sn_rounding){0});
    return SONDE_OK;
}

const sn_op sn_op_linear_attention[] = {{.name = "LinearAttention",
                                         .domain = "",
                                         .since = 27,
                                         .min_in = 3,
                                         .max_in = 6,
                                         .min_out = 1,
                                         .max_out = 2,
                                         .params_size = sizeof(linear_params),
                                         .prepare = prepare_linear,
                                         .infer = infer_linear,
                                         .bind = bind_linear,
                                         .run = run_linear,
                                         .types = "f32 f16 bf16"},
                                        {.name = NULL}};
