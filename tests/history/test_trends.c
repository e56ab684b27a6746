/* SPDX-License-Identifier: Apache-2.0 */
/* Series are found, in order of time, with the changes that were put into them. */
#include "history/entries.h"

/* 30 entries, of which those from `step` on take 10 % longer; noise of half a percent. */
static void add_series(sonde_history *h, const char *model, const char *options, double ns,
                       int step, int64_t at)
{
    sonde_error err = {.message = ""};
    for (int i = 0; i < 30; i++) {
        const double noise = 1 + ((double)(test_rand() % 1000) / 1000 - 0.5) / 100;
        char commit[16];
        snprintf(commit, sizeof commit, "abc%04d", i);
        CHECK_MSG(
            add_entry(h, model, options, ns * noise * (i >= step ? 1.1 : 1), at + i, commit, &err),
            "%s", err.message);
    }
}

TEST(each_series_has_its_levels)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history *h = open_at(in_dir("trends.db"), &err);
    sonde_trends *t = NULL;
    sonde_trend s = SONDE_INIT(sonde_trend);
    sonde_trend_level l = SONDE_INIT(sonde_trend_level);
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    CHECK_MSG(h, "%s", err.message);
    add_series(h, "a", "{\"threads\":1}", 1e6, 15, 1000);
    add_series(h, "a", "{\"threads\":2}", 6e5, 100, 1005);
    add_series(h, "b", "{\"threads\":2}", 3e5, 20, 500);
    CHECK_OK(sonde_history_trends(h, NULL, NULL, &t, &err));
    CHECK_EQ(sonde_trends_count(t), 3);
    CHECK_OK(sonde_trends_get(t, 0, &s, &err)); /* that of the newest entry */
    CHECK_STR(s.title, "a, 2 threads, bench");
    CHECK_EQ(s.changes, 0);
    CHECK_EQ(s.points, 30);
    CHECK_OK(sonde_trends_get(t, 1, &s, &err));
    CHECK_STR(s.title, "a, 1 thread, bench");
    CHECK(strncmp(s.machine, "here, ", 6) == 0);
    CHECK_EQ(s.changes, 1);
    CHECK_OK(sonde_trends_level(t, 1, 0, &l, &err));
    CHECK(l.from == 0 && l.to == 15 && l.ratio == 1);
    CHECK(fabs(l.ns / 1e6 - 1) < 0.005);
    CHECK_OK(sonde_trends_level(t, 1, 1, &l, &err));
    CHECK(l.from == 15 && l.to == 30);
    CHECK_MSG(fabs(l.ratio - 1.1) < 0.01 && l.low > 1.05 && l.high < 1.15 && l.p < 0.01,
              "%g (%g to %g), p %g", l.ratio, l.low, l.high, l.p);
    CHECK_EQ(sonde_trends_level(t, 1, 2, &l, &err), SONDE_NOT_FOUND);
    for (size_t i = 0; i < 30; i++) {
        char commit[16];
        snprintf(commit, sizeof commit, "abc%04zu", i);
        CHECK_OK(sonde_trends_point(t, 1, i, &p, &err));
        CHECK_STR(p.commit, commit);
        CHECK(p.at_ms == 1000 + (int64_t)i && p.low_ns < p.ns && p.ns < p.high_ns);
    }
    CHECK_EQ(sonde_trends_point(t, 1, 30, &p, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_trends_get(t, 3, &s, &err), SONDE_NOT_FOUND);
    CHECK_EQ(sonde_trends_save(t, in_dir("trend.txt"), &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, ".svg, .html or .page.gz");
    CHECK_OK(sonde_trends_save(t, in_dir("trend.svg"), &err));
    CHECK_EQ(sonde_trends_save(t, in_dir("no/folder/trend.svg"), &err), SONDE_IO);
    sonde_trends_release(t);
    sonde_history_close(h);
}

TEST(series_can_be_joined_across_what_they_differ_in)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history *h = open_at(in_dir("across.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    add_series(h, "a", "{\"threads\":1}", 1e6, 100, 1000);
    add_series(h, "b", "{\"threads\":1}", 1e6, 100, 2000);
    add_series(h, "a", "{\"threads\":2}", 1e6, 100, 3000);
    static const struct {
        unsigned across;
        size_t n;
    } cases[] = {{0, 3},
                 {SONDE_ACROSS_MODELS, 2},
                 {SONDE_ACROSS_OPTIONS, 2},
                 {SONDE_ACROSS_HOSTS, 3},
                 {SONDE_ACROSS_MACHINES, 3},
                 {SONDE_ACROSS_MODELS | SONDE_ACROSS_OPTIONS, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sonde_trend_options o = SONDE_INIT(sonde_trend_options);
        sonde_trends *t = NULL;
        sonde_trend s = SONDE_INIT(sonde_trend);
        size_t points = 0;
        o.across = cases[i].across;
        CHECK_OK(sonde_history_trends(h, NULL, &o, &t, &err));
        CHECK_EQ(sonde_trends_count(t), cases[i].n);
        for (size_t k = 0; sonde_trends_get(t, k, &s, &err) == SONDE_OK; k++)
            points += s.points;
        CHECK_EQ(points, 90);
        sonde_trends_release(t);
    }
    sonde_history_close(h);
}

/* Points at odd places are another one. */
static void expect_which(unsigned across, const char *word, const char *even, const char *odd,
                         const sonde_history_new news[2])
{
    sonde_error err;
    sonde_history *h = open_at(in_dir("which.db"), &err);
    sonde_trend_options o = SONDE_INIT(sonde_trend_options);
    sonde_trends *t = NULL;
    sonde_trend s = SONDE_INIT(sonde_trend);
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    CHECK_MSG(h, "%s", err.message);
    for (int i = 0; i < 6; i++) {
        sonde_history_new what = news[i % 2];
        const double ns = 1000;
        what.struct_size = sizeof what;
        what.samples_ns = &ns;
        what.sample_count = 1;
        what.at_ms = 1000 + i;
        CHECK_MSG(sonde_history_add(h, &what, NULL, &err) == SONDE_OK, "%s", err.message);
    }
    o.across = across;
    CHECK_OK(sonde_history_trends(h, NULL, &o, &t, &err));
    CHECK_EQ(sonde_trends_count(t), 1);
    CHECK_OK(sonde_trends_get(t, 0, &s, &err));
    CHECK_STR(s.across, word);
    for (size_t i = 0; i < 6; i++) {
        CHECK_OK(sonde_trends_point(t, 0, i, &p, &err));
        CHECK_STR(p.which, i % 2 ? odd : even);
        CHECK_STR(p.model, news[i % 2].model);
    }
    CHECK_OK(sonde_trends_save(t, in_dir("which.svg"), &err));
    sonde_trends_release(t);
    CHECK_OK(sonde_history_trends(h, NULL, NULL, &t, &err)); /* alike: nothing to tell apart */
    for (size_t k = 0; sonde_trends_get(t, k, &s, &err) == SONDE_OK; k++) {
        CHECK_STR(s.across, "");
        CHECK_OK(sonde_trends_point(t, k, 0, &p, &err));
        CHECK_STR(p.which, "");
    }
    sonde_trends_release(t);
    sonde_history_close(h);
    remove(in_dir("which.db"));
}

TEST(points_of_joined_series_say_which_one_they_are)
{
    NEED_SQLITE();
    static const char form_a[] = "0123456789abcdef0123456789abcdef",
                      form_b[] = "fedcba9876543210fedcba9876543210";
    expect_which(SONDE_ACROSS_MODELS, "model", "net-v1", "net-v2",
                 (sonde_history_new[2]){{.model = "net-v1"}, {.model = "net-v2"}});
    expect_which(SONDE_ACROSS_MODELS, "model", "form 01234567", "form fedcba98",
                 (sonde_history_new[2]){{.model = "net", .model_form = form_a},
                                        {.model = "net", .model_form = form_b}});
    expect_which(
        SONDE_ACROSS_HOSTS, "host", "one", "two",
        (sonde_history_new[2]){{.model = "net", .host = "one"}, {.model = "net", .host = "two"}});
    expect_which(SONDE_ACROSS_OPTIONS, "options", "1 thread, without batch", "2 threads, batch 8",
                 (sonde_history_new[2]){
                     {.model = "net", .options = "{\"threads\":1,\"fast\":true}"},
                     {.model = "net", .options = "{\"threads\":2,\"batch\":8,\"fast\":true}"}});
    expect_which(SONDE_ACROSS_OPTIONS, "options", "precision file", "bf16",
                 (sonde_history_new[2]){{.model = "net", .options = "{\"precision\":\"file\"}"},
                                        {.model = "net", .options = "{\"precision\":\"bf16\"}"}});
    expect_which(
        SONDE_ACROSS_MODELS | SONDE_ACROSS_MACHINES | SONDE_ACROSS_OPTIONS, "model, host, options",
        "a, one, 1 thread", "b, two, 2 threads",
        (sonde_history_new[2]){{.model = "a", .host = "one", .options = "{\"threads\":1}"},
                               {.model = "b", .host = "two", .options = "{\"threads\":2}"}});
    expect_which(SONDE_ACROSS_MODELS, "", "", "", /* joined, and yet all alike */
                 (sonde_history_new[2]){{.model = "net"}, {.model = "net"}});
}

TEST(the_title_of_a_joined_series_has_the_pattern)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_history *h = open_at(in_dir("title.db"), &err);
    sonde_trend_options o = SONDE_INIT(sonde_trend_options);
    sonde_history_filter f = SONDE_INIT(sonde_history_filter);
    sonde_trends *t = NULL;
    sonde_trend s = SONDE_INIT(sonde_trend);
    CHECK_MSG(h, "%s", err.message);
    add_series(h, "net-v1", "{\"threads\":1}", 1e6, 100, 1000);
    add_series(h, "net-v2", "{\"threads\":1}", 1e6, 100, 2000);
    o.across = SONDE_ACROSS_MODELS | SONDE_ACROSS_MACHINES;
    CHECK_OK(sonde_history_trends(h, &f, &o, &t, &err));
    CHECK_OK(sonde_trends_get(t, 0, &s, &err));
    CHECK_STR(s.title, "all models, 1 thread, bench");
    CHECK_STR(s.machine, "all machines");
    sonde_trends_release(t);
    f.model = "net*";
    f.machine = "he*";
    f.options = "threads=1";
    o.across |= SONDE_ACROSS_OPTIONS;
    CHECK_OK(sonde_history_trends(h, &f, &o, &t, &err));
    CHECK_OK(sonde_trends_get(t, 0, &s, &err));
    CHECK_STR(s.title, "net*, threads=1, bench");
    CHECK_STR(s.machine, "he*");
    sonde_trends_release(t);
    sonde_history_close(h);
}

TEST(operators_have_trends_and_another_model_is_marked)
{
    NEED_SQLITE();
    sonde_error err;
    sonde_model *model = NULL, *other = NULL;
    sonde_profile *profile = NULL;
    make_profile(10, &model, &profile);
    CHECK_OK(sonde_zoo_build(NULL, "tiny_mlp", 2, &other, &err));
    sonde_history *h = open_at(in_dir("operators.db"), &err);
    CHECK_MSG(h, "%s", err.message);
    for (int i = 0; i < 6; i++) {
        sonde_history_new what = SONDE_INIT(sonde_history_new);
        what.profile = profile;
        what.source = i < 3 ? model : other;
        what.at_ms = 1000 + i;
        CHECK_OK(sonde_history_add(h, &what, NULL, &err));
    }
    sonde_history_record *r = NULL;
    sonde_history_operator op = SONDE_INIT(sonde_history_operator);
    CHECK_OK(sonde_history_get(h, 1, &r, &err));
    CHECK_OK(sonde_history_record_operator(r, 0, &op, &err));
    sonde_trend_options o = SONDE_INIT(sonde_trend_options);
    sonde_trends *t = NULL;
    sonde_trend s = SONDE_INIT(sonde_trend);
    sonde_trend_point p = SONDE_INIT(sonde_trend_point);
    o.op = op.name;
    CHECK_OK(sonde_history_trends(h, NULL, &o, &t, &err));
    CHECK_EQ(sonde_trends_count(t), 1); /* weights are no reason for another series */
    CHECK_OK(sonde_trends_get(t, 0, &s, &err));
    CHECK_HAS(s.title, op.name);
    CHECK_EQ(s.points, 6);
    for (size_t i = 0; i < 6; i++) {
        CHECK_OK(sonde_trends_point(t, 0, i, &p, &err));
        CHECK(p.ns == op.mean_ns && p.new_model == (i == 3));
    }
    sonde_trends_release(t);
    o.op = "NoSuchOperator";
    CHECK_OK(sonde_history_trends(h, NULL, &o, &t, &err));
    CHECK_EQ(sonde_trends_count(t), 0);
    sonde_trends_release(t);
    sonde_history_record_release(r);
    sonde_history_close(h);
    sonde_profile_release(profile);
    sonde_model_release(model);
    sonde_model_release(other);
}

TEST_MAIN()
