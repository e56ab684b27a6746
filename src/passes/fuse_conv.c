/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a convolution and can be done while its result is in registers: a constant added or
 * multiplied per channel goes into weights and bias, a residual and an activation into the node,
 * which becomes sonde.FusedConv. */
#include <string.h>

#include "passes/epilogue.h"

static bool is_candidate(const sn_node *n)
{
    return sn_node_is(n, "Conv") && n->n_in >= 2 && n->n_out == 1 && n->out[0] && n->in[0].value &&
           sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) &&
           sn_value_is_dtype(n->out[0], SONDE_DTYPE_F32);
}

/* A constant that broadcasts along channels only: its one axis of `channels` elements stands where
 * the channels are (axis 1 of `rank`), or it has one element. */
static const sn_tensor *per_channel(const sn_value *c, int32_t rank, int64_t channels, bool *scalar)
{
    if (!c || !sn_value_is_const(c) || c->fact.data->dtype != SONDE_DTYPE_F32 ||
        !sn_tensor_is_plain(c->fact.data) || c->fact.data->rank > rank)
        return NULL;
    const sn_tensor *t = c->fact.data;
    int64_t n = sn_tensor_count(t);
    int axis = 1 - (rank - t->rank); /* of the channels in t */
    *scalar = n == 1;
    if (n == 1 || (n == channels && axis >= 0 && t->dims[axis] == channels))
        return t;
    return NULL;
}

/* Conv ► Add or Mul with a constant per channel. */
static sonde_status absorb_constant(sn_graph *g, sn_pass_env *env, sn_node *conv, bool *done)
{
    sn_node *next = sn_value_only_reader(conv->out[0]);
    int64_t channels = sn_conv_channels(conv);
    *done = false;
    if (!next || !channels || conv->out[0]->fact.type.rank < 3)
        return SONDE_OK;
    bool add = sn_node_is(next, "Add"), scalar;
    if (!add && !sn_node_is(next, "Mul"))
        return SONDE_OK;
    const sn_value *constant = sn_node_other_input(next, conv->out[0]);
    const sn_tensor *values =
        per_channel(constant, conv->out[0]->fact.type.rank, channels, &scalar);
    if (!values)
        return SONDE_OK;
    size_t bytes = (size_t)channels * 2 * sizeof(double);
    double *scale = sn_alloc(g->alloc, bytes);
    if (!scale)
        return sn_fail_memory(env->err, bytes);
    double *shift = scale + channels;
    for (int64_t c = 0; c < channels; c++) {
        double x = (double)sn_read_f32(values, scalar ? 0 : c);
        scale[c] = add ? 1.0 : x;
        shift[c] = add ? x : 0.0;
    }
    sonde_status st = sn_conv_scale_shift(g, env, conv, add ? NULL : scale, shift, constant, done);
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
    if (!e.n_nodes || !sn_op_find("sonde", "FusedConv", 1, NULL))
        return SONDE_OK;
    (*changes)++;
    return sn_epilogue_apply(g, env, conv, "FusedConv", 3, &e, order);
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
