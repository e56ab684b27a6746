/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations without scale and bias: LpNormalization, LRN, MeanVarianceNormalization. */
#include "compute/mean_variance.h"
#include "compute/norm.h"
#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"

static sonde_status infer_same(sn_infer *c)
{
    return sn_infer_same(c, 0, 0);
}

static sonde_status float_only(sn_bind *b)
{
    sn_dtype t = b->in[0]->type.dtype;
    if (t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F64 || sn_is_half(t))
        return SONDE_OK;
    return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                        sn_dtype_onnx_name(t));
}

/* ------------------------------------------------------------------ LpNormalization */
typedef struct lp_params {
    int64_t axis, p;
} lp_params;

typedef struct lp_bound {
    sn_lpnorm_plan plan;
    sn_piece xy; /* of 16-bit floats in f32; the driver works in place */
} lp_bound;

static sonde_status prepare_lp(sn_prep *p)
{
    lp_params *l = p->params;
    SN_TRY(sn_prep_int(p, "axis", -1, &l->axis));
    SN_TRY(sn_prep_int(p, "p", 2, &l->p));
    if (l->p != 1 && l->p != 2)
        return sn_prep_fail(p, "attribute 'p' is %lld, expected 1 or 2", (long long)l->p);
    return SONDE_OK;
}

static sonde_status infer_lp(sn_infer *c)
{
    const lp_params *l = c->params;
    int axis;
    if (c->in[0]->type.rank >= 0)
        SN_TRY(sn_infer_axis(c, l->axis, c->in[0]->type.rank, false, &axis));
    return sn_infer_same(c, 0, 0);
}

