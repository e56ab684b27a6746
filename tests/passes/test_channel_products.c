/* SPDX-License-Identifier: Apache-2.0 */
/* Products over an axis between two Transposes: which ones are computed where the axis lies. */
#include "passes/interpret.h"

typedef struct variant {
    int64_t rank, dims[4], axis, k, m;
    bool bias, open; /* open: the first dim is a symbol */
} variant;

static sn_model *mixing_model(const variant *v, bool other_way_back)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    const int rank = (int)v->rank;
    sn_dim dims[4];
    int64_t there[4], back[4];
    for (int i = 0; i < rank; i++) {
        dims[i] = i == v->axis ? v->k : v->dims[i];
        there[i] = i == rank - 1 ? v->axis : i < v->axis ? i : i + 1;
        back[i] = i == v->axis ? rank - 1 : i < v->axis ? i : i - 1;
    }
    if (v->open)
        dims[0] = sn_dim_symbol(sn_graph_symbol(g, "N"));
    if (other_way_back)
        memcpy(back, there, sizeof back);
    typed_input(g, "x", SONDE_DTYPE_F32, rank, dims);
    const_f32(g, "w", 0, DIMS(v->k, v->m));
    const_f32(g, "b", 0, DIMS(v->m));
    attr_ints(g, node(g, "Transpose", "t", "x"), "perm", rank, there);
    node(g, "MatMul", "p", "t w");
    if (v->bias)
        node(g, "Add", "s", "p b");
    attr_ints(g, node(g, "Transpose", "u", v->bias ? "s" : "p"), "perm", rank, back);
    node(g, "Relu", "y", "u");
    outputs(g, "y");
    return m;
}

TEST(a_product_of_a_few_channels_is_computed_where_they_lie)
{
    static const variant variants[] = {
        {4, {1, 0, 7, 9}, 1, 4, 4, true, false},    {4, {2, 0, 5, 5}, 1, 6, 3, true, false},
        {4, {2, 3, 0, 11}, 2, 5, 16, false, false}, {3, {3, 0, 17}, 1, 1, 4, true, false},
        {3, {0, 4, 18}, 0, 16, 2, false, false},    {4, {1, 0, 6, 8}, 1, 8, 8, true, true},
    };
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        sn_model *m = mixing_model(&variants[i], false);
        sn_graph *p = NULL;
        CHECK_OK(finish(m, "channel-products", &p));
        CHECK_EQ(count_ops(p, "Transpose"), 0);
        CHECK_EQ(count_ops(p, "MatMul"), 1);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(many_channels_and_other_orders_stay)
{
    static const variant wide = {4, {1, 0, 3, 5}, 1, 40, 4, true, false};
    static const variant cube = {4, {4, 0, 4, 4}, 1, 4, 4, false, false};
    sn_model *m = mixing_model(&wide, false);
    sn_graph *p = NULL;
    CHECK_OK(finish(m, "channel-products", &p));
    CHECK_EQ(count_ops(p, "Transpose"), 2);
    end_pass_model(m, p);
    m = mixing_model(&cube, true);
    CHECK_OK(finish(m, "channel-products", &p));
    CHECK_EQ(count_ops(p, "Transpose"), 2);
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

TEST_MAIN()
