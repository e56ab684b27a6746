/* SPDX-License-Identifier: Apache-2.0 */
/* Models: their life, and the operator sets they import. */
#include "graph/model.h"

#include <string.h>

#include "graph/finish.h"

sonde_status sn_model_new(sn_model **out, sn_context *ctx, sonde_error *err)
{
    *out = NULL;
    sn_model *m = sn_alloc_zero(ctx->alloc, sizeof *m);
    if (!m)
        return sn_fail_memory(err, sizeof *m);
    atomic_init(&m->refs, 1);
    sn_fork_lock_init(&m->lock);
    m->ctx = ctx;
    m->producer_name = m->producer_version = m->domain = m->doc = m->graph_name = m->graph_doc = "";
    sn_arena_init(&m->arena, ctx->alloc);
    sonde_status st = sn_graph_new(&m->graph, &m->arena, ctx->alloc, "", NULL, err);
    if (st != SONDE_OK) {
        sn_model_unref(m);
        return st;
    }
    m->graph->origins = &m->origins;
    *out = m;
    return SONDE_OK;
}

sn_model *sn_model_ref(sn_model *m)
{
    if (m)
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void sn_model_unref(sn_model *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    sn_allocator *alloc = m->ctx->alloc;
    sn_graph_free(m->graph);
    for (size_t i = 0; i < m->functions.n; i++)
        sn_graph_free(m->functions.data[i].body);
    for (size_t i = 0; i < m->buffers.list.n; i++)
        sn_buffer_unref(m->buffers.list.data[i]);
    for (size_t i = 0; i < m->files.n; i++)
        sn_file_close(m->files.data[i]);
    sn_vec_free(&m->buffers.list, alloc);
    sn_vec_free(&m->files, alloc);
    sn_vec_free(&m->functions, alloc);
    sn_vec_free(&m->metadata, alloc);
    sn_vec_free(&m->opsets, alloc);
    sn_vec_free(&m->origins.list, alloc);
    sn_arena_free(&m->arena);
    sn_fork_lock_destroy(&m->lock);
    sn_free(alloc, m, sizeof *m);
}

static int64_t find_opset(const sn_opset *opsets, size_t n, const char *domain)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(opsets[i].domain, domain) == 0)
            return opsets[i].version;
    return -1;
}

void sn_model_release(const sn_model *m, const sn_tensor *t)
{
    for (size_t i = 0; t->parts && i < t->parts->n; i++)
        sn_model_release(m, t->parts->part[i]);
    for (size_t i = 0; i < m->files.n; i++) {
        const sn_file *f = m->files.data[i];
        const uint8_t *p = t->data;
        if (f->mapped && p >= f->data && p < f->data + f->bytes)
            sn_file_release(f, p, t->bytes);
    }
}

int64_t sn_model_opset(const sn_model *m, const char *domain)
{
    return find_opset(m->opsets.data, m->opsets.n, domain);
}

int32_t sn_opset_of(const sn_model *m, const sn_opset *opsets, size_t n, const char *domain)
{
    int64_t version = find_opset(opsets, n, domain);
    if (version < 0)
        version = sn_model_opset(m, domain);
    if (version < 0 && strcmp(domain, "sonde") == 0)
        version = 1;
    return version > INT32_MAX ? INT32_MAX : (int32_t)version;
}

void sn_graph_set_opsets(const sn_model *m, sn_graph *g, const sn_opset *opsets, size_t n)
{
    for (sn_node *node = g->first; node; node = node->next) {
        sn_graph *body;
        if (!node->opset) /* a finished graph keeps the versions of the functions it came from */
            node->opset = sn_opset_of(m, opsets, n, node->domain);
        for (uint32_t k = 0; (body = sn_node_body(node, k)); k++)
            sn_graph_set_opsets(m, body, opsets, n);
    }
}
