/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions and quantisation, above all where C would be undefined or round twice. */
#include "op_test.h"

static sonde_status cast_to(sn_dtype to)
{
    op_int("to", to);
    return op_run(1);
}

TEST(floats_out_of_range_saturate_and_nan_is_zero)
{
    op_begin("Cast", 13);
    op_f32("5", 3e9f, -3e9f, NAN, -2.9f, INFINITY);
    CHECK_OK(cast_to(SONDE_DTYPE_I32));
    CHECK_OUT(0, I32, int32_t, "5", INT32_MAX, INT32_MIN, 0, -2, INT32_MAX);
    op_end();
    op_begin("Cast", 13);
    op_f32("3", 1e20f, -1e20f, 1.5f);
    CHECK_OK(cast_to(SONDE_DTYPE_I64));
    CHECK_OUT(0, I64, int64_t, "3", INT64_MAX, INT64_MIN, 1);
    op_end();
}

TEST(anything_but_zero_is_true)
{
    op_begin("Cast", 13);
    op_f32("4", 0.0f, -0.0f, NAN, 0.1f);
    CHECK_OK(cast_to(SONDE_DTYPE_BOOL));
    CHECK_OUT(0, BOOL, uint8_t, "4", 0, 0, 1, 1);
    op_end();
}

TEST(double_to_half_rounds_once)
{
    /* 1 + 2^-11 is a tie in f16; the last bit of the double breaks it upward. */
    op_begin("Cast", 13);
    OP_INPUT(F64, double, "2", 1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11);
    CHECK_OK(cast_to(SONDE_DTYPE_F16));
    CHECK_OUT(0, F16, uint16_t, "2", 0x3c01, 0x3c00);
    op_end();
}

TEST(float8_saturates_or_not)
{
    op_begin("Cast", 19);
    op_f32("4", 1000.0f, -1000.0f, 448.0f, 0.001953125f);
    CHECK_OK(cast_to(SONDE_DTYPE_F8E4M3FN));
    CHECK_OUT(0, F8E4M3FN, uint8_t, "4", 0x7e, 0xfe, 0x7e, 0x01);
    op_end();
    op_begin("Cast", 19);
    op_int("saturate", 0);
    op_f32("2", 1000.0f, 464.0f);
    CHECK_OK(cast_to(SONDE_DTYPE_F8E4M3FN));
    CHECK_OUT(0, F8E4M3FN, uint8_t, "2", 0x7f, 0x7e); /* 464 is a tie to even: 448 */
    op_end();
}

TEST(float8e8m0_rounds_as_asked)
{
    static const uint8_t want[3] = {128, 127, 128};
    static const char *const modes[3] = {"up", "down", "nearest"};
    for (int m = 0; m < 3; m++) {
        op_begin("Cast", 24);
        op_string("round_mode", modes[m]);
        op_f32("1", 1.6f);
        CHECK_OK(cast_to(SONDE_DTYPE_F8E8M0));
        CHECK_OUT(0, F8E8M0, uint8_t, "1", want[m]);
        op_end();
    }
}

TEST(sub_byte_integers_wrap)
{
    op_begin("Cast", 21);
    OP_INPUT(I32, int32_t, "4", 7, 8, -8, -9);
    CHECK_OK(cast_to(SONDE_DTYPE_I4));
    CHECK_OUT(0, I4, int8_t, "4", 7, -8, -8, 7);
    op_end();
}

