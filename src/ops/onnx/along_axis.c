/* SPDX-License-Identifier: Apache-2.0 */
/* Operators along one axis: ArgMax, ArgMin, CumSum, CumProd. */
#include <string.h>

#include "compute/reduce.h"
#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"

typedef struct arg_params {
    int64_t axis;
    bool min, keepdims, last;
} arg_params;

static sonde_status prepare_arg(sn_prep *p)
{
    arg_params *a = p->params;
    int64_t keep, last;
    a->min = strcmp(p->node->op_type, "ArgMin") == 0;
    SN_TRY(sn_prep_int(p, "axis", 0, &a->axis));
    SN_TRY(sn_prep_int(p, "keepdims", 1, &keep));
    SN_TRY(sn_prep_int(p, "select_last_index", 0, &last));
    a->keepdims = keep != 0;
    a->last = last != 0;
    return SONDE_OK;
}

static sonde_status infer_arg(sn_infer *c)
{
    const arg_params *a = c->params;
    const sn_type *x = &c->in[0]->type;
    if (x->rank < 0)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_I64, NULL, -1);
    if (x->rank == 0)
        return sn_infer_tensor(c, 0, SONDE_DTYPE_I64, NULL, 0);
    int axis, rank = 0;
    SN_TRY(sn_infer_axis(c, a->axis, x->rank, false, &axis));
    if (x->rank > SN_MAX_RANK)
        return sn_infer_fail(c, "rank %d is above the limit of %d", x->rank, SN_MAX_RANK);
    sn_dim dims[SN_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            dims[rank++] = x->dims[i];
        else if (a->keepdims)
            dims[rank++] = 1;
    }
    return sn_infer_tensor(c, 0, SONDE_DTYPE_I64, dims, rank);
}

/* [outer][n][inner] around an axis; a scalar is one element. */
static void around(const sn_type *x, int64_t axis, int64_t *outer, int64_t *n, int64_t *inner)
{
    int a = (int)(axis < 0 ? axis + x->rank : axis);
    *outer = *n = *inner = 1;
    if (x->rank == 0)
        return;
    *outer = sn_dims_product(x->dims, 0, a);
    *n = x->dims[a];
    *inner = sn_dims_product(x->dims, a + 1, x->rank);
}

typedef struct arg_bound {
    sn_arg_plan plan;
    sn_piece x; /* of 16-bit floats in f32 */
} arg_bound;

