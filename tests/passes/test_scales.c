/* SPDX-License-Identifier: Apache-2.0 */
/* Factors and shifts per channel around products and convolutions: which go into the weights. */
#include "passes/interpret.h"

static void norm_params(sn_graph *g, int64_t channels)
{
    const_f32(g, "scale", 1, DIMS(channels));
    const_f32(g, "shift", 0, DIMS(channels));
    const_f32(g, "mean", 0, DIMS(channels));
    const_f32(g, "var", 1.5f, DIMS(channels));
}

/* ------------------------------------------------------------------ behind products */

/* x [5, 7, 6] · w [6, 8] ► Flatten or Reshape ► BatchNormalization ► Reshape ► HardSwish. */
static void token_norm(bool flatten, int64_t batch)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(batch, 7, 6));
    const_f32(g, "w", 0, DIMS(6, 8));
    norm_params(g, 8);
    const_i64(g, "rows", DIMS(-1, 8));
    const_i64(g, "again", DIMS(-1, 7, 8));
    node(g, "MatMul", "a", "x w");
    if (flatten)
        attr_int(g, node(g, "Flatten", "b", "a"), "axis", 2);
    else
        node(g, "Reshape", "b", "a rows");
    node(g, "BatchNormalization", "c", "b scale shift mean var");
    node(g, "Reshape", "d", "c again");
    node(g, "HardSwish", "y", "d");
    outputs(g, "y");
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(p->n_live_nodes, 1);
    CHECK_STR(p->first->op_type, "FusedGemm");
    CHECK_STR(p->first->post_op, "BatchNormalization+Add+HardSwish");
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(normalisation_of_flattened_tokens_goes_into_the_product)
{
    for (int flatten = 0; flatten < 2; flatten++)
        for (int64_t batch = 1; batch < 3; batch++)
            token_norm(flatten, batch);
}

TEST(normalisation_of_transposed_columns_goes_into_the_product)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 12, 6));
    const_f32(g, "w", 0, DIMS(6, 8));
    norm_params(g, 8);
    const_i64(g, "image", DIMS(2, 8, 3, 4));
    node(g, "MatMul", "a", "x w");
    attr_ints(g, node(g, "Transpose", "b", "a"), "perm", DIMS(0, 2, 1));
    node(g, "Reshape", "c", "b image");
    node(g, "BatchNormalization", "y", "c scale shift mean var");
    outputs(g, "y");
    CHECK_OK(finish(m, "product-scales", &p));
    CHECK_EQ(count_ops(p, "BatchNormalization"), 0);
    CHECK_EQ(count_ops(p, "Add"), 1);
    CHECK_STR(p->outputs.data[0]->name, "y");
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

/* Gemm with and without transposed weights and an addend, factors of it, and a chain of four. */
TEST(a_chain_of_factors_and_shifts_goes_into_a_gemm)
{
    for (int form = 0; form < 8; form++) {
        const bool turned = form & 1, bias = form & 2, one = form & 4;
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(5, 6));
        const_f32(g, "w", 0, 2, turned ? (int64_t[]){8, 6} : (int64_t[]){6, 8});
        const_f32(g, "b", 0, DIMS(one ? 1 : 8));
        const_f32(g, "s", 2, DIMS(8));
        const_f32(g, "t", 0, DIMS(1, 8));
        const_f32(g, "d", 3, DIMS(8));
        scalar_f32(g, "k", 0.5f);
        sn_node *n = node(g, "Gemm", "a", bias ? "x w b" : "x w");
        attr_int(g, n, "transB", turned);
        attr_float(g, n, "alpha", 0.75f);
        attr_float(g, n, "beta", 1.5f);
        node(g, "Mul", "c", "s a");
        node(g, "Sub", "e", "t c");
        node(g, "Div", "f", "e d");
        node(g, "Mul", "y", "f k");
        outputs(g, "y");
        CHECK_OK(finish(m, "product-scales", &p));
        CHECK_EQ(p->n_live_nodes, 1);
        CHECK_EQ(p->first->n_origins, 5);
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

TEST(what_others_read_or_what_is_not_per_column_stays_behind_a_product)
{
    static const char *const outs[] = {"y a", "y", "y", "y other"};
    for (int form = 0; form < 4; form++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(8, 6));
        const_f32(g, "w", 0, DIMS(6, 8));
        const_f32(g, "row", 2, DIMS(8));
        const_f32(g, "column", 2, DIMS(8, 1));
        scalar_f32(g, "k", 0.5f);
        node(g, "MatMul", "a", "x w");
        node(g, "Mul", "y", form == 1 ? "a column" : form == 2 ? "a k" : "a row");
        if (form == 3)
            node(g, "MatMul", "other", "x w");
        outputs(g, outs[form]);
        CHECK_OK(finish(m, "product-scales", &p));
        CHECK_EQ(count_ops(p, "Mul"), 1);
        check_same(m, p, 0);
        end_pass_model(m, p);
    }
}

/* ------------------------------------------------------------------ before */

