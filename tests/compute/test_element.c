/* SPDX-License-Identifier: Apache-2.0 */
/* Single elements of every type: what is stored reads back, keys order as the numbers do. */
#include "compute/element.h"

#include "compute/cast.h"
#include "compute/small_floats.h"
#include "test.h"

static const sonde_dtype numbers[] = {
    SONDE_DTYPE_F32,        SONDE_DTYPE_F64,    SONDE_DTYPE_F16,    SONDE_DTYPE_BF16,
    SONDE_DTYPE_F8E4M3FN,   SONDE_DTYPE_F8E5M2, SONDE_DTYPE_F4E2M1, SONDE_DTYPE_I8,
    SONDE_DTYPE_I16,        SONDE_DTYPE_I32,    SONDE_DTYPE_I64,    SONDE_DTYPE_U8,
    SONDE_DTYPE_U16,        SONDE_DTYPE_U32,    SONDE_DTYPE_U64,    SONDE_DTYPE_I4,
    SONDE_DTYPE_U4,         SONDE_DTYPE_I2,     SONDE_DTYPE_U2,     SONDE_DTYPE_F8E4M3FNUZ,
    SONDE_DTYPE_F8E5M2FNUZ,
};
enum { TYPES = sizeof numbers / sizeof numbers[0] };

TEST(what_every_type_can_hold_is_stored_and_read)
{
    for (size_t t = 0; t < TYPES; t++) {
        _Alignas(16) uint8_t data[64];
        memset(data, 0xee, sizeof data);
        sn_elem_set_f64(numbers[t], data, 0, 0.0);
        sn_elem_set_f64(numbers[t], data, 3, 1.0);
        CHECK_MSG(sn_elem_f64(numbers[t], data, 0) == 0.0, "type %d", (int)numbers[t]);
        CHECK_MSG(sn_elem_f64(numbers[t], data, 3) == 1.0, "type %d", (int)numbers[t]);
        CHECK_EQ(sn_elem_i64(numbers[t], data, 3), 1);
        CHECK(sn_elem_is_zero(numbers[t], data, 0));
        CHECK(!sn_elem_is_zero(numbers[t], data, 3));
        CHECK_EQ(data[sn_dtype_bytes(numbers[t])], 0xee); /* the neighbour is left alone */
    }
}

TEST(integers_saturate_and_nan_becomes_zero)
{
    int8_t small[2];
    uint64_t large[2];
    sn_elem_set_f64(SONDE_DTYPE_I8, small, 0, 1e9);
    sn_elem_set_f64(SONDE_DTYPE_I8, small, 1, -129.0);
    CHECK_EQ(small[0], INT8_MAX);
    CHECK_EQ(small[1], INT8_MIN);
    sn_elem_set_f64(SONDE_DTYPE_I4, small, 0, 9.0);
    sn_elem_set_f64(SONDE_DTYPE_U2, small, 1, -1.0);
    CHECK_EQ(small[0], 7);
    CHECK_EQ(small[1], 0);
    sn_elem_set_f64(SONDE_DTYPE_U64, large, 0, 1e30);
    sn_elem_set_f64(SONDE_DTYPE_U64, large, 1, (double)NAN);
    CHECK(large[0] == UINT64_MAX);
    CHECK(large[1] == 0);
}

TEST(keys_order_as_the_numbers_do)
{
    const double steps[] = {-INFINITY, -3.5, -1.0, 0.0, 0.5, 1.0, 3.0, INFINITY};
    enum { STEPS = sizeof steps / sizeof steps[0] };
    for (size_t t = 0; t < TYPES; t++) {
        _Alignas(16) uint8_t data[STEPS * 8];
        for (int i = 0; i < STEPS; i++)
            sn_elem_set_f64(numbers[t], data, i, steps[i]);
        for (int i = 1; i < STEPS; i++) {
            const double a = sn_elem_f64(numbers[t], data, i - 1),
                         b = sn_elem_f64(numbers[t], data, i);
            const uint64_t ka = sn_elem_key(numbers[t], data, i - 1),
                           kb = sn_elem_key(numbers[t], data, i);
            CHECK_MSG(a < b ? ka < kb : ka == kb, "type %d, step %d", (int)numbers[t], i);
        }
    }
    const float edge[4] = {INFINITY, NAN, -0.0f, 0.0f};
    CHECK(sn_elem_key(SONDE_DTYPE_F32, edge, 0) < sn_elem_key(SONDE_DTYPE_F32, edge, 1));
    CHECK(sn_elem_key(SONDE_DTYPE_F32, edge, 2) == sn_elem_key(SONDE_DTYPE_F32, edge, 3));
    const int64_t whole[3] = {INT64_MIN, -1, INT64_MAX};
    CHECK(sn_elem_key(SONDE_DTYPE_I64, whole, 0) < sn_elem_key(SONDE_DTYPE_I64, whole, 1));
    CHECK(sn_elem_key(SONDE_DTYPE_I64, whole, 1) < sn_elem_key(SONDE_DTYPE_I64, whole, 2));
    CHECK(!sn_elem_ordered(SONDE_DTYPE_STRING) && !sn_elem_ordered(SONDE_DTYPE_C64));
}

TEST(empty_strings_and_complex_zeros_are_zero)
{
    const sonde_string text[2] = {{"", 0}, {"a", 1}};
    const float pairs[4] = {0, 0, 0, 2};
    CHECK(sn_elem_is_zero(SONDE_DTYPE_STRING, text, 0));
    CHECK(!sn_elem_is_zero(SONDE_DTYPE_STRING, text, 1));
    CHECK(sn_elem_is_zero(SONDE_DTYPE_C64, pairs, 0));
    CHECK(!sn_elem_is_zero(SONDE_DTYPE_C64, pairs, 1));
    CHECK(sn_elem_is_zero(SONDE_DTYPE_F32, &(float){-0.0f}, 0));
}

TEST(bytes_are_narrowed_to_types_below_eight_bits)
{
    static const struct {
        sonde_dtype dtype;
        uint8_t want[3]; /* of 0x7f, 0x88, 0xfe */
    } rows[] = {{SONDE_DTYPE_I4, {0xff, 0xf8, 0xfe}},
                {SONDE_DTYPE_U4, {0x0f, 0x08, 0x0e}},
                {SONDE_DTYPE_F4E2M1, {0x0f, 0x08, 0x0e}},
                {SONDE_DTYPE_I2, {0xff, 0x00, 0xfe}},
                {SONDE_DTYPE_U2, {0x03, 0x00, 0x02}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t y[3] = {0x7f, 0x88, 0xfe};
        sn_narrow_bytes(rows[i].dtype, y, 3);
        CHECK_MSG(memcmp(y, rows[i].want, 3) == 0, "type %d", (int)rows[i].dtype);
    }
}

TEST_MAIN()
