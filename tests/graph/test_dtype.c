/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs of small floats: exhaustive round trips, and the corners ONNX's Cast writes down. */
#include "test.h"

#include "graph/dtype.h"

static const sn_dtype f8_types[] = {SONDE_DTYPE_F8E4M3FN, SONDE_DTYPE_F8E4M3FNUZ,
                                    SONDE_DTYPE_F8E5M2, SONDE_DTYPE_F8E5M2FNUZ};

TEST(any_number_of_an_element_type_can_be_shown)
{
    char text[40];
    CHECK_STR(sn_dtype_number_text(27, text), "27 (float6e2m3)");
    CHECK_STR(sn_dtype_number_text(28, text), "28 (float6e3m2)");
    CHECK_STR(sn_dtype_number_text(29, text), "29");
    CHECK_STR(sn_dtype_number_text(INT64_MIN, text), "-9223372036854775808");
    CHECK_STR(sn_dtype_number_text(INT64_MAX, text), "9223372036854775807");
}

TEST(every_f16_survives_the_way_through_f32)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = sn_f16_to_f32((uint16_t)h);
        uint16_t back = sn_f32_to_f16(f);
        if (isnan(f))
            CHECK_MSG((back & 0x7FFF) > 0x7C00, "%04x became %04x", h, back);
        else
            CHECK_MSG(back == h, "%04x became %04x", h, back);
    }
}

TEST(f16_rounds_to_nearest_even_and_overflows_to_infinity)
{
    CHECK_EQ(sn_f32_to_f16(1.0f), 0x3C00);
    CHECK_EQ(sn_f32_to_f16(1.0f + 0x1p-11f), 0x3C00);     /* tie: even stays */
    CHECK_EQ(sn_f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3C02); /* tie: goes up to even */
    CHECK_EQ(sn_f32_to_f16(65504.0f), 0x7BFF);
    CHECK_EQ(sn_f32_to_f16(65519.0f), 0x7BFF);
    CHECK_EQ(sn_f32_to_f16(65520.0f), 0x7C00);
    CHECK_EQ(sn_f32_to_f16(-INFINITY), 0xFC00);
    CHECK_EQ(sn_f32_to_f16(0x1p-24f), 1);
    CHECK_EQ(sn_f32_to_f16(0x1p-25f), 0); /* half of the smallest: to even zero */
    CHECK_EQ(sn_f32_to_f16(0x1.8p-25f), 1);
    CHECK_EQ(sn_f32_to_f16(0x1p-14f - 0x1p-26f), 0x0400); /* denormal rounds up to normal */
    CHECK_EQ(sn_f32_to_f16(-0.0f), 0x8000);
    CHECK_EQ(sn_f32_to_f16(0x1p-149f), 0);
}

TEST(bf16_rounds_to_nearest_even)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = sn_bf16_to_f32((uint16_t)h);
        if (!isnan(f))
            CHECK_EQ(sn_f32_to_bf16(f), h);
        else
            CHECK(isnan(sn_bf16_to_f32(sn_f32_to_bf16(f))));
    }
    CHECK_EQ(sn_f32_to_bf16(1.0f + 0x1p-8f), 0x3F80);
    CHECK_EQ(sn_f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3F82);
    CHECK_EQ(sn_f32_to_bf16(3.4028235e38f), 0x7F80);
}

TEST(every_f8_survives_the_way_through_f32)
{
    for (size_t t = 0; t < 4; t++)
        for (uint32_t v = 0; v < 256; v++) {
            float f = sn_f8_to_f32(f8_types[t], (uint8_t)v);
            if (!isnan(f))
                CHECK_MSG(sn_f32_to_f8(f8_types[t], f, false) == v, "%s %02x",
                          sn_dtype_name(f8_types[t]), v);
            else
                CHECK(isnan(sn_f8_to_f32(f8_types[t], sn_f32_to_f8(f8_types[t], f, false))));
        }
}

/* The nearest code found by looking at all of them; ties to the even code. */
TEST(f8_takes_the_nearest_value)
{
    for (size_t t = 0; t < 4; t++)
        for (int k = 0; k < 20000; k++) {
            float x = ldexpf(test_randf(), (int)(test_rand() % 24) - 17);
            uint8_t got = sn_f32_to_f8(f8_types[t], x, true);
            double best = INFINITY;
            for (uint32_t v = 0; v < 256; v++) {
                double d = fabs((double)sn_f8_to_f32(f8_types[t], (uint8_t)v) - (double)x);
                if (d < best)
                    best = d;
            }
            double have = fabs((double)sn_f8_to_f32(f8_types[t], got) - (double)x);
            CHECK_MSG(have == best, "%s %a became %02x", sn_dtype_name(f8_types[t]), (double)x,
                      got);
        }
}

