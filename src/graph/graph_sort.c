/* SPDX-License-Identifier: Apache-2.0 */
/* Topological sort: nodes are taken in their present order, each after what it depends on. A list
 * that is sorted already stays as it is, and any other changes no more than it must. Linear, with a
 * stack of its own (a chain of 10^5 nodes in reverse is no recursion). */
#include "graph/graph.h"

#include <string.h>

typedef struct visit {
    sn_node *node;
    uint32_t next_in;
} visit;

enum { NEW, OPEN, DONE };

static bool is_sorted(const sn_graph *g, uint8_t *state)
{
    for (const sn_node *n = g->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->n_in; i++) {
            const sn_value *v = n->in[i].value;
            if (v && v->producer && state[v->producer->id] != DONE)
                return false;
        }
        state[n->id] = DONE;
    }
    return true;
}

typedef struct sorter {
    sn_graph *g;
    uint8_t *state;  /* by node id */
    sn_node **order; /* n_live_nodes, filled as nodes are done */
    size_t n_order;
    SN_VEC(visit) stack;
    sonde_error *err;
} sorter;

/* Emits `start` after everything it still waits for. */
static sonde_status emit(sorter *s, sn_node *start)
{
    visit first = {start, 0};
    if (!sn_vec_push(&s->stack, s->g->alloc, first))
        return sn_fail_memory(s->err, sizeof first);
    s->state[start->id] = OPEN;
    while (s->stack.n) {
        visit *top = &s->stack.data[s->stack.n - 1];
        sn_node *n = top->node, *need = NULL;
        while (top->next_in < n->n_in && !need) {
            const sn_value *v = n->in[top->next_in++].value;
            if (v && v->producer && s->state[v->producer->id] != DONE)
                need = v->producer;
        }
        if (!need) {
            s->state[n->id] = DONE;
            s->order[s->n_order++] = n;
            s->stack.n--;
            continue;
        }
        if (s->state[need->id] == OPEN) {
            char text[400];
            return sn_fail(s->err, SONDE_INVALID_MODEL,
                           "%s depends on its own output: the graph has a cycle",
                           sn_node_text(need, text, sizeof text));
        }
        visit v = {need, 0};
        if (!sn_vec_push(&s->stack, s->g->alloc, v))
            return sn_fail_memory(s->err, sizeof v);
        s->state[need->id] = OPEN;
    }
    return SONDE_OK;
}

sonde_status sn_graph_sort(sn_graph *g, sonde_error *err)
{
    sorter s = {.g = g, .err = err};
    sonde_status st = SONDE_OK;
    size_t order_bytes = g->n_live_nodes * sizeof *s.order;
    s.state = sn_alloc_zero(g->alloc, g->n_nodes);
    if (!s.state)
        return sn_fail_memory(err, g->n_nodes);
    if (is_sorted(g, s.state))
        goto fail;
    s.order = sn_alloc(g->alloc, order_bytes);
    if (!s.order) {
        st = sn_fail_memory(err, order_bytes);
        goto fail;
    }
    memset(s.state, NEW, g->n_nodes);
    for (sn_node *n = g->first; n; n = n->next)
        if (s.state[n->id] == NEW)
            SN_TRY_GOTO(st, emit(&s, n));
    g->first = g->last = NULL;
    for (size_t i = 0; i < s.n_order; i++) {
        sn_node *n = s.order[i];
        n->prev = g->last;
        n->next = NULL;
        if (g->last)
            g->last->next = n;
        else
            g->first = n;
        g->last = n;
    }
fail:
    sn_vec_free(&s.stack, g->alloc);
    if (s.order)
        sn_free(g->alloc, s.order, order_bytes);
    sn_free(g->alloc, s.state, g->n_nodes);
    return st;
}
