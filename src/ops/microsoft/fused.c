/* SPDX-License-Identifier: Apache-2.0 */
/* FusedMatMul and FusedGemm of com.microsoft: matrix products with transposes and a factor, and
 * with an activation behind them.
 *
 * transBatchA says that A of rank 3 or more lies as [m, batch …, k], and with transA as
 * [k, batch …, m]: its first dim stands where the last but one does otherwise. */
#include <string.h>

#include "ops/shared/product.h"

typedef struct fused_params {
    float alpha, beta;
    int64_t trans_a, trans_b;
    bool batches_inside[2]; /* of A and B: transBatch */
    bool gemm;
    sn_act act;
} fused_params;

static sonde_status prepare_matmul(sn_prep *p)
{
    fused_params *m = p->params;
    int64_t batch_a, batch_b;
    m->beta = 1.0f;
    SN_TRY(sn_prep_float(p, "alpha", 1.0f, &m->alpha));
    SN_TRY(sn_prep_int(p, "transA", 0, &m->trans_a));
    SN_TRY(sn_prep_int(p, "transB", 0, &m->trans_b));
    SN_TRY(sn_prep_int(p, "transBatchA", 0, &batch_a));
    SN_TRY(sn_prep_int(p, "transBatchB", 0, &batch_b));
    m->batches_inside[0] = batch_a != 0;
    m->batches_inside[1] = batch_b != 0;
    return SONDE_OK;
}

static sonde_status prepare_gemm(sn_prep *p)
{
    fused_params *m = p->params;
    const char *name;
    const bool given = sn_node_attr(p->node, "activation_alpha") != NULL;
    float params[2];
    SN_TRY(sn_prep_float(p, "alpha", 1.0f, &m->alpha));
    SN_TRY(sn_prep_float(p, "beta", 1.0f, &m->beta));
    SN_TRY(sn_prep_int(p, "transA", 0, &m->trans_a));
    SN_TRY(sn_prep_int(p, "transB", 0, &m->trans_b));
    SN_TRY(sn_prep_string(p, "activation", "", &name));
    SN_TRY(sn_prep_float(p, "activation_alpha", 0.0f, &params[0]));
    SN_TRY(sn_prep_float(p, "activation_beta", 0.0f, &params[1]));
    if (!sn_act_parse(name, params, given ? 2 : 0, &m->act))
        return sn_prep_fail(p, "unknown activation '%s'", name);
    m->gemm = true;
    return SONDE_OK;
}

/* The fact of input i with its batch dims in front; `dims` holds those of the result. */
static void batches_first(const fused_params *p, uint32_t i, sn_fact *f, sn_dim dims[SN_MAX_RANK])
{
    const int rank = f->type.rank;
    if (!p->batches_inside[i] || rank < 3)
        return;
    memcpy(dims, f->type.dims + 1, sizeof *dims * (size_t)(rank - 2));
    dims[rank - 2] = f->type.dims[0];
    dims[rank - 1] = f->type.dims[rank - 1];
    f->type.dims = dims;
}

static sonde_status infer_fused(sn_infer *c)
{
    const fused_params *p = c->params;
    const sn_type *a = &c->in[0]->type, *b = &c->in[1]->type;
    for (uint32_t i = 1; i < c->n_in; i++)
        if (c->in[i] && a->dtype && c->in[i]->type.dtype && a->dtype != c->in[i]->type.dtype)
            return sn_infer_fail(c, "the inputs are %s and %s", sn_dtype_name(a->dtype),
                                 sn_dtype_name(c->in[i]->type.dtype));
    if (a->rank < 0 || b->rank < 0)
        return sn_infer_tensor(c, 0, a->dtype, NULL, -1);
    if (a->rank == 0 || b->rank == 0 || (p->gemm && (a->rank != 2 || b->rank != 2)))
        return sn_infer_fail(c, "ranks %d and %d cannot be multiplied", a->rank, b->rank);
    sn_dim out[SN_MAX_RANK], dims[2][SN_MAX_RANK];
    int rank;
    sn_fact turned[2] = {*c->in[0], *c->in[1]};
    for (uint32_t i = 0; i < 2; i++)
        batches_first(p, i, &turned[i], dims[i]);
    const sn_fact *const in[2] = {&turned[0], &turned[1]};
    sn_infer product = *c;
    product.in = in;
    product.n_in = 2;
    /* Transposing a vector means nothing. */
    SN_TRY(sn_product_infer(&product, p->trans_a && a->rank > 1, p->trans_b && b->rank > 1, out,
                            &rank));
    return sn_infer_tensor(c, 0, a->dtype, out, rank);
}

static sonde_status pack_fused(sn_pack_request *r)
{
    const fused_params *p = r->params;
    if (p->batches_inside[1] && r->in[1] && r->in[1]->type.rank > 2)
        return SONDE_OK; /* turned first */
    return sn_product_pack(r, p->trans_b != 0);
}

static sonde_status bind_fused(sn_bind *b)
{
    const fused_params *p = b->params;
    sn_fact turned[2] = {*b->in[0], *b->in[1]};
    sn_dim da[SN_MAX_RANK], db[SN_MAX_RANK], dims[2][SN_MAX_RANK];
    for (uint32_t i = 0; i < 2; i++)
        batches_first(p, i, &turned[i], dims[i]);
    const sn_type *a = &turned[0].type, *t = &turned[1].type;
    const int ra = sn_product_matrix(a, true, da), rb = sn_product_matrix(t, false, db);
    sn_gemm_desc d = {.alpha = p->alpha,
                      .beta = p->beta,
                      .trans_a = p->trans_a && a->rank > 1,
                      .trans_b = p->trans_b && t->rank > 1,
                      .act = p->act};
    if (!sn_product_shape(&d, da, ra, db, rb))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the shapes do not match");
    if (b->n_in > 2 && b->in[2] && !sn_product_addend(&d, &b->in[2]->type))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the addend does not broadcast to the result");
    SN_TRY(sn_product_bind(b, &d));
    return sn_product_turn(b, p->batches_inside);
}

#define FUSED(symbol, NAME, MAX_IN, PREPARE)                                                       \
    const sn_op symbol[] = {{.name = NAME,                                                         \
                             .domain = SN_MS_DOMAIN,                                               \
                             .since = 1,                                                           \
                             .min_in = 2,                                                          \
                             .max_in = MAX_IN,                                                     \
                             .min_out = 1,                                                         \
                             .max_out = 1,                                                         \
                             .params_size = sizeof(fused_params),                                  \
                             .prepare = PREPARE,                                                   \
                             .infer = infer_fused,                                                 \
                             .pack = pack_fused,                                                   \
                             .bind = bind_fused,                                                   \
                             .run = sn_product_run,                                                \
                             .types = "f32 f64 f16 bf16"},                                         \
                            {.name = NULL}};
FUSED(sn_op_ms_fused_matmul, "FusedMatMul", 2, prepare_matmul)
FUSED(sn_op_ms_fused_gemm, "FusedGemm", 3, prepare_gemm)
