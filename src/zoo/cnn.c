/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and ends of the image classifiers; the shapes are torchvision.ops.misc's. */
#include "zoo/cnn.h"

#include <stdio.h>

#include "zoo/moments.h"

enum { PATH = 160 };

sn_value *sn_cnn_activate(sn_builder *b, sn_value *x, const char *path, sn_cnn_act act)
{
    if (act == SN_CNN_LINEAR)
        return x;
    if (act == SN_CNN_RELU)
        return sn_b_op(b, path, "Relu", SN_IN(x), SN_NO_ATTRS);
    if (act == SN_CNN_RELU6) {
        sn_value *low = sn_b_scalar(b, path, 0.0f);
        sn_value *high = sn_b_scalar(b, path, 6.0f);
        return sn_b_op(b, path, "Clip", SN_IN(x, low, high), SN_NO_ATTRS);
    }
    sn_value *gate = sn_b_op(b, path, "Sigmoid", SN_IN(x), SN_NO_ATTRS);
    return sn_b_op(b, path, "Mul", SN_IN(x, gate), SN_NO_ATTRS);
}

sn_value *sn_cnn_norm(sn_builder *b, sn_value *x, const char *path, const sn_cnn_layer *l)
{
    return sn_b_batch_norm(b, x, path, l->conv.out, l->ends_branch ? 0.4f : 1.0f);
}

sn_value *sn_cnn_conv_norm(sn_builder *b, sn_value *x, const char *path, const sn_cnn_layer *l)
{
    char child[PATH];
    snprintf(child, sizeof child, "%s.0", path);
    x = sn_b_conv(b, x, child, &l->conv);
    snprintf(child, sizeof child, "%s.1", path);
    x = sn_cnn_norm(b, x, child, l);
    snprintf(child, sizeof child, "%s.2", path);
    return sn_cnn_activate(b, x, child, l->act);
}

sn_value *sn_cnn_squeeze_excite(sn_builder *b, sn_value *x, const char *path, int64_t channels,
                                int64_t squeezed, sn_cnn_act act)
{
    const sn_conv_spec convs[2] = {
        {.in = channels, .out = squeezed, .kernel = 1, .stride = 1, .bias = true},
        {.in = squeezed, .out = channels, .kernel = 1, .stride = 1, .bias = true}};
    char part[PATH];
    snprintf(part, sizeof part, "%s.avgpool", path);
    sn_value *s = sn_b_op(b, part, "GlobalAveragePool", SN_IN(x), SN_NO_ATTRS);
    snprintf(part, sizeof part, "%s.fc1", path);
    s = sn_b_conv(b, s, part, &convs[0]);
    snprintf(part, sizeof part, "%s.activation", path);
    s = sn_cnn_activate(b, s, part, act);
    snprintf(part, sizeof part, "%s.fc2", path);
    s = sn_b_conv(b, s, part, &convs[1]);
    snprintf(part, sizeof part, "%s.scale_activation", path);
    s = sn_b_op(b, part, "Sigmoid", SN_IN(s), SN_NO_ATTRS);
    return sn_b_op(b, path, "Mul", SN_IN(s, x), SN_NO_ATTRS);
}

int64_t sn_cnn_divisible(int64_t v, int64_t divisor)
{
    int64_t n = (v + divisor / 2) / divisor * divisor;
    if (n < divisor)
        n = divisor;
    if (n * 10 < v * 9)
        n += divisor;
    return n;
}

sn_value *sn_cnn_begin(sn_builder *b, sn_model *m, uint64_t seed, int64_t size, sonde_error *err)
{
    sn_b_init(b, m, 17, seed, err);
    const sn_dim batch = sn_b_symbol(b, "batch", 1);
    return sn_b_input(b, "input", SONDE_DTYPE_F32, (const sn_dim[]){batch, 3, size, size}, 4);
}

sonde_status sn_cnn_end(sn_builder *b, sn_value *x, const char *pool, const char *fc,
                        int64_t channels, int64_t classes)
{
    x = sn_b_op(b, pool, "GlobalAveragePool", SN_IN(x), SN_NO_ATTRS);
    x = sn_b_op(b, "", "Flatten", SN_IN(x), SN_ATTRS(sn_a_int("axis", 1)));
    x = sn_b_linear(b, x, fc, channels, classes);
    if (!sn_b_ok(b))
        return *b->status;
    const sn_dim batch = b->graph->inputs.data[0]->fact.type.dims[0];
    sn_b_output(b, x, "output", SONDE_DTYPE_F32, (const sn_dim[]){batch, classes}, 2);
    return sn_b_ok(b) ? sn_moments_fit_batchnorm(b->graph, b->err) : *b->status;
}
