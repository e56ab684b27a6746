/* SPDX-License-Identifier: Apache-2.0 */
/* The way of matrix products (gemm.h) whose B is in tiles of bf16. */
#ifndef SN_COMPUTE_GEMM_TILES_H
#define SN_COMPUTE_GEMM_TILES_H

#include "compute/gemm.h"

typedef struct sn_gemm_operands {
    const float *c, *z; /* NULL where there are none */
    const void *a, *b;
    float *y;
} sn_gemm_operands;

/* Fills p->tiles and carves the workspace; false: sizes overflow. */
bool sn_gemm_tiles_plan(sn_gemm_plan *p, size_t l2_bytes);
void sn_gemm_tiles_run(const sn_gemm_plan *p, const sn_gemm_operands *o, void *workspace,
                       sn_pool *pool);

#endif
