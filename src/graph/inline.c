/* SPDX-License-Identifier: Apache-2.0 */
/* Model-local functions: every call is replaced by a copy of the function's body, calls inside it
 * included, before anything else looks at the graph. Copies are structural: captures inside a
 * function are resolved in its own scope first, so no name is looked up afterwards and inner names
 * only have to be unique. Growth is bounded twice, absolutely and by the size of the file:
 * functions that call each other twice can double thirty times. */
#include "graph/finish.h"
#include "graph/graph_clone.h"

#include <string.h>

#define MAX_NODES      4000000u
#define MAX_UNITS      24000000u /* nodes, edges, values, attributes and 16-byte pieces of names */
#define FREE_UNITS     1000000u  /* what any file may grow to */
#define UNITS_PER_UNIT 1000u     /* beyond that: growth by this factor */

typedef struct inliner {
    sn_model *m;
    sn_map functions;  /* domain\0name\0overload ► sn_function */
    uint8_t *resolved; /* by function: its captures and versions are done */
    uint64_t nodes, units, unit_limit;
    uint32_t counter; /* makes names unique */
    sonde_error *err;
} inliner;

typedef struct frame { /* the calls being expanded, innermost first */
    const sn_function *f;
    const struct frame *outer;
    uint32_t depth;
    const char *path; /* "f/g" */
} frame;

typedef struct target { /* the graph calls are expanded in */
    sn_graph *g;
    sn_map names; /* values and prefixes taken; filled at the first call */
    bool named;
} target;

typedef struct expansion { /* one call */
    inliner *in;
    target *t;
    sn_node *call;
    const sn_function *f;
    frame frame;
    const char *prefix; /* "call/" */
    sn_value **values;  /* by value id of the function's body */
} expansion;

#define MAX_KEY 512

/* domain\0name\0overload; 0: longer than any function may be called. */
static size_t make_key(char key[MAX_KEY], const char *domain, const char *name,
                       const char *overload)
{
    overload = overload ? overload : "";
    size_t d = strlen(domain), n = strlen(name), o = strlen(overload);
    if (d + n + o + 2 > MAX_KEY)
        return 0;
    memcpy(key, domain, d + 1);
    memcpy(key + d + 1, name, n + 1);
    memcpy(key + d + n + 2, overload, o);
    return d + n + o + 2;
}

static sn_function *find_function(const inliner *in, const sn_node *n)
{
    char key[MAX_KEY];
    size_t bytes = make_key(key, n->domain, n->op_type, n->overload);
    return bytes ? sn_map_get_n(&in->functions, key, bytes) : NULL;
}

static sonde_status spend(inliner *in, uint64_t nodes, uint64_t units)
{
    in->nodes += nodes;
    in->units += units;
    if (in->nodes > MAX_NODES || in->units > in->unit_limit)
        return sn_fail(in->err, SONDE_LIMIT,
                       "inlining the model's functions makes it too large (%llu nodes so far)",
                       (unsigned long long)in->nodes);
    return SONDE_OK;
}

static uint64_t node_units(const sn_node *n)
{
    return 1 + (uint64_t)n->n_in + n->n_out + n->n_attrs;
}

static uint64_t graph_units(const sn_graph *g)
{
    uint64_t units = g->values.n;
    for (const sn_node *n = g->first; n; n = n->next) {
        const sn_graph *body;
        units += node_units(n);
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
            units += graph_units(body);
    }
    return units;
}

static sonde_status make_name(expansion *x, const char *inner, const char **out)
{
    *out = "";
    if (!inner[0])
        return SONDE_OK;
    SN_TRY(spend(x->in, 0, (strlen(x->prefix) + strlen(inner)) / 16));
    *out = sn_arena_printf(x->t->g->arena, "%s%s", x->prefix, inner);
    return *out ? SONDE_OK : sn_fail_memory(x->in->err, strlen(x->prefix) + strlen(inner) + 1);
}

