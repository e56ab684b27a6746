/* SPDX-License-Identifier: Apache-2.0 */
/* QGemm of com.microsoft: A · B + C over bytes with their zero points taken off, summed in int32,
 * then scaled to bytes again, or to f32 when no scale of the result is given. Zero point and scale
 * of B: one, or one per column. */
#include "compute/channels_last.h"
#include "compute/q8.h"
#include "ops/microsoft/qlinear.h"
#include "ops/shared/checks.h"
#include "ops/shared/sparse_weights.h"
#include "ops/shared/zero_points.h"

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

typedef struct gemm_params {
    int64_t turn_a, turn_b;
    float alpha;
} gemm_params;

static sonde_status prepare(sn_prep *p)
{
    gemm_params *r = p->params;
    SN_TRY(sn_prep_int(p, "transA", 0, &r->turn_a));
    SN_TRY(sn_prep_int(p, "transB", 0, &r->turn_b));
    return sn_prep_float(p, "alpha", 1.0f, &r->alpha);
}

static sonde_status infer(sn_infer *c)
{
    static const sn_dtype bytes[] = {SONDE_DTYPE_U8, SONDE_DTYPE_I8}, i32[] = {SONDE_DTYPE_I32};
    const gemm_params *r = c->params;
    const bool quantized = sn_infer_has(c, Y_SCALE);
    SN_TRY(sn_check_dtype(c, A, bytes, 2));
    SN_TRY(sn_check_dtype(c, B, bytes, 2));
    SN_TRY(sn_check_dtype(c, C, i32, 1));
    if (!sn_infer_has(c, A_SCALE) || !sn_infer_has(c, B_SCALE))
        return sn_infer_fail(c, "the scales of A and B are required");
    if (quantized && !sn_infer_has(c, Y_ZERO))
        return sn_infer_fail(c, "a scale of the result needs a zero point");
    const sn_dtype dtype = quantized ? c->in[Y_ZERO]->type.dtype : SONDE_DTYPE_F32;
    const sn_type *a = &c->in[A]->type, *b = &c->in[B]->type;
    if (a->rank < 0 || b->rank < 0)
        return sn_infer_tensor(c, 0, dtype, NULL, -1);
    if (a->rank != 2 || b->rank != 2)
        return sn_infer_fail(c, "A and B must be matrices");
    const sn_dim ka = a->dims[!r->turn_a], kb = b->dims[r->turn_b != 0];
    if (sn_dim_known(ka) && sn_dim_known(kb) && ka != kb)
        return sn_infer_fail(c, "inner dimensions %lld and %lld differ", (long long)ka,
                             (long long)kb);
    const sn_dim dims[2] = {a->dims[r->turn_a != 0], b->dims[!r->turn_b]};
    return sn_infer_tensor(c, 0, dtype, dims, 2);
}

static sonde_status pack(sn_pack_request *q)
{
    const gemm_params *r = q->params;
    if (sn_weights_pack_sparse_bytes(q, B, r->turn_b ? SN_SPARSE_TURNED : SN_SPARSE_PLAIN,
                                     r->turn_a ? -1 : sn_weights_rows(q->in[A])))
        return SONDE_OK;
    q->pack[B] = (uint8_t)sn_q8_gemm_pack_id(q->in[B]->type.dtype, q->cpu_flags);
    q->pack_arg[B] = r->turn_b != 0;
    return SONDE_OK;
}

typedef struct gemm_bound {
    sn_q8_plan plan;
    sn_channels_last turned; /* A that is stored as [k, m] */
    sn_piece a, core;
    int64_t c_row, c_column; /* steps in C; 0 where it is broadcast */
} gemm_bound;

