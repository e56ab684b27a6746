/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that differ. What runs cannot tell apart is found here: a weight of the other branch of
 * an If, or one that these inputs multiply by zero. Constants of both models, those of bodies too,
 * are matched by name and compared as they are in the files; one that is of another type or shape
 * in B, because that is quantised or was made narrower, is no pair. */
#include "accuracy/pairs.h"

enum { CHUNK = 1 << 16 }; /* elements that are read at a time */

typedef struct search {
    sonde_accuracy *acc;
    sn_arena scratch;
    sn_map of_b; /* where it is, and its name ► constant */
    sn_map
        seen; /* contents of A that were compared: bodies share those of the graphs around them */
    void *x, *y; /* chunks */
    SN_VEC(sn_weight_pair) found;
    sonde_error *err;
} search;

typedef sonde_status (*visit_fn)(search *s, const char *key, const sn_value *v, const sn_tensor *t,
                                 const sn_node *reader);

/* ------------------------------------------------------------------ constants of a graph */
static const sn_tensor *constant_of(const sn_value *v)
{
    const sn_node *n = v->producer;
    if (!n)
        return v->fact.data;
    const sn_attr *a = sn_is_op(n, "Constant") ? sn_node_attr(n, "value") : NULL;
    return a && a->kind == SN_ATTR_TENSOR ? a->tensor : NULL;
}

static const char *name_of(const sn_node *n)
{
    return *n->name ? n->name : n->n_out && n->out[0] ? n->out[0]->name : "";
}

static sonde_status walk(search *s, const sn_graph *g, const char *where, visit_fn visit)
{
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        const sn_tensor *t = *v->name ? constant_of(v) : NULL;
        if (!t || !t->data || !sn_tensor_is_plain(t) || (!v->n_uses && !v->n_outputs))
            continue;
        const char *key = sn_arena_printf(&s->scratch, "%s\n%s", where, v->name);
        if (!key)
            return sn_fail_memory(s->err, strlen(v->name));
        SN_TRY(visit(s, key, v, t, v->uses ? v->uses->node : NULL));
    }
    for (const sn_node *n = g->first; n; n = n->next)
        for (uint32_t k = 0; sn_node_body(n, k); k++) {
            const char *inner = sn_arena_printf(&s->scratch, "%s\n%s %u", where, name_of(n), k);
            if (!inner)
                return sn_fail_memory(s->err, strlen(where));
            SN_TRY(walk(s, sn_node_body(n, k), inner, visit));
        }
    return SONDE_OK;
}

static sonde_status note(search *s, const char *key, const sn_value *v, const sn_tensor *t,
                         const sn_node *reader)
{
    (void)v;
    (void)reader;
    return sn_map_put(&s->of_b, key, (void *)(uintptr_t)t, NULL)
               ? SONDE_OK
               : sn_fail_memory(s->err, sizeof(sn_map_entry));
}

/* ------------------------------------------------------------------ two of them */
static bool is_alike(const sn_tensor *a, const sn_tensor *b)
{
    bool alike = a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; alike && i < a->rank; i++)
        alike = a->dims[i] == b->dims[i];
    return alike && a->dtype != SONDE_DTYPE_STRING;
}

static sonde_status add_chunk(search *s, sn_sums *sums, sn_dtype dtype, int64_t n)
{
    const size_t bytes = sn_dtype_bytes(dtype) * (size_t)n;
    sonde_value *a = NULL, *b = NULL;
    sonde_context *c = s->acc->context;
    sonde_status st = sonde_tensor_borrow(c, dtype, &n, 1, s->x, bytes, &a, s->err);
    if (st == SONDE_OK)
        st = sonde_tensor_borrow(c, dtype, &n, 1, s->y, bytes, &b, s->err);
    if (st == SONDE_OK)
        st = sn_sums_add(sums, a, b, s->err);
    sonde_value_release(a);
    sonde_value_release(b);
    return st;
}

