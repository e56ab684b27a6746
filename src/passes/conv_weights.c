/* SPDX-License-Identifier: Apache-2.0 */
/* A scale and a shift per output or input channel, moved into a convolution's weights and bias.
 * Computed in double, rounded once. */
#include <string.h>

#include "passes/rewrite.h"

static const sn_tensor *const_f32(const sn_value *v)
{
    if (!v || !sn_value_is_const(v))
        return NULL;
    const sn_tensor *t = v->fact.data;
    return t->dtype == SONDE_DTYPE_F32 && sn_tensor_is_plain(t) ? t : NULL;
}

/* The axis of the weights that is the output channels; -1: none is. A transposed convolution has
 * them per group, behind the input channels. */
static int channel_axis(const sn_node *n, const sn_tensor *w)
{
    if (!sn_node_is(n, "ConvTranspose"))
        return 0;
    const int64_t group = sn_node_attr_int(n, "group", 1);
    return group == 1 ? 1 : w->dims[1] == 1 && group == w->dims[0] ? 0 : -1;
}

int64_t sn_conv_channels(const sn_node *n)
{
    if (!sn_node_is(n, "Conv") && !sn_node_is_internal(n, "FusedConv") &&
        !sn_node_is(n, "ConvTranspose"))
        return 0;
    const sn_value *v = n->n_in > 1 ? n->in[1].value : NULL;
    const sn_tensor *w = v && sn_value_is_const(v) && sn_value_is_weight(v) ? v->fact.data : NULL;
    if (!w || !sn_tensor_is_plain(w) || w->rank < 3 || sn_tensor_count(w) <= 0)
        return 0;
    const int axis = channel_axis(n, w);
    return axis < 0 ? 0 : w->dims[axis];
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
        SN_TRY(sn_pass_scale_weights(g, env, n, 1, channel_axis(n, w), scale));
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

/* ------------------------------------------------------------------ input channels */

int64_t sn_conv_input_channels(const sn_node *n)
{
    if (!sn_node_is(n, "Conv") || !sn_conv_channels(n) || !n->in[0].value || !n->out[0] ||
        !sn_value_is_dtype(n->in[0].value, SONDE_DTYPE_F32) || n->in[1].value->n_uses != 1)
        return 0;
    const sn_tensor *w = n->in[1].value->fact.data;
    const int64_t group = sn_node_attr_int(n, "group", 1);
    return group == 1 ? w->dims[1] : w->dims[1] == 1 && w->dims[0] % group == 0 ? group : 0;
}

static bool pads(const sn_node *n)
{
    const sn_attr *a = sn_node_attr(n, "pads"), *how = sn_node_attr(n, "auto_pad");
    for (size_t i = 0; a && a->kind == SN_ATTR_INTS && i < a->n; i++)
        if (a->ints[i] != 0)
            return true;
    return how && !(how->kind == SN_ATTR_STRING && how->s.size > 0 && how->s.data[0] != 'S');
}

/* sum[m] = the sum of shift[c] · w[m][c][taps]. */
static sonde_status sum_shifts(sn_graph *g, sn_pass_env *env, const sn_tensor *w, int64_t channels,
                               const double *shift, double *sum)
{
    const int64_t each = sn_tensor_count(w) / w->dims[0], taps = each / w->dims[1];
    const int64_t multiplier = w->dims[0] / channels; /* of a depthwise one */
    const size_t bytes = (size_t)each * sizeof(float);
    float *filter = sn_alloc(g->alloc, bytes);
    if (!filter)
        return sn_fail_memory(env->err, bytes);
    for (int64_t m = 0; m < w->dims[0]; m++) {
        sn_tensor_read(w, m * each, each, filter);
        sum[m] = 0.0;
        for (int64_t i = 0; i < each; i++)
            sum[m] += shift[w->dims[1] == channels ? i / taps : m / multiplier] * (double)filter[i];
    }
    sn_free(g->alloc, filter, bytes);
    return SONDE_OK;
}

/* Factors of the input channels as factors of the weights along `axis`. */
static sonde_status scale_filters(sn_graph *g, sn_pass_env *env, sn_node *n, int64_t channels,
                                  const double *scale)
{
    const sn_tensor *w = n->in[1].value->fact.data;
    if (w->dims[1] == channels)
        return sn_pass_scale_weights(g, env, n, 1, 1, scale);
    const size_t bytes = (size_t)w->dims[0] * sizeof(double);
    double *each = sn_alloc(g->alloc, bytes);
    if (!each)
        return sn_fail_memory(env->err, bytes);
    for (int64_t m = 0; m < w->dims[0]; m++)
        each[m] = scale[m / (w->dims[0] / channels)];
    const sonde_status st = sn_pass_scale_weights(g, env, n, 1, 0, each);
    sn_free(g->alloc, each, bytes);
    return st;
}

sonde_status sn_conv_scale_input(sn_graph *g, sn_pass_env *env, sn_node *n, const double *scale,
                                 const double *shift, const sn_value *from, bool *done)
{
    const int64_t channels = sn_conv_input_channels(n);
    *done = !shift;
    if (!shift)
        return scale_filters(g, env, n, channels, scale);
    if (pads(n))
        return SONDE_OK;
    sn_value *w = n->in[1].value;
    if (!sn_value_is_dtype(w, SONDE_DTYPE_F32)) {
        SN_TRY(sn_pass_widen(g, env, w, &w));
        n->narrow_weights = false;
        sn_node_set_input(n, 1, w);
    }
    const size_t bytes = (size_t)w->fact.data->dims[0] * sizeof(double);
    double *sum = sn_alloc(g->alloc, bytes);
    if (!sum)
        return sn_fail_memory(env->err, bytes);
    sonde_status st = sum_shifts(g, env, w->fact.data, channels, shift, sum);
    if (st == SONDE_OK)
        st = sn_conv_scale_shift(g, env, n, NULL, sum, from, done);
    sn_free(g->alloc, sum, bytes);
    if (st != SONDE_OK || !*done)
        return st;
    SN_TRY(scale_filters(g, env, n, channels, scale));
    return sn_node_refresh(g, n, env->err);
}
