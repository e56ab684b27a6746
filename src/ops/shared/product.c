/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of every element type. f32 goes to the driver, 16-bit floats through f32 in the
 * workspace, f64 and integers through plain loops (integers wrap around). */
#include "ops/shared/product.h"

#include <string.h>

#include "compute/cast.h"
#include "compute/eltwise.h"
#include "compute/packs.h"
#include "ops/shared/tuned_plan.h"

typedef struct product_bound {
    sn_gemm_plan plan;
    size_t counts[4], y; /* elements, for the 16-bit types */
    size_t space;        /* bytes of the f32 copies in front of the plan's workspace */
} product_bound;

static int64_t dim_from_end(const int64_t *dims, int rank,
                            int i) /* batch dim i counted from the end */
{
    const int at = rank - 3 - i;
    return at >= 0 ? dims[at] : 1;
}

bool sn_product_shape(sn_gemm_desc *d, const int64_t *a, int a_rank, const int64_t *b, int b_rank)
{
    d->m = d->trans_a ? a[a_rank - 1] : a[a_rank - 2];
    d->k = d->trans_a ? a[a_rank - 2] : a[a_rank - 1];
    d->n = d->trans_b ? b[b_rank - 2] : b[b_rank - 1];
    d->b_count = 1;
    for (int i = 0; i < b_rank - 2; i++)
        d->b_count *= b[i];
    d->batch_rank = (a_rank > b_rank ? a_rank : b_rank) - 2;
    if (d->batch_rank > SN_GEMM_MAX_BATCH_RANK)
        return false;
    if (d->b_count == 1 && !d->trans_a) { /* one B for all: the batch is more rows */
        for (int i = 0; i < a_rank - 2; i++)
            d->m *= a[i];
        d->batch_rank = 0;
        return true;
    }
    int64_t a_step = 1, b_step = 1;
    for (int i = 0; i < d->batch_rank; i++) {
        const int64_t da = dim_from_end(a, a_rank, i), db = dim_from_end(b, b_rank, i);
        const int at = d->batch_rank - 1 - i;
        if (da != db && da != 1 && db != 1)
            return false;
        d->batch[at] = da == 1 ? db : da;
        d->a_batch[at] = da == 1 ? 0 : a_step;
        d->b_batch[at] = db == 1 ? 0 : b_step;
        a_step *= da;
        b_step *= db;
    }
    return true;
}

bool sn_product_addend(sn_gemm_desc *d, const sn_type *c)
{
    d->has_c = true;
    d->c_m = d->c_n = 0;
    const int64_t last = c->rank > 0 ? c->dims[c->rank - 1] : 1;
    int64_t rows = 1;
    for (int i = 0; i < c->rank - 1; i++)
        rows *= c->dims[i];
    if ((last != 1 && last != d->n) || (rows != 1 && rows != d->m) || d->batch_rank > 0)
        return false;
    d->c_n = last == 1 ? 0 : 1;
    d->c_m = rows == 1 ? 0 : last;
    if (d->n == 1 && last == 1)
        d->c_n = 1; /* one column: the same element either way, but a plain row for the kernel */
    return true;
}

sonde_status sn_product_pack(sn_pack_request *r, bool trans_b)
{
    const sn_fact *b = r->n_in > SN_PRODUCT_B ? r->in[SN_PRODUCT_B] : NULL;
    if (!b || !b->data || b->type.dtype != SONDE_DTYPE_F32 || b->type.rank < 2)
        return SONDE_OK;
    r->pack[SN_PRODUCT_B] = (uint8_t)sn_gemm_pack_id((unsigned)sn_cpu_block(r->cpu_flags));
    r->pack_arg[SN_PRODUCT_B] = trans_b;
    return SONDE_OK;
}

static const void *data_or_null(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return sn_has(s, i) ? sn_in(s, f, i)->data : NULL;
}

sonde_status sn_product_run(const sn_step *s, sn_frame *f)
{
    const product_bound *b = s->bound;
    sn_gemm_run(&b->plan, data_or_null(s, f, SN_PRODUCT_A), data_or_null(s, f, SN_PRODUCT_B),
                data_or_null(s, f, SN_PRODUCT_C), data_or_null(s, f, SN_PRODUCT_Z),
                sn_out(s, f, 0)->data, f->workspace, f->pool);
    return SONDE_OK;
}

