/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulInteger and QLinearMatMul: the inner dimension is cut into pieces whose f32 products are
 * exact (see integer.h); their sums meet in int32. Float8 operands of QLinearMatMul take the same
 * way, with sums in f32. */
#include <math.h>
#include <string.h>

#include "compute/eltwise.h"
#include "compute/gemm.h"
#include "compute/split.h"
#include "ops/shared/data_movement.h"
#include "ops/shared/integer.h"

/* Inputs; 0 behind a: absent. */
typedef struct matmul_ports {
    uint32_t a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero;
} matmul_ports;

typedef struct matmul_params {
    matmul_ports at;
    bool quantized;
} matmul_params;

static sonde_status prepare_integer(sn_prep *p)
{
    matmul_params *r = p->params;
    r->at = (matmul_ports){.b = 1, .a_zero = 2, .b_zero = 3};
    return SONDE_OK;
}

static sonde_status prepare_quantized(sn_prep *p)
{
    matmul_params *r = p->params;
    r->quantized = true;
    r->at = (matmul_ports){
        .a_scale = 1, .a_zero = 2, .b = 3, .b_scale = 4, .b_zero = 5, .y_scale = 6, .y_zero = 7};
    return SONDE_OK;
}

static bool is_f8(sn_dtype t)
{
    return t >= SONDE_DTYPE_F8E4M3FN && t <= SONDE_DTYPE_F8E5M2FNUZ;
}

/* ------------------------------------------------------------------ infer */
static sonde_status check_types(sn_infer *c, const matmul_params *r)
{
    static const sn_dtype narrow[] = {SONDE_DTYPE_U8,       SONDE_DTYPE_I8,
                                      SONDE_DTYPE_F8E4M3FN, SONDE_DTYPE_F8E4M3FNUZ,
                                      SONDE_DTYPE_F8E5M2,   SONDE_DTYPE_F8E5M2FNUZ};
    const int n = r->quantized ? 6 : 2;
    SN_TRY(sn_wide_dtype(c, r->at.a, narrow, n));
    SN_TRY(sn_wide_dtype(c, r->at.b, narrow, n));
    if (sn_infer_has(c, r->at.a_zero))
        SN_TRY(sn_wide_same_dtype(c, r->at.a_zero, r->at.a));
    if (sn_infer_has(c, r->at.b_zero))
        SN_TRY(sn_wide_same_dtype(c, r->at.b_zero, r->at.b));
    if (!r->quantized)
        return SONDE_OK;
    SN_TRY(sn_wide_dtype(c, r->at.y_zero, narrow, n));
    SN_TRY(sn_wide_float(c, r->at.a_scale));
    SN_TRY(sn_wide_float(c, r->at.b_scale));
    return sn_wide_float(c, r->at.y_scale);
}

static sonde_status infer(sn_infer *c)
{
    const matmul_params *r = c->params;
    const sn_type *a = &c->in[r->at.a]->type, *b = &c->in[r->at.b]->type;
    SN_TRY(check_types(c, r));
    const sn_dtype dtype = r->quantized ? c->in[r->at.y_zero]->type.dtype : SONDE_DTYPE_I32;
    if (a->rank < 0 || b->rank < 0)
        return sn_infer_tensor(c, 0, dtype, NULL, -1);
    if (a->rank == 0 || b->rank == 0)
        return sn_infer_fail(c, "matrices must have at least one dimension");
    const sn_dim ka = a->dims[a->rank - 1], kb = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (sn_dim_known(ka) && sn_dim_known(kb) && ka != kb)
        return sn_infer_fail(c, "inner dimensions %lld and %lld differ", (long long)ka,
                             (long long)kb);
    const sn_type outer_a = {.rank = a->rank > 2 ? a->rank - 2 : 0, .dims = a->dims};
    const sn_type outer_b = {.rank = b->rank > 2 ? b->rank - 2 : 0, .dims = b->dims};
    sn_dim dims[SN_MAX_RANK + 2];
    int rank;
    SN_TRY(sn_infer_broadcast(c, &outer_a, &outer_b, dims, &rank));
    if (a->rank > 1)
        dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[rank++] = b->dims[b->rank - 1];
    return sn_wide_out(c, 0, dtype, dims, rank);
}

/* ------------------------------------------------------------------ bind */
typedef struct matmul_bound {
    int64_t m, n, k, a_count, b_count, batches; /* matrices in a, in b, in the result */
    int64_t piece, pieces;
    sn_gemm_plan plan, last;
    bool exact;
    size_t a_at, b_at, y_at, acc_at, space_at;
} matmul_bound;

