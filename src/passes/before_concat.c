/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions whose channels are joined, and a normalisation or an activation behind: each of them
 * has its own instead, which goes into its weights or its epilogue. */
#include "passes/batchnorm.h"
#include "passes/rewrite.h"

/* An activation of each element alone, all else of it in attributes. */
static bool is_activation(const sn_node *n)
{
    static const char *const types[] = {"Relu",      "LeakyRelu", "Sigmoid",    "Tanh",
                                        "HardSwish", "Elu",       "Gelu",       "Swish",
                                        "Mish",      "Softplus",  "HardSigmoid"};
    for (size_t i = 0; n->n_in == 1 && n->n_out == 1 && i < sizeof types / sizeof *types; i++)
        if (sn_node_is(n, types[i]))
            return true;
    return false;
}

/* Channels that input i of the Concat has, if a convolution made them for nobody else. */
static int64_t channels_of(const sn_node *join, uint32_t i)
{
    const sn_value *v = join->in[i].value;
    const sn_node *conv = v ? v->producer : NULL;
    return conv && sn_node_is(conv, "Conv") && sn_value_only_reader(v) == join
               ? sn_conv_channels(conv)
               : 0;
}

static bool joins_convs(const sn_node *n, int64_t *all)
{
    if (!sn_node_is(n, "Concat") || n->n_in < 2 || !n->out[0])
        return false;
    const int rank = n->out[0]->fact.type.rank;
    const int64_t axis = sn_node_attr_int(n, "axis", 1);
    *all = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const int64_t channels = channels_of(n, i);
        if (!channels || rank < 3 || (axis != 1 && axis != 1 - rank))
            return false;
        *all += channels;
    }
    return true;
}

/* Elements first … first+n-1 of a constant of as many as there are channels. */
static sonde_status cut(sn_graph *g, sn_pass_env *env, const sn_value *whole, int64_t first,
                        int64_t n, sn_value **part)
{
    void *data;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_F32, &n, 1, part, &data));
    sn_tensor_read(whole->fact.data, first, n, data);
    sn_value_show_as(*part, whole);
    return SONDE_OK;
}

/* `n` for input i of the Concat, `channels` from `first` on. */
static sonde_status add_before(sn_graph *g, sn_pass_env *env, sn_node *join, const sn_node *n,
                               uint32_t i, int64_t first, int64_t channels, sn_node **made)
{
    sn_value *v;
    SN_TRY(sn_graph_add_node(g, join, n->domain, n->op_type, n->name, n->n_in, 1, made, env->err));
    (*made)->opset = n->opset;
    for (uint32_t a = 0; a < n->n_attrs; a++)
        SN_TRY(sn_node_set_attr(g, *made, &n->attrs[a], env->err));
    sn_node_set_input(*made, 0, join->in[i].value);
    for (uint32_t k = 1; k < n->n_in; k++) {
        SN_TRY(cut(g, env, n->in[k].value, first, channels, &v));
        sn_node_set_input(*made, k, v);
    }
    SN_TRY(sn_graph_add_value(g, "", &v, env->err));
    sn_value_show_as(v, n->out[0]);
    sn_node_set_output(*made, 0, v);
    sn_node_set_input(join, i, v);
    SN_TRY(sn_node_inherit(g, *made, n, env->err));
    return sn_node_refresh(g, *made, env->err);
}

/* What reads the Concat goes before it. */
static sonde_status move(sn_graph *g, sn_pass_env *env, sn_node *join, sn_node *reader,
                         const int64_t *channels)
{
    sn_node *made = NULL;
    int64_t first = 0;
    for (uint32_t i = 0; i < join->n_in; first += channels[i], i++)
        SN_TRY(add_before(g, env, join, reader, i, first, channels[i], &made));
    sn_node_set_output(join, 0, reader->out[0]);
    SN_TRY(sn_graph_replace(g, &reader, 1, made, reader, env->err));
    return sn_node_refresh(g, join, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (join, g) {
        int64_t all;
        if (!joins_convs(join, &all))
            continue;
        int64_t *channels = SN_NEW_N(g->arena, int64_t, join->n_in);
        if (!channels)
            return sn_fail_memory(env->err, sizeof *channels * join->n_in);
        for (uint32_t i = 0; i < join->n_in; i++)
            channels[i] = channels_of(join, i);
        for (sn_node *reader; (reader = sn_value_only_reader(join->out[0])) != NULL;) {
            if (!is_activation(reader) &&
                !(reader->in[0].value == join->out[0] && sn_batchnorm_is_constant(reader, all)))
                break;
            SN_TRY(move(g, env, join, reader, channels));
            (*changes)++;
        }
        join_next = join->next;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_before_concat = {
    .name = "before-concat",
    .summary = "moves normalisations and activations behind joined convolutions to each of them",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
