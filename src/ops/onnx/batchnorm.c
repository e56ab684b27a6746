/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale + bias per channel. Usually
 * a pass has folded it into a convolution; what remains runs here. training_mode takes mean and
 * variance from the batch and gives the running ones as outputs 1 and 2. */
#include "compute/batchnorm.h"
#include "compute/small_floats.h"
#include "ops/shared/data_movement.h"
#include "ops/shared/layouts.h"

typedef struct norm_params {
    float epsilon, momentum;
    int64_t training, spatial;
} norm_params;

enum { X, SCALE, BIAS, MEAN, VARIANCE };

static sonde_status prepare(sn_prep *p)
{
    norm_params *n = p->params;
    SN_TRY(sn_prep_float(p, "epsilon", 1e-5f, &n->epsilon));
    SN_TRY(sn_prep_float(p, "momentum", 0.9f, &n->momentum));
    SN_TRY(sn_prep_int(p, "training_mode", 0, &n->training));
    SN_TRY(sn_prep_int(p, "spatial", 1, &n->spatial));
    if (n->spatial != 1)
        return sn_prep_fail(p, "spatial = %lld is not supported", (long long)n->spatial);
    return SONDE_OK;
}

/* Until opset 6 an attribute said that this is not training. */
static sonde_status prepare_1(sn_prep *p)
{
    int64_t is_test;
    SN_TRY(prepare(p));
    SN_TRY(sn_prep_int(p, "is_test", 0, &is_test));
    return is_test ? SONDE_OK : sn_prep_fail(p, "is_test = 0 (training) is not supported");
}

static sonde_status infer(sn_infer *c)
{
    const norm_params *p = c->params;
    for (uint32_t i = X; i <= VARIANCE; i++)
        if (!sn_infer_has(c, i))
            return sn_infer_fail(c, "input %u is missing", i);
    const sn_type *x = &c->in[X]->type;
    if (x->rank == 0)
        return sn_infer_fail(c, "a scalar has no channels");
    const sn_dim channels = x->rank >= 2 ? x->dims[1] : x->rank == 1 ? 1 : SN_DIM_UNKNOWN;
    for (uint32_t i = SCALE; i <= VARIANCE; i++) {
        const sn_type *t = &c->in[i]->type;
        if (t->rank >= 0 && (t->rank != 1 || (sn_dim_known(t->dims[0]) && sn_dim_known(channels) &&
                                              t->dims[0] != channels)))
            return sn_infer_fail(c, "input %u must have one element per channel", i);
    }
    SN_TRY(sn_infer_same(c, 0, X));
    /* Outputs beyond the first exist in training only (until opset 13 they are deprecated). */
    for (uint32_t o = 1; o < c->n_out; o++) {
        if (!p->training && c->node->out[o])
            return sn_infer_fail(c, "output %u exists only in training mode", o);
        SN_TRY(sn_infer_same(c, o, o == 1 || o == 3 ? MEAN : VARIANCE));
    }
    return SONDE_OK;
}

static const sn_op_signature *in_blocks(const sn_node *node, const void *params, int block)
{
    const norm_params *p = params;
    const sn_value *x = node->in[X].value;
    (void)block;
    if (!x || p->training || x->fact.type.dtype != SONDE_DTYPE_F32 || x->fact.type.rank != 4)
        return NULL;
    return &sn_layout_follows;
}

static sn_elems wanted(const sn_step *s, const sn_frame *f, uint32_t o)
{
    return sn_tensor_elems(sn_wants(s, o) ? sn_out(s, f, o) : NULL);
}

static sonde_status run(const sn_step *s, sn_frame *f)
{
    const sn_batchnorm_data d = {.x = sn_tensor_elems(sn_in(s, f, X)),
                                 .y = sn_tensor_elems(sn_out(s, f, 0)),
                                 .scale = sn_tensor_elems(sn_in(s, f, SCALE)),
                                 .bias = sn_tensor_elems(sn_in(s, f, BIAS)),
                                 .mean = sn_tensor_elems(sn_in(s, f, MEAN)),
                                 .variance = sn_tensor_elems(sn_in(s, f, VARIANCE)),
                                 .running_mean = wanted(s, f, 1),
                                 .running_variance = wanted(s, f, 2),
                                 .batch_mean = wanted(s, f, 3),
                                 .batch_variance = wanted(s, f, 4)};
    sn_batchnorm_run(s->bound, &d, f->pool);
    return SONDE_OK;
}

static sonde_status bind(sn_bind *b)
{
    const sn_type *x = &b->in[X]->type;
    const norm_params *p = b->params;
    sn_batchnorm *n = SN_NEW(b->arena, sn_batchnorm);
    if (!n)
        return sn_fail_memory(b->err, sizeof *n);
    if (x->dtype != SONDE_DTYPE_F64 && x->dtype != SONDE_DTYPE_F32 && !sn_is_half(x->dtype))
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "%s is not supported", sn_dtype_name(x->dtype));
    *n = (sn_batchnorm){.images = x->dims[0],
                        .channels = x->rank > 1 ? x->dims[1] : 1,
                        .pixels = 1,
                        .block = sn_fact_block(b->in[X]),
                        .epsilon = p->epsilon,
                        .momentum = p->momentum,
                        .training = p->training != 0,
                        .cpu_flags = b->cpu_flags};
    for (int i = 2; i < x->rank; i++)
        n->pixels *= x->dims[i];
    b->bound = n;
    b->kernel = n->block ? "f32_batchnorm_blocked" : "batchnorm_plain";
    return SONDE_OK;
}

#define NORM(from, to, outs, prep)                                                                 \
    {                                                                                              \
        .name = "BatchNormalization", .domain = "", .since = from, .until = to, .min_in = 5,       \
        .max_in = 5, .min_out = 1, .max_out = outs, .flags = SN_OP_INPLACE0,                       \
        .params_size = sizeof(norm_params), .prepare = prep, .infer = infer, .bind = bind,         \
        .run = run, .half = SN_HALF_IN_F32, .in_blocks = in_blocks, .types = "f32 f64 f16 bf16"    \
    }

const sn_op sn_op_batch_normalization[] = {NORM(1, 5, 5, prepare_1),
                                           NORM(6, 6, 5, prepare_1),
                                           NORM(7, 8, 5, prepare),
                                           NORM(9, 13, 5, prepare),
                                           NORM(14, 14, 3, prepare),
                                           NORM(15, 0, 3, prepare),
                                           {.name = NULL}};
