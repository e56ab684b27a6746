/* SPDX-License-Identifier: Apache-2.0 */
/* Inside attention: its two products in bf16 by tiles. Queries, keys, values and exponentials are
 * rounded to bf16; scores, their softmax and the results are f32. */
#ifndef SN_COMPUTE_ATTENTION_TILES_H
#define SN_COMPUTE_ATTENTION_TILES_H

#include "compute/attention_block.h"

/* Sizes of a plan: floats of the keys and of the values of a packed head; what a piece of so many
 * rows needs beside its scores. -1: too many. */
int64_t sn_attention_tiles_keys(const sn_attention_desc *d);
int64_t sn_attention_tiles_values(const sn_attention_desc *d);
int64_t sn_attention_tiles_scratch(const sn_attention_plan *p, int64_t rows);

void sn_attention_tiles_pack(const sn_attention_plan *p, const float *k, const float *v,
                             float *dst);
/* A piece's own memory. */
typedef struct sn_attention_tiles {
    uint8_t *q, *e; /* queries and exponentials in bf16 */
    float *mixed;   /* of values */
    float *zeros;
    ptrdiff_t *at;
} sn_attention_tiles;
sn_attention_tiles sn_attention_tiles_begin(const sn_attention_plan *p, const float *q,
                                            int64_t rows, float *scratch);
/* s[r * keys + j] = product of query r and key at + j, for j < n; rows up to a whole tile are
 * written. */
void sn_attention_tiles_scores(const sn_attention_plan *p, const sn_attention_tiles *t,
                               const float *pack, float *s, int64_t rows, int64_t at, int64_t n);
/* y (+)= exponentials · values of keys at … at + n - 1. */
void sn_attention_tiles_mix(const sn_attention_plan *p, const sn_attention_tiles *t,
                            const float *pack, const float *s, float *y, int64_t rows, int64_t at,
                            int64_t n, bool add);

#endif
