/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax, Hardmax. Up to opset 12 all dims from `axis` on form one row; since 13 the
 * axis alone does. */
#include "compute/softmax.h"

#include "ops/shared/converted.h"
#include "ops/shared/elementwise.h"

typedef struct softmax_params {
    sn_softmax_kind kind;
    int64_t axis;
    bool flatten;
} softmax_params;

static sonde_status prepare(sn_prep *p, int64_t axis, bool flatten)
{
    softmax_params *s = p->params;
    char first = p->node->op_type[0];
    s->kind = first == 'S' ? SN_SOFTMAX : first == 'L' ? SN_LOG_SOFTMAX : SN_HARDMAX;
    s->flatten = flatten;
    return sn_prep_int(p, "axis", axis, &s->axis);
}
static sonde_status prepare_1(sn_prep *p)
{
    return prepare(p, 1, true);
}
static sonde_status prepare_13(sn_prep *p)
{
    return prepare(p, -1, false);
}

static sonde_status infer_softmax(sn_infer *c)
{
    const softmax_params *s = c->params;
    const sn_type *x = &c->in[0]->type;
    int axis;
    if (x->rank > 0)
        SN_TRY(sn_infer_axis(c, s->axis, x->rank, s->flatten, &axis));
    return sn_infer_same(c, 0, 0);
}

typedef struct softmax_bound {
    sn_softmax_plan plan;
    sn_piece xy; /* of 16-bit floats in f32; the driver works in place */
} softmax_bound;

static sonde_status bind_softmax(sn_bind *b)
{
    const softmax_params *s = b->params;
    softmax_bound *k = SN_NEW(b->arena, softmax_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof(*k));
    sn_softmax_plan *p = &k->plan;
    const sn_type *x = &b->in[0]->type;
    p->kind = s->kind;
    p->dtype = sn_compute_dtype(x->dtype);
    if (p->dtype != SONDE_DTYPE_F32 && p->dtype != SONDE_DTYPE_F64)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(x->dtype));
    p->outer = p->n = p->inner = 1;
    if (x->rank > 0) {
        int axis = (int)(s->axis < 0 ? s->axis + x->rank : s->axis);
        int end = s->flatten ? x->rank : axis + 1;
        p->outer = sn_dims_product(x->dims, 0, axis);
        p->n = sn_dims_product(x->dims, axis, end);
        p->inner = sn_dims_product(x->dims, end, x->rank);
    }
    int64_t count = p->outer * p->n * p->inner;
    k->xy = sn_converted_carve(&b->workspace, b->in[0], p->dtype);
    b->bound = k;
    sn_softmax_choose_kernels(p, b->cpu_flags);
    b->kernel = p->name;
    b->flops = 10 * (uint64_t)count;
    return SONDE_OK;
}

static sonde_status run_softmax(const sn_step *s, sn_frame *f)
{
    const softmax_bound *k = s->bound;
    const sn_dtype compute = k->plan.dtype;
    const void *x = sn_converted_in(s, f, 0, compute, k->xy);
    sn_softmax_run(&k->plan, sn_converted_out(s, f, 0, compute, k->xy), x, f->pool);
    sn_converted_done(s, f, 0, compute, k->xy);
    return SONDE_OK;
}

#define VERSION(NAME, SINCE, UNTIL, PREPARE, HALF)                                                 \
    {                                                                                              \
        SN_ELT_HEAD(NAME, SINCE, UNTIL, 1, 1),                                                     \
            .flags = SN_OP_INPLACE0, .params_size = sizeof(softmax_params), .prepare = PREPARE,    \
            .infer = infer_softmax, .bind = bind_softmax, .run = run_softmax, .half = (HALF),      \
            .types = SN_FLOATS                                                                     \
    }
#define SOFTMAX(symbol, NAME, HALF)                                                                \
    const sn_op sn_op_##symbol[] = {VERSION(NAME, 1, 12, prepare_1, HALF),                         \
                                    VERSION(NAME, 13, 0, prepare_13, HALF),                        \
                                    {.name = NULL}};
SOFTMAX(softmax, "Softmax", SN_HALF_IN_F32)
SOFTMAX(log_softmax, "LogSoftmax", SN_HALF_IN_F32)
SOFTMAX(hardmax, "Hardmax", SN_HALF_AS_TYPED)
