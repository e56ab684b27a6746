/* SPDX-License-Identifier: Apache-2.0 */
/* Attention step by step, in double: scores, softmax and weighted sums exist as whole tensors, so
 * that something else may change them between two steps. */
#ifndef SN_COMPUTE_ATTENTION_F64_H
#define SN_COMPUTE_ATTENTION_F64_H

#include "base/pool.h"

typedef struct sn_attention_f64 {
    int64_t batch, heads, kv_heads, len, keys, size, v_size; /* heads: a multiple of kv_heads */
    double scale;
    const double *q, *k, *v; /* [batch][heads][len][size], … [kv_heads][keys][size or v_size] */
    double *scores;          /* [batch][heads][len][keys] */
    double *y;               /* [batch][heads][len][v_size] */
} sn_attention_f64;

/* scores = scale · q · kᵀ */
void sn_attention_f64_scores(const sn_attention_f64 *a, sn_pool *pool);
/* Rows of scores become their softmax. */
void sn_attention_f64_softmax(const sn_attention_f64 *a, sn_pool *pool);
/* y = scores · v */
void sn_attention_f64_values(const sn_attention_f64 *a, sn_pool *pool);

#endif
