/* SPDX-License-Identifier: Apache-2.0 */
/* FlexAttention (preview domain): attention whose scores and probabilities may each go through a
 * body graph. Both exist as whole tensors then, so this one is written for exactness: all
 * arithmetic is in double, only the bodies see the softmax precision. */
#include <string.h>

#include "compute/attention_f64.h"
#include "compute/cast.h"
#include "ops/shared/attention.h"
#include "ops/shared/body.h"

typedef struct flex_params {
    sn_body_ref score, prob;
    bool has_score, has_prob, has_scale;
    float scale;
    sn_dtype precision; /* UNDEFINED: by the input */
} flex_params;

static sonde_status find_body(sn_prep *p, const char *name, sn_body_ref *b, bool *has)
{
    *has = sn_node_attr(p->node, name) != NULL;
    if (!*has)
        return SONDE_OK;
    SN_TRY(sn_body_find(p, name, b));
    if (b->graph->n_formal_inputs != 1 || b->graph->outputs.n != 1)
        return sn_prep_fail(p, "'%s' must have one input and one output", name);
    return SONDE_OK;
}

static sonde_status prepare_flex(sn_prep *p)
{
    flex_params *x = p->params;
    int64_t precision;
    SN_TRY(find_body(p, "score_mod", &x->score, &x->has_score));
    SN_TRY(find_body(p, "prob_mod", &x->prob, &x->has_prob));
    SN_TRY(sn_prep_float(p, "scale", 0.0f, &x->scale));
    SN_TRY(sn_prep_int(p, "softmax_precision", 0, &precision));
    x->has_scale = sn_node_attr(p->node, "scale") != NULL;
    if (precision != 0 && (!sn_dtype_valid(precision) || !sn_dtype_is_float((sn_dtype)precision) ||
                           sn_dtype_bits((sn_dtype)precision) < 16))
        return sn_prep_fail(p, "attribute 'softmax_precision' is not a float type");
    x->precision = (sn_dtype)precision;
    return SONDE_OK;
}

static sn_dtype precision_of(const flex_params *x, sn_dtype input)
{
    if (x->precision != SONDE_DTYPE_UNDEFINED)
        return x->precision;
    return input == SONDE_DTYPE_F64 ? SONDE_DTYPE_F64 : SONDE_DTYPE_F32;
}

static sonde_status infer_flex(sn_infer *c)
{
    const flex_params *x = c->params;
    const sn_type *q = &c->in[0]->type, *k = &c->in[1]->type, *v = &c->in[2]->type;
    sn_dim y[4] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN}, s[4];
    for (uint32_t i = 0; i < 3; i++)
        if (c->in[i]->type.kind == SN_KIND_TENSOR && c->in[i]->type.rank >= 0 &&
            c->in[i]->type.rank != 4)
            return sn_infer_fail(c, "input %u must have rank 4", i);
    if (q->rank == 4)
        memcpy(y, q->dims, sizeof y);
    memcpy(s, y, sizeof s);
    s[3] = k->rank == 4 ? k->dims[2] : SN_DIM_UNKNOWN;
    y[3] = v->rank == 4 ? v->dims[3] : SN_DIM_UNKNOWN;
    /* The dims must outlive this call: bodies keep the fact. */
    sn_dim *kept = SN_NEW_N(c->arena, sn_dim, 4);
    if (!kept)
        return sn_fail_memory(c->err, sizeof s);
    memcpy(kept, s, sizeof s);
    const sn_fact scores = {
        .type = {
            .kind = SN_KIND_TENSOR, .dtype = precision_of(x, q->dtype), .rank = 4, .dims = kept}};
    const sn_fact *formal = &scores;
    if (x->has_score)
        SN_TRY(sn_infer_body(c, x->score.graph, &formal, 1));
    if (x->has_prob)
        SN_TRY(sn_infer_body(c, x->prob.graph, &formal, 1));
    return sn_infer_tensor(c, 0, q->dtype, y, 4);
}

/* The scores go through a body and come back. */
static sonde_status modify(const sn_step *s, sn_frame *f, const sn_body_ref *body,
                           sn_dtype precision, const sn_attention_f64 *a)
{
    const int64_t dims[4] = {a->batch, a->heads, a->len, a->keys};
    sn_slot in = {0}, out = {0};
    SN_TRY(sn_slot_new_tensor(&in, precision, dims, 4, f->alloc, f->err));
    const size_t n = (size_t)sn_tensor_count(&in.t);
    sn_cast_run(f->ctx->cpu.flags, precision, in.t.data, SONDE_DTYPE_F64, a->scores, n,
                (sn_rounding){0}, f->pool);
    sonde_status st = sn_body_run(s, f, body, &in, 1, &out, 1);
    if (st == SONDE_OK && (out.kind != SN_KIND_TENSOR || !sn_cast_supported(out.t.dtype) ||
                           !sn_same_dims(out.t.dims, out.t.rank, dims, 4)))
        st = sn_run_fail(s, f, "a modifier changed the shape of the scores");
    if (st == SONDE_OK)
        sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F64, a->scores, out.t.dtype, out.t.data, n,
                    (sn_rounding){0}, f->pool);
    sn_slot_clear(&in);
    sn_slot_clear(&out);
    return st;
}

