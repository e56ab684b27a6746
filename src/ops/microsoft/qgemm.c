/* SPDX-License-Identifier: Apache-2.0 */
/* QGemm of com.microsoft: A · B + C over bytes with their zero points taken off, summed in int32,
 * then scaled to bytes again, or to f32 when no scale of the result is given. Zero point and scale
 * of B: one, or one per column. */
#include <string.h>

#include "compute/eltwise.h"
#include "compute/split.h"
#include "ops/microsoft/qlinear.h"
#include "ops/shared/data_movement.h"

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
    SN_TRY(sn_wide_dtype(c, A, bytes, 2));
    SN_TRY(sn_wide_dtype(c, B, bytes, 2));
    SN_TRY(sn_wide_dtype(c, C, i32, 1));
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

typedef struct gemm_bound {
    int64_t m, n, k;
    int64_t c_row, c_column; /* steps in C; 0 where it is broadcast */
    size_t a_at, acc_at;     /* a row of A in int32; a row of sums */
} gemm_bound;

static sonde_status check_per_column(sn_bind *b, uint32_t i, int64_t n, sn_dtype t)
{
    int64_t count;
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    if (b->in[i]->type.dtype != t || !sn_type_count(&b->in[i]->type, &count) ||
        (count != 1 && count != n))
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
    k->m = a->dims[r->turn_a != 0];
    k->k = a->dims[!r->turn_a];
    k->n = w->dims[!r->turn_b];
    SN_TRY(sn_qparam_check(b, A_SCALE, a->dtype));
    SN_TRY(check_per_column(b, B_SCALE, k->n, SONDE_DTYPE_F32));
    SN_TRY(check_per_column(b, B_ZERO, k->n, w->dtype));
    if (Y_SCALE < b->n_in && b->in[Y_SCALE])
        SN_TRY(sn_qparam_check(b, Y_SCALE, b->out[0].type.dtype));
    if (C < b->n_in && b->in[C]) {
        const sn_type *c = &b->in[C]->type;
        const int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1;
        const int64_t rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
        if (c->rank > 2 || (columns != 1 && columns != k->n) || (rows != 1 && rows != k->m))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "C does not broadcast to the result");
        k->c_column = columns > 1;
        k->c_row = rows > 1 ? columns : 0;
    }
    sn_room room = {0};
    k->a_at = sn_room_take(&room, k->k, sizeof(int32_t));
    k->acc_at = sn_room_take(&room, k->n, sizeof(int32_t));
    b->bound = k;
    b->kernel = "u8_gemm";
    b->flops = 2 * (uint64_t)k->m * (uint64_t)k->n * (uint64_t)k->k;
    return sn_room_done(b, &room);
}

typedef struct row_job {
    const gemm_bound *k;
    const gemm_params *r;
    const sn_tensor *b, *b_zero;
    const int32_t *a;
    int32_t *acc;
} row_job;

static int32_t b_zero_of(const row_job *j, int64_t column)
{
    if (!j->b_zero)
        return 0;
    return sn_byte_at(j->b_zero->dtype, j->b_zero->data,
                      sn_tensor_count(j->b_zero) == 1 ? 0 : column);
}

/* One function for each way B lies and is signed. Sums wrap as 32 bits do. */
#define SUM_COLUMNS(name, T)                                                                       \
    static void name(const row_job *j, int64_t lo, int64_t hi)                                     \
    {                                                                                              \
        const gemm_bound *k = j->k;                                                                \
        const T *b = j->b->data;                                                                   \
        uint32_t *acc = (uint32_t *)j->acc;                                                        \
        if (j->r->turn_b) {                                                                        \
            for (int64_t n = lo; n < hi; n++) {                                                    \
                const int32_t zero = b_zero_of(j, n);                                              \
                uint32_t sum = 0;                                                                  \
                for (int64_t i = 0; i < k->k; i++)                                                 \
                    sum += (uint32_t)(j->a[i] * ((int32_t)b[n * k->k + i] - zero));                \
                acc[n] = sum;                                                                      \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        memset(acc + lo, 0, (size_t)(hi - lo) * sizeof *acc);                                      \
        for (int64_t i = 0; i < k->k; i++)                                                         \
            for (int64_t n = lo; n < hi; n++)                                                      \
                acc[n] += (uint32_t)(j->a[i] * ((int32_t)b[i * k->n + n] - b_zero_of(j, n)));      \
    }
SUM_COLUMNS(sum_u8, uint8_t)
SUM_COLUMNS(sum_i8, int8_t)

static void sum_range(void *arg, size_t lo, size_t hi)
{
    const row_job *j = arg;
    (j->b->dtype == SONDE_DTYPE_U8 ? sum_u8 : sum_i8)(j, (int64_t)lo, (int64_t)hi);
}

static void finish_row(const sn_step *s, sn_frame *f, int64_t row, const int32_t *acc)
{
    const gemm_params *r = s->params;
    const gemm_bound *k = s->bound;
    const sn_tensor *scale = sn_in(s, f, B_SCALE), *c = sn_has(s, C) ? sn_in(s, f, C) : NULL;
    sn_tensor *y = sn_out(s, f, 0);
    const float a_scale = sn_qparam_read(s, f, A_SCALE).scale * r->alpha;
    const bool one = sn_tensor_count(scale) == 1;
    const sn_qparam out = sn_has(s, Y_SCALE) ? sn_qparam_read(s, f, Y_SCALE) : (sn_qparam){1, 0};
    for (int64_t n = 0; n < k->n; n++) {
        int32_t sum = acc[n];
        if (c)
            sum = (int32_t)((uint32_t)sum +
                            (uint32_t)((const int32_t *)c->data)[row * k->c_row + n * k->c_column]);
        const float factor = a_scale * ((const float *)scale->data)[one ? 0 : n];
        if (y->dtype == SONDE_DTYPE_F32)
            ((float *)y->data)[row * k->n + n] = (float)sum * factor;
        else
            sn_requantize(f->ctx->cpu.flags, y->dtype, (uint8_t *)y->data + row * k->n + n, &sum, 1,
                          factor / out.scale, out.zero);
    }
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const gemm_params *r = s->params;
    const gemm_bound *k = s->bound;
    const sn_tensor *a = sn_in(s, f, A);
    int32_t *wide = (int32_t *)(void *)(f->workspace + k->a_at),
            *acc = (int32_t *)(void *)(f->workspace + k->acc_at);
    const int32_t zero = sn_qparam_read(s, f, A_SCALE).zero;
    row_job j = {.k = k,
                 .r = r,
                 .b = sn_in(s, f, B),
                 .b_zero = sn_has(s, B_ZERO) ? sn_in(s, f, B_ZERO) : NULL,
                 .a = wide,
                 .acc = acc};
    for (int64_t row = 0; row < k->m; row++) {
        for (int64_t i = 0; i < k->k; i++)
            wide[i] =
                sn_byte_at(a->dtype, a->data, r->turn_a ? i * k->m + row : row * k->k + i) - zero;
        sn_parallel_range(f->pool, (size_t)k->n, (size_t)k->k, sum_range, &j);
        finish_row(s, f, row, acc);
        if (sn_move_cancelled(f))
            return sn_run_cancelled(s, f);
    }
    return SONDE_OK;
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
                                 .bind = bind,
                                 .run = run,
                                 .types = "u8 i8"},
                                {.name = NULL}};
