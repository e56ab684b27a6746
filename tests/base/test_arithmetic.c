/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of arithmetic: their names, and which one products of a type are. */
#include "test.h"

#include "base/arithmetic.h"

TEST(every_kind_is_found_by_its_name)
{
    for (int a = 1; a < SN_ARITH_COUNT; a++) {
        const char *name = sn_arithmetic_name((sn_arithmetic)a);
        CHECK_MSG(*name && (int)sn_arithmetic_named(name, strlen(name)) == a, "%d: %s", a, name);
    }
    CHECK_STR(sn_arithmetic_name(SN_ARITH_NONE), "");
    CHECK_STR(sn_arithmetic_name((sn_arithmetic)99), "");
    CHECK(sn_arithmetic_named("bf16", 3) == SN_ARITH_NONE);
    CHECK(sn_arithmetic_named("", 0) == SN_ARITH_NONE);
}

TEST(products_of_a_type_are_made_by_vectors_or_by_tiles)
{
    CHECK(sn_arithmetic_of(SONDE_DTYPE_F32, false) == SN_ARITH_F32);
    CHECK(sn_arithmetic_of(SONDE_DTYPE_F64, false) == SN_ARITH_F64);
    CHECK(sn_arithmetic_of(SONDE_DTYPE_BF16, false) == SN_ARITH_BF16);
    CHECK(sn_arithmetic_of(SONDE_DTYPE_BF16, true) == SN_ARITH_BF16_TILES);
    CHECK(sn_arithmetic_of(SONDE_DTYPE_F16, true) == SN_ARITH_F16_TILES);
    CHECK(sn_arithmetic_of(SONDE_DTYPE_U8, false) == SN_ARITH_I8);
    CHECK(sn_arithmetic_of(SONDE_DTYPE_I8, true) == SN_ARITH_I8_TILES);
    CHECK(sn_arithmetic_of(SONDE_DTYPE_I64, false) == SN_ARITH_INT);
}

TEST(a_set_is_told_in_the_order_of_the_list)
{
    char text[SN_ARITH_TEXT];
    CHECK_STR(sn_arithmetic_text(0, text), "");
    CHECK_STR(sn_arithmetic_text(1u << SN_ARITH_I8, text), "i8");
    CHECK_STR(sn_arithmetic_text(1u << SN_ARITH_BF16_TILES | 1u << SN_ARITH_F32, text),
              "f32+bf16_tiles");
    CHECK(strlen(sn_arithmetic_text(UINT32_MAX, text)) < SN_ARITH_TEXT);
}

TEST_MAIN()
