/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, extreme indices, running sums, softmax and normalisations. */
#include "one_node.h"
#include "ops/shared/data_movement.h"

TEST(sum_over_outer_middle_and_inner_axes_agrees)
{
    one_node c;
    node_begin(&c, "ReduceSum", 11, 1, 1);
    node_ints(&c, "axes", 0, 2);
    node_int(&c, "keepdims", 0);
    node_f32(&c, 0, SHAPE(2, 2, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2), 30, 48);
    node_end(&c);
    node_begin(&c, "ReduceSum", 13, 2, 1);
    node_f32(&c, 0, SHAPE(2, 2, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    node_i64(&c, 1, SHAPE(1), -2);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 1, 3), 5, 7, 9, 17, 19, 21);
    node_end(&c);
}

TEST(empty_axes_reduce_everything_unless_told_otherwise)
{
    one_node c;
    node_begin(&c, "ReduceMax", 18, 1, 1);
    node_f32(&c, 0, SHAPE(2, 2), 1, 9, -3, 4);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(1, 1), 9);
    node_end(&c);
    node_begin(&c, "ReduceMax", 18, 1, 1);
    node_int(&c, "noop_with_empty_axes", 1);
    node_f32(&c, 0, SHAPE(2, 2), 1, 9, -3, 4);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 2), 1, 9, -3, 4);
    node_end(&c);
}

static void over_no_axes(one_node *c, const char *type, sn_dtype dtype, double x)
{
    node_begin(c, type, 18, 2, 1);
    node_int(c, "noop_with_empty_axes", 1);
    sn_elem_set_f64(dtype, node_room(c, 0, dtype, SHAPE(1, 1)), 0, x);
    node_room(c, 1, SONDE_DTYPE_I64, 1, (int64_t[]){0});
}

TEST(a_reduction_over_no_axes_still_does_its_part_on_each_element)
{
    one_node c;
    static const struct {
        const char *type;
        double x, y, integer;
    } cases[] = {
        {"ReduceL1", -3, 3, 3},          {"ReduceL2", -3, 3, 3},
        {"ReduceSumSquare", -3, 9, 9},   {"ReduceLogSum", 4, 1.3862943611198906, 1},
        {"ReduceLogSumExp", -3, -3, -3}, {"ReduceSum", -3, -3, -3},
        {"ReduceMean", -3, -3, -3},      {"ReduceMax", -3, -3, -3},
        {"ReduceMin", -3, -3, -3},       {"ReduceProd", -3, -3, -3},
    };
    static const struct {
        sn_dtype dtype;
        double tol;
    } types[] = {{SONDE_DTYPE_F32, 1e-7},  {SONDE_DTYPE_F64, 1e-15}, {SONDE_DTYPE_F16, 1e-3},
                 {SONDE_DTYPE_BF16, 1e-2}, {SONDE_DTYPE_I32, 0},     {SONDE_DTYPE_I64, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            over_no_axes(&c, cases[k].type, types[t].dtype, cases[k].x);
            NODE_CHECK(&c, node_run(&c));
            CHECK(has_shape(&c.out[0], SHAPE(1, 1)));
            const double got = sn_elem_f64(types[t].dtype, c.out[0].t.data, 0),
                         want = sn_dtype_is_int(types[t].dtype) ? cases[k].integer : cases[k].y;
            CHECK_MSG(fabs(got - want) <= types[t].tol * fabs(want), "%s of %s: %.17g, not %.17g",
                      cases[k].type, sn_dtype_name(types[t].dtype), got, want);
            node_end(&c);
        }
}

TEST(reducing_nothing_gives_the_neutral_element)
{
    one_node c;
    node_begin(&c, "ReduceProd", 18, 2, 1);
    node_room(&c, 0, SONDE_DTYPE_F32, SHAPE(2, 0));
    node_i64(&c, 1, SHAPE(1), 1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 1), 1, 1);
    node_end(&c);
    node_begin(&c, "ReduceMin", 18, 1, 1);
    node_room(&c, 0, SONDE_DTYPE_I32, SHAPE(0));
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I32, int32_t, SHAPE(1), INT32_MAX);
    node_end(&c);
}

TEST(log_sum_exp_neither_overflows_nor_loses_minus_infinity)
{
    one_node c;
    node_begin(&c, "ReduceLogSumExp", 18, 2, 1);
    node_f32(&c, 0, SHAPE(2, 2), 1000, 1000, -INFINITY, -INFINITY);
    node_i64(&c, 1, SHAPE(1), 1);
    node_int(&c, "keepdims", 0);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32_NEAR(&c, 0, SHAPE(2), 1e-6, 1000.693147f, -INFINITY);
    node_end(&c);
}

