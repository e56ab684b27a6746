/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON cursor: what it accepts, what it refuses and where, and that nothing makes it read on.
 */
#include "base/json.h"

#include "failing_alloc.h"
#include "test.h"

typedef struct fixture {
    failing_alloc m;
    sn_arena arena;
    sn_json j;
    char *exact; /* a copy of the exact size: reading past its end is seen by the sanitizer */
} fixture;

static sn_json *start_n(fixture *f, const char *text, size_t n)
{
    sn_arena_init(&f->arena, failing_init(&f->m));
    f->exact = malloc(n ? n : 1);
    memcpy(f->exact, text, n);
    sn_json_init(&f->j, f->exact, n, &f->arena);
    return &f->j;
}

static sn_json *start(fixture *f, const char *text)
{
    return start_n(f, text, strlen(text));
}

static void stop(fixture *f)
{
    sn_arena_free(&f->arena);
    free(f->exact);
}

static bool valid(const char *text, size_t n)
{
    fixture f;
    sn_json *j = start_n(&f, text, n);
    bool good = sn_json_skip(j) && sn_json_end(j);
    stop(&f);
    return good;
}

TEST(a_document_is_walked_by_asking)
{
    fixture f;
    sn_json *j = start(&f, " {\"a\": [1, -2.5e1, \"x\\u00e9\\ud83d\\ude00\\n\"], \"b\" : {}, "
                           "\"c\":true, \"d\": null } ");
    sn_json_text key, text;
    sn_json_num n;
    bool yes = false;
    int members = 0;
    for (sn_json_object(j); sn_json_member(j, &key); members++) {
        if (sn_json_is(key, "a")) {
            CHECK(sn_json_array(j) && sn_json_item(j) && sn_json_number(j, &n));
            CHECK_EQ(n.digits, 1);
            CHECK(sn_json_item(j) && sn_json_number(j, &n));
            CHECK(sn_json_double(n) == -25);
            CHECK(sn_json_item(j) && sn_json_string(j, &text));
            CHECK(sn_json_is(text, "x\xC3\xA9\xF0\x9F\x98\x80\n"));
            CHECK(!sn_json_item(j));
        } else if (sn_json_is(key, "c")) {
            CHECK(sn_json_bool(j, &yes) && yes);
        } else {
            CHECK(sn_json_skip(j));
        }
    }
    CHECK_EQ(members, 4);
    CHECK(sn_json_end(j));
    CHECK_EQ(sn_json_status(j, NULL), SONDE_OK);
    stop(&f);
}

TEST(the_character_zero_ends_no_text_and_is_noted)
{
    fixture f;
    sn_json_text text;
    sn_json *j = start(&f, "[\"a\", \"b\\u0000c\"]");
    CHECK(sn_json_array(j) && sn_json_item(j) && sn_json_string(j, &text) && !j->zero);
    CHECK(sn_json_item(j) && sn_json_string(j, &text) && j->zero);
    CHECK(sn_json_is(text, "b\xEF\xBF\xBD"
                           "c"));
    stop(&f);
}

