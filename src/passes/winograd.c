/* SPDX-License-Identifier: Apache-2.0 */
/* Lets convolutions of 3×3 at stride 1, in any depth, go Winograd's way, those over one channel
 * (depthwise) excepted: they have nothing to gain. Their weights stay as they are; whether that way
 * is taken, and with which tile, is decided when the size of the image is known
 * (compute/conv_winograd_plan.c). */
#include "passes/rewrite.h"

/* At every row and column? The stride of depth does not matter. */
static bool is_dense(const sn_node *n)
{
    const sn_attr *a = sn_node_attr(n, "strides");
    return !a || (a->kind == SN_ATTR_INTS && a->n >= 2 && a->ints[a->n - 2] == 1 &&
                  a->ints[a->n - 1] == 1);
}

static bool is_filter(const sn_tensor *w)
{
    return (w->rank == 4 || w->rank == 5) && w->dims[1] > 1 && w->dims[w->rank - 2] == 3 &&
           w->dims[w->rank - 1] == 3;
}

static bool is_candidate(const sn_node *n)
{
    if (!(sn_node_is(n, "Conv") || sn_node_is_internal(n, "FusedConv")) || n->n_in < 2 ||
        n->n_out != 1 || !n->out[0] || !n->in[0].value || !n->in[1].value)
        return false;
    const sn_value *w = n->in[1].value;
    return sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) && sn_value_is_const(w) &&
           sn_value_is_weight(w) && is_filter(w->fact.data) && is_dense(n);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    const sn_attr leave = {.name = "winograd", .kind = SN_ATTR_INT, .n = 1, .i = 1};
    if (!sn_op_find("sonde", "FusedConv", 1, NULL))
        return SONDE_OK;
    sn_graph_each (n, g) {
        if (!is_candidate(n) || sn_node_attr(n, "winograd"))
            continue;
        n->domain = "sonde";
        n->op_type = "FusedConv";
        n->opset = 1;
        SN_TRY(sn_node_set_attr(g, n, &leave, env->err));
        SN_TRY(sn_node_refresh(g, n, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_winograd = {
    .name = "winograd",
    .summary = "uses Winograd for 3x3 convolutions where it is faster",
    .run = run,
    .bodies = false,
};
