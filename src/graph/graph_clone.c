/* SPDX-License-Identifier: Apache-2.0 */
/* Deep copies of structure. Constant data, names, types and lists inside attributes are shared with
 * the original, which outlives its clones; nodes, edges, values and bodies are new. */
#include "graph/graph_clone.h"

#include <string.h>

/* Element types nest at most as deep as the reader allowed. */
static bool has_symbols(const sn_type *t)
{
    for (; t; t = t->elem)
        if (t->kind == SN_KIND_TENSOR)
            for (int i = 0; i < t->rank; i++)
                if (!sn_dim_known(t->dims[i]) && t->dims[i] != SN_DIM_UNKNOWN)
                    return true;
    return false;
}

sonde_status sn_clone_type(const sn_cloner *c, const sn_type *from, sn_type *out)
{
    *out = *from;
    if (!c->forget_symbols || !has_symbols(from))
        return SONDE_OK;
    SN_TRY(sn_type_copy(out, from, c->arena, c->err));
    for (sn_type *t = out; t; t = (sn_type *)(uintptr_t)t->elem) { /* ours: just copied */
        sn_dim *dims = (sn_dim *)(uintptr_t)t->dims;
        for (int i = 0; t->kind == SN_KIND_TENSOR && i < t->rank; i++)
            if (!sn_dim_known(dims[i]))
                dims[i] = SN_DIM_UNKNOWN;
    }
    return SONDE_OK;
}

/* Replaces the bodies of one attribute by copies. */
static sonde_status clone_bodies(const sn_cloner *c, sn_graph *g, sn_attr *a)
{
    if (a->kind == SN_ATTR_GRAPH && a->graph && !a->ref)
        return sn_clone_graph(c, a->graph, g, &a->graph);
    if (a->kind != SN_ATTR_GRAPHS || !a->n || a->ref)
        return SONDE_OK;
    sn_graph **made = SN_NEW_N(c->arena, sn_graph *, a->n);
    if (!made)
        return sn_fail_memory(c->err, a->n * sizeof *made);
    for (size_t i = 0; i < a->n; i++)
        SN_TRY(sn_clone_graph(c, a->graphs[i], g, &made[i]));
    a->graphs = made;
    return SONDE_OK;
}

sonde_status sn_clone_attrs(const sn_cloner *c, sn_graph *g, sn_node *made, const sn_node *from)
{
    made->attrs = NULL;
    made->n_attrs = made->attr_cap = 0;
    if (!from->n_attrs)
        return SONDE_OK;
    made->attrs = SN_NEW_N(c->arena, sn_attr, from->n_attrs);
    if (!made->attrs)
        return sn_fail_memory(c->err, from->n_attrs * sizeof(sn_attr));
    made->attr_cap = from->n_attrs;
    for (uint32_t i = 0; i < from->n_attrs; i++) {
        sn_attr a = from->attrs[i];
        bool keep = true;
        if (c->attr)
            SN_TRY(c->attr(c, from, &a, &keep));
        if (!keep)
            continue;
        SN_TRY(clone_bodies(c, g, &a));
        made->attrs[made->n_attrs++] = a;
    }
    return SONDE_OK;
}

/* Values in one block, ids as before; links to nodes are made later. */
static sonde_status clone_values(const sn_cloner *c, const sn_graph *from, sn_graph *g)
{
    size_t n = from->values.n;
    if (!n)
        return SONDE_OK;
    sn_value *all = SN_NEW_N(c->arena, sn_value, n);
    if (!all || !sn_vec_reserve(&g->values, g->alloc, n))
        return sn_fail_memory(c->err, n * sizeof *all);
    for (size_t i = 0; i < n; i++) {
        const sn_value *v = from->values.data[i];
        all[i] = *v;
        all[i].producer = NULL;
        all[i].uses = NULL;
        all[i].n_uses = 0;
        SN_TRY(sn_clone_type(c, &v->fact.type, &all[i].fact.type));
        if (c->forget_symbols)
            all[i].fact.ints = NULL, all[i].fact.n_ints = 0;
        g->values.data[g->values.n++] = &all[i];
    }
    return SONDE_OK;
}

