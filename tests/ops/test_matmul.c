/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm, MatMul and sonde.FusedGemm as operators: broadcasting, vectors, addends, element types. */
#include "one_node.h"

TEST(gemm_takes_transposed_inputs_and_every_broadcast_of_the_addend)
{
    static const int64_t shapes[5][2] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {0, 2}};
    static const float want[5][4] = {
        {7, 10, 15, 22}, {7, 11, 15, 23}, {7, 10, 16, 23}, {7, 11, 17, 25}, {7, 11, 15, 23}};
    for (int i = 0; i < 5; i++) {
        one_node c;
        const float addend[4] = {0, 1, 2, 3};
        const int64_t *s = shapes[i];
        node_begin(&c, "Gemm", 13, 3, 1);
        node_int(&c, "transA", 1);
        node_int(&c, "transB", 1);
        node_f32(&c, 0, SHAPE(2, 2), 1, 3, 2, 4);
        node_f32(&c, 1, SHAPE(2, 2), 1, 3, 2, 4);
        node_tensor(&c, 2, SONDE_DTYPE_F32, s[0] ? 2 : 1, s[0] ? s : s + 1, addend);
        node_run(&c);
        NODE_OK(&c);
        CHECK_MSG(has_elems(&c.out[0], want[i], sizeof want[i], true), "case %d", i);
        node_end(&c);
    }
}

TEST(gemm_scales_with_alpha_and_beta)
{
    one_node c;
    node_begin(&c, "Gemm", 11, 3, 1);
    node_float(&c, "alpha", 0.5f);
    node_float(&c, "beta", 2.0f);
    node_f32(&c, 0, SHAPE(1, 2), 1, 2);
    node_f32(&c, 1, SHAPE(2, 1), 4, 6);
    node_f32(&c, 2, SHAPE(1), 3);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 14));
    node_end(&c);
}

TEST(gemm_of_integers_stays_integer)
{
    one_node c;
    node_begin(&c, "Gemm", 13, 2, 1);
    node_i64(&c, 0, SHAPE(1, 2), 3, 4);
    node_i64(&c, 1, SHAPE(2, 2), 1, 2, 3, INT64_C(1) << 40);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_I64(&c.out[0], 15, 6 + (INT64_C(1) << 42)));
    node_end(&c);
}

TEST(matmul_of_vectors_drops_their_dims)
{
    one_node c;
    node_begin(&c, "MatMul", 13, 2, 1);
    node_f32(&c, 0, SHAPE(3), 1, 2, 3);
    node_f32(&c, 1, SHAPE(3), 4, 5, 6);
    node_run(&c);
    NODE_OK(&c);
    CHECK_EQ(c.out[0].t.rank, 0);
    CHECK(IS_F32(&c.out[0], 32));
    node_end(&c);

    node_begin(&c, "MatMul", 13, 2, 1);
    node_f32(&c, 0, SHAPE(2, 1, 2), 1, 2, 3, 4);
    node_f32(&c, 1, SHAPE(2), 10, 1);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 1)));
    CHECK(IS_F32(&c.out[0], 12, 34));
    node_end(&c);
}

TEST(matmul_broadcasts_batches_of_both_sides)
{
    one_node c;
    node_begin(&c, "MatMul", 13, 2, 1);
    node_f32(&c, 0, SHAPE(2, 1, 1, 1), 2, 3);
    node_f32(&c, 1, SHAPE(2, 1, 2), 1, 10, 100, 1000);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 2, 1, 2)));
    CHECK(IS_F32(&c.out[0], 2, 20, 200, 2000, 3, 30, 300, 3000));
    node_end(&c);
}

TEST(matmul_over_an_empty_inner_dim_gives_zeros)
{
    one_node c;
    node_begin(&c, "MatMul", 13, 2, 1);
    node_count_up(&c, 0, SHAPE(2, 0));
    node_count_up(&c, 1, SHAPE(0, 3));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0, 0, 0, 0, 0, 0));
    node_end(&c);
}

TEST(matmul_infers_through_symbols_and_refuses_what_does_not_fit)
{
    one_node c;
    const sn_dim s = sn_dim_symbol(1);
    node_begin(&c, "MatMul", 13, 2, 1);
    node_fact(&c, 0, SONDE_DTYPE_F32, 3, (sn_dim[]){s, 5, 4}, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_F32, 2, (sn_dim[]){4, 7}, NULL, 0);
    node_infer(&c);
    NODE_OK(&c);
    const sn_type *t = &node_fact_of(&c, 0)->type;
    CHECK(t->rank == 3 && t->dims[0] == s && t->dims[1] == 5 && t->dims[2] == 7);
    node_end(&c);

    node_begin(&c, "MatMul", 13, 2, 1);
    node_count_up(&c, 0, SHAPE(2, 3));
    node_count_up(&c, 1, SHAPE(2, 3));
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "inner dims");
    node_end(&c);

    node_begin(&c, "MatMul", 13, 2, 1);
    node_f32(&c, 0, SCALAR, 1);
    node_count_up(&c, 1, SHAPE(2, 3));
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST(fused_gemm_adds_bias_and_residual_before_the_activation)
{
    one_node c;
    node_begin(&c, "FusedGemm", 1, 4, 1);
    c.n->domain = "sonde";
    node_text(&c, "activation", "Relu");
    node_f32(&c, 0, SHAPE(2, 1, 1), 1, 2);
    node_f32(&c, 1, SHAPE(1, 2), 1, -3);
    node_f32(&c, 2, SHAPE(2), 0.5f, 1);
    node_f32(&c, 3, SHAPE(2, 1, 2), 0, 4, -9, 0);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 1.5f, 2, 0, 0));
    node_end(&c);
}

TEST(fused_gemm_takes_a_residual_that_broadcasts_either_way)
{
    one_node c;
    node_begin(&c, "FusedGemm", 1, 4, 1);
    c.n->domain = "sonde";
    node_text(&c, "activation", "Relu");
    node_f32(&c, 0, SHAPE(2, 1), 1, 2);
    node_f32(&c, 1, SHAPE(1, 2), 1, -3);
    node_f32(&c, 3, SHAPE(1, 2), 0.5f, 4);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 2)));
    CHECK(IS_F32(&c.out[0], 1.5f, 1, 2.5f, 0));
    node_end(&c);

    node_begin(&c, "FusedGemm", 1, 4, 1);
    c.n->domain = "sonde";
    node_f32(&c, 0, SHAPE(1, 1), 2);
    node_f32(&c, 1, SHAPE(1, 2), 1, -3);
    node_f32(&c, 2, SHAPE(2), 0, 1);
    node_f32(&c, 3, SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(3, 2)));
    CHECK(IS_F32(&c.out[0], 3, -3, 5, -1, 7, 1));
    node_end(&c);
}

TEST_MAIN()