static sonde_status bind_arg(sn_bind *b)
{
    const arg_params *a = b->params;
    arg_bound *k = SN_NEW(b->arena, arg_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    sn_arg_plan *p = &k->plan;
    const sn_type *x = &b->in[0]->type;
    p->dtype = sn_compute_dtype(x->dtype);
    p->min = a->min;
    p->last = a->last;
    if (!sn_arg_supported(p->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    around(x, a->axis, &p->outer, &p->n, &p->inner);
    if (p->n == 0 && p->outer * p->inner > 0)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "the reduced axis is empty");
    k->x = sn_converted_carve(&b->workspace, b->in[0], p->dtype);
    b->bound = k;
    b->kernel = "arg_extreme";
    b->flops = (uint64_t)(p->outer * p->n * p->inner);
    return SONDE_OK;
}

static sonde_status run_arg(const sn_step *s, sn_frame *f)
{
    const arg_bound *k = s->bound;
    sn_arg_run(&k->plan, sn_out(s, f, 0)->data, sn_converted_in(s, f, 0, k->plan.dtype, k->x),
               f->pool);
    return SONDE_OK;
}

#define ARG(symbol, NAME)                                                                          \
    const sn_op sn_op_##symbol[] = {                                                               \
        {SN_ELT_HEAD(NAME, 1, 0, 1, 1), .params_size = sizeof(arg_params), .prepare = prepare_arg, \
         .infer = infer_arg, .bind = bind_arg, .run = run_arg, .types = SN_FLOATS " " SN_INTS},    \
        {.name = NULL}};
ARG(arg_max, "ArgMax")
ARG(arg_min, "ArgMin")

/* ------------------------------------------------------------------ running sums */
typedef struct cum_params {
    bool product, exclusive, reverse;
} cum_params;

static sonde_status prepare_cum(sn_prep *p)
{
    cum_params *c = p->params;
    int64_t exclusive, reverse;
    SN_TRY(sn_prep_int(p, "exclusive", 0, &exclusive));
    SN_TRY(sn_prep_int(p, "reverse", 0, &reverse));
    c->product = strcmp(p->node->op_type, "CumProd") == 0;
    c->exclusive = exclusive != 0;
    c->reverse = reverse != 0;
    return SONDE_OK;
}

static sonde_status infer_cum(sn_infer *c)
{
    return sn_infer_same(c, 0, 0);
}

typedef struct cum_bound {
    sn_piece x, y; /* of 16-bit floats in f32 */
    uint32_t cpu_flags;
} cum_bound;

static sonde_status bind_cum(sn_bind *b)
{
    cum_bound *k = SN_NEW(b->arena, cum_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    const sn_type *x = &b->in[0]->type, *axis = &b->in[1]->type;
    int64_t n = 0, one = 0;
    if (!sn_cum_supported(sn_compute_dtype(x->dtype)))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    if ((axis->dtype != SONDE_DTYPE_I64 && axis->dtype != SONDE_DTYPE_I32) ||
        !sn_type_count(axis, &one) || one != 1)
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "the axis must be one number of type i32 or i64");
    sn_type_count(x, &n);
    k->x = sn_converted_carve(&b->workspace, b->in[0], sn_compute_dtype(x->dtype));
    k->y = sn_converted_carve(&b->workspace, &b->out[0], sn_compute_dtype(x->dtype));
    k->cpu_flags = b->cpu_flags;
    b->bound = k;
    b->kernel = "cumulate";
    b->flops = (uint64_t)n;
    return SONDE_OK;
}

/* The axis is a value: it is read when the step runs. */
static sonde_status run_cum(const sn_step *s, sn_frame *f)
{
    const cum_params *c = s->params;
    const sn_tensor *x = sn_in(s, f, 0), *axis = sn_in(s, f, 1);
    int64_t a = axis->dtype == SONDE_DTYPE_I64 ? *(const int64_t *)axis->data
                                               : *(const int32_t *)axis->data;
    if (x->rank > 0 && (a < -x->rank || a >= x->rank))
        return sn_run_fail(s, f, "axis %lld is outside a tensor of rank %d", (long long)a, x->rank);
    const sn_type type = {.rank = x->rank, .dims = x->dims};
    const cum_bound *k = s->bound;
    sn_cum_plan p = {.dtype = sn_compute_dtype(x->dtype),
                     .cpu_flags = k->cpu_flags,
                     .product = c->product,
                     .exclusive = c->exclusive,
                     .reverse = c->reverse};
    around(&type, a, &p.outer, &p.n, &p.inner);
    const void *in = sn_converted_in(s, f, 0, p.dtype, k->x);
    sn_cum_run(&p, sn_converted_out(s, f, 0, p.dtype, k->y), in, f->pool);
    sn_converted_done(s, f, 0, p.dtype, k->y);
    return SONDE_OK;
}

#define CUM(symbol, NAME, SINCE)                                                                   \
    const sn_op sn_op_##symbol[] = {{SN_ELT_HEAD(NAME, SINCE, 0, 2, 2), .flags = SN_OP_INPLACE0,   \
                                     .params_size = sizeof(cum_params), .prepare = prepare_cum,    \
                                     .infer = infer_cum, .bind = bind_cum, .run = run_cum,         \
                                     .types = "i32 i64 u32 u64 bf16 f16 f32 f64"},                 \
                                    {.name = NULL}};
CUM(cum_sum, "CumSum", 11)
CUM(cum_prod, "CumProd", 26)
