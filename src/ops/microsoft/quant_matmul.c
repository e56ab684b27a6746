/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeMatMul and MatMulIntegerToFloat of com.microsoft. Bytes become f32 integers minus
 * their zero point, B is scaled column by column, and one f32 product does the rest: sums beyond
 * 2^24 round as the f32 result would anyway. */
#include "compute/byte_steps.h"
#include "compute/bytes.h"
#include "ops/shared/converted.h"
#include "ops/shared/product.h"

typedef struct qmm_params {
    bool dynamic;
    uint32_t a_scale, b_scale, a_zero, b_zero, bias; /* input numbers */
} qmm_params;

typedef struct qmm_bound {
    sn_gemm_plan plan;
    int64_t a_count, b_count;
    sn_piece a, b, core;
    sn_piece b_scale, c, y; /* in f32 */
} qmm_bound;

static sonde_status prepare_dynamic(sn_prep *p)
{
    qmm_params *q = p->params;
    *q = (qmm_params){true, UINT32_MAX, 2, UINT32_MAX, 3, 4};
    return SONDE_OK;
}

static sonde_status prepare_to_float(sn_prep *p)
{
    qmm_params *q = p->params;
    *q = (qmm_params){false, 2, 3, 4, 5, 6};
    return SONDE_OK;
}

static sonde_status infer_qmm(sn_infer *c)
{
    const qmm_params *q = c->params;
    const sn_type *a = &c->in[0]->type, *b = &c->in[1]->type;
    const sn_dtype t = q->dynamic ? SONDE_DTYPE_F32 : c->in[q->b_scale]->type.dtype;
    if (a->rank < 0 || b->rank < 0)
        return sn_infer_tensor(c, 0, t, NULL, -1);
    if (a->rank < 2 || b->rank < 2)
        return sn_infer_fail(c, "ranks %d and %d cannot be multiplied", a->rank, b->rank);
    const sn_dim ka = a->dims[a->rank - 1], kb = b->dims[b->rank - 2];
    if (sn_dim_known(ka) && sn_dim_known(kb) && ka != kb)
        return sn_infer_fail(c, "inner dims differ: %lld and %lld", (long long)ka, (long long)kb);
    const sn_type batch_a = {.rank = a->rank - 2, .dims = a->dims};
    const sn_type batch_b = {.rank = b->rank - 2, .dims = b->dims};
    sn_dim out[SN_MAX_RANK];
    int rank;
    SN_TRY(sn_infer_broadcast(c, &batch_a, &batch_b, out, &rank));
    out[rank++] = a->dims[a->rank - 2];
    out[rank++] = b->dims[b->rank - 1];
    return sn_infer_tensor(c, 0, t, out, rank);
}

/* Input i, when there, has one element or n. */
static sonde_status check_params(sn_bind *b, uint32_t i, sn_dtype t, int64_t n)
{
    int64_t count = 0;
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    if (b->in[i]->type.dtype != t || !sn_type_count(&b->in[i]->type, &count) ||
        (count != 1 && count != n))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u must be 1 or %lld numbers of type %s",
                            i, (long long)n, sn_dtype_onnx_name(t));
    return SONDE_OK;
}

