/* SPDX-License-Identifier: Apache-2.0 */
/* FlexAttention (preview domain): attention whose scores and probabilities may each go through a
 * body graph. Both exist as whole tensors then, so this one is written for exactness: all
 * arithmetic is in double, only the bodies see the softmax precision. */
#include <math.h>
#include <string.h>

#include "compute/cast.h"
#include "compute/eltwise.h"
#include "ops/framework/body.h"

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

typedef struct flex_run {
    int64_t batch, heads, kv_heads, len, keys, size, v_size;
    double *q, *k, *v, *s, *y;
    double scale;
} flex_run;

static void scores_range(void *arg, size_t lo, size_t hi)
{
    const flex_run *r = arg;
    for (size_t row = lo; row < hi; row++) {
        const int64_t head = (int64_t)row / r->len, b = head / r->heads, h = head % r->heads;
        const int64_t kv = b * r->kv_heads + h / (r->heads / r->kv_heads);
        const double *q = r->q + (int64_t)row * r->size, *k = r->k + kv * r->keys * r->size;
        for (int64_t j = 0; j < r->keys; j++) {
            double sum = 0;
            for (int64_t c = 0; c < r->size; c++)
                sum += q[c] * k[j * r->size + c];
            r->s[(int64_t)row * r->keys + j] = sum * r->scale;
        }
    }
}

static void softmax_range(void *arg, size_t lo, size_t hi)
{
    const flex_run *r = arg;
    for (size_t row = lo; row < hi; row++) {
        double *s = r->s + (int64_t)row * r->keys, max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < r->keys; j++)
            max = s[j] > max || isnan(s[j]) ? s[j] : max;
        for (int64_t j = 0; j < r->keys; j++)
            sum += s[j] = exp(s[j] - max);
        for (int64_t j = 0; j < r->keys; j++)
            s[j] /= sum;
    }
}

static void values_range(void *arg, size_t lo, size_t hi)
{
    const flex_run *r = arg;
    for (size_t row = lo; row < hi; row++) {
        const int64_t head = (int64_t)row / r->len, b = head / r->heads, h = head % r->heads;
        const int64_t kv = b * r->kv_heads + h / (r->heads / r->kv_heads);
        const double *s = r->s + (int64_t)row * r->keys, *v = r->v + kv * r->keys * r->v_size;
        double *y = r->y + (int64_t)row * r->v_size;
        memset(y, 0, sizeof *y * (size_t)r->v_size);
        for (int64_t j = 0; j < r->keys; j++)
            for (int64_t c = 0; c < r->v_size; c++)
                y[c] += s[j] * v[j * r->v_size + c];
    }
}

/* r->s goes through a body and comes back. */
static sonde_status modify(const sn_step *s, sn_frame *f, const sn_body_ref *body,
                           sn_dtype precision, flex_run *r)
{
    const int64_t dims[4] = {r->batch, r->heads, r->len, r->keys};
    sn_slot in = {0}, out = {0};
    SN_TRY(sn_slot_new_tensor(&in, precision, dims, 4, f->alloc, f->err));
    const size_t n = (size_t)sn_tensor_count(&in.t);
    sn_cast_run(f->ctx->cpu.flags, precision, in.t.data, SONDE_DTYPE_F64, r->s, n, (sn_rounding){0},
                f->pool);
    sonde_status st = sn_body_run(s, f, body, &in, 1, &out, 1);
    if (st == SONDE_OK && (out.kind != SN_KIND_TENSOR || !sn_cast_supported(out.t.dtype) ||
                           !sn_move_same_dims(out.t.dims, out.t.rank, dims, 4)))
        st = sn_run_fail(s, f, "a modifier changed the shape of the scores");
    if (st == SONDE_OK)
        sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F64, r->s, out.t.dtype, out.t.data, n,
                    (sn_rounding){0}, f->pool);
    sn_slot_clear(&in);
    sn_slot_clear(&out);
    return st;
}

static sonde_status compute(const sn_step *s, sn_frame *f, flex_run *r, sn_dtype type)
{
    const flex_params *x = s->params;
    const sn_dtype precision = precision_of(x, type);
    const size_t rows = (size_t)(r->batch * r->heads * r->len);
    double *in[3] = {r->q, r->k, r->v};
    for (uint32_t i = 0; i < 3; i++) {
        const sn_tensor *t = sn_in(s, f, i);
        sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F64, in[i], t->dtype, t->data,
                    (size_t)sn_tensor_count(t), (sn_rounding){0}, f->pool);
    }
    sn_parallel_range(f->pool, rows, (size_t)(r->keys * r->size) + 1, scores_range, r);
    if (x->has_score)
        SN_TRY(modify(s, f, &x->score, precision, r));
    sn_parallel_range(f->pool, rows, 10 * (size_t)r->keys + 1, softmax_range, r);
    if (x->has_prob)
        SN_TRY(modify(s, f, &x->prob, precision, r));
    sn_parallel_range(f->pool, rows, (size_t)(r->keys * r->v_size) + 1, values_range, r);
    const int64_t dims[4] = {r->batch, r->heads, r->len, r->v_size};
    sn_tensor *y;
    SN_TRY(sn_run_output(s, f, 0, type, dims, 4, &y));
    if (y)
        sn_cast_run(f->ctx->cpu.flags, type, y->data, SONDE_DTYPE_F64, r->y,
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
    flex_run r = {q[0], q[1], k[1], q[2], k[2], q[3], v[3], NULL, NULL, NULL, NULL, NULL, 0};
    if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] || k[3] != q[3] || k[1] < 1 ||
        q[1] < 1 || q[1] % k[1])
        return sn_run_fail(s, f, "the shapes of Q, K and V do not fit each other");
    r.scale = x->has_scale ? (double)x->scale : 1.0 / sqrt((double)(q[3] > 0 ? q[3] : 1));
    const int64_t score_dims[4] = {q[0], q[1], q[2], k[2]}, out_dims[4] = {q[0], q[1], q[2], v[3]};
    const int64_t *const dims[5] = {q, k, v, score_dims, out_dims};
    double **const at[5] = {&r.q, &r.k, &r.v, &r.s, &r.y};
    size_t offset[5], bytes = 0;
    for (int i = 0; i < 5; i++) {
        int64_t n;
        size_t part;
        offset[i] = bytes;
        if (!sn_dims_count(dims[i], 4, &n) || !sn_size_mul((size_t)n, sizeof(double), &part) ||
            !sn_size_add(bytes, part, &bytes))
            return sn_run_fail(s, f, "the attention is too large");
    }
    uint8_t *room = sn_alloc(f->alloc, bytes);
    if (!room)
        return sn_fail_memory(f->err, bytes);
    for (int i = 0; i < 5; i++)
        *at[i] = (double *)(void *)(room + offset[i]);
    sonde_status st = compute(s, f, &r, sn_in(s, f, 0)->dtype);
    sn_free(f->alloc, room, bytes);
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
