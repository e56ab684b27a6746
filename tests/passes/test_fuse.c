/* SPDX-License-Identifier: Apache-2.0 */
/* Fusions into convolutions and matrix products: the structure, the origins, and equal results. */
#include "passes/interpret.h"

static sn_node *conv(sn_graph *g, const char *out, const char *in, int64_t oc, int64_t ic,
                     bool bias)
{
    char b[80];
    snprintf(b, sizeof b, "b_%s", out);
    if (bias)
        const_f32(g, b, 0, DIMS(oc));
    return conv_node(g, out, in, oc, ic, 3, bias ? b : NULL);
}

static const char *text_attr(const sn_node *n, const char *name)
{
    static char buf[64];
    const sn_attr *a = sn_node_attr(n, name);
    snprintf(buf, sizeof buf, "%.*s", a ? (int)a->s.size : 0, a ? a->s.data : "");
    return buf;
}

TEST(batch_normalisation_moves_into_the_weights)
{
    for (int bias = 0; bias < 2; bias++) {
        sn_model *m = image_model(0, 3, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        conv(g, "c", "x", 4, 3, bias);
        const_f32(g, "scale", 1, DIMS(4));
        const_f32(g, "shift", 0, DIMS(4));
        const_f32(g, "mean", 0, DIMS(4));
        const_f32(g, "var", 1.5f, DIMS(4));
        node(g, "BatchNormalization", "y", "c scale shift mean var");
        outputs(g, "y");
        CHECK_OK(finish(m, "conv-batchnorm", &p));
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_STR(p->first->post_op, "BatchNormalization");
        CHECK_EQ(p->first->n_origins, 2);
        CHECK_STR(p->outputs.data[0]->name, "y");
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

TEST(normalisation_of_a_value_read_twice_stays)
{
    sn_model *m = image_model(0, 3, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv(g, "c", "x", 4, 3, true);
    const_f32(g, "s", 1, DIMS(4));
    const_f32(g, "var", 1.5f, DIMS(4));
    node(g, "BatchNormalization", "y", "c s s s var");
    outputs(g, "y c");
    CHECK_OK(finish(m, "conv-batchnorm", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    end_pass_model(m, p);
}

TEST(every_activation_goes_into_the_convolution)
{
    static const char *const acts[] = {"Relu",        "Sigmoid", "HardSwish", "LeakyRelu",
                                       "HardSigmoid", "Clip",    "Tanh",      "Elu",
                                       "Selu",        "Celu",    "Mish"};
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        sn_model *m = image_model(0, 3, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        conv(g, "c", "x", 4, 3, true);
        scalar_f32(g, "lo", -0.5f);
        scalar_f32(g, "hi", 0.75f);
        sn_node *a = node(g, acts[i], "y", strcmp(acts[i], "Clip") ? "c" : "c lo hi");
        if (strcmp(acts[i], "Mish") == 0)
            a->opset = 18;
        if (strcmp(acts[i], "LeakyRelu") == 0)
            attr_float(g, a, "alpha", 0.3f);
        outputs(g, "y");
        CHECK_OK(finish(m, "fuse-conv", &p));
        CHECK_MSG(p->n_live_nodes == 1, "%s is not fused", acts[i]);
        CHECK_STR(p->first->op_type, "FusedConv");
        CHECK_STR(p->first->post_op, acts[i]);
        CHECK_STR(text_attr(p->first, "activation"), acts[i]);
        CHECK_STR(m->origins.list.data[p->first->anchor].op_type, "Conv");
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

/* s · Relu(x)² + b, of which either number may be missing, and the square a Pow or a Mul. */
TEST(a_squared_relu_with_scale_and_shift_is_an_activation)
{
    for (int form = 0; form < 16; form++) {
        const bool pow = form & 1, scale = form & 2, shift = form & 4, product = form & 8;
        sn_model *m = product ? pass_model(0) : image_model(0, 3, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        if (product) {
            typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 5, 6));
            const_f32(g, "w", 0, DIMS(6, 7));
            node(g, "MatMul", "c", "x w");
        } else {
            conv(g, "c", "x", 5, 3, true);
        }
        scalar_f32(g, "two", 2);
        scalar_f32(g, "s", 0.875f);
        scalar_f32(g, "b", -0.375f);
        node(g, "Relu", "r", "c");
        node(g, pow ? "Pow" : "Mul", scale || shift ? "q" : "y", pow ? "r two" : "r r");
        if (scale)
            node(g, "Mul", shift ? "t" : "y", "s q");
        if (shift)
            node(g, "Add", "y", scale ? "t b" : "q b");
        outputs(g, "y");
        CHECK_OK(finish(m, product ? "fuse-gemm" : "fuse-conv", &p));
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_STR(text_attr(p->first, "activation"), "StarRelu");
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

TEST(gates_are_activations_of_two_nodes)
{
    for (int hard = 0; hard < 2; hard++) {
        sn_model *m = image_model(0, 3, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        conv(g, "c", "x", 4, 3, false);
        sn_node *s = node(g, hard ? "HardSigmoid" : "Sigmoid", "s", "c");
        if (hard)
            attr_float(g, s, "alpha", 1.0f / 6.0f);
        node(g, "Mul", "y", hard ? "c s" : "s c");
        outputs(g, "y");
        CHECK_OK(finish(m, "fuse-conv", &p));
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_STR(text_attr(p->first, "activation"), hard ? "HardSwish" : "Silu");
        CHECK_EQ(p->first->n_origins, 3);
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

TEST(a_residual_is_added_by_the_later_convolution)
{
    sn_model *m = image_model(0, 3, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv(g, "a", "x", 4, 3, true);
    conv(g, "b", "x", 4, 3, false);
    node(g, "Neg", "other", "x"); /* stands between the convolution and its Add */
    node(g, "Add", "s", "a b");
    node(g, "Relu", "y", "s");
    outputs(g, "y other");
    CHECK_OK(finish(m, "fuse-conv", &p));
    CHECK_EQ(p->n_live_nodes, 3);
    sn_node *f = p->outputs.data[0]->producer;
    CHECK_STR(f->op_type, "FusedConv");
    CHECK_STR(f->post_op, "Add+Relu");
    CHECK_STR(f->name, "n_b");
    CHECK_EQ(f->n_in, 4);
    CHECK(!f->in[2].value && strcmp(f->in[3].value->name, "a") == 0);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(constants_per_channel_go_into_weights_and_bias)
{
    sn_model *m = image_model(0, 3, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv(g, "a", "x", 4, 3, false);
    const_f32(g, "k", 0, DIMS(4, 1, 1));
    const_f32(g, "k4", 2, DIMS(1, 4, 1, 1));
    scalar_f32(g, "k1", 0.5f);
    const_f32(g, "row", 0, DIMS(5)); /* along the width: no bias */
    node(g, "Add", "b", "a k");
    node(g, "Mul", "c", "k4 b");
    node(g, "Add", "d", "c k1");
    node(g, "Add", "e", "d row");
    node(g, "Relu", "y", "e");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-conv", &p));
    CHECK_EQ(p->n_live_nodes, 3);
    CHECK_STR(p->first->op_type, "Conv");
    CHECK_STR(p->first->post_op, "Add+Mul+Add");
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(outputs_and_values_read_twice_are_not_fused_over)
{
    sn_model *m = image_model(0, 3, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    conv(g, "a", "x", 4, 3, true);
    node(g, "Relu", "y", "a");
    conv(g, "b", "x", 4, 3, true);
    node(g, "Relu", "z", "b");
    node(g, "Neg", "w", "b");
    outputs(g, "a y z w");
    CHECK_OK(finish(m, "fuse-conv", &p));
    CHECK_EQ(p->n_live_nodes, 5);
    end_pass_model(m, p);
}

TEST(matrix_products_take_bias_residual_and_activation)
{
    for (int rank = 2; rank <= 3; rank++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        int64_t dims[] = {2, 4, 6};
        typed_input(g, "x", SONDE_DTYPE_F32, rank, dims + 3 - rank);
        const_f32(g, "w", 0, DIMS(6, 6));
        const_f32(g, "b", 0, DIMS(6));
        node(g, "MatMul", "a", "x w");
        node(g, "Add", "c", "b a");
        node(g, "Add", "d", "c x");
        node(g, "Relu", "y", "d");
        outputs(g, "y");
        CHECK_OK(finish(m, "fuse-gemm", &p));
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_STR(p->first->op_type, "FusedGemm");
        CHECK_STR(p->first->post_op, "Add+Add+Relu");
        CHECK_STR(m->origins.list.data[p->first->anchor].op_type, "MatMul");
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(gemm_keeps_its_attributes)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(4, 6));
    const_f32(g, "w", 0, DIMS(5, 6));
    const_f32(g, "b", 0, DIMS(4, 1));
    sn_node *n = node(g, "Gemm", "a", "x w b");
    attr_int(g, n, "transB", 1);
    attr_float(g, n, "alpha", 0.5f);
    attr_float(g, n, "beta", 2.0f);
    node(g, "Sigmoid", "y", "a");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-gemm", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

/* x and the constants of GELU; `spelling` picks the order of the factors. */
static void gelu(sn_graph *g, int spelling)
{
    scalar_f32(g, "root", 1.41421356f);
    scalar_f32(g, "inv", 0.70710678f);
    scalar_f32(g, "one", 1.0f);
    scalar_f32(g, "half", 0.5f);
    scalar_f32(g, "two", 2.0f);
    if (spelling % 2)
        node(g, "Div", "s", "x root");
    else
        node(g, "Mul", "s", "inv x");
    node(g, "Erf", "e", "s");
    node(g, "Add", "a", spelling % 2 ? "e one" : "one e");
    if (spelling == 0) {
        node(g, "Mul", "m", "x a");
        node(g, "Mul", "y", "m half");
    } else if (spelling == 1) {
        node(g, "Mul", "m", "a half");
        node(g, "Mul", "y", "x m");
    } else {
        node(g, "Div", "m", "x two");
        node(g, "Mul", "y", "m a");
    }
}

TEST(gelu_is_recognised_in_every_spelling)
{
    for (int spelling = 0; spelling < 3; spelling++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(3, 7));
        gelu(g, spelling);
        outputs(g, "y");
        CHECK_OK(finish(m, "fuse-activations", &p));
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_STR(p->first->op_type, "Gelu");
        CHECK_EQ(p->first->n_origins, 5);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(something_like_gelu_is_left_alone)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(3, 7));
    gelu(g, 0);
    outputs(g, "y e"); /* an inner value is asked for */
    CHECK_OK(finish(m, "fuse-activations", &p));
    CHECK_EQ(p->n_live_nodes, 5);
    end_pass_model(m, p);
}

TEST(layer_normalisation_is_recognised)
{
    for (int shift = 0; shift < 2; shift++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3, 8));
        const_f32(g, "gamma", 1, DIMS(8));
        const_f32(g, "beta", 0, DIMS(8));
        scalar_f32(g, "eps", 1e-5f);
        scalar_f32(g, "two", 2.0f);
        sn_node *n = node(g, "ReduceMean", "mean", "x");
        attr_ints(g, n, "axes", DIMS(-1));
        node(g, "Sub", "d", "x mean");
        if (shift)
            node(g, "Pow", "q", "d two");
        else
            node(g, "Mul", "q", "d d");
        n = node(g, "ReduceMean", "v", "q");
        attr_ints(g, n, "axes", DIMS(2));
        node(g, "Add", "ve", "v eps");
        node(g, "Sqrt", "sd", "ve");
        node(g, "Div", "n", "d sd");
        node(g, "Mul", shift ? "s" : "y", "n gamma");
        if (shift)
            node(g, "Add", "y", "beta s");
        outputs(g, "y");
        CHECK_OK(finish(m, "fuse-norms", &p));
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_STR(p->first->op_type, "LayerNormalization");
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST_MAIN()
