/* SPDX-License-Identifier: Apache-2.0 */
/* The exact GELU as exporters spell it out, x · (1 + erf(x / √2)) / 2 in any order of its factors,
 * becomes one Gelu node (which a matrix product before it can then take in). */
#include <math.h>
#include <string.h>

#include "passes/rewrite.h"

static bool near(float a, float b)
{
    return fabsf(a - b) <= 1e-3f * fabsf(b);
}

/* v = other * factor, as Mul, or as Div by 1/factor, with a constant scalar; the other operand. */
static sn_value *scaled(const sn_node *n, float factor)
{
    float k;
    if (n->n_in != 2 || !n->in[0].value || !n->in[1].value)
        return NULL;
    if (sn_node_is(n, "Mul")) {
        if (sn_value_scalar_f32(n->in[1].value, &k) && near(k, factor))
            return n->in[0].value;
        if (sn_value_scalar_f32(n->in[0].value, &k) && near(k, factor))
            return n->in[1].value;
    }
    if (sn_node_is(n, "Div") && sn_value_scalar_f32(n->in[1].value, &k) && near(k, 1.0f / factor))
        return n->in[0].value;
    return NULL;
}

typedef struct gelu {
    sn_node *nodes[6];
    size_t n;
    sn_value *x;
} gelu;

/* The part all spellings share: x ► scaled by 1/√2 ► Erf ► Add 1; returns the Add. */
static sn_node *match_erf(sn_node *erf, gelu *m)
{
    sn_node *in = erf->in[0].value ? erf->in[0].value->producer : NULL;
    float one;
    if (!in || sn_value_only_reader(in->out[0]) != erf)
        return NULL;
    m->x = scaled(in, 0.70710678f);
    sn_node *add = sn_value_only_reader(erf->out[0]);
    if (!m->x || !add || !sn_node_is(add, "Add") ||
        !sn_value_scalar_f32(sn_node_other_input(add, erf->out[0]), &one) || one != 1.0f)
        return NULL;
    m->nodes[m->n++] = in;
    m->nodes[m->n++] = erf;
    m->nodes[m->n++] = add;
    return add;
}

/* The factors x and 1/2 behind the Add; true when both are there. */
static bool match_factors(sn_node *add, gelu *m)
{
    sn_node *first = sn_value_only_reader(add->out[0]);
    if (!first)
        return false;
    m->nodes[m->n++] = first;
    if (scaled(first, 0.5f) == add->out[0]) { /* (1 + erf) / 2, then · x */
        sn_node *second = sn_value_only_reader(first->out[0]);
        if (!second || !sn_node_is(second, "Mul") ||
            sn_node_other_input(second, first->out[0]) != m->x)
            return false;
        m->nodes[m->n++] = second;
        return true;
    }
    if (!sn_node_is(first, "Mul"))
        return false;
    const sn_value *other = sn_node_other_input(first, add->out[0]);
    if (other == m->x) { /* (1 + erf) · x, then / 2 */
        sn_node *second = sn_value_only_reader(first->out[0]);
        if (!second || scaled(second, 0.5f) != first->out[0])
            return false;
        m->nodes[m->n++] = second;
        return true;
    }
    sn_node *half = other ? other->producer : NULL; /* x / 2, then · (1 + erf) */
    if (!half || sn_value_only_reader(other) != first || scaled(half, 0.5f) != m->x)
        return false;
    m->nodes[m->n - 1] = half;
    m->nodes[m->n++] = first;
    return true;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (!sn_op_find("", "Gelu", 20, NULL))
        return SONDE_OK;
    sn_graph_each (erf, g) {
        gelu m = {.n = 0};
        if (!sn_node_is(erf, "Erf"))
            continue;
        sn_node *add = match_erf(erf, &m);
        if (!add || !match_factors(add, &m) || !sn_value_is_dtype(m.x, SONDE_DTYPE_F32))
            continue;
        sn_node *last = m.nodes[m.n - 1], *made;
        SN_TRY(sn_graph_add_node(g, last, "", "Gelu", erf->name, 1, 1, &made, env->err));
        made->opset = 20;
        sn_node_set_input(made, 0, m.x);
        sn_node_set_output(made, 0, last->out[0]);
        erf_next = made; /* what followed may be gone */
        SN_TRY(sn_graph_replace(g, m.nodes, m.n, made, erf, env->err));
        SN_TRY(sn_node_refresh(g, made, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_fuse_gelu = {
    .name = "fuse-gelu",
    .summary = "recognises GELU spelled out in elementwise nodes",
    .run = run,
    .bodies = true,
};
