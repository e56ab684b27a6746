/* SPDX-License-Identifier: Apache-2.0 */
/* Names after mutations: nodes are walked in order; an input nobody produced before is given some
 * value that exists, an output that exists already a name of its own. Declared types of outputs
 * and inner values go, for they would contradict what the changed nodes give. */
#include <string.h>

#include "fuzz/mutate.h"

#define MAX_NAMES 512 /* larger graphs are left as they are: names are found by looking */

typedef struct scope {
    const struct scope *outer;
    const pt_field *names[MAX_NAMES];
    uint32_t n;
} scope;

static bool known(const scope *s, const pt_field *name)
{
    for (; s; s = s->outer)
        for (uint32_t k = s->n; k-- > 0;)
            if (pt_same(s->names[k], name))
                return true;
    return false;
}

static bool known_here(const scope *s, const pt_field *name)
{
    for (uint32_t k = 0; k < s->n; k++)
        if (pt_same(s->names[k], name))
            return true;
    return false;
}

static void define(scope *s, const pt_field *name)
{
    if (s->n < MAX_NAMES && name->n_bytes)
        s->names[s->n++] = name;
}

/* Some name that is known, recent ones more often; outer ones now and then. */
static void take_name(mutation *m, const scope *s, pt_field *f)
{
    while (s->outer && (s->n == 0 || mu_one_in(m, 3)))
        s = s->outer;
    f->n_bytes = 0;
    if (s->n == 0)
        return;
    uint32_t back = mu_one_in(m, 2) ? mu_below(m, s->n) : mu_below(m, s->n < 4 ? s->n : 4);
    const pt_field *name = s->names[s->n - 1 - back];
    f->bytes = name->bytes;
    f->n_bytes = name->n_bytes;
}

static void repair_graph(mutation *m, pt_field *g, const scope *outer, unsigned depth);

static void repair_node(mutation *m, pt_field *node, scope *s, unsigned depth)
{
    for (uint32_t k = 0; k < node->n_kids; k++) {
        pt_field *f = node->kids[k];
        if (f->number == NODE_INPUT && f->n_bytes && !known(s, f))
            take_name(m, s, f);
        if (f->kind != PT_ATTR)
            continue;
        pt_field *name = pt_find(f, ATTR_NAME);
        for (uint32_t i = 0; name && i < k; i++) {
            const pt_field *other =
                node->kids[i]->kind == PT_ATTR ? pt_find(node->kids[i], ATTR_NAME) : NULL;
            if (other && pt_same(name, other)) { /* given twice: refused at once */
                pt_remove(node, node->kids[i]);
                k--, i--;
            }
        }
        for (uint32_t i = 0; i < f->n_kids; i++)
            if (f->kids[i]->kind == PT_GRAPH)
                repair_graph(m, f->kids[i], s, depth + 1);
    }
    for (uint32_t k = 0; k < node->n_kids; k++) {
        pt_field *f = node->kids[k];
        if (f->number != NODE_OUTPUT || f->n_bytes == 0)
            continue;
        if (known_here(s, f)) {
            const char *name = mu_fresh_name(m);
            f->bytes = (const uint8_t *)name;
            f->n_bytes = strlen(name);
        }
        define(s, f);
    }
}

/* Inputs and constants: of two with one name the first stays, but an input may have a default. */
static void define_sources(pt_field *g, uint32_t number, uint32_t name_number, scope *s)
{
    uint32_t first = s->n;
    for (uint32_t k = 0; k < g->n_kids; k++) {
        pt_field *f = g->kids[k];
        if (f->number != number || f->kind == PT_LEAF)
            continue;
        pt_field *name = pt_find(f, name_number);
        bool twice = false;
        for (uint32_t i = first; name && i < s->n; i++)
            twice = twice || pt_same(s->names[i], name);
        if (!name || twice) {
            pt_remove(g, f);
            k--;
        } else {
            define(s, name);
        }
    }
}

