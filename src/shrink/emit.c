/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers of quantised models have in common: a clone of the prepared graph in a model of
 * its own, and nodes and constants added to it. Constants that stay as they are remain those of the
 * prepared model, which lives as long. */
#include <math.h>

#include "base/codec.h"
#include "shrink/quantizer.h"

static sonde_status copy_facts(sn_model *m, const sn_model *from, sonde_error *err)
{
    m->ir_version = from->ir_version;
    m->producer_name = from->producer_name;
    m->producer_version = from->producer_version;
    m->domain = from->domain;
    m->doc = from->doc;
    m->graph_name = from->graph_name;
    m->graph_doc = from->graph_doc;
    m->model_version = from->model_version;
    for (size_t i = 0; i < from->opsets.n; i++)
        if (!sn_vec_push(&m->opsets, m->ctx->alloc, from->opsets.data[i]))
            return sn_fail_memory(err, sizeof(sn_opset));
    for (size_t i = 0; i < from->metadata.n; i++)
        if (!sn_vec_push(&m->metadata, m->ctx->alloc, from->metadata.data[i]))
            return sn_fail_memory(err, sizeof(sn_meta));
    return SONDE_OK;
}

sonde_status sn_q_copy_model(sn_model *m, const sn_model *from, sonde_error *err)
{
    sn_graph *empty = m->graph, *copy = NULL;
    SN_TRY(sn_graph_clone(from->graph, &m->arena, &copy, err));
    m->graph = copy;
    sn_graph_free(empty);
    return copy_facts(m, from, err);
}

