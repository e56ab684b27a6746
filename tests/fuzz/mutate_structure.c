/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is made of beyond its nodes: versions, inputs, outputs and constants of graphs,
 * bodies of control flow, functions. Nodes move into bodies and functions of their own. */
#include <string.h>

#include "fuzz/mutate.h"

static bool main_opset(const pt_field *parent, const pt_field *f)
{
    (void)parent;
    const pt_field *domain = pt_find(f, OPSET_DOMAIN);
    return !domain || domain->n_bytes == 0;
}

static bool version(mutation *m)
{
    mu_spot s;
    if (mu_one_in(m, 10)) {
        pt_set_num(m->arena, m->model, MODEL_IR_VERSION, 3 + mu_below(m, 11));
        return true;
    }
    if (!mu_pick(m, PT_OPSET, mu_one_in(m, 6) ? NULL : main_opset, &s))
        return false;
    const pt_field *old = pt_find(s.field, OPSET_VERSION);
    uint64_t near = old ? old->num + mu_below(m, 5) - 2 : 1;
    pt_set_num(m->arena, s.field, OPSET_VERSION, mu_one_in(m, 2) ? near : 1 + mu_below(m, 27));
    return true;
}

/* ---- inputs, outputs and constants ---- */

/* Any value of the graph as one more output, or one output less. */
static bool graph_output(mutation *m)
{
    mu_spot s;
    if (!mu_pick(m, PT_GRAPH, NULL, &s))
        return false;
    pt_field *out = mu_pick_kid(m, s.field, GRAPH_OUTPUT);
    if (out && mu_one_in(m, 3)) {
        pt_remove(s.field, out);
        return true;
    }
    const pt_field *name = mu_pick_name(m);
    if (!name)
        return false;
    out = pt_add_message(m->arena, s.field, GRAPH_OUTPUT);
    pt_set_bytes(m->arena, out, INFO_NAME, name->bytes, name->n_bytes);
    return true;
}

/* A constant becomes an input of its type, with the constant as default or without one. */
static bool constant_to_input(mutation *m)
{
    pt_field *graph = pt_find(m->model, MODEL_GRAPH);
    pt_field *t = mu_pick_kid(m, graph, GRAPH_INITIALIZER);
    if (!t || t->kind != PT_TENSOR || !pt_find(t, TENSOR_NAME))
        return false;
    pt_field *info = pt_add_message(m->arena, graph, GRAPH_INPUT);
    const pt_field *name = pt_find(t, TENSOR_NAME), *dtype = pt_find(t, TENSOR_DTYPE);
    pt_set_bytes(m->arena, info, INFO_NAME, name->bytes, name->n_bytes);
    pt_field *type =
        pt_add_message(m->arena, pt_add_message(m->arena, info, INFO_TYPE), TYPE_TENSOR);
    pt_set_num(m->arena, type, TYPE_TENSOR_DTYPE, dtype ? dtype->num : 1);
    pt_field *shape = pt_add_message(m->arena, type, TYPE_TENSOR_SHAPE);
    for (uint32_t k = 0; k < pt_count(t, TENSOR_DIM); k++)
        pt_set_num(m->arena, pt_add_message(m->arena, shape, 1), DIM_VALUE,
                   pt_nth(t, TENSOR_DIM, k)->num);
    if (!mu_one_in(m, 3))
        pt_remove(graph, t);
    return true;
}

/* An input of a known, small shape becomes a constant of zeros, so that it is folded away. */
static bool input_to_constant(mutation *m)
{
    pt_field *graph = pt_find(m->model, MODEL_GRAPH);
    pt_field *info = mu_pick_kid(m, graph, GRAPH_INPUT);
    mu_spot s;
    if (!info || info->kind != PT_INFO || !pt_find(info, INFO_NAME) ||
        !mu_pick_in(m, info, PT_TYPE_TENSOR, NULL, &s))
        return false;
    const pt_field *dtype = pt_find(s.field, TYPE_TENSOR_DTYPE);
    const pt_field *shape = pt_find(s.field, TYPE_TENSOR_SHAPE), *name = pt_find(info, INFO_NAME);
    size_t elem = dtype && dtype->num < SONDE_DTYPE_COUNT && dtype->num != SONDE_DTYPE_STRING
                      ? sonde_dtype_bytes((sonde_dtype)dtype->num)
                      : 0;
    uint64_t count = 1;
    if (!elem || !shape || shape->kind != PT_SHAPE)
        return false;
    pt_field *t = pt_add_message(m->arena, graph, GRAPH_INITIALIZER);
    for (uint32_t k = 0; k < shape->n_kids; k++) {
        const pt_field *d =
            shape->kids[k]->kind == PT_DIM ? pt_find(shape->kids[k], DIM_VALUE) : NULL;
        uint64_t n = d && d->num <= 64 ? d->num : 2;
        pt_add_num(m->arena, t, TENSOR_DIM, 0, n);
        if ((count *= n) > 4096) {
            pt_remove(graph, t);
            return false;
        }
    }
    pt_set_num(m->arena, t, TENSOR_DTYPE, dtype->num);
    pt_set_bytes(m->arena, t, TENSOR_NAME, name->bytes, name->n_bytes);
    pt_add_bytes(m->arena, t, TENSOR_RAW, pt_alloc(m->arena, count * elem), count * elem);
    pt_remove(graph, info);
    return true;
}

