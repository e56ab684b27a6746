/* SPDX-License-Identifier: Apache-2.0 */
/* Between two Transposes, elementwise nodes can as well work on the tensor as it was before the
 * first: then the two stand side by side and fold-views makes one of them, or none. So models that
 * change between channels first and channels last lose most of their Transposes. */
#include "ops/shared/elementwise.h"
#include "passes/axes.h"

enum { MAX_CHAIN = 16 };

typedef struct chain {
    sn_node *t;
    int64_t perm[SN_MAX_RANK];
    int rank;
    sn_node *nodes[MAX_CHAIN]; /* elementwise */
    uint32_t n;
} chain;

/* A constant that varies along one axis at most: its dims can be moved without its data. */
static bool is_vector(const sn_value *v, int rank)
{
    const sn_tensor *t = v && sn_value_is_const(v) ? v->fact.data : NULL;
    int long_dims = 0;
    if (!t || !sn_tensor_is_plain(t) || t->scale || t->rank > rank)
        return false;
    for (int i = 0; i < t->rank; i++)
        long_dims += t->dims[i] != 1;
    return long_dims <= 1;
}

/* A value that another Transpose by the same permutation makes, for this reader alone. */
static sn_node *alike(const chain *c, const sn_value *v)
{
    int64_t perm[SN_MAX_RANK];
    sn_node *n = v && sn_value_only_reader(v) ? v->producer : NULL;
    if (!n || !sn_node_is(n, "Transpose") || !sn_transpose_perm(n, c->rank, perm) ||
        v->fact.type.rank != c->rank || memcmp(perm, c->perm, sizeof *perm * (size_t)c->rank) != 0)
        return NULL;
    return n;
}

/* Can n work on the tensor of which v is the transposed? */
static bool can_cross(const chain *c, const sn_node *n, const sn_value *v)
{
    sn_unary unary;
    sn_binary binary;
    float params[2];
    if (n->n_out != 1 || !n->out[0] || n->out[0]->fact.type.rank != c->rank)
        return false;
    if (sn_node_unary(n, &unary, params))
        return true;
    if (sn_node_is(n, "Clip"))
        return n->in[0].value == v;
    const sn_value *other = sn_node_binary(n, &binary) ? sn_node_other_input(n, v) : NULL;
    return other && (is_vector(other, c->rank) || alike(c, other));
}

/* From Transpose t over elementwise nodes to another Transpose. */
static bool find(sn_node *t, chain *c)
{
    c->t = t;
    c->n = 0;
    c->rank = t->out[0]->fact.type.rank;
    if (c->rank < 1 || !sn_transpose_perm(t, c->rank, c->perm))
        return false;
    const sn_value *v = t->out[0];
    sn_node *next = sn_value_only_reader(v);
    while (next && c->n < MAX_CHAIN && can_cross(c, next, v)) {
        c->nodes[c->n++] = next;
        v = next->out[0];
        next = sn_value_only_reader(v);
    }
    return c->n && next && sn_node_is(next, "Transpose");
}

/* The constant as it broadcasts against the tensor before the Transpose. */
static sonde_status moved_constant(sn_graph *g, sn_pass_env *env, const chain *c, sn_value *v,
                                   sn_value **out)
{
    const sn_tensor *old = v->fact.data;
    *out = v;
    if (sn_tensor_count(old) == 1)
        return SONDE_OK;
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    if (!t)
        return sn_fail_memory(env->err, sizeof *t);
    *t = *old;
    t->rank = c->rank;
    for (int i = 0; i < c->rank; i++) {
        const int at = i - (c->rank - old->rank);
        t->dims[c->perm[i]] = at >= 0 ? old->dims[at] : 1;
    }
    SN_TRY(sn_graph_add_constant(g, "", t, out, env->err));
    sn_value_show_as(*out, v);
    return SONDE_OK;
}

static sonde_status cross(sn_graph *g, sn_pass_env *env, const chain *c, sn_node *n, sn_value *old,
                          sn_value *x)
{
    for (uint32_t i = 0; i < n->n_in && i < 2; i++) {
        sn_value *v = n->in[i].value;
        if (v == old) {
            sn_node_set_input(n, i, x);
        } else if (v && !sn_node_is(n, "Clip")) {
            sn_node *twin = alike(c, v);
            if (twin) {
                sn_node_set_input(n, i, twin->in[0].value);
                SN_TRY(sn_graph_remove(g, twin, env->err));
            } else {
                SN_TRY(moved_constant(g, env, c, v, &v));
                sn_node_set_input(n, i, v);
            }
        }
    }
    sn_value *made;
    SN_TRY(sn_graph_add_value(g, "", &made, env->err));
    sn_value_show_as(made, n->out[0]);
    sn_node_set_output(n, 0, made);
    return sn_node_refresh(g, n, env->err);
}

static sonde_status sink(sn_graph *g, sn_pass_env *env, const chain *c)
{
    sn_value *x = c->t->in[0].value, *old = c->t->out[0];
    for (uint32_t i = 0; i < c->n; i++) {
        sn_node *n = c->nodes[i];
        sn_value *out = n->out[0];
        SN_TRY(cross(g, env, c, n, old, x));
        x = n->out[0];
        old = out; /* whose readers are still the chain's */
    }
    sn_node_move(g, c->t, c->nodes[c->n - 1]->next);
    sn_node_set_input(c->t, 0, x);
    sn_node_set_output(c->t, 0, old);
    return sn_node_refresh(g, c->t, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (t, g) {
        chain c;
        if (!sn_node_is(t, "Transpose") || !t->in[0].value || !find(t, &c))
            continue;
        sn_node *before = t->prev;
        SN_TRY(sink(g, env, &c));
        t_next = before ? before->next : g->first;
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_sink_transposes = {
    .name = "sink-transposes",
    .summary = "moves transposes across elementwise nodes, to combine them",
    .run = run,
    .bodies = true,
};
