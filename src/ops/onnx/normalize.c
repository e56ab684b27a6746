/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization, RMSNormalization, InstanceNormalization and GroupNormalization: rows of a
 * tensor brought to mean 0 and variance 1 (or unit mean square), then scaled per element or per
 * channel. They differ in what a row is and in how scale and bias lie against it. */
#include <string.h>

#include "compute/copy.h"
#include "compute/norm.h"
#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"

typedef enum norm_kind { NORM_LAYER, NORM_RMS, NORM_INSTANCE, NORM_GROUP, NORM_GROUP_18 } norm_kind;

typedef struct norm_params {
    norm_kind kind;
    int64_t axis, groups;
    float epsilon;
    sn_dtype stash; /* of the statistics LayerNormalization gives */
} norm_params;

/* Scale or bias as the driver reads it: in the computing type, one element per element of a row. A
 * shape that broadcasts is spread out. */
typedef struct operand {
    sn_piece converted;
    bool spreads;
    sn_copy spread;
    sn_piece whole;
} operand;

typedef struct norm_bound {
    sn_norm_plan plan;
    operand scale, bias;
    sn_piece x, y, mean, inv; /* of tensors that have another type than the driver computes in */
} norm_bound;

static sonde_status prepare_layer(sn_prep *p)
{
    norm_params *n = p->params;
    int64_t stash;
    n->kind = strcmp(p->node->op_type, "RMSNormalization") == 0 ? NORM_RMS : NORM_LAYER;
    SN_TRY(sn_prep_int(p, "axis", -1, &n->axis));
    SN_TRY(sn_prep_int(p, "stash_type", SONDE_DTYPE_F32, &stash));
    if (stash != SONDE_DTYPE_F32 && stash != SONDE_DTYPE_BF16 && stash != SONDE_DTYPE_F16 &&
        stash != SONDE_DTYPE_F64)
        return sn_prep_fail(p, "attribute 'stash_type' is %lld, expected a float type",
                            (long long)stash);
    n->stash = (sn_dtype)stash;
    return sn_prep_float(p, "epsilon", 1e-5f, &n->epsilon);
}

static sonde_status prepare_instance(sn_prep *p)
{
    norm_params *n = p->params;
    n->kind = NORM_INSTANCE;
    return sn_prep_float(p, "epsilon", 1e-5f, &n->epsilon);
}

static sonde_status prepare_group(sn_prep *p)
{
    norm_params *n = p->params;
    n->kind = NORM_GROUP;
    SN_TRY(sn_prep_int(p, "num_groups", 0, &n->groups));
    if (n->groups < 1)
        return sn_prep_fail(p, "attribute 'num_groups' is %lld", (long long)n->groups);
    return sn_prep_float(p, "epsilon", 1e-5f, &n->epsilon);
}

static sonde_status prepare_group_18(sn_prep *p)
{
    SN_TRY(prepare_group(p));
    ((norm_params *)p->params)->kind = NORM_GROUP_18;
    return SONDE_OK;
}

static sonde_status infer_layer(sn_infer *c)
{
    const norm_params *p = c->params;
    const sn_type *x = &c->in[0]->type;
    sn_dtype out = p->kind == NORM_RMS ? c->in[1]->type.dtype : x->dtype;
    SN_TRY(sn_infer_tensor(c, 0, out, x->dims, x->rank));
    if (x->rank < 0) {
        SN_TRY(sn_infer_tensor(c, 1, p->stash, NULL, -1));
        return sn_infer_tensor(c, 2, p->stash, NULL, -1);
    }
    int axis;
    SN_TRY(sn_infer_axis(c, p->axis, x->rank, false, &axis));
    sn_dim dims[SN_MAX_RANK];
    for (int i = 0; i < x->rank && i < SN_MAX_RANK; i++)
        dims[i] = i < axis ? x->dims[i] : 1;
    SN_TRY(sn_infer_tensor(c, 1, p->stash, dims, x->rank));
    return sn_infer_tensor(c, 2, p->stash, dims, x->rank);
}

