/* SPDX-License-Identifier: Apache-2.0 */
/* Dead code: walked from the end, a node whose outputs nobody reads goes, and with it its reads, so
 * one walk finds all of them. Bodies are cleaned before what they capture is looked at. */
#include "passes/rewrite.h"

static bool is_read(const sn_value *v)
{
    return v && (v->n_uses || v->n_outputs);
}

/* Optional outputs nobody reads need not be computed. */
static void drop_outputs(sn_node *n, uint32_t *changes)
{
    if (!n->op || n->op->max_out < 0)
        return;
    for (uint32_t o = (uint32_t)n->op->min_out; o < n->n_out; o++)
        if (n->out[o] && !is_read(n->out[o])) {
            sn_node_set_output(n, o, NULL);
            (*changes)++;
        }
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_node *prev;
    for (sn_node *n = g->last; n; n = prev) {
        prev = n->prev;
        bool live = false;
        for (uint32_t o = 0; o < n->n_out; o++)
            live |= is_read(n->out[o]);
        if (!live) {
            SN_TRY(sn_graph_remove(g, n, env->err));
            (*changes)++;
            continue;
        }
        drop_outputs(n, changes);
        sn_graph *body;
        bool bodies = false;
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++, bodies = true)
            SN_TRY(run(body, env, changes));
        if (bodies)
            SN_TRY(sn_node_prune_captures(g, n, changes, env->err));
    }
    return SONDE_OK;
}

const sn_pass sn_pass_dead_code = {
    .name = "dead-code",
    .summary = "removes nodes whose results are not used",
    .run = run,
    .bodies = false, /* done on the way */
};
