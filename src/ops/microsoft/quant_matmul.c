/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeMatMul and MatMulIntegerToFloat of com.microsoft. Bytes become f32 integers minus
 * their zero point, B is scaled column by column, and one f32 product does the rest: sums beyond
 * 2^24 round as the f32 result would anyway. */
#include <string.h>

#include "compute/byte_steps.h"
#include "compute/bytes.h"
#include "ops/shared/as_f32.h"
#include "ops/shared/converted.h"
#include "ops/shared/half_workspace.h"
#include "ops/shared/product.h"

typedef struct qmm_params {
    bool dynamic;
    uint32_t a_scale, b_scale, a_zero, b_zero, bias; /* input numbers */
} qmm_params;

typedef struct qmm_bound {
    sn_gemm_plan plan;
    int64_t a_count, b_count;
    size_t a, b, c, y, core;
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
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the shapes do not fit");
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
    sn_room ws = {0};
    int64_t count = 0;
    k->a = sn_room_take(&ws, k->a_count, sizeof(float));
    k->b = sn_room_take(&ws, k->b_count, sizeof(float));
    if (sn_is_half(out) && sn_type_count(&b->out[0].type, &count)) {
        k->c = sn_room_take(&ws, d.n, sizeof(float));
        k->y = sn_room_take(&ws, count, sizeof(float));
    }
    k->core = sn_room_take(&ws, (int64_t)k->plan.pack_bytes, 1);
    b->bound = k;
    b->kernel = k->plan.name;
    b->flops = k->plan.flops;
    return sn_room_done(b, &ws);
}

static float scale_at(const sn_tensor *t, int64_t i)
{
    float v;
    sn_load_f32(0, t->dtype, &v, (const uint8_t *)t->data + (size_t)i * sn_dtype_bytes(t->dtype),
                1);
    return v;
}

static void scale_b(const sn_step *s, const sn_frame *f, float factor, float *dst)
{
    const qmm_params *q = s->params;
    const qmm_bound *k = s->bound;
    const sn_tensor *b = sn_in(s, f, 1), *scale = sn_in(s, f, q->b_scale);
    const sn_tensor *zero = sn_has(s, q->b_zero) ? sn_in(s, f, q->b_zero) : NULL;
    const int64_t n = k->plan.d.n;
    const bool many_scales = sn_tensor_count(scale) > 1;
    const bool many_zeros = zero && sn_tensor_count(zero) > 1;
    for (int64_t i = 0; i < k->b_count; i++) {
        const int32_t z = zero ? sn_byte_at(zero->dtype, zero->data, many_zeros ? i % n : 0) : 0;
        dst[i] = (float)(sn_byte_at(b->dtype, b->data, i) - z) *
                 (factor * scale_at(scale, many_scales ? i % n : 0));
    }
}

static sonde_status run_qmm(const sn_step *s, sn_frame *f)
{
    const qmm_params *q = s->params;
    const qmm_bound *k = s->bound;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_tensor *y = sn_out(s, f, 0);
    float *a = (float *)(void *)(f->workspace + k->a), *b = (float *)(void *)(f->workspace + k->b);
    float factor;
    if (q->dynamic) {
        factor = sn_byte_steps(x->data, a, k->a_count);
    } else {
        const sn_tensor *zero = sn_has(s, q->a_zero) ? sn_in(s, f, q->a_zero) : NULL;
        factor = scale_at(sn_in(s, f, q->a_scale), 0);
        sn_bytes_to_f32(f->ctx->cpu.flags, x->dtype, a, x->data, k->a_count,
                        zero ? sn_byte_at(zero->dtype, zero->data, 0) : 0);
    }
    scale_b(s, f, factor, b);
    const float *c = sn_has(s, q->bias) ? sn_via_in(f, sn_in(s, f, q->bias), k->c) : NULL;
    sn_gemm_run(&k->plan, a, b, c, NULL, sn_via_out(f, y, k->y), f->workspace + k->core, f->pool);
    sn_via_done(f, y, k->y);
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
