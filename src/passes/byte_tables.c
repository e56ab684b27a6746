/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise nodes that make bytes from one value of bytes, and otherwise read single constants
 * only, are a function of 256 arguments: x · sigmoid(x) of quantised models, or DequantizeLinear ►
 * HardSwish ► QuantizeLinear. The nodes themselves compute its table here, so the results are the
 * same bits, and one sonde.ByteTable takes their place.
 *
 * A region is found backwards from the node that makes the bytes. `open` are the values that its
 * nodes read and do not make. The one that is made last can only become part of the region as a
 * whole: what reads it lies behind its producer, and producers are taken in from the last to the
 * first. So if one of its readers is not in the region yet, none of the others that are open can
 * ever be made from it, and the search is over. Whenever one value of bytes is all that is open,
 * the region up to there is one that a table can replace; the largest is taken. */
#include <string.h>

#include "passes/rewrite.h"

enum { MAX_NODES = 64, MAX_OPEN = 16, SHOWN = 6, VALUES = 256 };

typedef struct region {
    sn_node *nodes[MAX_NODES]; /* the last one first */
    uint32_t n;
    sn_value *open[MAX_OPEN];
    uint32_t n_open;
    int rank;       /* the largest of its constants */
    uint32_t found; /* so many nodes are a function of the bytes x; 0: none so far */
    sn_value *x;
} region;

typedef struct finder {
    sn_graph *g;
    sn_pass_env *env;
    uint32_t *place; /* by node id: its place in the order of the graph, from 1 on */
} finder;

static bool is_part(const region *r, const sn_node *n)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->nodes[i] == n)
            return true;
    return false;
}

/* Does everybody who reads v belong to the region? */
static bool is_inside(const region *r, const sn_value *v)
{
    if (v->n_outputs)
        return false;
    for (const sn_edge *e = v->uses; e; e = e->next)
        if (!is_part(r, e->node))
            return false;
    return true;
}

static bool fits(const sn_node *n)
{
    if (!n->op || !(n->op->flags & SN_OP_ELEMENTWISE) || n->n_out != 1 || !n->out[0])
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (v && sn_value_is_const(v) &&
            (!sn_tensor_is_plain(v->fact.data) || sn_tensor_count(v->fact.data) != 1))
            return false;
    }
    return true;
}

static bool is_open(const region *r, const sn_value *v)
{
    for (uint32_t i = 0; i < r->n_open; i++)
        if (r->open[i] == v)
            return true;
    return false;
}

/* Takes in n, which makes open[made] (or the result, of the first node); false: too large. */
static bool take(region *r, sn_node *n, uint32_t made)
{
    if (r->n == MAX_NODES)
        return false;
    if (r->n > 0)
        r->open[made] = r->open[--r->n_open];
    r->nodes[r->n++] = n;
    for (uint32_t i = 0; i < n->n_in; i++) {
        sn_value *v = n->in[i].value;
        if (v && sn_value_is_const(v)) {
            r->rank = v->fact.data->rank > r->rank ? v->fact.data->rank : r->rank;
        } else if (v && !is_open(r, v)) {
            if (r->n_open == MAX_OPEN)
                return false;
            r->open[r->n_open++] = v;
        }
    }
    return true;
}

/* Of the values that are open, the one that is made last. */
static uint32_t latest(const finder *f, const region *r)
{
    uint32_t best = 0, place = 0;
    for (uint32_t i = 0; i < r->n_open; i++) {
        const sn_node *n = r->open[i]->producer;
        if (n && f->place[n->id] > place) {
            place = f->place[n->id];
            best = i;
        }
    }
    return best;
}

/* A table pays for two nodes, and for one that computes in floats. Integers alone are as fast. */
static bool pays(const region *r)
{
    const sn_node *n = r->nodes[0];
    for (uint32_t i = 0; i < n->n_in && r->n == 1; i++)
        if (n->in[i].value && sn_dtype_is_float(n->in[i].value->fact.type.dtype))
            return true;
    return r->n > 1;
}

/* The largest region that ends with `last`. */
static bool find(const finder *f, sn_node *last, region *r)
{
    *r = (region){0};
    if (!fits(last) || !sn_value_is_byte(last->out[0]) || !take(r, last, 0))
        return false;
    while (r->n_open > 0) {
        const uint32_t i = latest(f, r);
        sn_value *v = r->open[i];
        /* Constants of a higher rank would give the result dims that x has not. */
        if (r->n_open == 1 && sn_value_is_byte(v) && v->fact.type.rank >= r->rank) {
            r->found = r->n;
            r->x = v;
        }
        if (!v->producer || !fits(v->producer) || !is_inside(r, v) || !take(r, v->producer, i))
            break;
    }
    r->n = r->found;
    return r->n > 0 && pays(r);
}

