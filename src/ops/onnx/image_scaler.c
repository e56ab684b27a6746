/* SPDX-License-Identifier: Apache-2.0 */
/* ImageScaler: y = scale · x + bias of the channel. An experimental operator of the first opset
 * that old exporters wrote in front of image models and that other runtimes still accept. */
#include "compute/image_scale.h"
#include "ops/framework/op.h"

typedef struct scaler_params {
    float scale;
    const float *bias;
    size_t n_bias;
} scaler_params;

static sonde_status prepare_scaler(sn_prep *p)
{
    scaler_params *r = p->params;
    SN_TRY(sn_prep_float(p, "scale", 1.0f, &r->scale));
    return sn_prep_floats(p, "bias", &r->bias, &r->n_bias);
}

static sonde_status infer_scaler(sn_infer *c)
{
    const scaler_params *r = c->params;
    const sn_type *x = &c->in[0]->type;
    if (x->dtype != SONDE_DTYPE_F32)
        return sn_infer_fail(c, "elements are %s, expected f32", sn_dtype_name(x->dtype));
    if (x->rank >= 0 && x->rank != 4)
        return sn_infer_fail(c, "an image has 4 dimensions, the input has %d", x->rank);
    if (x->rank == 4 && r->n_bias && sn_dim_known(x->dims[1]) && x->dims[1] != (int64_t)r->n_bias)
        return sn_infer_fail(c, "%zu biases for %lld channels", r->n_bias, (long long)x->dims[1]);
    return sn_infer_same(c, 0, 0);
}

static sonde_status run_scaler(const sn_step *s, sn_frame *f)
{
    const scaler_params *r = s->params;
    const sn_tensor *x = sn_in(s, f, 0);
    sn_image_scale_run(sn_out(s, f, 0)->data, x->data, x->dims[0], x->dims[1],
                       x->dims[2] * x->dims[3], r->scale, r->n_bias ? r->bias : NULL);
    return SONDE_OK;
}

const sn_op sn_op_image_scaler[] = {
    {.name = "ImageScaler",
     .domain = "",
     .since = 1,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .flags = SN_OP_INPLACE0,
     .params_size = sizeof(scaler_params),
     .prepare = prepare_scaler,
     .infer = infer_scaler,
     .run = run_scaler,
     .types = "f32"},
    {.name = NULL},
};
