/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding of the standard domain and of com.microsoft: rows of a head are rotated by angles
 * looked up by position. The two differ in the order of their inputs and in how positions are
 * given. */
#include "compute/rotary.h"
#include "ops/shared/attention.h"
#include "ops/shared/converted.h"

typedef struct rotary_params {
    int64_t heads, dim; /* 0: not given */
    bool interleaved;
    bool microsoft;
    uint32_t cos, sin, ids; /* input numbers */
} rotary_params;

typedef struct rotary_bound {
    int64_t heads, half, rows;
    int64_t batch, len;
    bool offset; /* one id: the position of the first token */
    bool convert;
    sn_piece x, cos, sin; /* in f32 */
} rotary_bound;

static sonde_status prepare(sn_prep *p, bool microsoft)
{
    rotary_params *r = p->params;
    int64_t interleaved, packed = 0;
    SN_TRY(sn_prep_int(p, "num_heads", 0, &r->heads));
    SN_TRY(sn_prep_int(p, "rotary_embedding_dim", 0, &r->dim));
    SN_TRY(sn_prep_int(p, "interleaved", 0, &interleaved));
    if (microsoft)
        SN_TRY(sn_prep_int(p, "is_packed_batching", 0, &packed));
    if (packed)
        return sn_prep_fail(p, "packed batches (is_packed_batching) are not supported");
    if (r->heads < 0 || r->dim < 0 || r->dim % 2)
        return sn_prep_fail(p, "num_heads or rotary_embedding_dim is invalid");
    r->interleaved = interleaved != 0;
    r->microsoft = microsoft;
    r->ids = microsoft ? 1 : 3;
    r->cos = microsoft ? 2 : 1;
    r->sin = microsoft ? 3 : 2;
    return SONDE_OK;
}

static sonde_status prepare_onnx(sn_prep *p)
{
    return prepare(p, false);
}

static sonde_status prepare_ms(sn_prep *p)
{
    return prepare(p, true);
}

static sonde_status infer_rotary(sn_infer *c)
{
    return sn_infer_same(c, 0, 0);
}

/* Heads and the size of one; 3-D inputs need to be told. */
static sonde_status split_heads(sn_bind *b, rotary_bound *k, int64_t table_half, int64_t *size)
{
    const rotary_params *r = b->params;
    const sn_type *x = &b->in[0]->type;
    k->heads = r->heads;
    if (x->rank == 4) {
        k->heads = x->dims[1];
        *size = x->dims[3];
        return SONDE_OK;
    }
    if (x->rank != 3)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the input has rank %d, expected 3 or 4",
                            x->rank);
    if (k->heads == 0 && r->microsoft && table_half > 0)
        k->heads = x->dims[2] / (2 * table_half);
    if (k->heads < 1 || x->dims[2] % k->heads)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "%lld columns cannot be %lld heads",
                            (long long)x->dims[2], (long long)k->heads);
    *size = x->dims[2] / k->heads;
    return SONDE_OK;
}

static sonde_status bind_positions(sn_bind *b, rotary_bound *k, const sn_type *table)
{
    const rotary_params *r = b->params;
    const sn_fact *ids = r->ids < b->n_in ? b->in[r->ids] : NULL;
    if (!ids) {
        if (table->rank != 3 || table->dims[0] != k->batch || table->dims[1] != k->len)
            return sn_bind_fail(b, SONDE_INVALID_MODEL,
                                "without position_ids the tables must be [batch, sequence, half]");
        k->rows = k->len;
        return SONDE_OK;
    }
    if (table->rank != 2)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the tables must have rank 2");
    k->rows = table->dims[0];
    int64_t count = 0;
    if (ids->type.dtype != SONDE_DTYPE_I64 || !sn_type_count(&ids->type, &count))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "position_ids must be i64");
    k->offset = r->microsoft && ids->type.rank <= 1;
    if (k->offset
            ? count != 1
            : ids->type.rank != 2 || ids->type.dims[0] != k->batch || ids->type.dims[1] != k->len)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "position_ids do not fit the input");
    return SONDE_OK;
}

