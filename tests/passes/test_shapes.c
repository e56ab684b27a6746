/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes that are not numbers: what passes may conclude from symbols, chains that compute a shape,
 * and work that is done twice. */
#include "passes/interpret.h"

/* f32[N, M, 8] with symbols of the graph. */
static sn_value *free_input(sn_graph *g, const char *name)
{
    sn_dim dims[3] = {sn_dim_symbol(sn_graph_symbol(g, "N")),
                      sn_dim_symbol(sn_graph_symbol(g, "M")), 8};
    return typed_input(g, name, SONDE_DTYPE_F32, 3, dims);
}

TEST(a_residual_of_unknown_but_equal_dims_is_fused)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    free_input(g, "x");
    const_f32(g, "table", 0, DIMS(1, 9, 8));
    const_f32(g, "w", 0, DIMS(8, 8));
    const_i64(g, "zero", 1, (int64_t[]){0});
    const_i64(g, "one", 1, (int64_t[]){1});
    node(g, "Shape", "shape", "x");
    node(g, "Gather", "length", "shape one");
    node(g, "Slice", "part", "table zero length one");
    node(g, "Add", "sum", "x part"); /* M against min(9, M): some number */
    node(g, "MatMul", "product", "sum w");
    node(g, "Add", "y", "product sum");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-gemm", &p));
    CHECK_EQ(count_ops(p, "FusedGemm"), 1);
    CHECK_EQ(count_ops(p, "Add"), 1);
    check_same(m, p, 1e-5);
    end_pass_model(m, p);
}

TEST(dims_of_two_values_that_need_not_agree_stay_apart)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(SN_DIM_UNKNOWN, 8));
    typed_input(g, "z", SONDE_DTYPE_F32, DIMS(SN_DIM_UNKNOWN, 8));
    node(g, "Relu", "a", "x");
    node(g, "Relu", "b", "z");
    outputs(g, "a b");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(ready_copy(m, &p));
    const sn_type *x = &p->inputs.data[0]->fact.type, *z = &p->inputs.data[1]->fact.type;
    CHECK(!sn_type_same_shape(x, z));
    CHECK(sn_type_same_shape(x, &p->outputs.data[0]->fact.type));
    CHECK(sn_type_same_shape(z, &p->outputs.data[1]->fact.type));
    end_pass_model(m, p);
}

TEST(a_residual_is_fused_when_it_may_agree_and_not_when_it_cannot)
{
    for (int rows = 0; rows < 2; rows++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(SN_DIM_UNKNOWN, 8));
        typed_input(g, "z", SONDE_DTYPE_F32, DIMS(rows ? 1 : SN_DIM_UNKNOWN, 8));
        const_f32(g, "w", 0, DIMS(8, 8));
        node(g, "MatMul", "product", "x w");
        node(g, "Add", "y", "product z");
        outputs(g, "y");
        CHECK_OK(finish(m, NULL, &p));
        CHECK_EQ(count_ops(p, "Add"), rows);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

/* Relu(z + x·w), the product on a matrix of all rows. */
static sn_model *rows_model(const char *product, bool bias)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    free_input(g, "x");
    free_input(g, "z");
    const_f32(g, "w", 0, DIMS(8, 8));
    const_f32(g, "c", 0, DIMS(8));
    const_i64(g, "flat", 2, (int64_t[]){-1, 8});
    const_i64(g, "eight", 1, (int64_t[]){8});
    const_i64(g, "zero", 1, (int64_t[]){0});
    const_i64(g, "two", 1, (int64_t[]){2});
    node(g, "Shape", "shape", "x");
    node(g, "Slice", "dims", "shape zero two");
    attr_int(g, node(g, "Concat", "back", "dims eight"), "axis", 0);
    node(g, "Reshape", "rows", "x flat");
    bool gemm = strcmp(product, "Gemm") == 0;
    node(g, product, bias && !gemm ? "raw" : "p", bias && gemm ? "rows w c" : "rows w");
    if (bias && !gemm)
        node(g, "Add", "p", "raw c");
    node(g, "Reshape", "cube", "p back");
    node(g, "Add", "sum", "z cube");
    node(g, "Relu", "y", "sum");
    outputs(g, "y");
    return m;
}