TEST(maximum_over_columns_keeps_nan)
{
    one_node c;
    node_begin(&c, "ReduceMax", 13, 1, 1);
    node_ints(&c, "axes", 0);
    node_f32(&c, 0, SHAPE(2, 3), 1, NAN, 3, 4, 5, -6);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(1, 3), 4, NAN, 3);
    node_end(&c);
}

TEST(mean_of_integers_truncates)
{
    one_node c;
    node_begin(&c, "ReduceMean", 13, 1, 1);
    NODE_INPUT(&c, 0, I32, int32_t, SHAPE(4), -1, -2, -4, -4);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I32, int32_t, SHAPE(1), -2);
    node_end(&c);
}

TEST(axes_outside_the_tensor_are_refused)
{
    one_node c;
    node_begin(&c, "ReduceL2", 13, 1, 1);
    node_ints(&c, "axes", 2);
    node_f32(&c, 0, SHAPE(2, 2), 1, 2, 3, 4);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "axis 2");
    node_end(&c);
}

TEST(unknown_axes_leave_the_rank_when_dims_are_kept)
{
    one_node c;
    node_begin(&c, "ReduceSum", 13, 2, 1);
    node_f32(&c, 0, SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    node_i64(&c, 1, SHAPE(1), 0);
    NODE_CHECK(&c, node_prepare(&c));
    NODE_CHECK(&c, sn_op_infer_node(c.g, c.n, &c.err));
    CHECK_EQ(c.n->out[0]->fact.type.rank, 2);
    CHECK(!sn_dim_known(c.n->out[0]->fact.type.dims[0]));
    node_end(&c);
}

TEST(arg_max_takes_the_first_or_the_last_of_equals)
{
    one_node c;
    for (int last = 0; last < 2; last++) {
        node_begin(&c, "ArgMax", 13, 1, 1);
        node_int(&c, "axis", 1);
        node_int(&c, "keepdims", 0);
        node_int(&c, "select_last_index", last);
        node_f32(&c, 0, SHAPE(2, 3), 5, 5, 1, NAN, 7, NAN);
        NODE_CHECK(&c, node_run(&c));
        CHECK_OUT(&c, 0, I64, int64_t, SHAPE(2), last, 0);
        node_end(&c);
    }
    node_begin(&c, "ArgMin", 13, 1, 1);
    NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(2, 2), 4, 1, 2, 3);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, I64, int64_t, SHAPE(1, 2), 1, 0);
    node_end(&c);
}

TEST(cumulative_sum_can_be_exclusive_and_reversed)
{
    one_node c;
    node_begin(&c, "CumSum", 14, 2, 1);
    node_int(&c, "exclusive", 1);
    node_int(&c, "reverse", 1);
    node_f32(&c, 0, SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    NODE_INPUT(&c, 1, I32, int32_t, SCALAR, -1);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 3), 5, 3, 0, 11, 6, 0);
    node_end(&c);
}

TEST(softmax_flattens_before_opset_13_only)
{
    one_node c;
    node_begin(&c, "Softmax", 11, 1, 1);
    node_f32(&c, 0, SHAPE(1, 2, 2), 0, 0, 0, 0);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32_NEAR(&c, 0, SHAPE(1, 2, 2), 1e-6, 0.25f, 0.25f, 0.25f, 0.25f);
    node_end(&c);
    node_begin(&c, "Softmax", 13, 1, 1);
    node_int(&c, "axis", 1);
    node_f32(&c, 0, SHAPE(1, 2, 2), 0, 1000, 0, 1000);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32_NEAR(&c, 0, SHAPE(1, 2, 2), 1e-6, 0.5f, 0.5f, 0.5f, 0.5f);
    node_end(&c);
}

TEST(log_softmax_stays_exact_beside_large_numbers)
{
    one_node c;
    node_begin(&c, "LogSoftmax", 13, 1, 1);
    node_f32(&c, 0, SHAPE(2), 100000, 100001);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32_NEAR(&c, 0, SHAPE(2), 1e-6, -1.31326169f, -0.313261688f);
    node_end(&c);
}

TEST(hardmax_marks_the_first_maximum)
{
    one_node c;
    node_begin(&c, "Hardmax", 13, 1, 1);
    node_int(&c, "axis", 0);
    node_f32(&c, 0, SHAPE(2, 3), 1, 5, 2, 1, 4, 3);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 3), 1, 1, 0, 0, 0, 1);
    node_end(&c);
}

