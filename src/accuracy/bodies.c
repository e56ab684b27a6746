/* SPDX-License-Identifier: Apache-2.0 */
/* Looks into bodies. Their tensors cannot be outputs of a model, so an error inside a Loop or an If
 * is seen at what comes out of it. But where both bodies have the same nodes, those whose constants
 * or attributes differ can be named without running anything. */
#include "accuracy/pairs.h"

enum { CHUNK_BYTES = 4096, MOST_NAMED = 3 };

/* A graph and the node it is a body of; `up` is where that node is. */
typedef struct scope {
    const sn_graph *g;
    const sn_node *owner;
    const struct scope *up;
} scope;

/* The constant behind a value that a body may have from outside; NULL: it is computed. */
static const sn_tensor *constant(const scope *s, const sn_value *v)
{
    while (v && !v->fact.data && s->up) {
        size_t k = s->g->n_formal_inputs;
        while (k < s->g->inputs.n && s->g->inputs.data[k] != v)
            k++;
        if (k >= s->g->inputs.n)
            return NULL;
        v = s->owner->in[s->g->capture_map.data[k - s->g->n_formal_inputs]].value;
        s = s->up;
    }
    return v && !v->is_input ? v->fact.data : NULL;
}

bool sn_same_data(const sn_tensor *a, const sn_tensor *b)
{
    if (!a || !b || a == b)
        return a == b;
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    if (!same || a->dtype == SONDE_DTYPE_STRING)
        return same;
    uint8_t x[CHUNK_BYTES], y[CHUNK_BYTES];
    const int64_t size = (int64_t)sn_dtype_bytes(a->dtype), step = CHUNK_BYTES / size;
    const int64_t n = sn_tensor_count(a);
    for (int64_t i = 0; i < n && same; i += step) {
        const int64_t count = n - i < step ? n - i : step;
        sn_tensor_read(a, i, count, x);
        sn_tensor_read(b, i, count, y);
        same = memcmp(x, y, (size_t)(count * size)) == 0;
    }
    return same;
}

static bool same_attribute(const sn_attr *a, const sn_attr *b)
{
    if (!b || a->kind != b->kind || a->n != b->n)
        return false;
    switch (a->kind) {
    case SN_ATTR_FLOAT:
        return a->f == b->f;
    case SN_ATTR_INT:
        return a->i == b->i;
    case SN_ATTR_STRING:
        return a->s.size == b->s.size &&
               (!a->s.size || memcmp(a->s.data, b->s.data, a->s.size) == 0);
    case SN_ATTR_TENSOR:
        return sn_same_data(a->tensor, b->tensor);
    case SN_ATTR_FLOATS:
        return !a->n || memcmp(a->floats, b->floats, a->n * sizeof *a->floats) == 0;
    case SN_ATTR_INTS:
        return !a->n || memcmp(a->ints, b->ints, a->n * sizeof *a->ints) == 0;
    default:
        return true;
    }
}

static bool same_node(const scope *a, const sn_node *x, const scope *b, const sn_node *y)
{
    for (uint32_t i = 0; i < x->n_in && i < y->n_in; i++)
        if (!sn_same_data(constant(a, x->in[i].value), constant(b, y->in[i].value)))
            return false;
    for (uint32_t i = 0; i < x->n_attrs; i++)
        if (!same_attribute(&x->attrs[i], sn_node_attr(y, x->attrs[i].name)))
            return false;
    return x->n_attrs == y->n_attrs;
}

static bool same_structure(const sn_graph *a, const sn_graph *b)
{
    const sn_node *x = a->first, *y = b->first;
    for (; x && y; x = x->next, y = y->next)
        if (strcmp(x->op_type, y->op_type) != 0 || x->n_in != y->n_in)
            return false;
    return !x && !y;
}

typedef struct search {
    sn_arena *arena;
    const char *text; /* what was found; NULL: out of memory */
    int found;
} search;

static void look(search *s, const scope *a, const sn_node *x, const scope *b, const sn_node *y)
{
    for (uint32_t k = 0; s->text && sn_node_body(x, k) && sn_node_body(y, k); k++) {
        const scope in_a = {sn_node_body(x, k), x, a}, in_b = {sn_node_body(y, k), y, b};
        if (!same_structure(in_a.g, in_b.g)) {
            s->text = sn_arena_printf(s->arena, "%s%sthe bodies of '%.100s' have other nodes",
                                      s->text, s->found++ ? "; " : "", x->name);
            continue;
        }
        const sn_node *m = in_a.g->first, *n = in_b.g->first;
        for (; m && n && s->text; m = m->next, n = n->next) {
            char name[160];
            if (!same_node(&in_a, m, &in_b, n) && s->found++ < MOST_NAMED)
                s->text = sn_arena_printf(s->arena, "%s%s%s has other constants", s->text,
                                          *s->text ? "; " : "", sn_node_text(m, name, sizeof name));
            if (s->text)
                look(s, &in_a, m, &in_b, n);
        }
    }
}

sonde_status sn_accuracy_look_inside(sonde_accuracy *acc, sonde_error *err)
{
    const scope a = {.g = acc->a.model->core->graph}, b = {.g = acc->tapped->graph};
    for (uint32_t i = 0; i < acc->n_pairs; i++) {
        sn_pair *p = &acc->pairs[i];
        const sn_node *other = p->b.seen->producer;
        if (!p->control || !other || strcmp(other->op_type, p->node->op_type) != 0)
            continue;
        search s = {.arena = &acc->arena, .text = ""};
        look(&s, &a, p->node, &b, other);
        if (!s.text)
            return sn_fail_memory(err, 256);
        p->inside = s.text;
    }
    return SONDE_OK;
}
