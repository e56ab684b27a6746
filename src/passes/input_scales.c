/* SPDX-License-Identifier: Apache-2.0 */
/* What multiplies and shifts each channel of a value by constants (batch normalisation, learned
 * scales) goes into the weights and the bias of the product or convolution behind it, if nobody
 * else reads the value: W(s·x + t) = (W·s)x + W·t. Padding is no pixel of s·x + t, so convolutions
 * that have some take factors only. Stands behind fuse-norms, to which the factors of a written out
 * layer normalisation belong. */
#include "passes/affine.h"
#include "passes/product.h"

enum { MAX_CHAIN = 8 };

typedef struct chain {
    sn_node *nodes[MAX_CHAIN]; /* from the reader upwards */
    uint32_t n;
    bool scales, shifts;
} chain;

/* What the input of n has been through, whose axis `axis` are `channels`. */
static void find(const sn_node *n, int axis, int64_t channels, chain *c)
{
    const sn_value *v = n->in[0].value;
    *c = (chain){.n = 0};
    while (c->n < MAX_CHAIN && v->producer && sn_value_only_reader(v)) {
        sn_node *p = v->producer;
        const sn_value *x = sn_affine_input(p);
        const sn_affine kind = x ? sn_affine_of(p, x, axis, channels) : SN_AFFINE_NONE;
        if (kind) {
            c->nodes[c->n++] = p;
            c->scales |= kind == SN_AFFINE_SCALE;
            c->shifts |= sn_affine_shown(p, x) != NULL;
        } else if ((axis = sn_view_axis_before(p, axis)) < 0) {
            return;
        } else {
            x = p->in[0].value;
        }
        v = x;
    }
}

/* The factors and summands of the whole chain; *from: a tensor with summands. */
static void read(const chain *c, int64_t channels, double *scale, double *shift,
                 const sn_value **from)
{
    *from = NULL;
    for (int64_t i = 0; i < channels; i++)
        scale[i] = 1.0;
    for (uint32_t i = c->n; i-- > 0;) {
        const sn_value *x = sn_affine_input(c->nodes[i]);
        sn_affine_join(c->nodes[i], x, channels, scale, shift);
        if (sn_affine_shown(c->nodes[i], x))
            *from = sn_affine_shown(c->nodes[i], x);
    }
}

static sonde_status take_out(sn_graph *g, sn_pass_env *env, const chain *c, sn_node *by)
{
    for (uint32_t i = 0; i < c->n; i++) {
        sn_node *n = c->nodes[i];
        sn_value_replace(g, n->out[0], sn_affine_input(n));
        SN_TRY(sn_graph_replace(g, &n, 1, by, by, env->err));
    }
    return SONDE_OK;
}

/* p: NULL for a convolution. */
static sonde_status fold(sn_graph *g, sn_pass_env *env, sn_node *n, sn_product *p, int64_t channels,
                         const chain *c, uint32_t *changes)
{
    const size_t bytes = (size_t)channels * 2 * sizeof(double);
    double *scale = sn_alloc_zero(g->alloc, bytes), *shift = scale + channels;
    const sn_value *from;
    bool done = true;
    if (!scale)
        return sn_fail_memory(env->err, bytes);
    read(c, channels, scale, shift, &from);
    sonde_status st =
        p ? sn_product_scale_input(g, env, p, scale, shift, from)
          : sn_conv_scale_input(g, env, n, scale, c->shifts ? shift : NULL, from, &done);
    sn_free(g->alloc, scale, bytes);
    if (st != SONDE_OK || !done)
        return st;
    *changes += c->n;
    return take_out(g, env, c, n);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        sn_product p;
        chain c;
        const bool product = sn_product_of(n, &p);
        const int64_t channels = product ? p.k : sn_conv_input_channels(n);
        if (!channels)
            continue;
        find(n, product ? n->in[0].value->fact.type.rank - 1 : 1, channels, &c);
        if (c.scales)
            SN_TRY(fold(g, env, n, product ? &p : NULL, channels, &c, changes));
    }
    return SONDE_OK;
}

const sn_pass sn_pass_input_scales = {
    .name = "input-scales",
    .summary = "folds factors and shifts per channel into the weights of what reads the result",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
