/* SPDX-License-Identifier: Apache-2.0 */
/* What the attention operators share: tensors seen as [batch][head][position][size] wherever the
 * heads lie, moving them between element types and caches, and rotating them by their position. */
#ifndef SN_OPS_SHARED_HEADS_H
#define SN_OPS_SHARED_HEADS_H

#include "compute/attention.h"
#include "ops/shared/as_f32.h"

#define SN_MS_DOMAIN "com.microsoft"

/* ---- views ---- */
typedef struct sn_heads {
    sn_dtype dtype;
    void *data;
    int64_t batch, heads, len, size;
    ptrdiff_t stride[3]; /* elements, over batch, head, position; a row of `size` is contiguous */
} sn_heads;

/* [batch, heads, len, size] */
sn_heads sn_heads_bhsd(sn_dtype t, void *data, int64_t batch, int64_t heads, int64_t len,
                       int64_t size);
/* [batch, len, heads * size], rows of `row` elements of which the heads begin at `first` */
sn_heads sn_heads_bshd(sn_dtype t, void *data, int64_t batch, int64_t heads, int64_t len,
                       int64_t size, int64_t row, int64_t first);
/* A 4-D tensor, or a 3-D one of `heads` heads. */
sn_heads sn_heads_of(const sn_tensor *t, int64_t heads);

/* Positions [0, src->len) of src to positions at[b] + … of dst (at NULL: 0), converting f16, bf16
 * and f32 into each other; equal types are copied. Positions beyond dst are left out. */
void sn_heads_copy(const sn_heads *dst, const sn_heads *src, const int64_t *at, sn_pool *pool);
/* dst += bias[head * size + …]; both f32. */
void sn_heads_add(const sn_heads *dst, const float *bias, sn_pool *pool);

/* ---- rotary embedding ---- */
typedef struct sn_rotary {
    const float *cos, *sin; /* rows of half the rotated size */
    int64_t rows;           /* in the tables */
    int64_t half;
    bool interleaved;
    /* Row of position s in batch b: ids[b * id_batch + s * id_len] + start (ids NULL: start + s).
     */
    const int64_t *ids;
    ptrdiff_t id_batch, id_len;
    const int64_t *start;  /* per batch; NULL: 0 */
    ptrdiff_t table_batch; /* rows from batch to batch, when each has its own table */
} sn_rotary;
/* Rotates the first 2 * half numbers of each row, in place, f32. Rows outside of the tables are
 * left. */
void sn_heads_rotate(const sn_heads *x, const sn_rotary *r, sn_pool *pool);

/* ---- element types ---- */
/* f32 for f16, bf16 and f32; f64 for f64; else UNDEFINED. */
sn_dtype sn_attn_compute_type(sn_dtype t);
/* f32 numbers of a tensor of f32, f16 or bf16: its own data, or converted into `room`. */
const float *sn_as_f32(const sn_tensor *t, void *room);

/* ---- attention on views ---- */
/* Strides of a 1-D to 4-D mask against [batch, heads, q_len, total]; false: it does not broadcast.
 * The last dim may be shorter than total when `shorter` is set. */
bool sn_attn_mask_strides(const sn_dim *dims, int rank, int64_t batch, int64_t heads, int64_t q_len,
                          int64_t total, bool shorter, sn_attention_mask *m);
/* Fills sizes and strides of the desc from four views. */
void sn_attn_desc(sn_attention_desc *d, const sn_heads *q, const sn_heads *k, const sn_heads *v,
                  const sn_heads *y);

#endif
