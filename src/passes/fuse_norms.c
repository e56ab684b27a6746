/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations over the last axis as exporters spell them out become one node:
 *
 *   RMSNormalization    x / √(mean(x²) + ε) · scale
 *   LayerNormalization  the same of x - mean(x), + shift
 *
 * The quotient may be a product by the reciprocal; a scale that is left out is made of ones. */
#include "passes/rewrite.h"

typedef struct norm {
    sn_node *nodes[12]; /* the last one makes the result */
    size_t n;
    sn_value *x, *scale, *shift;
    float epsilon;
    bool layer; /* the mean is taken off first */
} norm;

static void add(norm *m, sn_node *n)
{
    m->nodes[m->n++] = n;
}

/* A mean over the last axis only, which stays as a dim of one. */
static bool is_last_mean(const sn_node *n)
{
    if (!sn_node_is(n, "ReduceMean") || !n->in[0].value || !sn_node_attr_int(n, "keepdims", 1))
        return false;
    int64_t rank = n->in[0].value->fact.type.rank, axis = 0;
    const sn_attr *a = sn_node_attr(n, "axes");
    const sn_value *v = n->n_in > 1 ? n->in[1].value : NULL;
    if (a && a->kind == SN_ATTR_INTS && a->n == 1)
        axis = a->ints[0];
    else if (v && sn_value_is_const(v) && v->fact.data->dtype == SONDE_DTYPE_I64 &&
             sn_tensor_count(v->fact.data) == 1)
        memcpy(&axis, v->fact.data->data, sizeof axis);
    else
        return false;
    return rank > 0 && (axis == -1 || axis == rank - 1);
}

/* The node that makes d² of d: Mul(d, d) or Pow(d, 2). */
static bool is_square(const sn_node *n, const sn_value *d)
{
    float two;
    if (n->n_in != 2 || n->in[0].value != d)
        return false;
    if (sn_node_is(n, "Mul"))
        return n->in[1].value == d;
    return sn_node_is(n, "Pow") && sn_value_scalar_f32(n->in[1].value, &two) && two == 2.0f;
}

/* A constant with one element for each of the last axis, and nothing before it. */
static bool is_row(const sn_value *v, const sn_value *x)
{
    const sn_type *t = &x->fact.type;
    return v && sn_value_is_const(v) && v->fact.data->dtype == SONDE_DTYPE_F32 &&
           v->fact.data->rank == 1 && t->rank > 0 && v->fact.data->dims[0] == t->dims[t->rank - 1];
}

static sn_node *producer_read_once(const sn_value *v)
{
    return v && v->n_uses == 1 && !v->n_outputs ? v->producer : NULL;
}

/* mean(d²) + ε behind `sum`; d. */
static sn_value *match_square(sn_node *sum, norm *m)
{
    for (uint32_t i = 0; sum && sn_node_is(sum, "Add") && sum->n_in == 2 && i < 2; i++) {
        sn_node *mean = producer_read_once(sum->in[i].value);
        if (!mean || !is_last_mean(mean) ||
            !sn_value_scalar_f32(sum->in[1 - i].value, &m->epsilon) ||
            sum->in[1 - i].value->fact.data->rank > sum->in[i].value->fact.type.rank)
            continue;
        sn_node *square = producer_read_once(mean->in[0].value);
        sn_value *d = square && square->n_in ? square->in[0].value : NULL;
        if (!d || !is_square(square, d))
            return NULL;
        add(m, square);
        add(m, mean);
        add(m, sum);
        return d;
    }
    return NULL;
}

/* d / root or d · (1 / root), from the root on; the node that makes it. */
static sn_node *match_quotient(sn_node *root, const sn_value *d, norm *m)
{
    float one;
    sn_node *next = sn_value_only_reader(root->out[0]);
    if (!next)
        return NULL;
    add(m, root);
    if (sn_node_is(next, "Div") && next->in[0].value == d && next->in[1].value == root->out[0])
        return next;
    bool inverse = sn_node_is(next, "Reciprocal") ||
                   (sn_node_is(next, "Div") && next->in[1].value == root->out[0] &&
                    sn_value_scalar_f32(next->in[0].value, &one) && one == 1.0f &&
                    next->in[0].value->fact.data->rank <= d->fact.type.rank);
    sn_node *mul = inverse ? sn_value_only_reader(next->out[0]) : NULL;
    if (!mul || !sn_node_is(mul, "Mul") || sn_node_other_input(mul, next->out[0]) != d)
        return NULL;
    add(m, next);
    return mul;
}