static sonde_status run_half(const sn_step *s, sn_frame *f)
{
    const product_bound *b = s->bound;
    float *at = (float *)(void *)f->workspace, *copies[4] = {NULL};
    for (uint32_t i = 0; i < 4; i++) {
        if (!sn_has(s, i))
            continue;
        copies[i] = at;
        sn_cast_run(f->ctx->cpu.flags, SONDE_DTYPE_F32, at, sn_in(s, f, i)->dtype,
                    sn_in(s, f, i)->data, b->counts[i], (sn_rounding){0}, f->pool);
        at += b->counts[i];
    }
    sn_tensor *y = sn_out(s, f, 0);
    sn_gemm_run(&b->plan, copies[0], copies[1], copies[2], copies[3], at, f->workspace + b->space,
                f->pool);
    sn_cast_run(f->ctx->cpu.flags, y->dtype, y->data, SONDE_DTYPE_F32, at, b->y, (sn_rounding){0},
                f->pool);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ plain loops */
typedef struct plain_call {
    const sn_gemm_desc *d;
    const void *a, *b, *c, *z;
    void *y;
} plain_call;

/* alpha and beta act on doubles when they are not 1, as integers have no halves otherwise; what
 * comes out is cast as Cast does: truncated, saturated, NaN becomes 0. */
static double scaled_double(float by, double v)
{
    return (double)by * v;
}
#define SCALED(T, MIN, MAX)                                                                        \
    static T scaled_##T(float by, T v)                                                             \
    {                                                                                              \
        const double x = (double)by * (double)v;                                                   \
        return x != x ? 0 : x <= (double)(MIN) ? (MIN) : x >= (double)(MAX) ? (MAX) : (T)x;        \
    }
SCALED(int32_t, INT32_MIN, INT32_MAX)
SCALED(uint32_t, 0, UINT32_MAX)
SCALED(int64_t, INT64_MIN, INT64_MAX)
SCALED(uint64_t, 0, UINT64_MAX)

/* Row r of batch i. ACC is wide enough to wrap like T does. */
#define PLAIN_ROW(T, ACC)                                                                          \
    static void row_##T(void *arg, size_t task, int worker)                                        \
    {                                                                                              \
        const plain_call *call = arg;                                                              \
        const sn_gemm_desc *d = call->d;                                                           \
        const int64_t batch = (int64_t)task / d->m, r = (int64_t)task % d->m;                      \
        int64_t ia = 0, ib = 0, rest = batch;                                                      \
        (void)worker;                                                                              \
        for (int i = d->batch_rank - 1; i >= 0; i--) {                                             \
            ia += rest % d->batch[i] * d->a_batch[i];                                              \
            ib += rest % d->batch[i] * d->b_batch[i];                                              \
            rest /= d->batch[i];                                                                   \
        }                                                                                          \
        const T *a = (const T *)call->a + ia * d->m * d->k;                                        \
        const T *b = (const T *)call->b + ib * d->n * d->k;                                        \
        const T *c = call->c, *z = call->z;                                                        \
        T *y = (T *)call->y + (int64_t)task * d->n;                                                \
        for (int64_t j = 0; j < d->n; j++) {                                                       \
            ACC sum = 0;                                                                           \
            for (int64_t k = 0; k < d->k; k++)                                                     \
                sum += (ACC)a[d->trans_a ? k * d->m + r : r * d->k + k] *                          \
                       (ACC)b[d->trans_b ? j * d->k + k : k * d->n + j];                           \
            T v = d->alpha == 1.0f ? (T)sum : scaled_##T(d->alpha, (T)sum);                        \
            if (c) {                                                                               \
                const T add = c[r * d->c_m + j * d->c_n];                                          \
                v = (T)((ACC)v + (ACC)(d->beta == 1.0f ? add : scaled_##T(d->beta, add)));         \
            }                                                                                      \
            if (z)                                                                                 \
                v = (T)((ACC)v + (ACC)z[(int64_t)task * d->n + j]);                                \
            y[j] = v;                                                                              \
        }                                                                                          \
    }
PLAIN_ROW(double, double)
PLAIN_ROW(int32_t, uint32_t)
PLAIN_ROW(uint32_t, uint32_t)
PLAIN_ROW(int64_t, uint64_t)
PLAIN_ROW(uint64_t, uint64_t)

static sn_task_fn plain_row(sn_dtype t)
{
    switch (t) {
    case SONDE_DTYPE_F64:
        return row_double;
    case SONDE_DTYPE_I32:
        return row_int32_t;
    case SONDE_DTYPE_U32:
        return row_uint32_t;
    case SONDE_DTYPE_I64:
        return row_int64_t;
    case SONDE_DTYPE_U64:
        return row_uint64_t;
    default:
        return NULL;
    }
}

static sonde_status run_plain(const sn_step *s, sn_frame *f)
{
    const product_bound *b = s->bound;
    const sn_gemm_desc *d = &b->plan.d;
    plain_call c = {d,
                    data_or_null(s, f, SN_PRODUCT_A),
                    data_or_null(s, f, SN_PRODUCT_B),
                    data_or_null(s, f, SN_PRODUCT_C),
                    data_or_null(s, f, SN_PRODUCT_Z),
                    sn_out(s, f, 0)->data};
    sn_pool_run(f->pool, (size_t)(b->plan.batches * d->m), plain_row(sn_out(s, f, 0)->dtype), &c);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ bind */
sonde_status sn_product_bind(sn_bind *b, sn_gemm_desc *d)
{
    const sn_dtype dtype = b->in[SN_PRODUCT_A]->type.dtype;
    product_bound *p = SN_NEW(b->arena, product_bound);
    int64_t n = 0;
    if (!p)
        return sn_fail_memory(b->err, sizeof *p);
    for (uint32_t i = 0; i < 4 && i < b->n_in; i++)
        if (b->in[i] && b->in[i]->type.dtype != dtype)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u is %s but input 0 is %s", i,
                                sn_dtype_name(b->in[i]->type.dtype), sn_dtype_name(dtype));
    d->packed = b->in[SN_PRODUCT_B]->pack != 0;
    d->residual = b->n_in > SN_PRODUCT_Z && b->in[SN_PRODUCT_Z];
    int64_t have = 0;
    if (d->residual && (!sn_type_count(&b->in[SN_PRODUCT_Z]->type, &have) ||
                        !sn_type_count(&b->out[0].type, &n) || have != n))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the residual must have the output's shape");
    SN_TRY(sn_choose_gemm(b, d, &p->plan));
    size_t all = 0;
    for (uint32_t i = 0; i < 4 && i < b->n_in; i++)
        if (b->in[i] && sn_type_count(&b->in[i]->type, &n))
            all += p->counts[i] = (size_t)n;
    if (sn_type_count(&b->out[0].type, &n))
        all += p->y = (size_t)n;
    b->bound = p;
    b->flops = p->plan.flops;
    b->bytes = all * sn_dtype_bytes(dtype);
    b->kernel = p->plan.name;
    b->workspace_bytes = p->plan.pack_bytes;
    b->run = sn_product_run;
    if (dtype == SONDE_DTYPE_F32)
        return SONDE_OK;
    if (sn_is_half(dtype)) {
        p->space = sn_round_up(all * sizeof(float), SN_ALIGN);
        b->workspace_bytes += p->space;
        b->run = run_half;
        return SONDE_OK;
    }
    if (!plain_row(dtype) || d->act.kind != SN_ACT_NONE)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "matrix products of %s are not supported",
                            sn_dtype_name(dtype));
    b->workspace_bytes = 0;
    b->kernel = "gemm_ref";
    b->run = run_plain;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ a residual that broadcasts */
typedef struct spread_bound {
    sn_gemm_plan plan;
    sn_bcast bcast;
    sn_elt add;
    sn_act act;
    const sn_kernels *k;
    size_t space; /* bytes of the product in front of the plan's workspace */
} spread_bound;

static sonde_status run_spread(const sn_step *s, sn_frame *f)
{
    const spread_bound *b = s->bound;
    float *product = (float *)(void *)f->workspace, *y = sn_out(s, f, 0)->data;
    sn_gemm_run(&b->plan, data_or_null(s, f, SN_PRODUCT_A), data_or_null(s, f, SN_PRODUCT_B),
                data_or_null(s, f, SN_PRODUCT_C), NULL, product, f->workspace + b->space, f->pool);
    sn_binary_run(&b->add, &b->bcast, y, product, sn_in(s, f, SN_PRODUCT_Z)->data, NULL, f->pool);
    if (b->act.kind != SN_ACT_NONE)
        sn_act_apply(&b->act, b->k, y, b->bcast.total);
    return SONDE_OK;
}

sonde_status sn_product_bind_spread(sn_bind *b, sn_gemm_desc *d, const int64_t *dims, int rank)
{
    const sn_type *y = &b->out[0].type, *z = &b->in[SN_PRODUCT_Z]->type;
    spread_bound *p = SN_NEW(b->arena, spread_bound);
    int64_t n;
    if (!p)
        return sn_fail_memory(b->err, sizeof *p);
    for (uint32_t i = 0; i < 4 && i < b->n_in; i++)
        if (b->in[i] && b->in[i]->type.dtype != SONDE_DTYPE_F32)
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "a residual of %s that broadcasts",
                                sn_dtype_name(b->in[i]->type.dtype));
    if (!sn_dims_count(dims, rank, &n))
        return sn_bind_fail(b, SONDE_LIMIT, "the product is too large");
    d->packed = b->in[SN_PRODUCT_B]->pack != 0;
    p->act = d->act;
    d->act = (sn_act){.kind = SN_ACT_NONE};
    SN_TRY(sn_choose_gemm(b, d, &p->plan));
    sn_binary_get(&p->add, SN_BINARY_ADD, SONDE_DTYPE_F32, b->cpu_flags);
    const int64_t *operands[2] = {dims, z->dims};
    const int ranks[2] = {rank, z->rank};
    sn_bcast_plan(&p->bcast, y->dims, y->rank, 2, operands, ranks);
    p->k = p->plan.k;
    p->space = sn_round_up((size_t)n * sizeof(float), SN_ALIGN);
    b->bound = p;
    b->flops = p->plan.flops + p->bcast.total;
    b->kernel = p->plan.name;
    b->workspace_bytes = p->space + p->plan.pack_bytes;
    b->run = run_spread;
    return SONDE_OK;
}
