/* SPDX-License-Identifier: Apache-2.0 */
/* Weights times a factor per place of an axis, which nobody multiplies before they are packed or
 * made readable. */
#include "passes/rewrite.h"

sonde_status sn_pass_scale_weights(sn_graph *g, sn_pass_env *env, sn_node *n, uint32_t i, int axis,
                                   const double *scale)
{
    sn_value *old = n->in[i].value, *v;
    if (!sn_value_is_dtype(old, SONDE_DTYPE_F32)) { /* rounded once more they would be worse */
        SN_TRY(sn_pass_widen(g, env, old, &old));
        n->narrow_weights = false;
    }
    if (old->fact.data->scale && old->fact.data->scale_axis != axis)
        SN_TRY(sn_value_make_readable(g, old, env->buffers, env->err));
    const sn_tensor *w = old->fact.data;
    const int64_t places = w->dims[axis];
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    double *product = SN_NEW_N(g->arena, double, (size_t)places);
    const char *name = sn_arena_printf(g->arena, "%s#%zu", old->name, g->values.n);
    if (!t || !product || !name)
        return sn_fail_memory(env->err, (size_t)places * sizeof *product);
    for (int64_t c = 0; c < places; c++)
        product[c] = scale[c] * (w->scale ? w->scale[c] : 1.0);
    *t = *w;
    t->scale = product;
    t->scale_axis = (uint8_t)axis;
    SN_TRY(sn_graph_add_constant(g, old->name[0] ? name : "", t, &v, env->err));
    sn_value_show_as(v, old);
    sn_node_set_input(n, i, v);
    return SONDE_OK;
}