TEST(a_product_takes_rows_as_they_are_grouped)
{
    for (int k = 0; k < 4; k++) {
        sn_model *m = rows_model(k & 1 ? "Gemm" : "MatMul", k & 2);
        sn_graph *p = NULL;
        CHECK_OK(finish(m, NULL, &p));
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_STR(p->first->op_type, "FusedGemm");
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(a_factor_behind_a_product_goes_into_weights_and_bias)
{
    for (int k = 0; k < 2; k++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        free_input(g, "x");
        const_f32(g, "w", 0, DIMS(8, 6));
        const_f32(g, "c", 0, DIMS(6));
        scalar_f32(g, "eight", 8);
        node(g, "MatMul", "product", "x w");
        node(g, "Add", "sum", "product c");
        node(g, k ? "Mul" : "Div", "y", k ? "eight sum" : "sum eight");
        outputs(g, "y");
        CHECK_OK(finish(m, "fuse-gemm", &p));
        CHECK_EQ(p->n_live_nodes, 1);
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(a_number_divided_by_a_product_is_not_a_factor)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    free_input(g, "x");
    const_f32(g, "w", 0, DIMS(8, 6));
    scalar_f32(g, "eight", 8);
    node(g, "MatMul", "product", "x w");
    node(g, "Div", "y", "eight product");
    outputs(g, "y");
    CHECK_OK(finish(m, "fuse-gemm", &p));
    CHECK_EQ(p->n_live_nodes, 2);
    end_pass_model(m, p);
}

static void split_heads(sn_graph *g, const char *tail)
{
    char list[64];
    snprintf(list, sizeof list, "n %s", tail);
    const_i64(g, "zero", 1, (int64_t[]){0});
    const_i64(g, "one", 1, (int64_t[]){1});
    const_i64(g, "two", 1, (int64_t[]){2});
    const_i64(g, "four", 1, (int64_t[]){4});
    node(g, "Shape", "shape", "x");
    node(g, "Gather", "n", "shape zero");
    node(g, "Gather", "m", "shape one");
    attr_int(g, node(g, "Concat", "heads", list), "axis", 0);
    node(g, "Reshape", "y", "x heads");
    outputs(g, "y");
}

TEST(a_computed_shape_of_numbers_and_own_dims_becomes_constant)
{
    sn_model *m = pass_model(0);
    sn_graph *p = NULL;
    free_input(m->graph, "x");
    split_heads(m->graph, "m two four");
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(p->n_live_nodes, 1);
    const int64_t *shape = p->first->in[1].value->fact.data->data;
    CHECK(shape[0] == 0 && shape[1] == 0 && shape[2] == 2 && shape[3] == 4);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(a_computed_shape_with_dims_at_other_places_is_left_alone)
{
    sn_model *m = pass_model(0);
    sn_graph *p = NULL;
    free_input(m->graph, "x");
    split_heads(m->graph, "two m four"); /* with n = 0 a -1 for m would not say which dim it is */
    CHECK_OK(finish(m, "constant-shapes", &p));
    CHECK(p->last->in[1].value->producer != NULL);
    end_pass_model(m, p);
}

TEST(what_is_computed_twice_is_computed_once)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3));
    scalar_f32(g, "a", 2);
    scalar_f32(g, "b", 2);
    scalar_f32(g, "c", 3);
    node(g, "Mul", "x2", "x a");
    node(g, "Mul", "x2_again", "x b");
    node(g, "Mul", "x3", "x c");
    attr_float(g, node(g, "LeakyRelu", "r1", "x2"), "alpha", 0.5f);
    attr_float(g, node(g, "LeakyRelu", "r2", "x2_again"), "alpha", 0.5f);
    attr_float(g, node(g, "LeakyRelu", "r3", "x2"), "alpha", 0.25f);
    node(g, "Sum", "y", "r1 r2 r3 x3");
    outputs(g, "y");
    CHECK_OK(finish(m, "common-subexpressions", &p));
    CHECK_EQ(count_ops(p, "Mul"), 2);
    CHECK_EQ(count_ops(p, "LeakyRelu"), 2);
    check_same(m, p, 1e-6);
    end_pass_model(m, p);
}

TEST(outputs_and_random_numbers_are_not_merged)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3));
    node(g, "Relu", "a", "x");
    node(g, "Relu", "b", "x");
    node(g, "RandomNormalLike", "r", "x");
    node(g, "RandomNormalLike", "s", "x");
    node(g, "Sub", "y", "r s");
    outputs(g, "a b y");
    CHECK_OK(finish(m, "common-subexpressions", &p));
    CHECK_EQ(p->n_live_nodes, 5);
    end_pass_model(m, p);
}