/* `in`: where the inputs go in double. */
static sonde_status compute(const sn_step *s, sn_frame *f, const sn_attention_f64 *a,
                            double *const in[3])
{
    const flex_params *x = s->params;
    const sn_dtype type = sn_in(s, f, 0)->dtype, precision = precision_of(x, type);
    for (uint32_t i = 0; i < 3; i++) {
        const sn_tensor *t = sn_in(s, f, i);
        sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F64, in[i], t->dtype, t->data,
                    (size_t)sn_tensor_count(t), (sn_rounding){0}, f->pool);
    }
    sn_attention_f64_scores(a, f->pool);
    if (x->has_score)
        SN_TRY(modify(s, f, &x->score, precision, a));
    sn_attention_f64_softmax(a, f->pool);
    if (x->has_prob)
        SN_TRY(modify(s, f, &x->prob, precision, a));
    sn_attention_f64_values(a, f->pool);
    const int64_t dims[4] = {a->batch, a->heads, a->len, a->v_size};
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, type, dims, 4, &y));
    if (y)
        sn_cast_run(f->ctx->cpu.flags, type, y->data, SONDE_DTYPE_F64, a->y,
                    (size_t)sn_tensor_count(y), (sn_rounding){0}, f->pool);
    return SONDE_OK;
}

static sonde_status run_flex(const sn_step *s, sn_frame *f)
{
    const flex_params *x = s->params;
    for (uint32_t i = 0; i < 3; i++)
        if (sn_in_slot(s, f, i)->kind != SN_KIND_TENSOR || sn_in(s, f, i)->rank != 4 ||
            !sn_dtype_is_float(sn_in(s, f, i)->dtype) || !sn_cast_supported(sn_in(s, f, i)->dtype))
            return sn_run_fail(s, f, "input %u must be a float tensor of rank 4", i);
    const int64_t *q = sn_in(s, f, 0)->dims, *k = sn_in(s, f, 1)->dims, *v = sn_in(s, f, 2)->dims;
    if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] || k[3] != q[3] || k[1] < 1 ||
        q[1] < 1 || q[1] % k[1])
        return sn_run_fail(s, f, "the shapes of Q, K and V do not match");
    /* Bodies make this a step without a binding: its scratch memory is allocated here. */
    const int64_t score_dims[4] = {q[0], q[1], q[2], k[2]}, out_dims[4] = {q[0], q[1], q[2], v[3]};
    const int64_t *const dims[5] = {q, k, v, score_dims, out_dims};
    sn_workspace w = {0};
    sn_piece piece[5];
    for (int i = 0; i < 5; i++) {
        int64_t n;
        piece[i] = sn_carve(&w, sn_dims_count(dims[i], 4, &n) ? n : -1, sizeof(double));
    }
    if (w.overflow)
        return sn_run_fail(s, f, "the attention is too large");
    void *room = sn_alloc(f->alloc, w.bytes);
    if (!room)
        return sn_fail_memory(f->err, w.bytes);
    sn_workspace_close(room, w.bytes);
    sn_workspace_open_pieces(room, &w);
    double *at[5];
    for (int i = 0; i < 5; i++)
        at[i] = sn_piece_at(room, piece[i]);
    const sn_attention_f64 a = {.batch = q[0],
                                .heads = q[1],
                                .kv_heads = k[1],
                                .len = q[2],
                                .keys = k[2],
                                .size = q[3],
                                .v_size = v[3],
                                .scale = x->has_scale ? (double)x->scale : sn_attn_scale(q[3]),
                                .q = at[0],
                                .k = at[1],
                                .v = at[2],
                                .scores = at[3],
                                .y = at[4]};
    const sonde_status st = compute(s, f, &a, at);
    sn_workspace_open(room, w.bytes);
    sn_free(f->alloc, room, w.bytes);
    return st;
}

const sn_op sn_op_flex_attention[] = {{.name = "FlexAttention",
                                       .domain = "ai.onnx.preview",
                                       .since = 1,
                                       .min_in = 3,
                                       .max_in = 3,
                                       .min_out = 1,
                                       .max_out = 1,
                                       .flags = SN_OP_CONTROL | SN_OP_NONTENSOR,
                                       .params_size = sizeof(flex_params),
                                       .prepare = prepare_flex,
                                       .infer = infer_flex,
                                       .run = run_flex,
                                       .types = "f32 f64 f16 bf16"},
                                      {.name = NULL}};
