/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulInteger and QLinearMatMul: products of bytes (compute/q8.h) or float8
 * (compute/integer_gemm.h), whose zero points and scales are inputs. */
#include "compute/integer_gemm.h"
#include "compute/q8.h"
#include "ops/shared/checks.h"
#include "ops/shared/converted.h"
#include "ops/shared/sparse_weights.h"
#include "ops/shared/zero_points.h"

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

/* ------------------------------------------------------------------ infer */
static sonde_status check_types(sn_infer *c, const matmul_params *r)
{
    static const sn_dtype narrow[] = {SONDE_DTYPE_U8,       SONDE_DTYPE_I8,
                                      SONDE_DTYPE_F8E4M3FN, SONDE_DTYPE_F8E4M3FNUZ,
                                      SONDE_DTYPE_F8E5M2,   SONDE_DTYPE_F8E5M2FNUZ};
    const int n = r->quantized ? 6 : 2;
    SN_TRY(sn_check_dtype(c, r->at.a, narrow, n));
    SN_TRY(sn_check_dtype(c, r->at.b, narrow, n));
    if (sn_infer_has(c, r->at.a_zero))
        SN_TRY(sn_check_same_dtype(c, r->at.a_zero, r->at.a));
    if (sn_infer_has(c, r->at.b_zero))
        SN_TRY(sn_check_same_dtype(c, r->at.b_zero, r->at.b));
    if (!r->quantized)
        return SONDE_OK;
    SN_TRY(sn_check_dtype(c, r->at.y_zero, narrow, n));
    SN_TRY(sn_check_float(c, r->at.a_scale));
    SN_TRY(sn_check_float(c, r->at.b_scale));
    return sn_check_float(c, r->at.y_scale);
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
    return sn_infer_bounded(c, 0, dtype, dims, rank);
}

/* Are both sides bytes, and the result bytes or int32? */
static bool are_exact(const matmul_params *r, const sn_fact *const *in)
{
    return sn_is_byte(in[r->at.a]->type.dtype) && sn_is_byte(in[r->at.b]->type.dtype) &&
           (!r->quantized || sn_is_byte(in[r->at.y_zero]->type.dtype));
}

/* ------------------------------------------------------------------ pack, bind, run */
static sonde_status pack(sn_pack_request *q)
{
    const matmul_params *r = q->params;
    if (are_exact(r, q->in) &&
        !sn_weights_pack_sparse_bytes(q, r->at.b, SN_SPARSE_PLAIN, sn_weights_rows(q->in[r->at.a])))
        q->pack[r->at.b] = (uint8_t)sn_q8_gemm_pack_id(q->in[r->at.b]->type.dtype, q->cpu_flags);
    return SONDE_OK;
}

typedef struct matmul_bound {
    bool bytes; /* of both sides and the result: */
    sn_q8_plan q8;
    sn_integer_gemm_plan plan; /* or else this */
    sn_piece a, b, y, acc, core;
    sn_piece a_zero, b_zero, a_scale, b_scale, y_scale, y_zero; /* in f32 */
} matmul_bound;

/* One number per row (column) of every matrix: the dims of `matrices`, but for the last (second
 * last), which is 1. In one dim they are one after the other. */
static bool is_per_matrix(const sn_type *t, const sn_type *matrices, bool rows)
{
    int64_t count, want = 1;
    bool same = t->rank == matrices->rank;
    if (matrices->rank < 2)
        return false;
    for (int i = 0; i < matrices->rank; i++) {
        const bool gone = i == matrices->rank - (rows ? 1 : 2);
        const int64_t dim = gone ? 1 : matrices->dims[i];
        want *= dim;
        same = same && t->dims[i] == dim;
    }
    return same || (t->rank == 1 && sn_type_count(t, &count) && count == want);
}

/* Zero points and scales: one for all, one per row (column), or one per row of every matrix. */
static sonde_status check_param(sn_bind *b, uint32_t i, uint32_t operand, bool rows, int64_t n)
{
    if (i == 0 || i >= b->n_in || !b->in[i])
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type, *of = &b->in[operand]->type;
    if ((rows ? sn_is_per_row(t, n) : sn_is_per_column(t, n)) || is_per_matrix(t, of, rows))
        return SONDE_OK;
    return sn_bind_fail(b, SONDE_UNSUPPORTED,
                        "the shape of input %u fits neither one number nor one per %s", i,
                        rows ? "row" : "column");
}

static sonde_status check_one(sn_bind *b, uint32_t i)
{
    int64_t n;
    if (i == 0 || i >= b->n_in || !b->in[i] || (sn_type_count(&b->in[i]->type, &n) && n == 1))
        return SONDE_OK;
    return sn_bind_fail(b, SONDE_UNSUPPORTED, "input %u must be one number", i);
}