TEST(weights_that_are_also_a_table_are_read_transposed)
{
    for (int gemm = 0; gemm < 2; gemm++)
        for (int tied = 0; tied < 2; tied++) {
            sn_model *m = pass_model(0);
            sn_graph *g = m->graph, *p = NULL;
            typed_input(g, "z", SONDE_DTYPE_F32, DIMS(3, 8));
            const_i64(g, "ids", 3, (int64_t[]){8, 0, 3});
            const_f32(g, "table", 0, DIMS(9, 8));
            const_f32(g, "other", 0, DIMS(9, 8));
            node(g, "Gather", "rows", "table ids");
            node(g, "Add", "x", "rows z");
            attr_ints(g, node(g, "Transpose", "t", tied ? "table" : "other"), "perm", DIMS(1, 0));
            node(g, gemm ? "Gemm" : "MatMul", "y", "x t");
            outputs(g, "y");
            CHECK_OK(finish(m, "tied-weights", &p));
            CHECK_EQ(count_ops(p, "Transpose"), tied ? 0 : 1);
            check_same(m, p, 1e-6);
            end_pass_model(m, p);
        }
}

TEST(a_shape_to_expand_to_is_known_though_it_is_compared_with_minus_one)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    free_input(g, "x");
    const_f32(g, "token", 0, DIMS(1, 1, 8));
    const_i64(g, "minus", 3, (int64_t[]){-1, -1, -1});
    const_i64(g, "ones", 3, (int64_t[]){1, 1, 1});
    node(g, "Shape", "shape", "x");
    node(g, "Equal", "any", "shape minus");
    node(g, "Where", "sizes", "any ones shape");
    node(g, "Expand", "e", "token sizes");
    node(g, "Add", "y", "x e");
    outputs(g, "y");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(ready_copy(m, &p));
    CHECK(sn_type_same_shape(&p->inputs.data[0]->fact.type, &p->outputs.data[0]->fact.type));
    CHECK(sn_type_same_shape(&p->inputs.data[0]->fact.type, &p->last->in[1].value->fact.type));
    end_pass_model(m, p);
}

/* Every Reshape of some exporters says allowzero, which matters only where a dim is 0. */
TEST(a_shape_without_zeros_does_not_need_allowzero)
{
    for (int zero = 0; zero < 2; zero++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(zero ? 0 : 2, 6));
        const_i64(g, "shape", 2, zero ? (int64_t[]){3, 0} : (int64_t[]){3, 4});
        attr_int(g, node(g, "Reshape", "y", "x shape"), "allowzero", 1);
        outputs(g, "y");
        CHECK_OK(finish(m, "constant-shapes", &p));
        const sn_node *n = p->first;
        CHECK_EQ(sn_node_attr(n, "allowzero") != NULL, zero);
        if (!zero)
            check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

TEST(a_computed_shape_with_allowzero_becomes_constant)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    free_input(g, "x");
    const_i64(g, "first", 1, (int64_t[]){0});
    const_i64(g, "rest", 2, (int64_t[]){4, -1});
    node(g, "Shape", "dims", "x");
    node(g, "Gather", "batch", "dims first");
    attr_int(g, node(g, "Concat", "shape", "batch rest"), "axis", 0);
    attr_int(g, node(g, "Reshape", "y", "x shape"), "allowzero", 1);
    outputs(g, "y");
    CHECK_OK(finish(m, "constant-shapes", &p));
    const sn_node *n = p->outputs.data[0]->producer;
    CHECK(sn_value_is_const(n->in[1].value));
    CHECK(!sn_node_attr(n, "allowzero"));
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST_MAIN()
