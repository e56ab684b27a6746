/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a scenario: a copy of the graph whose weights have another form. Constants that stay
 * are shared with the source, so a variant costs memory only for what it changes. Its origins are
 * those of the source, called by their numbers: so a profile of the variant says exactly which
 * nodes of the source a step stands for, named or not. */
#include "whatif/whatif.h"

static sonde_status change(sn_variant *v, sn_graph *g)
{
    g->origins = &v->m->origins;
    for (sn_node *n = g->first; n; n = n->next)
        for (uint32_t k = 0; sn_node_body(n, k); k++)
            SN_TRY(change(v, sn_node_body(n, k)));
    if (!v->forms)
        return SONDE_OK;
    SN_TRY(sn_variant_sparse(v, g));
    SN_TRY(sn_variant_matmuls(v, g));
    return sn_variant_int8(v, g);
}

static sonde_status copy_origins(const sn_variant *v)
{
    sn_model *m = v->m;
    const size_t n = v->source->origins.list.n;
    if (!sn_vec_append(&m->origins.list, m->ctx->alloc, v->source->origins.list.data, n))
        return sn_fail_memory(v->err, n * sizeof(sn_origin));
    for (size_t i = 0; i < n; i++) {
        m->origins.list.data[i].name = sn_arena_printf(&m->arena, "%zu", i);
        if (!m->origins.list.data[i].name)
            return sn_fail_memory(v->err, 16);
    }
    return SONDE_OK;
}

static sonde_status fill(sn_variant *v)
{
    sn_model *m = v->m;
    const sn_model *from = v->source;
    sn_allocator *alloc = m->ctx->alloc;
    if (!sn_vec_append(&m->opsets, alloc, from->opsets.data, from->opsets.n) ||
        !sn_vec_append(&m->metadata, alloc, from->metadata.data, from->metadata.n))
        return sn_fail_memory(v->err, sizeof(sn_opset));
    m->ir_version = from->ir_version;
    m->graph_name = from->graph_name;
    SN_TRY(copy_origins(v));
    sn_graph_free(m->graph);
    m->graph = NULL;
    SN_TRY(sn_graph_clone(from->graph, &m->arena, &m->graph, v->err));
    return change(v, m->graph);
}

sonde_status sn_variant_make(const sn_model *source, const sn_node_form *forms,
                             sonde_context *context, sn_buffers *buffers, int64_t *changed,
                             sonde_model **model, sonde_error *err)
{
    sn_variant v = {.source = source, .forms = forms, .buffers = buffers, .err = err};
    SN_TRY(sn_model_new(&v.m, &context->core, err));
    const sonde_status st = fill(&v);
    if (st != SONDE_OK) {
        sn_model_unref(v.m);
        return st;
    }
    *changed = forms ? sn_variant_count(source, forms) : 0;
    return sn_api_model(context, v.m, "what-if", model, err);
}

void sn_variant_free_buffers(sn_buffers *buffers, sonde_context *context)
{
    for (size_t i = 0; i < buffers->list.n; i++)
        sn_buffer_unref(buffers->list.data[i]);
    sn_vec_free(&buffers->list, &context->alloc);
}
