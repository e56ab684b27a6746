/* SPDX-License-Identifier: Apache-2.0 */
/* With --precision bf16, an image that one operator makes in f32 and others round to bf16 when they
 * read it lies in memory as bf16: half the bytes. Everything else about the value stays: its type,
 * its layout. Both sides have to know it (sn_op.in_bf16); where a value has other readers, or is an
 * output, it stays f32, and so do the values that a Concat would join with it. Graphs whose shapes
 * depend on data are left alone: their steps take types from the tensors they meet. */
#include "passes/rewrite.h"

static uint32_t ports(const sn_node *n, const sn_pass_env *env)
{
    return n->op->in_bf16 ? n->op->in_bf16(n, n->params, env->cpu_flags) : 0;
}

static bool may_be_bf16(const sn_value *v, const sn_pass_env *env)
{
    if (!v || v->n_outputs > 0 || v->n_uses == 0 || v->fact.type.dtype != SONDE_DTYPE_F32)
        return false;
    for (const sn_edge *e = v->uses; e; e = e->next)
        if (e->index >= SN_BF16_INPUTS || !(ports(e->node, env) >> e->index & 1u))
            return false;
    return true;
}

static bool is_bf16(const sn_value *v)
{
    return v->fact.form.dtype == SONDE_DTYPE_BF16;
}

/* An operator that only moves elements has all its images as bf16, or none; returns how many are
 * f32 again. */
static uint32_t make_alike(sn_node *n)
{
    uint32_t some = is_bf16(n->out[0]), taken = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        some += is_bf16(n->in[i].value);
    if (some == 0 || some == n->n_in + 1)
        return 0;
    for (uint32_t i = 0; i <= n->n_in; i++) {
        sn_value *v = i < n->n_in ? n->in[i].value : n->out[0];
        taken += is_bf16(v);
        v->fact.form.dtype = 0;
    }
    return taken;
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (env->precision != SONDE_PRECISION_BF16 ||
        sn_ops_any(g, SN_OP_DATA_DEPENDENT | SN_OP_CONTROL | SN_OP_NONTENSOR))
        return SONDE_OK;
    sn_graph_each (n, g) {
        if (!(ports(n, env) & SN_BF16_OUT) || !may_be_bf16(n->out[0], env))
            continue;
        n->out[0]->fact.form.dtype = SONDE_DTYPE_BF16;
        (*changes)++;
    }
    /* What one of them gives up, its neighbours may have to, too. */
    for (uint32_t taken = 1; taken > 0;) {
        taken = 0;
        sn_graph_each (n, g)
            if (ports(n, env) & SN_BF16_ALIKE)
                taken += make_alike(n);
        *changes -= taken;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_store_bf16 = {
    .name = "store-bf16",
    .summary = "with --precision bf16, stores images between convolutions and pooling as bf16",
    .run = run,
};
