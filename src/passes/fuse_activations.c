/* SPDX-License-Identifier: Apache-2.0 */
/* Activations as exporters spell them out in elementwise nodes become one node, which a convolution
 * or a matrix product before it can then take in. All but the last are products:
 *
 *   Gelu         x · ½ · (1 + erf(x / √2)), or with tanh(√(2/π) · (x + 0.044715 x³)) for the erf
 *   Swish        x · Sigmoid(a x)         (a = 1: SiLU; a = 1.702: quick GELU)
 *   HardSwish    x · HardSigmoid(x), x · Clip(x + 3, 0, 6) / 6
 *   HardSigmoid  Clip(x + 3, 0, 6) / 6
 *   Mish         x · Tanh(Softplus(x))
 *
 * And a PRelu with one slope for all is a LeakyRelu. */
#include "passes/factors.h"

typedef struct match {
    sn_node *nodes[32]; /* three products and what is between; the last one makes the result */
    size_t n;
    sn_value *x;
    const char *op_type;
    int32_t opset;
    bool tanh_form;
    bool has_alpha;
    float alpha; /* Swish, HardSigmoid, LeakyRelu */
    int rank;    /* of constants */
} match;

static void add(match *m, sn_node *n)
{
    m->nodes[m->n++] = n;
}

static void add_all(match *m, const sn_factors *f)
{
    for (uint32_t i = 0; i < f->n_nodes; i++)
        add(m, f->nodes[f->n_nodes - 1 - i]);
    if (f->rank > m->rank)
        m->rank = f->rank;
}

/* The node that makes v, when it is of that type and v is read only once. */
static sn_node *made_by(const sn_value *v, const char *op_type)
{
    sn_node *n = v ? v->producer : NULL;
    return n && v->n_uses == 1 && !v->n_outputs && sn_node_is(n, op_type) ? n : NULL;
}

/* Add(number, other): the other operand. */
static sn_value *plus(const sn_node *n, double number, match *m)
{
    float k;
    for (uint32_t i = 0; n && n->n_in == 2 && i < 2; i++)
        if (sn_value_scalar_f32(n->in[i].value, &k) && sn_near((double)k, number)) {
            if (n->in[i].value->fact.data->rank > m->rank)
                m->rank = n->in[i].value->fact.data->rank;
            return n->in[1 - i].value;
        }
    return NULL;
}

static bool all_x(const sn_factors *f, uint32_t n, const sn_value *x)
{
    for (uint32_t i = 0; i < f->n_leaves; i++)
        if (f->leaves[i] != x)
            return false;
    return f->n_leaves == n;
}

/* v = number · xⁿ, with nodes nobody else reads. */
static bool is_power(sn_value *v, double number, uint32_t n, match *m)
{
    sn_factors f;
    if (!v || v->n_uses != 1 || v->n_outputs || !sn_factors_of(v, &f) || !all_x(&f, n, m->x) ||
        !sn_near(f.number, number))
        return false;
    add_all(m, &f);
    return true;
}

/* √(2/π) · (x + 0.044715 x³), the factor x inside or before the sum. */
static bool is_tanh_argument(sn_value *u, match *m)
{
    sn_factors f;
    if (!u || u->n_uses != 1 || u->n_outputs || !sn_factors_of(u, &f) || f.n_leaves < 1 ||
        f.n_leaves > 2 || !sn_near(f.number, 0.7978845608))
        return false;
    bool outside = f.n_leaves == 2;
    sn_value *sum = f.leaves[0];
    if (outside && f.leaves[0] == m->x)
        sum = f.leaves[1];
    else if (outside && f.leaves[1] != m->x)
        return false;
    sn_node *n = made_by(sum, "Add");
    if (!n)
        return false;
    sn_value *rest = outside ? plus(n, 1.0, m) : sn_node_other_input(n, m->x);
    if (!is_power(rest, 0.044715, outside ? 2 : 3, m))
        return false;
    add(m, n);
    add_all(m, &f);
    return true;
}

/* 1 + erf(…) or 1 + tanh(…). */
static bool match_gelu(sn_value *sum, match *m)
{
    sn_node *n = made_by(sum, "Add");
    sn_value *inner = n ? plus(n, 1.0, m) : NULL;
    sn_node *erf = made_by(inner, "Erf"), *tanh = made_by(inner, "Tanh");
    if (!(erf && is_power(erf->in[0].value, 0.70710678, 1, m)) &&
        !(tanh && is_tanh_argument(tanh->in[0].value, m)))
        return false;
    add(m, erf ? erf : tanh);
    add(m, n);
    m->op_type = "Gelu";
    m->opset = 20;
    m->tanh_form = tanh != NULL;
    return true;
}

static bool is_clip_0_6(const sn_node *n)
{
    float lo = 1, hi = 0;
    if (n->opset < 11)
        return sn_node_attr_float(n, "min", 1) == 0.0f && sn_node_attr_float(n, "max", 0) == 6.0f;
    return n->n_in == 3 && sn_value_scalar_f32(n->in[1].value, &lo) &&
           sn_value_scalar_f32(n->in[2].value, &hi) && lo == 0.0f && hi == 6.0f;
}

