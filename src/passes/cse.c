/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpressions: a node that does what an earlier one does, to the same values, is not
 * needed. Exporters write the same Shape, Unsqueeze and mask again for every layer. Each node is
 * spelled as bytes (operator, attributes, inputs, and how its results are stored); equal bytes mean
 * an equal node. Small constants are spelled by their elements, so that copies of one count as the
 * same. */
#include <string.h>

#include "passes/rewrite.h"

#define MAX_CONSTANT_BYTES 64

typedef struct spelling {
    SN_VEC(uint8_t) bytes;
    sn_allocator *alloc;
    bool failed;
} spelling;

static void put(spelling *s, const void *data, size_t n)
{
    s->failed = s->failed || !sn_vec_append(&s->bytes, s->alloc, data, n);
}

static void put_number(spelling *s, int64_t v)
{
    put(s, &v, sizeof v);
}

static void put_text(spelling *s, const char *text)
{
    put(s, text, strlen(text) + 1);
}

static bool put_constant(spelling *s, const sn_tensor *t)
{
    if (t->bytes > MAX_CONSTANT_BYTES || !sn_tensor_is_plain(t) || !sn_tensor_is_readable(t) ||
        t->dtype == SONDE_DTYPE_STRING)
        return false;
    put_text(s, "c");
    put_number(s, (int64_t)t->dtype);
    put_number(s, t->rank);
    put(s, t->dims, (size_t)t->rank * sizeof *t->dims);
    put(s, t->data, t->bytes);
    return true;
}

static void put_input(spelling *s, const sn_value *v)
{
    if (!v) {
        put_text(s, "-");
    } else if (!sn_value_is_const(v) || !put_constant(s, v->fact.data)) {
        put_text(s, "v");
        put_number(s, v->id);
    }
}

/* A result in another form is another result. Native ones are not spelled, so that a node can stand
 * for one that is asked for fewer of its results. */
static void put_form(spelling *s, const sn_value *v, uint32_t port)
{
    if (!v || sn_form_is_native(v->fact.form))
        return;
    const sn_form f = v->fact.form;
    const uint8_t parts[] = {f.dtype, f.space, f.layout.kind, f.layout.size};
    put_text(s, "f");
    put_number(s, port);
    put(s, parts, sizeof parts);
}

/* False: an attribute that is not compared (graphs, types, large tensors). */
static bool put_attr(spelling *s, const sn_attr *a)
{
    put_text(s, a->name);
    put_number(s, a->kind);
    put_number(s, (int64_t)a->n);
    switch (a->kind) {
    case SN_ATTR_FLOAT:
        put(s, &a->f, sizeof a->f);
        return true;
    case SN_ATTR_INT:
        put_number(s, a->i);
        return true;
    case SN_ATTR_STRING:
        put_number(s, (int64_t)a->s.size);
        put(s, a->s.data, a->s.size);
        return true;
    case SN_ATTR_FLOATS:
        put(s, a->floats, a->n * sizeof *a->floats);
        return true;
    case SN_ATTR_INTS:
        put(s, a->ints, a->n * sizeof *a->ints);
        return true;
    case SN_ATTR_TENSOR:
        return put_constant(s, a->tensor);
    default:
        return false;
    }
}

static bool spell(spelling *s, const sn_node *n)
{
    s->bytes.n = 0;
    put_text(s, n->domain);
    put_text(s, n->op_type);
    put_number(s, n->opset);
    put_number(s, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        put_input(s, n->in[i].value);
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (!put_attr(s, &n->attrs[i]))
            return false;
    for (uint32_t o = 0; o < n->n_out; o++)
        put_form(s, n->out[o], o);
    return true;
}

static bool is_candidate(const sn_node *n)
{
    if (!n->op || (n->op->flags & (SN_OP_RANDOM | SN_OP_CONTROL | SN_OP_NONTENSOR)))
        return false;
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o] && n->out[o]->n_outputs)
            return false;
    return n->n_out > 0;
}

/* Everything wanted of `copy` is made by `first`. */
static bool can_stand_for(const sn_node *first, const sn_node *copy)
{
    for (uint32_t o = 0; o < copy->n_out; o++)
        if (copy->out[o] && (o >= first->n_out || !first->out[o]))
            return false;
    return true;
}

static sonde_status visit(sn_graph *g, sn_pass_env *env, sn_node *n, spelling *s, sn_map *seen,
                          sn_arena *scratch, uint32_t *changes)
{
    if (!is_candidate(n) || !spell(s, n))
        return SONDE_OK;
    if (s->failed)
        return sn_fail_memory(env->err, s->bytes.n);
    sn_node *first = sn_map_get_n(seen, s->bytes.data, s->bytes.n);
    if (!first) {
        void *key = sn_arena_alloc(scratch, s->bytes.n, 1);
        if (!key)
            return sn_fail_memory(env->err, s->bytes.n);
        memcpy(key, s->bytes.data, s->bytes.n);
        return sn_map_put_n(seen, key, s->bytes.n, n, NULL) ? SONDE_OK
                                                            : sn_fail_memory(env->err, s->bytes.n);
    }
    if (!can_stand_for(first, n))
        return SONDE_OK;
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o])
            sn_value_replace(g, n->out[o], first->out[o]);
    (*changes)++;
    return sn_graph_remove(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    spelling s = {.alloc = g->alloc};
    sn_map seen;
    sn_arena scratch;
    sn_map_init(&seen, g->alloc);
    sn_arena_init(&scratch, g->alloc);
    sonde_status st = SONDE_OK;
    sn_graph_each (n, g) {
        if (st == SONDE_OK)
            st = visit(g, env, n, &s, &seen, &scratch, changes);
    }
    sn_arena_free(&scratch);
    sn_map_free(&seen);
    sn_vec_free(&s.bytes, g->alloc);
    return st;
}

const sn_pass sn_pass_cse = {
    .name = "common-subexpressions",
    .summary = "eliminates common subexpressions",
    .run = run,
    .bodies = true,
};
