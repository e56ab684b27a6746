/* SPDX-License-Identifier: Apache-2.0 */
/* What the attention operators of com.microsoft share: the many shapes their mask may have, and
 * bringing past and new keys together. Everything is computed in f32. */
#ifndef SN_OPS_MICROSOFT_ATTENTION_H
#define SN_OPS_MICROSOFT_ATTENTION_H

#include "ops/shared/heads.h"

/* ---- masks of int32: 0 means masked ---- */
typedef enum sn_ms_mask_kind {
    SN_MS_MASK_NONE,
    SN_MS_MASK_LENGTHS, /* [batch]: keys from there on are padding */
    SN_MS_MASK_RANGES,  /* [2 * batch]: ends, then starts */
    SN_MS_MASK_KEYS,    /* [batch, keys]: the last keys; those before it are kept */
    SN_MS_MASK_QUERIES, /* [batch, q_len, total] */
    SN_MS_MASK_SQUARE   /* [batch, 1, max, max]: rows and columns by position */
} sn_ms_mask_kind;

typedef struct sn_ms_mask {
    sn_ms_mask_kind kind;
    int64_t batch, q_len, total, past;
    int64_t width; /* of a row of the mask */
    size_t at;     /* workspace for [batch, q_len or 1, total] bytes */
} sn_ms_mask;

/* Plans the mask in input i (absent: none) and takes workspace for it. */
sonde_status sn_ms_mask_bind(sn_bind *b, uint32_t i, sn_ms_mask *m, sn_room *ws);
/* Fills the workspace and says where it is. */
void sn_ms_mask_run(const sn_ms_mask *m, const sn_tensor *t, uint8_t *workspace,
                    sn_attention_mask *out);

/* ---- attention_bias, [batch or 1, heads or 1, q_len, total] of the activations' type ---- */
typedef struct sn_ms_bias {
    sn_attention_mask mask;
    size_t at; /* workspace when it is not f32 */
} sn_ms_bias;
sonde_status sn_ms_bias_bind(sn_bind *b, uint32_t i, int64_t batch, int64_t heads, int64_t q_len,
                             int64_t total, sn_ms_bias *m, sn_room *ws);
void sn_ms_bias_run(const sn_ms_bias *m, const sn_tensor *t, uint8_t *workspace,
                    sn_attention_mask *out);

/* ---- keys and values ---- */
/* Where the keys (or values) the core reads come from. */
typedef struct sn_ms_cache {
    bool direct;  /* the input as it lies */
    bool present; /* the present output */
    size_t at;    /* else the workspace */
} sn_ms_cache;
/* `now` is f32 and is used as it lies when nothing has to be done with it; `keep` = present is
 * wanted. */
void sn_ms_cache_bind(sn_ms_cache *c, const sn_heads *now, bool past, bool bias, bool keep,
                      int64_t total, sn_room *ws);
/* past and present may have data NULL (absent, not wanted); start: positions of the new ones, per
 * batch; bias: f32 per column, or NULL. Returns the view the core reads; present is filled. */
sn_heads sn_ms_cache_run(const sn_ms_cache *c, const sn_heads *past, const sn_heads *now,
                         const sn_heads *present, int64_t total, const int64_t *start,
                         const float *bias, uint8_t *workspace, sn_pool *pool);

/* Number of elements, or -1 on overflow. */
int64_t sn_ms_count(int64_t a, int64_t b, int64_t c, int64_t d);
static inline bool sn_ms_has(const sn_bind *b, uint32_t i)
{
    return i < b->n_in && b->in[i];
}
static inline bool sn_ms_wants(const sn_bind *b, uint32_t o)
{
    return o < b->n_out && o < b->node->n_out && b->node->out[o];
}

#endif
