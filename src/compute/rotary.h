/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embedding: rows of heads turned by their position, in f32. */
#ifndef SN_COMPUTE_ROTARY_H
#define SN_COMPUTE_ROTARY_H

#include "compute/heads.h"

/* ---- by tables of cosines and sines of each position ---- */
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

/* ---- by tables that broadcast against the heads ---- */
/* y = x * cos + turned(x) * sin; turned(x) is x with the halves of each row swapped and the new
 * first one negated, or, interleaved, with its neighbours. */
typedef struct sn_turn {
    int64_t batch, heads, len, size; /* size is even */
    bool interleaved;
    ptrdiff_t x[3], cos[3], sin[3]; /* strides over batch, head and position; rows are contiguous */
} sn_turn;
/* y is dense. */
void sn_turn_run(const sn_turn *t, float *y, const float *x, const float *cosine, const float *sine,
                 sn_pool *pool);

#endif