static bool swap_messages(mutation *m, pt_kind kind)
{
    mu_spot a, b;
    if (!mu_pick(m, kind, NULL, &a) || !mu_pick(m, kind, NULL, &b) || a.field == b.field)
        return false;
    pt_field *copy_a = pt_clone(m->arena, a.field), *copy_b = pt_clone(m->arena, b.field);
    if (!copy_a || !copy_b)
        return false;
    a.field->kids = copy_b->kids, a.field->n_kids = copy_b->n_kids;
    a.field->cap_kids = copy_b->cap_kids;
    if (mu_one_in(m, 2)) {
        b.field->kids = copy_a->kids, b.field->n_kids = copy_a->n_kids;
        b.field->cap_kids = copy_a->cap_kids;
    }
    return true;
}

static bool bodies(mutation *m)
{
    return swap_messages(m, PT_GRAPH);
}

/* ---- wrapping ---- */

static pt_field *graph_attr(mutation *m, pt_field *node, const char *name)
{
    pt_field *a = pt_add_message(m->arena, node, NODE_ATTR);
    pt_set_text(m->arena, a, ATTR_NAME, name);
    pt_set_num(m->arena, a, ATTR_TYPE, 5);
    return pt_add_message(m->arena, a, ATTR_G);
}

static void add_constant(mutation *m, const char *name, uint32_t dtype, const void *data,
                         size_t bytes)
{
    pt_field *t = pt_add_message(m->arena, pt_find(m->model, MODEL_GRAPH), GRAPH_INITIALIZER);
    pt_set_num(m->arena, t, TENSOR_DTYPE, dtype);
    pt_set_text(m->arena, t, TENSOR_NAME, name);
    pt_add_bytes(m->arena, t, TENSOR_RAW, data, bytes);
}

/* Puts a copy of `node` into `body` and returns its outputs from there. */
static bool fill_body(mutation *m, pt_field *body, const pt_field *node)
{
    pt_field *copy = pt_clone(m->arena, node);
    if (!copy)
        return false;
    copy->number = GRAPH_NODE;
    pt_insert(m->arena, body, UINT32_MAX, copy);
    for (uint32_t k = 0; k < copy->n_kids; k++) {
        pt_field *f = copy->kids[k];
        if (f->number != NODE_OUTPUT)
            continue;
        const char *inner = mu_fresh_name(m);
        f->bytes = (const uint8_t *)inner;
        f->n_bytes = strlen(inner);
        pt_field *out = pt_add_message(m->arena, body, GRAPH_OUTPUT);
        pt_set_bytes(m->arena, out, INFO_NAME, inner, f->n_bytes);
    }
    return true;
}

/* The node as both branches of an If. */
static bool wrap_if(mutation *m)
{
    mu_spot s;
    if (!mu_pick(m, PT_NODE, NULL, &s))
        return false;
    const char *condition = mu_fresh_name(m);
    pt_field *node = pt_add_message(m->arena, s.parent, s.field->number);
    if (!fill_body(m, graph_attr(m, node, "then_branch"), s.field) ||
        !fill_body(m, graph_attr(m, node, "else_branch"), s.field)) {
        pt_remove(s.parent, node);
        return false;
    }
    pt_set_text(m->arena, node, NODE_OP, "If");
    pt_add_bytes(m->arena, node, NODE_INPUT, condition, strlen(condition));
    for (uint32_t k = 0; k < pt_count(s.field, NODE_OUTPUT); k++) {
        const pt_field *out = pt_nth(s.field, NODE_OUTPUT, k);
        pt_add_bytes(m->arena, node, NODE_OUTPUT, out->bytes, out->n_bytes);
    }
    add_constant(m, condition, SONDE_DTYPE_BOOL, mu_one_in(m, 2) ? "\1" : "\0", 1);
    pt_remove(s.parent, s.field);
    return true;
}

