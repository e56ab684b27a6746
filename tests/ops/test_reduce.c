/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, extreme indices, running sums, softmax and normalisations. */
#include "op_test.h"
#include "ops/shared/data_movement.h"

TEST(sum_over_outer_middle_and_inner_axes_agrees)
{
    op_begin("ReduceSum", 11);
    op_ints("axes", 0, 2);
    op_int("keepdims", 0);
    op_f32("2 2 3", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2", 30, 48);
    op_end();
    op_begin("ReduceSum", 13);
    op_f32("2 2 3", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    op_i64("1", -2);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 1 3", 5, 7, 9, 17, 19, 21);
    op_end();
}

TEST(empty_axes_reduce_everything_unless_told_otherwise)
{
    op_begin("ReduceMax", 18);
    op_f32("2 2", 1, 9, -3, 4);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "1 1", 9);
    op_end();
    op_begin("ReduceMax", 18);
    op_int("noop_with_empty_axes", 1);
    op_f32("2 2", 1, 9, -3, 4);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 2", 1, 9, -3, 4);
    op_end();
}

static void over_no_axes(const char *type, sn_dtype dtype, double x)
{
    op_begin(type, 18);
    op_int("noop_with_empty_axes", 1);
    sn_elem_set_f64(dtype, op_input(dtype, "1 1"), 0, x);
    op_input(SONDE_DTYPE_I64, "0");
}

TEST(a_reduction_over_no_axes_still_does_its_part_on_each_element)
{
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
            over_no_axes(cases[k].type, types[t].dtype, cases[k].x);
            CHECK_OK(op_run(1));
            CHECK(op_has_shape(0, "1 1"));
            const double got = sn_elem_f64(types[t].dtype, op_out(0), 0),
                         want = sn_dtype_is_int(types[t].dtype) ? cases[k].integer : cases[k].y;
            CHECK_MSG(fabs(got - want) <= types[t].tol * fabs(want), "%s of %s: %.17g, not %.17g",
                      cases[k].type, sn_dtype_name(types[t].dtype), got, want);
            op_end();
        }
}

TEST(reducing_nothing_gives_the_neutral_element)
{
    op_begin("ReduceProd", 18);
    op_input(SONDE_DTYPE_F32, "2 0");
    op_i64("1", 1);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 1", 1, 1);
    op_end();
    op_begin("ReduceMin", 18);
    op_input(SONDE_DTYPE_I32, "0");
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I32, int32_t, "1", INT32_MAX);
    op_end();
}

TEST(log_sum_exp_neither_overflows_nor_loses_minus_infinity)
{
    op_begin("ReduceLogSumExp", 18);
    op_f32("2 2", 1000, 1000, -INFINITY, -INFINITY);
    op_i64("1", 1);
    op_int("keepdims", 0);
    CHECK_OK(op_run(1));
    CHECK_F32_NEAR(0, "2", 1e-6, 1000.693147f, -INFINITY);
    op_end();
}

TEST(maximum_over_columns_keeps_nan)
{
    op_begin("ReduceMax", 13);
    op_ints("axes", 0);
    op_f32("2 3", 1, NAN, 3, 4, 5, -6);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "1 3", 4, NAN, 3);
    op_end();
}

TEST(mean_of_integers_truncates)
{
    op_begin("ReduceMean", 13);
    OP_INPUT(I32, int32_t, "4", -1, -2, -4, -4);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I32, int32_t, "1", -2);
    op_end();
}

TEST(axes_outside_the_tensor_are_refused)
{
    op_begin("ReduceL2", 13);
    op_ints("axes", 2);
    op_f32("2 2", 1, 2, 3, 4);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "axis 2");
    op_end();
}

TEST(unknown_axes_leave_the_rank_when_dims_are_kept)
{
    op_begin("ReduceSum", 13);
    op_f32("2 3", 1, 2, 3, 4, 5, 6);
    op_i64("1", 0);
    CHECK_OK(op_make(1));
    CHECK_OK(sn_op_infer_node(op.g, op.node, &err));
    CHECK_EQ(op.node->out[0]->fact.type.rank, 2);
    CHECK(!sn_dim_known(op.node->out[0]->fact.type.dims[0]));
    op_end();
}

TEST(arg_max_takes_the_first_or_the_last_of_equals)
{
    for (int last = 0; last < 2; last++) {
        op_begin("ArgMax", 13);
        op_int("axis", 1);
        op_int("keepdims", 0);
        op_int("select_last_index", last);
        op_f32("2 3", 5, 5, 1, NAN, 7, NAN);
        CHECK_OK(op_run(1));
        CHECK_OUT(0, I64, int64_t, "2", last, 0);
        op_end();
    }
    op_begin("ArgMin", 13);
    OP_INPUT(U8, uint8_t, "2 2", 4, 1, 2, 3);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, I64, int64_t, "1 2", 1, 0);
    op_end();
}

