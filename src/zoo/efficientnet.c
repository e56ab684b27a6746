/* SPDX-License-Identifier: Apache-2.0 */
/* EfficientNet (Tan and Le, "Rethinking Model Scaling for Convolutional Neural Networks", 2019) as
 * torchvision builds it: inverted residuals as in MobileNet V2, with SiLU and a squeeze-and-excite
 * after the depthwise convolution. Stochastic depth does nothing in eval mode and leaves no trace.
 */
#include <stdio.h>

#include "zoo/cnn.h"

typedef struct stage {
    int64_t expansion, kernel, stride, out;
    int depth;
} stage;

typedef struct efficientnet_params {
    const stage *stages; /* up to one of depth 0 */
    int64_t stem, last, image, classes;
} efficientnet_params;

static sn_value *mb_conv(sn_builder *b, sn_value *x, const char *path, int64_t in, const stage *s,
                         int64_t stride)
{
    const int64_t wide = sn_cnn_divisible(in * s->expansion, 8);
    const sn_cnn_layer widen = {.conv = {.in = in, .out = wide, .kernel = 1, .stride = 1},
                                .act = SN_CNN_SILU};
    const sn_cnn_layer depthwise = {
        .conv = {.in = wide, .out = wide, .kernel = s->kernel, .stride = stride, .groups = wide},
        .act = SN_CNN_SILU};
    const bool residual = stride == 1 && in == s->out;
    const sn_cnn_layer narrow = {.conv = {.in = wide, .out = s->out, .kernel = 1, .stride = 1},
                                 .ends_branch = residual};
    char part[64];
    int child = 0;
    sn_value *y = x;
    if (wide != in) {
        snprintf(part, sizeof part, "%s.block.%d", path, child++);
        y = sn_cnn_conv_norm(b, y, part, &widen);
    }
    snprintf(part, sizeof part, "%s.block.%d", path, child++);
    y = sn_cnn_conv_norm(b, y, part, &depthwise);
    snprintf(part, sizeof part, "%s.block.%d", path, child++);
    y = sn_cnn_squeeze_excite(b, y, part, wide, in / 4 > 0 ? in / 4 : 1, SN_CNN_SILU);
    snprintf(part, sizeof part, "%s.block.%d", path, child);
    y = sn_cnn_conv_norm(b, y, part, &narrow);
    return residual ? sn_b_op(b, path, "Add", SN_IN(y, x), SN_NO_ATTRS) : y;
}

static sonde_status build(sn_model *m, uint64_t seed, const efficientnet_params *p,
                          sonde_error *err)
{
    sn_builder b;
    sn_value *x = sn_cnn_begin(&b, m, seed, p->image, err);
    int64_t in = p->stem;
    char path[32];
    x = sn_cnn_conv_norm(&b, x, "features.0",
                         &(sn_cnn_layer){.conv = {.in = 3, .out = in, .kernel = 3, .stride = 2},
                                         .act = SN_CNN_SILU});
    int child = 1;
    for (; p->stages[child - 1].depth; child++)
        for (int i = 0; i < p->stages[child - 1].depth; i++) {
            const stage *s = &p->stages[child - 1];
            snprintf(path, sizeof path, "features.%d.%d", child, i);
            x = mb_conv(&b, x, path, in, s, i == 0 ? s->stride : 1);
            in = s->out;
        }
    snprintf(path, sizeof path, "features.%d", child);
    x = sn_cnn_conv_norm(
        &b, x, path,
        &(sn_cnn_layer){.conv = {.in = in, .out = p->last, .kernel = 1, .stride = 1},
                        .act = SN_CNN_SILU});
    return sn_cnn_end(&b, x, "avgpool", "classifier.1", p->last, p->classes);
}

sonde_status sn_zoo_build_efficientnet_b0(sn_model *m, uint64_t seed, sonde_error *err)
{
    static const stage stages[] = {
        {1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},  {6, 3, 2, 80, 3},
        {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}, {0}};
    return build(m, seed, &(efficientnet_params){stages, 32, 1280, 224, 1000}, err);
}

sonde_status sn_zoo_build_tiny_efficientnet(sn_model *m, uint64_t seed, sonde_error *err)
{
    static const stage stages[] = {{1, 3, 1, 8, 1}, {6, 3, 2, 8, 2}, {6, 5, 2, 16, 2}, {0}};
    return build(m, seed, &(efficientnet_params){stages, 8, 64, 32, 10}, err);
}
