/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences, optionals and strings: lists share buffers, positions are checked, text is owned. */
#include "base/regex.h"
#include "one_node.h"

/* A sequence of n one-element tensors 0, 1, 2, … as input i. */
static void node_sequence(one_node *c, uint32_t i, size_t n)
{
    sn_value *v = node_value(c, i);
    sn_list *l = sn_list_new(&c->alloc, n);
    l->elem_kind = SN_KIND_TENSOR;
    l->elem_dtype = SONDE_DTYPE_F32;
    for (size_t k = 0; k < n; k++) {
        sn_slot s = {0};
        int64_t one = 1;
        c->st = sn_slot_new_tensor(&s, SONDE_DTYPE_F32, &one, 1, &c->alloc, &c->err);
        *(float *)s.t.data = (float)k;
        c->st = sn_list_push(l, &s, &c->err);
        sn_slot_clear(&s);
    }
    c->in[i] = (sn_slot){.kind = SN_KIND_SEQUENCE, .list = l};
    c->given[i] = true;
    v->fact.type.kind = SN_KIND_SEQUENCE;
}

static float item(const sn_slot *s, size_t k)
{
    return *(const float *)s->list->items[k].t.data;
}

TEST(inserting_shares_the_buffers_of_the_old_sequence)
{
    one_node c;
    node_begin(&c, "SequenceInsert", 11, 3, 1);
    node_sequence(&c, 0, 3);
    node_f32(&c, 1, SHAPE(1), 9);
    node_i64(&c, 2, SCALAR, -1);
    node_run(&c);
    NODE_OK(&c);
    CHECK_EQ(c.out[0].list->n, 4);
    CHECK(item(&c.out[0], 2) == 9 && item(&c.out[0], 3) == 2);
    CHECK(c.out[0].list->items[0].t.data == c.in[0].list->items[0].t.data);
    CHECK_EQ(c.in[0].list->n, 3);
    node_end(&c);
}

TEST(erasing_takes_the_last_element_unless_told_otherwise)
{
    for (int given = 0; given < 2; given++) {
        one_node c;
        node_begin(&c, "SequenceErase", 11, 2, 1);
        node_sequence(&c, 0, 3);
        if (given)
            node_i64(&c, 1, SCALAR, 0);
        node_run(&c);
        NODE_OK(&c);
        CHECK(c.out[0].list->n == 2 && item(&c.out[0], 0) == (float)given);
        node_end(&c);
    }
}

TEST(a_position_outside_a_sequence_is_an_error)
{
    static const int64_t bad[] = {3, -4, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        one_node c;
        node_begin(&c, "SequenceAt", 11, 2, 1);
        node_sequence(&c, 0, 3);
        node_i64(&c, 1, SCALAR, bad[i]);
        CHECK_EQ(node_run(&c), SONDE_RUNTIME);
        node_end(&c);
    }
}

TEST(a_tensor_of_another_type_cannot_join_a_sequence)
{
    one_node c;
    node_begin(&c, "SequenceInsert", 11, 2, 1);
    node_sequence(&c, 0, 1);
    node_i64(&c, 1, SHAPE(1), 5);
    CHECK(node_run(&c) != SONDE_OK);
    node_end(&c);
}

TEST(splitting_and_joining_a_tensor_gives_it_back)
{
    one_node c, d;
    node_begin(&c, "SplitToSequence", 11, 2, 1);
    node_int(&c, "axis", 1);
    node_count_up(&c, 0, SHAPE(2, 5));
    node_i64(&c, 1, SCALAR, 2);
    node_run(&c);
    NODE_OK(&c);
    CHECK_EQ(c.out[0].list->n, 3);
    CHECK(has_shape(&c.out[0].list->items[2], SHAPE(2, 1)));
    node_begin(&d, "ConcatFromSequence", 11, 1, 1);
    node_int(&d, "axis", 1);
    sn_value *v = node_value(&d, 0);
    v->fact.type.kind = SN_KIND_SEQUENCE;
    d.given[0] = true;
    d.in[0] = c.out[0];
    node_run(&d);
    NODE_OK(&d);
    CHECK(IS_F32(&d.out[0], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    memset(&d.in[0], 0, sizeof d.in[0]);
    node_end(&d);
    node_end(&c);
}

TEST(an_empty_optional_has_no_element)
{
    one_node c, d;
    node_begin(&c, "Optional", 15, 0, 1);
    node_run(&c);
    NODE_OK(&c);
    node_begin(&d, "OptionalHasElement", 18, 1, 1);
    node_value(&d, 0)->fact.type.kind = SN_KIND_OPTIONAL;
    d.given[0] = true;
    d.in[0] = c.out[0];
    node_run(&d);
    NODE_OK(&d);
    CHECK_EQ(*(uint8_t *)d.out[0].t.data, 0);
    memset(&d.in[0], 0, sizeof d.in[0]);
    node_end(&d);
    node_end(&c);
}

/* ------------------------------------------------------------------ strings */
static bool text_is(const sn_slot *s, size_t i, const char *want)
{
    const sonde_string *t = s->t.data;
    return t[i].size == strlen(want) && memcmp(t[i].data, want, t[i].size) == 0;
}
#define TEXT(s)                                                                                    \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

TEST(strings_join_with_broadcasting)
{
    one_node c;
    node_begin(&c, "StringConcat", 20, 2, 1);
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(2, 1), (sonde_string[]){TEXT("a"), TEXT("")});
    node_tensor(&c, 1, SONDE_DTYPE_STRING, SHAPE(2), (sonde_string[]){TEXT("x"), TEXT("yz")});
    node_run(&c);
    NODE_OK(&c);
    CHECK(text_is(&c.out[0], 1, "ayz") && text_is(&c.out[0], 2, "x"));
    node_end(&c);
}

TEST(splitting_text_pads_short_rows_with_empty_strings)
{
    one_node c;
    node_begin(&c, "StringSplit", 20, 1, 2);
    node_text(&c, "delimiter", ",");
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(2), (sonde_string[]){TEXT("a,,b"), TEXT("c")});
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 3)));
    CHECK(text_is(&c.out[0], 1, "") && text_is(&c.out[0], 2, "b") && text_is(&c.out[0], 4, ""));
    CHECK(IS_I64(&c.out[1], 3, 1));
    node_end(&c);
}

