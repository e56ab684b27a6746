/* SPDX-License-Identifier: Apache-2.0 */
/* Binding and running matrix products of every element type. f32 goes to the driver, 16-bit floats
 * through f32, f64 and integers through plain loops (compute/gemm_plain.h). */
#include "compute/copy.h"
#include "compute/eltwise.h"
#include "compute/gemm_plain.h"
#include "ops/shared/converted.h"
#include "ops/shared/product.h"
#include "ops/shared/sparse_weights.h"
#include "ops/shared/tuned_plan.h"

typedef struct product_bound {
    sn_gemm_plan plan;
    sn_piece in[4], y; /* f32 copies of 16-bit floats */
    sn_piece core;
    sn_copy *turn[2]; /* of A and B; NULL: it is read as it lies */
    sn_piece turned[2];
} product_bound;

static const void *data_or_null(const sn_step *s, const sn_frame *f, uint32_t i)
{
    return sn_has(s, i) ? sn_in(s, f, i)->data : NULL;
}

sonde_status sn_product_run(const sn_step *s, sn_frame *f)
{
    const product_bound *b = s->bound;
    sn_gemm_run(&b->plan, data_or_null(s, f, SN_PRODUCT_A), data_or_null(s, f, SN_PRODUCT_B),
                data_or_null(s, f, SN_PRODUCT_C), data_or_null(s, f, SN_PRODUCT_Z),
                sn_out(s, f, 0)->data, sn_piece_ptr(f, b->core), f->pool);
    return SONDE_OK;
}

static sonde_status run_half(const sn_step *s, sn_frame *f)
{
    const product_bound *b = s->bound;
    const float *in[4];
    for (uint32_t i = 0; i < 4; i++)
        in[i] = sn_converted_in(s, f, i, SONDE_DTYPE_F32, b->in[i]);
    sn_gemm_run(&b->plan, in[SN_PRODUCT_A], in[SN_PRODUCT_B], in[SN_PRODUCT_C], in[SN_PRODUCT_Z],
                sn_converted_out(s, f, 0, SONDE_DTYPE_F32, b->y), sn_piece_ptr(f, b->core),
                f->pool);
    sn_converted_done(s, f, 0, SONDE_DTYPE_F32, b->y);
    return SONDE_OK;
}

static sonde_status run_plain(const sn_step *s, sn_frame *f)
{
    const product_bound *b = s->bound;
    sn_gemm_plain_run(&b->plan.d, b->plan.batches, sn_out(s, f, 0)->dtype,
                      data_or_null(s, f, SN_PRODUCT_A), data_or_null(s, f, SN_PRODUCT_B),
                      data_or_null(s, f, SN_PRODUCT_C), data_or_null(s, f, SN_PRODUCT_Z),
                      sn_out(s, f, 0)->data, f->pool);
    return SONDE_OK;
}

