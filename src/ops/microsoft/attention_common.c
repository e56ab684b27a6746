/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of the com.microsoft attention operators; see attention.h. */
#include "ops/microsoft/attention.h"
#include "ops/shared/converted.h"

static sn_keep_kind kind_of(const sn_type *t, const sn_keep *k, int64_t past)
{
    const int64_t *d = t->dims;
    if (t->rank == 1 && d[0] == k->batch)
        return SN_KEEP_LENGTHS;
    if (t->rank == 1 && d[0] == 2 * k->batch)
        return SN_KEEP_RANGES;
    if (t->rank == 2 && d[0] == k->batch && (d[1] == k->total || d[1] == k->total - past))
        return SN_KEEP_KEYS;
    if (t->rank == 3 && d[0] == k->batch && d[1] == k->q_len && d[2] == k->total)
        return SN_KEEP_QUERIES;
    if (t->rank == 4 && d[0] == k->batch && d[1] == 1 && d[2] == d[3] && d[3] >= k->total &&
        k->total >= k->q_len)
        return SN_KEEP_SQUARE;
    return SN_KEEP_ALL;
}

sonde_status sn_ms_mask_bind(sn_bind *b, uint32_t i, int64_t batch, int64_t q_len, int64_t total,
                             int64_t past, sn_ms_mask *m)
{
    m->keep = (sn_keep){.batch = batch, .q_len = q_len, .total = total};
    if (!sn_bind_has(b, i))
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type;
    m->keep.kind = kind_of(t, &m->keep, past);
    if (m->keep.kind == SN_KEEP_ALL)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "a mask of this shape is not supported");
    if (t->dtype != SONDE_DTYPE_I32)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the mask is %s, expected i32",
                            sn_dtype_onnx_name(t->dtype));
    m->keep.width = t->dims[t->rank - 1];
    m->piece = sn_carve(&b->workspace, sn_keep_bytes(&m->keep), 1);
    return SONDE_OK;
}

void sn_ms_mask_run(const sn_ms_mask *m, const sn_step *s, const sn_frame *f, uint32_t i,
                    sn_attention_mask *out)
{
    if (m->keep.kind != SN_KEEP_ALL)
        sn_keep_run(&m->keep, sn_in(s, f, i)->data, sn_piece_ptr(f, m->piece), out);
}

sonde_status sn_ms_bias_bind(sn_bind *b, uint32_t i, int64_t batch, int64_t heads, int64_t q_len,
                             int64_t total, sn_ms_bias *m)
{
    int64_t count = 0;
    if (!sn_bind_has(b, i))
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type;
    if (t->rank != 4 ||
        !sn_attn_mask_strides(t->dims, 4, batch, heads, q_len, total, false, &m->mask) ||
        !sn_type_count(t, &count))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "attention_bias does not fit the scores");
    if (sn_compute_float(t->dtype) != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "attention_bias of type %s is not supported",
                            sn_dtype_onnx_name(t->dtype));
    m->piece = sn_converted_carve(&b->workspace, b->in[i], SONDE_DTYPE_F32);
    return SONDE_OK;
}

void sn_ms_bias_run(const sn_ms_bias *m, const sn_step *s, const sn_frame *f, uint32_t i,
                    sn_attention_mask *out)
{
    if (!sn_has(s, i))
        return;
    *out = m->mask;
    out->data = sn_converted_in(s, f, i, SONDE_DTYPE_F32, m->piece);
}
