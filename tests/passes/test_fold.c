/* SPDX-License-Identifier: Apache-2.0 */
/* Folding, dead code and identities: what goes, what stays, and that the rest computes the same. */
#include "passes/interpret.h"

TEST(a_shape_computation_becomes_a_constant)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3, 4));
    const_i64(g, "zero", 1, (int64_t[]){0});
    const_i64(g, "minus", 1, (int64_t[]){-1});
    node(g, "Shape", "s", "x");
    node(g, "Gather", "d", "s zero");
    sn_node *cat = node(g, "Concat", "target", "d minus");
    attr_int(g, cat, "axis", 0);
    node(g, "Reshape", "y", "x target");
    outputs(g, "y");
    CHECK_OK(finish(m, "fold-constants", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_EQ(p->folded.n, 3);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(arithmetic_on_constants_is_done_once)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(4));
    const_f32(g, "a", 0, DIMS(4));
    const_f32(g, "b", 2, DIMS(4));
    node(g, "Add", "ab", "a b");
    node(g, "Relu", "r", "ab");
    node(g, "Mul", "y", "x r");
    node(g, "Neg", "z", "r"); /* a graph output may become a constant */
    outputs(g, "y z");
    CHECK_OK(finish(m, "fold-constants", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK(sn_value_is_const(p->outputs.data[1]));
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(a_default_of_an_input_is_no_constant)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    const_f32(g, "w", 0, DIMS(4));
    inputs(g, "w");
    node(g, "Neg", "y", "w");
    outputs(g, "y");
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(p->n_live_nodes, 1);
    end_pass_model(m, p);
}

TEST(dead_nodes_and_their_inputs_go)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(4));
    node(g, "Neg", "a", "x");
    node(g, "Abs", "b", "a");
    node(g, "Add", "c", "a b");
    node(g, "Relu", "y", "x");
    outputs(g, "y");
    CHECK_OK(finish(m, "dead-code", &p));
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_EQ(p->folded.n, 3);
    end_pass_model(m, p);
}

TEST(constants_reach_into_bodies_and_unread_captures_go)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "c", SONDE_DTYPE_BOOL, 0, NULL);
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(4));
    const_f32(g, "a", 0, DIMS(4));
    node(g, "Neg", "n", "a");
    sn_node *iff = node(g, "If", "y", "c");
    sn_graph *t = body(g, iff, "then_branch"), *e = body(g, iff, "else_branch");
    node(t, "Abs", "u", "n");    /* constant, once n is */
    node(t, "Neg", "dead", "x"); /* reads x for nothing */
    node(t, "Add", "s", "u u");
    outputs(t, "s");
    node(e, "Relu", "r", "n");
    outputs(e, "r");
    outputs(g, "y");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(ready_copy(m, &p));
    CHECK_EQ(p->last->n_in, 3);
    CHECK_OK(run_passes(p, NULL));
    CHECK_EQ(p->n_live_nodes, 1);
    sn_graph *pt = sn_node_body(p->first, 0), *pe = sn_node_body(p->first, 1);
    CHECK_EQ(pt->n_live_nodes + pe->n_live_nodes, 0);
    CHECK_EQ(pt->capture_map.n + pe->capture_map.n, 0);
    CHECK(!p->first->in[1].value && !p->first->in[2].value);
    end_pass_model(m, p);
}