static void repair_outputs(mutation *m, pt_field *g, const scope *s)
{
    if (!pt_find(g, GRAPH_OUTPUT))
        pt_add_message(m->arena, g, GRAPH_OUTPUT);
    for (uint32_t k = 0; k < g->n_kids; k++) {
        pt_field *f = g->kids[k];
        if (f->number != GRAPH_OUTPUT || f->kind != PT_INFO)
            continue;
        if (!mu_one_in(m, 12))
            pt_remove_all(f, INFO_TYPE);
        pt_field *name = pt_find(f, INFO_NAME);
        if (!name)
            name = pt_add_bytes(m->arena, f, INFO_NAME, NULL, 0);
        if (!known_here(s, name) && s->n)
            name->bytes = s->names[s->n - 1]->bytes, name->n_bytes = s->names[s->n - 1]->n_bytes;
    }
}

static void repair_graph(mutation *m, pt_field *g, const scope *outer, unsigned depth)
{
    if (depth > 6 || pt_count(g, GRAPH_NODE) > MAX_NAMES / 2)
        return;
    scope *s = pt_alloc(m->arena, sizeof *s);
    s->outer = outer;
    if (!mu_one_in(m, 12))
        pt_remove_all(g, GRAPH_INFO);
    define_sources(g, GRAPH_INITIALIZER, TENSOR_NAME, s);
    define_sources(g, GRAPH_INPUT, INFO_NAME, s);
    for (uint32_t k = 0; k < g->n_kids; k++)
        if (g->kids[k]->kind == PT_SPARSE && pt_find(g->kids[k], 1) &&
            pt_find(g->kids[k], 1)->kind == PT_TENSOR &&
            pt_find(pt_find(g->kids[k], 1), TENSOR_NAME))
            define(s, pt_find(pt_find(g->kids[k], 1), TENSOR_NAME));
    for (uint32_t k = 0; k < g->n_kids; k++)
        if (g->kids[k]->kind == PT_NODE)
            repair_node(m, g->kids[k], s, depth);
    repair_outputs(m, g, s);
}

static void repair_function(mutation *m, pt_field *fn)
{
    scope *s = pt_alloc(m->arena, sizeof *s);
    for (uint32_t k = 0; k < fn->n_kids; k++)
        if (fn->kids[k]->number == FUNCTION_INPUT)
            define(s, fn->kids[k]);
    for (uint32_t k = 0; k < fn->n_kids; k++)
        if (fn->kids[k]->kind == PT_NODE)
            repair_node(m, fn->kids[k], s, 1);
    for (uint32_t k = 0; k < fn->n_kids; k++)
        if (fn->kids[k]->number == FUNCTION_OUTPUT && !known(s, fn->kids[k]))
            take_name(m, s, fn->kids[k]);
}

/* Every domain that a node of `message` names is imported by `owner`. */
static void import_domains(mutation *m, pt_field *owner, uint32_t number, const pt_field *message)
{
    for (uint32_t k = 0; k < message->n_kids; k++) {
        const pt_field *f = message->kids[k];
        if (f->kind == PT_LEAF || f->kind == PT_FUNCTION)
            continue;
        const pt_field *domain = f->kind == PT_NODE ? pt_find(f, NODE_DOMAIN) : NULL;
        bool imported = !domain || domain->n_bytes == 0;
        for (uint32_t i = 0; !imported && i < owner->n_kids; i++) {
            const pt_field *have =
                owner->kids[i]->kind == PT_OPSET ? pt_find(owner->kids[i], OPSET_DOMAIN) : NULL;
            imported = have && pt_same(have, domain);
        }
        if (!imported) {
            pt_field *opset = pt_add_message(m->arena, owner, number);
            pt_set_bytes(m->arena, opset, OPSET_DOMAIN, domain->bytes, domain->n_bytes);
            pt_set_num(m->arena, opset, OPSET_VERSION, 1 + mu_below(m, 2) * mu_below(m, 5));
        }
        import_domains(m, owner, number, f);
    }
}

void mu_repair(mutation *m)
{
    repair_graph(m, pt_find(m->model, MODEL_GRAPH), NULL, 0);
    import_domains(m, m->model, MODEL_OPSET, m->model);
    for (uint32_t k = 0; k < m->model->n_kids; k++)
        if (m->model->kids[k]->kind == PT_FUNCTION) {
            repair_function(m, m->model->kids[k]);
            import_domains(m, m->model->kids[k], FUNCTION_OPSET, m->model->kids[k]);
        }
}