static sonde_status measure(search *s, const sn_tensor *a, const sn_tensor *b, sn_sums *sums)
{
    const int64_t n = sn_tensor_count(a);
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t count = n - i < CHUNK ? n - i : CHUNK;
        sn_tensor_read(a, i, count, s->x);
        sn_tensor_read(b, i, count, s->y);
        SN_TRY(add_chunk(s, sums, a->dtype, count));
    }
    return SONDE_OK;
}

static const char *type_text(search *s, const sn_tensor *t)
{
    char text[256];
    const sn_type of = {
        .kind = SN_KIND_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = t->dims};
    (void)sn_type_text(&of, NULL, text, sizeof text);
    return sn_arena_strdup(&s->acc->arena, text);
}

static sonde_status compare(search *s, const char *key, const sn_value *v, const sn_tensor *t,
                            const sn_node *reader)
{
    const sn_tensor *other = sn_map_get(&s->of_b, key);
    if (!other || other == t || !is_alike(t, other) || sn_map_get_address(&s->seen, t))
        return SONDE_OK;
    if (!sn_map_put_address(&s->seen, t, s, NULL))
        return sn_fail_memory(s->err, sizeof(sn_map_entry));
    if (sn_same_data(t, other))
        return SONDE_OK;
    sn_weight_pair found = {.name = v->name,
                            .node = reader ? name_of(reader) : "",
                            .op_type = reader ? reader->op_type : "",
                            .type = type_text(s, t)};
    SN_TRY(measure(s, t, other, &found.sums));
    if (!found.type || !sn_vec_push(&s->found, &s->acc->context->alloc, found))
        return sn_fail_memory(s->err, sizeof found);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ all of them */
static sonde_status search_all(search *s)
{
    sonde_accuracy *acc = s->acc;
    s->x = SN_NEW_N(&s->scratch, double, CHUNK * 2); /* large enough for complex ones, aligned */
    s->y = SN_NEW_N(&s->scratch, double, CHUNK * 2);
    if (!s->x || !s->y)
        return sn_fail_memory(s->err, CHUNK * 2 * sizeof(double));
    SN_TRY(walk(s, acc->b.model->core->graph, "", note));
    SN_TRY(walk(s, acc->a.model->core->graph, "", compare));
    acc->weights = SN_NEW_N(&acc->arena, sn_weight_pair, s->found.n + 1);
    if (!acc->weights)
        return sn_fail_memory(s->err, s->found.n * sizeof *acc->weights);
    if (s->found.n)
        memcpy(acc->weights, s->found.data, s->found.n * sizeof *acc->weights);
    acc->n_weights = (uint32_t)s->found.n;
    return SONDE_OK;
}

sonde_status sn_accuracy_weights(sonde_accuracy *acc, sonde_error *err)
{
    search s = {.acc = acc, .err = err};
    if (acc->a.model->core == acc->b.model->core)
        return SONDE_OK;
    sn_arena_init(&s.scratch, &acc->context->alloc);
    sn_map_init(&s.of_b, &acc->context->alloc);
    sn_map_init(&s.seen, &acc->context->alloc);
    const sonde_status st = search_all(&s);
    sn_vec_free(&s.found, &acc->context->alloc);
    sn_map_free(&s.of_b);
    sn_map_free(&s.seen);
    sn_arena_free(&s.scratch);
    return st;
}

size_t sonde_accuracy_weight_count(const sonde_accuracy *acc)
{
    return acc ? acc->n_weights : 0;
}

sonde_status sonde_accuracy_weight_get(const sonde_accuracy *accuracy, size_t index,
                                       sonde_accuracy_weight *weight, sonde_error *err)
{
    SN_REQUIRE(accuracy, err);
    SN_REQUIRE(weight, err);
    if (index >= accuracy->n_weights)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "weight %zu of %u", index, accuracy->n_weights);
    const sn_weight_pair *p = &accuracy->weights[index];
    const sonde_accuracy_weight row = {.struct_size = sizeof row,
                                       .name = p->name,
                                       .node = p->node,
                                       .op_type = p->op_type,
                                       .type = p->type,
                                       .exact = p->sums.exact,
                                       .error = sn_sums_error(&p->sums)};
    return sn_api_copy_out(weight, &row, sizeof row, err);
}
