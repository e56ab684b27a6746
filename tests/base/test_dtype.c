/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: names, sizes and classes. */
#include "test.h"

#include "base/dtype.h"

TEST(any_number_of_an_element_type_can_be_shown)
{
    char text[40];
    CHECK_STR(sn_dtype_number_text(27, text), "27 (float6e2m3)");
    CHECK_STR(sn_dtype_number_text(28, text), "28 (float6e3m2)");
    CHECK_STR(sn_dtype_number_text(29, text), "29");
    CHECK_STR(sn_dtype_number_text(INT64_MIN, text), "-9223372036854775808");
    CHECK_STR(sn_dtype_number_text(INT64_MAX, text), "9223372036854775807");
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
