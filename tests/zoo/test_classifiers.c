/* SPDX-License-Identifier: Apache-2.0 */
/* The image classifiers: the nodes that torchvision's definitions export to, activations that keep
 * their size through any depth, int8 variants of integers only. */
#include "zoo/moments.h"

#include "built.h"

static const sn_node *node_named(const sn_model *m, const char *name)
{
    for (const sn_node *n = m->graph->first; n; n = n->next)
        if (strcmp(n->name, name) == 0)
            return n;
    return NULL;
}

static const sn_value *value_named(const sn_model *m, const char *name)
{
    for (size_t i = 0; i < m->graph->values.n; i++)
        if (strcmp(m->graph->values.data[i]->name, name) == 0)
            return m->graph->values.data[i];
    return NULL;
}

TEST(nodes_are_those_of_torchvisions_export)
{
    /* Counted in what torch.onnx.export writes of torchvision's models in eval mode, with
     * TrainingMode.PRESERVE. */
    static const struct {
        const char *model;
        int nodes, conv, norm, add, mul, pool;
        const char *node, *weight;
    } rows[] = {
        {"regnet_x_400mf", 234, 71, 71, 22, 0, 1, "/trunk_output/block4/block4-11/f/c/c.0/Conv",
         "trunk_output.block1.block1-0.proj.0.weight"},
        {"regnet_y_400mf", 270, 85, 53, 16, 16, 17,
         "/trunk_output/block2/block2-2/f/se/scale_activation/Sigmoid",
         "trunk_output.block2.block2-2.f.se.fc1.bias"},
        {"resnet18", 69, 20, 20, 8, 0, 1, "/layer1/layer1.1/relu_1/Relu",
         "layer4.0.downsample.1.bias"},
        {"resnet50", 175, 53, 53, 16, 0, 1, "/layer3/layer3.5/relu_2/Relu", "layer3.5.bn3.weight"},
        {"mobilenet_v2", 222, 52, 52, 10, 0, 1, "/features/features.0/features.0.2/Constant_1",
         "features.17.conv.1.0.weight"},
        {"efficientnet_b0", 288, 81, 49, 9, 65, 17,
         "/features/features.2/features.2.1/block/block.2/activation/Mul",
         "features.7.0.block.3.1.running_var"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        sn_model *m = built(rows[k].model);
        CHECK(m != NULL);
        CHECK_EQ(m->graph->n_live_nodes, rows[k].nodes);
        CHECK_EQ(count(m, "Conv"), rows[k].conv);
        CHECK_EQ(count(m, "BatchNormalization"), rows[k].norm);
        CHECK_EQ(count(m, "Add"), rows[k].add);
        CHECK_EQ(count(m, "Mul"), rows[k].mul);
        CHECK_EQ(count(m, "GlobalAveragePool"), rows[k].pool);
        CHECK_MSG(node_named(m, rows[k].node), "%s has no node %s", rows[k].model, rows[k].node);
        CHECK_MSG(value_named(m, rows[k].weight), "%s has no weight %s", rows[k].model,
                  rows[k].weight);
        sn_model_unref(m);
    }
}

static double mean_square(const sn_moments *x)
{
    double sum = 0;
    for (int64_t c = 0; c < x->channels; c++)
        sum += (double)x->mean[c] * (double)x->mean[c] + (double)x->var[c];
    return sum / (double)x->channels;
}

TEST(activations_neither_vanish_nor_explode_however_deep_the_model)
{
    static const char *const names[] = {"regnet_x_400mf", "regnet_y_1_6gf",   "resnet18",
                                        "resnet152",      "mobilenet_v2",     "efficientnet_b0",
                                        "tiny_resnet",    "tiny_efficientnet"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        sn_model *m = built(names[k]);
        CHECK(m != NULL);
        sn_arena arena;
        sn_arena_init(&arena, ctx.alloc);
        sn_moments *of = NULL;
        sonde_error err = {0};
        CHECK_OK(sn_moments_estimate(m->graph, &arena, &of, &err));
        for (const sn_node *n = m->graph->first; n; n = n->next) {
            const sn_moments *y = &of[n->out[0]->id];
            if (!y->channels)
                continue;
            const double square = mean_square(y);
            CHECK_MSG(square > 0.01 && square < 100, "%s: %s has a mean square of %g", names[k],
                      n->name, square);
            CHECK_MSG(y->low < y->high && y->high > 0, "%s: %s reaches from %g to %g", names[k],
                      n->name, (double)y->low, (double)y->high);
        }
        sn_arena_free(&arena);
        sn_model_unref(m);
    }
}

/* One convolution: weights and bias as integers, with the scales they must have. */
static bool is_integer_product(const sn_node *n)
{
    const sn_node *x = n->in[0].value->producer, *w = n->in[1].value->producer,
                  *b = n->in[2].value->producer;
    for (int i = 0; i < 3; i++)
        if (strcmp(n->in[i].value->producer->op_type, "DequantizeLinear") != 0)
            return false;
    const sn_tensor *integers = w->in[0].value->fact.data, *scales = w->in[1].value->fact.data,
                    *bias = b->in[0].value->fact.data, *units = b->in[1].value->fact.data;
    const float step = *(const float *)x->in[1].value->fact.data->data;
    if (integers->dtype != SONDE_DTYPE_I8 || bias->dtype != SONDE_DTYPE_I32 ||
        sn_tensor_count(scales) != integers->dims[0] || sn_node_attr(w, "axis")->i != 0)
        return false;
    const int64_t each = sn_tensor_count(integers) / integers->dims[0];
    for (int64_t c = 0; c < integers->dims[0]; c++) {
        int largest = 0;
        for (int64_t i = 0; i < each; i++)
            if (abs(((const int8_t *)integers->data)[c * each + i]) > largest)
                largest = abs(((const int8_t *)integers->data)[c * each + i]);
        const float unit = step * ((const float *)scales->data)[c];
        if (largest != 127 || fabsf(((const float *)units->data)[c] - unit) > 1e-6f * unit)
            return false;
    }
    return true;
}

TEST(int8_models_are_of_integers_only)
{
    static const char *const names[] = {
        "tiny_cnn_int8",     "tiny_resnet_int8",       "tiny_regnet_y_int8",  "tiny_mobilenet_int8",
        "mobilenet_v2_int8", "tiny_efficientnet_int8", "efficientnet_b0_int8"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        sn_model *m = built(names[k]);
        CHECK(m != NULL);
        static const char *const gone[] = {"BatchNormalization", "Relu", "Clip", "Constant"};
        for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
            CHECK_EQ(count(m, gone[i]), 0);
        for (const sn_node *n = m->graph->first; n; n = n->next) {
            if (strcmp(n->op_type, "Conv") == 0 || strcmp(n->op_type, "Gemm") == 0)
                CHECK_MSG(is_integer_product(n), "%s: %s", names[k], n->name);
            if (strcmp(n->op_type, "QuantizeLinear") == 0)
                CHECK_EQ(n->in[2].value->fact.data->dtype, SONDE_DTYPE_U8);
            else if (strcmp(n->op_type, "DequantizeLinear") != 0)
                CHECK_STR(n->out[0]->uses->node->op_type, "QuantizeLinear");
        }
        CHECK_STR(m->graph->outputs.data[0]->name, "output");
        CHECK_STR(m->graph->outputs.data[0]->producer->op_type, "DequantizeLinear");
        sn_model_unref(m);
    }
}

TEST(an_int8_model_keeps_no_float_weights)
{
    sn_model *m = built("resnet18");
    CHECK(m != NULL);
    const size_t floats = atomic_load(&system_alloc.live_bytes);
    sn_model_unref(m);
    const size_t before = atomic_load(&system_alloc.live_bytes);
    atomic_store(&system_alloc.peak_bytes, before);
    m = built("resnet18_int8");
    CHECK(m != NULL);
    CHECK(atomic_load(&system_alloc.live_bytes) < floats / 3);
    /* One layer, of 2.4 million weights, exists in both forms at a time. */
    CHECK(atomic_load(&system_alloc.peak_bytes) < floats + floats / 10);
    sn_model_unref(m);
    CHECK_EQ(atomic_load(&system_alloc.live_bytes), before);
}

TEST_MAIN()
