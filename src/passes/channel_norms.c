/* SPDX-License-Identifier: Apache-2.0 */
/* A normalisation over the channels of an image between convolutions. Its operators take the last
 * axis, so exporters turn the image there and back:
 *
 *   Transpose ► LayerNormalization ► Transpose   becomes   ChannelNorm
 *
 * which takes the image as the convolutions have it. Stands before blocked-layout and behind the
 * passes that make normalisations. Elsewhere the Transposes are as good: they stay. */
#include "passes/axes.h"

/* Channels second ► last (`last`), or back. */
static bool turns_image(const sn_node *t, bool last)
{
    int64_t perm[SN_MAX_RANK];
    const int rank = sn_node_is(t, "Transpose") && t->out[0] ? t->out[0]->fact.type.rank : 0;
    if (rank < 4 || rank > 5 || !sn_transpose_perm(t, rank, perm) || perm[0] != 0)
        return false;
    for (int i = 1; i < rank; i++)
        if (perm[i] != (last ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1)))
            return false;
    return true;
}

static bool is_norm(const sn_node *n)
{
    return (sn_node_is(n, "LayerNormalization") || sn_node_is(n, "RMSNormalization")) &&
           n->n_in >= 2 && n->n_out >= 1 && n->out[0];
}

static bool is_row(const sn_value *v, sn_dim channels)
{
    return v && sn_value_is_dtype(v, SONDE_DTYPE_F32) && v->fact.type.rank == 1 &&
           sn_dim_known(channels) && v->fact.type.dims[0] == channels;
}

/* Over the last axis only, with rows of f32, and nobody wants its statistics. */
static bool takes_channels(const sn_node *n)
{
    const sn_type *x = &n->in[0].value->fact.type;
    const int64_t axis = sn_node_attr_int(n, "axis", -1);
    const sn_dim channels = x->dims[x->rank - 1];
    for (uint32_t o = 1; o < n->n_out; o++)
        if (n->out[o])
            return false;
    return (axis == -1 || axis == x->rank - 1) && is_row(n->in[1].value, channels) &&
           (n->n_in < 3 || !n->in[2].value || is_row(n->in[2].value, channels));
}

static bool is_conv(const sn_node *n)
{
    return n && (sn_node_is(n, "Conv") || sn_node_is_internal(n, "FusedConv"));
}

/* A convolution makes the image or reads the result. */
static bool is_beside_conv(const sn_value *x, const sn_value *y)
{
    if (is_conv(x->producer))
        return true;
    for (const sn_edge *u = y->uses; u; u = u->next)
        if (is_conv(u->node))
            return true;
    return false;
}

static sonde_status fuse(sn_graph *g, sn_pass_env *env, sn_node *there, sn_node *n, sn_node *back)
{
    sn_attr rms = {.name = "rms", .kind = SN_ATTR_INT, .n = 1, .i = 1};
    if (sn_node_is(n, "RMSNormalization"))
        SN_TRY(sn_node_set_attr(g, n, &rms, env->err));
    n->domain = "sonde";
    n->op_type = "ChannelNorm";
    n->opset = 1;
    sn_node_set_input(n, 0, there->in[0].value);
    sn_node_set_output(n, 0, back->out[0]);
    SN_TRY(sn_graph_replace(g, (sn_node *[]){there, n, back}, 3, n, n, env->err));
    return sn_node_refresh(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (!sn_op_find("sonde", "ChannelNorm", 1, NULL))
        return SONDE_OK;
    sn_graph_each (n, g) {
        if (!is_norm(n) || !n->in[0].value || !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32))
            continue;
        sn_node *there = sn_value_only_reader(n->in[0].value) ? n->in[0].value->producer : NULL;
        sn_node *back = sn_value_only_reader(n->out[0]);
        if (!there || !back || !turns_image(there, true) || !turns_image(back, false) ||
            !takes_channels(n) || !is_beside_conv(there->in[0].value, back->out[0]))
            continue;
        if (n_next == back)
            n_next = back->next;
        SN_TRY(fuse(g, env, there, n, back));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_channel_norms = {
    .name = "channel-norms",
    .summary = "normalises channels of images without bringing them to the end",
    .run = run,
    .bodies = true,
};
