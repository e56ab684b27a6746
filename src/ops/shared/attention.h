/* SPDX-License-Identifier: Apache-2.0 */
/* What the attention operators share: tensors seen as heads (compute/heads.h), where the queries,
 * keys and values lie that the driver (compute/attention.h) reads, and its plan. An operator
 * describes its inputs as views; what is of another element type than the driver computes in, or
 * has to be changed or joined with a past, goes through the workspace. */
#ifndef SN_OPS_SHARED_ATTENTION_H
#define SN_OPS_SHARED_ATTENTION_H

#include "compute/attention.h"
#include "compute/heads.h"
#include "ops/framework/op.h"

/* ---- views ---- */
/* A 4-D tensor, or a 3-D one of `heads` heads. */
sn_heads sn_heads_of(const sn_tensor *t, int64_t heads);
/* The same of a concrete type; no data. */
sn_heads sn_heads_of_type(const sn_type *t, int64_t heads);
/* Input i of a step, or output o; no data when it is absent or not wanted. 4-D. */
sn_heads sn_heads_in(const sn_step *s, const sn_frame *f, uint32_t i);
sn_heads sn_heads_out(const sn_step *s, const sn_frame *f, uint32_t o);

/* ---- queries ---- */
typedef struct sn_attn_query {
    bool copied; /* else the driver reads the input */
    sn_piece piece;
} sn_attn_query;
/* `q` becomes the view the driver reads, without data. `changed`: they are not used as they are. */
void sn_attn_query_bind(sn_attn_query *c, sn_heads *q, sn_dtype compute, bool changed,
                        sn_workspace *w);
/* The copy is in type `compute`, and made here. */
sn_heads sn_attn_query_run(const sn_attn_query *c, const sn_frame *f, const sn_heads *q,
                           sn_dtype compute);

/* ---- keys and values ---- */
/* Where the keys (or values) lie that the driver reads. */
typedef struct sn_attn_cache {
    bool direct;    /* the input as it lies */
    bool present;   /* the present output */
    sn_piece piece; /* else here */
} sn_attn_cache;
/* `now`, the new ones, becomes the view the driver reads, without data. `past`: there are others
 * before them; `changed`: a bias will be added; `keep`: present is wanted, and may be the place. */
void sn_attn_cache_bind(sn_attn_cache *c, sn_heads *now, sn_dtype compute, bool past, bool changed,
                        bool keep, int64_t total, sn_workspace *w);
/* That view with its data; nothing is moved. */
sn_heads sn_attn_cache_place(const sn_attn_cache *c, const sn_frame *f, const sn_heads *now,
                             const sn_heads *present, sn_dtype compute, int64_t total);
/* Brings past and new ones together and fills present. past and present may have data NULL (absent,
 * not wanted); start: positions of the new ones, per batch; bias: f32 per column, or NULL. */
sn_heads sn_attn_cache_run(const sn_attn_cache *c, const sn_frame *f, const sn_heads *past,
                           const sn_heads *now, const sn_heads *present, sn_dtype compute,
                           int64_t total, const int64_t *start, const float *bias);

/* ---- masks, plan ---- */
/* Strides of a 1-D to 4-D mask against [batch, heads, q_len, total]; false: it does not broadcast.
 * The last dim may be shorter than total when `shorter` is set. */
bool sn_attn_mask_strides(const sn_dim *dims, int rank, int64_t batch, int64_t heads, int64_t q_len,
                          int64_t total, bool shorter, sn_attention_mask *m);
/* Sizes and strides of the desc from the views the driver reads and writes, then the plan, its
 * kernel and FLOPs. The plan's workspace is left to be carved. */
sonde_status sn_attn_plan(sn_bind *b, sn_attention_desc *d, const sn_heads *q, const sn_heads *k,
                          const sn_heads *v, const sn_heads *y, sn_attention_plan *p);
/* 1 / sqrt(size of a head) where the model says nothing. */
double sn_attn_scale(int64_t size);

/* ---- inputs and outputs while binding ---- */
static inline bool sn_bind_has(const sn_bind *b, uint32_t i)
{
    return i < b->n_in && b->in[i];
}
static inline bool sn_bind_wants(const sn_bind *b, uint32_t o)
{
    return o < b->n_out && o < b->node->n_out && b->node->out[o];
}

#endif
