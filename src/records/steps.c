/* SPDX-License-Identifier: Apache-2.0 */
/* The step tables of a profile: names, shapes, kernels and costs copied out of the bindings that
 * ran under the recorder, so that a profile knows no graph and outlives every session. */
#include "records/steps.h"

#include <string.h>

#include "compute/packs.h"

/* What kernels read and write, which need not be what the model states: images may be bf16 between
 * steps, and packed weights what the session asks for. */
static sn_dtype stored_dtype(const sn_fact *fact)
{
    const sn_pack_format *packed = sn_pack_get(fact->pack);
    return packed ? packed->dtype : sn_fact_stored(fact);
}

/* The fact of input i as the step finds it: of the packed weight where there is one. */
static const sn_fact *input_fact(const sn_binding *b, const sn_step *step, uint32_t i,
                                 const sn_value *v)
{
    const bool bound = i < step->n_in && step->in[i] != SN_NO_SLOT;
    return &b->facts[bound ? step->in[i] : v->id];
}

/* By the slot whose memory it is: the graph's input, and its output. */
typedef struct ports {
    const sn_value **in, **out;
    size_t n;
    bool brief; /* weights are not looked at */
} ports;

static void add_ports(const sn_binding *b, sn_value *const *list, size_t n, const sn_value **by)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] && !by[b->root[list[i]->id]])
            by[b->root[list[i]->id]] = list[i];
}

static bool find_ports(const sn_binding *b, sn_allocator *alloc, ports *p)
{
    const sn_graph *g = b->program->graph;
    *p = (ports){.n = b->n_slots + 1, .brief = p->brief};
    p->in = sn_alloc(alloc, 2 * p->n * sizeof *p->in);
    if (!p->in)
        return false;
    memset(p->in, 0, 2 * p->n * sizeof *p->in);
    p->out = p->in + p->n;
    add_ports(b, g->inputs.data, g->inputs.n, p->in);
    add_ports(b, g->outputs.data, g->outputs.n, p->out);
    return true;
}

static int64_t *copy_dims(const sn_type *t, sn_arena *arena)
{
    int64_t *dims = SN_NEW_N(arena, int64_t, t->rank + 1);
    for (int32_t i = 0; dims && i < t->rank; i++)
        dims[i] = t->dims[i];
    return dims;
}

/* A port that the step sees in another shape, as behind a Reshape that moves nothing. */
static bool port_shape(const sn_type *t, sn_arena *arena, sn_prof_tensor *row)
{
    if (!sn_type_is_concrete(t) || row->rank < 0)
        return true;
    if (t->rank == row->rank && memcmp(t->dims, row->dims, (size_t)t->rank * sizeof *t->dims) == 0)
        return true;
    row->port_rank = t->rank;
    row->port_dims = copy_dims(t, arena);
    return row->port_dims != NULL;
}

static bool port_row(const sn_binding *b, const sn_value *v, const sn_value *const *by,
                     sn_arena *arena, sn_prof_tensor *row)
{
    const sn_value *port = v && !sn_value_is_const(v) ? by[b->root[v->id]] : NULL;
    const char *name = port ? sn_value_shown(port) : "";
    if (!*name)
        return true;
    row->port = sn_arena_strdup(arena, name);
    return row->port && port_shape(&b->facts[port->id].type, arena, row);
}

/* False: out of memory. */
static bool tensor_row(const sn_binding *b, const sn_value *v, const char *name,
                       const sn_fact *fact, sn_arena *arena, sn_prof_tensor *row)
{
    const sn_graph *g = b->program->graph;
    *row = (sn_prof_tensor){.name = "", .dtype = "", .rank = -1, .zeros = -1};
    if (!v)
        return true;
    const sn_type *t = &fact->type;
    row->value = sn_value_is_const(v) ? 0 : b->root[v->id] + 1;
    row->name = sn_arena_strdup(arena, name);
    if (t->kind == SN_KIND_TENSOR)
        row->dtype = sn_dtype_name(stored_dtype(fact));
    if (t->kind == SN_KIND_TENSOR && sn_type_is_concrete(t)) {
        row->rank = t->rank;
        row->dims = copy_dims(t, arena);
        if (!row->dims)
            return false;
    } else {
        char text[256];
        row->text = sn_arena_strdup(arena, sn_type_text(t, g->symbols.data, text, sizeof text));
        if (!row->text)
            return false;
    }
    return row->name != NULL;
}

static bool tensor_rows(const sn_binding *b, const sn_node *node, const ports *ends,
                        sn_arena *arena, sn_prof_step *row)
{
    const sn_step *step = &b->steps[row->index];
    sn_prof_tensor *in = SN_NEW_N(arena, sn_prof_tensor, node->n_in + 1);
    sn_prof_tensor *out = SN_NEW_N(arena, sn_prof_tensor, node->n_out + 1);
    if (!in || !out)
        return false;
    for (uint32_t i = 0; i < node->n_in; i++) {
        const sn_value *v = node->in[i].value;
        const char *name = v ? sn_edge_shown(&node->in[i]) : "";
        if (!tensor_row(b, v, name, v ? input_fact(b, step, i, v) : NULL, arena, &in[i]) ||
            !port_row(b, v, ends->in, arena, &in[i]))
            return false;
        in[i].constant = v && sn_value_is_const(v);
        if (in[i].constant && i > 0 && in[i].rank >= 2 && !ends->brief)
            in[i].zeros = sn_records_weight_zeros(b, step, i);
    }
    for (uint32_t i = 0; i < node->n_out; i++) {
        const sn_value *v = node->out[i];
        const char *name = v ? sn_value_shown(v) : "";
        if (!tensor_row(b, v, name, v ? &b->facts[v->id] : NULL, arena, &out[i]) ||
            !port_row(b, v, ends->out, arena, &out[i]))
            return false;
    }
    row->inputs = in;
    row->n_inputs = node->n_in;
    row->outputs = out;
    row->n_outputs = node->n_out;
    return true;
}