/* d is x - mean(x), read by nothing but its square (twice by a Mul) and the quotient. */
static bool match_mean(sn_value *d, norm *m)
{
    sn_node *sub = d->producer;
    sn_node *mean = sub && sn_node_is(sub, "Sub") && sub->n_in == 2
                        ? producer_read_once(sub->in[1].value)
                        : NULL;
    const bool twice = sn_node_is(m->nodes[0], "Mul");
    if (!mean || !is_last_mean(mean) || mean->in[0].value != sub->in[0].value || d->n_outputs ||
        d->n_uses != (twice ? 3u : 2u))
        return false;
    m->x = sub->in[0].value;
    memmove(m->nodes + 2, m->nodes, m->n * sizeof *m->nodes);
    m->nodes[0] = mean;
    m->nodes[1] = sub;
    m->n += 2;
    return true;
}

static bool find(sn_node *root, norm *m)
{
    *m = (norm){.n = 0};
    if (!sn_node_is(root, "Sqrt") || !sn_value_is_dtype(root->in[0].value, SONDE_DTYPE_F32))
        return false;
    sn_value *d = match_square(producer_read_once(root->in[0].value), m);
    sn_node *last = d ? match_quotient(root, d, m) : NULL;
    if (!last)
        return false;
    add(m, last);
    m->x = d;
    m->layer = match_mean(d, m);
    const sn_type *t = &m->x->fact.type;
    if (t->rank < 1 || !sn_dim_known(t->dims[t->rank - 1]))
        return false;
    sn_node *next = sn_value_only_reader(last->out[0]);
    if (next && sn_node_is(next, "Mul") && is_row(sn_node_other_input(next, last->out[0]), m->x)) {
        m->scale = sn_node_other_input(next, last->out[0]);
        add(m, next);
        last = next;
        next = sn_value_only_reader(last->out[0]);
    }
    if (m->layer && next && sn_node_is(next, "Add") &&
        is_row(sn_node_other_input(next, last->out[0]), m->x)) {
        m->shift = sn_node_other_input(next, last->out[0]);
        add(m, next);
    }
    return true;
}

static sonde_status make_ones(sn_graph *g, sn_pass_env *env, norm *m)
{
    void *data;
    const sn_type *t = &m->x->fact.type;
    const int64_t n = t->dims[t->rank - 1];
    if (m->scale)
        return SONDE_OK;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_F32, &n, 1, &m->scale, &data));
    for (int64_t i = 0; i < n; i++)
        ((float *)data)[i] = 1.0f;
    return SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (!sn_op_find("", "LayerNormalization", 17, NULL) ||
        !sn_op_find("", "RMSNormalization", 23, NULL))
        return SONDE_OK;
    sn_graph_each (root, g) {
        norm m;
        if (!find(root, &m))
            continue;
        sn_node *last = m.nodes[m.n - 1], *made;
        SN_TRY(make_ones(g, env, &m));
        SN_TRY(sn_graph_add_node(g, last, "", m.layer ? "LayerNormalization" : "RMSNormalization",
                                 last->name, m.shift ? 3 : 2, 1, &made, env->err));
        made->opset = m.layer ? 17 : 23;
        sn_node_set_input(made, 0, m.x);
        sn_node_set_input(made, 1, m.scale);
        if (m.shift)
            sn_node_set_input(made, 2, m.shift);
        sn_node_set_output(made, 0, last->out[0]);
        sn_attr a = {.name = "epsilon", .kind = SN_ATTR_FLOAT, .n = 1, .f = m.epsilon};
        SN_TRY(sn_node_set_attr(g, made, &a, env->err));
        root_next = made; /* what followed may be gone */
        SN_TRY(sn_graph_replace(g, m.nodes, m.n, made, last, env->err));
        SN_TRY(sn_node_refresh(g, made, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_fuse_norms = {
    .name = "fuse-norms",
    .summary = "fuses layer and RMS normalisation that consist of several elementwise nodes",
    .run = run,
    .bodies = true,
};
