/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs of small floats: exhaustive round trips, and the corners ONNX's Cast writes down. */
#include "base/codec.h"

#include "base/fpmode.h"
#include "test.h"

static const sonde_dtype f8_types[] = {SONDE_DTYPE_F8E4M3FN, SONDE_DTYPE_F8E4M3FNUZ,
                                       SONDE_DTYPE_F8E5M2, SONDE_DTYPE_F8E5M2FNUZ};

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
                CHECK_MSG(sn_f32_to_f8(f8_types[t], f, false) == v, "type %d, %02x",
                          (int)f8_types[t], v);
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
            CHECK_MSG(have == best, "type %d: %a became %02x", (int)f8_types[t], (double)x, got);
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
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, NAN, true), 8); /* it has none: -0 */
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F4E2M1, -NAN, false), 8);
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
    CHECK_EQ(sn_f32_to_e8m0(INFINITY, SN_E8M0_DOWN, false), 0xFF);
    CHECK_EQ(sn_f32_to_e8m0(0.0f, SN_E8M0_UP, false), 0); /* the smallest there is */
    CHECK_EQ(sn_f32_to_e8m0(0x1p-140f, SN_E8M0_UP, false), 0);
    CHECK_EQ(sn_f32_to_e8m0(0x1.8p-127f, SN_E8M0_NEAREST, true), 1);
    CHECK_EQ(sn_f32_to_e8m0(-4.0f, SN_E8M0_UP, true), 129); /* the sign is dropped */
}

TEST(nans_stay_nans_keep_their_sign_and_come_out_quiet)
{
    CHECK_EQ(sn_f32_bits(sn_f16_to_f32(0xFC01)), 0xFFC02000u);
    CHECK_EQ(sn_f32_to_f16(sn_f32_of_bits(0xFF800001u)), 0xFE00);
    CHECK_EQ(sn_f32_to_bf16(sn_f32_of_bits(0xFF800001u)), 0xFFC0);
    CHECK_EQ(sn_f32_bits(sn_f8_to_f32(SONDE_DTYPE_F8E4M3FN, 0xFF)), 0xFFC00000u);
    CHECK_EQ(sn_f32_to_f8(SONDE_DTYPE_F8E4M3FN, sn_f32_of_bits(0xFFC00000u), true), 0xFF);
    CHECK_EQ(sn_f32_bits(sn_f8_to_f32(SONDE_DTYPE_F8E5M2FNUZ, 0x80)), 0x7FC00000u);
}

TEST(denormals_are_converted_also_where_arithmetic_flushes_them)
{
    const uint32_t mode = sn_fp_get();
    sn_fp_set(sn_fp_flushing(mode));
    const uint32_t least = sn_f32_bits(sn_f16_to_f32(1)), most = sn_f32_bits(sn_f16_to_f32(0x3FF));
    const uint16_t back = sn_f32_to_f16(sn_f32_of_bits(least));
    const uint8_t up = sn_f32_to_e8m0(sn_f32_of_bits(0x00400001u), SN_E8M0_UP, true);
    const uint32_t power = sn_f32_bits(sn_e8m0_to_f32(0));
    sn_fp_set(mode);
    CHECK_EQ(least, sn_f32_bits(0x1p-24f));
    CHECK_EQ(most, sn_f32_bits(1023 * 0x1p-24f));
    CHECK_EQ(back, 1);
    CHECK_EQ(up, 1);
    CHECK_EQ(power, 0x00400000u);
}

TEST_MAIN()
