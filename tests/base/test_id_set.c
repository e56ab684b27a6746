/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of numbers as the kernel writes them, and what is no such list. */
#include "base/id_set.h"

#include "test.h"

TEST(lists_become_sets_and_the_same_lists_again)
{
    static const char *const lists[] = {
        "", "0", "0-3", "0-3,8,10-11", "63-64", "0,2,4,6-9", "127-128,8191", "0-8191", "31,4095"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        sn_id_set s;
        char text[64];
        CHECK_MSG(sn_id_set_parse(lists[i], &s, NULL), "%s", lists[i]);
        CHECK_STR(sn_id_set_text(&s, text, sizeof text), lists[i]);
    }
}

TEST(white_space_and_any_order_are_accepted)
{
    sn_id_set s;
    char text[64];
    CHECK(sn_id_set_parse("  8, 3-5\t,0 \n", &s, NULL));
    CHECK_STR(sn_id_set_text(&s, text, sizeof text), "0,3-5,8");
    CHECK_EQ(sn_id_set_count(&s), 5);
    CHECK(sn_id_set_parse("\n", &s, NULL));
    CHECK(sn_id_set_is_empty(&s));
}

TEST(what_is_no_list_gives_an_empty_set)
{
    static const char *const wrong[] = {"-",   "-1",   "1-",    "3-1",  "a",    "0,",
                                        ",0",  "0,,1", "0x3",   "1 2",  "0-3:", "0--3",
                                        "1.5", "\xff", "0-3\v", "node0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sn_id_set s = {{1}};
        CHECK_MSG(!sn_id_set_parse(wrong[i], &s, NULL), "%s", wrong[i]);
        CHECK_MSG(sn_id_set_is_empty(&s), "%s", wrong[i]);
    }
}

TEST(numbers_beyond_the_limit_are_left_out_and_said)
{
    sn_id_set s;
    bool beyond = false;
    CHECK(sn_id_set_parse("1,99999999999999999999999999", &s, &beyond));
    CHECK(beyond);
    CHECK_EQ(sn_id_set_count(&s), 1);
    CHECK(sn_id_set_parse("8190-4294967295", &s, &beyond));
    CHECK(beyond);
    CHECK_EQ(sn_id_set_count(&s), 2);
    CHECK(sn_id_set_parse("8191", &s, &beyond));
    CHECK(!beyond);
}

TEST(sets_of_more_than_1024_are_walked_joined_and_compared)
{
    sn_id_set a, b;
    CHECK(sn_id_set_parse("1000-1100,8000", &a, NULL));
    CHECK(sn_id_set_parse("1050,8000", &b, NULL));
    CHECK_EQ(sn_id_set_next(&a, 0), 1000);
    CHECK_EQ(sn_id_set_next(&a, 1101), 8000);
    CHECK_EQ(sn_id_set_next(&a, 8001), -1);
    CHECK_EQ(sn_id_set_next(&a, SN_ID_LIMIT), -1);
    CHECK(sn_id_set_within(&b, &a) && !sn_id_set_within(&a, &b));
    sn_id_set_keep(&a, &b);
    CHECK_EQ(sn_id_set_count(&a), 2);
    sn_id_set_add(&b, SN_ID_LIMIT);
    sn_id_set_add(&b, -1);
    sn_id_set_join(&a, &b);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    CHECK(!sn_id_set_has(&a, -1) && !sn_id_set_has(&a, SN_ID_LIMIT));
}

TEST(a_list_that_does_not_fit_ends_with_dots)
{
    sn_id_set s;
    char text[16];
    CHECK(sn_id_set_parse("0,2,4,6,8,10,12,14", &s, NULL));
    for (size_t bytes = 1; bytes <= sizeof text; bytes++) {
        sn_id_set_text(&s, text, bytes);
        CHECK(strlen(text) < bytes);
    }
    CHECK_STR(text, "0,2,4,6,8,10...");
}

TEST_MAIN()