/* Puts a name into the target's map, changed until it is new. */
static sonde_status take_name(expansion *x, const char **name)
{
    sn_map *names = &x->t->names;
    const char *made = *name;
    while (sn_map_get(names, made)) {
        made = sn_arena_printf(x->t->g->arena, "%s#%u", *name, ++x->in->counter);
        if (!made)
            return sn_fail_memory(x->in->err, strlen(*name) + 12);
    }
    *name = made;
    if (!sn_map_put(names, made, x, NULL))
        return sn_fail_memory(x->in->err, sizeof(sn_map_entry));
    return SONDE_OK;
}

static sonde_status make_prefix(expansion *x)
{
    target *t = x->t;
    if (!t->named) {
        for (size_t i = 0; i < t->g->values.n; i++) {
            sn_value *v = t->g->values.data[i];
            if (v->name[0] && !sn_map_put(&t->names, v->name, v, NULL))
                return sn_fail_memory(x->in->err, sizeof(sn_map_entry));
        }
        t->named = true;
    }
    /* Prefixes share the map with values: "call" itself may be a value, "call/" hardly is. */
    const char *base = x->call->name[0] ? x->call->name : x->f->name;
    SN_TRY(spend(x->in, 0, strlen(base) / 16));
    const char *prefix = sn_arena_printf(t->g->arena, "%s/", base);
    while (prefix && sn_map_get(&t->names, prefix))
        prefix = sn_arena_printf(t->g->arena, "%s#%u/", base, ++x->in->counter);
    if (!prefix || !sn_map_put(&t->names, prefix, x, NULL))
        return sn_fail_memory(x->in->err, strlen(base) + 2);
    x->prefix = prefix;
    return SONDE_OK;
}

/* The value of the target that stands for v of the function's body; NULL: an input left out. */
static sonde_status map_value(expansion *x, const sn_cloner *c, const sn_value *v, sn_value **out)
{
    *out = x->values[v->id];
    if (*out || v->is_input)
        return SONDE_OK;
    const char *name;
    SN_TRY(make_name(x, v->name, &name));
    if (name[0])
        SN_TRY(take_name(x, &name));
    SN_TRY(sn_graph_add_value(x->t->g, "", out, x->in->err));
    (*out)->name = name;
    (*out)->fact.data = v->fact.data;
    (*out)->is_initializer = v->is_initializer;
    SN_TRY(sn_clone_type(c, &v->fact.type, &(*out)->fact.type));
    x->values[v->id] = *out;
    return SONDE_OK;
}

/* Attribute references take the call's attribute, else the default, else they are left out. */
static sonde_status substitute(const sn_cloner *c, const sn_node *from, sn_attr *a, bool *keep)
{
    const expansion *x = c->user;
    if (!a->ref)
        return SONDE_OK;
    const sn_attr *given = sn_node_attr(x->call, a->ref);
    for (uint32_t i = 0; !given && i < x->f->n_attr_defaults; i++)
        if (strcmp(x->f->attr_defaults[i].name, a->ref) == 0)
            given = &x->f->attr_defaults[i];
    if (!given) {
        *keep = false;
        return SONDE_OK;
    }
    if (a->kind && given->kind != a->kind)
        return sn_fail(
            x->in->err, SONDE_INVALID_MODEL,
            "node '%.200s' (%.100s) gives attribute '%.100s' of function '%.100s' the wrong kind",
            x->call->name, x->call->op_type, a->ref, x->f->name);
    bool captures = given->kind == SN_ATTR_GRAPH && given->graph && given->graph->capture_map.n;
    for (size_t i = 0; given->kind == SN_ATTR_GRAPHS && i < given->n; i++)
        captures |= given->graphs[i]->capture_map.n > 0;
    if (captures)
        return sn_fail(
            x->in->err, SONDE_UNSUPPORTED,
            "node '%.200s' (%.100s) passes function '%.100s' a graph that reads outer values",
            x->call->name, x->call->op_type, x->f->name);
    const char *name = a->name;
    *a = *given;
    a->name = name;
    a->ref = NULL;
    (void)from;
    return SONDE_OK;
}

