/* SPDX-License-Identifier: Apache-2.0 */
/* See forms.h. */
#include "passes/forms.h"

typedef struct group { /* of elastic nodes, at its root's node id */
    uint64_t cost[SN_FORM_LABELS];
    uint32_t links[SN_FORM_LABELS]; /* borders to what is fixed to the label */
} group;

typedef struct sn_form_tables {
    uint8_t *signature;               /* by node id */
    uint32_t *parent;                 /* by node id: union-find over elastic nodes */
    group *groups;                    /* by node id */
    uint8_t *label;                   /* by value id */
    uint32_t *seen;                   /* by value id: root + 1 of the group that counted it */
    sn_value **other[SN_FORM_LABELS]; /* by value id: the same value in that label */
    size_t n_nodes, n_values;         /* when the stage began; values made since are at home */
} tables;

uint8_t sn_forms_signature(const sn_form_stage *s, const sn_node *n)
{
    return n->id < s->tables->n_nodes ? s->tables->signature[n->id] : 0;
}

static uint32_t find(tables *t, uint32_t i)
{
    while (t->parent[i] != i)
        i = t->parent[i] = t->parent[t->parent[i]];
    return i;
}

static bool is_elastic(const sn_form_stage *s, const sn_node *n)
{
    return s->tables->signature[n->id] == SN_FORM_ELASTIC;
}

/* The node whose label decides how v lies; NULL: v is native. */
static const sn_node *decider(const sn_form_stage *s, const sn_value *v)
{
    const sn_node *p = v->producer;
    return p && s->tables->signature[p->id] && s->output(s, p, v->output_index) == SN_PORT_SAME
               ? p
               : NULL;
}

static void join_groups(sn_form_stage *s)
{
    tables *t = s->tables;
    sn_graph_each (n, s->g) {
        for (uint32_t i = 0; is_elastic(s, n) && i < n->n_in; i++) {
            const sn_value *v = n->in[i].value;
            const sn_node *p = v && s->input(s, n, i) == SN_PORT_SAME ? decider(s, v) : NULL;
            if (p && is_elastic(s, p))
                t->parent[find(t, n->id)] = find(t, p->id);
        }
    }
}

/* A border to what has `label` for good: costs where the group has another. */
static void add_border(group *gr, uint8_t label, uint32_t weight)
{
    for (uint8_t l = 0; l < SN_FORM_LABELS; l++)
        gr->cost[l] += l != label ? weight : 0;
    gr->links[label]++;
}

/* Each label that readers of `out` are fixed to is made once, however many want it. */
static void count_readers(const sn_form_stage *s, group *gr, const sn_value *out)
{
    bool wants[SN_FORM_LABELS] = {out->n_outputs > 0};
    for (const sn_edge *e = out->uses; e; e = e->next) {
        const uint8_t signature = s->tables->signature[e->node->id];
        const sn_port_form port = s->input(s, e->node, e->index);
        if (port == SN_PORT_NATIVE)
            wants[0] = true;
        else if (port == SN_PORT_SAME && signature != SN_FORM_ELASTIC)
            wants[signature] = true; /* elastic readers are of the group */
    }
    for (uint8_t l = 0; l < SN_FORM_LABELS; l++)
        if (wants[l])
            add_border(gr, l, s->weight(out));
}

/* What the group around an elastic node's inputs and outputs would cost with each label. */
static void count_borders(sn_form_stage *s, const sn_node *n)
{
    tables *t = s->tables;
    const uint32_t root = find(t, n->id);
    group *gr = &t->groups[root];
    gr->cost[0] += s->native_cost ? s->native_cost(s, n) : 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (!v || s->input(s, n, i) != SN_PORT_SAME || t->seen[v->id] == root + 1 ||
            sn_value_is_const(v))
            continue;
        const sn_node *p = decider(s, v);
        if (p && is_elastic(s, p))
            continue;
        t->seen[v->id] = root + 1;
        add_border(gr, p ? t->signature[p->id] : 0, s->weight(v));
    }
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o] && s->output(s, n, o) == SN_PORT_SAME)
            count_readers(s, gr, n->out[o]);
}

/* The label of its ports. */
static uint8_t label_of(const sn_form_stage *s, const sn_node *n)
{
    if (!is_elastic(s, n))
        return s->tables->signature[n->id];
    const group *gr = &s->tables->groups[find(s->tables, n->id)];
    uint8_t best = 0;
    for (uint8_t l = 1; l < SN_FORM_LABELS; l++)
        if (gr->links[l] && gr->cost[l] <= gr->cost[best])
            best = l;
    return best;
}

/* A value like v, in that label. */
static sonde_status twin(sn_form_stage *s, const sn_value *v, uint8_t label, sn_value **out)
{
    const char *name = "";
    if (v->name[0]) {
        name = sn_arena_printf(s->g->arena, "%s#%s%u", v->name, s->label_names[label], v->id);
        if (!name)
            return sn_fail_memory(s->env->err, strlen(v->name) + 24);
    }
    SN_TRY(sn_graph_add_value(s->g, name, out, s->env->err));
    (*out)->fact.type = v->fact.type;
    (*out)->fact.form = v->fact.form;
    sn_value_show_as(*out, v);
    return s->mark(s, *out, v, label);
}

/* Before `before`, `to` is computed from `from`, the same value in another label, for the sake of
 * `origin`. */