static sonde_status infer_channels(sn_infer *c)
{
    const norm_params *p = c->params;
    const sn_type *x = &c->in[0]->type;
    if (x->rank >= 0 && x->rank < 2)
        return sn_infer_fail(c, "the input has rank %d, at least 2 is expected", x->rank);
    if (x->rank > 0 && p->groups > 0 && sn_dim_known(x->dims[1]) && x->dims[1] % p->groups != 0)
        return sn_infer_fail(c, "%lld channels are not divisible by %lld groups",
                             (long long)x->dims[1], (long long)p->groups);
    return sn_infer_same(c, 0, 0);
}

/* ------------------------------------------------------------------ bind */
/* The copy of a shape that broadcasts to these dims; false: it does not. */
static bool spread_plan(sn_copy *c, sn_dtype t, const sn_type *from, const sn_dim *dims, int rank)
{
    ptrdiff_t strides[SN_MAX_RANK], src[SN_MAX_RANK] = {0}, dst[SN_MAX_RANK];
    if (from->rank > rank)
        return false;
    sn_dense_strides(from->dims, from->rank, strides);
    for (int i = 0; i < from->rank; i++) {
        const int to = rank - from->rank + i;
        if (from->dims[i] != 1 && from->dims[i] != dims[to])
            return false;
        src[to] = from->dims[i] == 1 ? 0 : strides[i];
    }
    sn_dense_strides(dims, rank, dst);
    sn_copy_plan(c, sn_dtype_bytes(t), rank, dims, dst, src);
    return true;
}

/* Does a shape of as many elements as the last `rank` dims of x lie as they do? Dims of 1 may stand
 * before it, and one dim may stand for all. */
static bool lies_as_dims(const sn_type *t, const sn_dim *dims, int rank)
{
    for (int i = 1; i <= t->rank && t->rank > 1; i++)
        if (t->dims[t->rank - i] != (i <= rank ? dims[rank - i] : 1))
            return false;
    return true;
}

