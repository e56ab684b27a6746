/* SPDX-License-Identifier: Apache-2.0 */
/* Shrink: numbers near zero become zero, the others move towards it by a bias. */
#include "ops/shared/elementwise.h"

typedef struct shrink_params {
    float bias, lambd;
} shrink_params;

static sonde_status prepare_shrink(sn_prep *p)
{
    shrink_params *h = p->params;
    SN_TRY(sn_prep_float(p, "bias", 0.0f, &h->bias));
    return sn_prep_float(p, "lambd", 0.5f, &h->lambd);
}

static sonde_status infer_shrink(sn_infer *c)
{
    return sn_infer_same(c, 0, 0);
}

static sonde_status bind_shrink(sn_bind *b)
{
    const sn_dtype t = b->in[0]->type.dtype;
    int64_t n = 0;
    if (!(sn_dtype_is_float(t) || sn_dtype_is_int(t)) || sn_dtype_bits(t) < 8)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(t));
    b->kernel = "shrink";
    if (sn_type_count(&b->in[0]->type, &n))
        b->flops = 2 * (uint64_t)n;
    return SONDE_OK;
}

static sonde_status run_shrink(const sn_step *s, sn_frame *f)
{
    const shrink_params *p = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_shrink_run(x->dtype, sn_out(s, f, 0)->data, x->data, (size_t)sn_tensor_count(x),
                  (double)p->bias, (double)p->lambd, f->pool);
    return SONDE_OK;
}

const sn_op sn_op_shrink[] = {
    {SN_ELT_HEAD("Shrink", 9, 0, 1, 1), .flags = SN_OP_INPLACE0 | SN_OP_ELEMENTWISE,
     .params_size = sizeof(shrink_params), .prepare = prepare_shrink, .infer = infer_shrink,
     .bind = bind_shrink, .run = run_shrink, .types = SN_FLOATS " " SN_INTS},
    {.name = NULL}};
