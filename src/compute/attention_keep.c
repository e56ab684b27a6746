/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of int32 written out as bytes; see attention_keep.h. */
#include "compute/attention_keep.h"

#include "compute/split.h"

static bool has_rows(const sn_keep *k)
{
    return k->kind == SN_KEEP_QUERIES || k->kind == SN_KEEP_SQUARE;
}

int64_t sn_keep_bytes(const sn_keep *k)
{
    return sn_count(k->batch, has_rows(k) ? k->q_len : 1, k->total, 1);
}

void sn_keep_run(const sn_keep *k, const int32_t *mask, uint8_t *keep, sn_attention_mask *out)
{
    const int32_t *x = mask;
    const bool per_query = has_rows(k);
    const int64_t rows = per_query ? k->q_len : 1, skip = k->total - k->width;
    *out = (sn_attention_mask){
        .data = keep, .stride = {rows * k->total, 0, per_query ? k->total : 0, 1}, .len = k->total};
    for (int64_t b = 0; b < k->batch; b++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < k->total; j++) {
                bool on = true;
                switch (k->kind) {
                case SN_KEEP_LENGTHS:
                    on = j < x[b];
                    break;
                case SN_KEEP_RANGES:
                    on = j < x[b] && j >= x[k->batch + b];
                    break;
                case SN_KEEP_KEYS:
                    on = j < skip || x[b * k->width + j - skip] != 0;
                    break;
                case SN_KEEP_QUERIES:
                    on = x[(b * rows + r) * k->total + j] != 0;
                    break;
                case SN_KEEP_SQUARE:
                    on = x[(b * k->width + k->total - k->q_len + r) * k->width + j] != 0;
                    break;
                case SN_KEEP_ALL:
                    break;
                }
                *keep++ = on;
            }
}
