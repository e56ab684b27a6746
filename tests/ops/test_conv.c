/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and sonde.FusedConv as operators: padding modes, groups, ranks, element types, symbolic
 * shapes and models that must be refused. Numbers of large shapes are tests/compute's. */
#include "one_node.h"

#define ONES9 1, 1, 1, 1, 1, 1, 1, 1, 1

TEST(conv_with_asymmetric_padding_adds_zeros_where_it_says)
{
    one_node c;
    node_begin(&c, "Conv", 11, 2, 1);
    node_ints(&c, "pads", 1, 0, 0, 1);
    node_count_up(&c, 0, SHAPE(1, 1, 2, 2));
    node_f32(&c, 1, SHAPE(1, 1, 2, 2), 1, 1, 1, 1);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 1, 2, 2)));
    CHECK(IS_F32(&c.out[0], 1, 1, 6, 4));
    node_end(&c);
}

TEST(conv_auto_pad_puts_the_odd_element_where_the_mode_says)
{
    static const char *const modes[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    static const float want[3][3] = {{1, 3, 2}, {0, 1, 3}, {1, 3, 0}};
    for (int i = 0; i < 3; i++) {
        one_node c;
        node_begin(&c, "Conv", 11, 2, 1);
        node_text(&c, "auto_pad", modes[i]);
        node_count_up(&c, 0, SHAPE(1, 1, 3));
        node_f32(&c, 1, SHAPE(1, 1, 2), 1, 1);
        node_run(&c);
        NODE_OK(&c);
        CHECK_EQ(c.out[0].t.dims[2], i == 2 ? 2 : 3);
        CHECK_MSG(memcmp(c.out[0].t.data, want[i], c.out[0].t.bytes) == 0, "%s", modes[i]);
        node_end(&c);
    }
}

TEST(conv_of_two_groups_keeps_them_apart_and_adds_the_bias)
{
    one_node c;
    node_begin(&c, "Conv", 22, 3, 1);
    node_int(&c, "group", 2);
    node_f32(&c, 0, SHAPE(1, 2, 1, 2), 1, 2, 3, 4);
    node_f32(&c, 1, SHAPE(2, 1, 1, 1), 10, 100);
    node_f32(&c, 2, SHAPE(2), 0.5f, -0.5f);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 10.5f, 20.5f, 299.5f, 399.5f));
    node_end(&c);
}

TEST(conv_of_three_spatial_dims_and_of_doubles)
{
    one_node c;
    node_begin(&c, "Conv", 11, 2, 1);
    node_ints(&c, "strides", 2, 1, 1);
    node_count_up(&c, 0, SHAPE(1, 1, 3, 2, 2));
    node_f32(&c, 1, SHAPE(1, 1, 1, 2, 2), 1, 1, 1, 1);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 1, 2, 1, 1)));
    CHECK(IS_F32(&c.out[0], 6, 38));
    node_end(&c);

    const double x[4] = {1, 2, 3, 4}, w[2] = {1, -1};
    node_begin(&c, "Conv", 11, 2, 1);
    node_tensor(&c, 0, SONDE_DTYPE_F64, SHAPE(1, 1, 4), x);
    node_tensor(&c, 1, SONDE_DTYPE_F64, SHAPE(1, 1, 2), w);
    node_run(&c);
    NODE_OK(&c);
    CHECK(((const double *)c.out[0].t.data)[2] == -1.0);
    node_end(&c);
}

TEST(conv_of_half_floats_is_computed_in_single_precision)
{
    one_node c;
    const uint16_t x[3] = {0x3C00, 0x4000, 0x4200}, w[2] = {0x3C00, 0x3800}; /* 1 2 3; 1 0.5 */
    node_begin(&c, "Conv", 11, 2, 1);
    node_tensor(&c, 0, SONDE_DTYPE_F16, SHAPE(1, 1, 3), x);
    node_tensor(&c, 1, SONDE_DTYPE_F16, SHAPE(1, 1, 2), w);
    node_run(&c);
    NODE_OK(&c);
    CHECK_EQ(((const uint16_t *)c.out[0].t.data)[0], 0x4000);
    CHECK_EQ(((const uint16_t *)c.out[0].t.data)[1], 0x4300);
    node_end(&c);
}

TEST(fused_conv_adds_the_residual_before_the_activation)
{
    one_node c;
    node_begin(&c, "FusedConv", 1, 4, 1);
    c.n->domain = "sonde";
    node_text(&c, "activation", "Relu");
    node_f32(&c, 0, SHAPE(1, 1, 1, 2), 1, 2);
    node_f32(&c, 1, SHAPE(1, 1, 1, 1), -1);
    node_f32(&c, 3, SHAPE(1, 1, 1, 2), 4, 1);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 3, 0));
    node_end(&c);
}

TEST(conv_keeps_symbols_of_the_batch_and_leaves_unknown_dims_open)
{
    one_node c;
    const sn_dim n = sn_dim_symbol(1);
    node_begin(&c, "Conv", 11, 2, 1);
    node_ints(&c, "strides", 2, 2);
    node_fact(&c, 0, SONDE_DTYPE_F32, 4, (sn_dim[]){n, 3, SN_DIM_UNKNOWN, 11}, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_F32, 4, (sn_dim[]){8, 3, 3, 3}, NULL, 0);
    node_infer(&c);
    NODE_OK(&c);
    const sn_type *t = &node_fact_of(&c, 0)->type;
    CHECK(t->rank == 4 && t->dims[0] == n && t->dims[1] == 8 && !sn_dim_known(t->dims[2]));
    CHECK_EQ(t->dims[3], 5);
    node_end(&c);

    node_begin(&c, "Conv", 11, 2, 1);
    node_fact(&c, 0, SONDE_DTYPE_F32, -1, NULL, NULL, 0);
    node_fact(&c, 1, SONDE_DTYPE_F32, -1, NULL, NULL, 0);
    node_infer(&c);
    NODE_OK(&c);
    CHECK_EQ(node_fact_of(&c, 0)->type.rank, -1);
    node_end(&c);
}

TEST(conv_that_cannot_be_is_refused_with_a_sentence)
{
    one_node c;
    node_begin(&c, "Conv", 11, 2, 1);
    node_count_up(&c, 0, SHAPE(1, 1, 2, 2));
    node_f32(&c, 1, SHAPE(1, 1, 3, 3), ONES9);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "does not fit");
    node_end(&c);

    node_begin(&c, "Conv", 11, 2, 1);
    node_count_up(&c, 0, SHAPE(1, 2, 3, 3));
    node_f32(&c, 1, SHAPE(1, 1, 3, 3), ONES9);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "channels");
    node_end(&c);

    node_begin(&c, "Conv", 11, 2, 1);
    node_ints(&c, "strides", 0, 1);
    node_count_up(&c, 0, SHAPE(1, 1, 3, 3));
    node_f32(&c, 1, SHAPE(1, 1, 3, 3), ONES9);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "strides");
    node_end(&c);
}

TEST(conv_of_an_empty_batch_gives_an_empty_tensor)
{
    one_node c;
    node_begin(&c, "Conv", 11, 2, 1);
    node_count_up(&c, 0, SHAPE(0, 1, 3, 3));
    node_f32(&c, 1, SHAPE(1, 1, 3, 3), ONES9);
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(0, 1, 1, 1)));
    node_end(&c);
}

TEST_MAIN()
