/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products with what follows them: MatMul ► Add of a constant row gets a bias, MatMul and
 * Gemm ► residual ► activation an epilogue; the node becomes sonde.FusedGemm. */
#include <string.h>

#include "passes/epilogue.h"

static bool is_f32_product(const sn_node *n)
{
    return n->n_in >= 2 && n->n_out == 1 && n->out[0] && n->in[0].value && n->in[1].value &&
           sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) &&
           sn_value_is_dtype(n->in[1].value, SONDE_DTYPE_F32) &&
           sn_value_is_dtype(n->out[0], SONDE_DTYPE_F32);
}

/* A MatMul by constant weights of two dims, or any Gemm. */
static bool is_candidate(const sn_node *n)
{
    if (sn_node_is(n, "Gemm"))
        return is_f32_product(n);
    return sn_node_is(n, "MatMul") && is_f32_product(n) && sn_value_is_const(n->in[1].value) &&
           n->in[1].value->fact.data->rank == 2 && n->in[0].value->fact.type.rank >= 2;
}

/* MatMul ► Add with a constant that has the columns' elements and nothing else. */
static sn_value *match_bias(const sn_node *n)
{
    const sn_node *add = sn_value_only_reader(n->out[0]);
    if (!sn_node_is(n, "MatMul") || !add || !sn_node_is(add, "Add"))
        return NULL;
    sn_value *bias = sn_node_other_input(add, n->out[0]);
    if (!bias || !sn_value_is_const(bias) || bias->fact.data->dtype != SONDE_DTYPE_F32 ||
        bias->fact.data->pack || bias->fact.data->rank < 1)
        return NULL;
    const sn_tensor *t = bias->fact.data;
    int64_t columns = n->in[1].value->fact.data->dims[1];
    bool fits = t->dims[t->rank - 1] == columns && sn_tensor_count(t) == columns &&
                t->rank <= n->out[0]->fact.type.rank;
    return fits ? bias : NULL;
}

/* The bias as one dim: a view of the same data. */
static sonde_status flat_bias(sn_graph *g, sn_pass_env *env, sn_value *bias, sn_value **out)
{
    *out = bias;
    if (bias->fact.data->rank == 1)
        return SONDE_OK;
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    if (!t)
        return sn_fail_memory(env->err, sizeof *t);
    *t = *bias->fact.data;
    t->dims[0] = t->dims[t->rank - 1];
    t->rank = 1;
    return sn_graph_add_constant(g, "", t, out, env->err);
}

static sonde_status fuse(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *order,
                         uint32_t *changes)
{
    sn_value *bias = match_bias(n);
    if (bias) {
        sn_node *add = sn_value_only_reader(n->out[0]);
        SN_TRY(flat_bias(g, env, bias, &bias));
        SN_TRY(sn_node_add_input(g, n, bias, env->err));
        SN_TRY(sn_node_add_post_op(g, n, add->op_type, env->err));
        sn_node_set_output(n, 0, add->out[0]);
        SN_TRY(sn_graph_replace(g, &add, 1, n, n, env->err));
        (*changes)++;
    }
    sn_epilogue e;
    sn_epilogue_match(n, order, is_candidate, &e);
    if (!e.n_nodes && !bias)
        return SONDE_OK;
    *changes += e.n_nodes > 0;
    return sn_epilogue_apply(g, env, n, "FusedGemm", 3, &e, order);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (!sn_op_find("sonde", "FusedGemm", 1, NULL))
        return SONDE_OK;
    return sn_epilogue_walk(g, env, is_candidate, fuse, changes);
}

const sn_pass sn_pass_fuse_gemm = {
    .name = "fuse-gemm",
    .summary = "puts bias, residual and activation into matrix products",
    .run = run,
    .bodies = true,
};
