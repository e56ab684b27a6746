/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul with numpy's rules (vectors become matrices, batch dims broadcast), and sonde.FusedGemm: a
 * Gemm or MatMul with an addend C (one row, one column, one number, or the product's shape), a
 * residual Z and an activation. Z mostly has the product's shape, which shows only when it is
 * bound; it may also broadcast with it. With A of rank above 2 FusedGemm is a MatMul: transA is
 * then not possible, and C has one element per column or the product's shape. */
#include <string.h>

#include "ops/shared/activation.h"
#include "ops/shared/product.h"

typedef struct matmul_params {
    float alpha, beta;
    int64_t trans_a, trans_b;
    sn_act act;
} matmul_params;

static sonde_status prepare(sn_prep *p)
{
    matmul_params *m = p->params;
    m->alpha = m->beta = 1.0f;
    return SONDE_OK;
}

static sonde_status prepare_fused(sn_prep *p)
{
    matmul_params *m = p->params;
    SN_TRY(sn_prep_float(p, "alpha", 1.0f, &m->alpha));
    SN_TRY(sn_prep_float(p, "beta", 1.0f, &m->beta));
    SN_TRY(sn_prep_int(p, "transA", 0, &m->trans_a));
    SN_TRY(sn_prep_int(p, "transB", 0, &m->trans_b));
    return sn_prep_act(p, "activation", "activation_params", &m->act);
}

static sonde_status infer(sn_infer *c)
{
    const matmul_params *p = c->params;
    if (!sn_infer_has(c, SN_PRODUCT_A) || !sn_infer_has(c, SN_PRODUCT_B))
        return sn_infer_fail(c, "two matrices are required");
    const sn_type *a = &c->in[SN_PRODUCT_A]->type, *b = &c->in[SN_PRODUCT_B]->type;
    const sn_dtype dtype = a->dtype ? a->dtype : b->dtype;
    if (a->dtype && b->dtype && !sn_weights_fit(c->node, b->dtype, a->dtype))
        return sn_infer_fail(c, "the inputs are %s and %s", sn_dtype_name(a->dtype),
                             sn_dtype_name(b->dtype));
    if (a->rank == 0 || b->rank == 0)
        return sn_infer_fail(c, "a scalar cannot be multiplied as a matrix");
    if (a->rank < 0 || b->rank < 0)
        return sn_infer_tensor(c, 0, dtype, NULL, -1);
    if (p->trans_a && a->rank != 2)
        return sn_infer_fail(c, "transA needs a matrix");
    sn_dim out[SN_MAX_RANK];
    int rank;
    SN_TRY(sn_product_infer(c, p->trans_a != 0, p->trans_b != 0, out, &rank));
    if (sn_infer_has(c, SN_PRODUCT_C))
        SN_TRY(sn_product_check_addend(c, out, rank));
    if (sn_infer_has(c, SN_PRODUCT_Z)) {
        const sn_type product = {.kind = SN_KIND_TENSOR, .rank = rank, .dims = out};
        sn_dim sum[SN_MAX_RANK];
        SN_TRY(sn_infer_broadcast(c, &product, &c->in[SN_PRODUCT_Z]->type, sum, &rank));
        return sn_infer_tensor(c, 0, dtype, sum, rank);
    }
    return sn_infer_tensor(c, 0, dtype, out, rank);
}

static sonde_status pack(sn_pack_request *r)
{
    return sn_product_pack(r, ((const matmul_params *)r->params)->trans_b != 0);
}

/* Z or the product broadcasts to the output. */
static bool spreads(const sn_bind *b, const sn_dim *product, int rank)
{
    const sn_type *y = &b->out[0].type;
    if (b->n_in <= SN_PRODUCT_Z || !b->in[SN_PRODUCT_Z])
        return false;
    return y->rank != rank || memcmp(y->dims, product, sizeof *product * (size_t)rank) != 0 ||
           !sn_type_same_shape(y, &b->in[SN_PRODUCT_Z]->type);
}

/* Dims of the matrix product alone. */
static int product_dims(const sn_gemm_desc *d, const sn_type *a, const sn_type *b, const sn_dim *da,
                        int ra, const sn_dim *db, int rb, sn_dim *out)
{
    int rank = ra > rb ? ra : rb, n = rank - 2;
    for (int i = 0; i < n; i++) {
        const int ia = i - (rank - ra), ib = i - (rank - rb);
        const sn_dim x = ia >= 0 ? da[ia] : 1, y = ib >= 0 ? db[ib] : 1;
        out[i] = x == 1 ? y : x;
    }
    if (a->rank > 1)
        out[n++] = da[d->trans_a ? ra - 1 : ra - 2];
    if (b->rank > 1)
        out[n++] = db[d->trans_b ? rb - 2 : rb - 1];
    return n;
}

static sonde_status bind(sn_bind *b)
{
    const matmul_params *p = b->params;
    const sn_type *ta = &b->in[SN_PRODUCT_A]->type, *tb = &b->in[SN_PRODUCT_B]->type;
    sn_dim da[SN_MAX_RANK], db[SN_MAX_RANK];
    const int ra = sn_product_matrix(ta, true, da);
    const int rb = sn_product_matrix(tb, false, db);
    sn_gemm_desc d = {.alpha = p->alpha,
                      .beta = p->beta,
                      .trans_a = p->trans_a != 0,
                      .trans_b = p->trans_b != 0,
                      .act = p->act};
    if (!sn_product_shape(&d, da, ra, db, rb))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the shapes do not match");
    if (b->n_in > SN_PRODUCT_C && b->in[SN_PRODUCT_C] &&
        !sn_product_addend(&d, &b->in[SN_PRODUCT_C]->type))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "this broadcast of the addend is not fused");
    sn_dim product[SN_MAX_RANK];
    const int rank = product_dims(&d, ta, tb, da, ra, db, rb, product);
    if (spreads(b, product, rank))
        return sn_product_bind_spread(b, &d, product, rank);
    return sn_product_bind(b, &d);
}

#define MATMUL(from, to)                                                                           \
    {                                                                                              \
        .name = "MatMul", .domain = "", .since = from, .until = to, .min_in = 2, .max_in = 2,      \
        .min_out = 1, .max_out = 1, .params_size = sizeof(matmul_params), .prepare = prepare,      \
        .infer = infer, .pack = pack, .bind = bind, .run = sn_product_run, .half = SN_HALF_IN_F32, \
        .narrow_in = 1 << SN_PRODUCT_B, .types = "f32 f64 f16 bf16 i32 i64 u32 u64"                \
    }

const sn_op sn_op_matmul[] = {MATMUL(1, 8), MATMUL(9, 12), MATMUL(13, 0), {.name = NULL}};

const sn_op sn_op_fused_gemm[] = {{.name = "FusedGemm",
                                   .domain = "sonde",
                                   .since = 1,
                                   .min_in = 2,
                                   .max_in = 4,
                                   .min_out = 1,
                                   .max_out = 1,
                                   .params_size = sizeof(matmul_params),
                                   .prepare = prepare_fused,
                                   .infer = infer,
                                   .pack = pack,
                                   .bind = bind,
                                   .run = sn_product_run,
                                   .half = SN_HALF_IN_F32,
                                   .narrow_in = 1 << SN_PRODUCT_B,
                                   .types = "f32 f64 f16 bf16 i32 i64 u32 u64"},
                                  {.name = NULL}};
