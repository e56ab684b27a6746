/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of any number of strided operands: y[o] = sum over s of the product of all
 * x[k][o, s]. Output axes are the outer loops, summed axes the inner ones. f32, f64, i32 and i64
 * have loops of their own; other numbers go one by one through double. Floats are summed in double,
 * integers wrap. */
#ifndef SN_COMPUTE_EINSUM_H
#define SN_COMPUTE_EINSUM_H

#include "base/pool.h"

enum { SN_EINSUM_OPERANDS = 16, SN_EINSUM_RANK = 16, SN_EINSUM_SUMS = 68 };

typedef struct sn_einsum {
    uint32_t n; /* operands, at least 1 */
    sonde_dtype dtype;
    int out_rank, sum_rank;
    int64_t out_dims[SN_EINSUM_RANK], sum_dims[SN_EINSUM_SUMS];
    int64_t out_count, sum_count; /* products of the dims; a sum of nothing is 0 */
    /* Of every operand along output axes and summed axes, in elements. */
    ptrdiff_t out_strides[SN_EINSUM_OPERANDS][SN_EINSUM_RANK];
    ptrdiff_t sum_strides[SN_EINSUM_OPERANDS][SN_EINSUM_SUMS];
} sn_einsum;

/* y is dense and overlaps no operand; x: one pointer per operand. */
void sn_einsum_run(const sn_einsum *e, void *y, const void *const *x, sn_pool *pool);

#endif
