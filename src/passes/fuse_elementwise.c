/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise f32 nodes that follow each other on one shape become one sonde.Elementwise, which
 * takes every piece of the tensor through all of them. Runs last: what convolutions and products
 * can take in is theirs, and tensors in blocked layout are left alone. */
#include "ops/shared/elementwise.h"
#include "passes/epilogue.h"

enum { MAX_LINKS = 256, SHOWN = 6 };

typedef struct link {
    sn_node *node;
    const char *function;
    sn_value *operand; /* NULL: one operand */
    bool swapped;
    float params[2];
} link;

typedef struct chain {
    link links[MAX_LINKS];
    uint32_t n;
    sn_value *x;
} chain;

static bool is_plain_f32(const sn_value *v)
{
    return v && sn_value_is_dtype(v, SONDE_DTYPE_F32) && sn_form_is_native(v->fact.form) &&
           !v->fact.pack;
}

/* One element, or some of the output's dims side by side and ones around them. */
static bool fits(const sn_value *v, const sn_type *y)
{
    const sn_type *t = v ? &v->fact.type : NULL;
    bool inside = false, before = false;
    if (!is_plain_f32(v) || t->rank < 0 || t->rank > y->rank)
        return false;
    for (int i = 1; i <= t->rank; i++) {
        const sn_dim have = t->dims[t->rank - i], want = y->dims[y->rank - i];
        if (have == 1) {
            before |= inside && want != 1;
        } else {
            if (!sn_dim_same(have, want) || before)
                return false;
            inside = true;
        }
    }
    return true;
}

/* n as a function of `v` (NULL: of whichever input has the output's shape). */
static bool as_link(sn_node *n, sn_value *v, link *l, sn_value **x)
{
    sn_unary unary;
    sn_binary binary;
    *l = (link){.node = n};
    if (!n->n_in || n->n_out != 1 || !is_plain_f32(n->out[0]) || n->out[0]->fact.type.rank < 0)
        return false;
    const sn_type *y = &n->out[0]->fact.type;
    *x = v ? v : n->in[0].value;
    if (sn_node_is(n, "Clip") && sn_clip_bounds(n, l->params)) {
        l->function = sn_unary_text(SN_UNARY_CLIP);
        return is_plain_f32(*x) && n->in[0].value == *x;
    }
    if (sn_node_unary(n, &unary, l->params)) {
        l->function = sn_unary_text(unary);
        return is_plain_f32(*x);
    }
    if (!sn_node_binary(n, &binary) || n->in[0].value == n->in[1].value)
        return false;
    l->function = sn_binary_text(binary);
    for (uint32_t i = 0; i < 2; i++) {
        sn_value *a = n->in[i].value, *b = n->in[1 - i].value;
        if ((v && a != v) || !is_plain_f32(a) || !sn_type_same_shape(&a->fact.type, y) ||
            !fits(b, y))
            continue;
        *x = a;
        l->operand = b;
        l->swapped = i == 1;
        return true;
    }
    return false;
}

/* The chain that begins with n; false: fewer than two nodes. */
static bool find(sn_node *n, chain *c)
{
    c->n = 0;
    if (!as_link(n, NULL, &c->links[0], &c->x))
        return false;
    c->n = 1;
    while (c->n < MAX_LINKS) {
        sn_value *v = c->links[c->n - 1].node->out[0], *x;
        sn_node *next = sn_value_only_reader(v);
        if (!next || !as_link(next, v, &c->links[c->n], &x))
            break;
        c->n++;
    }
    return c->n > 1;
}

/* The input of `made` behind the first that is v, added if there is none. */
static sonde_status operand_input(sn_graph *g, sn_node *made, sn_value *v, int64_t *index,
                                  sonde_error *err)
{
    for (uint32_t i = 1; i < made->n_in; i++)
        if (made->in[i].value == v) {
            *index = i;
            return SONDE_OK;
        }
    *index = made->n_in;
    return sn_node_add_input(g, made, v, err);
}

static sonde_status set_attributes(sn_graph *g, sn_node *made, const chain *c, sonde_error *err)
{
    sonde_string *names = SN_NEW_N(g->arena, sonde_string, c->n);
    int64_t *operands = SN_NEW_N(g->arena, int64_t, c->n);
    float *params = SN_NEW_N(g->arena, float, 2 * (size_t)c->n);
    if (!names || !operands || !params)
        return sn_fail_memory(err, c->n * sizeof *names);
    for (uint32_t i = 0; i < c->n; i++) {
        const link *l = &c->links[i];
        names[i] = (sonde_string){l->function, strlen(l->function)};
        params[2 * i] = l->params[0];
        params[2 * i + 1] = l->params[1];
        if (!l->operand)
            continue;
        SN_TRY(operand_input(g, made, l->operand, &operands[i], err));
        operands[i] = l->swapped ? -operands[i] : operands[i];
    }
    sn_attr a = {.name = "functions", .kind = SN_ATTR_STRINGS, .n = c->n, .strings = names};
    SN_TRY(sn_node_set_attr(g, made, &a, err));
    a = (sn_attr){.name = "operands", .kind = SN_ATTR_INTS, .n = c->n, .ints = operands};
    SN_TRY(sn_node_set_attr(g, made, &a, err));
    a = (sn_attr){
        .name = "params", .kind = SN_ATTR_FLOATS, .n = 2 * (size_t)c->n, .floats = params};
    return sn_node_set_attr(g, made, &a, err);
}

static sonde_status fuse(sn_graph *g, sn_pass_env *env, const chain *c)
{
    sn_node *first = c->links[0].node, *last = c->links[c->n - 1].node, *made, *olds[MAX_LINKS];
    SN_TRY(sn_graph_add_node(g, last, "sonde", "Elementwise", first->name, 1, 1, &made, env->err));
    made->opset = 1;
    sn_node_set_input(made, 0, c->x);
    SN_TRY(set_attributes(g, made, c, env->err));
    sn_node_set_output(made, 0, last->out[0]);
    for (uint32_t i = 0; i < c->n; i++) {
        olds[i] = c->links[i].node;
        if (i > 0 && i <= SHOWN)
            SN_TRY(sn_node_add_post_op(g, made, i < SHOWN ? olds[i]->op_type : "…", env->err));
    }
    SN_TRY(sn_graph_replace(g, olds, c->n, made, first, env->err));
    return sn_node_refresh(g, made, env->err);
}

static bool is_part(const chain *c, const sn_node *n)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->links[i].node == n)
            return true;
    return false;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    chain *c = sn_alloc(g->alloc, sizeof *c);
    if (!c)
        return sn_fail_memory(env->err, sizeof *c);
    sonde_status st = SONDE_OK;
    sn_graph_each (n, g) {
        if (st != SONDE_OK || !find(n, c))
            continue;
        while (n_next && is_part(c, n_next))
            n_next = n_next->next;
        st = fuse(g, env, c);
        (*changes)++;
    }
    sn_free(g->alloc, c, sizeof *c);
    return st;
}

const sn_pass sn_pass_fuse_elementwise = {
    .name = "fuse-elementwise",
    .summary = "fuses chains of elementwise nodes",
    .run = run,
    .bodies = true,
};
