/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf cursor at its edges. */
#include "base/wire.h"

#include "test.h"

static sn_wire_status first(const char *bytes, size_t n, sn_field *f)
{
    /* A copy of the exact size: reading past its end is seen by the sanitizer. */
    uint8_t *exact = malloc(n ? n : 1);
    if (n)
        memcpy(exact, bytes, n);
    sn_wire w = sn_wire_of(exact, n);
    sn_wire_status st = sn_wire_next(&w, f);
    f->body = (sn_wire){0};
    free(exact);
    return st;
}

TEST(each_wire_type_is_read)
{
    sn_field f;
    CHECK_EQ(first("\x08\xAC\x02", 3, &f), SN_WIRE_FIELD);
    CHECK_EQ(f.tag, SN_INT(1));
    CHECK_EQ(f.num, 300);
    CHECK_EQ(first("\x15\x00\x00\x80\x3F", 5, &f), SN_WIRE_FIELD);
    CHECK_EQ(f.tag, SN_F32(2));
    CHECK(sn_wire_float(f.num) == 1.0f);
    CHECK_EQ(first("\x19\x01\x00\x00\x00\x00\x00\x00\x80", 9, &f), SN_WIRE_FIELD);
    CHECK_EQ(f.tag, SN_F64(3));
    CHECK(f.num == 0x8000000000000001u);
    CHECK_EQ(first("\x22\x02ok", 4, &f), SN_WIRE_FIELD);
    CHECK_EQ(f.tag, SN_LEN(4));
}

TEST(the_largest_varint_is_read_and_a_larger_one_is_not)
{
    sn_field f;
    CHECK_EQ(first("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11, &f), SN_WIRE_FIELD);
    CHECK(f.num == UINT64_MAX);
    CHECK_EQ(first("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02", 11, &f), SN_WIRE_BROKEN);
    CHECK_EQ(first("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x81\x01", 12, &f), SN_WIRE_BROKEN);
}

TEST(no_bytes_are_the_end_and_cut_bytes_are_broken)
{
    sn_field f;
    CHECK_EQ(first("", 0, &f), SN_WIRE_END);
    CHECK_EQ(first("\x08", 1, &f), SN_WIRE_BROKEN);
    CHECK_EQ(first("\x08\x80", 2, &f), SN_WIRE_BROKEN);
    CHECK_EQ(first("\x15\x00\x00\x80", 4, &f), SN_WIRE_BROKEN);
    CHECK_EQ(first("\x22\x03ok", 4, &f), SN_WIRE_BROKEN);
    CHECK_EQ(first("\x22\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11, &f), SN_WIRE_BROKEN);
}

TEST(field_number_zero_and_unused_wire_types_are_broken)
{
    sn_field f;
    CHECK_EQ(first("\x00\x01", 2, &f), SN_WIRE_BROKEN);
    CHECK_EQ(first("\x0E\x01", 2, &f), SN_WIRE_BROKEN);
    CHECK_EQ(first("\x0C", 1, &f), SN_WIRE_BROKEN);
}

TEST(groups_are_skipped_with_all_they_hold)
{
    sn_field f;
    CHECK_EQ(first("\x0B\x10\x05\x1B\x1C\x0C\x20\x07", 8, &f), SN_WIRE_FIELD);
    CHECK_EQ(f.tag, SN_INT(4));
    CHECK_EQ(f.num, 7);
    CHECK_EQ(first("\x0B\x14", 2, &f), SN_WIRE_BROKEN); /* ends another group */
    CHECK_EQ(first("\x0B", 1, &f), SN_WIRE_BROKEN);
}

TEST(a_bomb_of_groups_is_refused)
{
    char bomb[2 * 1000];
    sn_field f;
    memset(bomb, 0x0B, 1000);
    memset(bomb + 1000, 0x0C, 1000);
    CHECK_EQ(first(bomb, sizeof bomb, &f), SN_WIRE_BROKEN);
}

TEST(packed_and_unpacked_numbers_count_alike)
{
    sn_field packed = {.tag = SN_LEN(1), .body = sn_wire_of("\x01\x80\x01\x03", 4)};
    sn_field single = {.tag = SN_INT(1), .num = 9};
    size_t n = 0;
    uint64_t num;
    CHECK(sn_wire_count(&packed, SN_WIRE_VARINT, &n));
    CHECK(sn_wire_count(&single, SN_WIRE_VARINT, &n));
    CHECK_EQ(n, 4);
    sn_wire_iter it;
    sn_wire_iter_start(&it, &packed, SN_WIRE_VARINT);
    CHECK(sn_wire_iter_next(&it, &num) && num == 1);
    CHECK(sn_wire_iter_next(&it, &num) && num == 128);
    CHECK(sn_wire_iter_next(&it, &num) && num == 3);
    CHECK(!sn_wire_iter_next(&it, &num));
    sn_wire_iter_start(&it, &single, SN_WIRE_VARINT);
    CHECK(sn_wire_iter_next(&it, &num) && num == 9);
    CHECK(!sn_wire_iter_next(&it, &num));
}

TEST(a_packed_run_that_ends_inside_a_number_is_broken)
{
    sn_field varints = {.tag = SN_LEN(1), .body = sn_wire_of("\x01\x80", 2)};
    sn_field floats = {.tag = SN_LEN(1), .body = sn_wire_of("\x01\x02\x03\x04\x05", 5)};
    size_t n = 0;
    CHECK(!sn_wire_count(&varints, SN_WIRE_VARINT, &n));
    CHECK(!sn_wire_count(&floats, SN_WIRE_FIXED32, &n));
}

TEST_MAIN()
