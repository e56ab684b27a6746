/* SPDX-License-Identifier: Apache-2.0 */
/* The forms in which a mask of int32 says what keys a query may see (0: hidden), written out as the
 * `keep` mask of compute/attention.h. */
#ifndef SN_COMPUTE_ATTENTION_KEEP_H
#define SN_COMPUTE_ATTENTION_KEEP_H

#include "compute/attention.h"

typedef enum sn_keep_kind {
    SN_KEEP_ALL,     /* there is no mask */
    SN_KEEP_LENGTHS, /* [batch]: keys from there on are padding */
    SN_KEEP_RANGES,  /* [2 * batch]: ends, then starts */
    SN_KEEP_KEYS,    /* [batch, keys]: the last keys; those before it are kept */
    SN_KEEP_QUERIES, /* [batch, q_len, total] */
    SN_KEEP_SQUARE   /* [batch, 1, max, max]: rows and columns by position */
} sn_keep_kind;

typedef struct sn_keep {
    sn_keep_kind kind;
    int64_t batch, q_len, total;
    int64_t width; /* of a row of the mask */
} sn_keep;

/* Bytes of the mask that is written; -1: more than can be counted. */
int64_t sn_keep_bytes(const sn_keep *k);
/* Writes `keep` and says how it lies. */
void sn_keep_run(const sn_keep *k, const int32_t *mask, uint8_t *keep, sn_attention_mask *out);

#endif