/* All graphs of the clone, in the order of q->scopes, and the names of their nodes. */
static sonde_status list_graphs(sn_q_writer *w, sn_graph *g)
{
    if (!sn_vec_push(&w->graphs, &w->q->context->alloc, g))
        return sn_fail_memory(w->err, sizeof g);
    for (sn_node *n = g->first; n; n = n->next) {
        sn_graph *body;
        if (n->name[0] && !sn_map_put(&w->names, n->name, n, NULL))
            return sn_fail_memory(w->err, sizeof(sn_map_entry));
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(list_graphs(w, body)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}

static void free_tables(sn_q_writer *w)
{
    sn_map_free(&w->names);
    sn_map_free(&w->made);
    sn_vec_free(&w->graphs, &w->q->context->alloc);
    sn_arena_free(&w->scratch);
}

sonde_status sn_q_writer_open(sn_q_writer *w, sn_quantizer *q)
{
    *w = (sn_q_writer){.q = q, .err = q->err};
    SN_TRY(sn_model_new(&w->m, &q->context->core, q->err));
    sonde_status st = sn_q_copy_model(w->m, q->prepared->core, q->err);
    w->g = w->m->graph;
    sn_map_init(&w->names, &q->context->alloc);
    sn_map_init(&w->made, &q->context->alloc);
    sn_arena_init(&w->scratch, &q->context->alloc);
    if (st == SONDE_OK)
        st = list_graphs(w, w->g);
    if (st != SONDE_OK) {
        free_tables(w);
        sn_model_unref(w->m);
    }
    return st;
}

/* What nothing reads any more goes, such as weights that are integers now. */
static void drop_values(sn_graph *g)
{
    sn_graph_drop_values(g);
    for (const sn_node *n = g->first; n; n = n->next) {
        sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            drop_values(body); /* depth is bounded by sn_graph_new */
    }
}

sonde_status sn_q_writer_close(sn_q_writer *w, sonde_status st, sonde_model **made)
{
    sn_graph *g = w->m->graph;
    free_tables(w);
    if (st == SONDE_OK) {
        drop_values(g);
        st = sn_q_share_constants(g, w->err);
    }
    if (st != SONDE_OK) {
        sn_model_unref(w->m);
        return st;
    }
    return sn_api_model(w->q->context, w->m, w->q->source->name, made, w->err);
}

sonde_status sn_q_write_products(sn_q_writer *w, sn_q_write_fn write)
{
    const sn_quantizer *q = w->q;
    size_t done = 0, total = 0;
    for (size_t i = 0; i < q->scopes.n; i++)
        for (const sn_node *n = q->scopes.data[i].g->first; n; n = n->next)
            total += q->scopes.data[i].nodes[n->id].role == SN_Q_PRODUCT;
    for (size_t i = 0; i < q->scopes.n; i++) {
        const sn_q_scope *s = &q->scopes.data[i];
        w->g = w->graphs.data[i];
        w->scope = s;
        sn_graph_each (n, w->g) {
            if (n->id >= s->g->n_nodes || s->nodes[n->id].role != SN_Q_PRODUCT)
                continue;
            SN_TRY(write(w, n, &s->nodes[n->id]));
            sn_arena_reset(&w->scratch);
            SN_TRY(sn_q_progress(q, "writing", (double)++done / (double)total));
        }
    }
    w->g = w->m->graph;
    return SONDE_OK;
}

sonde_status sn_q_weight_numbers(sn_q_writer *w, const sn_value *v, const float **numbers)
{
    const sn_tensor *t = v->fact.data;
    const int64_t n = sn_tensor_count(t);
    if (t->dtype == SONDE_DTYPE_F32) {
        *numbers = t->data;
    } else {
        float *own = SN_NEW_N(&w->scratch, float, n + 1);
        if (!own)
            return sn_fail_memory(w->err, (size_t)n * sizeof *own);
        for (int64_t i = 0; i < n; i++)
            own[i] = sn_f16_to_f32(((const uint16_t *)t->data)[i]);
        *numbers = own;
    }
    for (int64_t i = 0; i < n; i++)
        if (!isfinite((*numbers)[i]))
            return sn_fail(w->err, SONDE_INVALID_MODEL,
                           "weight '%.300s' has a number that is not finite; leave its node in "
                           "float",
                           v->name);
    return SONDE_OK;
}

sonde_status sn_q_constant(sn_model *m, sn_graph *g, const char *name, const char *suffix,
                           sn_dtype dtype, const int64_t *dims, int rank, sn_value **v, void **data,
                           sonde_error *err)
{
    size_t bytes;
    if (!sn_tensor_bytes(dtype, dims, rank, &bytes))
        return sn_fail(err, SONDE_LIMIT, "constant '%.200s' would be too large", name);
    sn_buffer *buffer = sn_buffer_new(m->ctx->alloc, bytes);
    if (!buffer || !sn_vec_push(&m->buffers.list, m->ctx->alloc, buffer)) {
        sn_buffer_unref(buffer);
        return sn_fail_memory(err, bytes);
    }
    sn_tensor *t = SN_NEW(&m->arena, sn_tensor);
    const char *full = sn_arena_printf(&m->arena, "%s%s", name, suffix);
    if (!t || !full)
        return sn_fail_memory(err, sizeof *t);
    *t = (sn_tensor){.dtype = dtype, .rank = rank, .data = buffer->data, .bytes = bytes};
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    *data = buffer->data;
    SN_TRY(sn_graph_add_constant(g, full, t, v, err));
    (*v)->is_initializer = true;
    return SONDE_OK;
}

sonde_status sn_q_node_name(sn_q_writer *w, const char *base, const char *suffix, const char **name)
{
    const char *made = sn_arena_printf(&w->m->arena, "%s%s", base, suffix);
    for (unsigned k = 2; made && sn_map_get(&w->names, made); k++)
        made = sn_arena_printf(&w->m->arena, "%s%s_%u", base, suffix, k);
    if (!made || !sn_map_put(&w->names, made, w, NULL))
        return sn_fail_memory(w->err, 64);
    *name = made;
    return SONDE_OK;
}

sonde_status sn_q_add(sn_q_writer *w, sn_node *before, const char *domain, const char *op_type,
                      const char *base, const char *suffix, sn_value *const *in, uint32_t n_in,
                      sn_node **node, sn_value **out)
{
    sn_node *n = NULL;
    const char *name = NULL;
    SN_TRY(sn_q_node_name(w, base, suffix, &name));
    const char *result = sn_arena_printf(&w->m->arena, "%s_Output", name);
    if (!result)
        return sn_fail_memory(w->err, 64);
    SN_TRY(sn_graph_add_node(w->g, before, domain, op_type, name, n_in, 1, &n, w->err));
    n->opset = domain[0] ? 1 : (int32_t)sn_model_opset(w->m, "");
    n->n_formal_in = n_in;
    for (uint32_t i = 0; i < n_in; i++)
        sn_node_set_input(n, i, in[i]);
    SN_TRY(sn_graph_add_value(w->g, result, out, w->err));
    sn_node_set_output(n, 0, *out);
    if (node)
        *node = n;
    return SONDE_OK;
}

sonde_status sn_q_set_int(sn_q_writer *w, sn_node *n, const char *name, int64_t i)
{
    const sn_attr a = {.name = name, .kind = SN_ATTR_INT, .n = 1, .i = i};
    return sn_node_set_attr(w->g, n, &a, w->err);
}

sonde_status sn_q_import(sn_q_writer *w, const char *domain, int64_t version)
{
    if (sn_model_opset(w->m, domain) >= 0)
        return SONDE_OK;
    const sn_opset own = {.domain = domain, .version = version};
    return sn_vec_push(&w->m->opsets, w->m->ctx->alloc, own) ? SONDE_OK
                                                             : sn_fail_memory(w->err, sizeof own);
}

sonde_status sn_q_progress(const sn_quantizer *q, const char *what, double done)
{
    if (q->o.progress && q->o.progress(q->o.progress_user, what, done))
        return sn_fail(q->err, SONDE_CANCELLED, "quantising was cancelled");
    return SONDE_OK;
}