static sonde_status bind_rotary(sn_bind *b)
{
    const rotary_params *r = b->params;
    rotary_bound *k = SN_NEW(b->arena, rotary_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *x = &b->in[0]->type, *table = &b->in[r->cos]->type;
    if (!sn_type_same_shape(table, &b->in[r->sin]->type) || table->rank < 2)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the tables of cosines and sines differ in shape");
    int64_t size = 0, count = 0;
    k->half = table->dims[table->rank - 1];
    SN_TRY(split_heads(b, k, k->half, &size));
    k->batch = x->dims[0];
    k->len = x->rank == 4 ? x->dims[2] : x->dims[1];
    if (k->half > size / 2 || 2 * k->half != (r->dim ? r->dim : size))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "tables of %lld columns do not fit heads of %lld numbers",
                            (long long)k->half, (long long)size);
    SN_TRY(bind_positions(b, k, table));
    if (sn_compute_float(x->dtype) != SONDE_DTYPE_F32 || table->dtype != x->dtype ||
        b->in[r->sin]->type.dtype != x->dtype)
        return sn_bind_fail(b, SONDE_UNSUPPORTED,
                            "element type %s with tables of %s is not supported",
                            sn_dtype_onnx_name(x->dtype), sn_dtype_onnx_name(table->dtype));
    k->convert = x->dtype != SONDE_DTYPE_F32;
    if (!sn_type_count(x, &count))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    k->x = sn_converted_carve(&b->workspace, b->in[0], SONDE_DTYPE_F32);
    k->cos = sn_converted_carve(&b->workspace, b->in[r->cos], SONDE_DTYPE_F32);
    k->sin = sn_converted_carve(&b->workspace, b->in[r->sin], SONDE_DTYPE_F32);
    b->bound = k;
    b->kernel = "f32_rotary";
    b->flops = 3 * (uint64_t)count;
    return SONDE_OK;
}

static sonde_status run_rotary(const sn_step *s, sn_frame *f)
{
    const rotary_params *p = s->params;
    const rotary_bound *k = s->bound;
    const sn_heads x = sn_heads_of(sn_in(s, f, 0), k->heads),
                   y = sn_heads_of(sn_out(s, f, 0), k->heads);
    sn_rotary r = {.rows = k->rows, .half = k->half, .interleaved = p->interleaved};
    r.cos = sn_converted_in(s, f, p->cos, SONDE_DTYPE_F32, k->cos);
    r.sin = sn_converted_in(s, f, p->sin, SONDE_DTYPE_F32, k->sin);
    if (sn_has(s, p->ids)) {
        r.ids = sn_in(s, f, p->ids)->data;
        const int64_t n = k->offset ? 1 : k->batch * k->len, last = k->offset ? k->len : 1;
        for (int64_t i = 0; i < n; i++)
            if (r.ids[i] < 0 || last > k->rows || r.ids[i] > k->rows - last)
                return sn_run_fail(s, f, "position %lld is outside of tables with %lld rows",
                                   (long long)r.ids[i], (long long)k->rows);
        r.id_batch = k->len;
        r.id_len = 1;
    } else {
        r.table_batch = k->len;
    }
    sn_heads work = y;
    if (k->convert)
        work =
            sn_heads_bhsd(SONDE_DTYPE_F32, sn_piece_ptr(f, k->x), x.batch, x.heads, x.len, x.size);
    sn_heads_copy(&work, &x, NULL, f->pool);
    if (k->offset) {
        /* One start for all: the table begins there. */
        const int64_t given = r.ids[0], most = k->rows - k->len;
        const int64_t skip = given < 0 ? 0 : given < most ? given : most; /* it may have changed */
        r.cos += skip * k->half;
        r.sin += skip * k->half;
        r.rows -= skip;
        r.ids = NULL;
    }
    sn_heads_rotate(&work, &r, f->pool);
    if (k->convert)
        sn_heads_copy(&y, &work, NULL, f->pool);
    return SONDE_OK;
}

#define ROTARY(DOMAIN, SINCE, MIN_IN, PREPARE)                                                     \
    {                                                                                              \
        {.name = "RotaryEmbedding",                                                                \
         .domain = DOMAIN,                                                                         \
         .since = SINCE,                                                                           \
         .min_in = MIN_IN,                                                                         \
         .max_in = 4,                                                                              \
         .min_out = 1,                                                                             \
         .max_out = 1,                                                                             \
         .params_size = sizeof(rotary_params),                                                     \
         .prepare = PREPARE,                                                                       \
         .infer = infer_rotary,                                                                    \
         .bind = bind_rotary,                                                                      \
         .run = run_rotary,                                                                        \
         .types = "f32 f16 bf16"},                                                                 \
        {                                                                                          \
            .name = NULL                                                                           \
        }                                                                                          \
    }
const sn_op sn_op_rotary_embedding[] = ROTARY("", 23, 3, prepare_onnx);
const sn_op sn_op_ms_rotary_embedding[] = ROTARY(SN_MS_DOMAIN, 1, 4, prepare_ms);
