/* SPDX-License-Identifier: Apache-2.0 */
/* Products with sparse B: gemm.c hands them to these when the desc says so. */
#ifndef SN_COMPUTE_GEMM_SPARSE_H
#define SN_COMPUTE_GEMM_SPARSE_H

#include "compute/gemm.h"
#include "compute/gemm_tiles.h"

/* Is it faster this way than dense, for so many rows of A (-1: not known, then it has to be for
 * any), with so many entries (blocks of 4 outputs × 1 k)? */
bool sn_gemm_sparse_pays(int64_t rows, int64_t n, int64_t k, int64_t entries);

bool sn_gemm_sparse_plan(sn_gemm_plan *p, size_t l2_bytes); /* false: it is too large */
void sn_gemm_sparse_run(const sn_gemm_plan *p, const sn_gemm_operands *o, void *workspace,
                        sn_pool *pool);

#endif
