/* SPDX-License-Identifier: Apache-2.0 */
/* The IR: use lists, rewiring, origins, sorting, cloning, printing, and a hundred thousand nodes.
 */
#include "graph/build.h"

TEST(use_lists_follow_every_change)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "a b");
    sn_node *add = node(g, "Add", "x", "a a");
    sn_node *mul = node(g, "Mul", "y", "x b");
    outputs(g, "y x");
    CHECK_OK(sn_graph_verify(g, &err));
    CHECK_EQ(value(g, "a")->n_uses, 2);
    sn_node_set_input(add, 1, value(g, "b"));
    CHECK_EQ(value(g, "a")->n_uses, 1);
    CHECK_EQ(value(g, "b")->n_uses, 2);
    for (int i = 0; i < 20; i++) /* the array moves, also with one value read many times */
        CHECK_OK(sn_node_add_input(g, mul, value(g, i % 3 ? "x" : "b"), &err));
    CHECK_OK(sn_graph_verify(g, &err));
    sn_value_replace(g, value(g, "x"), value(g, "a"));
    CHECK_OK(sn_graph_verify(g, &err));
    CHECK_EQ(value(g, "x")->n_uses, 0);
    CHECK(g->outputs.data[1] == value(g, "a"));
    CHECK_OK(sn_graph_remove(g, add, &err));
    CHECK_EQ(sn_graph_remove(g, mul, &err), SONDE_INTERNAL);
    CHECK_EQ(g->n_live_nodes, 1);
    end_model(m);
}

TEST(replacing_nodes_unites_their_origins)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "a");
    node(g, "Conv", "x", "a");
    node(g, "Add", "y", "x a");
    node(g, "Relu", "z", "y");
    node(g, "Neg", "unused", "a");
    outputs(g, "z");
    CHECK_OK(sn_model_finish(m, &err));
    sn_node *conv = g->first, *add = conv->next, *relu = add->next, *neg = relu->next, *fused;
    CHECK_OK(sn_graph_add_node(g, relu, "sonde", "FusedConv", "", 1, 1, &fused, &err));
    sn_node_set_input(fused, 0, value(g, "a"));
    sn_node_set_output(fused, 0, value(g, "z"));
    sn_node *olds[] = {relu, conv, add};
    CHECK_OK(sn_graph_replace(g, olds, 3, fused, conv, &err));
    CHECK_EQ(fused->n_origins, 3);
    CHECK_STR(m->origins.list.data[fused->anchor].op_type, "Conv");
    CHECK(fused->origins[0] == 0 && fused->origins[1] == 1 && fused->origins[2] == 2);
    CHECK_OK(sn_graph_remove(g, neg, &err));
    CHECK(g->folded.n == 1 && g->folded.data[0] == 3);
    CHECK_OK(sn_graph_verify(g, &err));
    CHECK_EQ(g->n_live_nodes, 1);
    end_model(m);
}

TEST(values_nobody_needs_are_dropped_and_the_others_numbered_anew)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "unread a");
    sn_node *dead = node(g, "Neg", "gone", "a");
    node(g, "Add", "x", "a w");
    value(g, "w")->is_initializer = true;
    value(g, "unused_weight")->is_initializer = true;
    outputs(g, "x");
    CHECK_OK(sn_graph_remove(g, dead, &err));
    CHECK_EQ(g->values.n, 6);
    sn_graph_drop_values(g);
    CHECK_OK(sn_graph_verify(g, &err));
    CHECK_EQ(g->values.n, 4);
    const char *kept[] = {"unread", "a", "w", "x"};
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_STR(g->values.data[i]->name, kept[i]);
        CHECK_EQ(g->values.data[i]->id, i);
    }
    end_model(m);
}

TEST(sorting_moves_only_what_it_must)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "a");
    node(g, "N1", "x1", "a");
    node(g, "N3", "x3", "x2 x4");
    node(g, "N2", "x2", "x1");
    node(g, "N4", "x4", "a");
    node(g, "N5", "x5", "x1");
    outputs(g, "x3 x5");
    CHECK_OK(sn_graph_sort(g, &err));
    const char *order[] = {"N1", "N2", "N4", "N3", "N5"};
    int i = 0;
    sn_graph_each (n, g)
        CHECK_STR(n->op_type, order[i++]);
    CHECK_OK(sn_graph_verify(g, &err));
    end_model(m);
}

TEST(a_cycle_is_told_by_a_node_in_it)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "a");
    node(g, "Add", "x", "a z");
    node(g, "Neg", "z", "x");
    outputs(g, "z");
    CHECK_EQ(sn_model_finish(m, &err), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "'n_x'");
    CHECK_HAS(err.message, "cycle");
    end_model(m);
}

