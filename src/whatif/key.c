/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies a model for the cache: operators, attributes, how they are connected, shapes and
 * types of weights, and a sample of their bytes, because zeros in them may change how they run. */
#include "whatif/whatif.h"

enum { SAMPLE = 4096 };

static uint64_t hash_text(const char *text, uint64_t h)
{
    return sn_hash(text ? text : "", text ? strlen(text) + 1 : 1, h);
}

static uint64_t hash_type(const sn_tensor *t, uint64_t h)
{
    h = sn_hash(&t->dtype, sizeof t->dtype, h);
    return sn_hash(t->dims, (size_t)t->rank * sizeof *t->dims, h);
}

static uint64_t hash_tensor(const sn_tensor *t, uint64_t h)
{
    const size_t n = t->bytes < SAMPLE ? t->bytes : SAMPLE;
    h = hash_type(t, h);
    if (!t->data || t->dtype == SONDE_DTYPE_STRING)
        return h;
    h = sn_hash(t->data, n, h);
    return sn_hash((const char *)t->data + (t->bytes - n) / 2, n, h);
}

static uint64_t hash_graph(const sn_graph *g, sn_arena *arena, uint64_t h)
{
    for (const sn_node *n = g->first; n; n = n->next) {
        h = hash_text(n->domain, h);
        h = hash_text(n->op_type, h);
        h = sn_hash(&n->opset, sizeof n->opset, h);
        h = hash_text(sn_node_attributes_text(n, arena), h);
        sn_arena_reset(arena);
        for (uint32_t i = 0; i < n->n_in; i++) {
            const sn_value *v = n->in[i].value;
            const uint32_t id = v ? v->id : UINT32_MAX;
            h = sn_hash(&id, sizeof id, h);
            if (v && v->fact.data)
                h = hash_tensor(v->fact.data, h);
        }
        for (uint32_t i = 0; i < n->n_attrs; i++)
            if (n->attrs[i].kind == SN_ATTR_TENSOR && n->attrs[i].tensor)
                h = hash_tensor(n->attrs[i].tensor, h);
        for (uint32_t k = 0; sn_node_body(n, k); k++)
            h = hash_graph(sn_node_body(n, k), arena, h);
    }
    return h;
}

uint64_t sn_model_fingerprint(const sn_model *m, sn_arena *arena)
{
    return hash_graph(m->graph, arena, m->origins.list.n);
}

/* Integers may be indices and sizes, which decide what is computed; of floats the shape does. */
static bool is_float(sonde_dtype t)
{
    return t == SONDE_DTYPE_F32 || t == SONDE_DTYPE_F64 || t == SONDE_DTYPE_F16 ||
           t == SONDE_DTYPE_BF16;
}

uint64_t sn_inputs_fingerprint(const char *const *names, sonde_value *const *values, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        const sn_slot *slot = &values[i]->slot;
        h = hash_text(names ? names[i] : NULL, h);
        if (slot->kind == SN_KIND_TENSOR)
            h = is_float(slot->t.dtype) ? hash_type(&slot->t, h) : hash_tensor(&slot->t, h);
    }
    return h;
}