/* A node inside a body that was copied with a node of the function. */
static sonde_status adopt_inner(const sn_cloner *c, sn_graph *g, sn_node *made, const sn_node *from)
{
    expansion *x = c->user;
    (void)g;
    SN_TRY(spend(x->in, 1, 2 * node_units(from)));
    SN_TRY(make_name(x, from->name, &made->name));
    made->function = x->frame.path;
    return SONDE_OK;
}

/* An input left out of the call may be captured by a body: its readers there find it left out too.
 */
static sonde_status drop_absent_captures(inliner *in, sn_node *n)
{
    sn_graph *body;
    for (uint32_t k = 0; (body = sn_node_body(n, k)); k++) {
        size_t kept = 0;
        for (size_t i = 0; i < body->capture_map.n; i++) {
            uint32_t index = body->capture_map.data[i];
            sn_value *v = body->inputs.data[body->n_formal_inputs + i];
            if (n->in[index].value) {
                body->capture_map.data[kept] = index;
                body->inputs.data[body->n_formal_inputs + kept++] = v;
                continue;
            }
            if (v->n_outputs)
                return sn_fail(
                    in->err, SONDE_INVALID_MODEL,
                    "a body of node '%.200s' (%.100s) returns an input that was left out", n->name,
                    n->op_type);
            v->is_input = false;
            while (v->uses) {
                sn_node *reader = v->uses->node;
                uint32_t at = v->uses->index;
                sn_node_set_input(reader, at, NULL);
                if (at >= reader->n_formal_in)
                    SN_TRY(drop_absent_captures(in, reader));
            }
        }
        body->capture_map.n = kept;
        body->inputs.n = body->n_formal_inputs + kept;
    }
    return SONDE_OK;
}

static sonde_status inline_graph(inliner *in, sn_graph *g, const frame *outer);
static sonde_status inline_call(inliner *in, target *t, sn_node *call, const sn_function *f,
                                const frame *outer);

/* Copies one node of the function in front of the call and expands what it calls itself. */
static sonde_status copy_node(expansion *x, const sn_cloner *c, const sn_node *from)
{
    inliner *in = x->in;
    sn_graph *g = x->t->g;
    sn_node *n;
    const char *name;
    SN_TRY(spend(in, 1, 2 * node_units(from)));
    SN_TRY(make_name(x, from->name, &name));
    SN_TRY(sn_graph_add_node(g, x->call, "", "", "", from->n_in, from->n_out, &n, in->err));
    n->name = name;
    n->domain = from->domain;
    n->op_type = n->shown_type = from->op_type;
    n->overload = from->overload;
    n->opset = from->opset;
    n->n_formal_in = from->n_formal_in;
    n->function = x->frame.path;
    bool absent = false;
    for (uint32_t i = 0; i < from->n_in; i++) {
        sn_value *v = NULL;
        if (from->in[i].value)
            SN_TRY(map_value(x, c, from->in[i].value, &v));
        sn_node_set_input(n, i, v);
        absent |= !v && i >= n->n_formal_in;
    }
    for (uint32_t i = 0; i < from->n_out; i++)
        if (from->out[i]) {
            sn_value *v;
            SN_TRY(map_value(x, c, from->out[i], &v));
            sn_node_set_output(n, i, v);
        }
    SN_TRY(sn_clone_attrs(c, g, n, from));
    if (absent)
        SN_TRY(drop_absent_captures(in, n));
    sn_graph *body;
    for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
        SN_TRY(inline_graph(in, body, &x->frame));
    const sn_function *f = find_function(in, n);
    return f ? inline_call(in, x->t, n, f, &x->frame) : SONDE_OK;
}

