/* SPDX-License-Identifier: Apache-2.0 */
/* What the attention operators of com.microsoft share beyond shared/attention.h: the many shapes
 * their mask may have, and an additive bias. Everything is computed in f32. */
#ifndef SN_OPS_MICROSOFT_ATTENTION_H
#define SN_OPS_MICROSOFT_ATTENTION_H

#include "compute/attention_keep.h"
#include "ops/shared/attention.h"

/* ---- masks of int32: 0 means masked ---- */
typedef struct sn_ms_mask {
    sn_keep keep;
    sn_piece piece;
} sn_ms_mask;
/* Plans the mask in input i (absent: none) for scores [batch, heads, q_len, past + new keys]. */
sonde_status sn_ms_mask_bind(sn_bind *b, uint32_t i, int64_t batch, int64_t q_len, int64_t total,
                             int64_t past, sn_ms_mask *m);
/* Leaves `out` alone when there is none. */
void sn_ms_mask_run(const sn_ms_mask *m, const sn_step *s, const sn_frame *f, uint32_t i,
                    sn_attention_mask *out);

/* ---- attention_bias, [batch or 1, heads or 1, q_len, total] of the activations' type ---- */
typedef struct sn_ms_bias {
    sn_attention_mask mask;
    sn_piece piece; /* in f32 */
} sn_ms_bias;
sonde_status sn_ms_bias_bind(sn_bind *b, uint32_t i, int64_t batch, int64_t heads, int64_t q_len,
                             int64_t total, sn_ms_bias *m);
void sn_ms_bias_run(const sn_ms_bias *m, const sn_step *s, const sn_frame *f, uint32_t i,
                    sn_attention_mask *out);

#endif