/* 16-bit floats are turned as the f32 they have become. */
static sonde_status run_turned(const sn_step *s, sn_frame *f)
{
    const product_bound *b = s->bound;
    const sn_dtype dtype = sn_out(s, f, 0)->dtype;
    const bool plain = dtype != SONDE_DTYPE_F32 && !sn_is_half(dtype);
    const void *in[4];
    for (uint32_t i = 0; i < 4; i++) {
        in[i] = plain ? data_or_null(s, f, i) : sn_converted_in(s, f, i, SONDE_DTYPE_F32, b->in[i]);
        if (i < 2 && b->turn[i]) {
            void *turned = sn_piece_ptr(f, b->turned[i]);
            sn_copy_run(b->turn[i], turned, in[i], f->pool);
            in[i] = turned;
        }
    }
    if (plain) {
        sn_gemm_plain_run(&b->plan.d, b->plan.batches, dtype, in[SN_PRODUCT_A], in[SN_PRODUCT_B],
                          in[SN_PRODUCT_C], in[SN_PRODUCT_Z], sn_out(s, f, 0)->data, f->pool);
        return SONDE_OK;
    }
    sn_gemm_run(&b->plan, in[SN_PRODUCT_A], in[SN_PRODUCT_B], in[SN_PRODUCT_C], in[SN_PRODUCT_Z],
                sn_converted_out(s, f, 0, SONDE_DTYPE_F32, b->y), sn_piece_ptr(f, b->core),
                f->pool);
    sn_converted_done(s, f, 0, SONDE_DTYPE_F32, b->y);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ bind */
/* How B comes. One that is not packed is bf16 if that is asked for and it is no weight: those keep
 * their type unless they are packed. */
static void describe_right(const sn_bind *b, sn_gemm_desc *d)
{
    const sn_fact *right = b->in[SN_PRODUCT_B];
    const sn_dtype dtype = b->in[SN_PRODUCT_A]->type.dtype;
    d->packed = right->pack != 0;
    d->sparse = sn_weights_sparse(right, &d->entries);
    d->b_dtype = sn_packed_dtype(right);
    d->f16 = right->type.dtype == SONDE_DTYPE_F16;
    d->tiles = sn_packed_tiles(right) ||
               (!d->packed && !right->data && sn_bind_in_bf16(b) && sn_gemm_tiles_pay(d) &&
                (dtype == SONDE_DTYPE_F32 || sn_is_half(dtype)));
}

static sonde_status check_inputs(sn_bind *b, sn_gemm_desc *d)
{
    const sn_dtype dtype = b->in[SN_PRODUCT_A]->type.dtype;
    int64_t have = 0, n = 0;
    for (uint32_t i = 0; i < 4 && i < b->n_in; i++)
        if (b->in[i] && b->in[i]->type.dtype != dtype &&
            !(i == SN_PRODUCT_B && sn_weights_fit(b->node, b->in[i]->type.dtype, dtype)))
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "input %u is %s but input 0 is %s", i,
                                sn_dtype_name(b->in[i]->type.dtype), sn_dtype_name(dtype));
    describe_right(b, d);
    d->residual = b->n_in > SN_PRODUCT_Z && b->in[SN_PRODUCT_Z];
    if (d->residual && (!sn_type_count(&b->in[SN_PRODUCT_Z]->type, &have) ||
                        !sn_type_count(&b->out[0].type, &n) || have != n))
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the residual must have the output's shape");
    return SONDE_OK;
}

static size_t all_bytes(const sn_bind *b)
{
    size_t all = 0, bytes;
    int64_t n;
    for (uint32_t i = 0; i < 4 && i < b->n_in; i++) {
        if (i == SN_PRODUCT_B && b->in[i] == b->in[SN_PRODUCT_A])
            continue; /* x · x is read once */
        if (b->in[i] && sn_weights_sparse(b->in[i], &n))
            all += sn_sparse_stored(b->in[i]);
        else if (b->in[i] && b->in[i]->pack && sn_type_count(&b->in[i]->type, &n))
            all += (size_t)n * sn_dtype_bytes(sn_packed_dtype(b->in[i]));
        else if (b->in[i] && sn_fact_bytes(b->in[i], &bytes))
            all += bytes;
    }
    return sn_fact_bytes(&b->out[0], &bytes) ? all + bytes : all;
}

sonde_status sn_product_bind(sn_bind *b, sn_gemm_desc *d)
{
    const sn_dtype dtype = b->in[SN_PRODUCT_A]->type.dtype;
    product_bound *p = SN_NEW(b->arena, product_bound);
    if (!p)
        return sn_fail_memory(b->err, sizeof *p);
    SN_TRY(check_inputs(b, d));
    SN_TRY(sn_gemm_plan_tuned(b, d, &p->plan));
    b->bound = p;
    b->flops = p->plan.flops;
    b->bytes = all_bytes(b);
    b->arithmetic = p->plan.arithmetic;
    if (sn_gemm_overwrites_z(&p->plan) || dtype != SONDE_DTYPE_F32)
        b->overwrites = 1 << SN_PRODUCT_Z;
    if (dtype != SONDE_DTYPE_F32 && !sn_is_half(dtype)) {
        if (!sn_gemm_plain_takes(dtype) || d->act.kind != SN_ACT_NONE)
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "matrix products of %s are not supported",
                                sn_dtype_name(dtype));
        b->kernel = "gemm_ref";
        b->arithmetic = sn_arithmetic_of(dtype, false);
        b->run = run_plain;
        return SONDE_OK;
    }
    b->kernel = p->plan.name;
    b->run = sn_is_half(dtype) ? run_half : sn_product_run;
    for (uint32_t i = 0; i < 4 && i < b->n_in; i++) {
        p->in[i] = sn_converted_carve(&b->workspace, b->in[i], SONDE_DTYPE_F32);
        if (i == SN_PRODUCT_B && !b->in[i]->pack && sn_is_half(b->in[i]->type.dtype))
            b->run = run_half;
    }
    p->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    p->core = sn_carve_inner(&b->workspace, &p->plan.workspace);
    return SONDE_OK;
}

