/* SPDX-License-Identifier: Apache-2.0 */
/* The rotation by position before attention, x * cos + turned(x) * sin, where turned(x) is x with
 * its halves swapped and the first of them negated, or its neighbours, becomes one
 * sonde.FusedRotary that reads heads where the projection wrote them. */
#include "passes/heads_view.h"

enum { MAX_NODES = 12 };

typedef struct rotary {
    sn_node *nodes[MAX_NODES];
    size_t n;
    sn_value *x, *cos, *sin;
    bool interleaved;
} rotary;

static bool take(rotary *m, sn_node *n)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->nodes[i] == n)
            return true;
    if (m->n == MAX_NODES)
        return false;
    m->nodes[m->n++] = n;
    return true;
}

/* The producer of v when v is read once and it is that operator. */
static sn_node *made_by(const sn_value *v, const char *op)
{
    sn_node *n = v ? v->producer : NULL;
    return n && sn_value_only_reader(v) && sn_node_is(n, op) ? n : NULL;
}

static bool ints_are(const sn_node *n, uint32_t i, int64_t want)
{
    const sn_value *v = i < n->n_in ? n->in[i].value : NULL;
    int64_t x;
    if (!v || !sn_value_is_const(v) || v->fact.data->dtype != SONDE_DTYPE_I64 ||
        sn_tensor_count(v->fact.data) != 1)
        return false;
    sn_tensor_read(v->fact.data, 0, 1, &x);
    return x == want;
}

/* Which part of its input's last axis v is: elements first, first + step, … half of them in all.
 * Returns the input; NULL: v is no such part. */
static sn_value *part_of(rotary *m, const sn_value *v, int64_t size, int64_t first, int64_t step)
{
    sn_node *n = v && sn_value_only_reader(v) ? v->producer : NULL;
    const sn_type *t = v ? &v->fact.type : NULL;
    if (!n || t->rank < 1 || t->dims[t->rank - 1] != size / 2 || !n->in[0].value ||
        n->in[0].value->fact.type.rank != t->rank || !take(m, n))
        return NULL;
    const int64_t last = t->rank - 1;
    if (sn_node_is(n, "Split") && step == 1 && n->n_out == 2) {
        const int64_t axis = sn_node_attr_int(n, "axis", 0);
        return (axis == -1 || axis == last) && n->out[first > 0] == v ? n->in[0].value : NULL;
    }
    if (!sn_node_is(n, "Slice") || n->opset < 10 || n->n_in < 4 ||
        !(ints_are(n, 1, first) || ints_are(n, 1, first - size)) ||
        !(ints_are(n, 3, last) || ints_are(n, 3, -1)) ||
        !(ints_are(n, 4, step) || (step == 1 && (n->n_in < 5 || !n->in[4].value))))
        return NULL;
    return n->in[0].value;
}

/* The negated part and the plain one side by side in `concat`; both of one x. */
static bool match_parts(rotary *m, const sn_value *minus, const sn_value *plus, int64_t size)
{
    sn_node *neg = made_by(minus, "Neg");
    if (!neg || !take(m, neg))
        return false;
    m->x =
        part_of(m, neg->in[0].value, size, m->interleaved ? 1 : size / 2, m->interleaved ? 2 : 1);
    return m->x && m->x == part_of(m, plus, size, 0, m->interleaved ? 2 : 1);
}

/* A value with one more axis of 1 at its end. */
static const sn_value *before_unsqueeze(rotary *m, const sn_value *v)
{
    sn_node *n = made_by(v, "Unsqueeze");
    const sn_type *t = v ? &v->fact.type : NULL, *in = n ? &n->in[0].value->fact.type : NULL;
    return n && in->rank == t->rank - 1 && t->dims[t->rank - 1] == 1 && t->dims[t->rank - 2] != 1 &&
                   sn_dim_same(in->dims[in->rank - 1], t->dims[t->rank - 2]) && take(m, n)
               ? n->in[0].value
               : NULL;
}

/* turned(x): Concat(-x₂, x₁) over halves, or over pairs that a Reshape lays flat. */
static bool match_turned(rotary *m, sn_value *v)
{
    const sn_type *t = &v->fact.type;
    sn_node *reshape = made_by(v, "Reshape");
    sn_node *concat = made_by(reshape ? reshape->in[0].value : v, "Concat");
    if (t->rank != 4 || !sn_dim_known(t->dims[3]) || t->dims[3] < 2 || t->dims[3] % 2 || !concat ||
        concat->n_in != 2 || !take(m, concat))
        return false;
    const sn_type *ct = &concat->out[0]->fact.type;
    const int64_t axis = sn_node_attr_int(concat, "axis", 0);
    const sn_value *minus = concat->in[0].value, *plus = concat->in[1].value;
    if (axis != -1 && axis != ct->rank - 1)
        return false;
    m->interleaved = reshape != NULL;
    if (reshape) {
        if (ct->rank != 5 || ct->dims[4] != 2 || ct->dims[3] != t->dims[3] / 2 ||
            !take(m, reshape) || !sn_dim_same(ct->dims[1], t->dims[1]) ||
            !sn_dim_same(ct->dims[2], t->dims[2]))
            return false;
        minus = before_unsqueeze(m, minus);
        plus = before_unsqueeze(m, plus);
        if (!minus || !plus)
            return false;
    }
    return match_parts(m, minus, plus, t->dims[3]);
}

