/* SPDX-License-Identifier: Apache-2.0 */
/* Two transposes in a row are one: exporters that change between NCHW and NHWC leave many of them.
 * A pair that undoes itself becomes a transpose that does nothing, which `identity` then removes.
 */
#include "passes/axes.h"

static sonde_status merge(sn_graph *g, sn_pass_env *env, sn_node *first, sn_node *second,
                          const int64_t *perm, int rank)
{
    sn_attr attr = {.name = "perm", .kind = SN_ATTR_INTS, .n = (size_t)rank};
    int64_t *copy = SN_NEW_N(g->arena, int64_t, rank);
    if (!copy)
        return sn_fail_memory(env->err, sizeof *copy * SN_MAX_RANK);
    memcpy(copy, perm, (size_t)rank * sizeof *copy);
    attr.ints = copy;
    SN_TRY(sn_node_set_attr(g, second, &attr, env->err));
    bool alone = sn_value_only_reader(first->out[0]) == second;
    sn_node_set_input(second, 0, first->in[0].value);
    if (alone)
        SN_TRY(sn_graph_replace(g, (sn_node *[]){first, second}, 2, second, second, env->err));
    else
        SN_TRY(sn_node_inherit(g, second, first, env->err));
    return sn_node_refresh(g, second, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        if (!sn_node_is(n, "Transpose") || !n->in[0].value)
            continue;
        sn_node *first = n->in[0].value->producer;
        int64_t a[SN_MAX_RANK], b[SN_MAX_RANK], both[SN_MAX_RANK];
        int rank = n->in[0].value->fact.type.rank;
        if (!first || !sn_node_is(first, "Transpose") || rank < 1 ||
            !sn_transpose_perm(first, rank, a) || !sn_transpose_perm(n, rank, b))
            continue;
        for (int i = 0; i < rank; i++)
            both[i] = a[b[i]];
        SN_TRY(merge(g, env, first, n, both, rank));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_transpose_pairs = {.name = "transpose-pairs",
                                         .summary = "merges two consecutive transposes",
                                         .run = run,
                                         .bodies = true};