static sonde_status check_params(sn_bind *b, const sn_gemm_desc *d)
{
    const matmul_ports *at = &((const matmul_params *)b->params)->at;
    SN_TRY(check_param(b, at->a_scale, at->a, true, d->m));
    SN_TRY(check_param(b, at->a_zero, at->a, true, d->m));
    SN_TRY(check_param(b, at->b_scale, at->b, false, d->n));
    SN_TRY(check_param(b, at->b_zero, at->b, false, d->n));
    SN_TRY(check_one(b, at->y_scale));
    return check_one(b, at->y_zero);
}

/* One matrix, and how matrices of a and b are combined; *a_count: matrices of a. */
static sonde_status describe(sn_bind *b, sn_gemm_desc *d, int64_t *a_count)
{
    const matmul_params *r = b->params;
    const sn_type *ta = &b->in[r->at.a]->type, *tb = &b->in[r->at.b]->type;
    const int ra = ta->rank > 2 ? ta->rank - 2 : 0, rb = tb->rank > 2 ? tb->rank - 2 : 0,
              rank = ra > rb ? ra : rb;
    d->m = ta->rank > 1 ? ta->dims[ta->rank - 2] : 1;
    d->n = tb->rank > 1 ? tb->dims[tb->rank - 1] : 1;
    d->k = ta->dims[ta->rank - 1];
    d->batch_rank = rank;
    *a_count = d->b_count = 1;
    int64_t batches = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const int64_t da = i >= rank - ra ? ta->dims[i - (rank - ra)] : 1;
        const int64_t db = i >= rank - rb ? tb->dims[i - (rank - rb)] : 1;
        d->batch[i] = da == 1 ? db : da;
        d->a_batch[i] = da == 1 ? 0 : *a_count;
        d->b_batch[i] = db == 1 ? 0 : d->b_count;
        if (!sn_i64_mul(*a_count, da, a_count) || !sn_i64_mul(d->b_count, db, &d->b_count) ||
            !sn_i64_mul(batches, d->batch[i], &batches))
            return sn_bind_fail(b, SONDE_LIMIT, "the matrices are too large");
    }
    return SONDE_OK;
}

/* Room for a zero point or a scale in f32. */
static sn_piece carve_param(sn_bind *b, uint32_t i)
{
    const bool there = i != 0 && i < b->n_in;
    return sn_converted_carve(&b->workspace, there ? b->in[i] : NULL, SONDE_DTYPE_F32);
}

static sonde_status bind_bytes(sn_bind *b, matmul_bound *k, const sn_gemm_desc *d)
{
    const matmul_params *r = b->params;
    const sn_fact *w = b->in[r->at.b];
    sn_q8_desc q = sn_q8_product(d);
    q.x_type = b->in[r->at.a]->type.dtype;
    q.w_type = w->type.dtype;
    q.y_type = b->out[0].type.dtype;
    sn_weights_describe(w, &q);
    SN_TRY(sn_q8_plan_make(&k->q8, &q, b->cpu_flags, b->ctx->cpu.l2_bytes, b->threads, b->err));
    k->core = sn_carve_inner(&b->workspace, &k->q8.workspace);
    b->kernel = k->q8.name;
    b->flops = k->q8.flops;
    b->arithmetic = k->q8.arithmetic;
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const matmul_params *r = b->params;
    const matmul_ports *at = &r->at;
    matmul_bound *k = SN_NEW(b->arena, matmul_bound);
    sn_gemm_desc d = {.alpha = 1.0f, .beta = 1.0f};
    int64_t a_count;
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    SN_TRY(describe(b, &d, &a_count));
    SN_TRY(check_params(b, &d));
    k->a_scale = carve_param(b, at->a_scale);
    k->b_scale = carve_param(b, at->b_scale);
    k->y_scale = carve_param(b, at->y_scale);
    b->bound = k;
    k->bytes = are_exact(r, b->in);
    if (k->bytes)
        return bind_bytes(b, k, &d);
    sn_integer_gemm_plan *p = &k->plan;
    SN_TRY(sn_integer_gemm_plan_make(p, &d, a_count, b->in[at->a]->type.dtype,
                                     b->in[at->b]->type.dtype, r->quantized, b->cpu_flags,
                                     b->ctx->cpu.l2_bytes, b->threads, b->err));
    k->a = sn_carve(&b->workspace, p->a_floats, sizeof(float));
    k->b = sn_carve(&b->workspace, p->b_floats, sizeof(float));
    k->y = sn_carve(&b->workspace, p->y_floats, sizeof(float));
    k->acc = sn_carve(&b->workspace, p->acc_ints, sizeof(int32_t));
    k->core = sn_carve_inner(&b->workspace, &p->plan.workspace);
    k->a_zero = carve_param(b, at->a_zero);
    k->b_zero = carve_param(b, at->b_zero);
    k->y_zero = carve_param(b, at->y_zero);
    b->kernel = p->name;
    b->flops = p->flops;
    return SONDE_OK;
}

