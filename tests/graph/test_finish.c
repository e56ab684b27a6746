/* SPDX-License-Identifier: Apache-2.0 */
/* Between reading and use: captures become edges, functions disappear, nodes get versions and
 * origins; hostile models are refused with a sentence; no allocation failure leaks. */
#include "graph/build.h"

TEST(a_body_reads_outer_values_through_inputs_of_its_node)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "a c");
    sn_node *iff = node(g, "If", "y", "c"); /* before what its bodies read: sorting repairs that */
    sn_graph *t = body(g, iff, "then_branch"), *e = body(g, iff, "else_branch");
    node(t, "Add", "s", "x a");
    outputs(t, "s");
    outputs(e, "x"); /* an outer value handed out directly */
    node(g, "Neg", "x", "a");
    outputs(g, "y");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(sn_graph_verify(g, &err));
    CHECK_STR(g->last->op_type, "If");
    CHECK_EQ(iff->n_formal_in, 1);
    CHECK_EQ(iff->n_in, 3); /* x once, though both bodies read it */
    CHECK_EQ(t->capture_map.n, 2);
    CHECK_EQ(e->capture_map.n, 1);
    for (size_t k = 0; k < 2; k++)
        CHECK_STR(iff->in[t->capture_map.data[k]].value->name, t->inputs.data[k]->name);
    CHECK(iff->in[e->capture_map.data[0]].value == value(g, "x"));
    CHECK_OK(sn_model_finish(m, &err)); /* twice changes nothing */
    CHECK_EQ(iff->n_in, 3);
    end_model(m);
}

TEST(captures_pass_through_the_graphs_between)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "a c");
    sn_node *outer = node(g, "If", "y", "c");
    sn_graph *t = body(g, outer, "then_branch");
    sn_node *inner = node(t, "If", "z", "c");
    sn_graph *tt = body(t, inner, "then_branch");
    node(tt, "Neg", "q", "a");
    outputs(tt, "q");
    outputs(t, "z");
    outputs(g, "y");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(sn_graph_verify(g, &err));
    CHECK_EQ(outer->n_in, 3); /* c, and captures c and a */
    CHECK_EQ(t->inputs.n, 2);
    CHECK_EQ(inner->n_in, 2);
    CHECK(inner->in[1].value == value(t, "a") && value(t, "a")->is_input);
    end_model(m);
}

TEST(captured_constants_are_shared)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    static float data[1] = {3};
    static const sn_tensor t1 = {.dtype = SONDE_DTYPE_F32, .data = data, .bytes = 4};
    inputs(g, "c");
    CHECK_OK(sn_value_set_constant(g, value(g, "w"), &t1, &err));
    sn_node *outer = node(g, "If", "y", "c");
    sn_graph *t = body(g, outer, "then_branch");
    sn_node *inner = node(t, "If", "z", "c");
    sn_graph *tt = body(t, inner, "then_branch");
    node(tt, "Neg", "q", "w");
    outputs(tt, "q");
    outputs(t, "z");
    outputs(g, "y");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_EQ(outer->n_in, 2);
    CHECK_EQ(inner->n_in, 1);
    CHECK(value(tt, "w")->fact.data == &t1);
    CHECK_OK(sn_graph_verify(g, &err));
    end_model(m);
}

TEST(an_undefined_name_is_told_with_its_reader)
{
    sn_model *m = model(0);
    sn_graph *g = m->graph;
    inputs(g, "c");
    sn_node *iff = node(g, "If", "y", "c");
    sn_graph *t = body(g, iff, "then_branch");
    node(t, "Neg", "q", "nowhere");
    outputs(t, "q");
    outputs(g, "y");
    CHECK_EQ(sn_model_finish(m, &err), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "'nowhere'");
    CHECK_HAS(err.message, "'n_q' (Neg)");
    end_model(m);

    m = model(0);
    outputs(m->graph, "ghost");
    CHECK_EQ(sn_model_finish(m, &err), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "'ghost'");
    end_model(m);
}

TEST(a_domain_that_is_not_imported_is_an_error)
{
    sn_model *m = model(0);
    inputs(m->graph, "a");
    node(m->graph, "exotic.Op", "y", "a");
    outputs(m->graph, "y");
    CHECK_EQ(sn_model_finish(m, &err), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "'exotic'");
    end_model(m);
}

