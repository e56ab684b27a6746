/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of an inspection: how many parameters a model has, and what memory one run of a
 * session needs. Every byte is counted in one part only, so that the parts add up to the peak. */
#include "api/inspect.h"

#include "base/map.h"
#include "plan/binding.h"

/* ------------------------------------------------------------------ parameters */

/* A weight whose elements are packed into bytes in a way its type does not say. */
typedef struct packing {
    int64_t elems, bits;
} packing;

static int64_t int_attr(const sn_node *n, const char *name, int64_t otherwise)
{
    const sn_attr *a = sn_node_attr(n, name);
    return a && a->kind == SN_ATTR_INT ? a->i : otherwise;
}

/* Weights people train: floats of any width, quantised matrices and biases, no scalars. `v` holds
 * them. */
static bool is_parameter(const sn_value *v, const sn_tensor *t, packing *p)
{
    for (const sn_edge *e = v->uses; e; e = e->next) {
        if (strcmp(e->node->op_type, "BatchNormalization") == 0 && e->index >= 3)
            return false; /* running statistics */
        if (strcmp(e->node->op_type, "DequantizeLinear") == 0)
            return t->rank > 0 && e->index == 0; /* else scales and zero points */
        if (strcmp(e->node->op_type, "MatMulNBits") == 0 && e->index >= 1 && e->index <= 4) {
            p->bits = int_attr(e->node, "bits", 4);
            const int64_t k = int_attr(e->node, "K", 0), n = int_attr(e->node, "N", 0);
            if (p->bits < 1 || p->bits > 8 || k < 1 || n < 1 ||
                __builtin_mul_overflow(k, n, &p->elems))
                p->elems = 0; /* no such weight: as the type says */
            return e->index == 1;
        }
    }
    if (v->producer && sn_tensor_count(t) == 1)
        return false; /* a number of the graph's own, in a Constant node */
    return t->rank > 0 &&
           (sn_dtype_is_float(t->dtype) ||
            (t->rank >= 2 && t->dtype != SONDE_DTYPE_BOOL && sn_dtype_bits(t->dtype) <= 8));
}

/* A body shares constants with the graphs around it: they count once. False: out of memory. */
static bool count_constant(sonde_inspection_totals *totals, sn_map *seen, const sn_value *v,
                           const sn_tensor *t)
{
    if (sn_map_get_address(seen, t))
        return true;
    packing p = {.elems = 0};
    totals->constant_bytes += t->bytes;
    if (is_parameter(v, t, &p)) {
        if (!p.elems)
            p = (packing){sn_tensor_count(t), sn_dtype_bits(t->dtype)};
        const uint64_t n = (uint64_t)p.elems, bits = (uint64_t)p.bits;
        totals->parameters += n;
        totals->parameter_bytes += n / 8 * bits + (n % 8 * bits + 7) / 8;
    }
    return sn_map_put_address(seen, t, totals, NULL);
}

/* Initializers, and Constant nodes, where some exporters keep their weights. */
static bool count_graph(sonde_inspection_totals *totals, sn_map *seen, const sn_graph *g)
{
    bool fine = true;
    for (size_t i = 0; fine && i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (v && v->fact.data && (v->is_initializer || v->n_uses))
            fine = count_constant(totals, seen, v, v->fact.data);
    }
    for (const sn_node *n = g->first; fine && n; n = n->next) {
        const sn_attr *value =
            strcmp(n->op_type, "Constant") == 0 ? sn_node_attr(n, "value") : NULL;
        if (value && value->kind == SN_ATTR_TENSOR && n->n_out && n->out[0])
            fine = count_constant(totals, seen, n->out[0], value->tensor);
        for (uint32_t k = 0; fine && sn_node_body(n, k); k++)
            fine = count_graph(totals, seen, sn_node_body(n, k));
    }
    return fine;
}

sonde_status sn_inspect_parameters(sonde_inspection_totals *totals, const sn_graph *g,
                                   sn_allocator *alloc, sonde_error *err)
{
    sn_map seen;
    sn_map_init(&seen, alloc);
    const bool fine = count_graph(totals, &seen, g);
    sn_map_free(&seen);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(sn_map_entry));
}