static sonde_status check_per_column(sn_bind *b, uint32_t i, int64_t n, sn_dtype t)
{
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    if (b->in[i]->type.dtype != t || !sn_is_per_column(&b->in[i]->type, n))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u must be %s, one or one per column", i,
                            sn_dtype_onnx_name(t));
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const gemm_params *r = b->params;
    gemm_bound *k = SN_NEW(b->arena, gemm_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *a = &b->in[A]->type, *w = &b->in[B]->type;
    const sn_dtype y_type = b->out[0].type.dtype;
    const sn_gemm_desc d = {.m = a->dims[r->turn_a != 0],
                            .k = a->dims[!r->turn_a],
                            .n = w->dims[!r->turn_b],
                            .b_count = 1};
    sn_q8_desc q = sn_q8_product(&d);
    q.turned = r->turn_b != 0;
    q.x_type = a->dtype;
    q.w_type = w->dtype;
    q.y_type = y_type;
    sn_weights_describe(b->in[B], &q);
    SN_TRY(sn_qparam_check(b, A_SCALE, a->dtype));
    SN_TRY(check_per_column(b, B_SCALE, d.n, SONDE_DTYPE_F32));
    SN_TRY(check_per_column(b, B_ZERO, d.n, w->dtype));
    if (Y_SCALE < b->n_in && b->in[Y_SCALE])
        SN_TRY(sn_qparam_check(b, Y_SCALE, y_type));
    if (C < b->n_in && b->in[C]) {
        const sn_type *c = &b->in[C]->type;
        const int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1;
        const int64_t rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
        if (c->rank > 2 || (columns != 1 && columns != d.n) || (rows != 1 && rows != d.m))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "C does not broadcast to the result");
        k->c_column = columns > 1;
        k->c_row = rows > 1 ? columns : 0;
    }
    SN_TRY(sn_q8_plan_make(&k->plan, &q, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    if (r->turn_a) {
        k->turned = (sn_channels_last){1, d.k, d.m, d.k, 1};
        k->a = sn_carve(&b->workspace, sn_count(d.m, d.k, 1, 1), 1);
    }
    k->core = sn_carve_inner(&b->workspace, &k->plan.workspace);
    b->bound = k;
    b->kernel = k->plan.name;
    b->flops = k->plan.flops;
    b->arithmetic = k->plan.arithmetic;
    return SONDE_OK;
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const gemm_params *r = s->params;
    const gemm_bound *k = s->bound;
    const sn_tensor *b_scale = sn_in(s, f, B_SCALE);
    const sn_tensor *b_zero = sn_has(s, B_ZERO) ? sn_in(s, f, B_ZERO) : NULL;
    const sn_qparam qa = sn_qparam_read(s, f, A_SCALE);
    const sn_qparam qy = sn_has(s, Y_SCALE) ? sn_qparam_read(s, f, Y_SCALE) : (sn_qparam){1, 0};
    const float a_scale = qa.scale * r->alpha;
    sn_q8_args a = {.x = sn_in(s, f, A)->data,
                    .w = sn_in(s, f, B)->data,
                    .y = sn_out(s, f, 0)->data,
                    .x_zero = {sn_in(s, f, A)->dtype, NULL, 1},
                    .bias = sn_has(s, C) ? sn_in(s, f, C)->data : NULL,
                    .bias_row = k->c_row,
                    .bias_column = k->c_column,
                    .x_scale = &a_scale,
                    .x_scales = 1,
                    .w_scale = b_scale->data,
                    .w_scales = sn_tensor_count(b_scale),
                    .y_scale = qy.scale,
                    .y_zero = qy.zero,
                    .workspace = sn_piece_ptr(f, k->core),
                    .cancel = f->cancel};
    if (sn_has(s, A_ZERO))
        a.x_zero.data = sn_in(s, f, A_ZERO)->data;
    if (b_zero)
        a.w_zero = (sn_byte_zeros){b_zero->dtype, b_zero->data, sn_tensor_count(b_zero)};
    if (sn_tensor_count(sn_out(s, f, 0)) == 0)
        return SONDE_OK;
    if (r->turn_a) {
        void *turned = sn_piece_ptr(f, k->a);
        sn_channels_to_last(&k->turned, k->plan.cpu_flags, a.x, turned, f->pool);
        a.x = turned;
    }
    return sn_q8_run(&k->plan, &a, f->pool) ? SONDE_OK : sn_fail_cancelled(f);
}

const sn_op sn_op_ms_qgemm[] = {{.name = "QGemm",
                                 .domain = SN_MS_DOMAIN,
                                 .since = 1,
                                 .min_in = 6,
                                 .max_in = 9,
                                 .min_out = 1,
                                 .max_out = 1,
                                 .params_size = sizeof(gemm_params),
                                 .prepare = prepare,
                                 .infer = infer,
                                 .pack = pack,
                                 .bind = bind,
                                 .run = run,
                                 .flags = SN_OP_TILES,
                                 .types = "u8 i8",
                                 .attributes = "alpha transA transB"},
                                {.name = NULL}};
