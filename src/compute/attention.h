/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention: y = softmax(mask(cap(scale * q · kᵀ))) · v for every batch and
 * head, with fewer key heads than query heads where wanted. Scores exist for a few rows at a time
 * only.
 *
 * Many rows: the keys of a head are packed into panels, values are made contiguous, and the matrix
 * kernels do both products for a run of queries. Rows that are longer than a piece of work may hold
 * are gone through in blocks of keys, with the maximum and the sum of each row carried along.
 * The same by tiles of bf16, where that is asked for.
 * Few rows (one token at a time): keys and values are read where they lie.
 * Rows of a window, which lists find, are brought together first.
 * f64, and scores that are asked for: plain loops, one query at a time. */
#ifndef SN_COMPUTE_ATTENTION_H
#define SN_COMPUTE_ATTENTION_H

#include "base/arithmetic.h"
#include "base/cpu.h"
#include "base/pool.h"
#include "base/workspace.h"
#include "compute/split.h"
#include "kernels/kernels.h"
#include "sonde/types.h"

/* What the scores that are handed out have gone through. */
typedef enum sn_attention_qk {
    SN_ATTENTION_SCALED,
    SN_ATTENTION_CAPPED,
    SN_ATTENTION_MASKED,
    SN_ATTENTION_SOFTMAX
} sn_attention_qk;

/* What a `keep` mask does to the scores it hides. */
typedef enum sn_attention_hide {
    SN_ATTENTION_ADD_FILTER, /* `filter` is added */
    SN_ATTENTION_FILL_FIRST, /* they become `filter`, before the bias is added */
    SN_ATTENTION_FILL_LAST   /* … after it was added */
} sn_attention_hide;

#define SN_ATTENTION_FAR ((int64_t)1 << 60)

typedef struct sn_attention_desc {
    sonde_dtype dtype;              /* F32 or F64, of everything below that is not an integer */
    int64_t batch, heads, kv_heads; /* heads is a multiple of kv_heads */
    int64_t windows;                /* a batch is so many for the masks (0: one) */
    int64_t q_len, kv_len, head, v_head;
    /* Strides over batch, head, position, in elements; a head's row is contiguous. */
    ptrdiff_t q[3], k[3], v[3], y[3];
    double scale, softcap; /* softcap 0: none */
    /* How many keys before and after its own position a query sees; < 0: all. Causal: right 0. At
     * most SN_ATTENTION_FAR, as are the positions. */
    int64_t left, right;
    sn_attention_qk qk;
    sn_attention_hide hide;
    bool masked_is_zero; /* a row with no key but masked ones becomes zeros instead of NaN */
    bool nan_is_zero;    /* … and so does any other row of NaN */
    bool in_bf16;        /* the products may be, where that is faster */
    /* F32 only. Lists of the arguments say which rows positions are; strides over batches do not
     * count then. */
    bool q_listed, kv_listed, y_listed;
    bool unit; /* queries and keys are divided by their lengths, or by `least` if that is more */
    float least;
} sn_attention_desc;

typedef struct sn_attention_plan {
    sn_attention_desc d;      /* strides as the products see them … */
    sn_attention_desc source; /* … and as they were given */
    const sn_kernels *kernels;
    unsigned block;
    int threads;
    bool blocks;       /* through the matrix kernels, in f32 */
    bool packed;       /* that, with packed keys */
    bool tiles;        /* that, in bf16 (attention_tiles.h) */
    bool by_head;      /* a thread packs the heads it reads for itself */
    int64_t rows;      /* queries per piece of work */
    int64_t keys;      /* keys gone through at a time, a multiple of the block */
    int64_t v_row;     /* elements between rows of packed values */
    size_t pack_k;     /* elements of the keys of a packed head; its values follow */
    sn_pieces packs;   /* packed heads kept at once: one per worker, or all of them */
    sn_pieces scratch; /* of each worker */
    sn_pieces staging; /* of each worker: rows that are brought together */
    sn_piece held;     /* which packed head each worker has, when it packs for itself */
    sn_workspace workspace;
    uint64_t flops;
    sn_arithmetic arithmetic; /* of its products */
    const char *name;
} sn_attention_plan;

/* A mask over [batch, head, query, key]; strides in elements, 0 where it is repeated. Keys from
 * `len` on are masked out. With windows, batch b is window b % windows of b / windows. */
typedef struct sn_attention_mask {
    const void *data; /* NULL: none */
    ptrdiff_t stride[4];
    ptrdiff_t window; /* stride over windows */
    int64_t len;
} sn_attention_mask;

typedef struct sn_attention_args {
    const void *q, *k, *v;
    void *y;
    void *qk;               /* dense [batch, heads, q_len, kv_len], or NULL */
    sn_attention_mask bias; /* dtype: added to the scores */
    sn_attention_mask more; /* dtype: added, too; F32 only, and beside a bias */
    const float *scales;    /* per head, times the scale; F32 only; NULL: none */
    sn_attention_mask keep; /* uint8: where it equals `hidden`, desc.hide happens to the score */
    uint8_t hidden;         /* 0 or 1; elements of the mask are one of these */
    double filter;          /* -inf: masked out */
    const int64_t *offset;  /* per batch: key position of query 0, for left, right; NULL: 0 */
    const int64_t *begin, *end;      /* per batch: the keys that count; NULL: all */
    const int32_t *q_rows, *kv_rows; /* [batch][position], where the desc says so */
    const int32_t *y_rows;           /* the same; positions below 0 are left out */
    const void *sink; /* per head: one more term e^sink in the sum of the softmax; NULL: none */
} sn_attention_args;

/* The desc has been validated. Its workspace is for `threads` workers. */
sonde_status sn_attention_plan_make(sn_attention_plan *p, const sn_attention_desc *d,
                                    uint32_t cpu_flags, int threads, sonde_error *err);
/* A query without any key gives a row of zeros. y overlaps nothing. */
void sn_attention_run(const sn_attention_plan *p, const sn_attention_args *a, void *workspace,
                      sn_pool *pool);

/* Element of a mask for key j of query i. */
static inline ptrdiff_t sn_attention_mask_at(const sn_attention_desc *d, const sn_attention_mask *m,
                                             int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t windows = d->windows > 1 ? d->windows : 1;
    return b / windows * m->stride[0] + b % windows * m->window + h * m->stride[1] +
           i * m->stride[2] + j * m->stride[3];
}
/* Keys [*lo, *hi) that query i of batch b may see by range, causality and window. */
static inline void sn_attention_range(const sn_attention_desc *d, const sn_attention_args *a,
                                      int64_t b, int64_t i, int64_t *lo, int64_t *hi)
{
    int64_t from = a->begin ? a->begin[b] : 0, to = a->end ? a->end[b] : d->kv_len;
    const int64_t at = i + (a->offset ? a->offset[b] : 0);
    if (d->left >= 0)
        from = sn_max(from, at - d->left);
    if (d->right >= 0)
        to = sn_min(to, at + d->right + 1);
    *lo = sn_min(sn_max(from, 0), d->kv_len);
    *hi = sn_max(sn_min(to, d->kv_len), *lo);
}
/* One query of one head with plain loops; `scores` has room for kv_len (attention_plain.c). */
void sn_attention_query_f32(const sn_attention_plan *p, const sn_attention_args *a, int64_t b,
                            int64_t h, int64_t i, void *scores);
void sn_attention_query_f64(const sn_attention_plan *p, const sn_attention_args *a, int64_t b,
                            int64_t h, int64_t i, void *scores);

#endif
