/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum (einsum.h) of two operands of f32 as a batched matrix product in bf16 by tiles: both are
 * rounded, sums are f32. Operands that do not lie as the product wants them are copied, and so is a
 * result that does not lie as y does. */
#ifndef SN_COMPUTE_EINSUM_TILES_H
#define SN_COMPUTE_EINSUM_TILES_H

#include "compute/copy.h"
#include "compute/einsum.h"
#include "compute/gemm.h"

typedef struct sn_einsum_tiles {
    sn_gemm_plan gemm;
    /* Of the left side, the right side and the result. */
    bool copied[3];
    sn_copy copy[3];
    sn_piece room[3];
    sn_piece core;
    sn_workspace workspace;
} sn_einsum_tiles;

/* Is it such a product, and does bf16 pay? */
bool sn_einsum_tiles_take(const sn_einsum *e);
/* For one that is. */
sonde_status sn_einsum_tiles_plan(sn_einsum_tiles *p, const sn_einsum *e, uint32_t cpu_flags,
                                  size_t l2_bytes, int threads, sonde_error *err);
void sn_einsum_tiles_run(const sn_einsum_tiles *p, float *y, const float *a, const float *b,
                         void *workspace, sn_pool *pool);

#endif
