/* SPDX-License-Identifier: Apache-2.0 */
/* A language model's head multiplies by the transposed table of its embeddings. Folding that
 * Transpose would keep the table twice; the product reads it transposed instead. Runs before
 * constants are folded; a matrix nobody else reads is folded as ever. */
#include "passes/axes.h"

static bool is_tied(const sn_node *t)
{
    int64_t perm[SN_MAX_RANK];
    const sn_value *w = t->n_in == 1 ? t->in[0].value : NULL;
    return w && t->n_out == 1 && t->out[0] && sn_value_is_const(w) && w->n_uses > 1 &&
           w->fact.data->rank == 2 && sn_value_is_weight(w) && sn_transpose_perm(t, 2, perm) &&
           perm[0] == 1 && !t->out[0]->n_outputs;
}

/* A product that can read its second matrix transposed. */
static bool can_read(const sn_edge *e)
{
    const sn_node *n = e->node;
    if (e->index != 1 || !n->in[0].value || n->in[0].value == e->value ||
        n->in[0].value->fact.type.dtype != e->value->fact.type.dtype)
        return false;
    return sn_node_is(n, "Gemm") ||
           (sn_node_is(n, "MatMul") && n->in[0].value->fact.type.rank >= 2);
}

static sonde_status read_transposed(sn_graph *g, sn_pass_env *env, sn_node *n, sn_value *w)
{
    sn_attr a = {.name = "transB", .kind = SN_ATTR_INT, .n = 1, .i = 1};
    if (sn_node_is(n, "Gemm")) {
        a.i = !sn_node_attr_int(n, "transB", 0);
    } else {
        n->domain = "sonde";
        n->op_type = "FusedGemm";
        n->opset = 1;
    }
    SN_TRY(sn_node_set_attr(g, n, &a, env->err));
    sn_node_set_input(n, 1, w);
    return sn_node_refresh(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (t, g) {
        if (!sn_node_is(t, "Transpose") || !is_tied(t))
            continue;
        bool all = t->out[0]->uses != NULL;
        for (const sn_edge *e = t->out[0]->uses; e && all; e = e->next)
            all = can_read(e);
        while (all && t->out[0]->uses) {
            sn_node *n = t->out[0]->uses->node;
            SN_TRY(sn_node_inherit(g, n, t, env->err));
            SN_TRY(read_transposed(g, env, n, t->in[0].value));
            (*changes)++;
        }
        if (all)
            SN_TRY(sn_graph_remove(g, t, env->err));
    }
    return SONDE_OK;
}

const sn_pass sn_pass_tied_weights = {
    .name = "tied-weights",
    .summary = "reads a shared weight transposed instead of storing a transposed copy",
    .run = run,
    .bodies = false,
};
