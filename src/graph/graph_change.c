/* SPDX-License-Identifier: Apache-2.0 */
/* Changing graphs: rewiring, attributes, and the four ways a node may go (replaced, folded,
 * removed, merged), all of which keep the use lists true and no origin unaccounted for. */
#include "graph/graph.h"

#include <string.h>

static void unlink_use(sn_edge *e)
{
    sn_value *v = e->value;
    if (!v)
        return;
    if (e->prev)
        e->prev->next = e->next;
    else
        v->uses = e->next;
    if (e->next)
        e->next->prev = e->prev;
    e->prev = e->next = NULL;
    e->value = NULL;
    e->shown = NULL;
    v->n_uses--;
}

static void link_use(sn_edge *e, sn_value *v)
{
    e->value = v;
    e->prev = NULL;
    e->next = v->uses;
    if (v->uses)
        v->uses->prev = e;
    v->uses = e;
    v->n_uses++;
}

void sn_node_set_input(sn_node *n, uint32_t i, sn_value *v)
{
    unlink_use(&n->in[i]);
    if (v)
        link_use(&n->in[i], v);
}

/* Edges are linked by address, so a moved array is told to its neighbours. */
static bool grow_inputs(sn_graph *g, sn_node *n)
{
    uint32_t cap = n->in_cap < 4 ? 4 : n->in_cap * 2;
    if (n->in_cap > UINT32_MAX / 2)
        return false;
    sn_edge *in = SN_NEW_N(g->arena, sn_edge, cap);
    if (!in)
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        in[i] = n->in[i];
        if (!in[i].value)
            continue;
        if (in[i].prev)
            in[i].prev->next = &in[i];
        else
            in[i].value->uses = &in[i];
        if (in[i].next)
            in[i].next->prev = &in[i];
        /* A neighbour in this very array is reached through its old or its new place, whichever
         * the links name by now; both end up right. */
    }
    n->in = in;
    n->in_cap = cap;
    return true;
}

sonde_status sn_node_add_input(sn_graph *g, sn_node *n, sn_value *v, sonde_error *err)
{
    if (n->n_in == n->in_cap && !grow_inputs(g, n))
        return sn_fail_memory(err, ((size_t)n->n_in + 1) * sizeof(sn_edge));
    uint32_t i = n->n_in++;
    if (n->n_formal_in == i)
        n->n_formal_in++;
    n->in[i] = (sn_edge){.node = n, .index = i};
    if (v)
        link_use(&n->in[i], v);
    return SONDE_OK;
}

void sn_node_set_output(sn_node *n, uint32_t i, sn_value *v)
{
    sn_value *old = n->out[i];
    if (old == v)
        return;
    if (old) {
        old->producer = NULL;
        old->output_index = 0;
    }
    if (v && v->producer)
        v->producer->out[v->output_index] = NULL;
    n->out[i] = v;
    if (v) {
        v->producer = n;
        v->output_index = i;
    }
}

void sn_value_show_as(sn_value *v, const sn_value *as)
{
    v->shown = sn_value_shown(as);
}

sonde_status sn_value_show_all(sn_graph *g, sn_value *v, const sn_value *const *list, size_t n,
                               sonde_error *err)
{
    size_t bytes = 1;
    for (size_t i = 0; i < n; i++)
        bytes += list[i] ? strlen(sn_value_shown(list[i])) + 1 : 0;
    char *text = sn_arena_alloc(g->arena, bytes, 1), *to = text;
    if (!text)
        return sn_fail_memory(err, bytes);
    for (size_t i = 0; i < n; i++) {
        const size_t length = list[i] ? strlen(sn_value_shown(list[i])) : 0;
        if (!length)
            continue;
        if (to > text)
            *to++ = '+';
        memcpy(to, sn_value_shown(list[i]), length);
        to += length;
    }
    *to = 0;
    v->shown = text;
    return SONDE_OK;
}

void sn_value_replace(sn_graph *g, sn_value *from, sn_value *to)
{
    if (from == to)
        return;
    if (from->uses) {
        sn_edge *tail = from->uses;
        for (;; tail = tail->next) {
            tail->value = to;
            if (!tail->next)
                break;
        }
        tail->next = to->uses;
        if (to->uses)
            to->uses->prev = tail;
        to->uses = from->uses;
        to->n_uses += from->n_uses;
        from->uses = NULL;
        from->n_uses = 0;
    }
    for (size_t i = 0; i < g->outputs.n && from->n_outputs; i++)
        if (g->outputs.data[i] == from) {
            g->outputs.data[i] = to;
            from->n_outputs--;
            to->n_outputs++;
        }
}

sonde_status sn_node_set_attr(sn_graph *g, sn_node *n, const sn_attr *attr, sonde_error *err)
{
    n->params = NULL;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, attr->name) == 0) {
            n->attrs[i] = *attr;
            return SONDE_OK;
        }
    if (n->n_attrs == n->attr_cap) {
        uint32_t cap = n->attr_cap < 4 ? 4 : n->attr_cap * 2;
        if (n->n_attrs >= SN_MAX_ATTRS)
            return sn_fail(err, SONDE_LIMIT, "node '%s' (%s) has more than %d attributes", n->name,
                           n->op_type, SN_MAX_ATTRS);
        sn_attr *attrs = SN_NEW_N(g->arena, sn_attr, cap);
        if (!attrs)
            return sn_fail_memory(err, cap * sizeof *attrs);
        if (n->n_attrs)
            memcpy(attrs, n->attrs, n->n_attrs * sizeof *attrs);
        n->attrs = attrs;
        n->attr_cap = cap;
    }
    n->attrs[n->n_attrs++] = *attr;
    return SONDE_OK;
}

