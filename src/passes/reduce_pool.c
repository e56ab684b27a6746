/* SPDX-License-Identifier: Apache-2.0 */
/* A mean or a maximum over spatial dims of an image is pooling, which reads images in blocks of
 * channels: no step brings the image back into the file's order first. Over all of them it is a
 * global pool, over some (the neighbours of each point, frequencies) a pool with a window as large
 * as these dims. Where the reduction drops its dims, a view behind the pool does. What lies plain
 * anyway stays a reduction: means over all dims of images with two or three spatial ones, which
 * mostly come from convolutions, are taken in any case, the others behind a convolution only. */
#include "passes/rewrite.h"

typedef struct reduction {
    bool max;
    unsigned axes, spatial; /* bits: dims that are reduced; all from 2 on */
} reduction;

/* The axes, from the attribute or a constant input; NULL: neither. */
static const int64_t *axes_of(const sn_node *n, int64_t *count)
{
    const sn_attr *a = sn_node_attr(n, "axes");
    const sn_value *v = n->n_in > 1 ? n->in[1].value : NULL;
    if (a && a->kind == SN_ATTR_INTS) {
        *count = (int64_t)a->n;
        return a->ints;
    }
    if (!v || !sn_value_is_const(v) || v->fact.data->dtype != SONDE_DTYPE_I64)
        return NULL;
    *count = sn_tensor_count(v->fact.data);
    return v->fact.data->data;
}

static bool is_convolution(const sn_node *n)
{
    return n &&
           (sn_node_is(n, "Conv") || sn_node_is(n, "ConvTranspose") ||
            sn_node_is_internal(n, "FusedConv") || sn_node_is_internal(n, "FusedConvTranspose"));
}

static bool match(const sn_node *n, reduction *r)
{
    *r = (reduction){.max = sn_node_is(n, "ReduceMax")};
    if ((!r->max && !sn_node_is(n, "ReduceMean")) || n->n_out != 1 || !n->out[0] ||
        !n->in[0].value || !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32))
        return false;
    const sn_type *t = &n->in[0].value->fact.type;
    int64_t count = 0, axis;
    const int64_t *axes = axes_of(n, &count);
    if (t->rank < 3 || t->rank > 5 || !axes || count < 1)
        return false;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&axis, axes + i, sizeof axis);
        axis += axis < 0 ? t->rank : 0;
        if (axis < 2 || axis >= t->rank || r->axes >> axis & 1)
            return false;
        r->axes |= 1u << axis;
    }
    for (int i = 2; i < t->rank; i++) {
        r->spatial |= 1u << i;
        if (!sn_dim_known(t->dims[i]) || t->dims[i] < 1)
            return false;
    }
    return (!r->max && r->axes == r->spatial && t->rank > 3) ||
           is_convolution(n->in[0].value->producer);
}

/* The window of a pool over some dims. */
static sonde_status set_window(sn_graph *g, sn_pass_env *env, sn_node *pool, const reduction *r)
{
    const sn_type *t = &pool->in[0].value->fact.type;
    const size_t n = (size_t)t->rank - 2;
    int64_t *kernel = SN_NEW_N(g->arena, int64_t, n);
    if (!kernel)
        return sn_fail_memory(env->err, n * sizeof *kernel);
    for (size_t i = 0; i < n; i++)
        kernel[i] = r->axes >> (i + 2) & 1 ? t->dims[i + 2] : 1;
    const sn_attr a = {.name = "kernel_shape", .kind = SN_ATTR_INTS, .n = n, .ints = kernel};
    return sn_node_set_attr(g, pool, &a, env->err);
}

/* The dims that Squeeze drops. */
static sonde_status add_axes(sn_graph *g, sn_pass_env *env, sn_node *squeeze, const reduction *r)
{
    int64_t axes[3], n = 0;
    sn_value *v;
    void *data;
    for (int i = 2; i < 5; i++)
        if (r->axes >> i & 1)
            axes[n++] = i;
    SN_TRY(sn_pass_constant(g, env, "", SONDE_DTYPE_I64, &n, 1, &v, &data));
    memcpy(data, axes, (size_t)n * sizeof *axes);
    return sn_node_add_input(g, squeeze, v, env->err);
}

/* Makes the result of `pool` what that of `old`, which drops dims, is. */
static sonde_status add_view(sn_graph *g, sn_pass_env *env, sn_node *pool, sn_node *old,
                             const reduction *r)
{
    const bool whole = r->axes == r->spatial;
    sn_node *made;
    sn_value *v;
    SN_TRY(sn_graph_add_node(g, old, "", whole ? "Flatten" : "Squeeze", old->name, 1, 1, &made,
                             env->err));
    SN_TRY(sn_graph_add_value(g, "", &v, env->err));
    made->opset = 13;
    sn_value_show_as(v, old->out[0]);
    sn_node_set_output(made, 0, old->out[0]);
    sn_node_set_output(pool, 0, v);
    sn_node_set_input(made, 0, v);
    if (!whole)
        SN_TRY(add_axes(g, env, made, r));
    SN_TRY(sn_node_inherit(g, made, old, env->err));
    SN_TRY(sn_node_refresh(g, pool, env->err));
    return sn_node_refresh(g, made, env->err);
}

static sonde_status replace(sn_graph *g, sn_pass_env *env, sn_node *n, const reduction *r)
{
    static const char *const types[2][2] = {{"AveragePool", "GlobalAveragePool"},
                                            {"MaxPool", "GlobalMaxPool"}};
    const bool whole = r->axes == r->spatial;
    sn_node *pool;
    SN_TRY(sn_graph_add_node(g, n, "", types[r->max][whole], n->name, 1, 1, &pool, env->err));
    pool->opset = whole ? 1 : 11;
    sn_node_set_input(pool, 0, n->in[0].value);
    if (!whole)
        SN_TRY(set_window(g, env, pool, r));
    if (sn_node_attr_int(n, "keepdims", 1)) {
        sn_node_set_output(pool, 0, n->out[0]);
        SN_TRY(sn_node_refresh(g, pool, env->err));
    } else {
        SN_TRY(add_view(g, env, pool, n, r));
    }
    return sn_graph_replace(g, &n, 1, pool, n, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    reduction r;
    sn_graph_each (n, g) {
        if (!match(n, &r))
            continue;
        SN_TRY(replace(g, env, n, &r));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_reduce_pool = {
    .name = "reduce-pool",
    .summary = "makes means and maxima over spatial dims pooling",
    .run = run,
    .bodies = true,
};
