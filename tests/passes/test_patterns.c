/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and normalisations spelled out in elementwise nodes: every spelling becomes one node
 * that computes the same; what only looks like one stays. */
#include "passes/interpret.h"

static void constants(sn_graph *g)
{
    scalar_f32(g, "half", 0.5f);
    scalar_f32(g, "one", 1);
    scalar_f32(g, "two", 2);
    scalar_f32(g, "three", 3);
    scalar_f32(g, "zero", 0);
    scalar_f32(g, "six", 6);
    scalar_f32(g, "sixth", 1.0f / 6.0f);
    scalar_f32(g, "quick", 1.702f);
    scalar_f32(g, "k", 0.7978845608f);
    scalar_f32(g, "c", 0.044715f);
    scalar_f32(g, "eps", 1e-5f);
}

static void gelu_tanh(sn_graph *g)
{
    node(g, "Pow", "x3", "x three");
    node(g, "Mul", "cx3", "x3 c");
    node(g, "Add", "sum", "x cx3");
    node(g, "Mul", "u", "sum k");
    node(g, "Tanh", "t", "u");
    node(g, "Add", "t1", "t one");
    node(g, "Mul", "hx", "x half");
    node(g, "Mul", "y", "hx t1");
}

static void gelu_products(sn_graph *g)
{
    node(g, "Mul", "x2", "x x");
    node(g, "Mul", "x3", "x2 x");
    node(g, "Mul", "cx3", "c x3");
    node(g, "Add", "sum", "cx3 x");
    node(g, "Mul", "u", "k sum");
    node(g, "Tanh", "t", "u");
    node(g, "Add", "t1", "one t");
    node(g, "Mul", "xt", "x t1");
    node(g, "Div", "y", "xt two");
}

static void gelu_fast(sn_graph *g)
{
    node(g, "Mul", "kx", "x k");
    node(g, "Mul", "cx", "x c");
    node(g, "Mul", "cx2", "cx x");
    node(g, "Add", "sum", "cx2 one");
    node(g, "Mul", "u", "kx sum");
    node(g, "Tanh", "t", "u");
    node(g, "Add", "t1", "t one");
    node(g, "Mul", "hx", "half x");
    node(g, "Mul", "y", "hx t1");
}

static void silu(sn_graph *g)
{
    node(g, "Sigmoid", "s", "x");
    node(g, "Mul", "y", "s x");
}

static void quick_gelu(sn_graph *g)
{
    node(g, "Mul", "u", "x quick");
    node(g, "Sigmoid", "s", "u");
    node(g, "Mul", "y", "x s");
}

static void mish(sn_graph *g)
{
    node(g, "Softplus", "p", "x");
    node(g, "Tanh", "t", "p");
    node(g, "Mul", "y", "x t");
}

static void prelu(sn_graph *g)
{
    node(g, "PRelu", "y", "x sixth");
}

static void prelu_of_zero(sn_graph *g)
{
    node(g, "PRelu", "y", "x zero");
}

static void hard_swish(sn_graph *g)
{
    sn_node *n = node(g, "HardSigmoid", "s", "x");
    attr_float(g, n, "alpha", 1.0f / 6.0f);
    node(g, "Mul", "y", "x s");
}

static void hard_swish_clip(sn_graph *g)
{
    node(g, "Add", "a", "x three");
    node(g, "Clip", "b", "a zero six");
    node(g, "Mul", "xb", "x b");
    node(g, "Div", "y", "xb six");
}

static void hard_swish_gate(sn_graph *g)
{
    node(g, "Add", "a", "three x");
    node(g, "Clip", "b", "a zero six");
    node(g, "Mul", "gate", "b sixth");
    node(g, "Mul", "y", "x gate");
}

static void hard_sigmoid(sn_graph *g)
{
    node(g, "Add", "a", "x three");
    node(g, "Clip", "b", "a zero six");
    node(g, "Div", "y", "b six");
}