static void tokens_begin(one_node *c, const char *expression)
{
    node_begin(c, "Tokenizer", 1, 1, 1);
    c->n->domain = "com.microsoft";
    node_text(c, "pad_value", "#");
    if (expression)
        node_text(c, "tokenexp", expression);
}

TEST(tokens_are_the_longest_matches_and_short_rows_are_padded)
{
    one_node c;
    tokens_begin(&c, "a|ab|[0-9]+");
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(3),
                (sonde_string[]){TEXT("ab, a 12"), TEXT("x7"), TEXT("")});
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(3, 3)));
    CHECK(text_is(&c.out[0], 0, "ab") && text_is(&c.out[0], 1, "a") && text_is(&c.out[0], 2, "12"));
    CHECK(text_is(&c.out[0], 3, "7") && text_is(&c.out[0], 4, "#") && text_is(&c.out[0], 8, "#"));
    node_end(&c);
}

TEST(tokens_can_be_marked_and_too_short_ones_left_out)
{
    one_node c;
    tokens_begin(&c, "\\b[a-z\xc3\xa9]+");
    node_int(&c, "mark", 1);
    node_int(&c, "mincharnum", 2);
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(1, 2),
                (sonde_string[]){TEXT("a \xc3\xa9 n\xc3\xa9"), TEXT("no")});
    node_run(&c);
    NODE_OK(&c);
    CHECK(has_shape(&c.out[0], SHAPE(1, 2, 3)));
    CHECK(text_is(&c.out[0], 0, "\x02") && text_is(&c.out[0], 1, "n\xc3\xa9"));
    CHECK(text_is(&c.out[0], 2, "\x03") && text_is(&c.out[0], 4, "no"));
    node_end(&c);
}

TEST(a_tokenizer_without_a_rule_is_refused)
{
    one_node c;
    tokens_begin(&c, NULL);
    node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(1), (sonde_string[]){TEXT("a")});
    CHECK(node_run(&c) != SONDE_OK);
    CHECK_HAS(c.err.message, "tokenexp");
    node_end(&c);
}

static bool matches(const char *pattern, const char *text)
{
    sn_allocator alloc;
    sn_arena arena;
    sn_regex r = {0};
    sn_allocator_init_system(&alloc);
    sn_arena_init(&arena, &alloc);
    const char *wrong = sn_regex_compile(&r, pattern, &arena);
    if (wrong)
        fprintf(stderr, "%s: %s\n", pattern, wrong);
    void *work = malloc(sn_regex_workspace(&r) + 1);
    bool yes = !wrong && sn_regex_full_match(&r, text, strlen(text), work);
    free(work);
    sn_arena_free(&arena);
    return yes;
}

TEST(patterns_match_whole_texts)
{
    static const struct {
        const char *pattern, *text;
        bool want;
    } cases[] = {{"", "", true},
                 {"a*", "aaaa", true},
                 {"a*", "aab", false},
                 {"(ab|c)+d?", "abcabd", true},
                 {"(ab|c)+d?", "dab", false},
                 {"a{2,3}", "aa", true},
                 {"a{2,3}", "aaaa", false},
                 {"a{2,}", "aaaaa", true},
                 {"(a|b{2}){3}", "abba", true},
                 {"[^\\d\\s-]+", "x_y", true},
                 {"[^\\d\\s-]+", "x-y", false},
                 {"[[:upper:]][a-f]*", "Dead", true},
                 {"\\w+@\\w+\\.com", "me@home.com", true},
                 {"(?:x|)(?P<n>y)", "y", true},
                 {".", "\xC3\xA9", true},
                 {"..", "\xC3\xA9", false},
                 {".", "\n", false},
                 {"^a\\b b$", "a b", true},
                 {"a\\Bb", "ab", true},
                 {"\\x41\\x{e9}", "A\xC3\xA9", true},
                 {"(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_MSG(matches(cases[i].pattern, cases[i].text) == cases[i].want, "%s on %s",
                  cases[i].pattern, cases[i].text);
}

TEST(patterns_that_are_wrong_or_hostile_are_refused)
{
    static const char *const bad[] = {"(",
                                      ")",
                                      "a**",
                                      "*a",
                                      "[a",
                                      "[b-a]",
                                      "a{9999}",
                                      "\\p{L}",
                                      "(?=a)",
                                      "\\",
                                      "((((a{1000}){1000}){1000}){1000})",
                                      "((((){1000}){1000}){1000}){1000}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        one_node c;
        node_begin(&c, "RegexFullMatch", 20, 1, 1);
        node_text(&c, "pattern", bad[i]);
        node_tensor(&c, 0, SONDE_DTYPE_STRING, SHAPE(1), (sonde_string[]){TEXT("a")});
        CHECK_MSG(node_run(&c) != SONDE_OK, "%s", bad[i]);
        node_end(&c);
    }
}

TEST_MAIN()
