/* SPDX-License-Identifier: Apache-2.0 */
/* What is added is found again: figures, samples, profiles, operators; by filters and references;
 * and what is removed is gone. */
#include "history/entries.h"
#include "history/history.h"
#include "sonde/experimental/profile.h"

TEST(an_entry_of_a_profile_reads_back_as_it_was)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_model *model = NULL;
    sonde_profile *profile = NULL, *again = NULL;
    make_profile(50, &model, &profile);
    sonde_history *h = open_at(in_dir("profile.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    int64_t id = 0;
    what.profile = profile;
    what.source = model;
    what.commit = "0123abcd";
    what.note = "a \"note\"\n\x01\xff";
    what.options = "{\"b\": 2, \"a\" : [1, {\"y\":\"\\u0041\",\"x\":null}]}";
    CHECK_OK(sonde_history_add(h, &what, &id, &err));
    CHECK_EQ(id, 1);
    sonde_history_record *r = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    CHECK_OK(sonde_history_get(h, id, &r, &err));
    CHECK_OK(sonde_history_record_entry(r, &e, &err));
    CHECK_STR(e.kind, "profile");
    CHECK_STR(e.runtime, "sonde");
    CHECK_STR(e.version, sonde_version());
    CHECK_STR(e.commit, "0123abcd");
    CHECK_STR(e.note, "a \"note\"\n\x01\xff");
    CHECK_STR(e.options,
              "{\"a\":[1,{\"x\":null,\"y\":\"A\"}],\"b\":2,\"precision\":\"file\",\"threads\":1}");
    CHECK_EQ(e.runs, 50);
    CHECK_EQ(e.samples, 50);
    CHECK(e.profile_bytes > 0 && e.peak_bytes > 0);
    CHECK(e.min_ns <= e.low_ns && e.low_ns <= e.median_ns && e.median_ns <= e.high_ns &&
          e.high_ns <= e.max_ns && e.p95_ns <= e.p99_ns);
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary),
                          t = SONDE_INIT(sonde_profile_summary);
    CHECK_OK(sonde_history_record_profile(r, &again, &err));
    CHECK_OK(sonde_profile_summary_get(profile, &s, &err));
    CHECK_OK(sonde_profile_summary_get(again, &t, &err));
    CHECK_EQ(t.iterations, 50);
    CHECK_MSG(fabs(t.p50_ns - s.p50_ns) <= 1 && fabs(e.median_ns - s.p50_ns) <= 1,
              "median %g, kept %g, read back %g", s.p50_ns, e.median_ns, t.p50_ns);
    sonde_history_operator op = SONDE_INIT(sonde_history_operator);
    double sum = 0;
    for (size_t i = 0; sonde_history_record_operator(r, i, &op, &err) == SONDE_OK; i++)
        sum += op.mean_ns;
    CHECK_MSG(fabs(sum - e.mean_ns) < 0.01 * e.mean_ns, "operators %g, mean %g", sum, e.mean_ns);
    sonde_profile_release(again);
    sonde_profile_release(profile);
    sonde_model_release(model);
    sonde_history_record_release(r);
    sonde_history_close(h);
}

