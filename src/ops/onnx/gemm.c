/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm: Y = alpha * A' · B' + beta * C with C broadcast to [M, N]. */
#include "ops/shared/product.h"

typedef struct gemm_params {
    float alpha, beta;
    int64_t trans_a, trans_b;
} gemm_params;

static sonde_status prepare(sn_prep *p)
{
    gemm_params *g = p->params;
    SN_TRY(sn_prep_float(p, "alpha", 1.0f, &g->alpha));
    SN_TRY(sn_prep_float(p, "beta", 1.0f, &g->beta));
    SN_TRY(sn_prep_int(p, "transA", 0, &g->trans_a));
    return sn_prep_int(p, "transB", 0, &g->trans_b);
}

static sonde_status infer(sn_infer *c)
{
    const gemm_params *g = c->params;
    if (!sn_infer_has(c, SN_PRODUCT_A) || !sn_infer_has(c, SN_PRODUCT_B))
        return sn_infer_fail(c, "two matrices are required");
    const sn_type *a = &c->in[SN_PRODUCT_A]->type, *b = &c->in[SN_PRODUCT_B]->type;
    if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
        return sn_infer_fail(c, "the inputs must be matrices, they have ranks %d and %d",
                             (int)a->rank, (int)b->rank);
    if (a->dtype && b->dtype && !sn_weights_fit(c->node, b->dtype, a->dtype))
        return sn_infer_fail(c, "the inputs are %s and %s", sn_dtype_name(a->dtype),
                             sn_dtype_name(b->dtype));
    sn_dim out[2] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN}, k = SN_DIM_UNKNOWN;
    if (a->rank == 2) {
        out[0] = a->dims[g->trans_a ? 1 : 0];
        k = a->dims[g->trans_a ? 0 : 1];
    }
    if (b->rank == 2) {
        const sn_dim kb = b->dims[g->trans_b ? 1 : 0];
        out[1] = b->dims[g->trans_b ? 0 : 1];
        if (sn_dim_known(k) && sn_dim_known(kb) && k != kb)
            return sn_infer_fail(c, "inner dims differ: %lld and %lld", (long long)k,
                                 (long long)kb);
    }
    if (sn_infer_has(c, SN_PRODUCT_C))
        SN_TRY(sn_product_check_addend(c, out, 2));
    return sn_infer_tensor(c, 0, a->dtype ? a->dtype : b->dtype, out, 2);
}

static sonde_status pack(sn_pack_request *r)
{
    return sn_product_pack(r, ((const gemm_params *)r->params)->trans_b != 0);
}

static sonde_status bind(sn_bind *b)
{
    const gemm_params *g = b->params;
    const sn_type *ta = &b->in[SN_PRODUCT_A]->type, *tb = &b->in[SN_PRODUCT_B]->type;
    sn_gemm_desc d = {
        .alpha = g->alpha, .beta = g->beta, .trans_a = g->trans_a != 0, .trans_b = g->trans_b != 0};
    if (!sn_product_shape(&d, ta->dims, 2, tb->dims, 2) ||
        (b->n_in > SN_PRODUCT_C && b->in[SN_PRODUCT_C] &&
         !sn_product_addend(&d, &b->in[SN_PRODUCT_C]->type)))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the shapes do not match");
    return sn_product_bind(b, &d);
}

#define GEMM(from, to, least)                                                                      \
    {                                                                                              \
        .name = "Gemm", .domain = "", .since = from, .until = to, .min_in = least, .max_in = 3,    \
        .min_out = 1, .max_out = 1, .params_size = sizeof(gemm_params), .prepare = prepare,        \
        .infer = infer, .pack = pack, .bind = bind, .run = sn_product_run, .half = SN_HALF_IN_F32, \
        .narrow_in = 1 << SN_PRODUCT_B, .types = "f32 f64 f16 bf16 i32 i64 u32 u64"                \
    }

const sn_op sn_op_gemm[] = {
    GEMM(7, 8, 3), GEMM(9, 10, 3), GEMM(11, 12, 2), GEMM(13, 0, 2), {.name = NULL}};
