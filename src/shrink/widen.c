/* SPDX-License-Identifier: Apache-2.0 */
/* A model of f16 as one of f32, which static quantisation starts from: 8-bit forms of f16 would
 * need scales of f16, in whose steps biases do not fit. Constants, types and casts become f32;
 * inputs and outputs of the model stay f16, with a Cast behind or before them. */
#include <string.h>

#include "base/codec.h"
#include "shrink/quantizer.h"

typedef struct widening {
    sn_model *m;
    sn_map made; /* contents ► the same as f32 */
    sonde_error *err;
} widening;

static bool is_half(const sn_type *t)
{
    return t->kind == SN_KIND_TENSOR && t->dtype == SONDE_DTYPE_F16;
}

/* ------------------------------------------------------------------ is it wanted */
static bool has_half_product(const sn_graph *g)
{
    for (const sn_node *n = g->first; n; n = n->next) {
        const sn_value *w = sn_q_is_product(n) && n->n_in > 1 ? n->in[1].value : NULL;
        if (w &&
            ((w->fact.data && w->fact.data->dtype == SONDE_DTYPE_F16) || is_half(&w->fact.type)))
            return true;
    }
    return false;
}

/* Sequences, and inputs with a default, would need more than a Cast. */
static bool is_simple(const sn_graph *g)
{
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v->fact.type.elem && is_half(v->fact.type.elem))
            return false;
        if (v->is_input && v->fact.data && v->fact.data->dtype == SONDE_DTYPE_F16)
            return false;
    }
    for (const sn_node *n = g->first; n; n = n->next) {
        const sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            if (!is_simple(body)) /* depth is bounded by sn_graph_new */
                return false;
    }
    return true;
}

/* ------------------------------------------------------------------ constants and types */
static sonde_status widen_tensor(widening *w, const sn_tensor *t, const sn_tensor **out)
{
    const int64_t n = sn_tensor_count(t);
    *out = sn_map_get_address(&w->made, t);
    if (*out)
        return SONDE_OK;
    sn_tensor *own = SN_NEW(&w->m->arena, sn_tensor);
    sn_buffer *buffer = sn_buffer_new(w->m->ctx->alloc, (size_t)n * sizeof(float));
    if (!buffer || !sn_vec_push(&w->m->buffers.list, w->m->ctx->alloc, buffer)) {
        sn_buffer_unref(buffer);
        return sn_fail_memory(w->err, (size_t)n * sizeof(float));
    }
    if (!own)
        return sn_fail_memory(w->err, sizeof *own);
    *own = (sn_tensor){.dtype = SONDE_DTYPE_F32,
                       .rank = t->rank,
                       .data = buffer->data,
                       .bytes = (size_t)n * sizeof(float)};
    memcpy(own->dims, t->dims, sizeof own->dims);
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        sn_tensor_read(t, i, 1, &half);
        ((float *)buffer->data)[i] = sn_f16_to_f32(half);
    }
    *out = own;
    return sn_map_put_address(&w->made, t, own, NULL)
               ? SONDE_OK
               : sn_fail_memory(w->err, sizeof(sn_map_entry));
}

static sonde_status widen_attributes(widening *w, sn_node *n)
{
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        sn_attr *a = &n->attrs[i];
        if (a->kind == SN_ATTR_TENSOR && a->tensor->dtype == SONDE_DTYPE_F16)
            SN_TRY(widen_tensor(w, a->tensor, &a->tensor));
        else if (a->kind == SN_ATTR_INT && a->i == SONDE_DTYPE_F16 &&
                 (strcmp(a->name, "to") == 0 || strcmp(a->name, "dtype") == 0))
            a->i = SONDE_DTYPE_F32;
    }
    return SONDE_OK;
}

static sonde_status widen_graph(widening *w, sn_graph *g)
{
    for (size_t i = 0; i < g->values.n; i++) {
        sn_value *v = g->values.data[i];
        const sn_tensor *t = NULL;
        if (v->fact.data && v->fact.data->dtype == SONDE_DTYPE_F16) {
            SN_TRY(widen_tensor(w, v->fact.data, &t));
            SN_TRY(sn_value_set_constant(g, v, t, w->err));
        } else if (is_half(&v->fact.type)) {
            v->fact.type.dtype = SONDE_DTYPE_F32;
        }
    }
    for (sn_node *n = g->first; n; n = n->next) {
        sn_graph *body;
        SN_TRY(widen_attributes(w, n));
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(widen_graph(w, body)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ inputs and outputs */
/* A Cast between `from` and `to`, of which one is f16. */
static sonde_status cast(const widening *w, sn_node *before, sn_value *from, sn_value *to)
{
    const sn_attr a = {
        .name = "to", .kind = SN_ATTR_INT, .n = 1, .i = (int64_t)to->fact.type.dtype};
    sn_graph *g = w->m->graph;
    sn_node *n;
    const char *name = sn_arena_printf(&w->m->arena, "%s_Cast", to->name);
    if (!name)
        return sn_fail_memory(w->err, strlen(to->name));
    SN_TRY(sn_graph_add_node(g, before, "", "Cast", name, 1, 1, &n, w->err));
    n->opset = (int32_t)sn_model_opset(w->m, "");
    n->n_formal_in = 1;
    SN_TRY(sn_node_set_attr(g, n, &a, w->err));
    sn_node_set_input(n, 0, from);
    sn_node_set_output(n, 0, to);
    return SONDE_OK;
}

/* A value of f16 with the name of v, which is called otherwise from now on. */
static sonde_status stand_in(const widening *w, sn_value *v, sn_value **half)
{
    const char *name = sn_arena_printf(&w->m->arena, "%s_f32", v->name);
    if (!name)
        return sn_fail_memory(w->err, strlen(v->name));
    SN_TRY(sn_graph_add_value(w->m->graph, v->name, half, w->err));
    (*half)->fact.type = v->fact.type;
    (*half)->fact.type.dtype = SONDE_DTYPE_F16;
    v->name = name;
    return SONDE_OK;
}

static sonde_status keep_ports(const widening *w, const sn_graph *from)
{
    sn_graph *g = w->m->graph;
    sn_node *first = g->first;
    for (size_t i = 0; i < g->inputs.n; i++) {
        sn_value *v = g->inputs.data[i], *half;
        if (!is_half(&from->inputs.data[i]->fact.type))
            continue;
        SN_TRY(stand_in(w, v, &half));
        v->is_input = false;
        half->is_input = true;
        g->inputs.data[i] = half;
        SN_TRY(cast(w, first, half, v));
    }
    for (size_t i = 0; i < g->outputs.n; i++) {
        sn_value *v = g->outputs.data[i], *half;
        if (!is_half(&from->outputs.data[i]->fact.type))
            continue;
        SN_TRY(stand_in(w, v, &half));
        v->n_outputs--;
        half->n_outputs = 1;
        g->outputs.data[i] = half;
        SN_TRY(cast(w, NULL, v, half));
    }
    return SONDE_OK;
}

sonde_status sn_q_widen(sn_model *m, const sn_graph *from, bool *widened, sonde_error *err)
{
    widening w = {.m = m, .err = err};
    *widened = has_half_product(m->graph) && is_simple(m->graph);
    if (!*widened)
        return SONDE_OK;
    sn_map_init(&w.made, m->ctx->alloc);
    sonde_status st = widen_graph(&w, m->graph);
    if (st == SONDE_OK)
        st = keep_ports(&w, from);
    sn_map_free(&w.made);
    return st;
}