TEST(a_long_profile_loses_runs_at_equal_distances_and_keeps_its_figures)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_model *model = NULL;
    sonde_profile *profile = NULL, *again = NULL;
    enum { RUNS = 30000 };
    make_profile(RUNS, &model, &profile);
    sonde_profile_summary s = SONDE_INIT(sonde_profile_summary);
    CHECK_OK(sonde_profile_summary_get(profile, &s, &err));
    sonde_history *h = open_at(in_dir("long.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    sonde_history_record *r = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    int64_t id;
    what.profile = profile;
    CHECK_OK(sonde_history_add(h, &what, &id, &err));
    CHECK_OK(sonde_history_get(h, id, &r, &err));
    CHECK_OK(sonde_history_record_entry(r, &e, &err));
    CHECK_EQ(e.runs, s.iterations);
    CHECK(fabs(e.median_ns - s.p50_ns) <= 1);
    CHECK_OK(sonde_history_record_profile(r, &again, &err));
    CHECK_OK(sonde_profile_summary_get(again, &s, &err));
    const uint64_t most = 100000 / (uint64_t)s.ops;
    CHECK_MSG(s.iterations < e.runs && s.iterations > 100 && s.iterations <= most, "kept %llu runs",
              (unsigned long long)s.iterations);
    sonde_profile_release(again);
    sonde_profile_release(profile);
    sonde_model_release(model);
    sonde_history_record_release(r);
    sonde_history_close(h);
}

TEST(samples_of_any_size_read_back_as_whole_nanoseconds)
{
    NEED_SQLITE();
    sonde_error err;
    double samples[400];
    sonde_history *h = open_at(in_dir("samples.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    for (int i = 0; i < 400; i++)
        samples[i] = i == 7 ? 0 : floor(exp((double)(test_rand() % 400) / 10));
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    what.samples_ns = samples;
    what.sample_count = 400;
    int64_t id;
    CHECK_OK(sonde_history_add(h, &what, &id, &err));
    sonde_history_record *r = NULL;
    size_t n;
    CHECK_OK(sonde_history_get(h, id, &r, &err));
    const double *back = sonde_history_record_samples(r, &n);
    CHECK_EQ(n, 400);
    for (size_t i = 0; i < n; i++)
        CHECK_MSG(back[i] == samples[i], "%zu: %.17g, expected %.17g", i, back[i], samples[i]);
    sonde_history_record_release(r);
    samples[3] = NAN;
    CHECK_EQ(sonde_history_add(h, &what, NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "sample 3");
    samples[3] = -1;
    CHECK_EQ(sonde_history_add(h, &what, NULL, &err), SONDE_INVALID_ARGUMENT);
    what.sample_count = 0;
    CHECK_EQ(sonde_history_add(h, &what, NULL, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "needs a profile or samples");
    sonde_history_close(h);
}

TEST(options_have_one_form_and_are_asked_for_by_key)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history *h = open_at(in_dir("options.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    static const char *const bad[] = {"[1]", "{",           "{\"a\":}",
                                      "7",   "{\"a\":1} x", "{\"a\":\"\xff\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(add_entry(h, "m", bad[i], 1000, 1, "", &err), 0);
        CHECK_MSG(err.status == SONDE_INVALID_ARGUMENT, "%s: %s", bad[i], err.message);
    }
    CHECK(add_entry(h, "m", "{\"a\":1,\"b\":\"x,y\"}", 1000, 1, "", &err));
    CHECK(add_entry(h, "m", " { \"b\" : \"x\\u002cy\" , \"a\" : 1 } ", 1000, 2, "", &err));
    CHECK(add_entry(h, "m", "{\"a\":2}", 1000, 3, "", &err));
    sonde_history_filter f = SONDE_INIT(sonde_history_filter);
    static const struct {
        const char *options;
        size_t n;
    } asked[] = {{"a=1", 2}, {"a=1,b=x,y", 2}, {"b=x,y,a=1", 2}, {"a=3", 0}, {"b=", 1},
                 {"c=", 3},  {"b", 2},         {"a=1,b=", 0},    {"", 3}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        f.options = asked[i].options;
        CHECK_MSG(count_entries(h, &f) == asked[i].n, "%s: %zu", f.options, count_entries(h, &f));
    }
    sonde_history_entry e[3];
    sonde_history_cursor *c;
    f.options = NULL;
    CHECK_OK(sonde_history_list(h, &f, &c, &err));
    for (int i = 0; i < 3; i++) {
        e[i].struct_size = sizeof e[i];
        CHECK_OK(sonde_history_next(c, &e[i], &err));
    }
    CHECK(e[0].series != e[1].series && e[1].series == e[2].series);
    CHECK_EQ(sonde_history_next(c, &e[0], &err), SONDE_NOT_FOUND);
    sonde_history_cursor_release(c);
    sonde_history_close(h);
}

TEST(filters_leave_what_they_name)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history *h = open_at(in_dir("filters.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    for (int i = 0; i < 600; i++) {
        char commit[16];
        snprintf(commit, sizeof commit, "%07x", i % 2 ? 0xabc0000 + i : 0x1230000 + i);
        CHECK(add_entry(h, i % 3 ? "zoo:a?batch=8" : "b[1].onnx", NULL, 1000, 10000 + i, commit,
                        &err));
    }
    static const struct {
        sonde_history_filter f;
        size_t n;
    } cases[] = {
        {{.model = "zoo:a?batch=8"}, 400},
        {{.model = "zoo:*"}, 400},
        {{.model = "b[1].onnx"}, 200},
        {{.model = "b*"}, 200},
        {{.model = "b[12].onnx"}, 0},
        {{.model = "'; DROP TABLE entry; --"}, 0},
        {{.commit = "abc"}, 300},
        {{.commit = "1230000"}, 1},
        {{.commit = "%"}, 0},
        {{.kind = "bench"}, 600},
        {{.kind = "profile"}, 0},
        {{.runtime = "s*"}, 600},
        {{.machine = "h*re"}, 600},
        {{.machine = "there"}, 0},
        {{.since_ms = 10100}, 500},
        {{.until_ms = 10100}, 100},
        {{.since_ms = 10100, .until_ms = 10200, .model = "zoo:*"}, 67},
        {{.limit = 7}, 7},
        {{.limit = 300}, 300},
        {{.note = "x"}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sonde_history_filter f = cases[i].f;
        f.struct_size = sizeof f;
        CHECK_MSG(count_entries(h, &f) == cases[i].n, "case %zu: %zu, expected %zu", i,
                  count_entries(h, &f), cases[i].n);
    }
    CHECK_EQ(count_entries(h, NULL), 600);
    sonde_history_close(h);
}

static void check_found(sonde_history *h, const char *reference, const char *model,
                        int64_t expected)
{
    sonde_error err = {.message = ""};
    sonde_history_filter f = SONDE_INIT(sonde_history_filter);
    int64_t id = 0;
    f.model = model;
    const sonde_status st = sonde_history_find(h, reference, &f, &id, &err);
    if (expected)
        CHECK_MSG(!st && id == expected, "%s: #%lld (%s), expected #%lld", reference, (long long)id,
                  err.message, (long long)expected);
    else
        CHECK_MSG(st == SONDE_NOT_FOUND || st == SONDE_INVALID_ARGUMENT, "%s: #%lld", reference,
                  (long long)id);
}

TEST(references_count_back_among_entries_that_are_alike)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history *h = open_at(in_dir("find.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    check_found(h, "@0", NULL, 0);
    /* 1 a, 2 b, 3 a, 4 b, 5 a; later in time is newer, whatever its number is */
    static const char *const commits[] = {"aaaa1", "bbbb2", "aaaa3", "1234", "0000005"};
    for (int i = 0; i < 5; i++)
        CHECK(add_entry(h, i % 2 ? "b" : "a", NULL, 1000, 100 + i, commits[i], &err));
    CHECK_EQ(add_entry(h, "a", NULL, 1000, 50, "eeee", &err), 6);
    check_found(h, "@0", NULL, 5);
    check_found(h, "@-1", NULL, 3);
    check_found(h, "@-2", NULL, 1);
    check_found(h, "@-3", NULL, 6);
    check_found(h, "@-4", NULL, 0);
    check_found(h, "@-0", NULL, 5);
    check_found(h, "@0", "b", 4);
    check_found(h, "@-1", "b", 2);
    check_found(h, "3", NULL, 3);
    check_found(h, "#3", NULL, 3);
    check_found(h, "7", NULL, 0);
    check_found(h, "#1234", NULL, 0);
    check_found(h, "1234", NULL, 4); /* no such number, but a commit */
    check_found(h, "0000005", NULL, 5);
    check_found(h, "aaaa", NULL, 3);
    check_found(h, "aaa", NULL, 0);
    check_found(h, "ffff", NULL, 0);
    check_found(h, "AAAA3", NULL, 3);
    CHECK_EQ(add_entry(h, "c", NULL, 1000, 20, "v1.20-rc", &err), 7);
    check_found(h, "v1.20-rc", NULL, 7);
    check_found(h, "v1.20", NULL, 7);
    check_found(h, "V1.20", NULL, 0);
    static const char *const odd[] = {"",
                                      "@",
                                      "@1",
                                      "@-",
                                      "@--1",
                                      "@-99999999999999999999",
                                      "#",
                                      "1x",
                                      "-1",
                                      "@-1 ",
                                      "99999999999999999999999",
                                      "\xff"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        check_found(h, odd[i], NULL, 0);
    sonde_history_close(h);
}

TEST(entries_are_compared_by_their_samples_and_differences_are_named)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history_record *a = NULL, *b = NULL;
    char text[500];
    sonde_history *h = open_at(in_dir("compare.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    const int64_t x = add_entry(h, "m", "{\"threads\":1,\"batch\":8}", 1e6, 1, "", &err);
    const int64_t y = add_entry(h, "m", "{\"threads\":2,\"tune\":true}", 1.2e6, 2, "", &err);
    CHECK_OK(sonde_history_get(h, x, &a, &err));
    CHECK_OK(sonde_history_get(h, y, &b, &err));
    CHECK_STR(sonde_history_record_unlike(a, b, text, sizeof text),
              "batch 8 and none, threads 1 and 2, tune none and true");
    CHECK_STR(sonde_history_record_unlike(a, a, text, sizeof text), "");
    sonde_change change = SONDE_INIT(sonde_change);
    CHECK_OK(sonde_history_record_compare(a, b, &change, &err));
    CHECK_EQ(change.verdict, SONDE_SLOWER);
    CHECK(fabs(change.ratio - 1.2) < 1e-3 && change.low > 1.1);
    CHECK_OK(sonde_history_record_compare(a, a, &change, &err));
    CHECK_EQ(change.verdict, SONDE_SAME);
    for (size_t n = 1; n < 60; n++) { /* any room does */
        char little[60];
        memset(little, 'x', sizeof little);
        sonde_history_record_unlike(a, b, little, n);
        CHECK(memchr(little, 0, n) && (n == 60 || little[n] == 'x'));
    }
    sonde_history_record_release(a);
    sonde_history_record_release(b);
    CHECK_EQ(sonde_history_get(h, 99, &a, &err), SONDE_NOT_FOUND);
    sonde_history_close(h);
}

TEST(pruning_keeps_the_newest_of_each_series)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history *h = open_at(in_dir("prune.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    for (int i = 0; i < 40; i++)
        CHECK(add_entry(h, i % 4 ? "a" : "b", NULL, 1000, 100 + i, "", &err));
    sonde_history_prune_options o = SONDE_INIT(sonde_history_prune_options);
    sonde_history_filter f = SONDE_INIT(sonde_history_filter);
    uint64_t removed = 0;
    o.keep = 5;
    o.only_profiles = 1;
    CHECK_OK(sonde_history_prune(h, NULL, &o, &removed, &err));
    CHECK_EQ(removed, 0); /* there are none */
    o.only_profiles = 0;
    CHECK_OK(sonde_history_prune(h, NULL, &o, &removed, &err));
    CHECK_EQ(removed, 30);
    f.model = "a";
    f.since_ms = 100 + 33;
    CHECK_EQ(count_entries(h, &f), 5);
    CHECK_EQ(count_entries(h, NULL), 10);
    o.keep = 0;
    f.since_ms = 0;
    CHECK_OK(sonde_history_prune(h, &f, &o, &removed, &err));
    CHECK_EQ(removed, 5);
    CHECK_EQ(count_entries(h, NULL), 5);
    CHECK_OK(sonde_history_remove(h, 37, &err)); /* the newest of b */
    CHECK_EQ(sonde_history_remove(h, 37, &err), SONDE_NOT_FOUND);
    CHECK_EQ(count_entries(h, NULL), 4);
    CHECK_EQ(add_entry(h, "c", NULL, 1, 1, "", &err), 41); /* numbers are not used again */
    sonde_history_close(h);
}

TEST(profiles_can_go_and_leave_the_figures)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_model *model = NULL;
    sonde_profile *profile = NULL, *none = NULL;
    make_profile(20, &model, &profile);
    sonde_history *h = open_at(in_dir("lean.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    sonde_history_prune_options o = SONDE_INIT(sonde_history_prune_options);
    uint64_t removed;
    what.profile = profile;
    for (int i = 0; i < 3; i++) {
        what.at_ms = 1000 + i;
        CHECK_OK(sonde_history_add(h, &what, NULL, &err));
    }
    o.keep = 1;
    o.only_profiles = 1;
    CHECK_OK(sonde_history_prune(h, NULL, &o, &removed, &err));
    CHECK_EQ(removed, 2);
    sonde_history_record *r = NULL;
    sonde_history_entry e = SONDE_INIT(sonde_history_entry);
    CHECK_OK(sonde_history_get(h, 1, &r, &err));
    CHECK_OK(sonde_history_record_entry(r, &e, &err));
    CHECK(e.profile_bytes == 0 && e.median_ns > 0);
    CHECK_EQ(sonde_history_record_profile(r, &none, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "no profile");
    sonde_history_operator op = SONDE_INIT(sonde_history_operator);
    CHECK_OK(sonde_history_record_operator(r, 0, &op, &err));
    CHECK(op.mean_ns > 0);
    sonde_history_record_release(r);
    CHECK_OK(sonde_history_get(h, 3, &r, &err));
    CHECK_OK(sonde_history_record_profile(r, &none, &err));
    sonde_profile_release(none);
    sonde_history_record_release(r);
    sonde_profile_release(profile);
    sonde_model_release(model);
    sonde_history_close(h);
}

TEST(the_median_has_an_interval_where_there_are_samples_enough)
{
    double samples[100];
    sn_history_figures f;
    for (int i = 0; i < 100; i++)
        samples[i] = 100 - i;
    sn_history_figures_of(samples, 100, &f);
    /* of 100 samples the 41st and the 60th enclose the median with 94 to 96 % confidence */
    CHECK_EQ(f.low, 41);
    CHECK_EQ(f.high, 60);
    CHECK(f.stats.p50 == 50.5);
    for (int i = 0; i < 6; i++)
        samples[i] = i;
    sn_history_figures_of(samples, 6, &f);
    CHECK(f.low == 0 && f.high == 5);
    sn_history_figures_of(samples, 5, &f);
    CHECK(f.low == 2 && f.high == 2);
    sn_history_figures_of(samples, 1, &f);
    CHECK(f.low == 0 && f.high == 0);
}

TEST_MAIN()