TEST(what_does_nothing_goes)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3));
    const_i64(g, "same", 2, (int64_t[]){2, 3});
    scalar_f32(g, "zero", -0.0f);
    scalar_f32(g, "one", 1);
    node(g, "Identity", "a", "x");
    sn_node *cast = node(g, "Cast", "b", "a");
    attr_int(g, cast, "to", SONDE_DTYPE_F32);
    node(g, "Dropout", "c", "b");
    node(g, "Reshape", "d", "c same");
    sn_node *tr = node(g, "Transpose", "e", "d");
    attr_ints(g, tr, "perm", DIMS(0, 1));
    node(g, "Add", "f", "zero e");
    node(g, "Mul", "h", "f one");
    node(g, "Relu", "i", "h");
    node(g, "Identity", "y", "i");
    node(g, "Identity", "z", "x"); /* an input handed out: it stays a copy */
    outputs(g, "y z");
    CHECK_OK(finish(m, "identity", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    CHECK_STR(p->outputs.data[0]->name, "y");
    CHECK_STR(p->outputs.data[0]->producer->op_type, "Relu");
    CHECK_EQ(p->folded.n, 8);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

/* x + (+0) and x - (-0) make +0 of -0, and 1 / x tells the two apart. */
TEST(zeros_are_dropped_by_their_sign)
{
    static const struct {
        const char *op;
        float zero;
        bool first, goes;
    } cases[] = {{"Add", 0.0f, false, false}, {"Add", 0.0f, true, false},
                 {"Add", -0.0f, false, true}, {"Add", -0.0f, true, true},
                 {"Sub", 0.0f, false, true},  {"Sub", -0.0f, false, false},
                 {"Sub", 0.0f, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3));
        scalar_f32(g, "zero", cases[i].zero);
        node(g, "Ceil", "c", "x"); /* -0 of what is between -1 and 0 */
        node(g, cases[i].op, "s", cases[i].first ? "zero c" : "c zero");
        node(g, "Reciprocal", "y", "s");
        outputs(g, "y");
        CHECK_OK(finish(m, "identity", &p));
        CHECK_EQ(count_ops(p, cases[i].op), cases[i].goes ? 0 : 1);
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

TEST(integer_zeros_are_dropped)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_I64, DIMS(2));
    const_i64(g, "zero", 2, (int64_t[]){0, 0});
    node(g, "Abs", "a", "x");
    node(g, "Add", "s", "a zero");
    node(g, "Sub", "d", "s zero");
    node(g, "Neg", "y", "d");
    outputs(g, "y");
    CHECK_OK(finish(m, "identity", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    end_pass_model(m, p);
}

TEST(what_does_something_stays)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, 3));
    const_i64(g, "wide", 2, (int64_t[]){2, 3});
    node(g, "Expand", "a", "x wide");
    sn_node *tr = node(g, "Transpose", "b", "a");
    attr_ints(g, tr, "perm", DIMS(1, 0));
    const_f32(g, "zeros", 0, DIMS(4, 3, 2));
    memset(value(g, "zeros")->fact.data->data, 0, value(g, "zeros")->fact.data->bytes);
    node(g, "Add", "c", "b zeros"); /* adds nothing but makes it larger */
    sn_node *cast = node(g, "Cast", "y", "c");
    attr_int(g, cast, "to", SONDE_DTYPE_F64);
    outputs(g, "y");
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(p->n_live_nodes, 4);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(a_hundred_thousand_nodes_pass_through_all_passes)
{
    enum { N = 100000 };
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    sn_value *prev = typed_input(g, "x", SONDE_DTYPE_F32, DIMS(1, 4, 2, 2)), *side = prev;
    for (int i = 0; i < N; i++) {
        sn_node *n;
        sn_value *v;
        const char *type = i % 3 == 0 ? "Identity" : i % 3 == 1 ? "Relu" : "Add";
        CHECK_OK(sn_graph_add_node(g, NULL, "", type, "", i % 3 == 2 ? 2 : 1, 1, &n, &err));
        CHECK_OK(sn_graph_add_value(g, "", &v, &err));
        sn_node_set_input(n, 0, prev);
        if (i % 3 == 2)
            sn_node_set_input(n, 1, side);
        sn_node_set_output(n, 0, v);
        side = prev;
        prev = v;
    }
    CHECK_OK(sn_graph_add_output(g, prev, &err));
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(count_ops(p, "Identity"), 0);
    end_pass_model(m, p);
}

TEST(passes_have_names_and_can_be_switched_off)
{
    for (size_t k = 0; sn_pass_row(k); k++) {
        CHECK(sn_pass_row(k)->name[0] && sn_pass_row(k)->summary[0]);
        for (size_t j = 0; j < k; j++)
            CHECK(strcmp(sn_pass_row(k)->name, sn_pass_row(j)->name) != 0);
    }
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2));
    node(g, "Identity", "a", "x");
    node(g, "Neg", "y", "a");
    outputs(g, "y");
    CHECK_OK(finish(m, "dead-code", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    CHECK_OK(run_passes(p, NULL));
    CHECK_EQ(p->n_live_nodes, 1);
    end_pass_model(m, p);
}

TEST_MAIN()
