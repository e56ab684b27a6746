/* SPDX-License-Identifier: Apache-2.0 */
/* Models made of a model: with other outputs, and with every operator cut from the ones before it.
 * In a cut model each compared tensor X is twice: as what its operator makes, which is looked at,
 * and as an input, which the operators behind it read. Fed with A's tensors, one run gives what
 * every operator of B makes of the right inputs.
 *
 * Where B keeps X as Q ► DQ, the operators behind read a second Q ► DQ of the input, so a layer is
 * given what it would be given in B: quantised numbers, but of the right ones. */
#include <stdio.h>

#include "accuracy/pairs.h"

/* ------------------------------------------------------------------ copies */
static sonde_status copy_tables(const sn_model *from, sn_model *m, sonde_error *err)
{
    sn_allocator *alloc = m->ctx->alloc;
    m->ir_version = from->ir_version;
    m->graph_name = from->graph_name;
    if (!sn_vec_append(&m->opsets, alloc, from->opsets.data, from->opsets.n) ||
        !sn_vec_append(&m->origins.list, alloc, from->origins.list.data, from->origins.list.n))
        return sn_fail_memory(err, from->origins.list.n * sizeof(sn_origin));
    sn_graph *g = NULL;
    SN_TRY(sn_graph_clone(from->graph, &m->arena, &g, err));
    sn_graph_free(m->graph);
    m->graph = g;
    g->origins = &m->origins;
    return SONDE_OK;
}

sonde_status sn_copy_model(sonde_context *c, const sn_model *from, sn_model **made,
                           sonde_error *err)
{
    sn_model *m = NULL;
    *made = NULL;
    SN_TRY(sn_model_new(&m, &c->core, err));
    const sonde_status st = copy_tables(from, m, err);
    if (st != SONDE_OK)
        sn_model_unref(m);
    else
        *made = m;
    return st;
}

/* ------------------------------------------------------------------ other outputs */
static bool is_read(const sn_node *n)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->n_uses || n->out[i]->n_outputs))
            return true;
    return false;
}

static void prune(sn_graph *g)
{
    for (sn_node *n = g->last, *before; n; n = before) {
        before = n->prev;
        if (!is_read(n))
            sn_node_unlink(g, n);
    }
    size_t kept = 0;
    for (size_t i = 0; i < g->inputs.n; i++) {
        sn_value *v = g->inputs.data[i];
        if (strncmp(v->name, "sonde.fed.", 10) != 0 || v->n_uses)
            g->inputs.data[kept++] = v;
        else
            v->is_input = false;
    }
    g->inputs.n = kept;
    g->n_formal_inputs = (uint32_t)kept;
}

/* Identity with a plain name: other programs name files after outputs. */
static sonde_status add_tap(sn_graph *g, int64_t opset, sn_value *v, size_t k, sn_value **tap,
                            sonde_error *err)
{
    sn_node *node = NULL;
    const char *name = sn_arena_printf(g->arena, "sonde_tap_%zu", k);
    if (!name)
        return sn_fail_memory(err, 32);
    SN_TRY(sn_graph_add_node(g, NULL, "", "Identity", name, 1, 1, &node, err));
    node->opset = (int32_t)opset;
    node->n_formal_in = 1;
    sn_node_set_input(node, 0, v);
    SN_TRY(sn_graph_add_value(g, name, tap, err));
    (*tap)->fact.type = v->fact.type;
    sn_node_set_output(node, 0, *tap);
    return sn_graph_add_origin(g, node, NULL, err);
}

static sonde_status set_outputs(sn_model *m, const sn_map *names, const char *const *wanted,
                                size_t n, bool taps, sonde_error *err)
{
    sn_graph *g = m->graph;
    const int64_t opset = sn_model_opset(m, "");
    for (size_t i = 0; i < g->outputs.n; i++)
        g->outputs.data[i]->n_outputs--;
    g->outputs.n = 0;
    for (size_t i = 0; i < n; i++) {
        sn_value *v = sn_map_get(names, wanted[i]);
        if (!v)
            return sn_fail(err, SONDE_NOT_FOUND, "the model has no tensor '%.200s'", wanted[i]);
        if (taps && opset > 0)
            SN_TRY(add_tap(g, opset, v, i, &v, err));
        SN_TRY(sn_graph_add_output(g, v, err));
    }
    prune(g);
    return SONDE_OK;
}