static sonde_status bind_qmm(sn_bind *b)
{
    const qmm_params *q = b->params;
    qmm_bound *k = SN_NEW(b->arena, qmm_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *ta = &b->in[0]->type, *tb = &b->in[1]->type;
    const sn_dtype out = b->out[0].type.dtype;
    sn_gemm_desc d = {.alpha = 1.0f, .beta = 1.0f};
    if (!sn_product_shape(&d, ta->dims, ta->rank, tb->dims, tb->rank) ||
        !sn_type_count(ta, &k->a_count) || !sn_type_count(tb, &k->b_count))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the shapes do not match");
    if (!sn_is_byte(tb->dtype) ||
        !(q->dynamic ? ta->dtype == SONDE_DTYPE_F32 : sn_is_byte(ta->dtype)) ||
        sn_compute_float(out) != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element types %s and %s are not supported",
                            sn_dtype_onnx_name(ta->dtype), sn_dtype_onnx_name(tb->dtype));
    SN_TRY(check_params(b, q->b_scale, out, d.n));
    SN_TRY(check_params(b, q->b_zero, tb->dtype, d.n));
    if (!q->dynamic) {
        SN_TRY(check_params(b, q->a_scale, out, 1));
        SN_TRY(check_params(b, q->a_zero, ta->dtype, 1));
    }
    if (q->bias < b->n_in && b->in[q->bias]) {
        const sn_type *c = &b->in[q->bias]->type;
        if (c->rank != 1 || c->dims[0] != d.n || c->dtype != out)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "the bias does not fit the result");
        d.has_c = true;
        d.c_n = 1;
    }
    SN_TRY(sn_gemm_plan_make(&k->plan, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    k->a = sn_carve(&b->workspace, k->a_count, sizeof(float));
    k->b = sn_carve(&b->workspace, k->b_count, sizeof(float));
    k->b_scale = sn_converted_carve(&b->workspace, b->in[q->b_scale], SONDE_DTYPE_F32);
    if (q->bias < b->n_in)
        k->c = sn_converted_carve(&b->workspace, b->in[q->bias], SONDE_DTYPE_F32);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    b->bound = k;
    b->kernel = k->plan.name;
    b->flops = k->plan.flops;
    return SONDE_OK;
}

static sn_byte_zeros zeros_in(const sn_step *s, const sn_frame *f, uint32_t i)
{
    if (!sn_has(s, i))
        return (sn_byte_zeros){0};
    const sn_tensor *t = sn_in(s, f, i);
    return (sn_byte_zeros){t->dtype, t->data, sn_tensor_count(t)};
}

/* A in f32 without its scale, which is returned. */
static float widen_a(const sn_step *s, const sn_frame *f, float *a)
{
    const qmm_params *q = s->params;
    const qmm_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, 0);
    if (q->dynamic)
        return sn_byte_steps(x->data, a, k->a_count);
    const sn_byte_zeros zero = zeros_in(s, f, q->a_zero);
    const sn_tensor *scale = sn_in(s, f, q->a_scale);
    float factor;
    sn_load_f32(0, scale->dtype, &factor, scale->data, 1);
    sn_bytes_to_f32(f->ctx->cpu.flags, x->dtype, a, x->data, k->a_count, sn_byte_zero(&zero, 0));
    return factor;
}

static sonde_status run_qmm(const sn_step *s, sn_frame *f)
{
    const qmm_params *q = s->params;
    const qmm_bound *k = s->bound;
    const sn_dtype f32 = SONDE_DTYPE_F32;
    const sn_tensor *t = sn_in(s, f, 1);
    float *a = sn_piece_ptr(f, k->a), *b = sn_piece_ptr(f, k->b);
    const float factor = widen_a(s, f, a);
    const sn_byte_zeros zero = zeros_in(s, f, q->b_zero);
    sn_bytes_scaled(t->dtype, b, t->data, k->b_count, k->plan.d.n, &zero,
                    sn_converted_in(s, f, q->b_scale, f32, k->b_scale),
                    sn_tensor_count(sn_in(s, f, q->b_scale)), factor);
    sn_gemm_run(&k->plan, a, b, sn_converted_in(s, f, q->bias, f32, k->c), NULL,
                sn_converted_out(s, f, 0, f32, k->y), sn_piece_ptr(f, k->core), f->pool);
    sn_converted_done(s, f, 0, f32, k->y);
    return SONDE_OK;
}

#define QMM(symbol, NAME, MIN_IN, MAX_IN, PREPARE, TYPES)                                          \
    const sn_op symbol[] = {{.name = NAME,                                                         \
                             .domain = SN_MS_DOMAIN,                                               \
                             .since = 1,                                                           \
                             .min_in = MIN_IN,                                                     \
                             .max_in = MAX_IN,                                                     \
                             .min_out = 1,                                                         \
                             .max_out = 1,                                                         \
                             .params_size = sizeof(qmm_params),                                    \
                             .prepare = PREPARE,                                                   \
                             .infer = infer_qmm,                                                   \
                             .bind = bind_qmm,                                                     \
                             .run = run_qmm,                                                       \
                             .types = TYPES},                                                      \
                            {.name = NULL}};
QMM(sn_op_ms_dynamic_quantize_matmul, "DynamicQuantizeMatMul", 3, 5, prepare_dynamic, "f32")
QMM(sn_op_ms_matmul_integer_to_float, "MatMulIntegerToFloat", 4, 7, prepare_to_float, "u8 i8")
