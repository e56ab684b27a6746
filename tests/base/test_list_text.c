/* SPDX-License-Identifier: Apache-2.0 */
/* Lists in errors: whole items, and how many are left out. */
#include "base/list_text.h"
#include "base/utf8.h"
#include "test.h"

TEST(a_short_list_is_whole)
{
    sn_list_text l = {0};
    CHECK_STR(sn_list_end(&l), "");
    sn_list_add(&l, "one");
    sn_list_add(&l, "'%s'", "two");
    CHECK_STR(sn_list_end(&l), "one, 'two'");
}

TEST(what_does_not_fit_is_left_out_whole_and_counted)
{
    for (size_t room = 0; room <= 900; room += 50) {
        if (room && room < 100)
            continue;
        sn_list_text l = {.room = room};
        char name[40], want[SN_LIST_BYTES], tail[60];
        for (int i = 0; i < 500; i++)
            sn_list_add(&l, "a_name_of_some_length_%03d", i);
        const char *got = sn_list_end(&l);
        CHECK(strlen(got) < (room ? room : SN_LIST_USUAL));
        size_t n = 0;
        int listed = 0;
        for (;; listed++) {
            snprintf(name, sizeof name, "%sa_name_of_some_length_%03d", listed ? ", " : "", listed);
            if (strncmp(got + n, name, strlen(name)) != 0)
                break;
            n += strlen(name);
        }
        snprintf(tail, sizeof tail, " \xE2\x80\xA6 and %d more", 500 - listed);
        snprintf(want, sizeof want, "%.*s%s", (int)n, got, tail);
        CHECK(listed > 0);
        CHECK_STR(got, want);
    }
}

TEST(no_short_name_follows_one_that_did_not_fit)
{
    sn_list_text l = {.room = 100};
    sn_list_add(&l, "first");
    sn_list_add(&l, "%090d", 0);
    sn_list_add(&l, "x");
    CHECK_STR(sn_list_end(&l), "first \xE2\x80\xA6 and 2 more");
}

TEST(more_than_were_added_can_be_left_out)
{
    sn_list_text l = {.at_least = true};
    sn_list_add(&l, "first");
    CHECK_STR(sn_list_end(&l), "first \xE2\x80\xA6 and at least 1 more");
}

TEST(a_very_long_name_is_cut_at_a_whole_character)
{
    static const char *const letters[] = {"a", "\xC3\xA9", "\xE5\x90\x8D", "\xF0\x9F\x99\x82"};
    for (int k = 0; k < 4; k++)
        for (int shift = 0; shift < 4; shift++) {
            char name[1000] = "";
            sn_list_text l = {0};
            memset(name, 'x', (size_t)shift);
            for (size_t n = (size_t)shift; n < 900; n += strlen(letters[k]))
                memcpy(name + n, letters[k], strlen(letters[k]) + 1);
            sn_list_add(&l, "%s", name);
            const char *got = sn_list_end(&l);
            CHECK(strlen(got) <= SN_LIST_ITEM + 3);
            CHECK(strlen(got) > SN_LIST_ITEM - 4);
            for (size_t n = 0, step; n < strlen(got); n += step) {
                uint32_t code;
                step = sn_utf8_char((const unsigned char *)got + n, strlen(got) - n, &code);
                CHECK(step > 0);
                if (!step)
                    break;
            }
            CHECK_STR(got + strlen(got) - 3, "\xE2\x80\xA6");
        }
}

TEST_MAIN()