/* ------------------------------------------------------------------ the table */
/* The result of node k: from the bytes, from what nodes before it made, from constants. */
static sonde_status evaluate(const finder *f, const region *r, uint32_t k, const sn_slot *x,
                             sn_slot *made, bool *usable)
{
    const sn_node *n = r->nodes[k];
    const size_t bytes = n->n_in * sizeof(sn_slot *);
    const sn_slot **given = sn_alloc_zero(f->g->alloc, bytes);
    if (!given)
        return sn_fail_memory(f->env->err, bytes);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const sn_value *v = n->in[i].value;
        if (v == r->x)
            given[i] = x;
        for (uint32_t j = k + 1; v && j < r->n && !given[i]; j++)
            if (r->nodes[j]->out[0] == v)
                given[i] = &made[j];
    }
    sonde_status st = sn_node_evaluate(f->g, f->env, n, given, &made[k], usable);
    sn_free(f->g->alloc, given, bytes);
    return st;
}

/* `table` = the results of all bytes; *usable = false: the nodes have something against it. */
static sonde_status compute(const finder *f, const region *r, uint8_t table[VALUES], bool *usable)
{
    uint8_t all[VALUES];
    for (int i = 0; i < VALUES; i++)
        all[i] = (uint8_t)i;
    sn_slot x = {.kind = SN_KIND_TENSOR}, made[MAX_NODES] = {{0}};
    const int rank = r->x->fact.type.rank;
    x.t = (sn_tensor){.dtype = r->x->fact.type.dtype,
                      .rank = rank > 0 ? rank : 1,
                      .data = all,
                      .bytes = sizeof all};
    for (int i = 0; i < x.t.rank; i++)
        x.t.dims[i] = i + 1 < x.t.rank ? 1 : VALUES;
    sonde_status st = SONDE_OK;
    *usable = true;
    for (uint32_t k = r->n; k-- > 0 && st == SONDE_OK && *usable;)
        st = evaluate(f, r, k, &x, made, usable);
    const sn_tensor *y = &made[0].t;
    *usable = *usable && st == SONDE_OK && y->bytes == VALUES && sn_tensor_count(y) == VALUES &&
              y->dtype == r->nodes[0]->out[0]->fact.type.dtype;
    if (*usable)
        memcpy(table, y->data, VALUES);
    for (uint32_t k = 0; k < r->n; k++)
        sn_slot_clear(&made[k]);
    return st;
}

/* ------------------------------------------------------------------ rewriting */
/* The node whose name the table has: the first that is more than another notation of x. */
static uint32_t main_node(const region *r)
{
    uint32_t k = r->n - 1;
    while (k > 0 && strcmp(r->nodes[k]->op_type, "DequantizeLinear") == 0)
        k--;
    return k;
}

static sonde_status show(sn_graph *g, sn_node *made, const region *r, uint32_t anchor,
                         sonde_error *err)
{
    made->post_op = r->nodes[anchor]->post_op;
    for (uint32_t k = anchor; k-- > 0;) {
        const bool shown = anchor - k < SHOWN;
        SN_TRY(sn_node_add_post_op(g, made, shown ? r->nodes[k]->shown_type : "…", err));
        if (!shown)
            break;
        SN_TRY(sn_node_add_post_op(g, made, r->nodes[k]->post_op, err));
    }
    return SONDE_OK;
}

static sonde_status replace(const finder *f, const region *r, const uint8_t table[VALUES])
{
    sn_graph *g = f->g;
    sonde_error *err = f->env->err;
    sn_node *last = r->nodes[0], *made;
    const int64_t values = VALUES;
    const uint32_t anchor = main_node(r);
    sn_value *constant;
    void *data;
    SN_TRY(sn_pass_constant(g, f->env, "", last->out[0]->fact.type.dtype, &values, 1, &constant,
                            &data));
    memcpy(data, table, VALUES);
    SN_TRY(
        sn_graph_add_node(g, last, "sonde", "ByteTable", r->nodes[anchor]->name, 2, 1, &made, err));
    made->opset = 1;
    sn_node_set_input(made, 0, r->x);
    sn_node_set_input(made, 1, constant);
    SN_TRY(show(g, made, r, anchor, err));
    sn_node_set_output(made, 0, last->out[0]);
    SN_TRY(sn_graph_replace(g, r->nodes, r->n, made, r->nodes[anchor], err));
    return sn_node_refresh(g, made, err);
}

/* From the last node to the first, so that each region is found as a whole. */
static sonde_status visit(const finder *f, uint32_t *changes)
{
    region r;
    for (sn_node *n = f->g->last, *before; n; n = before) {
        bool usable = false;
        uint8_t table[VALUES];
        before = n->prev;
        if (!find(f, n, &r))
            continue;
        SN_TRY(compute(f, &r, table, &usable));
        if (!usable)
            continue;
        while (before && is_part(&r, before))
            before = before->prev;
        SN_TRY(replace(f, &r, table));
        (*changes)++;
    }
    return SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    const size_t bytes = g->n_nodes * sizeof(uint32_t);
    finder f = {g, env, sn_alloc_zero(g->alloc, bytes)};
    uint32_t place = 0;
    if (!f.place)
        return sn_fail_memory(env->err, bytes);
    sn_graph_each (n, g)
        f.place[n->id] = ++place;
    sonde_status st = visit(&f, changes);
    sn_free(g->alloc, f.place, bytes);
    return st;
}

const sn_pass sn_pass_byte_tables = {
    .name = "byte-tables",
    .summary = "replaces functions of one byte by tables of their results",
    .run = run,
    .bodies = true,
};
