/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention: y = softmax(mask(cap(scale * q · kᵀ))) · v for every batch and
 * head, with fewer key heads than query heads where wanted. Scores exist for a few rows at a time
 * only.
 *
 * Many rows: keys (and values, unless their rows are whole vector blocks) are packed once per key
 * head and the matrix kernels do the products.
 * Few rows (one token at a time) and f64: plain loops that read keys and values where they lie. */
#ifndef SN_COMPUTE_ATTENTION_H
#define SN_COMPUTE_ATTENTION_H

#include "base/cpu.h"
#include "base/pool.h"
#include "kernels/kernels.h"
#include "sonde/types.h"

/* What the scores that are handed out have gone through. */
typedef enum sn_attention_qk {
    SN_ATTENTION_SCALED,
    SN_ATTENTION_CAPPED,
    SN_ATTENTION_MASKED,
    SN_ATTENTION_SOFTMAX
} sn_attention_qk;

typedef struct sn_attention_desc {
    sonde_dtype dtype;              /* F32 or F64, of everything below that is not an integer */
    int64_t batch, heads, kv_heads; /* heads is a multiple of kv_heads */
    int64_t q_len, kv_len, head, v_head;
    /* Strides over batch, head, position, in elements; a head's row is contiguous. */
    ptrdiff_t q[3], k[3], v[3], y[3];
    double scale, softcap; /* softcap 0: none */
    bool causal;
    int64_t window; /* causal: how many keys before its own position a query sees; < 0: all */
    sn_attention_qk qk;
} sn_attention_desc;

typedef struct sn_attention_plan {
    sn_attention_desc d;
    const sn_kernels *kernels;
    unsigned block;
    int threads;
    bool packed;           /* through the matrix kernels */
    int64_t rows;          /* queries per piece of work */
    int64_t row_len;       /* scores per query, rounded up to blocks */
    size_t pack_k, pack_v; /* elements of one packed head; pack_v 0: values are read unpacked */
    size_t workspace_bytes;
    uint64_t flops;
    const char *name;
} sn_attention_plan;

/* A mask over [batch, head, query, key]; strides in elements, 0 where it is repeated. Keys from
 * `len` on are masked out. */
typedef struct sn_attention_mask {
    const void *data; /* NULL: none */
    ptrdiff_t stride[4];
    int64_t len;
} sn_attention_mask;

typedef struct sn_attention_args {
    const void *q, *k, *v;
    void *y;
    void *qk;               /* dense [batch, heads, q_len, kv_len], or NULL */
    sn_attention_mask bias; /* dtype: added to the scores */
    sn_attention_mask keep; /* uint8: where it is zero, `filter` is added (-inf: masked out) */
    double filter;
    const int64_t *offset;      /* per batch: key position of query 0, for causal; NULL: 0 */
    const int64_t *begin, *end; /* per batch: the keys that count; NULL: all */
    const void *sink; /* per head: one more term e^sink in the sum of the softmax; NULL: none */
} sn_attention_args;

/* The desc has been validated. Workspace for `threads` workers. */
sonde_status sn_attention_plan_make(sn_attention_plan *p, const sn_attention_desc *d,
                                    uint32_t cpu_flags, int threads, sonde_error *err);
/* A query without any key gives a row of zeros. y overlaps nothing. */
void sn_attention_run(const sn_attention_plan *p, const sn_attention_args *a, void *workspace,
                      sn_pool *pool);

/* Keys [*lo, *hi) that query i of batch b may see by range, causality and window. */
void sn_attention_range(const sn_attention_desc *d, const sn_attention_args *a, int64_t b,
                        int64_t i, int64_t *lo, int64_t *hi);
/* One query of one head with plain loops; `scores` has room for kv_len (attention_plain.c). */
void sn_attention_query_f32(const sn_attention_plan *p, const sn_attention_args *a, int64_t b,
                            int64_t h, int64_t i, void *scores);
void sn_attention_query_f64(const sn_attention_plan *p, const sn_attention_args *a, int64_t b,
                            int64_t h, int64_t i, void *scores);

#endif
