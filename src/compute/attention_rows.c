/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are brought together; see attention_rows.h. */
#include "compute/attention_rows.h"

#include <math.h>

#include "compute/split.h"

bool sn_attention_stages_queries(const sn_attention_desc *d)
{
    return d->q_listed || d->unit;
}

bool sn_attention_stages_keys(const sn_attention_desc *d)
{
    return d->kv_listed || d->unit;
}

int64_t sn_attention_staging(const sn_attention_desc *d, int64_t rows)
{
    const int64_t keys =
        sn_attention_stages_keys(d) ? sn_count(d->kv_len, d->head + d->v_head, 1, 1) : 0;
    const int64_t queries = sn_attention_stages_queries(d) ? sn_count(rows, d->head, 1, 1) : 0;
    const int64_t results = d->y_listed ? sn_count(rows, d->v_head, 1, 1) : 0,
                  limit = INT64_MAX / 32;
    if (keys < 0 || queries < 0 || results < 0 || keys > limit || queries > limit ||
        results > limit)
        return -1;
    return keys + queries + results;
}

void sn_attention_fetch(const sn_attention_rows *x, int64_t b, int64_t h, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float *row = sn_attention_row(x, b, h, first + i);
        for (int64_t k = 0; k < x->size; k += 16)
            __builtin_prefetch(row + k);
    }
}

void sn_attention_stage(const sn_attention_rows *x, int64_t b, int64_t h, int64_t first, int64_t n,
                        float *dst)
{
    for (int64_t i = 0; i < n; i++)
        sn_attention_copy(dst + i * x->size, sn_attention_row(x, b, h, first + i), x->size);
}

void sn_attention_stage_unit(const sn_kernels *k, const sn_attention_rows *x, int64_t b, int64_t h,
                             int64_t first, int64_t n, float least, float *dst)
{
    const size_t size = (size_t)x->size;
    for (int64_t i = 0; i < n; i++) {
        const float *row = sn_attention_row(x, b, h, first + i);
        float square;
        k->f32_dots(&square, row, row, 1, size, size);
        const float length = sqrtf(square), by = 1.0f / (length > least ? length : least);
        k->f32_mul(dst + i * x->size, row, &by, size, SN_BINARY_VS);
    }
}