sonde_status sn_with_outputs(sonde_accuracy *acc, const sn_side *side, const sn_model *from,
                             const char *const *names, size_t n, sonde_model **made,
                             sonde_error *err)
{
    sonde_context *c = side->model->context;
    sn_model *m = NULL;
    *made = NULL;
    SN_TRY(sn_copy_model(c, from, &m, err));
    sn_map map;
    sn_map_init(&map, &c->alloc);
    sonde_status st = sn_map_values(&map, m->graph, err);
    if (st == SONDE_OK)
        st = set_outputs(m, &map, names, n, side->run != NULL, err);
    sn_map_free(&map);
    if (st != SONDE_OK) {
        sn_model_unref(m);
        return st;
    }
    char name[32]; /* another runtime knows by it whether it has this one already */
    (void)snprintf(name, sizeof name, "compare.%u", ++acc->n_models);
    return sn_api_model(c, m, name, made, err);
}

/* ------------------------------------------------------------------ cutting */
/* Every reader of `from` but one node reads `to`. */
static void move_readers(sn_value *from, sn_value *to, const sn_node *but)
{
    for (sn_edge *e = from->uses, *next; e; e = next) {
        next = e->next;
        if (e->node != but)
            sn_node_set_input(e->node, e->index, to);
    }
}

static sonde_status add_result(sn_graph *g, sn_node *n, const char *name, sn_value **out,
                               sonde_error *err)
{
    SN_TRY(sn_graph_add_value(g, name, out, err));
    sn_node_set_output(n, 0, *out);
    return sn_graph_add_origin(g, n, NULL, err);
}

/* A node with the attributes of `like` and its inputs 1 and 2, scale and zero point. */
static sonde_status add_like(sn_graph *g, const sn_node *like, const char *op_type, sn_value *x,
                             const char *name, sn_value **out, sonde_error *err)
{
    sn_node *n = NULL;
    const uint32_t inputs = like->n_in < 3 ? like->n_in : 3;
    SN_TRY(sn_graph_add_node(g, NULL, like->domain, op_type, name, inputs, 1, &n, err));
    n->opset = like->opset;
    n->n_formal_in = inputs;
    sn_node_set_input(n, 0, x);
    for (uint32_t i = 1; i < inputs; i++)
        if (like->in[i].value)
            sn_node_set_input(n, i, like->in[i].value);
    for (uint32_t i = 0; i < like->n_attrs; i++)
        if (strcmp(op_type, like->op_type) == 0 || strcmp(like->attrs[i].name, "axis") == 0)
            SN_TRY(sn_node_set_attr(g, n, &like->attrs[i], err));
    return add_result(g, n, name, out, err);
}

/* A's element type may be another float than B's. */
static sonde_status add_cast(sn_graph *g, int64_t opset, sn_dtype to, sn_value *x, const char *name,
                             sn_value **out, sonde_error *err)
{
    sn_node *n = NULL;
    const sn_attr attr = {.name = "to", .kind = SN_ATTR_INT, .n = 1, .i = (int64_t)to};
    SN_TRY(sn_graph_add_node(g, NULL, "", "Cast", name, 1, 1, &n, err));
    n->opset = (int32_t)opset;
    n->n_formal_in = 1;
    sn_node_set_input(n, 0, x);
    SN_TRY(sn_node_set_attr(g, n, &attr, err));
    return add_result(g, n, name, out, err);
}

typedef struct cutter {
    sonde_accuracy *acc;
    sn_graph *g;
    int64_t opset;
} cutter;

static sonde_status cut_chain(const cutter *k, uint32_t index, sn_value *fed, sonde_error *err)
{
    const sn_place_b *b = &k->acc->pairs[index].b;
    sn_graph *g = k->g;
    /* Nodes and values of the copy have the ids of those it was copied from. */
    sn_value *seen = g->values.data[b->seen->id], *bytes = g->values.data[b->quantized->id];
    sn_node *dequantize = seen->producer;
    sn_node *quantize = b->quantize ? bytes->producer : NULL;
    sn_value *again = NULL, *bytes_again = NULL;
    const char *names[2] = {sn_arena_printf(g->arena, "sonde.q.%u", index),
                            sn_arena_printf(g->arena, "sonde.dq.%u", index)};
    if (!names[0] || !names[1])
        return sn_fail_memory(err, 32);
    if (quantize)
        move_readers(quantize->in[0].value, fed, quantize);
    SN_TRY(add_like(g, quantize ? quantize : dequantize, "QuantizeLinear", fed, names[0],
                    &bytes_again, err));
    move_readers(bytes, bytes_again, dequantize);
    SN_TRY(add_like(g, dequantize, "DequantizeLinear", bytes_again, names[1], &again, err));
    move_readers(seen, again, NULL);
    return SONDE_OK;
}

