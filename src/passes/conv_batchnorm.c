/* SPDX-License-Identifier: Apache-2.0 */
/* Conv ► BatchNormalization with constant statistics: the normalisation is a scale and a shift per
 * channel, which the convolution's weights and bias can carry. */
#include <math.h>
#include <string.h>

#include "passes/rewrite.h"

/* Inference form with constant f32 parameters of `channels` elements, only output 0 read? */
static bool is_foldable(const sn_node *bn, int64_t channels)
{
    if (!sn_node_is(bn, "BatchNormalization") || bn->n_in < 5 || !bn->out[0])
        return false;
    if (sn_node_attr_int(bn, "training_mode", 0) ||
        (bn->opset < 9 && !sn_node_attr_int(bn, "spatial", 1)) ||
        (bn->opset < 7 && !sn_node_attr_int(bn, "is_test", 0)))
        return false;
    for (uint32_t o = 1; o < bn->n_out; o++)
        if (bn->out[o] && (bn->out[o]->n_uses || bn->out[o]->n_outputs))
            return false;
    for (uint32_t i = 1; i < 5; i++) {
        const sn_value *v = bn->in[i].value;
        if (!v || !sn_value_is_const(v) || v->fact.data->dtype != SONDE_DTYPE_F32 ||
            v->fact.data->pack || sn_tensor_count(v->fact.data) != channels)
            return false;
    }
    return true;
}

static double param(const sn_node *bn, uint32_t i, int64_t c)
{
    return (double)sn_read_f32(bn->in[i].value->fact.data, c);
}

/* False: a variance that has no root; such a model keeps its node and its NaN. */
static bool scale_and_shift(const sn_node *bn, int64_t channels, double *scale, double *shift)
{
    double epsilon = (double)sn_node_attr_float(bn, "epsilon", 1e-5f);
    for (int64_t c = 0; c < channels; c++) {
        double var = param(bn, 4, c) + epsilon;
        if (!(var > 0.0))
            return false;
        scale[c] = param(bn, 1, c) / sqrt(var);
        shift[c] = param(bn, 2, c) - param(bn, 3, c) * scale[c];
    }
    return true;
}

static sonde_status fold(sn_graph *g, sn_pass_env *env, sn_node *conv, sn_node *bn,
                         int64_t channels, bool *done)
{
    size_t bytes = (size_t)channels * 2 * sizeof(double);
    double *scale = sn_alloc(g->alloc, bytes);
    *done = false;
    if (!scale)
        return sn_fail_memory(env->err, bytes);
    double *shift = scale + channels;
    sonde_status st = SONDE_OK;
    if (scale_and_shift(bn, channels, scale, shift))
        st = sn_conv_scale_shift(g, env, conv, scale, shift, bn->in[2].value, done);
    sn_free(g->alloc, scale, bytes);
    return st;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (conv, g) {
        int64_t channels = sn_node_is(conv, "Conv") ? sn_conv_channels(conv) : 0;
        sn_node *bn = channels && conv->out[0] ? sn_value_only_reader(conv->out[0]) : NULL;
        bool done;
        if (!bn || bn->in[0].value != conv->out[0] || !is_foldable(bn, channels))
            continue;
        SN_TRY(fold(g, env, conv, bn, channels, &done));
        if (!done)
            continue;
        sn_value *out = bn->out[0];
        if (conv_next == bn)
            conv_next = bn->next;
        sn_node_set_output(conv, 0, out);
        SN_TRY(sn_node_add_post_op(g, conv, bn->op_type, env->err));
        SN_TRY(sn_graph_replace(g, &bn, 1, conv, conv, env->err));
        SN_TRY(sn_node_refresh(g, conv, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_conv_batchnorm = {
    .name = "conv-batchnorm",
    .summary = "folds batch normalisation into the weights of the convolution before it",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