/* The node in a Loop that stacks what it gives, a few times. */
static bool wrap_loop(mutation *m)
{
    static const int64_t trips[] = {0, 1, 2, 3, 7};
    mu_spot s;
    if (!mu_pick(m, PT_NODE, NULL, &s))
        return false;
    const char *count = mu_fresh_name(m), *go = mu_fresh_name(m);
    pt_field *node = pt_add_message(m->arena, s.parent, s.field->number);
    pt_field *body = graph_attr(m, node, "body");
    static const char *const formal[] = {"loop_i", "loop_go"};
    for (uint32_t k = 0; k < 2; k++) {
        pt_field *in = pt_add_message(m->arena, body, GRAPH_INPUT);
        pt_set_text(m->arena, in, INFO_NAME, formal[k]);
        pt_field *type =
            pt_add_message(m->arena, pt_add_message(m->arena, in, INFO_TYPE), TYPE_TENSOR);
        pt_set_num(m->arena, type, TYPE_TENSOR_DTYPE, k ? SONDE_DTYPE_BOOL : SONDE_DTYPE_I64);
        pt_add_message(m->arena, type, TYPE_TENSOR_SHAPE);
    }
    pt_field *same = pt_add_message(m->arena, body, GRAPH_NODE);
    pt_set_text(m->arena, same, NODE_OP, "Identity");
    pt_set_text(m->arena, same, NODE_INPUT, "loop_go");
    pt_set_text(m->arena, same, NODE_OUTPUT, "loop_go_on");
    pt_set_text(m->arena, pt_add_message(m->arena, body, GRAPH_OUTPUT), INFO_NAME, "loop_go_on");
    if (!fill_body(m, body, s.field)) {
        pt_remove(s.parent, node);
        return false;
    }
    pt_set_text(m->arena, node, NODE_OP, "Loop");
    pt_add_bytes(m->arena, node, NODE_INPUT, count, strlen(count));
    pt_add_bytes(m->arena, node, NODE_INPUT, go, strlen(go));
    for (uint32_t k = 0; k < pt_count(s.field, NODE_OUTPUT); k++) {
        const pt_field *out = pt_nth(s.field, NODE_OUTPUT, k);
        pt_add_bytes(m->arena, node, NODE_OUTPUT, out->bytes, out->n_bytes);
    }
    add_constant(m, count, SONDE_DTYPE_I64, &trips[mu_below(m, 5)], 8);
    add_constant(m, go, SONDE_DTYPE_BOOL, "\1", 1);
    pt_remove(s.parent, s.field);
    return true;
}

/* The node becomes a function of the model and a call of it. */
static bool outline(mutation *m)
{
    mu_spot s;
    if (!mu_pick(m, PT_NODE, NULL, &s) || s.parent->kind != PT_GRAPH)
        return false;
    pt_field *inside = pt_clone(m->arena, s.field);
    if (!inside)
        return false;
    const char *name = mu_fresh_name(m);
    pt_field *fn = pt_add_message(m->arena, m->model, MODEL_FUNCTION);
    pt_set_text(m->arena, fn, FUNCTION_NAME, name);
    pt_set_text(m->arena, fn, FUNCTION_DOMAIN, "made");
    for (uint32_t k = 0; k < inside->n_kids; k++) {
        pt_field *f = inside->kids[k];
        if ((f->number != NODE_INPUT && f->number != NODE_OUTPUT) || f->n_bytes == 0)
            continue;
        const char *formal = mu_fresh_name(m);
        f->bytes = (const uint8_t *)formal;
        f->n_bytes = strlen(formal);
        pt_add_bytes(m->arena, fn, f->number == NODE_INPUT ? FUNCTION_INPUT : FUNCTION_OUTPUT,
                     formal, f->n_bytes);
    }
    inside->number = FUNCTION_NODE;
    pt_insert(m->arena, fn, UINT32_MAX, inside);
    for (uint32_t k = 0; k < m->model->n_kids; k++) {
        pt_field *opset =
            m->model->kids[k]->number == MODEL_OPSET ? pt_clone(m->arena, m->model->kids[k]) : NULL;
        if (opset) {
            opset->number = FUNCTION_OPSET;
            pt_insert(m->arena, fn, UINT32_MAX, opset);
        }
    }
    pt_set_text(m->arena, s.field, NODE_OP, name);
    pt_set_text(m->arena, s.field, NODE_DOMAIN, "made");
    pt_remove_all(s.field, NODE_ATTR);
    return true;
}

const mutation_row mutations_of_structure[] = {
    {version, 4},           {graph_output, 3}, {constant_to_input, 4},
    {input_to_constant, 5}, {bodies, 2},       {wrap_if, 2},
    {wrap_loop, 2},         {outline, 2},      {NULL, 0}};
