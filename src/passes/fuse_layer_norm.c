/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation over the last axis as exporters spelled it out before opset 17 (mean,
 * difference, mean of squares, root, quotient, scale, shift) becomes one LayerNormalization. */
#include <string.h>

#include "passes/rewrite.h"

typedef struct layer_norm {
    sn_node *nodes[9];
    size_t n;
    sn_value *x, *scale, *shift;
    float epsilon;
} layer_norm;

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

/* A constant with one element for each of the last axis, as one dim. */
static bool is_row(const sn_value *v, const sn_value *x)
{
    const sn_type *t = &x->fact.type;
    return v && sn_value_is_const(v) && v->fact.data->dtype == SONDE_DTYPE_F32 &&
           v->fact.data->rank == 1 && t->rank > 0 && v->fact.data->dims[0] == t->dims[t->rank - 1];
}

/* From d = x - mean(x): the square, its mean, + epsilon, the root, d / root. The quotient or NULL.
 */
static sn_node *match_quotient(sn_value *d, layer_norm *m)
{
    sn_node *square = NULL, *div = NULL;
    for (const sn_edge *e = d->uses; e; e = e->next) {
        if (is_square(e->node, d))
            square = e->node;
        else if (sn_node_is(e->node, "Div") && e->index == 0)
            div = e->node;
        else
            return NULL;
    }
    if (!square || !div || d->n_outputs || d->n_uses != (sn_node_is(square, "Mul") ? 3u : 2u))
        return NULL;
    sn_node *mean = sn_value_only_reader(square->out[0]);
    sn_node *add = mean && is_last_mean(mean) ? sn_value_only_reader(mean->out[0]) : NULL;
    if (!add || !sn_node_is(add, "Add") ||
        !sn_value_scalar_f32(sn_node_other_input(add, mean->out[0]), &m->epsilon))
        return NULL;
    sn_node *root = sn_value_only_reader(add->out[0]);
    if (!root || !sn_node_is(root, "Sqrt") || sn_value_only_reader(root->out[0]) != div ||
        div->in[1].value != root->out[0])
        return NULL;
    sn_node *found[] = {square, mean, add, root, div};
    memcpy(m->nodes + m->n, found, sizeof found);
    m->n += 5;
    return div;
}

static bool match(sn_node *mean, layer_norm *m)
{
    m->x = mean->in[0].value;
    sn_node *sub = sn_value_only_reader(mean->out[0]);
    if (!sn_value_is_dtype(m->x, SONDE_DTYPE_F32) || !sub || !sn_node_is(sub, "Sub") ||
        sub->in[0].value != m->x || sub->in[1].value != mean->out[0])
        return false;
    m->nodes[m->n++] = mean;
    m->nodes[m->n++] = sub;
    sn_node *div = match_quotient(sub->out[0], m);
    sn_node *mul = div ? sn_value_only_reader(div->out[0]) : NULL;
    if (!mul || !sn_node_is(mul, "Mul"))
        return false;
    m->scale = sn_node_other_input(mul, div->out[0]);
    if (!is_row(m->scale, m->x))
        return false;
    m->nodes[m->n++] = mul;
    sn_node *add = sn_value_only_reader(mul->out[0]);
    if (add && sn_node_is(add, "Add") && is_row(sn_node_other_input(add, mul->out[0]), m->x)) {
        m->shift = sn_node_other_input(add, mul->out[0]);
        m->nodes[m->n++] = add;
    }
    return true;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (!sn_op_find("", "LayerNormalization", 17, NULL))
        return SONDE_OK;
    sn_graph_each (mean, g) {
        layer_norm m = {.n = 0};
        if (!is_last_mean(mean) || !match(mean, &m))
            continue;
        sn_node *last = m.nodes[m.n - 1], *made;
        SN_TRY(sn_graph_add_node(g, last, "", "LayerNormalization", last->name, m.shift ? 3 : 2, 1,
                                 &made, env->err));
        made->opset = 17;
        sn_node_set_input(made, 0, m.x);
        sn_node_set_input(made, 1, m.scale);
        if (m.shift)
            sn_node_set_input(made, 2, m.shift);
        sn_node_set_output(made, 0, last->out[0]);
        sn_attr a = {.name = "epsilon", .kind = SN_ATTR_FLOAT, .n = 1, .f = m.epsilon};
        SN_TRY(sn_node_set_attr(g, made, &a, env->err));
        mean_next = made;
        SN_TRY(sn_graph_replace(g, m.nodes, m.n, made, last, env->err));
        SN_TRY(sn_node_refresh(g, made, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_fuse_layer_norm = {
    .name = "fuse-layer-norm",
    .summary = "recognises layer normalisation spelled out in elementwise nodes",
    .run = run,
    .bodies = true,
};