TEST(activations_are_recognised_in_every_spelling)
{
    static const struct {
        void (*spell)(sn_graph *);
        const char *op;
    } cases[] = {{gelu_tanh, "Gelu"},
                 {gelu_products, "Gelu"},
                 {gelu_fast, "Gelu"},
                 {silu, "Swish"},
                 {quick_gelu, "Swish"},
                 {mish, "Mish"},
                 {prelu, "LeakyRelu"},
                 {prelu_of_zero, "LeakyRelu"},
                 {hard_swish, "HardSwish"},
                 {hard_swish_clip, "HardSwish"},
                 {hard_swish_gate, "HardSwish"},
                 {hard_sigmoid, "HardSigmoid"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(3, SN_DIM_UNKNOWN));
        constants(g);
        cases[i].spell(g);
        outputs(g, "y");
        CHECK_OK(sn_model_finish(m, &err));
        const uint32_t n = m->graph->n_live_nodes;
        CHECK_OK(ready_copy(m, &p));
        CHECK_OK(run_passes(p, "fuse-activations"));
        CHECK_MSG(p->n_live_nodes == 1, "case %zu: %u nodes left", i, p->n_live_nodes);
        CHECK_STR(p->first->op_type, cases[i].op);
        CHECK_EQ(p->first->n_origins, n);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(products_that_only_look_like_activations_stay)
{
    static const char *const cases[][4] = {
        {"Sigmoid", "z", "x s", "x"},  /* another value's gate */
        {"Sigmoid", "x", "x s", "s"},  /* the gate is an output */
        {"Sigmoid", "x", "two s", "x"} /* not times x */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        char outs[16];
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(3, 4));
        typed_input(g, "z", SONDE_DTYPE_F32, DIMS(3, 4));
        constants(g);
        node(g, cases[i][0], "s", cases[i][1]);
        node(g, "Mul", "y", cases[i][2]);
        snprintf(outs, sizeof outs, "y %s", cases[i][3]);
        outputs(g, outs);
        CHECK_OK(finish(m, "fuse-activations", &p));
        CHECK_EQ(p->n_live_nodes, 2);
        end_pass_model(m, p);
    }
}

TEST(a_constant_of_higher_rank_is_no_part_of_an_activation)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(5));
    const_f32(g, "wide", 0, DIMS(1, 1));
    *(float *)value(g, "wide")->fact.data->data = 1.702f;
    node(g, "Mul", "u", "x wide"); /* has two dims */
    node(g, "Sigmoid", "s", "u");
    node(g, "Mul", "y", "x s");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-activations", &p));
    CHECK_EQ(p->n_live_nodes, 3);
    end_pass_model(m, p);
}

/* bits: 1 mean taken off, 2 product by the reciprocal, 4 scale, 8 shift, 16 Pow for the square */
static sn_model *norm_model(int bits)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, SN_DIM_UNKNOWN, 8));
    constants(g);
    const_f32(g, "gamma", 1, DIMS(8));
    const_f32(g, "beta", 0, DIMS(8));
    const char *d = bits & 1 ? "d" : "x";
    char ins[16];
    if (bits & 1) {
        attr_ints(g, node(g, "ReduceMean", "mean", "x"), "axes", DIMS(-1));
        node(g, "Sub", "d", "x mean");
    }
    snprintf(ins, sizeof ins, "%s %s", d, bits & 16 ? "two" : d);
    node(g, bits & 16 ? "Pow" : "Mul", "square", ins);
    attr_ints(g, node(g, "ReduceMean", "var", "square"), "axes", DIMS(2));
    node(g, "Add", "sum", bits & 4 ? "var eps" : "eps var");
    node(g, "Sqrt", "root", "sum");
    if (bits & 2) {
        if (bits & 4)
            node(g, "Reciprocal", "inverse", "root");
        else
            node(g, "Div", "inverse", "one root");
    }
    snprintf(ins, sizeof ins, "%s %s", d, bits & 2 ? "inverse" : "root");
    const bool scale = bits & 4, shift = bits & 8;
    node(g, bits & 2 ? "Mul" : "Div", scale || shift ? "n" : "y", ins);
    if (scale)
        node(g, "Mul", shift ? "s" : "y", "gamma n");
    if (shift)
        node(g, "Add", "y", scale ? "s beta" : "n beta");
    outputs(g, "y");
    return m;
}

TEST(normalisations_are_recognised_in_every_spelling)
{
    for (int bits = 0; bits < 32; bits++) {
        const bool layer = bits & 1, shift = bits & 8;
        sn_model *m = norm_model(bits);
        sn_graph *p = NULL;
        CHECK_OK(finish(m, "fuse-norms", &p));
        CHECK_MSG(p->n_live_nodes == (shift && !layer ? 2u : 1u), "case %d: %u nodes", bits,
                  p->n_live_nodes);
        CHECK_STR(p->first->op_type, layer ? "LayerNormalization" : "RMSNormalization");
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(a_mean_over_another_axis_is_no_normalisation)
{
    sn_model *m = norm_model(4);
    sn_graph *p = NULL;
    attr_ints(m->graph, value(m->graph, "var")->producer, "axes", DIMS(1));
    CHECK_OK(finish(m, "fuse-norms", &p));
    CHECK_EQ(count_ops(p, "RMSNormalization"), 0);
    end_pass_model(m, p);
}

TEST_MAIN()