/* Zero points and scales: one for all, one per row (column), or one per row of every matrix. */
static sonde_status check_param(sn_bind *b, uint32_t i, int64_t per_matrix, int64_t count)
{
    const int64_t n = i && i < b->n_in ? sn_wide_count(b->in[i]) : 1;
    if (i == 0 || i >= b->n_in || !b->in[i] || n == 1 || n == per_matrix || n == per_matrix * count)
        return SONDE_OK;
    return sn_bind_fail(b, SONDE_UNSUPPORTED,
                        "input %u has %lld elements, expected 1, %lld or %lld", i, (long long)n,
                        (long long)per_matrix, (long long)(per_matrix * count));
}

static sonde_status describe(sn_bind *b, matmul_bound *k, sn_gemm_desc *d)
{
    const matmul_params *r = b->params;
    const sn_type *ta = &b->in[r->at.a]->type, *tb = &b->in[r->at.b]->type;
    const int ra = ta->rank > 2 ? ta->rank - 2 : 0, rb = tb->rank > 2 ? tb->rank - 2 : 0,
              rank = ra > rb ? ra : rb;
    k->m = ta->rank > 1 ? ta->dims[ta->rank - 2] : 1;
    k->n = tb->rank > 1 ? tb->dims[tb->rank - 1] : 1;
    k->k = ta->dims[ta->rank - 1];
    d->batch_rank = rank;
    k->a_count = k->b_count = k->batches = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const int64_t da = i >= rank - ra ? ta->dims[i - (rank - ra)] : 1;
        const int64_t db = i >= rank - rb ? tb->dims[i - (rank - rb)] : 1;
        d->batch[i] = da == 1 ? db : da;
        d->a_batch[i] = da == 1 ? 0 : k->a_count;
        d->b_batch[i] = db == 1 ? 0 : k->b_count;
        if (!sn_i64_mul(k->a_count, da, &k->a_count) || !sn_i64_mul(k->b_count, db, &k->b_count) ||
            !sn_i64_mul(k->batches, d->batch[i], &k->batches))
            return sn_bind_fail(b, SONDE_LIMIT, "the matrices are too large");
    }
    d->b_count = sn_max(k->b_count, 1);
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const matmul_params *r = b->params;
    matmul_bound *k = SN_NEW(b->arena, matmul_bound);
    sn_gemm_desc d = {.alpha = 1.0f, .beta = 1.0f};
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    SN_TRY(describe(b, k, &d));
    SN_TRY(check_param(b, r->at.a_scale, k->m, k->a_count));
    SN_TRY(check_param(b, r->at.a_zero, k->m, k->a_count));
    SN_TRY(check_param(b, r->at.b_scale, k->n, k->b_count));
    SN_TRY(check_param(b, r->at.b_zero, k->n, k->b_count));
    SN_TRY(check_param(b, r->at.y_scale, 1, 1));
    SN_TRY(check_param(b, r->at.y_zero, 1, 1));
    k->exact = sn_is_byte(b->in[r->at.a]->type.dtype) && sn_is_byte(b->in[r->at.b]->type.dtype);
    k->piece = sn_max(sn_min(SN_EXACT_TERMS, k->k), 1);
    k->pieces = sn_ceil_div(k->k, k->piece);
    d.m = k->m;
    d.n = k->n;
    d.k = k->piece;
    SN_TRY(sn_gemm_plan_make(&k->plan, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    d.k = k->k - (k->pieces - 1) * k->piece;
    if (k->pieces == 0)
        d.k = 0;
    SN_TRY(sn_gemm_plan_make(&k->last, &d, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    int64_t a, w, y;
    if (!sn_i64_mul(k->m * k->piece, k->a_count, &a) ||
        !sn_i64_mul(k->n * k->piece, k->b_count, &w) || !sn_i64_mul(k->m, k->n, &y) ||
        !sn_i64_mul(y, k->batches, &y))
        return sn_bind_fail(b, SONDE_LIMIT, "the matrices are too large");
    sn_room room = {0};
    k->a_at = sn_room_take(&room, a, sizeof(float));
    k->b_at = sn_room_take(&room, w, sizeof(float));
    k->y_at = sn_room_take(&room, y, sizeof(float));
    k->acc_at = sn_room_take(&room, r->quantized ? y : 0, sizeof(int32_t));
    k->space_at = sn_room_take(&room, (int64_t)k->plan.pack_bytes, 1);
    b->bound = k;
    b->kernel = k->exact ? "u8_gemm_exact_f32" : "f8_gemm_f32";
    b->flops = 2 * (uint64_t)y * (uint64_t)k->k;
    return sn_room_done(b, &room);
}

/* ------------------------------------------------------------------ run */
typedef struct widen_job {
    const sn_tensor *t, *zero; /* zero may be NULL */
    float *dst;
    int64_t rows, row; /* all matrices' rows; elements of a row in the tensor */
    int64_t first, n;  /* piece of the inner dimension (a), of the rows' elements */
    int64_t inner;     /* b: rows of one matrix; 0: a */
    uint32_t cpu_flags;
} widen_job;

static float zero_at(const sn_tensor *zero, int64_t i)
{
    return zero ? (float)sn_elem_f64(zero->dtype, zero->data, i) : 0.0f;
}

/* Rows of a, cut to the piece: dst[row][n]. */
static void widen_a(void *arg, size_t lo, size_t hi)
{
    const widen_job *j = arg;
    const int64_t zeros = j->zero ? sn_tensor_count(j->zero) : 1;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        const float zero = zero_at(j->zero, i % zeros);
        const uint8_t *src = (const uint8_t *)j->t->data + i * j->row + j->first;
        float *dst = j->dst + i * j->n;
        if (sn_is_byte(j->t->dtype)) {
            sn_bytes_to_f32(j->cpu_flags, j->t->dtype, dst, src, j->n, (int32_t)zero);
            continue;
        }
        for (int64_t k = 0; k < j->n; k++)
            dst[k] = sn_f8_to_f32(j->t->dtype, src[k]) - zero;
    }
}

/* Rows first … first+n-1 of every matrix of b: dst[matrix][n][columns]. */
static void widen_b(void *arg, size_t lo, size_t hi)
{
    const widen_job *j = arg;
    const int64_t zeros = j->zero ? sn_tensor_count(j->zero) : 1, columns = j->row;
    for (int64_t i = (int64_t)lo; i < (int64_t)hi; i++) {
        const int64_t matrix = i / j->n, at = j->first + i % j->n;
        const uint8_t *src = (const uint8_t *)j->t->data + (matrix * j->inner + at) * columns;
        float *dst = j->dst + i * columns;
        if (sn_is_byte(j->t->dtype) && zeros == 1) {
            sn_bytes_to_f32(j->cpu_flags, j->t->dtype, dst, src, columns,
                            (int32_t)zero_at(j->zero, 0));
            continue;
        }
        const int64_t base = zeros == columns ? 0 : matrix * columns;
        for (int64_t k = 0; k < columns; k++) {
            const float v = sn_is_byte(j->t->dtype) ? (float)sn_byte_at(j->t->dtype, src, k)
                                                    : sn_f8_to_f32(j->t->dtype, src[k]);
            dst[k] = v - zero_at(j->zero, zeros == 1 ? 0 : base + k);
        }
    }
}

static void multiply(const matmul_bound *k, widen_job *a, widen_job *b, float *y, void *acc,
                     void *space, sn_pool *pool)
{
    const int64_t cells = k->batches * k->m * k->n;
    for (int64_t part = 0; part < k->pieces; part++) {
        a->first = b->first = part * k->piece;
        a->n = b->n = sn_min(k->piece, k->k - a->first);
        sn_parallel_range(pool, (size_t)a->rows, (size_t)a->n, widen_a, a);
        sn_parallel_range(pool, (size_t)(k->b_count * b->n), (size_t)k->n, widen_b, b);
        sn_gemm_run(part + 1 < k->pieces ? &k->plan : &k->last, a->dst, b->dst, NULL, NULL, y,
                    space, pool);
        if (k->exact) {
            sn_exact_join(acc, y, cells, part == 0);
            continue;
        }
        float *sum = acc;
        for (int64_t i = 0; i < cells; i++)
            sum[i] = part == 0 ? y[i] : sum[i] + y[i];
    }
    if (k->pieces == 0)
        memset(acc, 0, (size_t)cells * sizeof(int32_t));
}

static void quantize(const sn_step *s, sn_frame *f, const matmul_bound *k, const void *acc)
{
    const matmul_params *r = s->params;
    const sn_gemm_desc *d = &k->plan.d;
    sn_tensor *y = sn_out(s, f, 0);
    const sn_tensor *sa = sn_in(s, f, r->at.a_scale), *sb = sn_in(s, f, r->at.b_scale);
    const sn_tensor *sy = sn_in(s, f, r->at.y_scale), *zero = sn_in(s, f, r->at.y_zero);
    const int64_t na = sn_tensor_count(sa), nb = sn_tensor_count(sb);
    const float out_scale = (float)sn_elem_f64(sy->dtype, sy->data, 0);
    for (int64_t row = 0; row < k->batches * k->m; row++) {
        int64_t ia = 0, ib = 0, rest = row / k->m;
        for (int i = d->batch_rank - 1; i >= 0; i--) {
            ia += rest % d->batch[i] * d->a_batch[i];
            ib += rest % d->batch[i] * d->b_batch[i];
            rest /= d->batch[i];
        }
        const float a = (float)sn_elem_f64(sa->dtype, sa->data, (ia * k->m + row % k->m) % na);
        if (nb == 1 && sn_is_byte(y->dtype) && k->exact) {
            const float scale = a * (float)sn_elem_f64(sb->dtype, sb->data, 0) / out_scale;
            sn_requantize(f->ctx->cpu.flags, y->dtype, (uint8_t *)y->data + row * k->n,
                          (const int32_t *)acc + row * k->n, k->n, scale,
                          sn_byte_at(zero->dtype, zero->data, 0));
            continue;
        }
        for (int64_t col = 0; col < k->n; col++) {
            const int64_t i = row * k->n + col;
            const float b = (float)sn_elem_f64(sb->dtype, sb->data, (ib * k->n + col) % nb),
                        scale = a * b / out_scale;
            if (sn_is_byte(y->dtype) && k->exact) {
                sn_requantize(f->ctx->cpu.flags, y->dtype, (uint8_t *)y->data + i,
                              (const int32_t *)acc + i, 1, scale,
                              sn_byte_at(zero->dtype, zero->data, 0));
                continue;
            }
            const float sum = k->exact ? (float)((const int32_t *)acc)[i] : ((const float *)acc)[i];
            const float v = sum * scale + (float)sn_elem_f64(zero->dtype, zero->data, 0);
            if (is_f8(y->dtype))
                ((uint8_t *)y->data)[i] = sn_f32_to_f8(y->dtype, v, true);
            else
                sn_elem_set_f64(y->dtype, y->data, i, (double)rintf(v));
        }
    }
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const matmul_params *r = s->params;
    const matmul_bound *k = s->bound;
    sn_tensor *y = sn_out(s, f, 0);
    void *acc = r->quantized ? (void *)(f->workspace + k->acc_at) : y->data;
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    widen_job a = {.t = sn_in(s, f, r->at.a),
                   .zero =
                       sn_has(s, r->at.a_zero) && r->at.a_zero ? sn_in(s, f, r->at.a_zero) : NULL,
                   .dst = sn_space_f32(f, k->a_at),
                   .rows = k->a_count * k->m,
                   .row = k->k,
                   .cpu_flags = f->ctx->cpu.flags};
    widen_job b = {.t = sn_in(s, f, r->at.b),
                   .zero =
                       sn_has(s, r->at.b_zero) && r->at.b_zero ? sn_in(s, f, r->at.b_zero) : NULL,
                   .dst = sn_space_f32(f, k->b_at),
                   .row = k->n,
                   .inner = k->k,
                   .cpu_flags = f->ctx->cpu.flags};
    multiply(k, &a, &b, sn_space_f32(f, k->y_at), acc, f->workspace + k->space_at, f->pool);
    if (r->quantized)
        quantize(s, f, k, acc);
    return SONDE_OK;
}

#define INTEGER_MATMUL(NAME, SINCE, MIN_IN, MAX_IN, PREPARE, TYPES)                                \
    {                                                                                              \
        .name = NAME, .domain = "", .since = SINCE, .min_in = MIN_IN, .max_in = MAX_IN,            \
        .min_out = 1, .max_out = 1, .params_size = sizeof(matmul_params), .prepare = PREPARE,      \
        .infer = infer, .bind = bind, .run = run, .types = TYPES                                   \
    }
const sn_op sn_op_matmul_integer[] = {
    INTEGER_MATMUL("MatMulInteger", 10, 2, 4, prepare_integer, "i8 u8"), {.name = NULL}};
const sn_op sn_op_qlinear_matmul[] = {INTEGER_MATMUL("QLinearMatMul", 10, 8, 8, prepare_quantized,
                                                     "i8 u8 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz"),
                                      {.name = NULL}};
