/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rows that are gathered: which of them go before the gathering. */
#include "passes/interpret.h"

enum { NODES = 10, EDGES = 24, WIDTH = 32, COLUMNS = 7 };

static void const_edges(sn_graph *g, const char *name, bool tuples)
{
    int64_t index[EDGES];
    for (int i = 0; i < EDGES; i++)
        index[i] = (int64_t)(test_rand() % (2 * NODES)) - NODES; /* from either end */
    sn_value *v = const_i64(g, name, EDGES, index);
    if (!tuples)
        return;
    sn_tensor *t = SN_NEW(g->arena, sn_tensor);
    *t = *v->fact.data;
    t->rank = 2;
    t->dims[1] = 1;
    build_note(sn_value_set_constant(g, v, t, &err));
}

typedef struct gather_case {
    bool gemm, turned, bias, tuples; /* Gemm, transB, its addend; GatherND */
    int64_t nodes, edge; /* rows there are; numbers of an edge that are joined, 0: none */
    bool joined;
} gather_case;

static sn_model *gather_model(const gather_case *c)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    const char *gather = c->tuples ? "GatherND" : "Gather";
    const int64_t k = (c->joined ? 2 * WIDTH : WIDTH) + c->edge;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(c->nodes, WIDTH));
    const_edges(g, "from", c->tuples);
    const_edges(g, "to", c->tuples);
    node(g, gather, "a", "x from");
    if (c->edge)
        typed_input(g, "e", SONDE_DTYPE_F32, DIMS(EDGES, c->edge));
    if (c->joined) {
        node(g, gather, "b", "x to");
        attr_int(g, node(g, "Concat", "j", c->edge ? "a e b" : "a b"), "axis", -1);
    }
    const_f32(g, "w", 0, DIMS(c->turned ? COLUMNS : k, c->turned ? k : COLUMNS));
    const_f32(g, "row", 0, DIMS(COLUMNS));
    char in[20];
    snprintf(in, sizeof in, "%s w%s", c->joined ? "j" : "a", c->bias ? " row" : "");
    sn_node *n = node(g, c->gemm ? "Gemm" : "MatMul", "p", in);
    if (c->gemm) {
        attr_int(g, n, "transB", c->turned);
        attr_float(g, n, "alpha", 0.5f);
        attr_float(g, n, "beta", 0.25f);
    }
    node(g, "Relu", "y", "p");
    outputs(g, "y");
    return m;
}

static uint32_t rows_of_products(const sn_graph *g, int64_t rows)
{
    uint32_t n = 0;
    for (const sn_node *x = g->first; x; x = x->next)
        n += (strcmp(x->op_type, "Gemm") == 0 || strcmp(x->op_type, "MatMul") == 0) &&
             x->out[0]->fact.type.dims[0] == rows;
    return n;
}

static void goes_first(const gather_case *c)
{
    sn_model *m = gather_model(c);
    sn_graph *p = NULL;
    CHECK_OK(finish(m, "gather-later", &p));
    const uint32_t gathers = c->joined ? 2 : 1;
    CHECK_EQ(rows_of_products(p, c->nodes), gathers);
    CHECK_EQ(rows_of_products(p, EDGES), c->edge ? 1 : 0);
    CHECK_EQ(count_ops(p, c->tuples ? "GatherND" : "Gather"), gathers);
    CHECK_EQ(count_ops(p, "Concat"), 0);
    CHECK_EQ(count_ops(p, "Add"), gathers - 1 + (c->edge ? 1 : 0));
    for (const sn_node *n = p->first; n; n = n->next)
        CHECK_MSG(n->n_origins > 0, "%s has no origin", n->op_type);
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

TEST(products_of_more_rows_than_there_are_go_first)
{
    for (int i = 0; i < 64; i++) {
        const gather_case c = {.gemm = i & 1,
                               .turned = (i & 1) && (i & 2),
                               .bias = (i & 1) && (i & 4),
                               .tuples = i & 8,
                               .nodes = NODES,
                               .joined = i & 16,
                               .edge = (i & 16) && (i & 32) ? 5 : 0};
        goes_first(&c);
    }
}

static void stays(const gather_case *c)
{
    sn_model *m = gather_model(c);
    sn_graph *p = NULL;
    CHECK_OK(finish(m, "gather-later", &p));
    CHECK_EQ(rows_of_products(p, EDGES), 1);
    CHECK_EQ(count_ops(p, "Concat"), c->joined);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(products_of_few_gathered_rows_stay)
{
    stays(&(gather_case){.nodes = EDGES / 2 + 1});
    stays(&(gather_case){.nodes = EDGES, .joined = true, .gemm = true});
}

static void gather_along(int64_t axis, int rank, const int64_t *dims, int64_t k, bool first)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, rank, dims);
    const_edges(g, "from", false);
    attr_int(g, node(g, "Gather", "a", "x from"), "axis", axis);
    const_f32(g, "w", 0, DIMS(k, COLUMNS));
    node(g, "MatMul", "y", "a w");
    outputs(g, "y");
    CHECK_OK(finish(m, "gather-later", &p));
    CHECK_STR(p->first->op_type, first ? "MatMul" : "Gather");
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

TEST(rows_are_gathered_along_any_axis_but_the_last)
{
    const int64_t volume[] = {2, NODES, WIDTH}, table[] = {4, NODES};
    gather_along(1, 3, volume, WIDTH, true);
    gather_along(-2, 3, volume, WIDTH, true);
    gather_along(1, 2, table, EDGES, false);
    gather_along(-1, 2, table, EDGES, false);
}

TEST(a_gather_that_others_read_stays_for_them)
{
    const gather_case c = {.nodes = NODES, .joined = true};
    sn_model *m = gather_model(&c);
    sn_graph *g = m->graph, *p = NULL;
    node(g, "Neg", "z", "a");
    outputs(g, "z");
    CHECK_OK(finish(m, "gather-later", &p));
    CHECK_EQ(count_ops(p, "Gather"), 3);
    CHECK_EQ(rows_of_products(p, NODES), 2);
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = pass_model(fail_at);
    sn_graph *g = (*m) ? (*m)->graph : NULL;
    if (!g)
        return SONDE_OUT_OF_MEMORY;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, WIDTH));
    const_i64(g, "from", DIMS(0, 1, 0, 1));
    node(g, "Gather", "a", "x from");
    const_f32(g, "w", 0, DIMS(WIDTH, COLUMNS));
    node(g, "MatMul", "y", "a w");
    outputs(g, "y");
    return build_status == SONDE_OK ? finish(*m, "gather-later", p) : build_status;
}

TEST(every_failing_allocation_is_reported)
{
    check_failing_allocations(whole);
}

TEST_MAIN()
