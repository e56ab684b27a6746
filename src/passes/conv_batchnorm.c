/* SPDX-License-Identifier: Apache-2.0 */
/* Conv or ConvTranspose ► BatchNormalization with constant statistics: the normalisation is a scale
 * and a shift per channel, which the convolution's weights and bias can carry. */
#include "passes/batchnorm.h"
#include "passes/rewrite.h"

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
    if (sn_batchnorm_factors(bn, channels, scale, shift))
        st = sn_conv_scale_shift(g, env, conv, scale, shift, bn->in[2].value, done);
    sn_free(g->alloc, scale, bytes);
    return st;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (conv, g) {
        int64_t channels = sn_node_is_internal(conv, "FusedConv") ? 0 : sn_conv_channels(conv);
        sn_node *bn = channels && conv->out[0] ? sn_value_only_reader(conv->out[0]) : NULL;
        bool done;
        if (!bn || bn->in[0].value != conv->out[0] || !sn_batchnorm_is_constant(bn, channels))
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