TEST(cumulative_sum_can_be_exclusive_and_reversed)
{
    op_begin("CumSum", 14);
    op_int("exclusive", 1);
    op_int("reverse", 1);
    op_f32("2 3", 1, 2, 3, 4, 5, 6);
    OP_INPUT(I32, int32_t, "", -1);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 3", 5, 3, 0, 11, 6, 0);
    op_end();
}

TEST(softmax_flattens_before_opset_13_only)
{
    op_begin("Softmax", 11);
    op_f32("1 2 2", 0, 0, 0, 0);
    CHECK_OK(op_run(1));
    CHECK_F32_NEAR(0, "1 2 2", 1e-6, 0.25f, 0.25f, 0.25f, 0.25f);
    op_end();
    op_begin("Softmax", 13);
    op_int("axis", 1);
    op_f32("1 2 2", 0, 1000, 0, 1000);
    CHECK_OK(op_run(1));
    CHECK_F32_NEAR(0, "1 2 2", 1e-6, 0.5f, 0.5f, 0.5f, 0.5f);
    op_end();
}

TEST(log_softmax_stays_exact_beside_large_numbers)
{
    op_begin("LogSoftmax", 13);
    op_f32("2", 100000, 100001);
    CHECK_OK(op_run(1));
    CHECK_F32_NEAR(0, "2", 1e-6, -1.31326169f, -0.313261688f);
    op_end();
}

TEST(hardmax_marks_the_first_maximum)
{
    op_begin("Hardmax", 13);
    op_int("axis", 0);
    op_f32("2 3", 1, 5, 2, 1, 4, 3);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 3", 1, 1, 0, 0, 0, 1);
    op_end();
}

TEST(layer_normalization_gives_statistics_and_broadcasts_its_scale)
{
    op_begin("LayerNormalization", 17);
    op_int("axis", 1);
    op_float("epsilon", 0.0f);
    op_f32("1 2 2", 1, 3, 5, 7);
    op_f32("2", 1, 2);
    op_f32("2 1", 0, 10);
    CHECK_OK(op_run(3));
    const float r = 0.4472135955f; /* 1 / sqrt(5) */
    CHECK_F32_NEAR(0, "1 2 2", 1e-6, -3 * r, -2 * r, r + 10, 6 * r + 10);
    CHECK_F32(1, "1 1 1", 4);
    CHECK_F32_NEAR(2, "1 1 1", 1e-6, r);
    op_end();
}

TEST(group_normalization_scales_groups_first_and_channels_later)
{
    for (int version = 18; version <= 21; version += 3) {
        op_begin("GroupNormalization", version);
        op_int("num_groups", 1);
        op_float("epsilon", 0.0f);
        op_f32("1 2 1", -1, 1);
        if (version == 18) {
            op_f32("1", 3);
            op_f32("1", 1);
        } else {
            op_f32("2", 3, 5);
            op_f32("2", 1, 2);
        }
        CHECK_OK(op_run(1));
        if (version == 18)
            CHECK_F32_NEAR(0, "1 2 1", 1e-6, -2, 4);
        else
            CHECK_F32_NEAR(0, "1 2 1", 1e-6, -2, 7);
        op_end();
    }
}

TEST(instance_normalization_of_a_constant_is_the_bias)
{
    op_begin("InstanceNormalization", 6);
    op_f32("1 2 2", 7, 7, 1, 3);
    op_f32("2", 2, 1);
    op_f32("2", 5, 0);
    CHECK_OK(op_run(1));
    CHECK_F32_NEAR(0, "1 2 2", 1e-5, 5, 5, -1, 1);
    op_end();
}

TEST(zero_vectors_stay_zero_under_lp_normalization)
{
    op_begin("LpNormalization", 22);
    op_f32("2 2", 0, 0, 3, 4);
    CHECK_OK(op_run(1));
    CHECK_F32_NEAR(0, "2 2", 1e-6, 0, 0, 0.6f, 0.8f);
    op_end();
}

TEST(half_precision_rows_go_through_f32)
{
    op_begin("Softmax", 13);
    OP_INPUT(F16, uint16_t, "1 2", sn_f32_to_f16(0.0f), sn_f32_to_f16(0.0f));
    CHECK_OK(op_run(1));
    CHECK_OUT(0, F16, uint16_t, "1 2", sn_f32_to_f16(0.5f), sn_f32_to_f16(0.5f));
    op_end();
}

TEST(layer_normalization_in_half_precision_reads_every_element)
{
    op_begin("LayerNormalization", 17);
    op_float("epsilon", 0.0f);
    OP_INPUT(F16, uint16_t, "2 2", sn_f32_to_f16(1.0f), sn_f32_to_f16(3.0f), sn_f32_to_f16(8.0f),
             sn_f32_to_f16(2.0f));
    OP_INPUT(F16, uint16_t, "2", sn_f32_to_f16(1.0f), sn_f32_to_f16(2.0f));
    CHECK_OK(op_run(1));
    CHECK_OUT(0, F16, uint16_t, "2 2", sn_f32_to_f16(-1.0f), sn_f32_to_f16(2.0f),
              sn_f32_to_f16(1.0f), sn_f32_to_f16(-2.0f));
    op_end();
}

TEST_MAIN()
