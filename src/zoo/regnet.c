/* SPDX-License-Identifier: Apache-2.0 */
/* RegNet X and Y (Radosavovic et al., "Designing Network Design Spaces", 2020) as torchvision
 * builds them: block widths follow the line w_0 + w_a·i, quantised to powers of w_m and to whole
 * groups; each block is 1×1, grouped 3×3, 1×1 with a residual. In Y a squeeze-and-excite stands
 * before the last 1×1. */
#include <math.h>
#include <stdio.h>

#include "zoo/cnn.h"

typedef struct regnet_params {
    int depth, w_0;
    double w_a, w_m;
    int group_width;
    bool excite;
    int64_t stem, image, classes;
} regnet_params;

enum { MAX_STAGES = 8 };

typedef struct stage {
    int64_t width;
    int depth;
    int64_t groups;
    bool excite;
} stage;

static int plan_stages(const regnet_params *p, stage *stages)
{
    int n = 0;
    int64_t raw[MAX_STAGES] = {0};
    for (int i = 0; i < p->depth; i++) {
        const double capacity = nearbyint(log((p->w_0 + p->w_a * i) / p->w_0) / log(p->w_m));
        const int64_t width = (int64_t)nearbyint(p->w_0 * pow(p->w_m, capacity) / 8) * 8;
        if (n == 0 || raw[n - 1] != width)
            raw[n++] = width;
        const int64_t group = p->group_width < width ? p->group_width : width;
        stage *s = &stages[n - 1];
        s->width = sn_cnn_divisible(width, group);
        s->groups = s->width / group;
        s->excite = p->excite;
        s->depth++;
    }
    return n;
}

static sn_value *block(sn_builder *b, sn_value *x, const char *path, int64_t in, const stage *s,
                       int64_t stride)
{
    const int64_t w = s->width;
    char part[128];
    sn_value *shortcut = x;
    if (in != w || stride != 1) {
        snprintf(part, sizeof part, "%s.proj", path);
        shortcut = sn_cnn_conv_norm(
            b, x, part,
            &(sn_cnn_layer){.conv = {.in = in, .out = w, .kernel = 1, .stride = stride}});
    }
    const sn_cnn_layer layers[3] = {
        {.conv = {.in = in, .out = w, .kernel = 1, .stride = 1}, .act = SN_CNN_RELU},
        {.conv = {.in = w, .out = w, .kernel = 3, .stride = stride, .groups = s->groups},
         .act = SN_CNN_RELU},
        {.conv = {.in = w, .out = w, .kernel = 1, .stride = 1}, .ends_branch = true},
    };
    for (int i = 0; i < 3; i++) {
        if (i == 2 && s->excite) {
            snprintf(part, sizeof part, "%s.f.se", path);
            x = sn_cnn_squeeze_excite(b, x, part, w, in / 4, SN_CNN_RELU);
        }
        snprintf(part, sizeof part, "%s.f.%c", path, 'a' + i);
        x = sn_cnn_conv_norm(b, x, part, &layers[i]);
    }
    x = sn_b_op(b, path, "Add", SN_IN(shortcut, x), SN_NO_ATTRS);
    snprintf(part, sizeof part, "%s.activation", path);
    return sn_cnn_activate(b, x, part, SN_CNN_RELU);
}

static sonde_status build(sn_model *m, uint64_t seed, const regnet_params *params, sonde_error *err)
{
    sn_builder b;
    sn_value *x = sn_cnn_begin(&b, m, seed, params->image, err);
    int64_t in = params->stem;
    x = sn_cnn_conv_norm(&b, x, "stem",
                         &(sn_cnn_layer){.conv = {.in = 3, .out = in, .kernel = 3, .stride = 2},
                                         .act = SN_CNN_RELU});

    stage stages[MAX_STAGES] = {{0}};
    const int n = plan_stages(params, stages);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < stages[k].depth; i++) {
            char path[64];
            snprintf(path, sizeof path, "trunk_output.block%d.block%d-%d", k + 1, k + 1, i);
            x = block(&b, x, path, in, &stages[k], i == 0 ? 2 : 1);
            in = stages[k].width;
        }
    return sn_cnn_end(&b, x, "avgpool", "fc", in, params->classes);
}

/* torchvision.models.regnet: depth, w_0, w_a, w_m, group width, squeeze-and-excite; stem, image,
 * classes. */
#define REGNET(id, ...)                                                                            \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err)                   \
    {                                                                                              \
        return build(m, seed, &(const regnet_params){__VA_ARGS__}, err);                           \
    }
REGNET(regnet_x_400mf, 22, 24, 24.48, 2.54, 16, false, 32, 224, 1000)
REGNET(regnet_x_800mf, 16, 56, 35.73, 2.28, 16, false, 32, 224, 1000)
REGNET(regnet_x_1_6gf, 18, 80, 34.01, 2.25, 24, false, 32, 224, 1000)
REGNET(regnet_x_3_2gf, 25, 88, 26.31, 2.25, 48, false, 32, 224, 1000)
REGNET(regnet_y_400mf, 16, 48, 27.89, 2.09, 8, true, 32, 224, 1000)
REGNET(regnet_y_800mf, 14, 56, 38.84, 2.4, 16, true, 32, 224, 1000)
REGNET(regnet_y_1_6gf, 27, 48, 20.71, 2.65, 24, true, 32, 224, 1000)
REGNET(regnet_y_3_2gf, 21, 80, 42.63, 2.66, 24, true, 32, 224, 1000)
REGNET(regnet_y_8gf, 17, 192, 76.82, 2.19, 56, true, 32, 224, 1000)
REGNET(regnet_y_16gf, 18, 200, 106.23, 2.48, 112, true, 32, 224, 1000)
REGNET(regnet_y_32gf, 20, 232, 115.89, 2.53, 232, true, 32, 224, 1000)
REGNET(tiny_regnet_y, 4, 16, 8, 2, 8, true, 8, 32, 10)
