/* SPDX-License-Identifier: Apache-2.0 */
/* EmbedLayerNormalization of com.microsoft: rows of the word, position and segment tables are
 * looked up, added and normalised; the mask is counted per sequence. */
#include <string.h>

#include "compute/embedding.h"
#include "compute/norm.h"
#include "ops/shared/converted.h"

enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, GAMMA, BETA, MASK, POSITION_IDS, N_IN };
enum { Y, MASK_INDEX, SUM };

typedef struct embed_params {
    float epsilon;
} embed_params;

typedef struct embed_bound {
    sn_norm_plan plan;
    int64_t batch, len, position_rows; /* rows of position_ids: 1 or batch */
    sn_piece gamma, beta, y;           /* in f32 */
    sn_piece sum;
} embed_bound;

static sonde_status prepare_embed(sn_prep *p)
{
    embed_params *e = p->params;
    return sn_prep_float(p, "epsilon", 1e-12f, &e->epsilon);
}

static sonde_status infer_embed(sn_infer *c)
{
    const sn_type *ids = &c->in[IDS]->type;
    if (!sn_infer_has(c, WORDS) || !sn_infer_has(c, POSITIONS) || !sn_infer_has(c, GAMMA) ||
        !sn_infer_has(c, BETA))
        return sn_infer_fail(c, "tables, gamma and beta are required");
    const sn_type *words = &c->in[WORDS]->type;
    sn_dim y[3] = {SN_DIM_UNKNOWN, SN_DIM_UNKNOWN, SN_DIM_UNKNOWN};
    if ((ids->rank >= 0 && ids->rank != 2) || (words->rank >= 0 && words->rank != 2))
        return sn_infer_fail(c, "ids and tables must have rank 2");
    if (ids->rank == 2)
        memcpy(y, ids->dims, 2 * sizeof *y);
    if (words->rank == 2)
        y[2] = words->dims[1];
    SN_TRY(sn_infer_tensor(c, Y, words->dtype, y, 3));
    SN_TRY(sn_infer_tensor(c, MASK_INDEX, SONDE_DTYPE_I32, y, 1));
    return sn_infer_tensor(c, SUM, words->dtype, y, 3);
}

/* An int32 input of [batch or 1, len]. */
static sonde_status check_ids(sn_bind *b, uint32_t i, const embed_bound *k, bool one)
{
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type;
    if (t->rank != 2 || t->dtype != SONDE_DTYPE_I32 || t->dims[1] != k->len ||
        (t->dims[0] != k->batch && !(one && t->dims[0] == 1)))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u does not fit the ids", i);
    return SONDE_OK;
}

static sonde_status bind_embed(sn_bind *b)
{
    const embed_params *e = b->params;
    embed_bound *k = SN_NEW(b->arena, embed_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *ids = &b->in[IDS]->type, *words = &b->in[WORDS]->type;
    const int64_t hidden = words->dims[1];
    k->batch = ids->dims[0];
    k->len = ids->dims[1];
    SN_TRY(check_ids(b, IDS, k, false));
    SN_TRY(check_ids(b, SEGMENTS, k, false));
    SN_TRY(check_ids(b, MASK, k, false));
    SN_TRY(check_ids(b, POSITION_IDS, k, true));
    k->position_rows =
        b->n_in > POSITION_IDS && b->in[POSITION_IDS] ? b->in[POSITION_IDS]->type.dims[0] : 0;
    if (sn_compute_float(words->dtype) != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(words->dtype));
    for (uint32_t i = POSITIONS; i <= SEGMENT_TABLE; i++)
        if (b->in[i] && (b->in[i]->type.rank != 2 || b->in[i]->type.dims[1] != hidden ||
                         b->in[i]->type.dtype != words->dtype))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "table %u does not fit the words", i);
    for (uint32_t i = GAMMA; i <= BETA; i++)
        if (b->in[i]->type.rank != 1 || b->in[i]->type.dims[0] != hidden ||
            b->in[i]->type.dtype != words->dtype)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u does not fit the words", i);
    if ((b->in[SEGMENTS] != NULL) != (b->in[SEGMENT_TABLE] != NULL))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "segment ids and their table must come together");
    int64_t rows, total;
    if (!sn_i64_mul(k->batch, k->len, &rows) || !sn_i64_mul(rows, hidden, &total))
        return sn_bind_fail(b, SONDE_LIMIT, "the input is too large");
    k->plan = (sn_norm_plan){
        .dtype = SONDE_DTYPE_F32, .rows = rows, .n = hidden, .epsilon = (double)e->epsilon};
    sn_norm_choose_kernels(&k->plan, b->cpu_flags);
    k->sum = sn_carve(&b->workspace, total, sizeof(float));
    k->gamma = sn_converted_carve(&b->workspace, b->in[GAMMA], SONDE_DTYPE_F32);
    k->beta = sn_converted_carve(&b->workspace, b->in[BETA], SONDE_DTYPE_F32);
    k->y = sn_converted_carve(&b->workspace, &b->out[Y], SONDE_DTYPE_F32);
    b->bound = k;
    b->kernel = "f32_embed_layer_norm";
    b->flops = (uint64_t)total * 10;
    return SONDE_OK;
}

