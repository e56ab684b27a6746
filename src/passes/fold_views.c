/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of Reshape, Transpose, Squeeze, Unsqueeze and Flatten does no more than one Transpose
 * between two Reshapes, often less: attention as PyTorch writes it goes [T, B, C] ► [T, B·h, d] ►
 * [B·h, T, d] ► [B, h, T, d] where one Reshape and one Transpose do. */
#include "passes/axes.h"

enum { MAX_CHAIN = 12 };

typedef struct chain {
    sn_node *nodes[MAX_CHAIN];
    size_t n;
    sn_value *x, *y;
    sn_atoms atoms;
} chain;

/* The longest chain that begins with n, if it begins there. */
static bool find(sn_node *n, chain *c)
{
    const sn_node *before = n->in[0].value->producer;
    c->n = 0;
    c->x = n->in[0].value;
    if ((before && sn_moves_axes(before) && sn_value_only_reader(c->x) == n) ||
        !sn_atoms_begin(&c->atoms, &c->x->fact.type))
        return false;
    while (n && sn_moves_axes(n) && c->n < MAX_CHAIN && (!c->n || n->in[0].value == c->y)) {
        sn_atoms tried = c->atoms;
        if (!sn_atoms_apply(&tried, n))
            break;
        c->atoms = tried;
        c->nodes[c->n++] = n;
        c->y = n->out[0];
        n = sn_value_only_reader(c->y);
    }
    sn_atoms_join(&c->atoms);
    return c->n > 1;
}

/* ------------------------------------------------------------------ the new nodes */

typedef struct plan {
    bool split, move, merge; /* which of the three nodes are needed */
    int64_t split_dims[SN_MAX_ATOMS], perm[SN_MAX_ATOMS], merge_dims[SN_MAX_RANK];
    int n_atoms, rank;
} plan;

/* Dims for a Reshape: a symbol at its own place is 0, anything else not known -1, once, and not
 * beside a 0: of an empty tensor it could not be told. False: not possible. */
typedef struct shape_text {
    bool copies, open;
} shape_text;

static bool put_dim(shape_text *s, sn_dim size, bool same_place, int64_t *out)
{
    if (sn_dim_known(size)) {
        *out = size;
        return true;
    }
    *out = same_place ? 0 : -1;
    bool again = !same_place && s->open;
    s->copies |= same_place;
    s->open |= !same_place;
    return !again && !(s->copies && s->open);
}

/* Where each atom stands: in the list of all of them, and as an axis of x on its own. */
typedef struct places {
    int at[SN_MAX_ATOMS], axis[SN_MAX_ATOMS];
} places;

static bool plan_split(const sn_atoms *a, plan *p, places *w)
{
    shape_text text = {false, false};
    bool possible = true;
    for (int i = 0; i < a->from.rank; i++) {
        const sn_axis *x = &a->from.axis[i];
        p->split |= x->n != 1;
        for (int k = 0; k < x->n; k++) {
            const int at = p->n_atoms++;
            w->at[x->atom[k]] = at;
            w->axis[x->atom[k]] = x->n == 1 ? i : -1;
            possible &=
                put_dim(&text, a->size[x->atom[k]], x->n == 1 && at == i, &p->split_dims[at]);
        }
    }
    return possible && p->n_atoms <= SN_MAX_RANK;
}

static bool plan_merge(const sn_atoms *a, plan *p, const places *w)
{
    shape_text text = {false, false};
    bool possible = true;
    for (int i = 0, at = 0; i < a->to.rank; i++) {
        const sn_axis *x = &a->to.axis[i];
        sn_dim size = 1;
        for (int k = 0; k < x->n; k++)
            size = sn_dim_mul(size, a->size[x->atom[k]]);
        const bool own = x->n == 1 && (p->move ? at : w->axis[x->atom[0]]) == i;
        possible &= put_dim(&text, size, own, &p->merge_dims[i]);
        at += x->n;
    }
    return possible;
}

/* The same atoms in the same order: also in the same axes? */
static bool same_grouping(const sn_axes *a, const sn_axes *b)
{
    for (int i = 0; i < a->rank && i < b->rank; i++)
        if (a->axis[i].n != b->axis[i].n)
            return false;
    return a->rank == b->rank;
}

static bool make_plan(const sn_atoms *a, plan *p)
{
    places w;
    *p = (plan){.rank = a->to.rank};
    const bool can_split = plan_split(a, p, &w);
    for (int i = 0, at = 0; i < a->to.rank; i++) {
        p->merge |= a->to.axis[i].n != 1;
        for (int k = 0; k < a->to.axis[i].n; k++, at++) {
            p->perm[at] = w.at[a->to.axis[i].atom[k]];
            p->move |= p->perm[at] != at;
        }
    }
    if (!p->move && p->split) { /* one Reshape does both */
        p->split = false;
        p->merge = !same_grouping(&a->from, &a->to);
    }
    const bool can_merge = plan_merge(a, p, &w);
    return (can_split || !p->split) && (can_merge || !p->merge);
}

