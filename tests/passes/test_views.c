/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of reshapes and transposes: the shortest that does the same, alone and around products. */
#include "passes/interpret.h"

static void transpose(sn_graph *g, const char *out, const char *in, int n, const int64_t *perm)
{
    attr_ints(g, node(g, "Transpose", out, in), "perm", n, perm);
}

static void reshape(sn_graph *g, const char *out, const char *in, int n, const int64_t *dims)
{
    char name[80], ins[160];
    snprintf(name, sizeof name, "shape_%s", out);
    const_i64(g, name, n, dims);
    snprintf(ins, sizeof ins, "%s %s", in, name);
    node(g, "Reshape", out, ins);
}

static sn_value *rows(sn_graph *g, int64_t columns)
{
    const uint32_t batch = sn_graph_symbol(g, "B");
    if (!batch)
        build_note(SONDE_OUT_OF_MEMORY);
    sn_dim dims[3] = {sn_dim_symbol(batch), 7, columns};
    return typed_input(g, "x", SONDE_DTYPE_F32, 3, dims);
}

static bool perm_is(const sn_node *n, int count, const int64_t *perm)
{
    const sn_attr *a = sn_node_attr(n, "perm");
    return a && a->n == (size_t)count && memcmp(a->ints, perm, a->n * sizeof *perm) == 0;
}

