/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and BatchNormalization as operators. */
#include "one_node.h"

TEST(max_pool_gives_values_and_indices)
{
    one_node c;
    node_begin(&c, "MaxPool", 12, 1, 2);
    node_ints(&c, "kernel_shape", 2, 2);
    node_ints(&c, "strides", 2, 2);
    node_f32(&c, 0, SHAPE(1, 1, 2, 4), 1, 9, 3, 4, 5, 6, 8, 7);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 9, 8));
    CHECK(IS_I64(&c.out[1], 1, 6));
    node_end(&c);
}

TEST(max_pool_ceil_mode_leaves_out_windows_that_start_in_the_padding)
{
    one_node c;
    node_begin(&c, "MaxPool", 12, 1, 1);
    node_ints(&c, "kernel_shape", 1);
    node_ints(&c, "strides", 2);
    node_int(&c, "ceil_mode", 1);
    node_count_up(&c, 0, SHAPE(1, 1, 4));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0, 2));
    node_end(&c);

    node_begin(&c, "MaxPool", 12, 1, 1);
    node_ints(&c, "kernel_shape", 3);
    node_ints(&c, "strides", 2);
    node_int(&c, "ceil_mode", 1);
    node_count_up(&c, 0, SHAPE(1, 1, 4));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 2, 3));
    node_end(&c);
}

TEST(max_pool_of_bytes_and_of_padding_below_zero)
{
    one_node c;
    const int8_t x[3] = {-5, -7, -3};
    node_begin(&c, "MaxPool", 12, 1, 1);
    node_ints(&c, "kernel_shape", 2);
    node_ints(&c, "pads", 1, 1);
    node_tensor(&c, 0, SONDE_DTYPE_I8, SHAPE(1, 1, 3), x);
    node_run(&c);
    NODE_OK(&c);
    CHECK(memcmp(c.out[0].t.data, (int8_t[]){-5, -5, -3, -3}, 4) == 0);
    node_end(&c);
}

TEST(average_pool_counts_padding_only_when_asked)
{
    static const float want[2][3] = {{1, 1.5f, 2}, {0.5f, 1.5f, 1}};
    for (int i = 0; i < 2; i++) {
        one_node c;
        node_begin(&c, "AveragePool", 19, 1, 1);
        node_ints(&c, "kernel_shape", 2);
        node_ints(&c, "pads", 1, 1);
        node_int(&c, "count_include_pad", i);
        node_f32(&c, 0, SHAPE(1, 1, 2), 1, 2);
        node_run(&c);
        NODE_OK(&c);
        CHECK(memcmp(c.out[0].t.data, want[i], sizeof want[i]) == 0);
        node_end(&c);
    }
}

TEST(global_pools_leave_one_element_a_channel)
{
    one_node c;
    node_begin(&c, "GlobalAveragePool", 1, 1, 1);
    node_count_up(&c, 0, SHAPE(1, 2, 2, 2));
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 2, 1, 1)));
    CHECK(IS_F32(&c.out[0], 1.5f, 5.5f));
    node_end(&c);

    node_begin(&c, "GlobalMaxPool", 22, 1, 1);
    node_count_up(&c, 0, SHAPE(1, 2, 3));
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 2, 5));
    node_end(&c);
}

TEST(lp_pool_takes_the_root_of_the_sum_of_powers)
{
    one_node c;
    node_begin(&c, "LpPool", 18, 1, 1);
    node_ints(&c, "kernel_shape", 2);
    node_f32(&c, 0, SHAPE(1, 1, 3), 3, 4, 0);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 5, 4));
    node_end(&c);
}

/* Of 3 elements and one before them, by steps of 2, in 1 to 3 dims. `left`: results along each; -1:
 * none, it is an error. */
