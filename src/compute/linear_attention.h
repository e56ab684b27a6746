/* SPDX-License-Identifier: Apache-2.0 */
/* Linear attention: a state matrix per key head is decayed, corrected and extended token by token,
 * and read by the queries that share it. In f32. */
#ifndef SN_COMPUTE_LINEAR_ATTENTION_H
#define SN_COMPUTE_LINEAR_ATTENTION_H

#include "base/pool.h"

typedef struct sn_linear_attention_desc {
    int64_t batch, len, q_heads, kv_heads; /* q_heads is a multiple of kv_heads */
    int64_t dk, dv;                        /* size of a key, of a value */
    int64_t decay_size;                    /* 1 or dk */
    int64_t beta_heads;                    /* 1 or kv_heads */
    bool delta;                            /* what the state says of the key is taken off first */
    float scale;                           /* of the results */
} sn_linear_attention_desc;

/* state += key ⊗ value for each token, decayed by e^decay and, with `delta`, corrected by beta. */
typedef struct sn_linear_attention_args {
    const float *q, *k, *v; /* [batch][len][heads][dk], … [kv_heads][dk], … [kv_heads][dv] */
    const float *decay;     /* [batch][len][kv_heads][decay_size], or NULL: none */
    const float *beta;      /* [batch][len][beta_heads], or NULL: 1 */
    const float *past;      /* like state; NULL: zeros */
    float *state;           /* [batch][kv_heads][dk][dv]; afterwards that behind the last token */
    float *out;             /* [batch][len][q_heads][dv] */
    float *values;          /* scratch: [batch][kv_heads][dv] */
} sn_linear_attention_args;

void sn_linear_attention_run(const sn_linear_attention_desc *d, const sn_linear_attention_args *a,
                             sn_pool *pool);

#endif