/* A function output that no node of its own makes (an input handed through, an output listed
 * twice) still is a value of its own outside: an Identity makes it. */
static sonde_status copy_through(expansion *x, const sn_cloner *c, sn_value *made,
                                 const sn_value *from)
{
    sn_value *source;
    SN_TRY(map_value(x, c, from, &source));
    if (!source)
        return sn_fail(x->in->err, SONDE_INVALID_MODEL,
                       "node '%.200s' (%.100s) leaves out an input that function '%.100s' returns",
                       x->call->name, x->call->op_type, x->f->name);
    sn_node *n;
    SN_TRY(spend(x->in, 1, 4));
    SN_TRY(
        sn_graph_add_node(x->t->g, x->call, "", "Identity", x->call->name, 1, 1, &n, x->in->err));
    n->opset = sn_opset_of(x->in->m, x->f->opsets, x->f->n_opsets, "");
    if (n->opset < 0)
        n->opset = 13;
    n->function = x->frame.path;
    sn_node_set_input(n, 0, source);
    sn_node_set_output(n, 0, made);
    return SONDE_OK;
}

static sonde_status expand(expansion *x)
{
    const sn_graph *body = x->f->body;
    sn_node *call = x->call;
    sn_cloner c = {.arena = x->t->g->arena,
                   .alloc = x->t->g->alloc,
                   .err = x->in->err,
                   .user = x,
                   .attr = substitute,
                   .node = adopt_inner,
                   .forget_symbols = true};
    for (uint32_t i = 0; i < body->inputs.n && i < call->n_formal_in; i++)
        x->values[body->inputs.data[i]->id] = call->in[i].value;
    for (uint32_t i = 0; i < call->n_out; i++) {
        sn_value *made = call->out[i];
        if (!made)
            continue;
        const sn_value *from = body->outputs.data[i];
        sn_node_set_output(call, i, NULL);
        if (from->producer && !x->values[from->id])
            x->values[from->id] = made;
        else
            SN_TRY(copy_through(x, &c, made, from));
    }
    for (const sn_node *n = body->first; n; n = n->next)
        SN_TRY(copy_node(x, &c, n));
    sn_node_unlink(x->t->g, call);
    return SONDE_OK;
}

static sonde_status check_call(inliner *in, const sn_node *call, const sn_function *f,
                               const frame *outer)
{
    for (const frame *at = outer; at; at = at->outer)
        if (at->f == f)
            return sn_fail(in->err, SONDE_INVALID_MODEL,
                           "function '%.200s' calls itself (through '%.300s')", f->name,
                           outer->path);
    if (outer && outer->depth >= SN_MAX_GRAPH_DEPTH)
        return sn_fail(in->err, SONDE_LIMIT, "calls of functions are nested more than %d deep",
                       SN_MAX_GRAPH_DEPTH);
    if (call->n_formal_in > f->body->inputs.n)
        return sn_fail(in->err, SONDE_INVALID_MODEL,
                       "node '%.200s' passes %u inputs to function '%.200s', which takes %zu",
                       call->name, call->n_formal_in, f->name, f->body->inputs.n);
    for (uint32_t i = (uint32_t)f->body->outputs.n; i < call->n_out; i++)
        if (call->out[i])
            return sn_fail(in->err, SONDE_INVALID_MODEL,
                           "node '%.200s' wants %u outputs of function '%.200s', which has %zu",
                           call->name, call->n_out, f->name, f->body->outputs.n);
    return SONDE_OK;
}

/* First call of a function: its own captures become edges, its nodes get their versions. */
static sonde_status ready_function(inliner *in, const sn_function *f)
{
    size_t k = (size_t)(f - in->m->functions.data);
    if (in->resolved[k])
        return SONDE_OK;
    char what[300] = "function ";
    strncat(what, f->name, sizeof what - 20);
    SN_TRY(sn_captures_resolve(f->body, what, in->err));
    sn_graph_set_opsets(in->m, f->body, f->opsets, f->n_opsets);
    in->resolved[k] = 1;
    return SONDE_OK;
}

