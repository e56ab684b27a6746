/* SPDX-License-Identifier: Apache-2.0 */
/* An image that one operator makes in f32 and others round to 16 bits when they read it lies in
 * memory so: half the bytes. With --precision bf16 that is bf16; in a file of f16, where values are
 * f32 only because steps compute in that, f16. Everything else about the value stays: its type, its
 * layout. Both sides have to know it (sn_op.in_half); where a value has other readers, or is an
 * output, it stays f32, and so do the values that a Concat would join with it. Graphs whose shapes
 * depend on data are left alone: their steps take types from the tensors they meet. */
#include "passes/rewrite.h"

static uint32_t ports(const sn_node *n, sn_dtype half, const sn_pass_env *env)
{
    return n->op->in_half ? n->op->in_half(n, n->params, half, env->cpu_flags) : 0;
}

/* May what the node makes lie in memory as `half`? */
static bool may_be_half(const sn_node *n, sn_dtype half, const sn_pass_env *env)
{
    const sn_value *v = n->out[0];
    if (!(ports(n, half, env) & SN_HALF_OUT) || !v ||
        (half == SONDE_DTYPE_F16 && !v->f16_in_file) || v->n_outputs > 0 || v->n_uses == 0 ||
        v->fact.type.dtype != SONDE_DTYPE_F32)
        return false;
    for (const sn_edge *e = v->uses; e; e = e->next)
        if (e->index >= SN_HALF_INPUTS || !(ports(e->node, half, env) >> e->index & 1u))
            return false;
    return true;
}

static bool is_half(const sn_value *v)
{
    return v->fact.form.dtype != 0;
}

/* An operator that only moves elements has all its images as halves, or none; returns how many are
 * f32 again. */
static uint32_t make_alike(sn_node *n)
{
    uint32_t some = is_half(n->out[0]), taken = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        some += is_half(n->in[i].value);
    if (some == 0 || some == n->n_in + 1)
        return 0;
    for (uint32_t i = 0; i <= n->n_in; i++) {
        sn_value *v = i < n->n_in ? n->in[i].value : n->out[0];
        taken += is_half(v);
        v->fact.form.dtype = 0;
    }
    return taken;
}

/* What comes from the file as f16 may go on as that to those that read it plain, whatever they
 * round it to. */
static bool goes_on_as_f16(const sn_node *n, const sn_pass_env *env)
{
    const sn_value *x = n->n_in > 0 ? n->in[0].value : NULL;
    return x && x->fact.type.dtype == SONDE_DTYPE_F16 && may_be_half(n, SONDE_DTYPE_F16, env) &&
           sn_layout_is_plain(n->out[0]->fact.form.layout);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (env->precision == SONDE_PRECISION_F32 || env->precision == SONDE_PRECISION_AUTO ||
        sn_ops_any(g, SN_OP_DATA_DEPENDENT | SN_OP_CONTROL | SN_OP_NONTENSOR))
        return SONDE_OK;
    const sn_dtype half =
        env->precision == SONDE_PRECISION_BF16 ? SONDE_DTYPE_BF16 : SONDE_DTYPE_F16;
    sn_graph_each (n, g) {
        const sn_dtype type = may_be_half(n, half, env) ? half
                              : goes_on_as_f16(n, env)  ? SONDE_DTYPE_F16
                                                        : (sn_dtype)0;
        if (!type)
            continue;
        n->out[0]->fact.form.dtype = (uint8_t)type;
        (*changes)++;
    }
    /* What one of them gives up, its neighbours may have to, too. */
    for (uint32_t taken = 1; taken > 0;) {
        taken = 0;
        sn_graph_each (n, g)
            if (ports(n, half, env) & SN_HALF_ALIKE)
                taken += make_alike(n);
        *changes -= taken;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_store_halves = {
    .name = "store-halves",
    .summary = "stores images between convolutions and pooling as bf16 (--precision bf16), or f16",
    .run = run,
};
