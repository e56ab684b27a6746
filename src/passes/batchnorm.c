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

/* Of `n` channels from `first` on. */
static bool factors_of(const sn_node *bn, int64_t first, int64_t n, double *scale, double *shift)
{
    enum { PIECE = 64, PARAMS = 4 };
    const double epsilon = (double)sn_node_attr_float(bn, "epsilon", 1e-5f);
    float gamma[PIECE], beta[PIECE], mean[PIECE], var[PIECE];
    float *const part[PARAMS] = {gamma, beta, mean, var};
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = n - at < PIECE ? n - at : PIECE;
        for (uint32_t i = 0; i < PARAMS; i++)
            sn_tensor_read(bn->in[i + 1].value->fact.data, first + at, count, part[i]);
        for (int64_t c = 0; c < count; c++) {
            if (!((double)var[c] + epsilon > 0.0))
                return false;
            scale[at + c] = (double)gamma[c] / sqrt((double)var[c] + epsilon);
            shift[at + c] = (double)beta[c] - (double)mean[c] * scale[at + c];
        }
    }
    return true;
}

bool sn_batchnorm_channel(const sn_node *bn, int64_t c, double *scale, double *shift)
{
    return factors_of(bn, c, 1, scale, shift);
}

bool sn_batchnorm_factors(const sn_node *bn, int64_t channels, double *scale, double *shift)
{
    return factors_of(bn, 0, channels, scale, shift);
}