static void pool_with_a_large_window(int64_t kernel, int64_t left)
{
    static const char *const ops[] = {"MaxPool", "AveragePool", "LpPool"};
    static const sn_dtype types[] = {SONDE_DTYPE_F32, SONDE_DTYPE_F64, SONDE_DTYPE_F16};
    static const int64_t strides[] = {2, 2, 2}, pads[6] = {1, 1, 1};
    static const double zeros[27];
    const int64_t kernels[] = {kernel, kernel, kernel};
    for (int op = 0; op < 3; op++)
        for (int t = 0; t < 3; t++)
            for (int spatial = 1; spatial <= 3; spatial++) {
                one_node c;
                const int64_t in[] = {1, 1, 3, 3, 3}, out[] = {1, 1, left, left, left};
                node_begin(&c, ops[op], 22, 1, op == 0 ? 2 : 1);
                node_attr(&c, (sn_attr){.name = "kernel_shape",
                                        .kind = SN_ATTR_INTS,
                                        .ints = kernels,
                                        .n = (size_t)spatial});
                node_attr(&c, (sn_attr){.name = "strides",
                                        .kind = SN_ATTR_INTS,
                                        .ints = strides,
                                        .n = (size_t)spatial});
                node_attr(&c, (sn_attr){.name = "pads",
                                        .kind = SN_ATTR_INTS,
                                        .ints = pads + 3 - spatial,
                                        .n = (size_t)(2 * spatial)});
                node_tensor(&c, 0, types[t], 2 + spatial, in, zeros);
                node_run(&c);
                if (left < 0) {
                    CHECK(c.st == SONDE_INVALID_MODEL);
                    node_end(&c);
                    continue;
                }
                NODE_OK(&c);
                CHECK(has_shape(&c.out[0], 2 + spatial, out));
                if (op == 0)
                    CHECK(has_shape(&c.out[1], 2 + spatial, out));
                node_end(&c);
            }
}

TEST(a_window_larger_than_its_padded_input_is_cut_by_less_than_a_stride)
{
    pool_with_a_large_window(5, 1);
}

TEST(a_window_larger_by_a_stride_gives_an_empty_output)
{
    pool_with_a_large_window(6, 0);
    pool_with_a_large_window(7, 0);
}

TEST(a_window_larger_by_two_strides_does_not_fit)
{
    pool_with_a_large_window(8, -1);
}

TEST(rounded_up_a_larger_window_takes_what_there_is_if_less_than_a_stride_is_missing)
{
    one_node c;
    for (int kernel = 4; kernel < 7; kernel++) { /* 3 elements, stride 2 */
        node_begin(&c, "AveragePool", 19, 1, 1);
        node_ints(&c, "kernel_shape", kernel);
        node_ints(&c, "strides", 2);
        node_int(&c, "ceil_mode", 1);
        node_f32(&c, 0, SHAPE(1, 1, 3), 1, 2, 6);
        node_run(&c);
        NODE_OK(&c);
        CHECK(has_shape(&c.out[0], SHAPE(1, 1, kernel == 4)));
        if (kernel == 4)
            CHECK(IS_F32(&c.out[0], 3));
        node_end(&c);
    }
}

TEST(pools_without_a_kernel_or_with_a_wrong_rank_are_refused)
{
    one_node c;
    node_begin(&c, "MaxPool", 12, 1, 1);
    node_count_up(&c, 0, SHAPE(1, 1, 3));
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "kernel_shape");
    node_end(&c);

    node_begin(&c, "AveragePool", 11, 1, 1);
    node_ints(&c, "kernel_shape", 2, 2);
    node_count_up(&c, 0, SHAPE(1, 1, 3));
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    node_end(&c);
}

TEST(batch_normalization_scales_and_shifts_each_channel)
{
    one_node c;
    node_begin(&c, "BatchNormalization", 15, 5, 1);
    node_float(&c, "epsilon", 0.0f);
    node_f32(&c, 0, SHAPE(1, 2, 2), 1, 3, 2, 4);
    node_f32(&c, 1, SHAPE(2), 1, 2);
    node_f32(&c, 2, SHAPE(2), 0, 1);
    node_f32(&c, 3, SHAPE(2), 1, 2);
    node_f32(&c, 4, SHAPE(2), 4, 1);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], 0, 1, 1, 5));
    node_end(&c);
}

TEST(batch_normalization_in_training_measures_the_batch)
{
    one_node c;
    node_begin(&c, "BatchNormalization", 15, 5, 3);
    node_int(&c, "training_mode", 1);
    node_float(&c, "epsilon", 0.0f);
    node_float(&c, "momentum", 0.5f);
    node_f32(&c, 0, SHAPE(2, 1, 1), 1, 3);
    node_f32(&c, 1, SHAPE(1), 1);
    node_f32(&c, 2, SHAPE(1), 0);
    node_f32(&c, 3, SHAPE(1), 0);
    node_f32(&c, 4, SHAPE(1), 3);
    node_run(&c);
    NODE_OK(&c);
    CHECK(IS_F32(&c.out[0], -1, 1));
    CHECK(IS_F32(&c.out[1], 1));
    CHECK(IS_F32(&c.out[2], 2));
    node_end(&c);
}

TEST_MAIN()
