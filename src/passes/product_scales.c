/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a matrix product and multiplies or shifts each of its columns by constants (batch
 * normalisation, learned scales) goes into its weights and a row behind it, also across Reshape,
 * Flatten and Transpose that keep the columns together. One number for all columns is left to
 * fuse-attention and fuse-gemm, which look for it. Stands before the passes that look for
 * attention and for products between reshapes. */
#include "passes/affine.h"
#include "passes/product.h"

enum { MAX_CHAIN = 8 };

typedef struct chain {
    sn_node *nodes[MAX_CHAIN];
    uint32_t n;
    bool scales; /* one of them has a factor per column */
} chain;

/* The only node that reads the elements of v; others may ask for its shape. */
static sn_node *reader_of(const sn_value *v)
{
    sn_node *found = NULL;
    for (const sn_edge *e = v->uses; e; e = e->next) {
        if (sn_node_is(e->node, "Shape"))
            continue;
        if (found)
            return NULL;
        found = e->node;
    }
    return v->n_outputs ? NULL : found;
}

static void find(const sn_product *p, chain *c)
{
    const sn_value *v = p->node->out[0];
    int axis = v->fact.type.rank - 1;
    *c = (chain){.n = 0};
    for (sn_node *n = reader_of(v); n && c->n < MAX_CHAIN; n = reader_of(v)) {
        const sn_affine kind = sn_affine_of(n, v, axis, p->columns);
        if (kind) {
            c->nodes[c->n++] = n;
            c->scales |= kind == SN_AFFINE_SCALE;
        } else if ((axis = sn_view_axis(n, axis)) < 0) {
            return;
        }
        v = n->out[0];
    }
}

/* Node n of the chain goes: what made its input makes its output. */
static sonde_status take_out(sn_graph *g, sn_pass_env *env, sn_node *product, sn_node *n)
{
    sn_value *x = sn_affine_input(n), *y = n->out[0];
    sn_node *before = x->producer;
    const uint32_t index = x->output_index;
    SN_TRY(sn_node_add_post_op(g, product, n->op_type, env->err));
    for (uint32_t i = 0; i < n->n_in; i++)
        sn_node_set_input(n, i, NULL);
    sn_value_replace(g, x, y);
    sn_node_set_output(before, index, y);
    return sn_graph_replace(g, &n, 1, product, product, env->err);
}

static sonde_status fold(sn_graph *g, sn_pass_env *env, sn_product *p, const chain *c)
{
    const size_t bytes = (size_t)p->columns * 2 * sizeof(double);
    const sn_value *from = NULL;
    double *scale = sn_alloc_zero(g->alloc, bytes);
    if (!scale)
        return sn_fail_memory(env->err, bytes);
    for (int64_t i = 0; i < p->columns; i++)
        scale[i] = 1.0;
    for (uint32_t i = 0; i < c->n; i++) {
        const sn_value *x = sn_affine_input(c->nodes[i]), *shown;
        sn_affine_join(c->nodes[i], x, p->columns, scale, scale + p->columns);
        shown = sn_affine_shown(c->nodes[i], x);
        from = shown ? shown : from;
    }
    sonde_status st = SONDE_OK;
    for (uint32_t i = 0; i < c->n && st == SONDE_OK; i++)
        st = take_out(g, env, p->node, c->nodes[i]);
    if (st == SONDE_OK)
        st = sn_product_scale_columns(g, env, p, scale, scale + p->columns, from);
    sn_free(g->alloc, scale, bytes);
    return st;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        sn_product p;
        chain c;
        if (!sn_product_of(n, &p))
            continue;
        find(&p, &c);
        if (!c.scales)
            continue;
        SN_TRY(fold(g, env, &p, &c));
        n_next = n->next; /* what followed may be gone */
        *changes += c.n;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_product_scales = {
    .name = "product-scales",
    .summary = "folds factors and shifts per column behind matrix products into their weights",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