TEST(strings_become_numbers)
{
    const sonde_string text[] = {{"3.5", 3}, {"-INF", 4}, {"1e3", 3}, {"NaN", 3}};
    int64_t n = 4;
    op_begin("Cast", 13);
    CHECK_OK(sn_slot_new_strings(&op.in[0], &n, 1, text, &op.alloc, &err));
    op.has[0] = true;
    op.n_in = 1;
    CHECK_OK(cast_to(SONDE_DTYPE_F32));
    CHECK_F32(0, "4", 3.5f, -INFINITY, 1000, NAN);
    op_end();
    const sonde_string big = {"9223372036854775807", 19}, bad = {"12x", 3};
    op_begin("Cast", 13);
    n = 1;
    CHECK_OK(sn_slot_new_strings(&op.in[0], &n, 1, &big, &op.alloc, &err));
    op.has[0] = true;
    op.n_in = 1;
    CHECK_OK(cast_to(SONDE_DTYPE_I64));
    CHECK_OUT(0, I64, int64_t, "1", INT64_MAX);
    op_end();
    op_begin("Cast", 13);
    CHECK_OK(sn_slot_new_strings(&op.in[0], &n, 1, &bad, &op.alloc, &err));
    op.has[0] = true;
    op.n_in = 1;
    CHECK_EQ(cast_to(SONDE_DTYPE_F32), SONDE_RUNTIME);
    CHECK_HAS(err.message, "'12x'");
    op_end();
}

TEST(numbers_become_the_shortest_strings)
{
    op_begin("Cast", 13);
    op_f32("3", 0.1f, 16777216.0f, NAN);
    CHECK_OK(cast_to(SONDE_DTYPE_STRING));
    const sonde_string *s = op_out(0);
    CHECK_MSG(s[0].size == 3 && memcmp(s[0].data, "0.1", 3) == 0, "%.*s", (int)s[0].size,
              s[0].data);
    CHECK_MSG(s[1].size == 8 && memcmp(s[1].data, "16777216", 8) == 0, "%.*s", (int)s[1].size,
              s[1].data);
    CHECK(s[2].size == 3 && memcmp(s[2].data, "NaN", 3) == 0);
    op_end();
}

TEST(quantisation_rounds_to_even_and_saturates)
{
    op_begin("QuantizeLinear", 13);
    op_f32("6", 1, 3, 5, 1000, -1000, NAN);
    op_f32("", 2);
    OP_INPUT(U8, uint8_t, "", 128);
    CHECK_OK(op_run(1));
    CHECK_OUT(0, U8, uint8_t, "6", 128, 130, 130, 255, 0, 128);
    op_end();
}

TEST(quantisation_per_axis_and_per_block_pick_their_scale)
{
    op_begin("DequantizeLinear", 13);
    op_int("axis", 0);
    OP_INPUT(I8, int8_t, "2 2", 10, 20, 30, 40);
    op_f32("2", 0.5f, 2);
    OP_INPUT(I8, int8_t, "2", 10, 0);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 2", 0, 5, 60, 80);
    op_end();
    op_begin("DequantizeLinear", 21);
    op_int("axis", 1);
    op_int("block_size", 2);
    OP_INPUT(U8, uint8_t, "2 3", 1, 2, 3, 4, 5, 6);
    op_f32("2 2", 1, 10, 100, 1000);
    CHECK_OK(op_run(1));
    CHECK_F32(0, "2 3", 1, 2, 30, 400, 500, 6000);
    op_end();
}

TEST(scales_that_do_not_fit_are_refused)
{
    op_begin("DequantizeLinear", 13);
    op_int("axis", 1);
    OP_INPUT(I8, int8_t, "2 2", 1, 2, 3, 4);
    op_f32("3", 1, 2, 3);
    CHECK_EQ(op_run(1), SONDE_INVALID_MODEL);
    CHECK_HAS(err.message, "3 scales for 2 channels");
    op_end();
}

TEST(dynamic_quantisation_keeps_zero_exact)
{
    op_begin("DynamicQuantizeLinear", 11);
    op_f32("6", 0, 2, -3, -2.5f, 1.34f, 0.5f);
    CHECK_OK(op_run(3));
    CHECK_OUT(0, U8, uint8_t, "6", 153, 255, 0, 26, 221, 179);
    CHECK_F32_NEAR(1, "", 1e-6, 0.0196078438f);
    CHECK_OUT(2, U8, uint8_t, "", 153);
    op_end();
}

TEST_MAIN()