TEST(calls_are_replaced_by_bodies)
{
    sn_model *m = model(0);
    sn_graph *f = function(m, "f", "p q", "r p"); /* hands an input through, too */
    static const sn_opset imports[] = {{"", 13}};
    static const sn_attr defaults[] = {{.name = "k", .kind = SN_ATTR_INT, .n = 1, .i = 7}};
    m->functions.data[0].opsets = imports;
    m->functions.data[0].n_opsets = 1;
    m->functions.data[0].attr_defaults = defaults;
    m->functions.data[0].n_attr_defaults = 1;
    sn_node *add = node(f, "Add", "t", "p q");
    attr_ref(f, add, "alpha", "k");
    attr_ref(f, add, "beta", "other");
    node(f, "local.g", "r", "t");
    sn_graph *gf = function(m, "g", "v", "w");
    node(gf, "Relu", "w", "v");

    sn_graph *g = m->graph;
    inputs(g, "a b");
    sn_node *call1 = node(g, "local.f", "x same", "a b");
    attr_int(g, call1, "other", 3);
    node(g, "local.f", "y", "x"); /* second input left out */
    outputs(g, "y same");
    CHECK_EQ(build_status, SONDE_OK);
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(sn_graph_verify(g, &err));
    CHECK_EQ(g->n_live_nodes, 5);
    sn_node *first = value(g, "x")->producer;
    CHECK_STR(first->op_type, "Relu");
    CHECK_STR(first->in[0].value->name, "n_x/t");
    CHECK_STR(first->function, "f/g");
    sn_node *a1 = first->in[0].value->producer;
    CHECK_EQ(a1->opset, 13);
    CHECK_EQ(first->opset, 17);
    CHECK(sn_node_attr(a1, "alpha")->i == 7 && sn_node_attr(a1, "beta")->i == 3);
    sn_node *a2 = value(g, "y")->producer->in[0].value->producer;
    CHECK(a2->in[0].value == value(g, "x") && !a2->in[1].value);
    CHECK(!sn_node_attr(a2, "beta"));
    CHECK_STR(value(g, "same")->producer->op_type, "Identity");
    CHECK(value(g, "same")->producer->in[0].value == value(g, "a"));
    CHECK_EQ(m->origins.list.n, 5);
    end_model(m);
}

TEST(names_stay_unique_when_calls_share_a_name)
{
    sn_model *m = model(0);
    sn_graph *f = function(m, "f", "p", "r");
    node(f, "Neg", "t", "p");
    node(f, "Abs", "r", "t");
    sn_graph *g = m->graph;
    inputs(g, "a");
    node(g, "local.f", "x", "a")->name = "call";
    node(g, "local.f", "y", "x")->name = "call";
    node(g, "Neg", "call/t", "a");
    node(g, "local.f", "z", "y")->name = "";
    outputs(g, "z call/t");
    CHECK_OK(sn_model_finish(m, &err));
    for (size_t i = 0; i < g->values.n; i++)
        for (size_t j = 0; j < i; j++)
            CHECK_MSG(strcmp(g->values.data[i]->name, g->values.data[j]->name) != 0, "%s",
                      g->values.data[i]->name);
    CHECK_OK(sn_graph_verify(g, &err));
    end_model(m);
}

TEST(functions_are_inlined_in_bodies_and_may_have_bodies)
{
    sn_model *m = model(0);
    sn_graph *f = function(m, "f", "p opt", "r");
    node(f, "Neg", "t", "p");
    sn_node *iff = node(f, "If", "r", "p");
    sn_graph *fb = body(f, iff, "then_branch");
    sn_node *clip = node(fb, "Clip", "s", "t opt"); /* captures, one of them possibly left out */
    attr_ref(fb, clip, "k", "k");
    node(fb, "local.g", "u", "s");
    outputs(fb, "u");
    sn_graph *gf = function(m, "g", "v", "w");
    node(gf, "Relu", "w", "v");

    sn_graph *g = m->graph;
    inputs(g, "a c");
    sn_node *top = node(g, "If", "y", "c");
    sn_graph *t = body(g, top, "then_branch");
    sn_node *call = node(t, "local.f", "q", "a");
    attr_int(t, call, "k", 5);
    outputs(t, "q");
    outputs(g, "y");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(sn_graph_verify(g, &err));
    CHECK_EQ(t->n_live_nodes, 2);
    sn_node *inner = value(t, "q")->producer;
    CHECK_STR(inner->op_type, "If");
    sn_graph *ib = sn_node_body(inner, 0);
    CHECK_EQ(ib->capture_map.n, 1); /* opt is gone */
    CHECK_STR(inner->in[ib->capture_map.data[0]].value->name, "n_q/t");
    CHECK_STR(ib->first->op_type, "Clip");
    CHECK(!ib->first->in[1].value && sn_node_attr(ib->first, "k")->i == 5);
    CHECK_STR(ib->last->op_type, "Relu");
    CHECK_STR(ib->last->function, "f/g");
    CHECK_EQ(m->origins.list.n, 5);
    end_model(m);
}

