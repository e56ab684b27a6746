/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs: graphs, values, nodes, origins, symbols. Objects come from the arena and are
 * never freed alone; only the growable vectors belong to the allocator, which is why a graph knows
 * every body ever made under it, also those of nodes long removed. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

static const char *copy_text(sn_graph *g, const char *s)
{
    return s && s[0] ? sn_arena_strdup(g->arena, s) : "";
}

sonde_status sn_graph_new(sn_graph **out, sn_arena *arena, sn_allocator *alloc, const char *name,
                          sn_graph *parent, sonde_error *err)
{
    *out = NULL;
    if (parent && parent->depth + 1 > SN_MAX_GRAPH_DEPTH)
        return sn_fail(err, SONDE_LIMIT, "graph '%s' is nested more than %d levels deep",
                       name ? name : "", SN_MAX_GRAPH_DEPTH);
    sn_graph *g = SN_NEW(arena, sn_graph);
    if (!g)
        return sn_fail_memory(err, sizeof *g);
    g->arena = arena;
    g->alloc = alloc;
    g->name = copy_text(g, name);
    if (!g->name)
        return sn_fail_memory(err, strlen(name) + 1);
    sn_map_init(&g->symbol_ids, alloc);
    if (parent) {
        g->parent = parent;
        g->depth = parent->depth + 1;
        g->origins = parent->origins;
        g->sibling_next = parent->child;
        if (parent->child)
            parent->child->sibling_prev = g;
        parent->child = g;
    }
    *out = g;
    return SONDE_OK;
}

static void free_vectors(sn_graph *g)
{
    for (sn_graph *c = g->child; c; c = c->sibling_next)
        free_vectors(c); /* depth is bounded by sn_graph_new */
    sn_vec_free(&g->values, g->alloc);
    sn_vec_free(&g->inputs, g->alloc);
    sn_vec_free(&g->outputs, g->alloc);
    sn_vec_free(&g->capture_map, g->alloc);
    sn_vec_free(&g->symbols, g->alloc);
    sn_vec_free(&g->folded, g->alloc);
    sn_map_free(&g->symbol_ids);
}

void sn_graph_free(sn_graph *g)
{
    if (!g)
        return;
    free_vectors(g);
    if (g->sibling_prev)
        g->sibling_prev->sibling_next = g->sibling_next;
    else if (g->parent)
        g->parent->child = g->sibling_next;
    if (g->sibling_next)
        g->sibling_next->sibling_prev = g->sibling_prev;
    g->child = g->sibling_prev = g->sibling_next = g->parent = NULL;
}

sonde_status sn_graph_add_value(sn_graph *g, const char *name, sn_value **out, sonde_error *err)
{
    *out = NULL;
    if (g->values.n >= UINT32_MAX)
        return sn_fail(err, SONDE_LIMIT, "graph '%s' has too many values", g->name);
    sn_value *v = SN_NEW(g->arena, sn_value);
    if (!v || !(v->name = copy_text(g, name)) || !sn_vec_push(&g->values, g->alloc, v))
        return sn_fail_memory(err, sizeof *v);
    v->id = (uint32_t)(g->values.n - 1);
    *out = v;
    return SONDE_OK;
}

sonde_status sn_graph_add_input(sn_graph *g, sn_value *v, sonde_error *err)
{
    if (v->is_input)
        return sn_fail(err, SONDE_INVALID_MODEL, "graph '%s' lists input '%s' twice", g->name,
                       v->name);
    if (!sn_vec_push(&g->inputs, g->alloc, v))
        return sn_fail_memory(err, g->inputs.n * sizeof v);
    v->is_input = true;
    g->n_formal_inputs = (uint32_t)g->inputs.n;
    return SONDE_OK;
}

sonde_status sn_graph_add_output(sn_graph *g, sn_value *v, sonde_error *err)
{
    if (!sn_vec_push(&g->outputs, g->alloc, v))
        return sn_fail_memory(err, g->outputs.n * sizeof v);
    v->n_outputs++;
    return SONDE_OK;
}

sonde_status sn_graph_add_constant(sn_graph *g, const char *name, const sn_tensor *data,
                                   sn_value **out, sonde_error *err)
{
    sn_value *v;
    SN_TRY(sn_graph_add_value(g, name, &v, err));
    SN_TRY(sn_value_set_constant(g, v, data, err));
    *out = v;
    return SONDE_OK;
}

sonde_status sn_value_set_constant(sn_graph *g, sn_value *v, const sn_tensor *data,
                                   sonde_error *err)
{
    sn_type t = {
        .kind = SN_KIND_TENSOR, .dtype = data->dtype, .rank = data->rank, .dims = data->dims};
    SN_TRY(sn_type_copy(&v->fact.type, &t, g->arena, err));
    v->fact.data = data;
    v->fact.form = (sn_form){.layout = data->layout, .space = data->space};
    v->fact.pack = data->pack;
    v->is_initializer = true;
    return SONDE_OK;
}

/* Links n into the list before `before` (NULL: at the end). */
static void link_node(sn_graph *g, sn_node *n, sn_node *before)
{
    n->next = before;
    n->prev = before ? before->prev : g->last;
    if (n->prev)
        n->prev->next = n;
    else
        g->first = n;
    if (before)
        before->prev = n;
    else
        g->last = n;
}