static sonde_status add_border_node(sn_form_stage *s, sn_value *from, sn_value *to, sn_node *before,
                                    const sn_node *origin)
{
    sn_node *n;
    sonde_error *err = s->env->err;
    const sn_form planned = to->fact.form;
    const sn_form_border b = s->border(s, to);
    const sn_attr a = {.name = b.attribute, .kind = SN_ATTR_INT, .n = 1, .i = b.value};
    s->changes++;
    SN_TRY(sn_graph_add_node(s->g, before, b.domain, b.op_type, "", 1, 1, &n, err));
    n->opset = b.opset;
    sn_node_set_input(n, 0, from);
    sn_node_set_output(n, 0, to);
    SN_TRY(sn_node_set_attr(s->g, n, &a, err));
    SN_TRY(sn_node_inherit(s->g, n, origin, err));
    n->border = true;
    n->name = ""; /* no node of the file: work done for the sake of one */
    n->shown_type = b.shown_type;
    SN_TRY(sn_node_refresh(s->g, n, err));
    to->fact.form = planned; /* inference knows native forms only */
    return SONDE_OK;
}

/* Input i of n wants another label than v has. What is made for it is shared. */
static sonde_status switch_input(sn_form_stage *s, sn_node *n, uint32_t i, uint8_t label)
{
    sn_value *v = n->in[i].value, **other = &s->tables->other[label][v->id];
    if (s->constant && sn_value_is_const(v))
        SN_TRY(s->constant(s, n, i, label, other));
    if (!*other) {
        SN_TRY(twin(s, v, label, other));
        SN_TRY(add_border_node(s, v, *other, n, v->producer ? v->producer : n));
    }
    sn_node_set_input(n, i, *other);
    return SONDE_OK;
}

/* n makes output o in that label. A graph output stays native under its name; the node then makes a
 * twin of it. */
static sonde_status mark_output(sn_form_stage *s, sn_node *n, uint32_t o, uint8_t label)
{
    sn_value *v = n->out[o], *made;
    if (!v->n_outputs) {
        s->tables->label[v->id] = label;
        return s->mark(s, v, v, label);
    }
    SN_TRY(twin(s, v, label, &made));
    sn_node_set_output(n, o, made);
    s->tables->other[label][v->id] = made;
    return add_border_node(s, made, v, n->next, n);
}

/* What input i of n is to have, of a value that lies in `has`. */
static uint8_t wanted_label(const sn_form_stage *s, const sn_node *n, uint32_t i, uint8_t has,
                            uint8_t own)
{
    switch (s->input(s, n, i)) {
    case SN_PORT_SAME:
        return own;
    case SN_PORT_ANY: /* a graph output's twin rather than the output that is made of it */
        for (uint8_t l = 1; !has && l < SN_FORM_LABELS; l++)
            if (s->tables->other[l][n->in[i].value->id])
                return l;
        return has;
    default:
        return 0;
    }
}

static sonde_status rewrite(sn_form_stage *s)
{
    tables *t = s->tables;
    sn_graph_each (n, s->g) {
        if (n->id >= t->n_nodes)
            continue; /* a border */
        const uint8_t own = label_of(s, n);
        for (uint32_t i = 0; i < n->n_in; i++) {
            const sn_value *v = n->in[i].value;
            if (!v)
                continue;
            const uint8_t has = v->id < t->n_values ? t->label[v->id] : 0;
            const uint8_t want = wanted_label(s, n, i, has, own);
            if (want != has)
                SN_TRY(switch_input(s, n, i, want));
        }
        for (uint32_t o = 0; own && o < n->n_out; o++)
            if (n->out[o] && s->output(s, n, o) == SN_PORT_SAME)
                SN_TRY(mark_output(s, n, o, own));
        if (s->done)
            SN_TRY(s->done(s, n));
        n_next = n->next; /* a border may follow now */
    }
    return SONDE_OK;
}

static bool make_tables(tables *t, const sn_graph *g, sn_arena *scratch)
{
    t->n_nodes = g->n_nodes;
    t->n_values = g->values.n;
    t->signature = SN_NEW_N(scratch, uint8_t, t->n_nodes + 1);
    t->parent = SN_NEW_N(scratch, uint32_t, t->n_nodes + 1);
    t->groups = SN_NEW_N(scratch, group, t->n_nodes + 1);
    t->label = SN_NEW_N(scratch, uint8_t, t->n_values + 1);
    t->seen = SN_NEW_N(scratch, uint32_t, t->n_values + 1);
    bool ok = t->signature && t->parent && t->groups && t->label && t->seen;
    for (int l = 0; l < SN_FORM_LABELS; l++) {
        t->other[l] = SN_NEW_N(scratch, sn_value *, t->n_values + 1);
        ok &= t->other[l] != NULL;
    }
    return ok;
}

sonde_status sn_forms_solve(sn_form_stage *s)
{
    tables t = {0};
    sn_arena scratch;
    sonde_status st = SONDE_OK;
    bool any = false;
    sn_arena_init(&scratch, s->g->alloc);
    s->tables = &t;
    if (!make_tables(&t, s->g, &scratch))
        st = sn_fail_memory(s->env->err, t.n_nodes * sizeof(group));
    if (!st) {
        sn_graph_each (n, s->g) {
            t.parent[n->id] = n->id;
            t.signature[n->id] = s->signature(s, n);
            any |= t.signature[n->id] && t.signature[n->id] != SN_FORM_ELASTIC;
        }
    }
    if (any && !st) {
        join_groups(s);
        sn_graph_each (n, s->g)
            if (is_elastic(s, n))
                count_borders(s, n);
        st = rewrite(s);
    }
    s->tables = NULL;
    sn_arena_free(&scratch);
    return st;
}
