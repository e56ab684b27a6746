/* SPDX-License-Identifier: Apache-2.0 */
/* A model being edited. Constants are found by the address of their contents: that is what a weight
 * shared by several graphs has in common. */
#include "shrink/edit.h"

sonde_status sn_edit_open(sn_edit *e, sonde_model *model, sonde_error *err)
{
    sn_allocator *alloc = &model->context->alloc;
    memset(e, 0, sizeof *e);
    sn_arena_init(&e->arena, alloc);
    sn_map_init(&e->sparse, alloc);
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
    e->model = model;
    const sonde_status st = sn_graph_clone(model->core->graph, &e->arena, &e->graph, err);
    if (st != SONDE_OK)
        sn_edit_close(e);
    return st;
}

void sn_edit_close(sn_edit *e)
{
    if (!e->model)
        return;
    sn_allocator *alloc = &e->model->context->alloc;
    if (e->graph)
        sn_graph_free(e->graph);
    for (size_t k = 0; k < e->buffers.list.n; k++)
        sn_buffer_unref(e->buffers.list.data[k]);
    sn_vec_free(&e->buffers.list, alloc);
    sn_map_free(&e->sparse);
    sn_arena_free(&e->arena);
    sonde_model_release(e->model);
    memset(e, 0, sizeof *e);
}

sonde_status sn_edit_tensor(sn_edit *e, sn_dtype dtype, const int64_t *dims, int rank,
                            sn_tensor **out, sonde_error *err)
{
    sn_allocator *alloc = &e->model->context->alloc;
    sn_tensor *t = SN_NEW(&e->arena, sn_tensor);
    size_t bytes = 0;
    if (!t || !sn_tensor_bytes(dtype, dims, rank, &bytes))
        return sn_fail_memory(err, sizeof *t);
    sn_buffer *buffer = sn_buffer_new(alloc, bytes);
    if (!buffer || !sn_vec_push(&e->buffers.list, alloc, buffer)) {
        sn_buffer_unref(buffer);
        return sn_fail_memory(err, bytes);
    }
    *t = (sn_tensor){.dtype = dtype, .rank = rank, .data = buffer->data, .bytes = bytes};
    t->owner = buffer;
    if (rank)
        memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    *out = t;
    return SONDE_OK;
}

sonde_status sn_edit_copy(sn_edit *e, const sn_tensor *from, sn_tensor **out, sonde_error *err)
{
    SN_TRY(sn_edit_tensor(e, from->dtype, from->dims, from->rank, out, err));
    sn_tensor_read(from, 0, sn_tensor_count(from), (*out)->data);
    return SONDE_OK;
}

/* `by_data`: contents ► new contents. */
static sonde_status replace_in(sn_graph *g, const sn_map *by_data, sonde_error *err)
{
    for (size_t i = 0; i < g->values.n; i++) {
        sn_value *v = g->values.data[i];
        const sn_tensor *to = v->fact.data ? sn_map_get_address(by_data, v->fact.data) : NULL;
        if (to)
            SN_TRY(sn_value_set_constant(g, v, to, err));
    }
    for (sn_node *n = g->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->n_attrs; i++) {
            sn_attr *a = &n->attrs[i];
            const sn_tensor *to =
                a->kind == SN_ATTR_TENSOR ? sn_map_get_address(by_data, a->tensor) : NULL;
            if (to)
                a->tensor = to;
        }
        sn_graph *body;
        for (uint32_t k = 0; (body = sn_node_body(n, k)) != NULL; k++)
            SN_TRY(replace_in(body, by_data, err)); /* depth is bounded by sn_graph_new */
    }
    return SONDE_OK;
}

sonde_status sn_edit_replace(sn_edit *e, const sn_tensor *const *from, const sn_tensor *const *to,
                             size_t n, sonde_error *err)
{
    sn_map by_data;
    sonde_status st = SONDE_OK;
    sn_map_init(&by_data, &e->model->context->alloc);
    for (size_t i = 0; i < n && st == SONDE_OK; i++)
        if (!sn_map_put_address(&by_data, from[i], (void *)(uintptr_t)to[i], NULL))
            st = sn_fail_memory(err, sizeof(sn_map_entry));
    if (st == SONDE_OK)
        st = replace_in(e->graph, &by_data, err);
    sn_map_free(&by_data);
    return st;
}

sonde_status sn_edit_save_sparse(sn_edit *e, const sn_tensor *t, sonde_error *err)
{
    if (!sn_map_put_address(&e->sparse, t, e, NULL))
        return sn_fail_memory(err, sizeof(sn_map_entry));
    return SONDE_OK;
}

sonde_status sn_edit_save(const sn_edit *e, const char *path, const sonde_save_options *options,
                          sonde_error *err)
{
    return sn_api_save(e->model, e->graph, path, options, &e->sparse, NULL, err);
}
