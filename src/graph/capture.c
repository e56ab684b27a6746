/* SPDX-License-Identifier: Apache-2.0 */
/* Captures: a body may read values of the graphs around it by name. Here every such read becomes an
 * edge: the outer value an extra input of the control-flow node, the name inside an extra input of
 * the body, so lifetimes, merging and partial runs see plain edges. Bodies are treated inner first;
 * a name that comes from further out leaves an unresolved value in the graph between, which is then
 * captured in its turn. Outer constants are shared instead: nothing needs to flow. */
#include "graph/finish.h"

#include <string.h>

typedef struct mark { /* of an outer value: which node captured it last, as which input */
    uint32_t node_plus1, index;
} mark;

typedef struct scope {
    sn_graph *g;
    struct scope *outer;
    bool named; /* names is filled: only graphs in which something is looked up pay for it */
    sn_map names;
    SN_VEC(mark) marks; /* by value id */
    const char *what;
    sonde_error *err;
} scope;

static sonde_status fill_names(scope *s)
{
    if (s->named)
        return SONDE_OK;
    for (size_t i = 0; i < s->g->values.n; i++) {
        sn_value *v = s->g->values.data[i];
        if (v->name[0] && !sn_map_put(&s->names, v->name, v, NULL))
            return sn_fail_memory(s->err, sizeof(sn_map_entry));
    }
    s->named = true;
    return SONDE_OK;
}

static bool is_read(const sn_value *v)
{
    return v->n_uses || v->n_outputs;
}

static sonde_status fail_undefined(const sn_value *v, const sn_graph *g, const char *what,
                                   sonde_error *err)
{
    char text[400];
    if (v->uses)
        return sn_fail(err, SONDE_INVALID_MODEL, "%s: %s reads '%.300s', which nothing defines",
                       what, sn_node_text(v->uses->node, text, sizeof text), v->name);
    return sn_fail(err, SONDE_INVALID_MODEL,
                   "%s: nothing defines '%.300s', an output of graph '%.100s'", what, v->name,
                   g->name);
}

/* The input of `node` that carries `outer` into its bodies. */
static sonde_status capture_input(scope *s, sn_node *node, sn_value *outer, uint32_t *index)
{
    if (!sn_vec_reserve(&s->marks, s->g->alloc, s->g->values.n - s->marks.n))
        return sn_fail_memory(s->err, s->g->values.n * sizeof(mark));
    while (s->marks.n < s->g->values.n)
        s->marks.data[s->marks.n++] = (mark){0, 0};
    mark *m = &s->marks.data[outer->id];
    if (m->node_plus1 != node->id + 1) {
        uint32_t formal = node->n_formal_in;
        SN_TRY(sn_node_add_input(s->g, node, outer, s->err));
        node->n_formal_in = formal;
        *m = (mark){node->id + 1, node->n_in - 1};
    }
    *index = m->index;
    return SONDE_OK;
}

/* v of `body` (a body of `node`, which is in s->g) is read but not defined there. */
static sonde_status bind_value(scope *s, sn_node *node, sn_graph *body, sn_value *v)
{
    const sn_value *def = NULL;
    for (scope *at = s; at; at = at->outer) {
        SN_TRY(fill_names(at));
        def = sn_map_get(&at->names, v->name);
        if (def && !sn_value_is_unresolved(def))
            break;
        def = NULL;
    }
    if (!def)
        return fail_undefined(v, body, s->what, s->err);
    if (sn_value_is_const(def)) {
        v->fact = def->fact;
        v->is_initializer = true;
        return SONDE_OK;
    }
    sn_value *outer = sn_map_get(&s->names, v->name);
    if (!outer) {
        SN_TRY(sn_graph_add_value(s->g, v->name, &outer, s->err));
        if (!sn_map_put(&s->names, outer->name, outer, NULL))
            return sn_fail_memory(s->err, sizeof(sn_map_entry));
    }
    uint32_t index = 0;
    SN_TRY(capture_input(s, node, outer, &index));
    if (!sn_vec_push(&body->inputs, body->alloc, v))
        return sn_fail_memory(s->err, sizeof v);
    v->is_input = true;
    if (v->fact.type.kind == SN_KIND_NONE)
        v->fact.type = def->fact.type;
    if (!sn_vec_push(&body->capture_map, body->alloc, index))
        return sn_fail_memory(s->err, sizeof index);
    return SONDE_OK;
}

static sonde_status resolve(scope *s)
{
    for (sn_node *n = s->g->first; n; n = n->next) {
        sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++) {
            scope inner = {.g = body, .outer = s, .what = s->what, .err = s->err};
            sn_map_init(&inner.names, body->alloc);
            sonde_status st = resolve(&inner); /* depth is bounded by sn_graph_new */
            sn_map_free(&inner.names);
            sn_vec_free(&inner.marks, body->alloc);
            SN_TRY(st);
            for (size_t i = 0; i < body->values.n; i++) {
                sn_value *v = body->values.data[i];
                if (is_read(v) && sn_value_is_unresolved(v))
                    SN_TRY(bind_value(s, n, body, v));
            }
        }
    }
    return SONDE_OK;
}

sonde_status sn_captures_resolve(sn_graph *g, const char *what, sonde_error *err)
{
    scope s = {.g = g, .what = what, .err = err};
    sn_map_init(&s.names, g->alloc);
    sonde_status st = resolve(&s);
    sn_map_free(&s.names);
    sn_vec_free(&s.marks, g->alloc);
    SN_TRY(st);
    for (size_t i = 0; i < g->values.n; i++)
        if (is_read(g->values.data[i]) && sn_value_is_unresolved(g->values.data[i]))
            return fail_undefined(g->values.data[i], g, what, err);
    return SONDE_OK;
}
