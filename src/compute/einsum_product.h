/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum (einsum.h) of two operands of f32 as a batched matrix product, in f32 or by tiles of bf16,
 * to which both are rounded; sums are f32. Operands that do not lie as the product wants them are
 * copied, and so is a result that does not lie as y does. */
#ifndef SN_COMPUTE_EINSUM_PRODUCT_H
#define SN_COMPUTE_EINSUM_PRODUCT_H

#include "compute/copy.h"
#include "compute/einsum.h"
#include "compute/gemm.h"

typedef struct sn_einsum_product {
    sn_gemm_plan gemm;
    /* Of the left side, the right side and the result. */
    bool copied[3];
    sn_copy copy[3];
    sn_piece room[3];
    sn_piece core;
    sn_workspace workspace;
} sn_einsum_product;

/* Is it such a product, and large enough to be computed as one? */
bool sn_einsum_product_take(const sn_einsum *e);
/* For one that is. in_bf16: by tiles, where that pays. */
sonde_status sn_einsum_product_plan(sn_einsum_product *p, const sn_einsum *e, bool in_bf16,
                                    uint32_t cpu_flags, size_t l2_bytes, int threads,
                                    sonde_error *err);
void sn_einsum_product_run(const sn_einsum_product *p, float *y, const float *a, const float *b,
                           void *workspace, sn_pool *pool);

#endif