static sonde_status cut_pair(const cutter *k, uint32_t index, sn_dtype dtype_a, sonde_error *err)
{
    sn_pair *p = &k->acc->pairs[index];
    sn_graph *g = k->g;
    if (dtype_a != p->type.dtype &&
        (!sn_dtype_is_float(dtype_a) || !sn_dtype_is_float(p->type.dtype)))
        return SONDE_OK;
    const char *name = sn_arena_printf(&k->acc->arena, "sonde.fed.%u", index);
    sn_value *fed = NULL;
    if (!name)
        return sn_fail_memory(err, 32);
    SN_TRY(sn_graph_add_value(g, name, &fed, err));
    SN_TRY(sn_type_copy(&fed->fact.type, &p->type, g->arena, err));
    fed->fact.type.dtype = dtype_a;
    SN_TRY(sn_graph_add_input(g, fed, err));
    g->n_formal_inputs = (uint32_t)g->inputs.n;
    if (dtype_a != p->type.dtype) {
        const char *cast = sn_arena_printf(g->arena, "sonde.cast.%u", index);
        if (!cast)
            return sn_fail_memory(err, 32);
        SN_TRY(add_cast(g, k->opset, p->type.dtype, fed, cast, &fed, err));
    }
    p->fed = name;
    if (p->b.quantized)
        return cut_chain(k, index, fed, err);
    move_readers(g->values.data[p->b.seen->id], fed, NULL);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ what is needed */
typedef struct walk {
    sonde_accuracy *acc;
    SN_VEC(const sn_node *) todo;
    SN_VEC(uint32_t) found;
    uint32_t *seen; /* by node id: the pair whose walk saw it, plus 1 */
    bool quantized;
} walk;

static sonde_status visit(walk *w, const sn_value *v, uint32_t mark, sonde_error *err)
{
    sn_allocator *alloc = &w->acc->context->alloc;
    if (!v)
        return SONDE_OK;
    unsigned index;
    if (!v->producer) {
        if (sscanf(v->name, "sonde.fed.%u", &index) == 1 && index < w->acc->n_pairs)
            return sn_vec_push(&w->found, alloc, (uint32_t)index)
                       ? SONDE_OK
                       : sn_fail_memory(err, sizeof(uint32_t));
        return SONDE_OK;
    }
    if (w->seen[v->producer->id] == mark)
        return SONDE_OK;
    w->seen[v->producer->id] = mark;
    return sn_vec_push(&w->todo, alloc, v->producer) ? SONDE_OK
                                                     : sn_fail_memory(err, sizeof(void *));
}

/* The fed inputs from which the pair's tensor is computed. */
static sonde_status walk_pair(walk *w, const sn_graph *g, uint32_t index, sonde_error *err)
{
    sn_pair *p = &w->acc->pairs[index];
    w->todo.n = w->found.n = 0;
    w->quantized = p->b.quantized != NULL;
    SN_TRY(visit(w, g->values.data[p->b.seen->id], index + 1, err));
    while (w->todo.n) {
        const sn_node *n = w->todo.data[--w->todo.n];
        w->quantized |= sn_is_quantized_op(n);
        for (uint32_t i = 0; i < n->n_in; i++)
            SN_TRY(visit(w, n->in[i].value, index + 1, err));
    }
    p->quantized = w->quantized;
    uint32_t *needs = SN_NEW_N(&w->acc->arena, uint32_t, w->found.n + 1);
    if (!needs)
        return sn_fail_memory(err, w->found.n * sizeof *needs);
    for (size_t i = 0; i < w->found.n; i++) {
        bool known = false;
        for (uint32_t j = 0; j < p->n_needs && !known; j++)
            known = needs[j] == w->found.data[i];
        if (!known)
            needs[p->n_needs++] = w->found.data[i];
    }
    p->needs = needs;
    return SONDE_OK;
}

static sonde_status walk_all(sonde_accuracy *acc, const sn_graph *g, sonde_error *err)
{
    walk w = {.acc = acc, .seen = sn_alloc_zero(&acc->context->alloc, (g->n_nodes + 1) * 4)};
    sonde_status st = w.seen ? SONDE_OK : sn_fail_memory(err, g->n_nodes * 4);
    for (uint32_t i = 0; i < acc->n_pairs && st == SONDE_OK; i++)
        st = walk_pair(&w, g, i, err);
    sn_vec_free(&w.todo, &acc->context->alloc);
    sn_vec_free(&w.found, &acc->context->alloc);
    sn_free(&acc->context->alloc, w.seen, (g->n_nodes + 1) * 4);
    return st;
}

sonde_status sn_accuracy_cut(sonde_accuracy *acc, sonde_error *err)
{
    SN_TRY(sn_copy_model(acc->context, acc->tapped, &acc->cut, err));
    const cutter k = {.acc = acc, .g = acc->cut->graph, .opset = sn_model_opset(acc->cut, "")};
    for (uint32_t i = 0; i < acc->n_pairs; i++)
        if (acc->pairs[i].type.kind == SN_KIND_TENSOR && acc->pairs[i].dtype_a)
            SN_TRY(cut_pair(&k, i, acc->pairs[i].dtype_a, err));
    SN_TRY(sn_graph_sort(k.g, err));
    return walk_all(acc, k.g, err);
}