/* ------------------------------------------------------------------ memory of one run */

/* Memory of the model that stays whatever steps read of it: what is not a mapped file. */
static uint64_t held_by_model(const sn_model *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->buffers.list.n; i++)
        bytes += m->buffers.list.data[i]->bytes;
    for (size_t i = 0; i < m->files.n; i++)
        bytes += m->files.data[i]->mapped ? 0 : m->files.data[i]->bytes;
    return bytes;
}

static bool lies_in(const void *data, const void *start, size_t bytes)
{
    return (uintptr_t)data >= (uintptr_t)start && (uintptr_t)data - (uintptr_t)start < bytes;
}

static bool is_held_by_model(const sn_model *m, const void *data)
{
    for (size_t i = 0; i < m->buffers.list.n; i++)
        if (lies_in(data, m->buffers.list.data[i]->data, m->buffers.list.data[i]->bytes))
            return true;
    for (size_t i = 0; i < m->files.n; i++)
        if (!m->files.data[i]->mapped &&
            lies_in(data, m->files.data[i]->data, m->files.data[i]->bytes))
            return true;
    return false;
}

/* One that steps read as it is, from a mapped file or as a pass made it. */
static bool count_weight(sonde_inspection_totals *totals, sn_map *seen, const sn_program *p,
                         uint32_t slot)
{
    if (slot == SN_NO_SLOT || p->consts[slot].kind != SN_KIND_TENSOR || p->consts[slot].t.pack)
        return true;
    const sn_tensor *t = &p->consts[slot].t;
    /* Joined ones have no memory of their own before they are made readable. */
    const void *where = t->data ? t->data : (const void *)t->parts;
    if (!where || sn_map_get_address(seen, where) || is_held_by_model(p->model, where))
        return true;
    totals->weight_bytes += t->bytes;
    return sn_map_put_address(seen, where, totals, NULL);
}

static bool count_weights(sonde_inspection_totals *totals, sn_map *seen, const sn_program *p)
{
    bool fine = true;
    for (uint32_t i = 0; fine && i < p->n_steps; i++)
        for (uint32_t j = 0; fine && j < p->steps[i].n_in; j++)
            fine = count_weight(totals, seen, p, p->steps[i].in[j]);
    for (uint32_t o = 0; fine && o < p->n_outputs; o++)
        fine = count_weight(totals, seen, p, p->outputs[o]);
    for (uint32_t b = 0; fine && b < p->n_bodies; b++)
        fine = count_weights(totals, seen, p->bodies[b]);
    return fine;
}

static uint64_t input_bytes(const sn_binding *b)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->program->n_inputs; i++) {
        const sn_type *t = &b->facts[b->program->graph->inputs.data[i]->id].type;
        size_t bytes;
        if (t->kind == SN_KIND_TENSOR && sn_type_is_concrete(t) &&
            sn_tensor_bytes(t->dtype, t->dims, t->rank, &bytes))
            sum += bytes;
    }
    return sum;
}

sonde_status sn_inspect_memory(sonde_inspection_totals *totals, const sn_binding *b,
                               sn_allocator *alloc, sonde_error *err)
{
    const sn_program *p = b->program;
    sn_map seen;
    sn_map_init(&seen, alloc);
    totals->weight_bytes = held_by_model(p->model);
    const bool fine = count_weights(totals, &seen, p);
    sn_map_free(&seen);
    if (!fine)
        return sn_fail_memory(err, sizeof(sn_map_entry));
    totals->packed_bytes = p->packed_bytes;
    totals->arena_bytes = b->arena_bytes;
    totals->workspace_bytes = b->workspace_bytes;
    totals->input_bytes = input_bytes(b);
    totals->output_bytes = b->output_bytes;
    totals->peak_bytes = totals->weight_bytes + totals->packed_bytes + totals->arena_bytes +
                         totals->workspace_bytes + totals->input_bytes + totals->output_bytes;
    totals->data_dependent = !b->is_static || p->n_bodies > 0;
    return SONDE_OK;
}