TEST(f8_saturates_or_not_as_the_cast_operator_says)
{
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FN, INFINITY, true), 0x7E);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FN, -INFINITY, true), 0xFE);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FN, INFINITY, false), 0x7F);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FN, 500.0f, false), 0x7F);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FN, 464.0f, false), 0x7E); /* tie down to 448 */
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FN, -NAN, true) & 0x7F, 0x7F);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FNUZ, INFINITY, true), 0x7F);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FNUZ, INFINITY, false), 0x80);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FNUZ, -0.0f, true), 0);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FNUZ, NAN, true), 0x80);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E5M2, INFINITY, true), 0x7B);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E5M2, 1e9f, false), 0x7C);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E5M2, NAN, false), 0x7E);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E5M2FNUZ, -1e9f, true), 0xFF);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E5M2FNUZ, -1e9f, false), 0x80);
}

TEST(f4_saturates_and_rounds_to_even)
{
    static const float values[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    for (uint8_t v = 0; v < 16; v++) {
        float f = sn_f8_to_f32(SONDE_DTYPE_F4E2M1, v);
        CHECK(fabsf(f) == values[v & 7] && !signbit(f) == (v < 8));
        CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, f, false), v);
    }
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, 2.5f, true), 4);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, 3.5f, true), 6);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, 5.0f, true), 6);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, -1e9f, false), 15);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, .25f, true), 0);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, .75f, true), 2);
}

TEST(e8m0_is_a_power_of_two)
{
    for (uint32_t v = 0; v < 255; v++) {
        float f = sn_f8_to_f32(SONDE_DTYPE_F8E8M0, (uint8_t)v);
        CHECK(f == ldexpf(1.0f, (int)v - 127));
        for (int mode = 0; mode < 3; mode++)
            CHECK_EQ(sn_f32_to_e8m0(f, (sn_e8m0_round)mode, true), v);
    }
    CHECK(isnan(sn_f8_to_f32(SONDE_DTYPE_F8E8M0, 0xFF)));
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E8M0, 1.1f, true), 128);
    CHECK_EQ(sn_f32_to_e8m0(1.1f, SN_E8M0_DOWN, true), 127);
    CHECK_EQ(sn_f32_to_e8m0(1.5f, SN_E8M0_NEAREST, true), 128);
    CHECK_EQ(sn_f32_to_e8m0(1.49f, SN_E8M0_NEAREST, true), 127);
    CHECK_EQ(sn_f32_to_e8m0(0.0f, SN_E8M0_UP, true), 0);
    CHECK_EQ(sn_f32_to_e8m0(INFINITY, SN_E8M0_UP, true), 0xFE);
    CHECK_EQ(sn_f32_to_e8m0(3.4e38f, SN_E8M0_UP, true), 0xFE);
    CHECK_EQ(sn_f32_to_e8m0(NAN, SN_E8M0_UP, true), 0xFF);
}

TEST(sizes_in_memory_and_in_files)
{
    size_t n;
    CHECK_EQ(sn_dtype_bytes(SONDE_DTYPE_I4), 1);
    CHECK_EQ(sn_dtype_bytes(SONDE_DTYPE_STRING), sizeof(sonde_string));
    CHECK_EQ(sn_dtype_bytes(SONDE_DTYPE_C128), 16);
    CHECK(sn_dtype_file_bytes(SONDE_DTYPE_U4, 5, &n) && n == 3);
    CHECK(sn_dtype_file_bytes(SONDE_DTYPE_I2, 5, &n) && n == 2);
    CHECK(sn_dtype_file_bytes(SONDE_DTYPE_F64, 5, &n) && n == 40);
    CHECK(!sn_dtype_file_bytes(SONDE_DTYPE_F64, INT64_MAX, &n));
    CHECK(!sn_dtype_file_bytes(SONDE_DTYPE_F32, -1, &n));
    CHECK(sn_dtype_valid(1) && !sn_dtype_valid(0) && !sn_dtype_valid(999) && !sn_dtype_valid(-1));
    CHECK(sn_dtype_is_int(SONDE_DTYPE_U4) && !sn_dtype_is_int(SONDE_DTYPE_BOOL));
    CHECK(sn_dtype_is_signed(SONDE_DTYPE_F16) && !sn_dtype_is_signed(SONDE_DTYPE_U8));
}

TEST_MAIN()
