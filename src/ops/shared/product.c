/* SPDX-License-Identifier: Apache-2.0 */
/* What a matrix product of these shapes is to the driver, and the format it wants its weights in.
 */
#include "ops/shared/product.h"

#include <string.h>

#include "compute/packs.h"
#include "ops/shared/converted.h"
#include "ops/shared/sparse_weights.h"

int sn_product_matrix(const sn_type *t, bool left, sn_dim out[SN_MAX_RANK])
{
    if (t->rank == 1) {
        out[left ? 0 : 1] = 1;
        out[left ? 1 : 0] = t->dims[0];
        return 2;
    }
    memcpy(out, t->dims, sizeof(sn_dim) * (size_t)t->rank);
    return t->rank;
}

sonde_status sn_product_infer(sn_infer *c, bool trans_a, bool trans_b, sn_dim out[SN_MAX_RANK],
                              int *rank)
{
    const sn_type *a = &c->in[SN_PRODUCT_A]->type, *b = &c->in[SN_PRODUCT_B]->type;
    sn_dim da[SN_MAX_RANK], db[SN_MAX_RANK];
    const int ra = sn_product_matrix(a, true, da), rb = sn_product_matrix(b, false, db);
    const sn_dim ka = da[trans_a ? ra - 2 : ra - 1], kb = db[trans_b ? rb - 1 : rb - 2];
    if (sn_dim_known(ka) && sn_dim_known(kb) && ka != kb)
        return sn_infer_fail(c, "inner dims differ: %lld and %lld", (long long)ka, (long long)kb);
    const sn_type batch_a = {.rank = ra - 2, .dims = da}, batch_b = {.rank = rb - 2, .dims = db};
    SN_TRY(sn_infer_broadcast(c, &batch_a, &batch_b, out, rank));
    if (a->rank > 1)
        out[(*rank)++] = da[trans_a ? ra - 1 : ra - 2];
    if (b->rank > 1)
        out[(*rank)++] = db[trans_b ? rb - 2 : rb - 1];
    return SONDE_OK;
}

sonde_status sn_product_check_addend(sn_infer *c, const sn_dim *out, int rank)
{
    const sn_type *t = &c->in[SN_PRODUCT_C]->type;
    if (t->rank > rank)
        return sn_infer_fail(c, "the addend has rank %d, the product %d", (int)t->rank, rank);
    for (int i = 0; i < t->rank; i++) {
        const sn_dim have = t->dims[i], want = out[rank - t->rank + i];
        if (have != 1 && sn_dim_known(have) && sn_dim_known(want) && have != want)
            return sn_infer_fail(c, "the addend has %lld in dim %d, expected 1 or %lld",
                                 (long long)have, i, (long long)want);
    }
    return SONDE_OK;
}

static int64_t dim_from_end(const int64_t *dims, int rank,
                            int i) /* batch dim i counted from the end */
{
    const int at = rank - 3 - i;
    return at >= 0 ? dims[at] : 1;
}

bool sn_product_shape(sn_gemm_desc *d, const int64_t *a, int a_rank, const int64_t *b, int b_rank)
{
    d->m = d->trans_a ? a[a_rank - 1] : a[a_rank - 2];
    d->k = d->trans_a ? a[a_rank - 2] : a[a_rank - 1];
    d->n = d->trans_b ? b[b_rank - 2] : b[b_rank - 1];
    d->b_count = 1;
    for (int i = 0; i < b_rank - 2; i++)
        d->b_count *= b[i];
    d->batch_rank = (a_rank > b_rank ? a_rank : b_rank) - 2;
    if (d->batch_rank > SN_GEMM_MAX_BATCH_RANK)
        return false;
    if (d->b_count == 1 && !d->trans_a) { /* one B for all: the batch is more rows */
        for (int i = 0; i < a_rank - 2; i++)
            d->m *= a[i];
        d->batch_rank = 0;
        return true;
    }
    int64_t a_step = 1, b_step = 1;
    for (int i = 0; i < d->batch_rank; i++) {
        const int64_t da = dim_from_end(a, a_rank, i), db = dim_from_end(b, b_rank, i);
        const int at = d->batch_rank - 1 - i;
        if (da != db && da != 1 && db != 1)
            return false;
        d->batch[at] = da == 1 ? db : da;
        d->a_batch[at] = da == 1 ? 0 : a_step;
        d->b_batch[at] = db == 1 ? 0 : b_step;
        a_step *= da;
        b_step *= db;
    }
    return true;
}

bool sn_product_addend(sn_gemm_desc *d, const sn_type *c)
{
    d->has_c = true;
    d->c_m = d->c_n = 0;
    const int64_t last = c->rank > 0 ? c->dims[c->rank - 1] : 1;
    int64_t rows = 1;
    for (int i = 0; i < c->rank - 1; i++)
        rows *= c->dims[i];
    if ((last != 1 && last != d->n) || (rows != 1 && rows != d->m) || d->batch_rank > 0)
        return false;
    d->c_n = last == 1 ? 0 : 1;
    d->c_m = rows == 1 ? 0 : last;
    if (d->n == 1 && last == 1)
        d->c_n = 1; /* one column: the same element either way, but a plain row for the kernel */
    return true;
}

unsigned sn_product_pack_id(const sn_pack_request *r, uint32_t i)
{
    const sn_fact *a = r->in[0];
    const sn_type *w = &r->in[i]->type;
    const int last = a ? a->type.rank - 1 : 0;
    if (w->rank >= 2 && sn_pack_may_halve(r, i) &&
        sn_gemm_halves_pay(sn_pack_known_rows(r, 0, last, 0), w->dims[w->rank - 1],
                           w->dims[w->rank - 2]))
        return sn_gemm_tiles_pack_id(SONDE_DTYPE_F32, r->cpu_flags);
    if (sn_pack_by_tiles(r, i, sn_pack_rows(r, 0, last)))
        return sn_gemm_tiles_pack_id(sn_pack_dtype(r, i), r->cpu_flags);
    return sn_gemm_pack_id(sn_pack_dtype(r, i), r->cpu_flags);
}

sonde_status sn_product_pack(sn_pack_request *r, bool trans_b)
{
    const sn_fact *b = r->n_in > SN_PRODUCT_B ? r->in[SN_PRODUCT_B] : NULL;
    if (!b || !b->data || b->type.rank < 2)
        return SONDE_OK;
    if (sn_weights_pack_sparse(r, SN_PRODUCT_B, trans_b))
        return SONDE_OK;
    r->pack[SN_PRODUCT_B] = (uint8_t)sn_product_pack_id(r, SN_PRODUCT_B);
    r->pack_arg[SN_PRODUCT_B] = trans_b;
    return SONDE_OK;
}