TEST(layer_normalization_gives_statistics_and_broadcasts_its_scale)
{
    one_node c;
    node_begin(&c, "LayerNormalization", 17, 3, 3);
    node_int(&c, "axis", 1);
    node_float(&c, "epsilon", 0.0f);
    node_f32(&c, 0, SHAPE(1, 2, 2), 1, 3, 5, 7);
    node_f32(&c, 1, SHAPE(2), 1, 2);
    node_f32(&c, 2, SHAPE(2, 1), 0, 10);
    NODE_CHECK(&c, node_run(&c));
    const float r = 0.4472135955f; /* 1 / sqrt(5) */
    CHECK_F32_NEAR(&c, 0, SHAPE(1, 2, 2), 1e-6, -3 * r, -2 * r, r + 10, 6 * r + 10);
    CHECK_F32(&c, 1, SHAPE(1, 1, 1), 4);
    CHECK_F32_NEAR(&c, 2, SHAPE(1, 1, 1), 1e-6, r);
    node_end(&c);
}

TEST(group_normalization_scales_groups_first_and_channels_later)
{
    one_node c;
    for (int version = 18; version <= 21; version += 3) {
        node_begin(&c, "GroupNormalization", version, 3, 1);
        node_int(&c, "num_groups", 1);
        node_float(&c, "epsilon", 0.0f);
        node_f32(&c, 0, SHAPE(1, 2, 1), -1, 1);
        if (version == 18) {
            node_f32(&c, 1, SHAPE(1), 3);
            node_f32(&c, 2, SHAPE(1), 1);
        } else {
            node_f32(&c, 1, SHAPE(2), 3, 5);
            node_f32(&c, 2, SHAPE(2), 1, 2);
        }
        NODE_CHECK(&c, node_run(&c));
        if (version == 18)
            CHECK_F32_NEAR(&c, 0, SHAPE(1, 2, 1), 1e-6, -2, 4);
        else
            CHECK_F32_NEAR(&c, 0, SHAPE(1, 2, 1), 1e-6, -2, 7);
        node_end(&c);
    }
}

TEST(instance_normalization_of_a_constant_is_the_bias)
{
    one_node c;
    node_begin(&c, "InstanceNormalization", 6, 3, 1);
    node_f32(&c, 0, SHAPE(1, 2, 2), 7, 7, 1, 3);
    node_f32(&c, 1, SHAPE(2), 2, 1);
    node_f32(&c, 2, SHAPE(2), 5, 0);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32_NEAR(&c, 0, SHAPE(1, 2, 2), 1e-5, 5, 5, -1, 1);
    node_end(&c);
}

TEST(zero_vectors_stay_zero_under_lp_normalization)
{
    one_node c;
    node_begin(&c, "LpNormalization", 22, 1, 1);
    node_f32(&c, 0, SHAPE(2, 2), 0, 0, 3, 4);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32_NEAR(&c, 0, SHAPE(2, 2), 1e-6, 0, 0, 0.6f, 0.8f);
    node_end(&c);
}

TEST(half_precision_rows_go_through_f32)
{
    one_node c;
    node_begin(&c, "Softmax", 13, 1, 1);
    NODE_INPUT(&c, 0, F16, uint16_t, SHAPE(1, 2), sn_f32_to_f16(0.0f), sn_f32_to_f16(0.0f));
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, F16, uint16_t, SHAPE(1, 2), sn_f32_to_f16(0.5f), sn_f32_to_f16(0.5f));
    node_end(&c);
}

TEST(layer_normalization_in_half_precision_reads_every_element)
{
    one_node c;
    node_begin(&c, "LayerNormalization", 17, 2, 1);
    node_float(&c, "epsilon", 0.0f);
    NODE_INPUT(&c, 0, F16, uint16_t, SHAPE(2, 2), sn_f32_to_f16(1.0f), sn_f32_to_f16(3.0f),
               sn_f32_to_f16(8.0f), sn_f32_to_f16(2.0f));
    NODE_INPUT(&c, 1, F16, uint16_t, SHAPE(2), sn_f32_to_f16(1.0f), sn_f32_to_f16(2.0f));
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, F16, uint16_t, SHAPE(2, 2), sn_f32_to_f16(-1.0f), sn_f32_to_f16(2.0f),
              sn_f32_to_f16(1.0f), sn_f32_to_f16(-2.0f));
    node_end(&c);
}

TEST_MAIN()
