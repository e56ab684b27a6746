/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet (He et al., "Deep Residual Learning for Image Recognition", 2015) as torchvision builds
 * it: basic blocks of two 3×3 convolutions, or bottlenecks of 1×1, 3×3, 1×1 whose stride is on the
 * 3×3. A block calls its one ReLU module several times, which torch.onnx numbers: relu, relu_1 … */
#include <stdio.h>

#include "zoo/cnn.h"

typedef struct resnet_params {
    bool bottleneck;
    int depths[4];
    int64_t width, image, classes;
} resnet_params;

enum { EXPANSION = 4 };

/* Convolution `index` of a block: conv1 and bn1, and relu, relu_1 … unless it ends the branch. */
static sn_value *layer(sn_builder *b, sn_value *x, const char *path, int index,
                       const sn_conv_spec *conv, bool last)
{
    char part[64];
    snprintf(part, sizeof part, "%s.conv%d", path, index + 1);
    x = sn_b_conv(b, x, part, conv);
    snprintf(part, sizeof part, "%s.bn%d", path, index + 1);
    x = sn_cnn_norm(b, x, part, &(sn_cnn_layer){.conv = *conv, .ends_branch = last});
    if (last)
        return x;
    snprintf(part, sizeof part, index ? "%s.relu_%d" : "%s.relu", path, index);
    return sn_cnn_activate(b, x, part, SN_CNN_RELU);
}

static sn_value *block(sn_builder *b, sn_value *x, const char *path, bool bottleneck, int64_t in,
                       int64_t width, int64_t stride)
{
    const int64_t out = bottleneck ? width * EXPANSION : width;
    const sn_conv_spec basic[] = {{.in = in, .out = width, .kernel = 3, .stride = stride},
                                  {.in = width, .out = width, .kernel = 3, .stride = 1}};
    const sn_conv_spec narrow[] = {{.in = in, .out = width, .kernel = 1, .stride = 1},
                                   {.in = width, .out = width, .kernel = 3, .stride = stride},
                                   {.in = width, .out = out, .kernel = 1, .stride = 1}};
    const int n = bottleneck ? 3 : 2;
    sn_value *y = x;
    for (int i = 0; i < n; i++)
        y = layer(b, y, path, i, bottleneck ? &narrow[i] : &basic[i], i == n - 1);
    char part[64];
    if (in != out || stride != 1) {
        snprintf(part, sizeof part, "%s.downsample", path);
        x = sn_cnn_conv_norm(
            b, x, part,
            &(sn_cnn_layer){.conv = {.in = in, .out = out, .kernel = 1, .stride = stride}});
    }
    y = sn_b_op(b, path, "Add", SN_IN(y, x), SN_NO_ATTRS);
    snprintf(part, sizeof part, "%s.relu_%d", path, n - 1);
    return sn_cnn_activate(b, y, part, SN_CNN_RELU);
}

static sonde_status build(sn_model *m, uint64_t seed, const resnet_params *p, sonde_error *err)
{
    sn_builder b;
    sn_value *x = sn_cnn_begin(&b, m, seed, p->image, err);
    int64_t width = p->width, in = width;
    const sn_cnn_layer stem = {.conv = {.in = 3, .out = in, .kernel = 7, .stride = 2}};
    x = sn_b_conv(&b, x, "conv1", &stem.conv);
    x = sn_cnn_norm(&b, x, "bn1", &stem);
    x = sn_cnn_activate(&b, x, "relu", SN_CNN_RELU);
    x = sn_b_op(&b, "maxpool", "MaxPool", SN_IN(x),
                SN_ATTRS(sn_a_int("ceil_mode", 0),
                         sn_a_ints("dilations", (const int64_t[]){1, 1}, 2),
                         sn_a_ints("kernel_shape", (const int64_t[]){3, 3}, 2),
                         sn_a_ints("pads", (const int64_t[]){1, 1, 1, 1}, 4),
                         sn_a_ints("strides", (const int64_t[]){2, 2}, 2)));
    for (int k = 0; k < 4; k++, width *= 2)
        for (int i = 0; i < p->depths[k]; i++) {
            char path[32];
            snprintf(path, sizeof path, "layer%d.%d", k + 1, i);
            x = block(&b, x, path, p->bottleneck, in, width, k > 0 && i == 0 ? 2 : 1);
            in = p->bottleneck ? width * EXPANSION : width;
        }
    return sn_cnn_end(&b, x, "avgpool", "fc", in, p->classes);
}

/* torchvision.models.resnet: blocks of each of the four layers, first width, image, classes.
 */
#define RESNET(id, ...)                                                                            \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err)                   \
    {                                                                                              \
        return build(m, seed, &(const resnet_params){__VA_ARGS__}, err);                           \
    }
RESNET(resnet18, false, {2, 2, 2, 2}, 64, 224, 1000)
RESNET(resnet34, false, {3, 4, 6, 3}, 64, 224, 1000)
RESNET(resnet50, true, {3, 4, 6, 3}, 64, 224, 1000)
RESNET(resnet101, true, {3, 4, 23, 3}, 64, 224, 1000)
RESNET(resnet152, true, {3, 8, 36, 3}, 64, 224, 1000)
RESNET(tiny_resnet, true, {1, 2, 1, 1}, 8, 32, 10)