static sonde_status add_node(sn_graph *g, sn_pass_env *env, const chain *c, const char *op_type,
                             sn_value **v, sn_node **made)
{
    const bool reshape = strcmp(op_type, "Reshape") == 0;
    const sn_node *last = c->nodes[c->n - 1];
    SN_TRY(sn_graph_add_node(g, c->nodes[c->n - 1], "", op_type, last->name, reshape ? 2 : 1, 1,
                             made, env->err));
    (*made)->opset = 13;
    sn_node_set_input(*made, 0, *v);
    const sn_value *x = *v;
    SN_TRY(sn_graph_add_value(g, "", v, env->err));
    sn_value_show_as(*v, x);
    sn_node_set_output(*made, 0, *v);
    return SONDE_OK;
}

static sonde_status add_reshape(sn_graph *g, sn_pass_env *env, const chain *c, const int64_t *dims,
                                int rank, sn_value **v, sn_node **made)
{
    sn_value *shape;
    void *data;
    const int64_t n = rank;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &n, 1, &shape, &data));
    if (rank)
        memcpy(data, dims, (size_t)rank * sizeof *dims);
    SN_TRY(add_node(g, env, c, "Reshape", v, made));
    sn_node_set_input(*made, 1, shape);
    return SONDE_OK;
}

static sonde_status add_transpose(sn_graph *g, sn_pass_env *env, const chain *c, const plan *p,
                                  sn_value **v, sn_node **made)
{
    int64_t *perm = SN_NEW_N(g->arena, int64_t, p->n_atoms);
    if (!perm)
        return sn_fail_memory(env->err, sizeof *perm * SN_MAX_ATOMS);
    memcpy(perm, p->perm, (size_t)p->n_atoms * sizeof *perm);
    SN_TRY(add_node(g, env, c, "Transpose", v, made));
    sn_attr a = {.name = "perm", .kind = SN_ATTR_INTS, .n = (size_t)p->n_atoms, .ints = perm};
    return sn_node_set_attr(g, *made, &a, env->err);
}

/* The chain does nothing: its readers read x. */
static sonde_status bypass(sn_graph *g, sn_pass_env *env, const chain *c)
{
    sn_value_replace(g, c->y, c->x);
    for (size_t i = c->n; i-- > 0;)
        SN_TRY(sn_graph_remove(g, c->nodes[i], env->err));
    return SONDE_OK;
}

/* The node of the chain that a new one is shown as. */
static const sn_node *anchor_of(const chain *c, const sn_node *made)
{
    for (size_t i = 0; i < c->n; i++)
        if (sn_node_is(c->nodes[i], made->op_type))
            return c->nodes[i];
    return c->nodes[c->n - 1];
}

static sonde_status rewrite(sn_graph *g, sn_pass_env *env, chain *c, const plan *p)
{
    sn_node *made[3];
    size_t n = 0;
    sn_value *v = c->x;
    if (p->split)
        SN_TRY(add_reshape(g, env, c, p->split_dims, p->n_atoms, &v, &made[n++]));
    if (p->move)
        SN_TRY(add_transpose(g, env, c, p, &v, &made[n++]));
    if (p->merge)
        SN_TRY(add_reshape(g, env, c, p->merge_dims, p->rank, &v, &made[n++]));
    sn_node_set_output(made[n - 1], 0, c->y);
    for (size_t i = 0; i + 1 < n; i++)
        SN_TRY(sn_node_inherit(g, made[i], anchor_of(c, made[i]), env->err));
    SN_TRY(sn_graph_replace(g, c->nodes, c->n, made[n - 1], anchor_of(c, made[n - 1]), env->err));
    for (size_t i = 0; i < n; i++)
        SN_TRY(sn_node_refresh(g, made[i], env->err));
    return SONDE_OK;
}

static bool is_part(const chain *c, const sn_node *n)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->nodes[i] == n)
            return true;
    return false;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    uint32_t found = 0;
    sn_graph_each (n, g) {
        chain c;
        plan p;
        if (!sn_moves_axes(n) || !find(n, &c) || !make_plan(&c.atoms, &p))
            continue;
        const size_t count = (size_t)p.split + p.move + p.merge;
        if (count >= c.n || (!count && c.y->n_outputs))
            continue;
        while (n_next && is_part(&c, n_next))
            n_next = n_next->next;
        SN_TRY(count ? rewrite(g, env, &c, &p) : bypass(g, env, &c));
        found++;
    }
    *changes += found;
    return found ? sn_ops_infer(g, env->err) : SONDE_OK; /* dims that are the same again */
}

const sn_pass sn_pass_fold_views = {
    .name = "fold-views",
    .summary = "shortens chains of reshapes and transposes",
    .run = run,
    .bodies = true,
};