TEST(recursion_and_explosion_are_refused)
{
    sn_model *m = model(0);
    sn_graph *f = function(m, "f", "p", "r"), *h = function(m, "h", "p", "r");
    node(f, "local.h", "r", "p");
    node(h, "local.f", "r", "p");
    inputs(m->graph, "a");
    node(m->graph, "local.f", "y", "a");
    outputs(m->graph, "y");
    CHECK_EQ(sn_model_finish(m, &err), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "calls itself");
    end_model(m);

    m = model(0); /* each calls the next twice: 2^40 nodes from 80 */
    static char names[41][8], calls[41][16];
    for (int i = 0; i <= 40; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        snprintf(calls[i], sizeof calls[i], "local.f%d", i + 1);
        sn_graph *b = function(m, names[i], "p", "r");
        node(b, i < 40 ? calls[i] : "Neg", "t", "p");
        node(b, i < 40 ? calls[i] : "Neg", "r", "t");
    }
    inputs(m->graph, "a");
    node(m->graph, "local.f0", "y", "a");
    outputs(m->graph, "y");
    CHECK_EQ(sn_model_finish(m, &err), SONDE_LIMIT);
    CHECK_HAS(err.message, "too large");
    end_model(m);

    m = model(0);
    f = function(m, "f", "p", "r");
    node(f, "Neg", "r", "p");
    inputs(m->graph, "a");
    node(m->graph, "local.f", "y", "a a");
    outputs(m->graph, "y");
    CHECK_EQ(sn_model_finish(m, &err), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "takes 1");
    end_model(m);
}

TEST(a_value_defined_twice_is_refused)
{
    sn_model *m = model(0);
    inputs(m->graph, "a y");
    node(m->graph, "Neg", "y", "a");
    outputs(m->graph, "y");
    CHECK_EQ(sn_model_finish(m, &err), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "twice");
    end_model(m);
}

/* Builds and finishes a model with all of it; any step may run out of memory. */
static sonde_status whole_model(size_t fail_at, sn_model **out)
{
    sn_model *m = *out = model(fail_at);
    if (!m)
        return build_status;
    sn_graph *f = function(m, "f", "p opt", "r p");
    if (!f)
        return build_status;
    node(f, "Neg", "t", "p");
    sn_node *iff = node(f, "If", "r", "p");
    sn_graph *fb = body(f, iff, "then_branch");
    if (!fb)
        return build_status;
    sn_node *clip = node(fb, "Clip", "s", "t opt");
    attr_ref(fb, clip, "k", "k");
    outputs(fb, "s");
    sn_graph *g = m->graph;
    inputs(g, "a c");
    sn_node *top = node(g, "If", "y", "c");
    sn_graph *t = body(g, top, "then_branch");
    if (!t)
        return build_status;
    node(t, "local.f", "q", "x");
    outputs(t, "q");
    node(g, "local.f", "x x2", "a c");
    outputs(g, "y x2");
    if (build_status != SONDE_OK)
        return build_status;
    SN_TRY(sn_model_finish(m, &err));
    sn_arena arena;
    sn_graph *copy;
    sn_arena_init(&arena, &build_alloc.a);
    sonde_status st = sn_graph_clone(g, &arena, &copy, &err);
    if (st == SONDE_OK)
        st = sn_graph_verify(copy, &err);
    sn_graph_free(copy);
    sn_arena_free(&arena);
    return st;
}

TEST(every_failing_allocation_is_reported_and_nothing_leaks)
{
    sn_model *m;
    CHECK_OK(whole_model(0, &m));
    size_t total = (size_t)build_alloc.calls;
    end_model(m);
    CHECK(total > 20);
    for (size_t k = 1; k <= total; k++) {
        sonde_status st = whole_model(k, &m);
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY, "allocation %zu of %zu: status %d", k, total, st);
        sn_model_unref(m);
        CHECK_MSG(atomic_load(&build_alloc.a.live_bytes) == 0, "allocation %zu of %zu leaks", k,
                  total);
    }
}

TEST_MAIN()
