/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: what they compute, what they read and write, how many there are, in which order. */
#include <string.h>

#include "fuzz/mutate.h"
#include "ops/framework/op.h"

static bool pick_node(mutation *m, mu_spot *s)
{
    return mu_pick(m, PT_NODE, NULL, s);
}

static const sn_op *any_op(mutation *m)
{
    static uint32_t rows; /* never changes once counted */
    while (sn_op_row(rows))
        rows++;
    return sn_op_row(mu_below(m, rows));
}

static void set_op(mutation *m, pt_field *node, const sn_op *op)
{
    pt_set_text(m->arena, node, NODE_OP, op->name);
    pt_remove_all(node, NODE_DOMAIN);
    if (*op->domain)
        pt_set_text(m->arena, node, NODE_DOMAIN, op->domain);
}

static bool takes(const sn_op *op, uint32_t n_in, uint32_t n_out)
{
    return (int)n_in >= op->min_in && (op->max_in < 0 || (int)n_in <= op->max_in) &&
           (int)n_out >= op->min_out && (op->max_out < 0 || (int)n_out <= op->max_out);
}

/* Another operator, mostly one that takes as many inputs and outputs. */
static bool op_type(mutation *m)
{
    mu_spot s;
    if (!pick_node(m, &s))
        return false;
    uint32_t n_in = pt_count(s.field, NODE_INPUT), n_out = pt_count(s.field, NODE_OUTPUT);
    const sn_op *op = any_op(m);
    for (int tries = 0; tries < 40 && !takes(op, n_in, n_out) && !mu_one_in(m, 64); tries++)
        op = any_op(m);
    set_op(m, s.field, op);
    return true;
}

static bool domain(mutation *m)
{
    static const char *const domains[] = {
        "", "ai.onnx", "ai.onnx.ml", "com.microsoft", "sonde", "ai.onnx.preview.training", "other"};
    mu_spot s;
    if (!pick_node(m, &s))
        return false;
    pt_set_text(m->arena, s.field, NODE_DOMAIN, domains[mu_below(m, 7)]);
    return true;
}

/* ---- edges ---- */

static bool input(mutation *m)
{
    mu_spot s;
    if (!pick_node(m, &s))
        return false;
    pt_field *f = mu_pick_kid(m, s.field, NODE_INPUT), *copy;
    const pt_field *name = mu_pick_name(m);
    uint32_t how = mu_below(m, 8);
    if (!f || how == 0) { /* one more */
        if (name)
            pt_add_bytes(m->arena, s.field, NODE_INPUT, name->bytes, name->n_bytes);
        return name != NULL;
    }
    switch (how) {
    case 1:
        pt_remove(s.field, f);
        break;
    case 2:
        f->n_bytes = 0; /* left out */
        break;
    case 3:
        copy = pt_clone(m->arena, f);
        if (copy)
            pt_insert(m->arena, s.field, mu_below(m, s.field->n_kids + 1), copy);
        break;
    case 4: { /* two change places */
        pt_field *g = mu_pick_kid(m, s.field, NODE_INPUT);
        const pt_field kept = *f;
        f->bytes = g->bytes, f->n_bytes = g->n_bytes;
        g->bytes = kept.bytes, g->n_bytes = kept.n_bytes;
        break;
    }
    default:
        if (!name)
            return false;
        f->bytes = name->bytes;
        f->n_bytes = name->n_bytes;
        break;
    }
    return true;
}

static bool output(mutation *m)
{
    mu_spot s;
    if (!pick_node(m, &s))
        return false;
    pt_field *f = mu_pick_kid(m, s.field, NODE_OUTPUT);
    const char *name = mu_fresh_name(m);
    uint32_t how = mu_below(m, 5);
    if (!f || how < 2) /* one more, of those an operator may have */
        pt_add_bytes(m->arena, s.field, NODE_OUTPUT, name, strlen(name));
    else if (how == 2)
        pt_remove(s.field, f);
    else if (how == 3)
        f->n_bytes = 0;
    else
        pt_set_text(m->arena, s.field, NODE_OUTPUT, name);
    return true;
}

/* ---- how many, and where ---- */

static bool drop(mutation *m)
{
    mu_spot s;
    if (!pick_node(m, &s) || pt_count(s.parent, s.field->number) < 2)
        return false;
    pt_remove(s.parent, s.field);
    return true;
}

/* The same again behind it, on its own outputs now and then. */
static bool repeat(mutation *m)
{
    mu_spot s;
    if (!pick_node(m, &s))
        return false;
    pt_field *copy = pt_clone(m->arena, s.field);
    const pt_field *out = pt_find(s.field, NODE_OUTPUT);
    if (!copy)
        return false;
    if (out && pt_find(copy, NODE_INPUT) && mu_one_in(m, 2))
        pt_set_bytes(m->arena, copy, NODE_INPUT, out->bytes, out->n_bytes);
    pt_insert(m->arena, s.parent, UINT32_MAX, copy);
    return true;
}

static bool move(mutation *m)
{
    mu_spot s;
    if (!pick_node(m, &s))
        return false;
    pt_remove(s.parent, s.field);
    pt_insert(m->arena, s.parent, mu_below(m, s.parent->n_kids + 1), s.field);
    return true;
}

/* A new node reads what this one wrote and writes what its readers read. */
static bool insert(mutation *m)
{
    mu_spot s;
    if (!pick_node(m, &s))
        return false;
    pt_field *out = pt_find(s.field, NODE_OUTPUT);
    if (!out || out->n_bytes == 0)
        return false;
    const char *between = mu_fresh_name(m);
    pt_field *node = pt_add_message(m->arena, s.parent, s.field->number);
    const sn_op *op = any_op(m);
    for (int tries = 0; tries < 20 && !takes(op, 1, 1); tries++)
        op = any_op(m);
    set_op(m, node, op);
    pt_add_bytes(m->arena, node, NODE_INPUT, between, strlen(between));
    for (int k = 1; k < op->min_in; k++) {
        const pt_field *name = mu_pick_name(m);
        if (name)
            pt_add_bytes(m->arena, node, NODE_INPUT, name->bytes, name->n_bytes);
    }
    pt_add_bytes(m->arena, node, NODE_OUTPUT, out->bytes, out->n_bytes);
    out->bytes = (const uint8_t *)between;
    out->n_bytes = strlen(between);
    return true;
}

const mutation_row mutations_of_nodes[] = {{op_type, 8}, {domain, 1}, {input, 12},
                                           {output, 4},  {drop, 3},   {repeat, 3},
                                           {move, 1},    {insert, 6}, {NULL, 0}};
