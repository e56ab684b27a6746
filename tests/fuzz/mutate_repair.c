/* SPDX-License-Identifier: Apache-2.0 */
/* Making a changed model fit together again. Nodes are walked in order; an input nobody produced
 * before is given some value that exists, of the type of its neighbours if there is one, an output
 * that exists already a name of its own; operators get as many inputs and outputs as they have.
 * Declared types of outputs and inner values go, for they would contradict what the changed nodes
 * give. All of it is left undone now and then. */
#include <string.h>

#include "fuzz/mutate.h"
#include "ops/framework/op.h"

#define MAX_NAMES 512 /* larger graphs are left as they are: names are found by looking */

typedef struct scope {
    const struct scope *outer;
    const pt_field *names[MAX_NAMES];
    uint8_t dtypes[MAX_NAMES]; /* as far as a guess goes; 0: no idea */
    uint32_t n;
} scope;

/* ---- names ---- */

static bool find(const scope *s, const pt_field *name, uint8_t *dtype)
{
    for (uint32_t k = s->n; k-- > 0;)
        if (pt_same(s->names[k], name)) {
            *dtype = s->dtypes[k];
            return true;
        }
    return false;
}

static bool find_anywhere(const scope *s, const pt_field *name, uint8_t *dtype)
{
    for (; s; s = s->outer)
        if (find(s, name, dtype))
            return true;
    return false;
}

static void define(scope *s, const pt_field *name, uint64_t dtype)
{
    if (s->n == MAX_NAMES || name->n_bytes == 0)
        return;
    s->dtypes[s->n] = (uint8_t)dtype;
    s->names[s->n++] = name;
}

/* Some name that is known, recent ones more often; outer ones now and then. */
static void take_name(mutation *m, const scope *s, pt_field *f, uint8_t dtype)
{
    while (s->outer && (s->n == 0 || mu_one_in(m, 3)))
        s = s->outer;
    f->n_bytes = 0;
    uint32_t at = 0;
    for (int tries = 0; s->n && tries < 8; tries++) {
        uint32_t back = mu_one_in(m, 2) ? mu_below(m, s->n) : mu_below(m, s->n < 4 ? s->n : 4);
        at = s->n - 1 - back;
        if (!dtype || !s->dtypes[at] || dtype == s->dtypes[at])
            break;
    }
    if (s->n == 0)
        return;
    f->bytes = s->names[at]->bytes;
    f->n_bytes = s->names[at]->n_bytes;
}

static void give_fresh_name(mutation *m, pt_field *f)
{
    const char *name = mu_fresh_name(m);
    f->bytes = (const uint8_t *)name;
    f->n_bytes = strlen(name);
}

/* ---- nodes ---- */

static bool text_of(const pt_field *message, uint32_t number, char *out, size_t room)
{
    const pt_field *f = pt_find(message, number);
    size_t n = f ? f->n_bytes : 0;
    if (n >= room)
        return false;
    if (n)
        memcpy(out, f->bytes, n);
    out[n] = 0;
    return true;
}

/* The newest descriptor of the node's operator, or NULL. */
static const sn_op *op_of(const pt_field *node)
{
    char op_type[64], domain[64];
    if (!text_of(node, NODE_OP, op_type, sizeof op_type) ||
        !text_of(node, NODE_DOMAIN, domain, sizeof domain))
        return NULL;
    for (int version = 30; version > 0; version--) {
        const sn_op *op = sn_op_find(domain, op_type, version, NULL);
        if (op)
            return op;
    }
    return NULL;
}

static void repair_count(mutation *m, pt_field *node, uint32_t number, int min, int max)
{
    uint32_t n = pt_count(node, number);
    for (; max >= 0 && n > (uint32_t)max; n--)
        pt_remove(node, pt_nth(node, number, n - 1));
    for (; (int)n < min; n++)
        give_fresh_name(m, pt_add_bytes(m->arena, node, number, NULL, 0));
    for (int k = 0; k < min; k++)
        if (pt_nth(node, number, (uint32_t)k)->n_bytes == 0)
            give_fresh_name(m, pt_nth(node, number, (uint32_t)k));
}

static void repair_graph(mutation *m, pt_field *g, const scope *outer, unsigned depth);

static void repair_node(mutation *m, pt_field *node, scope *s, unsigned depth)
{
    uint8_t dtype = 0, seen;
    const sn_op *op = mu_one_in(m, 24) ? NULL : op_of(node);
    if (op) {
        repair_count(m, node, NODE_INPUT, op->min_in, op->max_in);
        repair_count(m, node, NODE_OUTPUT, op->min_out, op->max_out);
    }
    for (uint32_t k = 0; k < node->n_kids; k++) {
        pt_field *f = node->kids[k];
        if (f->number == NODE_INPUT && f->n_bytes && !find_anywhere(s, f, &seen))
            take_name(m, s, f, dtype);
        if (f->number == NODE_INPUT && f->n_bytes && !dtype)
            find_anywhere(s, f, &dtype);
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
        if (find(s, f, &seen))
            give_fresh_name(m, f);
        define(s, f, dtype);
    }
}

