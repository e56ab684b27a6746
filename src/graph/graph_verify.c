/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of a graph, checked one by one: what tests call after every change. */
#include "graph/graph.h"

#define EXPECT(cond, ...)                                                                          \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return sn_fail(err, SONDE_INTERNAL, __VA_ARGS__);                                      \
    } while (0)

static sonde_status verify_value(const sn_graph *g, const sn_value *v, sonde_error *err)
{
    uint32_t n = 0;
    const sn_edge *prev = NULL;
    for (const sn_edge *e = v->uses; e; prev = e, e = e->next, n++) {
        EXPECT(e->value == v, "'%s': an edge in its use list reads something else", v->name);
        EXPECT(e->prev == prev, "'%s': its use list is not linked back", v->name);
        EXPECT(!e->node->removed, "'%s' is read by a removed node", v->name);
        EXPECT(e->index < e->node->n_in && &e->node->in[e->index] == e,
               "'%s': an edge in its use list is stale", v->name);
        EXPECT(n < v->n_uses, "'%s' has more uses than it counts", v->name);
    }
    EXPECT(n == v->n_uses, "'%s' has %u uses but counts %u", v->name, n, v->n_uses);
    if (v->producer) {
        EXPECT(!v->producer->removed, "'%s' is made by a removed node", v->name);
        EXPECT(v->output_index < v->producer->n_out && v->producer->out[v->output_index] == v,
               "'%s': its producer does not know it", v->name);
        EXPECT(!v->is_input, "'%s' is made by a node and is an input", v->name);
    }
    EXPECT(v->id < g->values.n && g->values.data[v->id] == v, "'%s' has a wrong id", v->name);
    return SONDE_OK;
}

/* `seen` (by value id): defined so far. */
static sonde_status verify_node(const sn_graph *g, const sn_node *n, uint8_t *seen,
                                sonde_error *err)
{
    EXPECT(!n->removed && n->id < g->n_nodes, "node '%s' is listed but removed", n->name);
    EXPECT(n->n_formal_in <= n->n_in, "node '%s' has more formal inputs than inputs", n->name);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_edge *e = &n->in[i];
        EXPECT(e->node == n && e->index == i, "input %u of node '%s' is mislabelled", i, n->name);
        if (!e->value)
            continue;
        EXPECT(e->value->id < g->values.n && g->values.data[e->value->id] == e->value,
               "node '%s' reads '%s' of another graph", n->name, e->value->name);
        EXPECT(!e->value->producer || seen[e->value->id], "node '%s' reads '%s' before it is made",
               n->name, e->value->name);
        EXPECT(e->value->producer || e->value->is_input || e->value->fact.data ||
                   e->value->is_initializer,
               "node '%s' reads '%s', which nothing defines", n->name, e->value->name);
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            EXPECT(n->out[i]->producer == n && n->out[i]->output_index == i,
                   "output %u of node '%s' does not know its producer", i, n->name);
            seen[n->out[i]->id] = 1;
        }
    for (uint32_t i = 1; i < n->n_origins; i++)
        EXPECT(n->origins[i - 1] < n->origins[i], "origins of node '%s' are not sorted", n->name);
    const sn_graph *body;
    for (uint32_t k = 0; (body = sn_node_body(n, k)); k++) {
        EXPECT(body->parent == g, "body %u of node '%s' has another parent", k, n->name);
        EXPECT(body->inputs.n == body->n_formal_inputs + body->capture_map.n,
               "body %u of node '%s' has inputs that are no captures", k, n->name);
        for (size_t i = 0; i < body->capture_map.n; i++)
            EXPECT(body->capture_map.data[i] >= n->n_formal_in &&
                       body->capture_map.data[i] < n->n_in,
                   "body %u of node '%s' captures input %u, which is none", k, n->name,
                   body->capture_map.data[i]);
        SN_TRY(sn_graph_verify(body, err));
    }
    return SONDE_OK;
}

static sonde_status verify_all(const sn_graph *g, uint8_t *seen, sonde_error *err)
{
    uint32_t live = 0;
    for (size_t i = 0; i < g->values.n; i++)
        SN_TRY(verify_value(g, g->values.data[i], err));
    for (const sn_node *n = g->first; n; n = n->next, live++) {
        EXPECT(n->next ? n->next->prev == n : g->last == n, "node '%s' is not linked back",
               n->name);
        SN_TRY(verify_node(g, n, seen, err));
    }
    EXPECT(live == g->n_live_nodes, "the graph has %u nodes but counts %u", live, g->n_live_nodes);
    for (size_t i = 0; i < g->inputs.n; i++)
        EXPECT(g->inputs.data[i]->is_input, "input '%s' is not marked as one",
               g->inputs.data[i]->name);
    uint64_t outputs = 0;
    for (size_t i = 0; i < g->values.n; i++)
        outputs += g->values.data[i]->n_outputs;
    EXPECT(outputs == g->outputs.n, "the values count other outputs than the graph");
    for (size_t i = 0; i < g->outputs.n; i++) {
        const sn_value *v = g->outputs.data[i];
        EXPECT(v->n_outputs > 0 && g->values.data[v->id] == v, "output '%s' is not marked as one",
               v->name);
        EXPECT(v->producer || v->is_input || v->fact.data || v->is_initializer,
               "nothing defines output '%s'", v->name);
    }
    return SONDE_OK;
}

sonde_status sn_graph_verify(const sn_graph *g, sonde_error *err)
{
    uint8_t *seen = sn_alloc_zero(g->alloc, g->values.n);
    if (!seen)
        return sn_fail_memory(err, g->values.n);
    sonde_status st = verify_all(g, seen, err);
    sn_free(g->alloc, seen, g->values.n);
    return st;
}