/* The table in input i, looked up by the n ids of input `ids` (absent: by position). */
static sn_embedding_table table_in(const sn_step *s, const sn_frame *f, uint32_t i, uint32_t ids,
                                   int64_t n)
{
    sn_embedding_table t = {.n = n};
    if (sn_has(s, i)) {
        const sn_tensor *x = sn_in(s, f, i);
        t.dtype = x->dtype;
        t.data = x->data;
        t.rows = x->dims[0];
    }
    t.ids = sn_has(s, ids) ? sn_in(s, f, ids)->data : NULL;
    return t;
}

static sonde_status run_embed(const sn_step *s, sn_frame *f)
{
    const embed_bound *k = s->bound;
    const int64_t rows = k->plan.rows;
    float *sum = sn_piece_ptr(f, k->sum);
    const sn_embedding_table tables[3] = {
        table_in(s, f, WORDS, IDS, rows),
        table_in(s, f, POSITIONS, POSITION_IDS, k->position_rows <= 1 ? k->len : rows),
        table_in(s, f, SEGMENT_TABLE, SEGMENTS, rows)};
    const int64_t wrong = sn_embedding_run(tables, 3, rows, k->plan.n, sum);
    if (wrong >= 0)
        return sn_run_fail(s, f, "an id of token %lld is outside of its table", (long long)wrong);
    if (sn_wants(s, MASK_INDEX))
        sn_embedding_lengths(sn_out(s, f, MASK_INDEX)->data,
                             sn_has(s, MASK) ? sn_in(s, f, MASK)->data : NULL, k->batch, k->len);
    if (sn_wants(s, SUM)) {
        sn_tensor *out = sn_out(s, f, SUM);
        sn_store_f32(f->ctx->cpu.flags, out->dtype, out->data, sum, (size_t)sn_tensor_count(out),
                     (sn_rounding){0});
    }
    const sn_dtype f32 = SONDE_DTYPE_F32;
    if (rows > 0 && k->plan.n > 0)
        sn_norm_run(&k->plan, sn_converted_out(s, f, Y, f32, k->y), sum,
                    sn_converted_in(s, f, GAMMA, f32, k->gamma),
                    sn_converted_in(s, f, BETA, f32, k->beta), NULL, NULL, f->pool);
    sn_converted_done(s, f, Y, f32, k->y);
    return SONDE_OK;
}

const sn_op sn_op_ms_embed_layer_norm[] = {{.name = "EmbedLayerNormalization",
                                            .domain = SN_MS_DOMAIN,
                                            .since = 1,
                                            .min_in = 1,
                                            .max_in = N_IN,
                                            .min_out = 1,
                                            .max_out = 3,
                                            .params_size = sizeof(embed_params),
                                            .prepare = prepare_embed,
                                            .infer = infer_embed,
                                            .bind = bind_embed,
                                            .run = run_embed,
                                            .types = "i32",
                                            .attributes = "epsilon mask_index_type"},
                                           {.name = NULL}};
