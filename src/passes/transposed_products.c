/* SPDX-License-Identifier: Apache-2.0 */
/* A product by a matrix that a Transpose turns reads it as it lies: sonde.FusedGemm has a flag for
 * that. Runs behind the passes that look for attention. */
#include "passes/axes.h"

/* Swaps the last two axes and nothing else. */
static bool swaps_matrix(const sn_node *t, int rank)
{
    int64_t perm[SN_MAX_RANK];
    if (rank < 2 || !sn_transpose_perm(t, rank, perm))
        return false;
    for (int i = 0; i < rank - 2; i++)
        if (perm[i] != i)
            return false;
    return perm[rank - 2] == rank - 1 && perm[rank - 1] == rank - 2;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        if (!sn_node_is(n, "MatMul") || !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) ||
            n->in[0].value->fact.type.rank < 2 || n->in[0].value == n->in[1].value)
            continue;
        sn_value *b = n->in[1].value;
        sn_node *t = sn_value_only_reader(b) ? b->producer : NULL;
        if (!t || !sn_node_is(t, "Transpose") || !sn_value_is_dtype(b, SONDE_DTYPE_F32) ||
            !swaps_matrix(t, b->fact.type.rank))
            continue;
        sn_attr a = {.name = "transB", .kind = SN_ATTR_INT, .n = 1, .i = 1};
        n->domain = "sonde";
        n->op_type = "FusedGemm";
        n->opset = 1;
        SN_TRY(sn_node_set_attr(g, n, &a, env->err));
        sn_node_set_input(n, 1, t->in[0].value);
        SN_TRY(sn_graph_replace(g, (sn_node *[]){t, n}, 2, n, n, env->err));
        SN_TRY(sn_node_refresh(g, n, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_transposed_products = {
    .name = "transposed-products",
    .summary = "reads transposed operands of matrix products without transposing them",
    .run = run,
    .bodies = true,
};