TEST(only_json_is_accepted)
{
    static const char *const good[] = {"1",
                                       "-0.5e-3",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       "[[],{}]",
                                       "null",
                                       " true",
                                       "false ",
                                       "[1,2]",
                                       "0",
                                       "\"\\/\\b\\f\\t\"",
                                       "\xEF\xBB\xBF[]"};
    static const char *const bad[] = {"",
                                      "[",
                                      "]",
                                      "{",
                                      "[1,]",
                                      "[,1]",
                                      "{\"a\"}",
                                      "{a:1}",
                                      "01",
                                      "1.",
                                      ".5",
                                      "-",
                                      "+1",
                                      "1e",
                                      "nul",
                                      "tru",
                                      "'x'",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "[1 2]",
                                      "{} {}",
                                      "[1]]",
                                      "NaN",
                                      "{1:2}",
                                      "\"\n\"",
                                      "\"\xFF\"",
                                      "\"\xC0\x80\"",
                                      "\"\xED\xA0\x80\"",
                                      "[}",
                                      "{\"a\":1,}",
                                      "Infinity",
                                      "/**/1",
                                      "\"\\"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_MSG(valid(good[i], strlen(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(!valid(bad[i], strlen(bad[i])), "%s", bad[i]);
    CHECK(!valid("[1]\0", 4));
}

TEST(a_problem_names_its_byte_and_stops_everything)
{
    fixture f;
    sonde_error err = {0};
    sn_json *j = start(&f, "{\"a\": [1, 2, oops]}");
    CHECK(!sn_json_skip(j));
    CHECK_EQ(sn_json_status(j, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "(byte 13)");
    sn_json_text text;
    sn_json_num n;
    bool b;
    CHECK(!sn_json_object(j) && !sn_json_array(j) && !sn_json_item(j) && !sn_json_member(j, &text));
    CHECK(!sn_json_string(j, &text) && !sn_json_number(j, &n) && !sn_json_bool(j, &b));
    CHECK(!sn_json_end(j) && sn_json_peek(j) == SN_JSON_BAD);
    stop(&f);
    j = start(&f, "[\"abc");
    CHECK(!sn_json_skip(j));
    CHECK_EQ(sn_json_status(j, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "is truncated (byte 5)");
    stop(&f);
}

TEST(nesting_is_bounded)
{
    char deep[4096];
    memset(deep, '[', sizeof deep);
    CHECK(!valid(deep, sizeof deep));
    char nested[2 * SN_JSON_MAX_DEPTH];
    memset(nested, '[', SN_JSON_MAX_DEPTH);
    memset(nested + SN_JSON_MAX_DEPTH, ']', SN_JSON_MAX_DEPTH);
    CHECK(valid(nested, sizeof nested));
}

TEST(numbers_are_exact)
{
    static const struct {
        const char *text;
        int shift;
        bool good;
        uint64_t value;
    } all[] = {{"1234.567", 3, true, 1234567},
               {"1700000000123456.789", 3, true, 1700000000123456789u},
               {"0.0004", 3, true, 0},
               {"0.0005", 3, true, 1},
               {"1e3", 0, true, 1000},
               {"1844674407370955161", 0, true, 1844674407370955161u},
               {"100000000000000000000", 0, false, 0},
               {"1e30", 3, false, 0},
               {"-1", 0, false, 0},
               {"-0", 3, true, 0},
               {"0e999999999999", 3, true, 0},
               {"1e-999999999999", 3, true, 0},
               {"0.00000000000000000000000000000001", 0, true, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fixture f;
        sn_json_num n;
        uint64_t v = 7;
        sn_json *j = start(&f, all[i].text);
        CHECK_MSG(sn_json_number(j, &n) && sn_json_end(j), "%s", all[i].text);
        bool good = sn_json_scaled(n, all[i].shift, &v);
        CHECK_MSG(good == all[i].good && (!good || v == all[i].value), "%s: %llu", all[i].text,
                  (unsigned long long)v);
        stop(&f);
    }
}

TEST(doubles_follow_the_text)
{
    static const char *const all[] = {"0.1",   "123456.789", "-3",
                                      "1e300", "2.5e-5",     "9007199254740993"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fixture f;
        sn_json_num n;
        CHECK(sn_json_number(start(&f, all[i]), &n));
        double want = strtod(all[i], NULL), got = sn_json_double(n);
        CHECK_MSG(fabs(got - want) <= fabs(want) * 1e-13, "%s: %.17g", all[i], got);
        stop(&f);
    }
}

TEST(any_bytes_end)
{
    static const char letters[] = "[]{}:,\"\\u0123e.-+tfn ";
    for (int round = 0; round < 20000; round++) {
        char text[40];
        size_t n = test_rand() % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] =
                test_rand() % 20 ? letters[test_rand() % (sizeof letters - 1)] : (char)test_rand();
        (void)valid(text, n);
    }
}

TEST_MAIN()
