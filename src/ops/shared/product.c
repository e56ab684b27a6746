/* SPDX-License-Identifier: Apache-2.0 */
/* What a matrix product of these shapes is to the driver, and the format it wants its weights in.
 */
#include "ops/shared/product.h"

#include "compute/packs.h"

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

sonde_status sn_product_pack(sn_pack_request *r, bool trans_b)
{
    const sn_fact *b = r->n_in > SN_PRODUCT_B ? r->in[SN_PRODUCT_B] : NULL;
    if (!b || !b->data || b->type.dtype != SONDE_DTYPE_F32 || b->type.rank < 2)
        return SONDE_OK;
    r->pack[SN_PRODUCT_B] = (uint8_t)sn_gemm_pack_id(SONDE_DTYPE_F32, r->cpu_flags);
    r->pack_arg[SN_PRODUCT_B] = trans_b;
    return SONDE_OK;
}
