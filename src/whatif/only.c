/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes may change: the lists of names that quantising and sparsifying take. */
#include "shrink/selection.h"
#include "whatif/whatif.h"

/* NULL: it has none. */
static const char *weight_name(const sn_node *n)
{
    sn_weight w;
    if (sn_weight_of(n, &w))
        return w.holder->in[w.input].value->name;
    const sn_value *second = n->n_in > 1 ? n->in[1].value : NULL;
    return second && sn_value_is_const(second) ? second->name : NULL;
}

static void mark(const sn_selection *s, const sn_graph *g, size_t n_origins, bool *only)
{
    for (const sn_node *n = g->first; n; n = n->next) {
        const sn_graph *body;
        const bool selected = sn_selection_has(s, n, weight_name(n));
        for (uint32_t i = 0; i < n->n_origins && selected; i++)
            if (n->origins[i] < n_origins)
                only[n->origins[i]] = true;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            mark(s, body, n_origins, only); /* depth is bounded by sn_graph_new */
    }
}

sonde_status sn_whatif_only(const sn_model *m, const char *const *names, size_t n, sn_arena *arena,
                            bool **only, sonde_error *err)
{
    const size_t n_origins = m->origins.list.n;
    sn_selection s;
    *only = NULL;
    if (!n)
        return SONDE_OK;
    if (!names)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "only_count is %zu, but the list of nodes is NULL", n);
    SN_TRY(sn_selection_make(&s, m->graph, names, n, NULL, 0, arena, err));
    *only = SN_NEW_N(arena, bool, n_origins + 1);
    if (!*only)
        return sn_fail_memory(err, n_origins);
    mark(&s, m->graph, n_origins, *only);
    return SONDE_OK;
}