sonde_status sn_product_turn(sn_bind *b, const bool turned[2])
{
    product_bound *p = (product_bound *)(uintptr_t)b->bound;
    for (int i = 0; i < 2; i++) {
        const sn_type *t = &b->in[i]->type;
        const int rank = t->rank;
        int64_t dims[SN_MAX_RANK], n;
        ptrdiff_t from[SN_MAX_RANK], to[SN_MAX_RANK], src[SN_MAX_RANK];
        if (!turned[i] || rank < 3)
            continue;
        const size_t bytes = sn_is_half(t->dtype) ? sizeof(float) : sn_dtype_bytes(t->dtype);
        p->turn[i] = SN_NEW(b->arena, sn_copy);
        if (!p->turn[i] || !sn_type_count(t, &n))
            return sn_fail_memory(b->err, sizeof *p->turn[i]);
        sn_dense_strides(t->dims, rank, src);
        for (int d = 0; d < rank; d++) {
            const int at = d == rank - 1 ? d : (d + 1) % (rank - 1);
            dims[d] = t->dims[at];
            from[d] = src[at];
        }
        sn_dense_strides(dims, rank, to);
        sn_copy_plan(p->turn[i], bytes, rank, dims, to, from);
        p->turned[i] = sn_carve(&b->workspace, n, bytes);
        b->run = run_turned;
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ a residual that broadcasts */
typedef struct spread_bound {
    sn_gemm_plan plan;
    sn_bcast bcast;
    sn_elt add;
    sn_act act;
    sn_piece weights, product, core; /* an f32 copy of 16-bit weights that do not come packed */
} spread_bound;

static sonde_status run_spread(const sn_step *s, sn_frame *f)
{
    const spread_bound *b = s->bound;
    float *product = sn_piece_ptr(f, b->product), *y = sn_out(s, f, 0)->data;
    sn_gemm_run(&b->plan, data_or_null(s, f, SN_PRODUCT_A),
                sn_converted_in(s, f, SN_PRODUCT_B, SONDE_DTYPE_F32, b->weights),
                data_or_null(s, f, SN_PRODUCT_C), NULL, product, sn_piece_ptr(f, b->core), f->pool);
    sn_binary_run(&b->add, &b->bcast, y, product, sn_in(s, f, SN_PRODUCT_Z)->data, NULL, f->pool);
    if (b->act.kind != SN_ACT_NONE)
        sn_act_apply(&b->act, b->plan.k, y, b->bcast.total);
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
        if (b->in[i] && b->in[i]->type.dtype != SONDE_DTYPE_F32 &&
            !(i == SN_PRODUCT_B && sn_weights_fit(b->node, b->in[i]->type.dtype, SONDE_DTYPE_F32)))
            return sn_bind_fail(b, SONDE_UNSUPPORTED, "a residual of %s that broadcasts",
                                sn_dtype_name(b->in[i]->type.dtype));
    if (!sn_dims_count(dims, rank, &n))
        return sn_bind_fail(b, SONDE_LIMIT, "the product is too large");
    describe_right(b, d);
    p->act = d->act;
    d->act = (sn_act){.kind = SN_ACT_NONE};
    SN_TRY(sn_gemm_plan_tuned(b, d, &p->plan));
    sn_binary_get(&p->add, SN_BINARY_ADD, SONDE_DTYPE_F32, b->cpu_flags);
    const int64_t *operands[2] = {dims, z->dims};
    const int ranks[2] = {rank, z->rank};
    sn_bcast_plan(&p->bcast, y->dims, y->rank, 2, operands, ranks);
    p->weights = sn_converted_carve(&b->workspace, b->in[SN_PRODUCT_B], SONDE_DTYPE_F32);
    p->product = sn_carve(&b->workspace, n, sizeof(float));
    p->core = sn_carve_inner(&b->workspace, &p->plan.workspace);
    b->bound = p;
    b->flops = p->plan.flops + p->bcast.total;
    b->arithmetic = p->plan.arithmetic;
    b->overwrites = 1 << SN_PRODUCT_Z;
    b->kernel = p->plan.name;
    b->run = run_spread;
    return SONDE_OK;
}
