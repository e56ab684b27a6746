/* SPDX-License-Identifier: Apache-2.0 */
/* RegNet X (Radosavovic et al., "Designing Network Design Spaces", 2020) as torchvision builds it
 * in eval mode: block widths follow the line w_0 + w_a·i, quantised to powers of w_m and to whole
 * groups; each block is 1×1, grouped 3×3, 1×1 with a residual. BatchNormalization nodes are kept,
 * as exporters of training frameworks often leave them: folding them is the engine's work. */
#include <math.h>
#include <stdio.h>

#include "zoo/builder.h"

typedef struct regnet_params {
    int depth, w_0;
    double w_a, w_m;
    int group_width;
} regnet_params;

enum { MAX_STAGES = 8, STEM_WIDTH = 32, CLASSES = 1000 };

typedef struct stage {
    int64_t width;
    int depth;
    int64_t groups;
} stage;

/* The nearest multiple of `divisor`, never more than a tenth below `v`. */
static int64_t make_divisible(int64_t v, int64_t divisor)
{
    int64_t n = (v + divisor / 2) / divisor * divisor;
    if (n < divisor)
        n = divisor;
    if (n * 10 < v * 9)
        n += divisor;
    return n;
}

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
        s->width = make_divisible(width, group);
        s->groups = s->width / group;
        s->depth++;
    }
    return n;
}

typedef struct layer {
    sn_conv_spec conv;
    float gamma;
    bool relu;
} layer;

/* Convolution, normalisation and maybe a ReLU, as children 0, 1 and 2 of `path`. */
static sn_value *conv_norm(sn_builder *b, sn_value *x, const char *path, const layer *l)
{
    char child[160];
    snprintf(child, sizeof child, "%s.0", path);
    x = sn_b_conv(b, x, child, &l->conv);
    snprintf(child, sizeof child, "%s.1", path);
    x = sn_b_batch_norm(b, x, child, l->conv.out, l->gamma);
    snprintf(child, sizeof child, "%s.2", path);
    return l->relu ? sn_b_op(b, child, "Relu", SN_IN(x), SN_NO_ATTRS) : x;
}

static sn_value *block(sn_builder *b, sn_value *x, const char *path, int64_t in, const stage *s,
                       int64_t stride)
{
    const int64_t w = s->width;
    char part[128];
    sn_value *shortcut = x;
    if (in != w || stride != 1) {
        snprintf(part, sizeof part, "%s.proj", path);
        shortcut = conv_norm(
            b, x, part, &(layer){{.in = in, .out = w, .kernel = 1, .stride = stride}, 1.0f, false});
    }
    const layer layers[3] = {
        {{.in = in, .out = w, .kernel = 1, .stride = 1}, 1.0f, true},
        {{.in = w, .out = w, .kernel = 3, .stride = stride, .groups = s->groups}, 1.0f, true},
        {{.in = w, .out = w, .kernel = 1, .stride = 1}, 0.4f, false},
    };
    for (int i = 0; i < 3; i++) {
        snprintf(part, sizeof part, "%s.f.%c", path, 'a' + i);
        x = conv_norm(b, x, part, &layers[i]);
    }
    x = sn_b_op(b, path, "Add", SN_IN(shortcut, x), SN_NO_ATTRS);
    snprintf(part, sizeof part, "%s.activation", path);
    return sn_b_op(b, part, "Relu", SN_IN(x), SN_NO_ATTRS);
}

static sonde_status build(sn_model *m, uint64_t seed, const regnet_params *params, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim batch = sn_b_symbol(&b, "batch", 1);
    sn_value *x = sn_b_input(&b, "input", SONDE_DTYPE_F32, (const sn_dim[]){batch, 3, 224, 224}, 4);
    x = conv_norm(&b, x, "stem",
                  &(layer){{.in = 3, .out = STEM_WIDTH, .kernel = 3, .stride = 2}, 1.0f, true});

    stage stages[MAX_STAGES] = {{0}};
    const int n = plan_stages(params, stages);
    int64_t in = STEM_WIDTH;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < stages[k].depth; i++) {
            char path[64];
            snprintf(path, sizeof path, "trunk_output.block%d.block%d-%d", k + 1, k + 1, i);
            x = block(&b, x, path, in, &stages[k], i == 0 ? 2 : 1);
            in = stages[k].width;
        }

    x = sn_b_op(&b, "avgpool", "GlobalAveragePool", SN_IN(x), SN_NO_ATTRS);
    x = sn_b_op(&b, "", "Flatten", SN_IN(x), SN_ATTRS(sn_a_int("axis", 1)));
    x = sn_b_linear(&b, x, "fc", in, CLASSES);
    sn_b_output(&b, x, "output", SONDE_DTYPE_F32, (const sn_dim[]){batch, CLASSES}, 2);
    return *b.status;
}

/* torchvision.models.regnet: depth, w_0, w_a, w_m, group width. */
#define REGNET(id, ...)                                                                            \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err)                   \
    {                                                                                              \
        return build(m, seed, &(const regnet_params){__VA_ARGS__}, err);                           \
    }
REGNET(regnet_x_400mf, 22, 24, 24.48, 2.54, 16)
REGNET(regnet_x_800mf, 16, 56, 35.73, 2.28, 16)
REGNET(regnet_x_1_6gf, 18, 80, 34.01, 2.25, 24)
REGNET(regnet_x_3_2gf, 25, 88, 26.31, 2.25, 48)