static sonde_status clone_node(const sn_cloner *c, sn_graph *g, const sn_node *from)
{
    sn_node *n = SN_NEW(c->arena, sn_node);
    sn_edge *in = from->n_in ? SN_NEW_N(c->arena, sn_edge, from->n_in) : NULL;
    sn_value **out = from->n_out ? SN_NEW_N(c->arena, sn_value *, from->n_out) : NULL;
    if (!n || (from->n_in && !in) || (from->n_out && !out))
        return sn_fail_memory(c->err, sizeof *n);
    *n = *from;
    n->in = in;
    n->in_cap = n->n_in;
    n->out = out;
    n->op = NULL;
    n->params = NULL;
    n->next = NULL;
    n->prev = g->last;
    if (g->last)
        g->last->next = n;
    else
        g->first = n;
    g->last = n;
    for (uint32_t i = 0; i < n->n_in; i++) {
        in[i] = (sn_edge){.node = n, .index = i};
        if (from->in[i].value)
            sn_node_set_input(n, i, g->values.data[from->in[i].value->id]);
        in[i].shown = from->in[i].shown;
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        if (from->out[i])
            sn_node_set_output(n, i, g->values.data[from->out[i]->id]);
    SN_TRY(sn_clone_attrs(c, g, n, from));
    return c->node ? c->node(c, g, n, from) : SONDE_OK;
}

static sonde_status clone_contents(const sn_cloner *c, const sn_graph *from, sn_graph *g)
{
    SN_TRY(clone_values(c, from, g));
    if (!sn_vec_reserve(&g->inputs, g->alloc, from->inputs.n) ||
        !sn_vec_reserve(&g->outputs, g->alloc, from->outputs.n) ||
        !sn_vec_reserve(&g->capture_map, g->alloc, from->capture_map.n) ||
        !sn_vec_reserve(&g->symbols, g->alloc, from->symbols.n) ||
        !sn_vec_reserve(&g->folded, g->alloc, from->folded.n))
        return sn_fail_memory(c->err, from->values.n * sizeof(void *));
    for (size_t i = 0; i < from->inputs.n; i++)
        g->inputs.data[g->inputs.n++] = g->values.data[from->inputs.data[i]->id];
    for (size_t i = 0; i < from->outputs.n; i++)
        g->outputs.data[g->outputs.n++] = g->values.data[from->outputs.data[i]->id];
    for (size_t i = 0; i < from->capture_map.n; i++)
        g->capture_map.data[g->capture_map.n++] = from->capture_map.data[i];
    for (size_t i = 0; i < from->folded.n; i++)
        g->folded.data[g->folded.n++] = from->folded.data[i];
    for (size_t i = 0; i < from->symbols.n; i++) {
        g->symbols.data[g->symbols.n++] = from->symbols.data[i];
        if (from->symbols.data[i] &&
            !sn_map_put(&g->symbol_ids, from->symbols.data[i], (void *)(uintptr_t)(i + 1), NULL))
            return sn_fail_memory(c->err, sizeof(sn_map_entry));
    }
    for (const sn_node *n = from->first; n; n = n->next)
        SN_TRY(clone_node(c, g, n));
    g->n_formal_inputs = from->n_formal_inputs;
    g->n_nodes = from->n_nodes;
    g->n_live_nodes = from->n_live_nodes;
    return SONDE_OK;
}

sonde_status sn_clone_graph(const sn_cloner *c, const sn_graph *from, sn_graph *parent,
                            sn_graph **out)
{
    sn_graph *g;
    SN_TRY(sn_graph_new(&g, c->arena, c->alloc, from->name, parent, c->err));
    g->origins = from->origins;
    sonde_status st = clone_contents(c, from, g);
    if (st != SONDE_OK) {
        sn_graph_free(g);
        return st;
    }
    *out = g;
    return SONDE_OK;
}

sonde_status sn_graph_clone(const sn_graph *g, sn_arena *arena, sn_graph **out, sonde_error *err)
{
    sn_cloner c = {.arena = arena, .alloc = arena->alloc, .err = err};
    *out = NULL;
    return sn_clone_graph(&c, g, NULL, out);
}
