/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products with what follows them: a constant factor goes into the weights, the Add of a
 * constant row becomes a bias, then a residual and an activation an epilogue; the node becomes
 * sonde.FusedGemm. */
#include <string.h>

#include "passes/epilogue.h"

static bool is_f32_product(const sn_node *n)
{
    return n->n_in >= 2 && n->n_out == 1 && n->out[0] && n->in[0].value && n->in[1].value &&
           sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) &&
           sn_value_is_weight(n->in[1].value) && sn_value_is_dtype(n->out[0], SONDE_DTYPE_F32);
}

/* A MatMul by constant weights of two dims, any Gemm, or a FusedGemm with nothing fused yet. */
static bool is_candidate(const sn_node *n)
{
    if (sn_node_is(n, "Gemm"))
        return is_f32_product(n);
    if (sn_node_is_internal(n, "FusedGemm"))
        return is_f32_product(n) && n->n_in <= 3 && !sn_node_attr(n, "activation");
    return sn_node_is(n, "MatMul") && is_f32_product(n) && sn_value_is_const(n->in[1].value) &&
           n->in[1].value->fact.data->rank == 2 && n->in[0].value->fact.type.rank >= 2;
}

static sn_value *addend(const sn_node *n)
{
    return n->n_in > 2 ? n->in[2].value : NULL;
}

/* A constant f32 tensor whose numbers can be looked at. */
static bool is_numbers(const sn_value *v)
{
    return v && sn_value_is_const(v) && v->fact.data->dtype == SONDE_DTYPE_F32 &&
           sn_tensor_is_plain(v->fact.data);
}

/* n takes what `last`, the only reader of its output, makes. */
static sonde_status take(sn_graph *g, sn_pass_env *env, sn_node *n, sn_node *last)
{
    SN_TRY(sn_node_add_post_op(g, n, last->op_type, env->err));
    sn_node_set_output(n, 0, last->out[0]);
    return sn_graph_replace(g, &last, 1, n, n, env->err);
}

/* ------------------------------------------------------------------ bias */

/* The constant that is added to every row, with the columns' elements and nothing else. */
static sn_value *match_bias(const sn_node *n)
{
    const sn_node *add = sn_value_only_reader(n->out[0]);
    const sn_type *out = &n->out[0]->fact.type;
    if (addend(n) || sn_node_attr_float(n, "beta", 1.0f) != 1.0f || !add || !sn_node_is(add, "Add"))
        return NULL;
    sn_value *bias = sn_node_other_input(add, n->out[0]);
    if (!is_numbers(bias) || bias->fact.data->rank < 1 || out->rank < 1)
        return NULL;
    const sn_tensor *t = bias->fact.data;
    const sn_dim columns = out->dims[out->rank - 1];
    bool fits =
        t->dims[t->rank - 1] == columns && sn_tensor_count(t) == columns && t->rank <= out->rank;
    return fits ? bias : NULL;
}

static sonde_status fuse_bias(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *fused)
{
    sn_value *bias = match_bias(n);
    if (!bias)
        return SONDE_OK;
    SN_TRY(sn_pass_flat(g, env, bias, &bias));
    if (n->n_in > 2)
        sn_node_set_input(n, 2, bias);
    else
        SN_TRY(sn_node_add_input(g, n, bias, env->err));
    (*fused)++;
    return take(g, env, n, sn_value_only_reader(n->out[0]));
}

/* ------------------------------------------------------------------ factor */

/* A Mul or Div by one constant number behind the product. */
static bool match_factor(const sn_node *n, double *factor)
{
    const sn_node *next = sn_value_only_reader(n->out[0]);
    float x;
    if (!next)
        return false;
    /* Which operator reads it comes first: not every one has an output 0. */
    bool div = sn_node_is(next, "Div") && next->n_in == 2 && next->in[0].value == n->out[0];
    if ((!div && !sn_node_is(next, "Mul")) ||
        n->out[0]->fact.type.rank != next->out[0]->fact.type.rank ||
        !sn_value_scalar_f32(sn_node_other_input(next, n->out[0]), &x) || (div && x == 0.0f))
        return false;
    *factor = div ? 1.0 / (double)x : (double)x;
    return true;
}

static sonde_status scale_weights(sn_graph *g, sn_pass_env *env, sn_node *n, double factor)
{
    const sn_tensor *w = n->in[1].value->fact.data;
    const int axis = w->scale ? w->scale_axis : 0;
    const size_t bytes = (size_t)w->dims[axis] * sizeof(double);
    double *scale = sn_alloc(g->alloc, bytes);
    if (!scale)
        return sn_fail_memory(env->err, bytes);
    for (int64_t i = 0; i < w->dims[axis]; i++)
        scale[i] = factor;
    const sonde_status st = sn_pass_scale_weights(g, env, n, 1, axis, scale);
    sn_free(g->alloc, scale, bytes);
    return st;
}

static sonde_status scale_addend(sn_graph *g, sn_pass_env *env, sn_node *n, double factor)
{
    const sn_tensor *old = addend(n)->fact.data;
    sn_value *v;
    void *data;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_F32, old->dims, old->rank, &v, &data));
    sn_value_show_as(v, addend(n));
    for (int64_t i = 0; i < sn_tensor_count(old); i++)
        ((float *)data)[i] = (float)((double)sn_read_f32(old, i) * factor);
    sn_node_set_input(n, 2, v);
    return SONDE_OK;
}

/* Only weights nobody else reads are scaled: they would be packed twice. */
static sonde_status fuse_factor(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *fused)
{
    double factor;
    const sn_value *w = n->in[1].value;
    if (!is_numbers(w) || w->n_uses != 1 || w->n_outputs || w->fact.data->rank != 2 ||
        sn_tensor_count(w->fact.data) == 0 || (addend(n) && !is_numbers(addend(n))) ||
        !match_factor(n, &factor))
        return SONDE_OK;
    SN_TRY(scale_weights(g, env, n, factor));
    if (addend(n))
        SN_TRY(scale_addend(g, env, n, factor));
    (*fused)++;
    return take(g, env, n, sn_value_only_reader(n->out[0]));
}

/* ------------------------------------------------------------------ all of it */

static sonde_status fuse(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t *order,
                         uint32_t *changes)
{
    uint32_t fused = 0;
    SN_TRY(fuse_factor(g, env, n, &fused));
    SN_TRY(fuse_bias(g, env, n, &fused));
    SN_TRY(fuse_factor(g, env, n, &fused));
    sn_epilogue e;
    sn_epilogue_match(n, order, is_candidate, true, &e);
    *changes += fused + (e.n_nodes > 0);
    if (!e.n_nodes && !fused)
        return SONDE_OK;
    return sn_epilogue_apply(g, env, n, "FusedGemm", 3, &e, order);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    if (!sn_op_find("sonde", "FusedGemm", 1, NULL))
        return SONDE_OK;
    return sn_epilogue_walk(g, env, is_candidate, fuse, changes);
}

const sn_pass sn_pass_fuse_gemm = {
    .name = "fuse-gemm",
    .summary = "fuses scale, bias, residual and activation into matrix products",
    .run = run,
    .bodies = true,
    .reads_weights = true,
};