void sn_node_remove_attr(sn_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0) {
            memmove(&n->attrs[i], &n->attrs[i + 1], (n->n_attrs - i - 1) * sizeof *n->attrs);
            n->n_attrs--;
            n->params = NULL;
            return;
        }
}

/* Takes the node out of the list and off every value it touches. Its outputs become values without
 * a producer: constants when folded, unused otherwise. */
void sn_node_unlink(sn_graph *g, sn_node *n)
{
    if (n->removed)
        return;
    for (uint32_t i = 0; i < n->n_in; i++)
        unlink_use(&n->in[i]);
    for (uint32_t i = 0; i < n->n_out; i++)
        sn_node_set_output(n, i, NULL);
    sn_node_take_out(g, n);
    n->removed = true;
    g->n_live_nodes--;
}

/* made's origins become the sorted union of its own and `add`. */
static sonde_status unite(sn_graph *g, sn_node *made, const uint32_t *add, uint32_t n_add,
                          sonde_error *err)
{
    if (!n_add)
        return SONDE_OK;
    if (!made->n_origins) {
        made->origins = add;
        made->n_origins = n_add;
        return SONDE_OK;
    }
    size_t most = (size_t)made->n_origins + n_add;
    uint32_t *all = SN_NEW_N(g->arena, uint32_t, most);
    if (!all)
        return sn_fail_memory(err, most * sizeof *all);
    uint32_t n = 0, i = 0, j = 0;
    while (i < made->n_origins || j < n_add) {
        uint32_t a = i < made->n_origins ? made->origins[i] : UINT32_MAX;
        uint32_t b = j < n_add ? add[j] : UINT32_MAX;
        all[n++] = a < b ? a : b;
        i += a <= b;
        j += b <= a;
    }
    made->origins = all;
    made->n_origins = n;
    return SONDE_OK;
}

static void show_as(sn_node *made, const sn_node *anchor)
{
    made->anchor = anchor->anchor;
    made->name = anchor->name;
    made->shown_type = anchor->shown_type;
}

sonde_status sn_node_inherit(sn_graph *g, sn_node *made, const sn_node *from, sonde_error *err)
{
    SN_TRY(unite(g, made, from->origins, from->n_origins, err));
    if (made->anchor == SN_NO_ORIGIN)
        show_as(made, from);
    return SONDE_OK;
}

sonde_status sn_graph_replace(sn_graph *g, sn_node *const *olds, size_t n_olds, sn_node *made,
                              const sn_node *anchor, sonde_error *err)
{
    for (size_t i = 0; i < n_olds; i++)
        if (olds[i] != made) {
            SN_TRY(unite(g, made, olds[i]->origins, olds[i]->n_origins, err));
            made->narrow_weights |= olds[i]->narrow_weights;
        }
    show_as(made, anchor);
    for (size_t i = 0; i < n_olds; i++)
        if (olds[i] != made)
            sn_node_unlink(g, olds[i]);
    return SONDE_OK;
}

static sonde_status remember(sn_graph *g, const sn_node *n, sonde_error *err)
{
    if (!sn_vec_reserve(&g->folded, g->alloc, n->n_origins))
        return sn_fail_memory(err, n->n_origins * sizeof(uint32_t));
    for (uint32_t i = 0; i < n->n_origins; i++)
        g->folded.data[g->folded.n++] = n->origins[i];
    return SONDE_OK;
}

sonde_status sn_graph_fold(sn_graph *g, sn_node *n, sonde_error *err)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !n->out[i]->fact.data && (n->out[i]->n_uses || n->out[i]->n_outputs))
            return sn_fail(err, SONDE_INTERNAL, "node '%s' (%s) is folded but '%s' is not constant",
                           n->name, n->op_type, n->out[i]->name);
    SN_TRY(remember(g, n, err));
    sn_node_unlink(g, n);
    return SONDE_OK;
}

sonde_status sn_graph_remove(sn_graph *g, sn_node *n, sonde_error *err)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->n_uses || n->out[i]->n_outputs))
            return sn_fail(err, SONDE_INTERNAL, "node '%s' (%s) is removed but '%s' is still read",
                           n->name, n->op_type, n->out[i]->name);
    SN_TRY(remember(g, n, err));
    sn_node_unlink(g, n);
    return SONDE_OK;
}

sonde_status sn_value_make_readable(sn_graph *g, sn_value *v, sn_buffers *buffers, sonde_error *err)
{
    if (!v->fact.data || sn_tensor_is_readable(v->fact.data))
        return SONDE_OK;
    sn_tensor *copy = SN_NEW(g->arena, sn_tensor);
    if (!copy)
        return sn_fail_memory(err, sizeof *copy);
    *copy = *v->fact.data;
    SN_TRY(sn_tensor_make_readable(copy, buffers, g->alloc, err));
    v->fact.data = copy;
    return SONDE_OK;
}

void sn_graph_drop_values(sn_graph *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->values.n; i++) {
        sn_value *v = g->values.data[i];
        if (!v->producer && !v->n_uses && !v->n_outputs && !v->is_input)
            continue;
        v->id = (uint32_t)kept;
        g->values.data[kept++] = v;
    }
    g->values.n = kept;
}
