/* SPDX-License-Identifier: Apache-2.0 */
/* Inside attention: a run of queries of one head through the matrix kernels. */
#ifndef SN_COMPUTE_ATTENTION_BLOCK_H
#define SN_COMPUTE_ATTENTION_BLOCK_H

#include "compute/attention.h"

typedef struct sn_attention_piece {
    int64_t batch, head;
    int64_t first, rows; /* queries */
    const float *pack;   /* what sn_attention_pack made of the key head, when the plan packs */
    float *staging;      /* the worker's, as the plan says */
    int64_t next;        /* batch * heads + head of the piece after this one; -1: unknown */
} sn_attention_piece;

/* Keys of key head `kv` as panels [panel][head][block], then its values as rows of v_row elements
 * unless they are read where they lie. */
void sn_attention_pack(const sn_attention_plan *p, const sn_attention_args *a, int64_t b,
                       int64_t kv, float *dst, float *staging);
/* `scratch`: a worker's, as the plan says. */
void sn_attention_piece_run(const sn_attention_plan *p, const sn_attention_args *a,
                            const sn_attention_piece *q, float *scratch);

#endif
