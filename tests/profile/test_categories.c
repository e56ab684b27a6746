/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of categories, as people write them. */
#include "profile/profile.h"
#include "test.h"

TEST(lists_of_categories_become_sets)
{
    sonde_error err = {0};
    uint32_t set = 99;
    char text[SN_CATS_TEXT];
    CHECK_OK(sn_prof_cats_parse(NULL, &set, &err));
    CHECK_EQ(set, 0);
    CHECK(sn_prof_cats_have(set, SN_CAT_THREAD)); /* none is all */
    CHECK_OK(sn_prof_cats_parse("operator, user ,operator", &set, &err));
    CHECK_EQ(set, 1u << SN_CAT_OPERATOR | 1u << SN_CAT_USER);
    CHECK(sn_prof_cats_have(set, SN_CAT_USER) && !sn_prof_cats_have(set, SN_CAT_THREAD));
    CHECK_STR(sn_prof_cats_text(set, text), "operator, user");
    CHECK_OK(sn_prof_cats_parse(sn_prof_cats_text(SN_CATS_ALL, text), &set, &err));
    CHECK_EQ(set, SN_CATS_ALL);
    CHECK(strlen(text) + 1 < sizeof text);
}

TEST(what_is_no_category_is_named_with_those_there_are)
{
    static const char *const wrong[] = {"",      "operators",   "op",         "Operator", "user,",
                                        ",user", "user,,model", "user model", "\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sonde_error err = {0};
        uint32_t set;
        CHECK_MSG(sn_prof_cats_parse(wrong[i], &set, &err) == SONDE_INVALID_ARGUMENT, "'%s'",
                  wrong[i]);
        CHECK(strstr(err.message, "model, iteration, operator, executor, memory, thread, user, "
                                  "device") ||
              strstr(err.message, "separated by commas"));
    }
    CHECK_EQ(sn_prof_cat_named("thread", 6), SN_CAT_THREAD);
    CHECK_EQ(sn_prof_cat_named("thread", 5), SN_CAT_COUNT);
    CHECK_STR(sn_prof_cat_name(SN_CAT_COUNT), "unknown");
}

TEST_MAIN()
