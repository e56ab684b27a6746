/* SPDX-License-Identifier: Apache-2.0 */
/* A scale and a shift per output channel, moved into a convolution's weights and bias. Computed in
 * double, rounded once. */
#include <string.h>

#include "passes/rewrite.h"

static const sn_tensor *const_f32(const sn_value *v)
{
    if (!v || !sn_value_is_const(v))
        return NULL;
    const sn_tensor *t = v->fact.data;
    return t->dtype == SONDE_DTYPE_F32 && sn_tensor_is_plain(t) ? t : NULL;
}

int64_t sn_conv_channels(const sn_node *n)
{
    if (!sn_node_is(n, "Conv") && !sn_node_is_internal(n, "FusedConv"))
        return 0;
    const sn_value *v = n->n_in > 1 ? n->in[1].value : NULL;
    const sn_tensor *w = v && sn_value_is_const(v) && sn_value_is_weight(v) ? v->fact.data : NULL;
    return w && sn_tensor_is_plain(w) && w->rank >= 3 && sn_tensor_count(w) > 0 ? w->dims[0] : 0;
}

/* The same weights times `scale`, which nobody multiplies before they are packed or made readable.
 */
static sonde_status scale_weights(sn_graph *g, sn_pass_env *env, sn_node *n, const double *scale)
{
    sn_value *old = n->in[1].value;
    if (!sn_value_is_dtype(old, SONDE_DTYPE_F32)) { /* rounded once more they would be worse */
        SN_TRY(sn_pass_widen(g, env, old, &old));
        n->narrow_weights = false;
    }
    const sn_tensor *w = old->fact.data;
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    double *product = SN_NEW_N(g->arena, double, (size_t)w->dims[0]);
    const char *name = sn_arena_printf(g->arena, "%s#%zu", old->name, g->values.n);
    if (!t || !product || !name)
        return sn_fail_memory(env->err, (size_t)w->dims[0] * sizeof *product);
    for (int64_t c = 0; c < w->dims[0]; c++)
        product[c] = scale[c] * (w->scale ? w->scale[c] : 1.0);
    *t = *w;
    t->scale = product;
    sn_value *v;
    SN_TRY(sn_graph_add_constant(g, old->name[0] ? name : "", t, &v, env->err));
    sn_value_show_as(v, old);
    sn_node_set_input(n, 1, v);
    return SONDE_OK;
}

sonde_status sn_conv_scale_shift(sn_graph *g, sn_pass_env *env, sn_node *n, const double *scale,
                                 const double *shift, const sn_value *from, bool *done)
{
    *done = false;
    int64_t channels = sn_conv_channels(n);
    sn_value *bias_value = n->n_in > 2 ? n->in[2].value : NULL;
    if (bias_value)
        SN_TRY(sn_value_make_readable(g, bias_value, env->buffers, env->err));
    const sn_tensor *w = channels ? n->in[1].value->fact.data : NULL, *b = const_f32(bias_value);
    if (!w || (bias_value && (!b || sn_tensor_count(b) != channels)))
        return SONDE_OK;
    if (scale)
        SN_TRY(scale_weights(g, env, n, scale));
    sn_value *v;
    void *data;
    const char *name = bias_value ? bias_value->name : n->out[0]->name;
    SN_TRY(sn_pass_constant(g, env, name, SONDE_DTYPE_F32, &channels, 1, &v, &data));
    SN_TRY(sn_value_show_all(g, v, (const sn_value *[]){bias_value, from}, 2, env->err));
    for (int64_t c = 0; c < channels; c++) {
        double old = b ? (double)((const float *)b->data)[c] : 0.0;
        ((float *)data)[c] = (float)(old * (scale ? scale[c] : 1.0) + shift[c]);
    }
    if (n->n_in > 2)
        sn_node_set_input(n, 2, v);
    else
        SN_TRY(sn_node_add_input(g, n, v, env->err));
    *done = true;
    return SONDE_OK;
}
