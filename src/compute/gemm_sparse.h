/* SPDX-License-Identifier: Apache-2.0 */
/* Products with sparse B: gemm.c hands them to these when the desc says so. */
#ifndef SN_COMPUTE_GEMM_SPARSE_H
#define SN_COMPUTE_GEMM_SPARSE_H

#include "compute/gemm.h"
#include "compute/gemm_tiles.h"

typedef struct sn_gemm_sparse_case {
    int64_t rows; /* of A; -1: not known */
    int64_t n, k;
    int64_t entries;  /* blocks of 4 columns × 1 k that are not zero, … */
    bool single;      /* … or single weights */
    bool tiles;       /* … or of 16 × 2, which are multiplied in tiles of bf16 */
    bool dense_tiles; /* the dense product would be in tiles of bf16 */
} sn_gemm_sparse_case;
/* Is the product faster without the zeros? If rows are not known it has to be for any number. */
bool sn_gemm_sparse_pays(const sn_gemm_sparse_case *c);

bool sn_gemm_sparse_plan(sn_gemm_plan *p, size_t l2_bytes); /* false: it is too large */
void sn_gemm_sparse_run(const sn_gemm_plan *p, const sn_gemm_operands *o, void *workspace,
                        sn_pool *pool);

#endif