TEST(a_clone_is_equal_and_apart)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "a c");
    node(g, "Neg", "x", "a");
    sn_node *iff = node(g, "If", "y", "c");
    sn_graph *b = body(g, iff, "then_branch");
    node(b, "Add", "s", "x x");
    outputs(b, "s");
    outputs(g, "y");
    CHECK(sn_graph_symbol(g, "N") == 1 && sn_graph_symbol(b, "M") == 2 &&
          sn_graph_symbol(g, "N") == 1);
    CHECK_OK(sn_model_finish(m, &err));
    static char before[sizeof build_text];
    strcpy(before, text_of(g));
    sn_arena arena;
    sn_arena_init(&arena, &build_alloc.a);
    sn_graph *copy;
    CHECK_OK(sn_graph_clone(g, &arena, &copy, &err));
    CHECK_OK(sn_graph_verify(copy, &err));
    CHECK_STR(text_of(copy), before);
    CHECK_EQ(sn_graph_symbol(copy, "M"), 2);
    for (size_t i = 0; i < g->values.n; i++)
        CHECK(copy->values.data[i]->id == i && copy->values.data[i] != g->values.data[i]);
    sn_graph *inner = sn_node_body(copy->last, 0);
    CHECK(inner && inner != b && inner->parent == copy);
    sn_value_replace(inner, inner->outputs.data[0], inner->inputs.data[0]);
    CHECK_STR(text_of(g), before);
    sn_graph_free(copy);
    sn_arena_free(&arena);
    end_model(m);
}

TEST(the_text_form_shows_everything)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "a");
    sn_node *n = node(g, "Conv", "x _", "a _ w");
    attr_int(g, n, "group", 4);
    float data[2] = {1, 2};
    sn_tensor t = {.dtype = SONDE_DTYPE_F32, .rank = 1, .dims = {2}, .data = data, .bytes = 8};
    CHECK_OK(sn_value_set_constant(g, value(g, "w"), &t, &err));
    outputs(g, "x");
    CHECK_STR(text_of(g), "graph _ {\n  input %a : ?\n  const %w : f32[2]\n"
                          "  %x, _ = Conv(%a, _, %w) {group=4} : ?, _  # n_x\n  output %x\n}\n");
    size_t at = 0;
    sn_graph_print_dot(g, build_write, &at);
    CHECK_HAS(build_text, "digraph");
    CHECK_HAS(build_text, "-> g0n0");
    end_model(m);
}

TEST(too_many_attributes_and_too_deep_graphs_are_refused)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    sn_node *n = node(g, "X", "y", "");
    sonde_status st = SONDE_OK;
    static char names[SN_MAX_ATTRS + 1][8];
    for (int i = 0; i <= SN_MAX_ATTRS && st == SONDE_OK; i++) {
        snprintf(names[i], sizeof names[i], "a%d", i);
        sn_attr a = {.name = names[i], .kind = SN_ATTR_INT, .n = 1, .i = i};
        st = sn_node_set_attr(g, n, &a, &err);
    }
    CHECK_EQ(st, SONDE_LIMIT);
    sn_node_remove_attr(n, "a5");
    CHECK(!sn_node_attr(n, "a5") && sn_node_attr(n, "a6")->i == 6);
    int depth = 0;
    for (st = SONDE_OK; st == SONDE_OK && depth < 1000; depth++) {
        sn_graph *b;
        st = sn_graph_new(&b, g->arena, g->alloc, "b", g, &err);
        g = b ? b : g;
    }
    CHECK_EQ(st, SONDE_LIMIT);
    CHECK_EQ(depth, SN_MAX_GRAPH_DEPTH + 1);
    end_model(m);
}

TEST(a_hundred_thousand_nodes_in_reverse_are_sorted_and_cloned)
{
    enum { N = 100000 };
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    sn_value *prev, *in;
    CHECK_OK(sn_graph_add_value(g, "in", &in, &err));
    CHECK_OK(sn_graph_add_input(g, in, &err));
    prev = in;
    for (int i = 0; i < N; i++) { /* each new node is put at the front */
        sn_node *n;
        sn_value *v;
        CHECK_OK(sn_graph_add_node(g, g->first, "", "Add", "", 2, 1, &n, &err));
        CHECK_OK(sn_graph_add_value(g, "", &v, &err));
        sn_node_set_input(n, 0, prev);
        sn_node_set_input(n, 1, in);
        sn_node_set_output(n, 0, v);
        prev = v;
    }
    CHECK_OK(sn_graph_add_output(g, prev, &err));
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(sn_graph_verify(g, &err));
    sn_arena arena;
    sn_arena_init(&arena, &build_alloc.a);
    sn_graph *copy;
    CHECK_OK(sn_graph_clone(g, &arena, &copy, &err));
    CHECK_OK(sn_graph_verify(copy, &err));
    CHECK_EQ(copy->n_live_nodes, N);
    sn_graph_free(copy);
    sn_arena_free(&arena);
    end_model(m);
}

TEST_MAIN()
