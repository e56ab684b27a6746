/* SPDX-License-Identifier: Apache-2.0 */
/* MobileNet V2 (Sandler et al., "Inverted Residuals and Linear Bottlenecks", 2018) as torchvision
 * builds it: a 1×1 convolution widens, a depthwise 3×3 follows, a 1×1 without activation narrows,
 * and narrow ends of equal shape are added. */
#include <stdio.h>

#include "zoo/cnn.h"

typedef struct stage {
    int64_t expansion, out;
    int depth;
    int64_t stride;
} stage;

typedef struct mobilenet_params {
    const stage *stages; /* up to one of depth 0 */
    int64_t stem, last, image, classes;
} mobilenet_params;

static sn_value *inverted_residual(sn_builder *b, sn_value *x, const char *path, int64_t in,
                                   const stage *s, int64_t stride)
{
    const int64_t wide = in * s->expansion;
    const sn_cnn_layer widen = {.conv = {.in = in, .out = wide, .kernel = 1, .stride = 1},
                                .act = SN_CNN_RELU6};
    const sn_cnn_layer depthwise = {
        .conv = {.in = wide, .out = wide, .kernel = 3, .stride = stride, .groups = wide},
        .act = SN_CNN_RELU6};
    const bool residual = stride == 1 && in == s->out;
    const sn_cnn_layer narrow = {.conv = {.in = wide, .out = s->out, .kernel = 1, .stride = 1},
                                 .ends_branch = residual};
    char part[64];
    int child = 0;
    sn_value *y = x;
    if (s->expansion != 1) {
        snprintf(part, sizeof part, "%s.conv.%d", path, child++);
        y = sn_cnn_conv_norm(b, y, part, &widen);
    }
    snprintf(part, sizeof part, "%s.conv.%d", path, child++);
    y = sn_cnn_conv_norm(b, y, part, &depthwise);
    snprintf(part, sizeof part, "%s.conv.%d", path, child++);
    y = sn_b_conv(b, y, part, &narrow.conv);
    snprintf(part, sizeof part, "%s.conv.%d", path, child);
    y = sn_cnn_norm(b, y, part, &narrow);
    return residual ? sn_b_op(b, path, "Add", SN_IN(x, y), SN_NO_ATTRS) : y;
}

static sonde_status build(sn_model *m, uint64_t seed, const mobilenet_params *p, sonde_error *err)
{
    sn_builder b;
    sn_value *x = sn_cnn_begin(&b, m, seed, p->image, err);
    int64_t in = p->stem;
    int child = 0;
    char path[32];
    x = sn_cnn_conv_norm(&b, x, "features.0",
                         &(sn_cnn_layer){.conv = {.in = 3, .out = in, .kernel = 3, .stride = 2},
                                         .act = SN_CNN_RELU6});
    for (const stage *s = p->stages; s->depth; s++)
        for (int i = 0; i < s->depth; i++) {
            snprintf(path, sizeof path, "features.%d", ++child);
            x = inverted_residual(&b, x, path, in, s, i == 0 ? s->stride : 1);
            in = s->out;
        }
    snprintf(path, sizeof path, "features.%d", ++child);
    x = sn_cnn_conv_norm(
        &b, x, path,
        &(sn_cnn_layer){.conv = {.in = in, .out = p->last, .kernel = 1, .stride = 1},
                        .act = SN_CNN_RELU6});
    return sn_cnn_end(&b, x, "", "classifier.1", p->last, p->classes);
}

sonde_status sn_zoo_build_mobilenet_v2(sn_model *m, uint64_t seed, sonde_error *err)
{
    static const stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2},  {6, 64, 4, 2},
                                   {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}, {0}};
    return build(m, seed, &(mobilenet_params){stages, 32, 1280, 224, 1000}, err);
}

sonde_status sn_zoo_build_tiny_mobilenet(sn_model *m, uint64_t seed, sonde_error *err)
{
    static const stage stages[] = {{1, 8, 1, 1}, {6, 12, 2, 2}, {6, 16, 2, 2}, {0}};
    return build(m, seed, &(mobilenet_params){stages, 8, 64, 32, 10}, err);
}
