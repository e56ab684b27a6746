/* SPDX-License-Identifier: Apache-2.0 */
/* A mean over all spatial dims of an image is GlobalAveragePool, which reads images in blocks of
 * channels: no step brings the image back into the file's order first. Where the mean drops those
 * dims, a Flatten behind it does, which is a view. */
#include "passes/rewrite.h"

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

static bool is_spatial_mean(const sn_node *n)
{
    if (!sn_node_is(n, "ReduceMean") || n->n_out != 1 || !n->out[0] || !n->in[0].value ||
        !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32))
        return false;
    const sn_type *t = &n->in[0].value->fact.type;
    int64_t count = 0, axis;
    const int64_t *axes = axes_of(n, &count);
    unsigned reduced = 0, spatial = 0;
    if (t->rank < 4 || t->rank > 5 || !axes || count != t->rank - 2)
        return false;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&axis, axes + i, sizeof axis);
        axis += axis < 0 ? t->rank : 0;
        if (axis < 0 || axis >= t->rank)
            return false;
        reduced |= 1u << axis;
    }
    for (int i = 2; i < t->rank; i++) {
        spatial |= 1u << i;
        if (!sn_dim_known(t->dims[i]) || t->dims[i] < 1)
            return false;
    }
    return reduced == spatial;
}

static sonde_status add_flatten(sn_graph *g, sn_pass_env *env, sn_node *pool, sn_node *mean)
{
    sn_node *made;
    sn_value *v;
    SN_TRY(sn_graph_add_node(g, mean, "", "Flatten", mean->name, 1, 1, &made, env->err));
    SN_TRY(sn_graph_add_value(g, "", &v, env->err));
    made->opset = 13;
    sn_value_show_as(v, mean->out[0]);
    sn_node_set_output(made, 0, mean->out[0]);
    sn_node_set_output(pool, 0, v);
    sn_node_set_input(made, 0, v);
    SN_TRY(sn_node_inherit(g, made, mean, env->err));
    SN_TRY(sn_node_refresh(g, pool, env->err));
    return sn_node_refresh(g, made, env->err);
}

static sonde_status run(sn_graph *g, sn_pass_env *env, uint32_t *changes)
{
    sn_graph_each (n, g) {
        sn_node *pool;
        if (!is_spatial_mean(n))
            continue;
        SN_TRY(sn_graph_add_node(g, n, "", "GlobalAveragePool", n->name, 1, 1, &pool, env->err));
        pool->opset = 1;
        sn_node_set_input(pool, 0, n->in[0].value);
        if (sn_node_attr_int(n, "keepdims", 1)) {
            sn_node_set_output(pool, 0, n->out[0]);
            SN_TRY(sn_node_refresh(g, pool, env->err));
        } else {
            SN_TRY(add_flatten(g, env, pool, n));
        }
        SN_TRY(sn_graph_replace(g, &n, 1, pool, n, env->err));
        (*changes)++;
    }
    return SONDE_OK;
}

const sn_pass sn_pass_mean_pool = {
    .name = "mean-pool",
    .summary = "makes means over all spatial dims global pooling",
    .run = run,
    .bodies = true,
};