/* A table that broadcasts over batch, heads and positions, but not over the numbers of a head. */
static bool is_table(const sn_value *v, int64_t heads, int64_t size)
{
    const sn_type *t = v ? &v->fact.type : NULL;
    if (!t || !sn_value_is_dtype(v, SONDE_DTYPE_F32) || t->rank < 1 || t->rank > 4 ||
        t->dims[t->rank - 1] != size)
        return false;
    const sn_dim h = t->rank >= 3 ? t->dims[t->rank - 3] : 1;
    return h == 1 || h == heads;
}

/* Mul of x and a table on one side, of turned(x) and a table on the other. */
static bool match_sides(rotary *m, sn_node *plain, sn_node *turned)
{
    for (uint32_t i = 0; i < 2; i++) {
        *m = (rotary){.n = 0};
        m->sin = turned->in[1 - i].value;
        if (!turned->in[i].value || !match_turned(m, turned->in[i].value))
            continue;
        m->cos = sn_node_other_input(plain, m->x);
        const sn_type *t = &m->x->fact.type;
        if (m->cos && t->rank == 4 && sn_value_is_dtype(m->x, SONDE_DTYPE_F32) &&
            sn_dim_known(t->dims[1]) && sn_dim_known(t->dims[3]) &&
            is_table(m->cos, t->dims[1], t->dims[3]) && is_table(m->sin, t->dims[1], t->dims[3]))
            return take(m, plain) && take(m, turned);
    }
    return false;
}

static bool match(sn_node *add, rotary *m)
{
    if (!sn_node_is(add, "Add") || add->n_in != 2 || !add->in[0].value || !add->in[1].value ||
        add->out[0]->fact.type.rank != 4)
        return false;
    sn_node *a = made_by(add->in[0].value, "Mul"), *b = made_by(add->in[1].value, "Mul");
    if (!a || !b || a == b || a->n_in != 2 || b->n_in != 2)
        return false;
    return (match_sides(m, a, b) || match_sides(m, b, a)) && take(m, add);
}

static sonde_status apply(sn_graph *g, sn_pass_env *env, const rotary *m, sn_node *last,
                          sn_node **made)
{
    sn_heads_view x;
    sn_node *n;
    *made = NULL;
    if (!sn_heads_view_find(m->x, false, SN_HEADS_USUAL, false, &x) ||
        x.heads != m->x->fact.type.dims[1] || x.scale != 1)
        return SONDE_OK;
    SN_TRY(sn_graph_add_node(g, last, "sonde", "FusedRotary", last->name, 3, 1, &n, env->err));
    n->opset = 1;
    sn_node_set_input(n, 0, x.source);
    sn_node_set_input(n, 1, m->cos);
    sn_node_set_input(n, 2, m->sin);
    sn_node_set_output(n, 0, last->out[0]);
    SN_TRY(sn_node_set_ints(g, n, "x_view", x.view, 5, env->err));
    SN_TRY(sn_node_set_int(g, n, "heads", x.heads, env->err));
    SN_TRY(sn_node_set_int(g, n, "head_size", x.size, env->err));
    SN_TRY(sn_node_set_int(g, n, "interleaved", m->interleaved, env->err));
    SN_TRY(sn_graph_replace(g, m->nodes, m->n, n, last, env->err));
    *made = n;
    return sn_node_refresh(g, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    uint32_t fused = 0;
    if (!sn_op_find("sonde", "FusedRotary", 1, NULL))
        return SONDE_OK;
    sn_graph_each (n, g) {
        rotary m;
        sn_node *made;
        if (!match(n, &m))
            continue;
        SN_TRY(apply(g, env, &m, n, &made));
        if (!made)
            continue;
        n_next = made->next;
        fused++;
    }
    *changes += fused;
    return fused ? sn_pass_dead_code.run(g, env, changes) : SONDE_OK;
}

const sn_pass sn_pass_fuse_rotary = {
    .name = "fuse-rotary",
    .summary = "fuses rotary embeddings that consist of several elementwise nodes",
    .run = run,
    .bodies = true,
};
