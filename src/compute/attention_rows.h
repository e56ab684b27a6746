/* SPDX-License-Identifier: Apache-2.0 */
/* Inside attention: rows of queries, keys, values and results that do not lie at even distances, as
 * those of a window of an image do, or that are to have length 1. They are brought together in a
 * worker's memory and read there. */
#ifndef SN_COMPUTE_ATTENTION_ROWS_H
#define SN_COMPUTE_ATTENTION_ROWS_H

#include <string.h>

#include "compute/attention.h"

/* A tensor of rows: positions of one batch and head. */
typedef struct sn_attention_rows {
    const float *data;
    const ptrdiff_t *stride; /* over batch, head, position */
    const int32_t *list;     /* [batch][len]: the row of each position instead; NULL: none */
    int64_t len, size;
} sn_attention_rows;

bool sn_attention_stages_queries(const sn_attention_desc *d);
bool sn_attention_stages_keys(const sn_attention_desc *d);
/* Floats of a worker's memory for so many rows of a piece; -1: too many. */
int64_t sn_attention_staging(const sn_attention_desc *d, int64_t rows);

/* Row i of batch b and head h. */
static inline const float *sn_attention_row(const sn_attention_rows *x, int64_t b, int64_t h,
                                            int64_t i)
{
    const ptrdiff_t *s = x->stride;
    return x->data + h * s[1] + (x->list ? x->list[b * x->len + i] * s[2] : b * s[0] + i * s[2]);
}
/* Rows are short: a call would take longer than the copy. */
static inline void sn_attention_copy(float *dst, const float *src, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        memcpy(dst + i, src + i, 16 * sizeof *dst);
    for (; i + 4 <= n; i += 4)
        memcpy(dst + i, src + i, 4 * sizeof *dst);
    for (; i < n; i++)
        dst[i] = src[i];
}
/* Asks for rows that are read later: they lie too far apart for a core to guess. */
void sn_attention_fetch(const sn_attention_rows *x, int64_t b, int64_t h, int64_t first, int64_t n);
/* Rows first … first + n - 1, dense. */
void sn_attention_stage(const sn_attention_rows *x, int64_t b, int64_t h, int64_t first, int64_t n,
                        float *dst);
/* The same, each divided by its length, or by `least` where that is more. */
void sn_attention_stage_unit(const sn_kernels *k, const sn_attention_rows *x, int64_t b, int64_t h,
                             int64_t first, int64_t n, float least, float *dst);

#endif
