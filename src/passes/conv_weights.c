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
    return t->dtype == SONDE_DTYPE_F32 && !t->pack && !t->block ? t : NULL;
}

int64_t sn_conv_channels(const sn_node *n)
{
    if (!sn_node_is(n, "Conv") && !sn_node_is_internal(n, "FusedConv"))
        return 0;
    const sn_tensor *w = n->n_in > 1 ? const_f32(n->in[1].value) : NULL;
    return w && w->rank >= 3 && sn_tensor_count(w) > 0 ? w->dims[0] : 0;
}

typedef struct scaling {
    const sn_tensor *w;
    float *dst;
    int64_t each; /* weights of one channel */
    const double *scale;
} scaling;

static void scale_channel(void *arg, size_t channel, int worker)
{
    const scaling *s = arg;
    const int64_t first = (int64_t)channel * s->each;
    (void)worker;
    for (int64_t i = first; i < first + s->each; i++) /* where they lie, perhaps misaligned */
        s->dst[i] = (float)((double)sn_read_f32(s->w, i) * s->scale[channel]);
}

sonde_status sn_conv_scale_shift(sn_graph *g, sn_pass_env *env, sn_node *n, const double *scale,
                                 const double *shift, bool *done)
{
    *done = false;
    int64_t channels = sn_conv_channels(n);
    sn_value *bias_value = n->n_in > 2 ? n->in[2].value : NULL;
    if (bias_value)
        SN_TRY(sn_value_align(g, bias_value, env->buffers, env->err));
    const sn_tensor *w = channels ? n->in[1].value->fact.data : NULL, *b = const_f32(bias_value);
    if (!w || (bias_value && (!b || sn_tensor_count(b) != channels)))
        return SONDE_OK;
    sn_value *v;
    void *data;
    if (scale) {
        SN_TRY(sn_pass_constant(g, env, n->in[1].value->name, SONDE_DTYPE_F32, w->dims, w->rank, &v,
                                &data));
        scaling job = {w, data, sn_tensor_count(w) / channels, scale};
        sn_pool_run(env->ctx->pool, (size_t)channels, scale_channel, &job);
        sn_node_set_input(n, 1, v);
    }
    const char *name = bias_value ? bias_value->name : n->out[0]->name;
    SN_TRY(sn_pass_constant(g, env, name, SONDE_DTYPE_F32, &channels, 1, &v, &data));
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