void sn_node_take_out(sn_graph *g, sn_node *n)
{
    if (n->prev)
        n->prev->next = n->next;
    else
        g->first = n->next;
    if (n->next)
        n->next->prev = n->prev;
    else
        g->last = n->prev;
    n->prev = n->next = NULL;
}

void sn_node_move(sn_graph *g, sn_node *n, sn_node *before)
{
    if (n == before || n->next == before)
        return;
    sn_node_take_out(g, n);
    link_node(g, n, before);
}

sonde_status sn_graph_add_node(sn_graph *g, sn_node *before, const char *domain,
                               const char *op_type, const char *name, uint32_t n_in, uint32_t n_out,
                               sn_node **out, sonde_error *err)
{
    *out = NULL;
    if (g->n_nodes == UINT32_MAX)
        return sn_fail(err, SONDE_LIMIT, "graph '%s' has too many nodes", g->name);
    sn_node *n = SN_NEW(g->arena, sn_node);
    size_t bytes = sizeof *n + n_in * sizeof(sn_edge) + n_out * sizeof(sn_value *);
    if (!n)
        return sn_fail_memory(err, bytes);
    n->name = copy_text(g, name);
    n->op_type = n->shown_type = copy_text(g, op_type);
    n->domain = copy_text(g, domain);
    n->overload = n->post_op = "";
    n->in = n_in ? SN_NEW_N(g->arena, sn_edge, n_in) : NULL;
    n->out = n_out ? SN_NEW_N(g->arena, sn_value *, n_out) : NULL;
    if (!n->name || !n->op_type || !n->domain || (n_in && !n->in) || (n_out && !n->out))
        return sn_fail_memory(err, bytes);
    n->n_in = n->n_formal_in = n->in_cap = n_in;
    n->n_out = n_out;
    n->anchor = SN_NO_ORIGIN;
    for (uint32_t i = 0; i < n_in; i++) {
        n->in[i].node = n;
        n->in[i].index = i;
    }
    n->id = g->n_nodes++;
    g->n_live_nodes++;
    link_node(g, n, before);
    *out = n;
    return SONDE_OK;
}

sonde_status sn_graph_add_origin(sn_graph *g, sn_node *n, const char *function, sonde_error *err)
{
    if (!g->origins)
        return SONDE_OK;
    if (g->origins->list.n >= SN_NO_ORIGIN)
        return sn_fail(err, SONDE_LIMIT, "the model has too many nodes");
    sn_origin origin = {n->name, n->op_type, n->domain, function, n};
    uint32_t *id = SN_NEW(g->arena, uint32_t);
    if (!id || !sn_vec_push(&g->origins->list, g->alloc, origin))
        return sn_fail_memory(err, sizeof origin);
    *id = (uint32_t)(g->origins->list.n - 1);
    n->origins = id;
    n->n_origins = 1;
    n->shown_type = n->op_type;
    n->anchor = *id;
    return SONDE_OK;
}

uint32_t sn_graph_symbol(sn_graph *g, const char *name)
{
    while (g->parent)
        g = g->parent;
    uintptr_t known = (uintptr_t)sn_map_get(&g->symbol_ids, name);
    if (known)
        return (uint32_t)known;
    char *copy = sn_arena_strdup(g->arena, name);
    if (!copy || g->symbols.n >= UINT32_MAX - 1 || !sn_vec_push(&g->symbols, g->alloc, copy))
        return 0;
    if (!sn_map_put(&g->symbol_ids, copy, (void *)(uintptr_t)g->symbols.n, NULL)) {
        g->symbols.n--;
        return 0;
    }
    return (uint32_t)g->symbols.n;
}

uint32_t sn_graph_fresh_symbol(sn_graph *g)
{
    while (g->parent)
        g = g->parent;
    const char *unnamed = NULL;
    if (g->symbols.n >= UINT32_MAX - 1 || !sn_vec_push(&g->symbols, g->alloc, unnamed))
        return 0;
    return (uint32_t)g->symbols.n;
}

const sn_attr *sn_node_attr(const sn_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    return NULL;
}

sn_graph *sn_node_body(const sn_node *n, uint32_t k)
{
    size_t left = k;
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const sn_attr *a = &n->attrs[i];
        if (a->ref)
            continue;
        if (a->kind == SN_ATTR_GRAPH && left-- == 0)
            return a->graph;
        if (a->kind == SN_ATTR_GRAPHS) {
            if (left < a->n)
                return a->graphs[left];
            left -= a->n;
        }
    }
    return NULL;
}

const char *sn_node_text(const sn_node *n, char *buf, size_t cap)
{
    const char *made = "";
    for (uint32_t i = 0; i < n->n_out && !made[0]; i++)
        if (n->out[i])
            made = sn_value_shown(n->out[i]);
    if (n->name[0])
        snprintf(buf, cap, "node '%.200s' (%.100s)", n->name, n->shown_type);
    else if (made[0])
        snprintf(buf, cap, "the %.100s node that makes '%.200s'", n->shown_type, made);
    else
        snprintf(buf, cap, "an unnamed %.100s node", n->shown_type);
    return buf;
}
