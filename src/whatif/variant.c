/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a scenario: a copy of the graph whose weights have another form. Constants that stay
 * are shared with the source, so a variant costs memory only for what it changes. Its origins are
 * those of the source, called by their numbers: so a profile of the variant says exactly which
 * nodes of the source a step stands for, named or not. Weights of 8 and 4 bits are where `sonde
 * quantize` would put them, because the same code does it. */
#include "shrink/form.h"
#include "whatif/whatif.h"

/* ------------------------------------------------------------------ origins */
/* Nodes without an origin, which were added, get one each: in the reports they are not the
 * source's. */
static sonde_status set_origins(sn_model *m, sn_graph *g, sonde_error *err)
{
    g->origins = &m->origins;
    for (sn_node *n = g->first; n; n = n->next) {
        for (uint32_t k = 0; sn_node_body(n, k); k++)
            SN_TRY(set_origins(m, sn_node_body(n, k), err));
        if (!n->n_origins)
            SN_TRY(sn_graph_add_origin(g, n, NULL, err));
    }
    return SONDE_OK;
}

static sonde_status copy_origins(sn_model *m, const sn_model *from, sonde_error *err)
{
    const size_t n = from->origins.list.n;
    return sn_vec_append(&m->origins.list, m->ctx->alloc, from->origins.list.data, n)
               ? SONDE_OK
               : sn_fail_memory(err, n * sizeof(sn_origin));
}

static sonde_status number_origins(sn_model *m, sonde_error *err)
{
    for (size_t i = 0; i < m->origins.list.n; i++) {
        m->origins.list.data[i].name = sn_arena_printf(&m->arena, "%zu", i);
        if (!m->origins.list.data[i].name)
            return sn_fail_memory(err, 16);
    }
    return SONDE_OK;
}

/* ------------------------------------------------------------------ zeros */
static sonde_status make_sparse(const sn_variant *v, sn_graph *g)
{
    for (sn_node *n = g->first; n; n = n->next)
        for (uint32_t k = 0; sn_node_body(n, k); k++)
            SN_TRY(make_sparse(v, sn_node_body(n, k)));
    return v->forms ? sn_variant_sparse(v, g) : SONDE_OK;
}

static sonde_status fill(const sn_variant *v)
{
    sn_model *m = v->m;
    const sn_model *from = v->source;
    sn_allocator *alloc = m->ctx->alloc;
    if (!sn_vec_append(&m->opsets, alloc, from->opsets.data, from->opsets.n) ||
        !sn_vec_append(&m->metadata, alloc, from->metadata.data, from->metadata.n))
        return sn_fail_memory(v->err, sizeof(sn_opset));
    m->ir_version = from->ir_version;
    m->graph_name = from->graph_name;
    SN_TRY(copy_origins(m, from, v->err));
    SN_TRY(number_origins(m, v->err));
    sn_graph_free(m->graph);
    m->graph = NULL;
    SN_TRY(sn_graph_clone(from->graph, &m->arena, &m->graph, v->err));
    SN_TRY(set_origins(m, m->graph, v->err));
    return make_sparse(v, m->graph);
}

static sonde_status make_base(sn_variant *v, sonde_model **model)
{
    SN_TRY(sn_model_new(&v->m, &v->context->core, v->err));
    const sonde_status st = fill(v);
    if (st != SONDE_OK) {
        sn_model_unref(v->m);
        return st;
    }
    return sn_api_model(v->context, v->m, "what-if", model, v->err);
}

/* ------------------------------------------------------------------ fewer bits */
static const struct {
    sn_bits bits;
    sonde_quantize_kind kind;
} kinds[] = {{SN_BITS_INT4, SONDE_QUANTIZE_WEIGHTS},
             {SN_BITS_INT8_DYNAMIC, SONDE_QUANTIZE_DYNAMIC},
             {SN_BITS_INT8, SONDE_QUANTIZE_STATIC}};

/* New constants lie outside of the model, as those of a mapped file do: packed ones do not count as
 * memory in use. */
static sonde_status take_buffers(const sn_variant *v, sn_model *m)
{
    sn_buffers *own = &v->parts->buffers;
    if (!sn_vec_append(&own->list, &v->context->alloc, m->buffers.list.data, m->buffers.list.n))
        return sn_fail_memory(v->err, m->buffers.list.n * sizeof(void *));
    m->buffers.list.n = 0;
    return SONDE_OK;
}

