/* SPDX-License-Identifier: Apache-2.0 */
/* The transformers: nodes and names as transformers' and torchvision's exports have them, the tied
 * head, the cache, and a training step that covers every parameter. */
#include "zoo/blocks.h"
#include "zoo/grad.h"

#include "built.h"

static bool has_node(const sn_model *m, const char *name)
{
    for (const sn_node *node = m->graph->first; node; node = node->next)
        if (strcmp(node->name, name) == 0)
            return true;
    return false;
}

static const sn_value *value(const sn_model *m, const char *name)
{
    for (size_t i = 0; i < m->graph->values.n; i++)
        if (strcmp(m->graph->values.data[i]->name, name) == 0)
            return m->graph->values.data[i];
    return NULL;
}

typedef struct expected {
    const char *op_type;
    int layer, around; /* nodes in each layer, and outside the layers */
} expected;

/* The numbers are those of torch.onnx's export (opset 17, symbolic sizes) of the reference. */
#define CHECK_COUNTS(m, layers, ...)                                                               \
    do {                                                                                           \
        const expected rows[] = {__VA_ARGS__};                                                     \
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {                                \
            const int n = count(m, rows[i].op_type);                                               \
            CHECK_MSG(n == rows[i].layer * (layers) + rows[i].around, "%d nodes of type %s", n,    \
                      rows[i].op_type);                                                            \
        }                                                                                          \
    } while (0)

TEST(bert_has_the_nodes_of_transformers_export)
{
    sn_model *m = built("bert_mini");
    CHECK(m);
    CHECK_COUNTS(m, 4, {"MatMul", 8, 0}, {"Add", 10, 2}, {"LayerNormalization", 2, 1},
                 {"Softmax", 1, 0}, {"Erf", 1, 0}, {"Reshape", 4, 0}, {"Transpose", 4, 0},
                 {"Shape", 8, 1}, {"Gather", 8, 5}, {"Unsqueeze", 8, 3}, {"Concat", 4, 0},
                 {"Div", 2, 0}, {"Mul", 2, 1}, {"Slice", 0, 1}, {"Gemm", 0, 1}, {"Tanh", 0, 1});
    CHECK(has_node(m, "/encoder/layer.3/attention/self/MatMul_1"));
    CHECK(has_node(m, "/encoder/layer.0/intermediate/intermediate_act_fn/Mul_1"));
    CHECK(value(m, "encoder.layer.2.attention.output.LayerNorm.weight"));
    CHECK_STR(m->metadata.data[1].key, "sonde.default.sequence");
    CHECK_STR(m->metadata.data[1].value, "128");
    sn_model_unref(m);
}

TEST(vit_has_the_nodes_of_torchvisions_export)
{
    sn_model *m = built("tiny_vit");
    CHECK(m);
    CHECK_COUNTS(m, 2, {"MatMul", 5, 0}, {"Gemm", 1, 1}, {"Conv", 0, 1}, {"Softmax", 1, 0},
                 {"LayerNormalization", 2, 1}, {"Transpose", 8, 1}, {"Reshape", 11, 2},
                 {"Unsqueeze", 23, 3}, {"Concat", 10, 3}, {"Shape", 8, 5}, {"Gather", 8, 5},
                 {"Slice", 4, 0}, {"Squeeze", 2, 0}, {"Sqrt", 3, 0}, {"Mod", 1, 0},
                 {"Expand", 0, 1}, {"Where", 0, 1});
    CHECK(has_node(m, "/encoder/layers/encoder_layer_1/mlp/mlp.3/MatMul"));
    CHECK(value(m, "encoder.layers.encoder_layer_1.self_attention.in_proj_weight"));
    sn_model_unref(m);
}

TEST(gpt2_carries_its_cache_and_ties_its_head)
{
    sn_model *m = built("tiny_gpt2");
    CHECK(m);
    CHECK_EQ(m->graph->inputs.n, 3 + 2 * 2);
    CHECK_EQ(m->graph->outputs.n, 1 + 2 * 2);
    CHECK_STR(m->graph->inputs.data[6]->name, "past_key_values.1.value");
    CHECK_STR(m->graph->outputs.data[1]->name, "present.0.key");
    CHECK_COUNTS(m, 2, {"Gemm", 4, 0}, {"MatMul", 2, 1}, {"Split", 1, 0}, {"Where", 1, 0},
                 {"Tanh", 1, 0}, {"Softmax", 1, 0}, {"LayerNormalization", 2, 1}, {"Pow", 2, 0},
                 {"Transpose", 5, 1}, {"Reshape", 12, 3});
    const sn_value *table = value(m, "transformer.wte.weight");
    CHECK(table && table->n_uses == 2);
    CHECK(has_node(m, "/transformer/h.1/attn/c_attn/Gemm"));
    sn_model_unref(m);
}

TEST(a_training_step_updates_every_parameter)
{
    sn_model *m = built("tiny_bert_train");
    CHECK(m);
    size_t parameters = 0;
    for (size_t i = 0; i < m->graph->values.n; i++) {
        const sn_value *v = m->graph->values.data[i];
        if (!sn_grad_is_parameter(v))
            continue;
        parameters++;
        char name[160];
        snprintf(name, sizeof name, "%s.new", v->name);
        const sn_value *updated = value(m, name);
        CHECK_MSG(v->is_input && updated && updated->n_outputs == 1, "%s", name);
        CHECK(sn_type_same_shape(&updated->fact.type, &v->fact.type));
    }
    CHECK_EQ(m->graph->outputs.n, 1 + 3 * parameters);
    CHECK_EQ(m->graph->inputs.n, 4 + 2 + 3 * parameters);
    sn_model_unref(m);
}

TEST(a_node_without_a_gradient_is_named)
{
    sn_model *m = NULL;
    sn_builder b;
    sonde_error err = {0};
    sn_model_unref(built("tiny_mlp")); /* sets the context up */
    CHECK_OK(sn_model_new(&m, &ctx, &err));
    sn_b_init(&b, m, 17, 1, &err);
    const int64_t dims[2] = {3, 3};
    sn_value *w = sn_b_uniform(&b, "w", dims, 2, 0.0f, 1.0f);
    sn_value *y = sn_blk_unary(&b, "middle", "Sin", w);
    CHECK(sn_grad_backward(&b, y) == NULL);
    CHECK_EQ(*b.status, SONDE_INTERNAL);
    CHECK_HAS(err.message, "/middle/Sin");
    sn_model_unref(m);
}

TEST_MAIN()
