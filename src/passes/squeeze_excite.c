/* SPDX-License-Identifier: Apache-2.0 */
/* Squeeze-and-excite: an image times a gate per channel, read by a 1×1 convolution only. The gate
 * goes into the convolution's weights (sonde.GatedConv), and the image is not written again. Only
 * where the weights are far fewer than the pixels. */
#include "passes/rewrite.h"

static bool is_pointwise(const sn_node *n)
{
    if (!(sn_node_is(n, "Conv") || sn_node_is_internal(n, "FusedConv")) || n->n_in < 2 ||
        n->n_out != 1 || !n->out[0] || !n->in[1].value || sn_node_attr_int(n, "group", 1) != 1)
        return false;
    const sn_value *w = n->in[1].value;
    return sn_value_is_const(w) && sn_value_is_weight(w) && w->fact.data->rank == 4 &&
           w->fact.data->dims[2] == 1 && w->fact.data->dims[3] == 1;
}

static bool is_image(const sn_value *v)
{
    return v && !v->fact.data && sn_value_is_dtype(v, SONDE_DTYPE_F32) && v->fact.type.rank == 4 &&
           sn_dim_known(v->fact.type.dims[1]) && sn_dim_known(v->fact.type.dims[2]) &&
           sn_dim_known(v->fact.type.dims[3]);
}

/* One number per image and channel of x. */
static bool is_gate_of(const sn_value *v, const sn_value *x)
{
    const sn_dim *g = v->fact.type.dims, *d = x->fact.type.dims;
    return g[2] == 1 && g[3] == 1 && g[1] == d[1] && sn_dim_same(g[0], d[0]);
}

/* Which input of a Mul is the image that `conv` would read: 0 or 1; -1: this is no gate. */
static int image_of(const sn_node *mul, const sn_node *conv)
{
    if (!sn_node_is(mul, "Mul") || mul->opset < 7 || mul->n_in != 2 ||
        sn_value_only_reader(mul->out[0]) != conv || conv->in[0].value != mul->out[0])
        return -1;
    for (int i = 0; i < 2; i++) {
        const sn_value *x = mul->in[i].value, *gate = mul->in[1 - i].value;
        if (!is_image(x) || !is_image(gate) || !is_gate_of(gate, x))
            continue;
        /* Weights per input channel against pixels per input channel. */
        const int64_t weights = conv->in[1].value->fact.data->dims[0];
        const int64_t rows = x->fact.type.dims[2], cols = x->fact.type.dims[3];
        if (rows > 0 && cols > 0 && weights <= rows * cols / 2)
            return i;
    }
    return -1;
}

static sonde_status join(sn_graph *g, sn_pass_env *env, sn_node *mul, sn_node *conv, int image)
{
    sonde_error *err = env->err;
    while (conv->n_in < 5)
        SN_TRY(sn_node_add_input(g, conv, NULL, err));
    sn_value *const bias = conv->in[2].value, *const residual = conv->in[3].value;
    conv->domain = "sonde";
    conv->op_type = "GatedConv";
    conv->opset = 1;
    sn_node_set_input(conv, 0, mul->in[image].value);
    sn_node_set_input(conv, 2, mul->in[1 - image].value);
    sn_node_set_input(conv, 3, bias);
    sn_node_set_input(conv, 4, residual);
    SN_TRY(sn_graph_replace(g, &mul, 1, conv, conv, err));
    return sn_node_refresh(g, conv, err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (!sn_op_find("sonde", "GatedConv", 1, NULL))
        return SONDE_OK;
    sn_graph_each (n, g) {
        sn_node *mul = is_pointwise(n) && n->in[0].value ? n->in[0].value->producer : NULL;
        const int image = mul ? image_of(mul, n) : -1;
        if (image < 0)
            continue;
        SN_TRY(join(g, env, mul, n, image));
        (*changes)++;
        n_next = n->next;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_squeeze_excite = {
    .name = "squeeze-excite",
    .summary = "fuses a gate per channel into the 1x1 convolution after it",
    .run = run,
    .bodies = true,
};
