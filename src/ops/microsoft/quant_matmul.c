/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeMatMul and MatMulIntegerToFloat of com.microsoft: products of bytes (compute/q8.h)
 * whose exact sums are scaled to f32. The former makes bytes of A first. */
#include "compute/cast.h"
#include "compute/q8.h"
#include "ops/shared/converted.h"
#include "ops/shared/product.h"
#include "ops/shared/sparse_weights.h"
#include "ops/shared/zero_points.h"

typedef struct qmm_params {
    bool dynamic;
    int64_t wraps; /* it was a MatMulInteger, whose sums are modulo 2^32 */
    uint32_t a_scale, b_scale, a_zero, b_zero, bias; /* input numbers */
} qmm_params;

typedef struct qmm_bound {
    sn_q8_plan plan;
    int64_t a_count;
    sn_piece a, core;                /* a: bytes of a dynamic A */
    sn_piece a_scale, b_scale, c, y; /* in f32 */
} qmm_bound;

static sonde_status prepare_dynamic(sn_prep *p)
{
    qmm_params *q = p->params;
    *q = (qmm_params){true, 0, UINT32_MAX, 2, UINT32_MAX, 3, 4};
    return SONDE_OK;
}

static sonde_status prepare_to_float(sn_prep *p)
{
    qmm_params *q = p->params;
    *q = (qmm_params){false, 0, 2, 3, 4, 5, 6};
    return sn_prep_int(p, "wraps", 0, &q->wraps);
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

/* Input i, when there, has one element or one per column. */
static sonde_status check_params(sn_bind *b, uint32_t i, sn_dtype t, int64_t n)
{
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    if (b->in[i]->type.dtype != t || !sn_is_per_column(&b->in[i]->type, n))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "input %u must be one number of type %s, or one per column", i,
                            sn_dtype_onnx_name(t));
    return SONDE_OK;
}

static sonde_status pack_qmm(sn_pack_request *q)
{
    if (sn_is_byte(q->in[1]->type.dtype) &&
        !sn_weights_pack_sparse_bytes(q, 1, SN_SPARSE_PLAIN, sn_weights_rows(q->in[0])))
        q->pack[1] = (uint8_t)sn_q8_gemm_pack_id(q->in[1]->type.dtype, q->cpu_flags);
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
        !sn_type_count(ta, &k->a_count))
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
    }
    sn_q8_desc product = sn_q8_product(&d);
    product.x_type = q->dynamic ? SONDE_DTYPE_U8 : ta->dtype;
    product.w_type = tb->dtype;
    product.y_type = SONDE_DTYPE_F32;
    product.wraps = q->wraps != 0;
    sn_weights_describe(b->in[1], &product);
    SN_TRY(sn_q8_plan_make(&k->plan, &product, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads,
                           b->err));
    if (q->dynamic)
        k->a = sn_carve(&b->workspace, k->a_count, 1);
    else
        k->a_scale = sn_converted_carve(&b->workspace, b->in[q->a_scale], SONDE_DTYPE_F32);
    k->b_scale = sn_converted_carve(&b->workspace, b->in[q->b_scale], SONDE_DTYPE_F32);
    if (q->bias < b->n_in)
        k->c = sn_converted_carve(&b->workspace, b->in[q->bias], SONDE_DTYPE_F32);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    b->bound = k;
    b->kernel = k->plan.name;
    b->flops = k->plan.flops;
    b->arithmetic = k->plan.arithmetic;
    return SONDE_OK;
}

static sonde_status run_qmm(const sn_step *s, sn_frame *f)
{
    const qmm_params *q = s->params;
    const qmm_bound *k = s->bound;
    const sn_dtype f32 = SONDE_DTYPE_F32;
    const sn_tensor *x = sn_in(s, f, 0);
    float scale;
    uint8_t zero;
    sn_q8_args a = {.x = x->data,
                    .w = sn_in(s, f, 1)->data,
                    .y = sn_converted_out(s, f, 0, f32, k->y),
                    .w_zero = sn_zeros_in(s, f, q->b_zero),
                    .addend = sn_converted_in(s, f, q->bias, f32, k->c),
                    .x_scale = &scale,
                    .x_scales = 1,
                    .w_scale = sn_converted_in(s, f, q->b_scale, f32, k->b_scale),
                    .w_scales = sn_tensor_count(sn_in(s, f, q->b_scale)),
                    .workspace = sn_piece_ptr(f, k->core),
                    .cancel = f->cancel};
    if (q->dynamic) {
        uint8_t *bytes = sn_piece_ptr(f, k->a);
        sn_quantize_dynamic_run(f->ctx->cpu.flags, bytes, x->data, (size_t)k->a_count, &scale,
                                &zero, f->pool);
        a.x = bytes;
        a.x_zero = (sn_byte_zeros){SONDE_DTYPE_U8, &zero, 1};
    } else {
        scale = *(const float *)sn_converted_in(s, f, q->a_scale, f32, k->a_scale);
        a.x_zero = sn_zeros_in(s, f, q->a_zero);
    }
    if (!sn_q8_run(&k->plan, &a, f->pool))
        return sn_fail_cancelled(f);
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
                             .pack = pack_qmm,                                                     \
                             .bind = bind_qmm,                                                     \
                             .run = run_qmm,                                                       \
                             .flags = SN_OP_TILES,                                                 \
                             .types = TYPES},                                                      \
                            {.name = NULL}};
QMM(sn_op_ms_dynamic_quantize_matmul, "DynamicQuantizeMatMul", 3, 5, prepare_dynamic, "f32")
QMM(sn_op_ms_matmul_integer_to_float, "MatMulIntegerToFloat", 4, 7, prepare_to_float, "u8 i8")