static bool origin_row(const sn_graph *g, uint32_t id, sn_arena *arena, sn_prof_origin *row)
{
    if (!g->origins || id >= g->origins->list.n) {
        *row = (sn_prof_origin){.name = "", .op_type = ""};
        return true;
    }
    const sn_origin *o = &g->origins->list.data[id];
    row->name = sn_arena_strdup(arena, o->name ? o->name : "");
    row->op_type = sn_arena_strdup(arena, o->op_type);
    return row->name && row->op_type;
}

/* Those its node has in the file: what passes add says nothing to people. */
static const char *shown_attributes(const sn_graph *g, const sn_node *node, sn_arena *arena)
{
    if (!g->origins || node->anchor >= g->origins->list.n)
        return sn_node_attributes_text(node, arena);
    const sn_origin *o = &g->origins->list.data[node->anchor];
    const bool own = strcmp(node->shown_type, o->op_type) == 0;
    return own ? sn_node_attributes_text(o->node, arena) : sn_arena_strdup(arena, "");
}

static bool step_row(const sn_binding *b, uint32_t i, const ports *ends, const sn_clock *clock,
                     sn_arena *arena, sn_prof_step *row)
{
    const sn_step *step = &b->steps[i];
    const sn_step_info *info = &b->info[i];
    const sn_node *node = step->node;
    const sn_graph *g = b->program->graph;
    *row = (sn_prof_step){.table = b->id,
                          .index = i,
                          .threads = (uint32_t)b->threads,
                          .flops = info->flops,
                          .bytes = info->bytes,
                          .arithmetic = info->arithmetic,
                          .bind_ns = (uint64_t)sn_ticks_to_ns(clock, info->bind_ticks),
                          .dynamic = info->dynamic,
                          .control = step->op && (step->op->flags & SN_OP_CONTROL)};
    sn_prof_origin *origins = SN_NEW_N(arena, sn_prof_origin, node->n_origins + 1);
    if (!origins)
        return false;
    for (uint32_t k = 0; k < node->n_origins; k++)
        if (!origin_row(g, node->origins[k], arena, &origins[k]))
            return false;
    row->op_type = sn_arena_strdup(arena, node->shown_type);
    row->name = sn_arena_strdup(arena, node->name);
    row->post_op = sn_arena_strdup(arena, node->post_op ? node->post_op : "");
    row->kernel = sn_arena_strdup(arena, info->kernel ? info->kernel : "");
    row->attributes = shown_attributes(g, node, arena);
    row->origins = origins;
    row->n_origins = node->n_origins;
    return row->op_type && row->name && row->post_op && row->kernel && row->attributes &&
           tensor_rows(b, node, ends, arena, row);
}

static bool folded_row(const sn_binding *b, uint32_t id, sn_arena *arena, sn_prof_step *row)
{
    sn_prof_origin *origin = SN_NEW(arena, sn_prof_origin);
    if (!origin || !origin_row(b->program->graph, id, arena, origin))
        return false;
    *row = (sn_prof_step){.table = b->id,
                          .index = SN_TRACE_NONE,
                          .threads = (uint32_t)b->threads,
                          .op_type = origin->op_type,
                          .name = origin->name,
                          .post_op = "",
                          .origins = origin,
                          .n_origins = 1,
                          .kernel = "",
                          .attributes = "",
                          .folded = true};
    return true;
}

sonde_status sn_records_add_steps(sn_profile *p, const sn_binding *b, const sn_clock *clock,
                                  bool brief, sonde_error *err)
{
    const sn_graph *g = b->program->graph;
    size_t n = (size_t)b->n_steps + g->folded.n;
    for (uint32_t i = 0; i < b->n_skipped; i++)
        n += b->skipped[i]->n_origins;
    ports ends = {.brief = brief};
    if (!find_ports(b, p->alloc, &ends))
        return sn_fail_memory(err, b->n_slots * sizeof *ends.in);
    bool fine = sn_vec_reserve(&p->steps, p->alloc, n);
    for (uint32_t i = 0; fine && i < b->n_steps; i++)
        fine = step_row(b, i, &ends, clock, &p->arena, &p->steps.data[p->steps.n++]);
    sn_free(p->alloc, ends.in, 2 * ends.n * sizeof *ends.in);
    for (size_t i = 0; fine && i < g->folded.n; i++)
        fine = folded_row(b, g->folded.data[i], &p->arena, &p->steps.data[p->steps.n++]);
    for (uint32_t i = 0; fine && i < b->n_skipped; i++)
        for (uint32_t k = 0; fine && k < b->skipped[i]->n_origins; k++)
            fine =
                folded_row(b, b->skipped[i]->origins[k], &p->arena, &p->steps.data[p->steps.n++]);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(sn_prof_step));
}