static sn_gemm_numbers numbers_in(const sn_step *s, const sn_frame *f, uint32_t i, sn_piece piece)
{
    if (i == 0 || !sn_has(s, i))
        return (sn_gemm_numbers){0};
    return (sn_gemm_numbers){sn_converted_in(s, f, i, SONDE_DTYPE_F32, piece),
                             sn_tensor_count(sn_in(s, f, i))};
}

static sonde_status run_bytes(const sn_step *s, sn_frame *f)
{
    const matmul_params *r = s->params;
    const matmul_ports *at = &r->at;
    const matmul_bound *k = s->bound;
    sn_q8_args a = {.x = sn_in(s, f, at->a)->data,
                    .w = sn_in(s, f, at->b)->data,
                    .y = sn_out(s, f, 0)->data,
                    .x_zero = sn_zeros_in(s, f, at->a_zero),
                    .w_zero = sn_zeros_in(s, f, at->b_zero),
                    .workspace = sn_piece_ptr(f, k->core),
                    .cancel = f->cancel};
    if (r->quantized) {
        const sn_gemm_numbers x = numbers_in(s, f, at->a_scale, k->a_scale);
        const sn_gemm_numbers w = numbers_in(s, f, at->b_scale, k->b_scale);
        const sn_byte_zeros y_zero = sn_zeros_in(s, f, at->y_zero);
        a.x_scale = x.data;
        a.x_scales = x.n;
        a.w_scale = w.data;
        a.w_scales = w.n;
        a.y_scale = numbers_in(s, f, at->y_scale, k->y_scale).data[0];
        a.y_zero = sn_byte_zero(&y_zero, 0);
    }
    return sn_q8_run(&k->q8, &a, f->pool) ? SONDE_OK : sn_fail_cancelled(f);
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const matmul_params *r = s->params;
    const matmul_ports *at = &r->at;
    const matmul_bound *k = s->bound;
    sn_tensor *y = sn_out(s, f, 0);
    if (sn_tensor_count(y) == 0)
        return SONDE_OK;
    if (k->bytes)
        return run_bytes(s, f);
    sn_integer_gemm_args a = {.a = sn_in(s, f, at->a)->data,
                              .b = sn_in(s, f, at->b)->data,
                              .a_zero = numbers_in(s, f, at->a_zero, k->a_zero),
                              .b_zero = numbers_in(s, f, at->b_zero, k->b_zero),
                              .y = y->data,
                              .y_type = y->dtype,
                              .a_f32 = sn_piece_ptr(f, k->a),
                              .b_f32 = sn_piece_ptr(f, k->b),
                              .y_f32 = sn_piece_ptr(f, k->y),
                              .acc = sn_piece_ptr(f, k->acc),
                              .core = sn_piece_ptr(f, k->core)};
    if (r->quantized) {
        a.a_scale = numbers_in(s, f, at->a_scale, k->a_scale);
        a.b_scale = numbers_in(s, f, at->b_scale, k->b_scale);
        a.y_scale = numbers_in(s, f, at->y_scale, k->y_scale).data[0];
        a.y_zero = numbers_in(s, f, at->y_zero, k->y_zero).data[0];
    }
    sn_integer_gemm_run(&k->plan, &a, f->pool);
    return SONDE_OK;
}

#define INTEGER_MATMUL(NAME, SINCE, MIN_IN, MAX_IN, PREPARE, TYPES)                                \
    {                                                                                              \
        .name = NAME, .domain = "", .since = SINCE, .min_in = MIN_IN, .max_in = MAX_IN,            \
        .min_out = 1, .max_out = 1, .params_size = sizeof(matmul_params), .prepare = PREPARE,      \
        .infer = infer, .pack = pack, .bind = bind, .run = run, .flags = SN_OP_TILES,              \
        .types = TYPES                                                                             \
    }
const sn_op sn_op_matmul_integer[] = {
    INTEGER_MATMUL("MatMulInteger", 10, 2, 4, prepare_integer, "i8 u8"), {.name = NULL}};
const sn_op sn_op_qlinear_matmul[] = {INTEGER_MATMUL("QLinearMatMul", 10, 8, 8, prepare_quantized,
                                                     "i8 u8 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz"),
                                      {.name = NULL}};
