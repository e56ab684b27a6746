/* SPDX-License-Identifier: Apache-2.0 */
/* A 1×1 convolution that widens an image and the depthwise one that reads it become one node, which
 * does them chunk by chunk. Only where what lies between them is larger than a core's cache keeps:
 * smaller ones lose nothing by running one after the other, and are easier to read in a profile. */
#include "passes/rewrite.h"

enum {
    WORTH_BYTES = 1 << 20, /* between the two */
    FEWEST_CHANNELS = 8    /* of the input: a first layer reads plain images */
};

static bool is_conv(const sn_node *n)
{
    return (sn_node_is(n, "Conv") || sn_node_is_internal(n, "FusedConv")) && n->n_in >= 2 &&
           n->n_out == 1 && n->out[0] && n->in[0].value && n->in[1].value &&
           (n->n_in < 4 || !n->in[3].value) && sn_value_is_dtype(n->out[0], SONDE_DTYPE_F32);
}

static const sn_tensor *weight_of(const sn_node *n)
{
    const sn_value *w = n->in[1].value;
    return sn_value_is_const(w) && sn_value_is_weight(w) && w->fact.data->rank == 4 ? w->fact.data
                                                                                    : NULL;
}

static bool all_are(const sn_node *n, const char *name, int64_t value)
{
    const sn_attr *a = sn_node_attr(n, name);
    for (size_t i = 0; a && a->kind == SN_ATTR_INTS && i < a->n; i++)
        if (a->ints[i] != value)
            return false;
    return true;
}

/* One by one pixel at stride 1, without padding. */
static bool is_pointwise(const sn_node *n)
{
    const sn_tensor *w = weight_of(n);
    return w && w->dims[2] == 1 && w->dims[3] == 1 && w->dims[1] >= FEWEST_CHANNELS &&
           sn_node_attr_int(n, "group", 1) == 1 && all_are(n, "strides", 1) &&
           all_are(n, "pads", 0);
}

static bool is_depthwise(const sn_node *n)
{
    const sn_tensor *w = weight_of(n);
    return w && w->dims[0] > 1 && w->dims[1] == 1 && sn_node_attr_int(n, "group", 1) == w->dims[0];
}

/* One image of v; how many there are may be open. */
static bool is_large(const sn_value *v)
{
    const sn_type *t = &v->fact.type;
    int64_t n = 1;
    for (int i = 1; i < 4; i++)
        if (t->rank != 4 || !sn_dim_known(t->dims[i]) || !sn_i64_mul(n, t->dims[i], &n))
            return false;
    return n >= WORTH_BYTES / (int64_t)sizeof(float);
}

/* The second node's activation keeps its attributes; the first's get names of their own. */
static sonde_status take_activation(sn_graph *g, sn_node *to, const sn_node *from, const char *name,
                                    const char *as, sonde_error *err)
{
    const sn_attr *a = sn_node_is_internal(from, "FusedConv") ? sn_node_attr(from, name) : NULL;
    if (!a)
        return SONDE_OK;
    sn_attr copy = *a;
    copy.name = as;
    return sn_node_set_attr(g, to, &copy, err);
}

static sonde_status join(sn_graph *g, sn_pass_env *env, sn_node *first, sn_node *second)
{
    sonde_error *err = env->err;
    SN_TRY(take_activation(g, second, first, "activation", "first_activation", err));
    SN_TRY(take_activation(g, second, first, "activation_params", "first_activation_params", err));
    const char *post =
        sn_arena_printf(g->arena, "%s%sConv%s%s", first->post_op, first->post_op[0] ? "+" : "",
                        second->post_op[0] ? "+" : "", second->post_op);
    if (!post)
        return sn_fail_memory(err, 64);
    second->domain = "sonde";
    second->op_type = "ConvDepthwise";
    second->opset = 1;
    second->post_op = post;
    while (second->n_in < 5)
        SN_TRY(sn_node_add_input(g, second, NULL, err));
    sn_value *const bias = second->in[2].value;
    sn_node_set_input(second, 0, first->in[0].value);
    sn_node_set_input(second, 2, first->in[1].value);
    sn_node_set_input(second, 3, bias);
    sn_node_set_input(second, 4, first->n_in > 2 ? first->in[2].value : NULL);
    SN_TRY(sn_graph_replace(g, &first, 1, second, first, err));
    return sn_node_refresh(g, second, err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (!sn_op_find("sonde", "ConvDepthwise", 1, NULL))
        return SONDE_OK;
    sn_graph_each (n, g) {
        sn_node *first = is_conv(n) && is_depthwise(n) ? n->in[0].value->producer : NULL;
        if (!first || !is_conv(first) || !is_pointwise(first) ||
            sn_value_only_reader(first->out[0]) != n || !is_large(first->out[0]) ||
            first->out[0]->fact.type.dims[1] != weight_of(n)->dims[0])
            continue;
        SN_TRY(join(g, env, first, n));
        (*changes)++;
        n_next = n->next;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_depthwise_chain = {
    .name = "depthwise-chain",
    .summary = "fuses a 1x1 convolution with the depthwise convolution after it",
    .run = run,
    .bodies = true,
};
