/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise nodes that follow each other become one, whatever their second operands are. */
#include "passes/interpret.h"

TEST(functions_of_one_shape_become_one_step)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    sn_dim dims[3] = {sn_dim_symbol(sn_graph_symbol(g, "N")), 6, 700}; /* several pieces */
    typed_input(g, "x", SONDE_DTYPE_F32, 3, dims);
    typed_input(g, "z", SONDE_DTYPE_F32, 3, dims);
    scalar_f32(g, "two", 2);
    const_f32(g, "one", 0, DIMS(1, 1, 1));
    const_f32(g, "row", 0, DIMS(700));
    const_f32(g, "plane", 0, DIMS(6, 700));
    const_f32(g, "channel", 2, DIMS(6, 1));
    scalar_f32(g, "low", -3);
    node(g, "Mul", "a", "two x");
    node(g, "Sub", "b", "z a"); /* the running result is the second operand */
    node(g, "Add", "c", "b row");
    node(g, "Div", "d", "c channel");
    attr_float(g, node(g, "LeakyRelu", "e", "d"), "alpha", 0.25f);
    node(g, "Add", "f", "plane e");
    node(g, "Clip", "h", "f low");
    node(g, "Mul", "i", "h one");
    node(g, "Add", "j", "i x");
    node(g, "Tanh", "y", "j");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-elementwise", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_STR(p->first->op_type, "Elementwise");
    CHECK_STR(p->first->post_op, "Sub+Add+Div+LeakyRelu+Add+…");
    CHECK_EQ(p->first->n_origins, 10);
    check_same(m, p, 1e-6);
    end_pass_model(m, p);
}

TEST(a_chain_ends_where_a_value_is_read_again_or_grows)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(3, 4));
    typed_input(g, "big", SONDE_DTYPE_F32, DIMS(2, 3, 4));
    node(g, "Relu", "a", "x");
    node(g, "Neg", "b", "a");
    node(g, "Exp", "c", "b");
    node(g, "Mul", "d", "c b"); /* b has two readers */
    node(g, "Add", "e", "d big");
    node(g, "Sigmoid", "y", "e");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-elementwise", &p));
    CHECK_EQ(count_ops(p, "Elementwise"), 3); /* Relu Neg, Exp Mul, Add Sigmoid */
    CHECK_EQ(p->n_live_nodes, 3);
    check_same(m, p, 1e-6);
    end_pass_model(m, p);
}

TEST(operands_that_broadcast_otherwise_and_other_types_are_left_alone)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3, 4));
    typed_input(g, "i", SONDE_DTYPE_I64, DIMS(2));
    const_f32(g, "ends", 0, DIMS(2, 1, 4)); /* the first and the last dim, not the middle */
    node(g, "Add", "a", "x ends");
    node(g, "Abs", "b", "a");
    node(g, "Abs", "k", "i");
    node(g, "Neg", "l", "k");
    outputs(g, "b l");
    CHECK_OK(finish(m, "fuse-elementwise", &p));
    CHECK_EQ(p->n_live_nodes, 4);
    end_pass_model(m, p);
}

TEST(nodes_without_inputs_are_passed_over)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(3));
    sn_attr a = {.name = "value_float", .kind = SN_ATTR_FLOAT, .n = 1, .f = 2};
    CHECK_OK(sn_node_set_attr(g, node(g, "Constant", "two", ""), &a, &err));
    node(g, "Mul", "y", "x two");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-elementwise", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    end_pass_model(m, p);
}

TEST(a_very_long_chain_is_cut_into_a_few)
{
    enum { LONG = 1000 };
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "v0", SONDE_DTYPE_F32, DIMS(5));
    scalar_f32(g, "k", 0.999f);
    for (int i = 0; i < LONG; i++) {
        char out[16], ins[32];
        snprintf(out, sizeof out, "v%d", i + 1);
        snprintf(ins, sizeof ins, i % 2 ? "v%d k" : "v%d", i);
        node(g, i % 2 ? "Mul" : "Sin", out, ins);
    }
    outputs(g, "v1000");
    CHECK_OK(finish(m, "fuse-elementwise", &p));
    CHECK(p->n_live_nodes < 8);
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

TEST_MAIN()
