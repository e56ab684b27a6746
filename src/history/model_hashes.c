/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies a model over months. So the hashes take nothing that another version of sonde may
 * do in another way, such as names given to what is inlined, and nothing of how a file is laid out:
 * each operator is hashed by itself, with where its inputs come from, and sums do not know an
 * order. A test holds the hash of a known model. */

#include "history/history.h"

enum { PART = 1 << 20 }; /* bytes that one thread hashes at a time */

typedef struct hashing {
    sn_pool *pool;
    const sn_model *model;
    sn_allocator *alloc;
    uint64_t content, form;
    bool no_memory;
} hashing;

static uint64_t mix(uint64_t h, uint64_t v)
{
    return sn_hash(&v, sizeof v, h);
}

static uint64_t hash_text(const char *s, uint64_t h)
{
    return sn_hash(s ? s : "", s ? strlen(s) : 0, h);
}

/* ------------------------------------------------------------------ weights */

typedef struct parts {
    const uint8_t *data;
    size_t bytes;
    uint64_t *sums;
} parts;

static void hash_part(void *arg, size_t i, int worker)
{
    (void)worker;
    const parts *p = arg;
    const size_t left = p->bytes - i * PART;
    p->sums[i] = sn_hash(p->data + i * PART, left < PART ? left : PART, i + 1);
}

static uint64_t hash_strings(const sn_tensor *t, uint64_t h)
{
    const sonde_string *s = t->data;
    for (int64_t i = 0; i < sn_tensor_count(t); i++)
        h = sn_hash(s[i].data ? s[i].data : "", s[i].data ? s[i].size : 0, mix(h, s[i].size));
    return h;
}

static uint64_t hash_bytes(hashing *s, const sn_tensor *t, uint64_t h)
{
    const size_t n = t->bytes / PART + (t->bytes % PART != 0);
    parts p = {t->data, t->bytes, n > 1 ? sn_alloc(s->alloc, n * sizeof *p.sums) : NULL};
    if (n <= 1)
        return sn_hash(t->data, t->bytes, h);
    if (!p.sums) {
        s->no_memory = true;
        return h;
    }
    sn_pool_run(s->pool, n, hash_part, &p);
    h = sn_hash(p.sums, n * sizeof *p.sums, h);
    sn_free(s->alloc, p.sums, n * sizeof *p.sums);
    sn_model_release(s->model, t); /* a large model need not stay in memory for this */
    return h;
}

static uint64_t hash_shape(const sn_tensor *t, uint64_t h)
{
    h = mix(h, (uint64_t)t->dtype);
    for (int32_t i = 0; i < t->rank; i++)
        h = mix(h, (uint64_t)t->dims[i]);
    return mix(h, (uint64_t)t->rank);
}

static void hash_tensor(hashing *s, const sn_tensor *t, uint64_t *content, uint64_t *form)
{
    *form = hash_shape(t, *form);
    *content = hash_shape(t, *content);
    if (t->data)
        *content =
            t->dtype == SONDE_DTYPE_STRING ? hash_strings(t, *content) : hash_bytes(s, t, *content);
}

/* ------------------------------------------------------------------ operators */

static void hash_graph(hashing *s, const sn_graph *g, uint64_t depth);

/* Of attributes in the order of the file the sum is taken, too: they have names. */
static uint64_t hash_attribute(hashing *s, const sn_attr *a, uint64_t *form)
{
    uint64_t h = mix(hash_text(a->name, 7), (uint64_t)a->kind), shapes = h;
    switch (a->kind) {
    case SN_ATTR_FLOAT:
        return sn_hash(&a->f, sizeof a->f, h);
    case SN_ATTR_INT:
        return mix(h, (uint64_t)a->i);
    case SN_ATTR_STRING:
        return sn_hash(a->s.data, a->s.size, h);
    case SN_ATTR_FLOATS:
        return sn_hash(a->floats, a->n * sizeof *a->floats, h);
    case SN_ATTR_INTS:
        return sn_hash(a->ints, a->n * sizeof *a->ints, h);
    case SN_ATTR_STRINGS:
        for (size_t i = 0; i < a->n; i++)
            h = sn_hash(a->strings[i].data, a->strings[i].size, mix(h, a->strings[i].size));
        return h;
    case SN_ATTR_TENSOR:
    case SN_ATTR_SPARSE_TENSOR:
        if (a->tensor)
            hash_tensor(s, a->tensor, &h, &shapes);
        *form += shapes;
        return h;
    default: /* graphs follow by themselves; types and lists of tensors are seldom */
        return h;
    }
}

/* Where an input comes from: a weight is part of the operator that reads it. */
static void hash_input(hashing *s, const sn_value *v, uint64_t *content, uint64_t *form)
{
    if (!v)
        *content = mix(*content, 1);
    else if (sn_value_is_const(v))
        hash_tensor(s, v->fact.data, content, form);
    else if (v->producer)
        *content = mix(hash_text(v->producer->op_type, *content), v->output_index);
    else
        *content = mix(*content, 2);
}

static void hash_node(hashing *s, const sn_node *n, uint64_t depth)
{
    uint64_t form = hash_text(n->op_type, hash_text(n->domain, depth + 11)), attributes = 0;
    uint64_t content = form, shapes = 0;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        attributes += hash_attribute(s, &n->attrs[i], &shapes);
    content = mix(content, attributes);
    form = mix(form, shapes);
    for (uint32_t i = 0; i < n->n_formal_in; i++)
        hash_input(s, n->in[i].value, &content, &form);
    s->content += content;
    s->form += form;
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const sn_attr *a = &n->attrs[i];
        if (a->kind == SN_ATTR_GRAPH && a->graph)
            hash_graph(s, a->graph, depth + 1);
        for (size_t k = 0; a->kind == SN_ATTR_GRAPHS && k < a->n; k++)
            hash_graph(s, a->graphs[k], depth + 1);
    }
}

static void hash_graph(hashing *s, const sn_graph *g, uint64_t depth)
{
    for (const sn_node *n = g->first; n; n = n->next)
        hash_node(s, n, depth);
}

static void write_hash(uint64_t h, char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)mix(h, 0x736F6E6465),
             (unsigned long long)mix(h, 1));
}

sonde_status sonde_model_hashes_get(const sonde_model *model, sonde_model_hashes *hashes,
                                    sonde_error *err)
{
    SN_REQUIRE(model, err);
    SN_REQUIRE(hashes, err);
    sonde_context *c = model->context;
    hashing s = {.pool = c->core.pool, .model = model->core, .alloc = &c->alloc};
    hash_graph(&s, model->core->graph, 0);
    if (s.no_memory)
        return sn_fail_memory(err, 0);
    sonde_model_hashes own = {.struct_size = sizeof own};
    write_hash(s.content, own.content);
    write_hash(s.form, own.form);
    return sn_api_copy_out(hashes, &own, sizeof own, err);
}