/* Scale or bias: `want` elements, or a shape that broadcasts to the normalised dims. */
static sonde_status bind_operand(sn_bind *b, uint32_t i, sn_dtype compute, int64_t want, int axis,
                                 operand *o)
{
    if (i >= b->n_in || !b->in[i])
        return SONDE_OK;
    const sn_type *t = &b->in[i]->type, *x = &b->in[0]->type;
    int64_t n = 0;
    sn_type_count(t, &n);
    if (!sn_cast_supported(t->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s of input %u is not supported",
                            sn_dtype_onnx_name(t->dtype), i);
    o->converted = sn_converted_carve(&b->workspace, b->in[i], compute);
    o->spreads = n != want || (axis >= 0 && !lies_as_dims(t, x->dims + axis, x->rank - axis));
    if (!o->spreads)
        return SONDE_OK;
    if (axis < 0 || !spread_plan(&o->spread, compute, t, x->dims + axis, x->rank - axis))
        return sn_bind_fail(b, SONDE_INVALID_MODEL,
                            "input %u has %lld elements that do not fit the %lld of a row", i,
                            (long long)n, (long long)want);
    o->whole = sn_carve(&b->workspace, want, sn_dtype_bytes(compute));
    return SONDE_OK;
}

/* What a row is, and how scale lies against it. */
static int64_t row_shape(const norm_params *p, const sn_type *x, sn_norm_plan *plan, int *axis)
{
    *axis = -1;
    if (p->kind == NORM_LAYER || p->kind == NORM_RMS) {
        *axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
        plan->rms = p->kind == NORM_RMS;
        plan->rows = sn_dims_product(x->dims, 0, *axis);
        plan->n = sn_dims_product(x->dims, *axis, x->rank);
        return plan->n;
    }
    int64_t channels = x->dims[1], groups = p->kind == NORM_INSTANCE ? channels : p->groups;
    plan->group = true;
    plan->rows = x->dims[0] * groups;
    plan->n = groups > 0 ? channels / groups * sn_dims_product(x->dims, 2, x->rank) : 0;
    plan->pieces = p->kind == NORM_GROUP && groups > 0 ? channels / groups : 1;
    plan->scale_rows = groups > 0 ? groups : 1;
    return p->kind == NORM_GROUP_18 ? groups : channels;
}

static sonde_status bind_norm(sn_bind *b)
{
    const norm_params *p = b->params;
    norm_bound *k = SN_NEW(b->arena, norm_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    const sn_type *x = &b->in[0]->type;
    int64_t count = 0;
    sn_type_count(x, &count);
    sn_dtype compute = x->dtype == SONDE_DTYPE_F64 ? SONDE_DTYPE_F64 : SONDE_DTYPE_F32;
    if (x->dtype != compute && !sn_is_half(x->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    k->plan.dtype = compute;
    k->plan.epsilon = (double)p->epsilon;
    int axis;
    int64_t want = row_shape(p, x, &k->plan, &axis);
    k->x = sn_converted_carve(&b->workspace, b->in[0], compute);
    SN_TRY(bind_operand(b, 1, compute, want, axis, &k->scale));
    SN_TRY(bind_operand(b, 2, compute, want, axis, &k->bias));
    k->y = sn_converted_carve(&b->workspace, &b->out[0], compute);
    if (b->n_out > 1 && p->stash != SONDE_DTYPE_F32) {
        k->mean = sn_carve(&b->workspace, k->plan.rows, sizeof(float));
        k->inv = sn_carve(&b->workspace, k->plan.rows, sizeof(float));
    }
    b->bound = k;
    sn_norm_choose_kernels(&k->plan, b->cpu_flags);
    b->kernel = k->plan.name;
    b->flops = 8 * (uint64_t)count;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ run */
static const void *load(const norm_bound *k, const operand *o, const sn_step *s, sn_frame *f,
                        uint32_t i)
{
    const void *data = sn_converted_in(s, f, i, k->plan.dtype, o->converted);
    if (!data || !o->spreads)
        return data;
    void *whole = sn_piece_ptr(f, o->whole);
    sn_copy_run(&o->spread, whole, data, f->pool);
    return whole;
}

static sonde_status run_norm(const sn_step *s, sn_frame *f)
{
    const norm_bound *k = s->bound;
    const sn_dtype compute = k->plan.dtype;
    const void *x = sn_converted_in(s, f, 0, compute, k->x);
    const void *scale = load(k, &k->scale, s, f, 1), *bias = load(k, &k->bias, s, f, 2);
    float *mean = sn_converted_out(s, f, 1, SONDE_DTYPE_F32, k->mean),
          *inv = sn_converted_out(s, f, 2, SONDE_DTYPE_F32, k->inv);
    sn_norm_run(&k->plan, sn_converted_out(s, f, 0, compute, k->y), x, scale, bias, mean, inv,
                f->pool);
    sn_converted_done(s, f, 0, compute, k->y);
    sn_converted_done(s, f, 1, SONDE_DTYPE_F32, k->mean);
    sn_converted_done(s, f, 2, SONDE_DTYPE_F32, k->inv);
    return SONDE_OK;
}

#define NORM(NAME, SINCE, UNTIL, MIN_IN, MAX_IN, MAX_OUT, PREPARE, INFER)                          \
    {                                                                                              \
        .name = NAME, .domain = "", .since = SINCE, .until = UNTIL, .min_in = MIN_IN,              \
        .max_in = MAX_IN, .min_out = 1, .max_out = MAX_OUT, .flags = SN_OP_INPLACE0,               \
        .params_size = sizeof(norm_params), .prepare = PREPARE, .infer = INFER, .bind = bind_norm, \
        .run = run_norm, .half = SN_HALF_IN_F32, .types = SN_FLOATS                                \
    }
const sn_op sn_op_layer_normalization[] = {
    NORM("LayerNormalization", 17, 0, 2, 3, 3, prepare_layer, infer_layer), {.name = NULL}};
const sn_op sn_op_rms_normalization[] = {
    NORM("RMSNormalization", 23, 0, 2, 2, 1, prepare_layer, infer_layer), {.name = NULL}};
const sn_op sn_op_instance_normalization[] = {
    NORM("InstanceNormalization", 1, 0, 3, 3, 1, prepare_instance, infer_channels), {.name = NULL}};
const sn_op sn_op_group_normalization[] = {
    NORM("GroupNormalization", 18, 20, 3, 3, 1, prepare_group_18, infer_channels),
    NORM("GroupNormalization", 21, 0, 3, 3, 1, prepare_group, infer_channels),
    {.name = NULL}};
