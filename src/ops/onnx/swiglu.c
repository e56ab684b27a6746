/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU: swish of the gate, times the other half. The two steps are those of its ONNX function, so
 * 16-bit floats are rounded in between as there. */
#include "ops/shared/elementwise.h"

typedef struct swiglu_bound {
    sn_elt swish, mul;
    sn_elt_plan plan;
    union {
        float f32[2];
        double f64[2];
    } p;
} swiglu_bound;

static sonde_status prepare_swiglu(sn_prep *p)
{
    return sn_prep_float(p, "alpha", 1.0f, p->params);
}

/* Unlike other operators of two tensors this one does not broadcast. */
static sonde_status infer_swiglu(sn_infer *c)
{
    const sn_type *a = &c->in[0]->type, *b = &c->in[1]->type;
    if (a->dtype != b->dtype && a->dtype != SONDE_DTYPE_UNDEFINED &&
        b->dtype != SONDE_DTYPE_UNDEFINED)
        return sn_infer_fail(c, "inputs have different element types: %s and %s",
                             sn_dtype_onnx_name(a->dtype), sn_dtype_onnx_name(b->dtype));
    bool same = a->rank < 0 || b->rank < 0 || a->rank == b->rank;
    for (int i = 0; same && i < a->rank && b->rank >= 0; i++)
        same = !sn_dim_known(a->dims[i]) || !sn_dim_known(b->dims[i]) || a->dims[i] == b->dims[i];
    if (!same)
        return sn_infer_fail(c, "the inputs have different shapes");
    return sn_infer_same(c, 0, a->rank >= 0 ? 0 : 1);
}

static sonde_status bind_swiglu(sn_bind *b)
{
    const float alpha = *(const float *)b->params;
    swiglu_bound *k = SN_NEW(b->arena, swiglu_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_dtype t = b->in[0]->type.dtype;
    if (!sn_unary_get(&k->swish, SN_UNARY_SWISH, t, b->cpu_flags) ||
        !sn_binary_get(&k->mul, SN_BINARY_MUL, t, b->cpu_flags))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(t));
    SN_TRY(sn_elt_plan_make(b, 0, 2, &k->plan));
    if (t == SONDE_DTYPE_F64)
        k->p.f64[0] = (double)alpha;
    else
        k->p.f32[0] = alpha;
    b->bound = k;
    b->kernel = k->swish.name;
    b->flops = (uint64_t)k->plan.bcast.total * (k->swish.cost + 1u);
    return SONDE_OK;
}

static sonde_status run_swiglu(const sn_step *s, sn_frame *f)
{
    const swiglu_bound *k = s->bound;
    void *y = sn_out(s, f, 0)->data;
    sn_unary_run(&k->swish, y, sn_in(s, f, 0)->data, k->plan.bcast.total, &k->p, f->pool);
    sn_binary_run(&k->mul, &k->plan.bcast, y, y, sn_in(s, f, 1)->data, NULL, f->pool);
    return SONDE_OK;
}

/* In place of the gate only: the other half is read after the output was written. */
const sn_op sn_op_swiglu[] = {
    {SN_ELT_HEAD("SwiGLU", 28, 0, 2, 2), .flags = SN_OP_INPLACE0 | SN_OP_ELEMENTWISE,
     .params_size = sizeof(float), .prepare = prepare_swiglu, .infer = infer_swiglu,
     .bind = bind_swiglu, .run = run_swiglu, .types = SN_FLOATS},
    {.name = NULL}};
