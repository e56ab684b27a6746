/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/batchnorm.h"

#include <math.h>

#include "passes/rewrite.h"

bool sn_batchnorm_is_constant(const sn_node *bn, int64_t channels)
{
    if (!sn_node_is(bn, "BatchNormalization") || bn->n_in < 5 || !bn->out[0])
        return false;
    if (sn_node_attr_int(bn, "training_mode", 0) ||
        (bn->opset < 9 && !sn_node_attr_int(bn, "spatial", 1)) ||
        (bn->opset < 7 && !sn_node_attr_int(bn, "is_test", 0)))
        return false;
    for (uint32_t o = 1; o < bn->n_out; o++)
        if (bn->out[o] && (bn->out[o]->n_uses || bn->out[o]->n_outputs))
            return false;
    for (uint32_t i = 1; i < 5; i++) {
        const sn_value *v = bn->in[i].value;
        if (!v || !sn_value_is_const(v) || v->fact.data->dtype != SONDE_DTYPE_F32 ||
            v->fact.data->pack || sn_tensor_count(v->fact.data) != channels)
            return false;
    }
    return true;
}

static double param(const sn_node *bn, uint32_t i, int64_t c)
{
    return (double)sn_read_f32(bn->in[i].value->fact.data, c);
}

bool sn_batchnorm_channel(const sn_node *bn, int64_t c, double *scale, double *shift)
{
    const double var = param(bn, 4, c) + (double)sn_node_attr_float(bn, "epsilon", 1e-5f);
    if (!(var > 0.0))
        return false;
    *scale = param(bn, 1, c) / sqrt(var);
    *shift = param(bn, 2, c) - param(bn, 3, c) * *scale;
    return true;
}

bool sn_batchnorm_factors(const sn_node *bn, int64_t channels, double *scale, double *shift)
{
    for (int64_t c = 0; c < channels; c++)
        if (!sn_batchnorm_channel(bn, c, &scale[c], &shift[c]))
            return false;
    return true;
}