/* Inputs and constants: of two with one name the first stays, but an input may have a default. */
static void define_sources(mutation *m, pt_field *g, uint32_t number, uint32_t name_number,
                           scope *s)
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
            mu_spot tensor;
            const pt_field *dtype = f->kind == PT_TENSOR ? pt_find(f, TENSOR_DTYPE)
                                    : mu_pick_in(m, f, PT_TYPE_TENSOR, NULL, &tensor)
                                        ? pt_find(tensor.field, TYPE_TENSOR_DTYPE)
                                        : NULL;
            define(s, name, dtype ? dtype->num : 0);
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
        uint8_t dtype;
        if (!find(s, name, &dtype) && s->n)
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
    define_sources(m, g, GRAPH_INITIALIZER, TENSOR_NAME, s);
    define_sources(m, g, GRAPH_INPUT, INFO_NAME, s);
    for (uint32_t k = 0; k < g->n_kids; k++)
        if (g->kids[k]->kind == PT_SPARSE && pt_find(g->kids[k], 1) &&
            pt_find(g->kids[k], 1)->kind == PT_TENSOR &&
            pt_find(pt_find(g->kids[k], 1), TENSOR_NAME))
            define(s, pt_find(pt_find(g->kids[k], 1), TENSOR_NAME), 0);
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
            define(s, fn->kids[k], 0);
    for (uint32_t k = 0; k < fn->n_kids; k++)
        if (fn->kids[k]->kind == PT_NODE)
            repair_node(m, fn->kids[k], s, 1);
    uint8_t dtype;
    for (uint32_t k = 0; k < fn->n_kids; k++)
        if (fn->kids[k]->number == FUNCTION_OUTPUT && !find(s, fn->kids[k], &dtype))
            take_name(m, s, fn->kids[k], 0);
}

/* ---- operator sets and functions ---- */

static bool same_text(const pt_field *a, const pt_field *b, uint32_t number)
{
    static const pt_field nothing;
    const pt_field *x = pt_find(a, number), *y = pt_find(b, number);
    return pt_same(x ? x : &nothing, y ? y : &nothing);
}

/* Of messages of one number that agree in both texts the first stays. */
static void drop_twins(pt_field *message, uint32_t number, uint32_t text, uint32_t other_text)
{
    for (uint32_t k = 0; k < message->n_kids; k++)
        for (uint32_t i = k + 1; i < message->n_kids; i++) {
            const pt_field *a = message->kids[k], *b = message->kids[i];
            if (a->number == number && b->number == number && same_text(a, b, text) &&
                same_text(a, b, other_text))
                pt_remove(message, message->kids[i--]);
        }
}

/* The import of a domain by a model or function, or NULL. */
static pt_field *import_of(const pt_field *owner, const pt_field *domain)
{
    for (uint32_t i = 0; i < owner->n_kids; i++) {
        const pt_field *f = owner->kids[i];
        const pt_field *have = f->kind == PT_OPSET ? pt_find(f, OPSET_DOMAIN) : NULL;
        bool empty = f->kind == PT_OPSET && (!have || have->n_bytes == 0);
        if (domain && domain->n_bytes ? have && pt_same(have, domain) : empty)
            return owner->kids[i];
    }
    return NULL;
}

/* Every domain that a node of `message` names is imported by `owner`, in a version that has the
 * operator: of nodes that came together from two files one would else be unknown. */
static void import_domains(mutation *m, pt_field *owner, uint32_t number, const pt_field *message)
{
    for (uint32_t k = 0; k < message->n_kids; k++) {
        const pt_field *f = message->kids[k];
        if (f->kind == PT_LEAF || f->kind == PT_FUNCTION)
            continue;
        import_domains(m, owner, number, f);
        if (f->kind != PT_NODE)
            continue;
        const pt_field *domain = pt_find(f, NODE_DOMAIN);
        pt_field *opset = import_of(owner, domain);
        if (!opset) {
            opset = pt_add_message(m->arena, owner, number);
            if (domain)
                pt_set_bytes(m->arena, opset, OPSET_DOMAIN, domain->bytes, domain->n_bytes);
            pt_set_num(m->arena, opset, OPSET_VERSION, 1 + mu_below(m, 2) * mu_below(m, 5));
        }
        const sn_op *op = mu_one_in(m, 16) ? NULL : op_of(f);
        const pt_field *version = pt_find(opset, OPSET_VERSION);
        bool other = false;
        if (op && version && !sn_op_find(op->domain, op->name, (int64_t)version->num, &other))
            pt_set_num(m->arena, opset, OPSET_VERSION, (uint64_t)op->since);
    }
}

void mu_repair(mutation *m)
{
    repair_graph(m, pt_find(m->model, MODEL_GRAPH), NULL, 0);
    drop_twins(m->model, MODEL_OPSET, OPSET_DOMAIN, OPSET_DOMAIN);
    drop_twins(m->model, MODEL_FUNCTION, FUNCTION_NAME, FUNCTION_DOMAIN);
    import_domains(m, m->model, MODEL_OPSET, m->model);
    for (uint32_t k = 0; k < m->model->n_kids; k++)
        if (m->model->kids[k]->kind == PT_FUNCTION) {
            repair_function(m, m->model->kids[k]);
            import_domains(m, m->model->kids[k], FUNCTION_OPSET, m->model->kids[k]);
        }
}
