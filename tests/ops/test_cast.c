/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions and quantisation, above all where C would be undefined or round twice. */
#include "one_node.h"

static sonde_status cast_to(one_node *c, sn_dtype to)
{
    node_int(c, "to", to);
    return node_run(c);
}

TEST(floats_out_of_range_saturate_and_nan_is_zero)
{
    one_node c;
    node_begin(&c, "Cast", 13, 1, 1);
    node_f32(&c, 0, SHAPE(5), 3e9f, -3e9f, NAN, -2.9f, INFINITY);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_I32));
    CHECK_OUT(&c, 0, I32, int32_t, SHAPE(5), INT32_MAX, INT32_MIN, 0, -2, INT32_MAX);
    node_end(&c);
    node_begin(&c, "Cast", 13, 1, 1);
    node_f32(&c, 0, SHAPE(3), 1e20f, -1e20f, 1.5f);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_I64));
    CHECK_OUT(&c, 0, I64, int64_t, SHAPE(3), INT64_MAX, INT64_MIN, 1);
    node_end(&c);
}

TEST(anything_but_zero_is_true)
{
    one_node c;
    node_begin(&c, "Cast", 13, 1, 1);
    node_f32(&c, 0, SHAPE(4), 0.0f, -0.0f, NAN, 0.1f);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_BOOL));
    CHECK_OUT(&c, 0, BOOL, uint8_t, SHAPE(4), 0, 0, 1, 1);
    node_end(&c);
}

TEST(double_to_half_rounds_once)
{
    one_node c;
    /* 1 + 2^-11 is a tie in f16; the last bit of the double breaks it upward. */
    node_begin(&c, "Cast", 13, 1, 1);
    NODE_INPUT(&c, 0, F64, double, SHAPE(2), 1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_F16));
    CHECK_OUT(&c, 0, F16, uint16_t, SHAPE(2), 0x3c01, 0x3c00);
    node_end(&c);
}

TEST(float8_saturates_or_not)
{
    one_node c;
    node_begin(&c, "Cast", 19, 1, 1);
    node_f32(&c, 0, SHAPE(4), 1000.0f, -1000.0f, 448.0f, 0.001953125f);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_F8E4M3FN));
    CHECK_OUT(&c, 0, F8E4M3FN, uint8_t, SHAPE(4), 0x7e, 0xfe, 0x7e, 0x01);
    node_end(&c);
    node_begin(&c, "Cast", 19, 1, 1);
    node_int(&c, "saturate", 0);
    node_f32(&c, 0, SHAPE(2), 1000.0f, 464.0f);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_F8E4M3FN));
    CHECK_OUT(&c, 0, F8E4M3FN, uint8_t, SHAPE(2), 0x7f, 0x7e); /* 464 is a tie to even: 448 */
    node_end(&c);
}

TEST(float8e8m0_rounds_as_asked)
{
    one_node c;
    static const uint8_t want[3] = {128, 127, 128};
    static const char *const modes[3] = {"up", "down", "nearest"};
    for (int m = 0; m < 3; m++) {
        node_begin(&c, "Cast", 24, 1, 1);
        node_text(&c, "round_mode", modes[m]);
        node_f32(&c, 0, SHAPE(1), 1.6f);
        NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_F8E8M0));
        CHECK_OUT(&c, 0, F8E8M0, uint8_t, SHAPE(1), want[m]);
        node_end(&c);
    }
}

TEST(sub_byte_integers_wrap)
{
    one_node c;
    node_begin(&c, "Cast", 21, 1, 1);
    NODE_INPUT(&c, 0, I32, int32_t, SHAPE(4), 7, 8, -8, -9);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_I4));
    CHECK_OUT(&c, 0, I4, int8_t, SHAPE(4), 7, -8, -8, 7);
    node_end(&c);
}

TEST(strings_become_numbers)
{
    const sonde_string text[] = {{"3.5", 3}, {"-INF", 4}, {"1e3", 3}, {"NaN", 3}};
    one_node c;
    node_begin(&c, "Cast", 13, 1, 1);
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(4), text);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_F32));
    CHECK_F32(&c, 0, SHAPE(4), 3.5f, -INFINITY, 1000, NAN);
    node_end(&c);
    const sonde_string big = {"9223372036854775807", 19}, bad = {"12x", 3};
    node_begin(&c, "Cast", 13, 1, 1);
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(1), &big);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_I64));
    CHECK_OUT(&c, 0, I64, int64_t, SHAPE(1), INT64_MAX);
    node_end(&c);
    node_begin(&c, "Cast", 13, 1, 1);
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(1), &bad);
    CHECK_EQ(cast_to(&c, SONDE_DTYPE_F32), SONDE_RUNTIME);
    CHECK_HAS(c.err.message, "'12x'");
    node_end(&c);
}