TEST(heads_split_behind_a_change_of_batch_and_length_are_one_transpose)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    rows(g, 8);
    transpose(g, "tbc", "x", DIMS(1, 0, 2));
    reshape(g, "split", "tbc", DIMS(7, -1, 4)); /* [T, B·2, 4] */
    transpose(g, "heads", "split", DIMS(1, 0, 2));
    reshape(g, "y", "heads", DIMS(-1, 2, 7, 4));
    outputs(g, "y");
    sn_graph *p = NULL;
    CHECK_OK(finish(m, "fold-views", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    CHECK_STR(p->first->op_type, "Reshape");
    CHECK_STR(p->last->op_type, "Transpose");
    CHECK(perm_is(p->last, DIMS(0, 2, 1, 3)));
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(chains_of_every_kind_compute_the_same_after_folding)
{
    for (int k = 0; k < 6; k++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph;
        rows(g, 12);
        const_i64(g, "front", 1, (int64_t[]){0});
        const_i64(g, "back", 1, (int64_t[]){-1});
        if (k == 0) { /* nothing is left */
            reshape(g, "a", "x", DIMS(0, 7, 3, 4));
            reshape(g, "b", "a", DIMS(0, 0, 12));
            node(g, "Relu", "y", "b");
        } else if (k == 1) { /* one reshape is left */
            node(g, "Unsqueeze", "a", "x front");
            reshape(g, "b", "a", DIMS(-1, 84));
            node(g, "Relu", "y", "b");
        } else if (k == 2) {
            node(g, "Unsqueeze", "a", "x back");
            transpose(g, "b", "a", DIMS(3, 1, 0, 2));
            node(g, "Squeeze", "y", "b front");
        } else if (k == 3) {
            reshape(g, "a", "x", DIMS(0, 7, 2, 6));
            transpose(g, "b", "a", DIMS(2, 0, 3, 1));
            reshape(g, "c", "b", DIMS(2, 0, 42));
            transpose(g, "y", "c", DIMS(1, 2, 0));
        } else if (k == 4) { /* the transpose moves nothing but ones */
            reshape(g, "a", "x", DIMS(0, 1, 7, 12));
            transpose(g, "b", "a", DIMS(1, 0, 2, 3));
            reshape(g, "y", "b", DIMS(-1, 7, 4, 3));
        } else { /* 8 and 12 have no common grouping: stays */
            reshape(g, "a", "x", DIMS(-1, 14));
            transpose(g, "b", "a", DIMS(1, 0));
            reshape(g, "y", "b", DIMS(7, -1));
        }
        outputs(g, "y");
        const uint32_t before = g->n_live_nodes;
        sn_graph *p = NULL;
        CHECK_OK(finish(m, "fold-views", &p));
        CHECK_MSG(k == 5 ? p->n_live_nodes == before : p->n_live_nodes < before, "case %d", k);
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

TEST(values_inside_a_chain_that_others_read_stay)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    rows(g, 8);
    reshape(g, "a", "x", DIMS(0, 7, 2, 4));
    reshape(g, "y", "a", DIMS(0, 0, 8));
    outputs(g, "y a");
    sn_graph *p = NULL;
    CHECK_OK(finish(m, "fold-views", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

/* Multi-head attention the way PyTorch's module is exported: length before batch, one product for
 * queries, keys and values, whose parts are gathered. */
static void attention(sn_graph *g)
{
    rows(g, 8);
    const_f32(g, "w", 0, DIMS(8, 24));
    const_f32(g, "c", 0, DIMS(24));
    const_f32(g, "wo", 0, DIMS(8, 8));
    const_f32(g, "co", 0, DIMS(8));
    const_i64(g, "front", 1, (int64_t[]){0});
    const_i64(g, "minus_two", 1, (int64_t[]){-2});
    transpose(g, "tbc", "x", DIMS(1, 0, 2));
    node(g, "MatMul", "product", "tbc w");
    node(g, "Add", "qkv", "product c");
    reshape(g, "parts", "qkv", DIMS(7, -1, 3, 8));
    node(g, "Unsqueeze", "five", "parts front");
    transpose(g, "first", "five", DIMS(3, 1, 2, 0, 4));
    node(g, "Squeeze", "four", "first minus_two");
    for (int i = 0; i < 3; i++) {
        char name[4][16], ins[32];
        static const char *const text[] = {"part", "split", "moved", "heads"};
        for (int k = 0; k < 4; k++)
            snprintf(name[k], sizeof name[k], "%s%d", text[k], i);
        snprintf(ins, sizeof ins, "i%d", i);
        const_i64(g, ins, 1, (int64_t[]){i});
        sn_value *index = value(g, ins);
        sn_tensor *scalar = SN_NEW(g->arena, sn_tensor);
        if (!index || !scalar) {
            build_note(SONDE_OUT_OF_MEMORY);
            return;
        }
        *scalar = *index->fact.data;
        scalar->rank = 0;
        build_note(sn_value_set_constant(g, index, scalar, &err));
        snprintf(ins, sizeof ins, "four i%d", i);
        node(g, "Gather", name[0], ins);
        reshape(g, name[1], name[0], DIMS(7, -1, 4));
        transpose(g, name[2], name[1], DIMS(1, 0, 2));
        reshape(g, name[3], name[2], DIMS(-1, 2, 7, 4));
    }
    transpose(g, "keys", "heads1", DIMS(0, 1, 3, 2));
    node(g, "MatMul", "scores", "heads0 keys");
    node(g, "Softmax", "weights", "scores");
    node(g, "MatMul", "mixed", "weights heads2");
    transpose(g, "back", "mixed", DIMS(2, 0, 1, 3));
    reshape(g, "flat", "back", DIMS(-1, 8));
    node(g, "Gemm", "out", "flat wo co");
    reshape(g, "tbc2", "out", DIMS(7, -1, 8));
    transpose(g, "btc", "tbc2", DIMS(1, 0, 2));
    node(g, "Add", "y", "btc x");
    outputs(g, "y");
}

TEST(attention_with_the_length_first_becomes_batch_first)
{
    sn_model *m = pass_model(0);
    attention(m->graph);
    sn_graph *p = NULL;
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(count_ops(p, "Gather"), 0);
    CHECK_EQ(count_ops(p, "Split"), 0);
    CHECK_EQ(count_ops(p, "Transpose"), 0);
    CHECK_EQ(count_ops(p, "FusedAttention"), 1);
    CHECK_EQ(count_ops(p, "Add"), 0);
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

TEST(elementwise_nodes_between_two_transposes_work_on_what_was_before)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3, 4, 5));
    typed_input(g, "z", SONDE_DTYPE_F32, DIMS(2, 3, 4, 5));
    const_f32(g, "channel", 0, DIMS(3));
    const_f32(g, "row", 0, DIMS(1, 4, 1, 1));
    scalar_f32(g, "two", 2);
    transpose(g, "a", "x", 4, to_last);
    transpose(g, "b", "z", 4, to_last);
    node(g, "Relu", "c", "a");
    node(g, "Add", "d", "b c");
    node(g, "Mul", "e", "channel d");
    node(g, "Sub", "f", "e row");
    node(g, "Div", "h", "f two");
    transpose(g, "i", "h", 4, to_first);
    node(g, "Tanh", "y", "i");
    outputs(g, "y");
    CHECK_OK(finish(m, "sink-transposes", &p));
    CHECK_EQ(count_ops(p, "Transpose"), 2);
    CHECK_OK(run_passes(p, "fold-views"));
    CHECK_EQ(count_ops(p, "Transpose"), 0);
    check_same(m, p, 1e-6);
    end_pass_model(m, p);
}

TEST(a_transpose_that_has_no_partner_stays_where_it_is)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3, 4));
    const_f32(g, "plane", 0, DIMS(4, 3)); /* varies along two axes */
    transpose(g, "a", "x", DIMS(0, 2, 1));
    node(g, "Relu", "b", "a");
    transpose(g, "c", "x", DIMS(0, 2, 1));
    node(g, "Mul", "d", "c plane");
    transpose(g, "e", "d", DIMS(0, 2, 1));
    outputs(g, "b e");
    CHECK_OK(finish(m, "sink-transposes", &p));
    CHECK_EQ(p->n_live_nodes, 5);
    CHECK_STR(p->first->op_type, "Transpose");
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(a_product_reads_a_turned_matrix_as_it_lies)
{
    for (int swap = 0; swap < 2; swap++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 1, 4, 5));
        typed_input(g, "k", SONDE_DTYPE_F32, 4,
                    swap ? (int64_t[]){1, 3, 6, 5} : (int64_t[]){1, 6, 3, 5});
        transpose(g, "t", "k", 4, swap ? (int64_t[]){0, 1, 3, 2} : (int64_t[]){0, 2, 3, 1});
        node(g, "MatMul", "y", "x t");
        outputs(g, "y");
        CHECK_OK(finish(m, "transposed-products", &p));
        CHECK_EQ(p->n_live_nodes, swap ? 1 : 2);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

/* Everything from building to the last pass, with the k-th allocation refused. */
static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = pass_model(fail_at);
    if (!*m)
        return build_status;
    attention((*m)->graph);
    return build_status != SONDE_OK ? build_status : finish(*m, NULL, p);
}

TEST(every_failing_allocation_on_the_way_is_reported)
{
    check_failing_allocations(whole);
}

TEST_MAIN()