static sonde_status inline_call(inliner *in, target *t, sn_node *call, const sn_function *f,
                                const frame *outer)
{
    SN_TRY(check_call(in, call, f, outer));
    SN_TRY(ready_function(in, f));
    SN_TRY(spend(in, 0, f->body->values.n));
    expansion x = {.in = in,
                   .t = t,
                   .call = call,
                   .f = f,
                   .frame = {f, outer, outer ? outer->depth + 1 : 1, NULL}};
    x.frame.path = outer ? sn_arena_printf(t->g->arena, "%s/%s", outer->path, f->name) : f->name;
    if (!x.frame.path)
        return sn_fail_memory(in->err, strlen(f->name));
    SN_TRY(spend(in, 0, strlen(x.frame.path) / 16));
    SN_TRY(make_prefix(&x));
    size_t bytes = f->body->values.n * sizeof *x.values;
    x.values = sn_alloc_zero(t->g->alloc, bytes);
    if (!x.values)
        return sn_fail_memory(in->err, bytes);
    sonde_status st = expand(&x);
    sn_free(t->g->alloc, x.values, bytes);
    return st;
}

static sonde_status inline_nodes(inliner *in, target *t, const frame *outer)
{
    sn_graph_each (n, t->g) {
        sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
            SN_TRY(inline_graph(in, body, outer));
        const sn_function *f = find_function(in, n);
        if (f)
            SN_TRY(inline_call(in, t, n, f, outer));
    }
    return SONDE_OK;
}

static sonde_status inline_graph(inliner *in, sn_graph *g, const frame *outer)
{
    target t = {.g = g};
    sn_map_init(&t.names, g->alloc);
    sonde_status st = inline_nodes(in, &t, outer);
    sn_map_free(&t.names);
    return st;
}

static sonde_status list_functions(inliner *in)
{
    sn_model *m = in->m;
    uint64_t units = graph_units(m->graph);
    for (size_t i = 0; i < m->functions.n; i++) {
        sn_function *f = &m->functions.data[i];
        char made[MAX_KEY];
        size_t bytes = make_key(made, f->domain, f->name, f->overload);
        if (!bytes)
            return sn_fail(in->err, SONDE_LIMIT, "function '%.200s' has too long a name", f->name);
        void *old;
        char *key = sn_arena_alloc(&m->arena, bytes, 1); /* the map does not copy */
        if (key)
            memcpy(key, made, bytes);
        if (!key || !sn_map_put_n(&in->functions, key, bytes, f, &old))
            return sn_fail_memory(in->err, sizeof(sn_map_entry));
        if (old)
            return sn_fail(in->err, SONDE_INVALID_MODEL,
                           "function '%.200s' of domain '%.200s' is defined twice", f->name,
                           f->domain);
        units += graph_units(f->body);
    }
    in->unit_limit =
        units < MAX_UNITS / UNITS_PER_UNIT ? FREE_UNITS + units * UNITS_PER_UNIT : MAX_UNITS;
    if (in->unit_limit > MAX_UNITS)
        in->unit_limit = MAX_UNITS;
    return SONDE_OK;
}

sonde_status sn_functions_inline(sn_model *m, sonde_error *err)
{
    if (!m->functions.n)
        return SONDE_OK;
    inliner in = {.m = m, .err = err};
    sn_allocator *alloc = m->graph->alloc;
    sn_map_init(&in.functions, alloc);
    in.resolved = sn_alloc_zero(alloc, m->functions.n);
    sonde_status st = in.resolved ? list_functions(&in) : sn_fail_memory(err, m->functions.n);
    if (st == SONDE_OK)
        st = inline_graph(&in, m->graph, NULL);
    if (in.resolved)
        sn_free(alloc, in.resolved, m->functions.n);
    sn_map_free(&in.functions);
    return st;
}
