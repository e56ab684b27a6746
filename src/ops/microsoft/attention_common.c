/* SPDX-License-Identifier: Apache-2.0 */
/* Masks and caches of the com.microsoft attention operators; see ms_attention.h. */
#include <string.h>

#include "compute/eltwise.h"
#include "ops/microsoft/attention.h"

int64_t sn_ms_count(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return sn_i64_mul(a, b, &a) && sn_i64_mul(a, c, &a) && sn_i64_mul(a, d, &a) ? a : -1;
}

/* ------------------------------------------------------------------ masks */
sonde_status sn_ms_mask_bind(sn_bind *b, uint32_t i, sn_ms_mask *m, sn_room *ws)
{
    m->kind = SN_MS_MASK_NONE;
    if (!sn_ms_has(b, i))
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type;
    const int64_t *d = t->dims;
    const int64_t fresh = m->total - m->past;
    if (t->rank == 1 && d[0] == m->batch)
        m->kind = SN_MS_MASK_LENGTHS;
    else if (t->rank == 1 && d[0] == 2 * m->batch)
        m->kind = SN_MS_MASK_RANGES;
    else if (t->rank == 2 && d[0] == m->batch && (d[1] == m->total || d[1] == fresh))
        m->kind = SN_MS_MASK_KEYS;
    else if (t->rank == 3 && d[0] == m->batch && d[1] == m->q_len && d[2] == m->total)
        m->kind = SN_MS_MASK_QUERIES;
    else if (t->rank == 4 && d[0] == m->batch && d[1] == 1 && d[2] == d[3] && d[3] >= m->total &&
             m->total >= m->q_len)
        m->kind = SN_MS_MASK_SQUARE;
    if (m->kind == SN_MS_MASK_NONE)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "a mask of this shape is not supported");
    if (t->dtype != SONDE_DTYPE_I32)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the mask is %s, expected int32",
                            sn_dtype_onnx_name(t->dtype));
    m->width = d[t->rank - 1];
    const bool rows = m->kind == SN_MS_MASK_QUERIES || m->kind == SN_MS_MASK_SQUARE;
    m->at = sn_room_take(ws, sn_ms_count(m->batch, rows ? m->q_len : 1, m->total, 1), 1);
    return SONDE_OK;
}

void sn_ms_mask_run(const sn_ms_mask *m, const sn_tensor *t, uint8_t *workspace,
                    sn_attention_mask *out)
{
    const int32_t *x = t->data;
    uint8_t *keep = workspace + m->at;
    const bool per_query = m->kind == SN_MS_MASK_QUERIES || m->kind == SN_MS_MASK_SQUARE;
    const int64_t rows = per_query ? m->q_len : 1, skip = m->total - m->width;
    *out = (sn_attention_mask){
        .data = keep, .stride = {rows * m->total, 0, per_query ? m->total : 0, 1}, .len = m->total};
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < m->total; j++) {
                bool on = true;
                switch (m->kind) {
                case SN_MS_MASK_LENGTHS:
                    on = j < x[b];
                    break;
                case SN_MS_MASK_RANGES:
                    on = j < x[b] && j >= x[m->batch + b];
                    break;
                case SN_MS_MASK_KEYS:
                    on = j < skip || x[b * m->width + j - skip] != 0;
                    break;
                case SN_MS_MASK_QUERIES:
                    on = x[(b * rows + r) * m->total + j] != 0;
                    break;
                case SN_MS_MASK_SQUARE:
                    on = x[(b * m->width + m->total - m->q_len + r) * m->width + j] != 0;
                    break;
                case SN_MS_MASK_NONE:
                    break;
                }
                *keep++ = on;
            }
}

sonde_status sn_ms_bias_bind(sn_bind *b, uint32_t i, int64_t batch, int64_t heads, int64_t q_len,
                             int64_t total, sn_ms_bias *m, sn_room *ws)
{
    int64_t count = 0;
    if (!sn_ms_has(b, i))
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type;
    if (t->rank != 4 ||
        !sn_attn_mask_strides(t->dims, 4, batch, heads, q_len, total, false, &m->mask) ||
        !sn_type_count(t, &count))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "attention_bias does not fit the scores");
    if (sn_attn_compute_type(t->dtype) != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "attention_bias of type %s is not supported",
                            sn_dtype_onnx_name(t->dtype));
    if (t->dtype != SONDE_DTYPE_F32)
        m->at = sn_room_take(ws, count, sizeof(float));
    return SONDE_OK;
}

void sn_ms_bias_run(const sn_ms_bias *m, const sn_tensor *t, uint8_t *workspace,
                    sn_attention_mask *out)
{
    *out = m->mask;
    out->data = sn_as_f32(t, workspace + m->at);
}

/* ------------------------------------------------------------------ keys and values */
void sn_ms_cache_bind(sn_ms_cache *c, const sn_heads *now, bool past, bool bias, bool keep,
                      int64_t total, sn_room *ws)
{
    const bool f32 = now->dtype == SONDE_DTYPE_F32;
    c->direct = f32 && !past && !bias;
    c->present = !c->direct && f32 && !bias && keep;
    if (!c->direct && !c->present)
        c->at =
            sn_room_take(ws, sn_ms_count(now->batch, now->heads, total, now->size), sizeof(float));
}

sn_heads sn_ms_cache_run(const sn_ms_cache *c, const sn_heads *past, const sn_heads *now,
                         const sn_heads *present, int64_t total, const int64_t *start,
                         const float *bias, uint8_t *workspace, sn_pool *pool)
{
    sn_heads all = *now;
    if (c->present)
        all = *present;
    else if (!c->direct)
        all = sn_heads_bhsd(SONDE_DTYPE_F32, workspace + c->at, now->batch, now->heads, total,
                            now->size);
    if (!c->direct) {
        if (past->data)
            sn_heads_copy(&all, past, NULL, pool);
        sn_heads_copy(&all, now, start, pool);
    }
    if (bias) {
        sn_heads fresh = all;
        fresh.data = (float *)all.data + start[0] * all.stride[2];
        fresh.len = now->len;
        sn_heads_add(&fresh, bias, pool);
    }
    if (present->data && !c->present)
        sn_heads_copy(present, &all, NULL, pool);
    return all;
}
