/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting the factors of a product tree. Inner nodes are read only inside the tree, so that they
 * can go when the whole is replaced. */
#include "passes/factors.h"

#include <math.h>

bool sn_near(double a, double b)
{
    return fabs(a - b) <= 5e-5 * fabs(b);
}

static bool add_node(sn_factors *f, sn_node *n)
{
    if (f->n_nodes == SN_FACTOR_NODES)
        return false;
    f->nodes[f->n_nodes++] = n;
    return true;
}

static bool add_leaf(sn_factors *f, sn_value *v)
{
    if (f->n_leaves == SN_FACTOR_LEAVES)
        return false;
    f->leaves[f->n_leaves++] = v;
    return true;
}

static bool add_factor(sn_factors *f, sn_value *v);

static void add_number(sn_factors *f, const sn_value *v, double k)
{
    f->number *= k;
    if (v->fact.data->rank > f->rank)
        f->rank = v->fact.data->rank;
}

/* A constant number multiplies; anything else is looked into, unless others read it too. */
static bool add_operand(sn_factors *f, sn_value *v)
{
    float k;
    if (!v)
        return false;
    if (sn_value_scalar_f32(v, &k)) {
        add_number(f, v, (double)k);
        return true;
    }
    return v->n_uses == 1 && !v->n_outputs ? add_factor(f, v) : add_leaf(f, v);
}

static bool add_factor(sn_factors *f, sn_value *v)
{
    sn_node *n = v->producer;
    float k;
    if (!n || n->n_in != 2 || n->n_out != 1)
        return add_leaf(f, v);
    sn_value *a = n->in[0].value, *b = n->in[1].value;
    if (sn_node_is(n, "Mul"))
        return add_node(f, n) && add_operand(f, a) && add_operand(f, b);
    if (sn_node_is(n, "Div") && sn_value_scalar_f32(b, &k) && k != 0.0f) {
        add_number(f, b, 1.0 / (double)k);
        return add_node(f, n) && add_operand(f, a);
    }
    if (sn_node_is(n, "Pow") && sn_value_scalar_f32(b, &k) && (k == 2.0f || k == 3.0f)) {
        bool fits = add_node(f, n);
        for (int i = 0; i < (int)k; i++)
            fits = fits && add_leaf(f, a);
        return fits;
    }
    return add_leaf(f, v);
}

bool sn_factors_of(sn_value *v, sn_factors *f)
{
    *f = (sn_factors){.number = 1.0};
    return v && add_factor(f, v);
}