TEST(normalisation_before_a_product_goes_into_its_weights)
{
    for (int form = 0; form < 4; form++) {
        const bool gemm = form & 1, turned = gemm && (form & 2), row = !gemm && (form & 2);
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        typed_input(g, "x", SONDE_DTYPE_F32, DIMS(5, 6));
        const_f32(g, "w", 0, 2, turned ? (int64_t[]){8, 6} : (int64_t[]){6, 8});
        const_f32(g, "b", 0, DIMS(8));
        norm_params(g, 6);
        node(g, "BatchNormalization", "n", "x scale shift mean var");
        if (gemm)
            attr_int(g, node(g, "Gemm", "y", "n w b"), "transB", turned);
        else
            node(g, "MatMul", row ? "z" : "y", "n w");
        if (row)
            node(g, "Add", "y", "z b");
        outputs(g, "y");
        CHECK_OK(finish(m, NULL, &p));
        CHECK_EQ(count_ops(p, "BatchNormalization"), 0);
        CHECK_EQ(p->n_live_nodes, 1);
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

/* A convolution without padding takes all, one with padding only factors. */
static void before_conv(int64_t k, int64_t pad, bool depthwise, bool shift, int left)
{
    sn_model *m = image_model(0, 4, 6, 5);
    sn_graph *g = m->graph, *p = NULL;
    norm_params(g, 4);
    const_f32(g, "s", 2, DIMS(4, 1, 1));
    const_f32(g, "w", 0, DIMS(8, depthwise ? 1 : 4, k, k));
    if (shift)
        node(g, "BatchNormalization", "n", "x scale shift mean var");
    else
        node(g, "Mul", "n", "x s");
    sn_node *n = node(g, "Conv", "y", "n w");
    attr_ints(g, n, "pads", DIMS(pad, pad, pad, pad));
    attr_int(g, n, "group", depthwise ? 4 : 1);
    outputs(g, "y");
    CHECK_OK(finish(m, "input-scales", &p));
    CHECK_EQ(p->n_live_nodes, left);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(normalisation_before_a_convolution_without_padding_goes_into_its_weights)
{
    for (int depthwise = 0; depthwise < 2; depthwise++) {
        before_conv(1, 0, depthwise, true, 1);
        before_conv(3, 0, depthwise, true, 1);
        before_conv(3, 1, depthwise, true, 2);
        before_conv(3, 1, depthwise, false, 1);
    }
}

TEST(normalisation_that_two_read_stays_before_them)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(5, 6));
    const_f32(g, "w", 0, DIMS(6, 8));
    const_f32(g, "v", 0, DIMS(6, 8));
    norm_params(g, 6);
    node(g, "BatchNormalization", "n", "x scale shift mean var");
    node(g, "MatMul", "y", "n w");
    node(g, "MatMul", "z", "n v");
    outputs(g, "y z");
    CHECK_OK(finish(m, "input-scales", &p));
    CHECK_EQ(count_ops(p, "BatchNormalization"), 1);
    end_pass_model(m, p);
}

/* Both axes of the weights have factors: one is multiplied at once. */
TEST(a_product_takes_factors_before_and_behind_it)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(3, 5, 6));
    const_f32(g, "w", 0, DIMS(6, 40));
    const_f32(g, "s", 2, DIMS(6));
    const_f32(g, "t", 2, DIMS(40));
    scalar_f32(g, "k", 0.5f);
    node(g, "Mul", "a", "x s");
    node(g, "MatMul", "b", "a w");
    node(g, "Mul", "c", "b t");
    node(g, "Mul", "y", "c k");
    outputs(g, "y");
    CHECK_OK(finish(m, NULL, &p));
    CHECK_EQ(p->n_live_nodes, 1);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

/* ------------------------------------------------------------------ transposed convolutions */

TEST(normalisation_behind_a_transposed_convolution_goes_into_its_weights)
{
    static const int64_t groups[] = {1, 4, 2};
    for (int form = 0; form < 3; form++) {
        sn_model *m = image_model(0, 4, 6, 5);
        sn_graph *g = m->graph, *p = NULL;
        const int64_t group = groups[form], channels = group == 1 ? 6 : 4;
        const_f32(g, "w", 0, DIMS(4, channels / group, 3, 3));
        norm_params(g, channels);
        attr_int(g, node(g, "ConvTranspose", "c", "x w"), "group", group);
        node(g, "BatchNormalization", "y", "c scale shift mean var");
        outputs(g, "y");
        CHECK_OK(finish(m, "conv-batchnorm", &p));
        CHECK_EQ(p->n_live_nodes, group == 2 ? 2 : 1); /* two groups have no axis of channels */
        check_same(m, p, 1e-4);
        end_pass_model(m, p);
    }
}

static sonde_status whole(size_t fail_at, sn_model **m, sn_graph **p)
{
    *p = NULL;
    *m = pass_model(fail_at);
    if (!*m)
        return build_status;
    sn_graph *g = (*m)->graph;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(5, 6));
    const_f32(g, "w", 0, DIMS(6, 6));
    norm_params(g, 6);
    node(g, "BatchNormalization", "a", "x scale shift mean var");
    node(g, "MatMul", "b", "a w");
    node(g, "BatchNormalization", "y", "b scale shift mean var");
    outputs(g, "y");
    if (build_status != SONDE_OK)
        return build_status;
    return finish(*m, NULL, p);
}

TEST(folding_reports_every_failing_allocation)
{
    check_failing_allocations(whole);
}

TEST_MAIN()
