/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a convolution and can be done while its result is in registers: a constant added or
 * multiplied per channel goes into weights and bias, a residual and an activation into the node,
 * which becomes sonde.FusedConv, or sonde.FusedConvTranspose. */
#include "passes/affine.h"
#include "passes/epilogue.h"

static bool is_candidate(const sn_node *n)
{
    return (sn_node_is(n, "Conv") || sn_node_is(n, "ConvTranspose")) && n->n_in >= 2 &&
           n->n_out == 1 && n->out[0] && n->in[0].value &&
           sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) &&
           sn_value_is_dtype(n->out[0], SONDE_DTYPE_F32);
}

/* Conv ► Add, Sub, Mul or Div with a constant per channel. */
static sonde_status absorb_constant(sn_graph *g, sn_pass_env *env, sn_node *conv, bool *done)
{
    sn_node *next = sn_value_only_reader(conv->out[0]);
    int64_t channels = sn_conv_channels(conv);
    *done = false;
    if (!next || !channels || conv->out[0]->fact.type.rank < 3)
        return SONDE_OK;
    const sn_affine kind = sn_affine_of(next, conv->out[0], 1, channels);
    if (!kind)
        return SONDE_OK;
    size_t bytes = (size_t)channels * 2 * sizeof(double);
    double *scale = sn_alloc_zero(g->alloc, bytes);
    if (!scale)
        return sn_fail_memory(env->err, bytes);
    double *shift = scale + channels;
    for (int64_t c = 0; c < channels; c++)
        scale[c] = 1.0;
    sn_affine_join(next, conv->out[0], channels, scale, shift);
    sonde_status st = sn_conv_scale_shift(g, env, conv, kind == SN_AFFINE_SHIFT ? NULL : scale,
                                          shift, sn_affine_shown(next, conv->out[0]), done);
    sn_free(g->alloc, scale, bytes);
    if (st != SONDE_OK || !*done)
        return st;
    sn_node_set_output(conv, 0, next->out[0]);
    SN_TRY(sn_node_add_post_op(g, conv, next->op_type, env->err));
    SN_TRY(sn_graph_replace(g, &next, 1, conv, conv, env->err));
    return sn_node_refresh(g, conv, env->err);
}

static sonde_status fuse(sn_graph *g, sn_pass_env *env, sn_node *conv, uint32_t *order,
                         uint32_t *changes)
{
    bool done = true;
    while (done) {
        SN_TRY(absorb_constant(g, env, conv, &done));
        *changes += done;
    }
    sn_epilogue e;
    sn_epilogue_match(conv, order, is_candidate, false, &e);
    const char *fused = sn_node_is(conv, "Conv") ? "FusedConv" : "FusedConvTranspose";
    if (!e.n_nodes || !sn_op_find("sonde", fused, 1, NULL))
        return SONDE_OK;
    (*changes)++;
    return sn_epilogue_apply(g, env, conv, fused, 3, &e, order);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    return sn_epilogue_walk(g, env, is_candidate, fuse, changes);
}

const sn_pass sn_pass_fuse_conv = {
    .name = "fuse-conv",
    .summary = "fuses bias, residual and activation into convolutions",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