/* Clip(x + 3, 0, 6); m->x is set by it when it is not known yet. */
static bool match_clip(sn_value *v, match *m)
{
    sn_node *clip = made_by(v, "Clip");
    sn_node *sum = clip && is_clip_0_6(clip) ? made_by(clip->in[0].value, "Add") : NULL;
    sn_value *x = sum ? plus(sum, 3.0, m) : NULL;
    if (!x || (m->x && x != m->x))
        return false;
    m->x = x;
    add(m, sum);
    add(m, clip);
    return true;
}

static bool match_gate(sn_value *v, double number, match *m)
{
    sn_node *n;
    if (sn_near(number, 0.5))
        return match_gelu(v, m);
    if (sn_near(number, 1.0 / 6.0) && match_clip(v, m)) {
        m->op_type = "HardSwish";
        m->opset = 14;
        return true;
    }
    if (number != 1.0)
        return false;
    if ((n = made_by(v, "Sigmoid"))) {
        sn_factors f = {.number = 1.0};
        sn_value *u = n->in[0].value;
        if (u != m->x) {
            if (!u || u->n_uses != 1 || u->n_outputs || !sn_factors_of(u, &f) ||
                !all_x(&f, 1, m->x) || f.number == 0.0)
                return false;
            add_all(m, &f);
        }
        m->op_type = "Swish";
        m->opset = 24;
        m->has_alpha = true;
        m->alpha = (float)f.number;
    } else if ((n = made_by(v, "HardSigmoid"))) {
        if (n->in[0].value != m->x ||
            !sn_near((double)sn_node_attr_float(n, "alpha", 0.2f), 1.0 / 6.0) ||
            sn_node_attr_float(n, "beta", 0.5f) != 0.5f)
            return false;
        m->op_type = "HardSwish";
        m->opset = 14;
    } else if ((n = made_by(v, "Tanh"))) {
        sn_node *plus_node = made_by(n->in[0].value, "Softplus");
        if (!plus_node || plus_node->in[0].value != m->x)
            return false;
        add(m, plus_node);
        m->op_type = "Mish";
        m->opset = 18;
    } else {
        return false;
    }
    add(m, n);
    return true;
}

static bool match_prelu(sn_node *root, match *m)
{
    float slope;
    if (!sn_node_is(root, "PRelu") || root->n_in != 2 || !root->in[0].value ||
        !sn_value_is_dtype(root->out[0], SONDE_DTYPE_F32) ||
        !sn_value_scalar_f32(root->in[1].value, &slope))
        return false;
    *m = (match){.x = root->in[0].value,
                 .op_type = "LeakyRelu",
                 .opset = 16,
                 .has_alpha = true,
                 .alpha = slope,
                 .rank = root->in[1].value->fact.data->rank};
    add(m, root);
    const sn_type *t = &m->x->fact.type;
    return t->kind == SN_KIND_TENSOR && t->rank >= m->rank;
}

/* The product that ends in `root`. */
static bool find(sn_node *root, match *m)
{
    sn_factors f;
    if ((!sn_node_is(root, "Mul") && !sn_node_is(root, "Div")) || root->n_out != 1 ||
        !sn_value_is_dtype(root->out[0], SONDE_DTYPE_F32) || !sn_factors_of(root->out[0], &f))
        return false;
    bool found = false;
    if (f.n_leaves == 1 && sn_near(f.number, 1.0 / 6.0)) {
        *m = (match){.op_type = "HardSigmoid", .opset = 6, .has_alpha = true, .alpha = 1.0f / 6.0f};
        found = match_clip(f.leaves[0], m);
    }
    for (uint32_t i = 0; f.n_leaves == 2 && i < 2 && !found; i++) {
        *m = (match){.x = f.leaves[i]};
        found = match_gate(f.leaves[1 - i], f.number, m);
    }
    if (!found)
        return false;
    add_all(m, &f);
    const sn_type *t = &m->x->fact.type;
    return t->kind == SN_KIND_TENSOR && t->rank >= m->rank &&
           sn_op_find("", m->op_type, m->opset, NULL);
}

static sonde_status set_attributes(sn_graph *g, sn_node *made, const match *m, sonde_error *err)
{
    sn_attr form = {.name = "approximate", .kind = SN_ATTR_STRING, .n = 1, .s = {"tanh", 4}};
    sn_attr alpha = {.name = "alpha", .kind = SN_ATTR_FLOAT, .n = 1, .f = m->alpha};
    if (m->tanh_form)
        SN_TRY(sn_node_set_attr(g, made, &form, err));
    return m->has_alpha ? sn_node_set_attr(g, made, &alpha, err) : SONDE_OK;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (root, g) {
        match m;
        if (!find(root, &m) && !match_prelu(root, &m))
            continue;
        sn_node *made;
        SN_TRY(sn_graph_add_node(g, root, "", m.op_type, root->name, 1, 1, &made, env->err));
        made->opset = m.opset;
        sn_node_set_input(made, 0, m.x);
        sn_node_set_output(made, 0, root->out[0]);
        SN_TRY(set_attributes(g, made, &m, env->err));
        SN_TRY(sn_graph_replace(g, m.nodes, m.n, made, root, env->err));
        SN_TRY(sn_node_refresh(g, made, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_fuse_activations = {
    .name = "fuse-activations",
    .summary = "fuses activations that consist of several elementwise nodes",
    .run = run,
    .bodies = true,
};