static sonde_status keep(const sn_variant *v, sonde_model *model)
{
    if (sn_vec_push(&v->parts->models, &v->context->alloc, model))
        return SONDE_OK;
    sonde_model_release(model);
    return sn_fail_memory(v->err, sizeof model);
}

/* Takes the place of *model, which is kept. */
static sonde_status replace(const sn_variant *v, sonde_model *prepared, sonde_model *made,
                            sonde_model **model)
{
    const sn_model *from = (*model)->core;
    sonde_model *old = *model;
    *model = made;
    sonde_status st = keep(v, old);
    const sonde_status also = keep(v, prepared);
    st = st ? st : also;
    if (st == SONDE_OK)
        st = copy_origins(made->core, from, v->err);
    if (st == SONDE_OK)
        st = set_origins(made->core, made->core->graph, v->err);
    return st ? st : take_buffers(v, made->core);
}

/* Those with a form of `bits` among the products of *model. */
static sonde_status quantize(const sn_variant *v, sn_bits bits, sonde_quantize_kind kind,
                             sonde_model **model)
{
    sn_allocator *alloc = &v->context->alloc;
    const size_t known = v->source->origins.list.n, n = (*model)->core->origins.list.n + 1;
    bool *wanted = sn_alloc_zero(alloc, n), *changed = sn_alloc_zero(alloc, n), any = false;
    sonde_model *prepared = NULL, *made = NULL;
    sonde_status st = wanted && changed ? SONDE_OK : sn_fail_memory(v->err, n);
    for (size_t i = 0; i < known && st == SONDE_OK; i++)
        any |= wanted[i] = v->forms[i].form == bits;
    const sn_form_question f = {*model, kind, wanted, changed};
    if (any)
        st = sn_quantized_form(&f, &prepared, &made, v->err);
    if (made)
        st = replace(v, prepared, made, model);
    bool found = false;
    for (size_t i = 0; i < known && changed; i++) {
        found |= changed[i];
        v->changed[i] |= changed[i];
    }
    v->parts->idle |= any && !found;
    sn_free(alloc, wanted, n);
    sn_free(alloc, changed, n);
    return st;
}

static sonde_status make(sn_variant *v, sonde_model **model)
{
    SN_TRY(make_base(v, model));
    bool pruned = false, found = false;
    for (size_t i = 0; v->forms && i < v->source->origins.list.n; i++) {
        pruned |= v->forms[i].sparsity != 0;
        found |= v->changed[i];
    }
    v->parts->idle = pruned && !found;
    sonde_status st = SONDE_OK;
    for (size_t i = 0; v->forms && i < sizeof kinds / sizeof *kinds && st == SONDE_OK; i++)
        st = quantize(v, kinds[i].bits, kinds[i].kind, model);
    if (st != SONDE_OK) {
        sonde_model_release(*model);
        *model = NULL;
    }
    return st;
}

sonde_status sn_variant_make(const sn_model *source, const sn_node_form *forms,
                             sonde_context *context, sn_variant_parts *parts, int64_t *changed,
                             sonde_model **model, sonde_error *err)
{
    const size_t n = source->origins.list.n;
    sn_variant v = {
        .source = source, .forms = forms, .context = context, .parts = parts, .err = err};
    v.changed = sn_alloc_zero(&context->alloc, n + 1);
    *model = NULL;
    if (!v.changed)
        return sn_fail_memory(err, n);
    const sonde_status st = make(&v, model);
    *changed = 0;
    for (size_t i = 0; i < n; i++)
        *changed += v.changed[i];
    sn_free(&context->alloc, v.changed, n + 1);
    return st;
}

void sn_variant_free_parts(sn_variant_parts *parts, sonde_context *context)
{
    while (parts->models.n)
        sonde_model_release(parts->models.data[--parts->models.n]);
    sn_vec_free(&parts->models, &context->alloc);
    for (size_t i = 0; i < parts->buffers.list.n; i++)
        sn_buffer_unref(parts->buffers.list.data[i]);
    sn_vec_free(&parts->buffers.list, &context->alloc);
}