static sonde_status bind_lp(sn_bind *b)
{
    const lp_params *l = b->params;
    const sn_type *x = &b->in[0]->type;
    lp_bound *k = SN_NEW(b->arena, lp_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    SN_TRY(float_only(b));
    sn_lpnorm_plan *p = &k->plan;
    int axis = (int)(l->axis < 0 ? l->axis + x->rank : l->axis);
    p->dtype = sn_compute_dtype(x->dtype);
    p->p = (int)l->p;
    p->outer = sn_dims_product(x->dims, 0, axis);
    p->n = x->dims[axis];
    p->inner = sn_dims_product(x->dims, axis + 1, x->rank);
    k->xy = sn_converted_carve(&b->workspace, b->in[0], p->dtype);
    b->bound = k;
    b->kernel = "lp_norm";
    b->flops = 3 * (uint64_t)(p->outer * p->n * p->inner);
    return SONDE_OK;
}

static sonde_status run_lp(const sn_step *s, sn_frame *f)
{
    const lp_bound *k = s->bound;
    const sn_dtype compute = k->plan.dtype;
    const void *x = sn_converted_in(s, f, 0, compute, k->xy);
    sn_lpnorm_run(&k->plan, sn_converted_out(s, f, 0, compute, k->xy), x, f->pool);
    sn_converted_done(s, f, 0, compute, k->xy);
    return SONDE_OK;
}

const sn_op sn_op_lp_normalization[] = {{SN_ELT_HEAD("LpNormalization", 1, 0, 1, 1),
                                         .flags = SN_OP_INPLACE0, .params_size = sizeof(lp_params),
                                         .prepare = prepare_lp, .infer = infer_lp, .bind = bind_lp,
                                         .run = run_lp, .types = SN_FLOATS},
                                        {.name = NULL}};

/* ------------------------------------------------------------------ LRN */
typedef struct lrn_params {
    float alpha, beta, bias;
    int64_t size;
} lrn_params;

typedef struct lrn_bound {
    sn_lrn_plan plan;
    size_t n;
    sn_piece x, y; /* in f32 */
} lrn_bound;

static sonde_status prepare_lrn(sn_prep *p)
{
    lrn_params *l = p->params;
    SN_TRY(sn_prep_float(p, "alpha", 0.0001f, &l->alpha));
    SN_TRY(sn_prep_float(p, "beta", 0.75f, &l->beta));
    SN_TRY(sn_prep_float(p, "bias", 1.0f, &l->bias));
    SN_TRY(sn_prep_int(p, "size", 0, &l->size));
    if (l->size < 1)
        return sn_prep_fail(p, "attribute 'size' is %lld", (long long)l->size);
    return SONDE_OK;
}

static sonde_status infer_lrn(sn_infer *c)
{
    const sn_type *x = &c->in[0]->type;
    if (x->rank >= 0 && x->rank < 2)
        return sn_infer_fail(c, "the input has rank %d, at least 2 is expected", x->rank);
    return sn_infer_same(c, 0, 0);
}

/* Computed in f32 whatever the type: the formula has no cancellation that would need more. */
static sonde_status bind_lrn(sn_bind *b)
{
    const lrn_params *l = b->params;
    const sn_type *x = &b->in[0]->type;
    lrn_bound *k = SN_NEW(b->arena, lrn_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    SN_TRY(float_only(b));
    k->plan = (sn_lrn_plan){.batch = x->dims[0],
                            .channels = x->dims[1],
                            .inner = sn_dims_product(x->dims, 2, x->rank),
                            .alpha = l->alpha,
                            .beta = l->beta,
                            .bias = l->bias};
    int64_t widest = 2 * x->dims[1] + 1; /* more than that reaches no further */
    k->plan.size = l->size;
    if (l->size > widest) {
        k->plan.alpha = l->alpha * ((float)widest / (float)l->size);
        k->plan.size = widest;
    }
    k->n = sn_fact_elems(b->in[0]);
    k->x = sn_converted_carve(&b->workspace, b->in[0], SONDE_DTYPE_F32);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    b->bound = k;
    b->kernel = "f32_lrn";
    b->flops = (uint64_t)k->n * (uint64_t)(2 * k->plan.size + 8);
    return SONDE_OK;
}

static sonde_status run_lrn(const sn_step *s, sn_frame *f)
{
    const lrn_bound *k = s->bound;
    if (k->n == 0)
        return SONDE_OK;
    const void *x = sn_converted_in(s, f, 0, SONDE_DTYPE_F32, k->x);
    sn_lrn_run(&k->plan, sn_converted_out(s, f, 0, SONDE_DTYPE_F32, k->y), x, f->pool);
    sn_converted_done(s, f, 0, SONDE_DTYPE_F32, k->y);
    return SONDE_OK;
}

const sn_op sn_op_lrn[] = {{SN_ELT_HEAD("LRN", 1, 0, 1, 1), .params_size = sizeof(lrn_params),
                            .prepare = prepare_lrn, .infer = infer_lrn, .bind = bind_lrn,
                            .run = run_lrn, .types = SN_FLOATS},
                           {.name = NULL}};

/* ------------------------------------------------------------------ MeanVarianceNormalization */
typedef struct mvn_params {
    const int64_t *axes;
    size_t n_axes;
} mvn_params;

typedef struct mvn_bound {
    sn_mean_variance plan;
    sn_piece x, y, stats; /* x and y: of 16-bit floats in f32 */
} mvn_bound;

static sonde_status prepare_mvn(sn_prep *p)
{
    static const int64_t usual[] = {0, 2, 3};
    mvn_params *m = p->params;
    SN_TRY(sn_prep_ints(p, "axes", &m->axes, &m->n_axes));
    if (!m->axes) {
        m->axes = usual;
        m->n_axes = 3;
    }
    return SONDE_OK;
}

static sonde_status bind_mvn(sn_bind *b)
{
    const mvn_params *m = b->params;
    const sn_type *x = &b->in[0]->type;
    mvn_bound *k = SN_NEW(b->arena, mvn_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    SN_TRY(float_only(b));
    bool reduced[SN_MAX_RANK] = {false};
    for (size_t i = 0; i < m->n_axes; i++) {
        int64_t a = m->axes[i] < 0 ? m->axes[i] + x->rank : m->axes[i];
        if (a < 0 || a >= x->rank)
            return sn_bind_fail(b, SONDE_INVALID_MODEL, "axis %lld is outside a tensor of rank %d",
                                (long long)m->axes[i], x->rank);
        reduced[a] = true;
    }
    const sn_dtype compute = sn_compute_dtype(x->dtype);
    sn_mean_variance_make(&k->plan, compute, x->dims, x->rank, reduced, b->cpu_flags);
    k->x = sn_converted_carve(&b->workspace, b->in[0], compute);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], compute);
    k->stats = sn_carve(&b->workspace, k->plan.stats, sn_dtype_bytes(compute));
    b->bound = k;
    b->kernel = "mean_variance";
    b->flops = 6 * (uint64_t)sn_fact_elems(b->in[0]);
    return SONDE_OK;
}

static sonde_status run_mvn(const sn_step *s, sn_frame *f)
{
    const mvn_bound *k = s->bound;
    const sn_dtype compute = k->plan.dtype;
    const void *x = sn_converted_in(s, f, 0, compute, k->x);
    sn_mean_variance_run(&k->plan, sn_converted_out(s, f, 0, compute, k->y), x,
                         sn_piece_ptr(f, k->stats), f->pool);
    sn_converted_done(s, f, 0, compute, k->y);
    return SONDE_OK;
}

const sn_op sn_op_mean_variance_normalization[] = {
    {SN_ELT_HEAD("MeanVarianceNormalization", 9, 0, 1, 1), .flags = SN_OP_INPLACE0,
     .params_size = sizeof(mvn_params), .prepare = prepare_mvn, .infer = infer_same,
     .bind = bind_mvn, .run = run_mvn, .types = SN_FLOATS},
    {.name = NULL}};
