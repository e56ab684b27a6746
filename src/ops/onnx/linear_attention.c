/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention: a state matrix per key head is decayed, corrected and extended token by token,
 * and read by the queries that share it. Computed in f32 (compute/linear_attention.h). */
#include <string.h>

#include "compute/linear_attention.h"
#include "compute/split.h"
#include "ops/shared/attention.h"
#include "ops/shared/converted.h"

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA, N_IN };

typedef struct linear_params {
    int64_t q_heads, kv_heads;
    float scale; /* 0: 1 / sqrt(key size) */
    bool gated, delta;
} linear_params;

typedef struct linear_bound {
    sn_linear_attention_desc d;
    sn_piece in[N_IN], state, out, values;
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
static bool is_rows(const sn_bind *b, uint32_t i, const sn_linear_attention_desc *d,
                    int64_t columns)
{
    const sn_type *t = &b->in[i]->type;
    return t->rank == 3 && t->dims[0] == d->batch && t->dims[1] == d->len && t->dims[2] == columns;
}

static sonde_status describe(sn_bind *b, sn_linear_attention_desc *d)
{
    const linear_params *l = b->params;
    const sn_type *q = &b->in[QUERY]->type, *v = &b->in[VALUE]->type;
    *d = (sn_linear_attention_desc){.batch = q->dims[0],
                                    .len = q->dims[1],
                                    .q_heads = l->q_heads,
                                    .kv_heads = l->kv_heads,
                                    .dk = q->dims[2] / l->q_heads,
                                    .dv = v->dims[2] / l->kv_heads,
                                    .delta = l->delta};
    d->scale = l->scale != 0.0f ? l->scale : (float)sn_attn_scale(d->dk);
    if (!is_rows(b, QUERY, d, d->dk * l->q_heads) || !is_rows(b, KEY, d, d->dk * l->kv_heads) ||
        !is_rows(b, VALUE, d, d->dv * l->kv_heads))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the shapes of query, key and value do not match");
    if (has(b, PAST)) {
        const sn_type *t = &b->in[PAST]->type;
        if (t->rank != 4 || t->dims[0] != d->batch || t->dims[1] != l->kv_heads ||
            t->dims[2] != d->dk || t->dims[3] != d->dv)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "past_state does not fit");
    }
    if (has(b, DECAY) != l->gated || has(b, BETA) != l->delta)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "decay and beta must be given exactly when the update rule uses them");
    if (l->gated) {
        d->decay_size =
            b->in[DECAY]->type.rank == 3 && b->in[DECAY]->type.dims[2] == l->kv_heads ? 1 : d->dk;
        if (!is_rows(b, DECAY, d, d->decay_size * l->kv_heads))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "decay does not fit");
    }
    if (l->delta) {
        d->beta_heads =
            b->in[BETA]->type.rank == 3 && b->in[BETA]->type.dims[2] == 1 ? 1 : l->kv_heads;
        if (!is_rows(b, BETA, d, d->beta_heads))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "beta does not fit");
    }
    return SONDE_OK;
}

static sonde_status bind_linear(sn_bind *b)
{
    linear_bound *k = SN_NEW(b->arena, linear_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    sn_linear_attention_desc *d = &k->d;
    SN_TRY(describe(b, d));
    for (uint32_t i = 0; i < N_IN; i++) {
        if (!has(b, i))
            continue;
        if (sn_compute_float(b->in[i]->type.dtype) != SONDE_DTYPE_F32)
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                                sn_dtype_onnx_name(b->in[i]->type.dtype));
        k->in[i] = sn_converted_carve(&b->workspace, b->in[i], SONDE_DTYPE_F32);
    }
    const int64_t state = sn_count(d->batch, d->kv_heads, d->dk, d->dv);
    const int64_t out = sn_count(d->batch, d->len, d->q_heads, d->dv);
    k->state = sn_carve(&b->workspace, state, sizeof(float));
    k->out = sn_carve(&b->workspace, out, sizeof(float));
    k->values = sn_carve(&b->workspace, sn_count(d->batch, d->kv_heads, d->dv, 1), sizeof(float));
    if (b->workspace.overflow)
        return sn_bind_fail(b, SONDE_LIMIT, "the state is too large");
    b->bound = k;
    b->kernel = "f32_linear_attention";
    b->flops = (uint64_t)state * (uint64_t)d->len * (d->delta ? 6 : 4);
    return SONDE_OK;
}

static sonde_status run_linear(const sn_step *s, sn_frame *f)
{
    const linear_bound *k = s->bound;
    const float *in[N_IN];
    for (uint32_t i = 0; i < N_IN; i++)
        in[i] = sn_converted_in(s, f, i, SONDE_DTYPE_F32, k->in[i]);
    const sn_linear_attention_args a = {.q = in[QUERY],
                                        .k = in[KEY],
                                        .v = in[VALUE],
                                        .decay = in[DECAY],
                                        .beta = in[BETA],
                                        .past = in[PAST],
                                        .state = sn_piece_ptr(f, k->state),
                                        .out = sn_piece_ptr(f, k->out),
                                        .values = sn_piece_ptr(f, k->values)};
    sn_linear_attention_run(&k->d, &a, f->pool);
    const float *results[2] = {a.out, a.state};
    for (uint32_t o = 0; o < 2; o++)
        if (sn_wants(s, o))
            sn_store_f32(f->ctx->cpu.flags, sn_out(s, f, o)->dtype, sn_out(s, f, o)->data,
                         results[o], (size_t)sn_tensor_count(sn_out(s, f, o)), (sn_rounding){0});
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