TEST(numbers_become_the_shortest_strings)
{
    one_node c;
    node_begin(&c, "Cast", 13, 1, 1);
    node_f32(&c, 0, SHAPE(3), 0.1f, 16777216.0f, NAN);
    NODE_CHECK(&c, cast_to(&c, SONDE_DTYPE_STRING));
    const sonde_string *s = c.out[0].t.data;
    CHECK_MSG(s[0].size == 3 && memcmp(s[0].data, "0.1", 3) == 0, "%.*s", (int)s[0].size,
              s[0].data);
    CHECK_MSG(s[1].size == 8 && memcmp(s[1].data, "16777216", 8) == 0, "%.*s", (int)s[1].size,
              s[1].data);
    CHECK(s[2].size == 3 && memcmp(s[2].data, "NaN", 3) == 0);
    node_end(&c);
}

TEST(quantisation_rounds_to_even_and_saturates)
{
    one_node c;
    node_begin(&c, "QuantizeLinear", 13, 3, 1);
    node_f32(&c, 0, SHAPE(6), 1, 3, 5, 1000, -1000, NAN);
    node_f32(&c, 1, SCALAR, 2);
    NODE_INPUT(&c, 2, U8, uint8_t, SCALAR, 128);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, U8, uint8_t, SHAPE(6), 128, 130, 130, 255, 0, 128);
    node_end(&c);
}

TEST(quantisation_per_axis_and_per_block_pick_their_scale)
{
    one_node c;
    node_begin(&c, "DequantizeLinear", 13, 3, 1);
    node_int(&c, "axis", 0);
    NODE_INPUT(&c, 0, I8, int8_t, SHAPE(2, 2), 10, 20, 30, 40);
    node_f32(&c, 1, SHAPE(2), 0.5f, 2);
    NODE_INPUT(&c, 2, I8, int8_t, SHAPE(2), 10, 0);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 2), 0, 5, 60, 80);
    node_end(&c);
    node_begin(&c, "DequantizeLinear", 21, 2, 1);
    node_int(&c, "axis", 1);
    node_int(&c, "block_size", 2);
    NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    node_f32(&c, 1, SHAPE(2, 2), 1, 10, 100, 1000);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(2, 3), 1, 2, 30, 400, 500, 6000);
    node_end(&c);
}

TEST(a_vector_has_blocks_too)
{
    one_node c;
    node_begin(&c, "DequantizeLinear", 21, 2, 1);
    node_int(&c, "axis", 0);
    node_int(&c, "block_size", 2);
    NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(5), 1, 2, 3, 4, 5);
    node_f32(&c, 1, SHAPE(3), 1, 10, 100);
    NODE_CHECK(&c, node_run(&c));
    CHECK_F32(&c, 0, SHAPE(5), 1, 2, 30, 40, 500);
    node_end(&c);
    node_begin(&c, "QuantizeLinear", 21, 2, 1);
    node_int(&c, "axis", 0);
    node_int(&c, "block_size", 2);
    node_f32(&c, 0, SHAPE(5), 1, 2, 30, 40, 500);
    node_f32(&c, 1, SHAPE(3), 1, 10, 100);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, U8, uint8_t, SHAPE(5), 1, 2, 3, 4, 5);
    node_end(&c);
    node_begin(&c, "DequantizeLinear", 21, 2, 1);
    node_int(&c, "axis", 0);
    node_int(&c, "block_size", 2);
    NODE_INPUT(&c, 0, U8, uint8_t, SHAPE(5), 1, 2, 3, 4, 5);
    node_f32(&c, 1, SHAPE(2), 1, 10);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "does not match blocks of 2");
    node_end(&c);
}

TEST(scales_that_do_not_fit_are_refused)
{
    one_node c;
    node_begin(&c, "DequantizeLinear", 13, 2, 1);
    node_int(&c, "axis", 1);
    NODE_INPUT(&c, 0, I8, int8_t, SHAPE(2, 2), 1, 2, 3, 4);
    node_f32(&c, 1, SHAPE(3), 1, 2, 3);
    CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
    CHECK_HAS(c.err.message, "3 scales for 2 channels");
    node_end(&c);
}

TEST(dynamic_quantisation_keeps_zero_exact)
{
    one_node c;
    node_begin(&c, "DynamicQuantizeLinear", 11, 1, 3);
    node_f32(&c, 0, SHAPE(6), 0, 2, -3, -2.5f, 1.34f, 0.5f);
    NODE_CHECK(&c, node_run(&c));
    CHECK_OUT(&c, 0, U8, uint8_t, SHAPE(6), 153, 255, 0, 26, 221, 179);
    CHECK_F32_NEAR(&c, 1, SCALAR, 1e-6, 0.0196078438f);
    CHECK_OUT(&c, 2, U8, uint8_t, SCALAR, 153);
    node_end(&c);
}

TEST_MAIN()
