/* SPDX-License-Identifier: Apache-2.0 */
/* Trends as pictures and as data of the page: what they must hold, and that no text and no value
 * breaks them. */
#include "base/utf8.h"
#include "export/json.h"
#include "export/memory_sink.h"
#include "export/page.h"
#include "export/trend.h"
#include "test.h"

enum { MOST = 6000 };

static sn_trend_point points[MOST];
static sn_trend_level levels[3];
static memory_sink out;
static sonde_error err;

/* Ten days of 12 ms, then 12.6 ms. */
static sn_trend plain(size_t n, size_t at)
{
    memset(points, 0, sizeof points);
    for (size_t i = 0; i < n; i++) {
        const double v = (i < at ? 12 : 12.6) * (1 + 0.005 * (double)test_randf());
        points[i] = (sn_trend_point){.id = (int64_t)i + 1,
                                     .value = v,
                                     .low = v * 0.99,
                                     .high = v * 1.01,
                                     .at_unix_ms = 1767225600000 + (int64_t)i * 86400000,
                                     .commit = "0123456789abcdef0123456789abcdef01234567",
                                     .note = ""};
    }
    levels[0] = (sn_trend_level){0, at, 12};
    levels[1] = (sn_trend_level){at, n, 12.6};
    points[at].change = true;
    points[at].ratio = 1.05;
    return (sn_trend){.title = "a model, 1 thread",
                      .machine = "a processor",
                      .points = points,
                      .n_points = n,
                      .levels = levels,
                      .n_levels = 2};
}

static sonde_status draw(const sn_trend *t, size_t n)
{
    const sn_trend *all[4] = {t, t, t, t};
    return sn_trend_write_svg(all, n, memory_sink_init(&out), &err);
}

static size_t count(const char *part)
{
    size_t n = 0;
    for (const char *at = out.text; (at = strstr(at, part)) != NULL; at += strlen(part))
        n++;
    return n;
}

/* Elements are closed in order, attributes are quoted, no stray marks, nothing that XML 1.0 lacks.
 * NULL: all is well. */
static const char *fault_of(const char *s)
{
    char open[16][16];
    size_t depth = 0;
    for (const char *c = s; *c; c++)
        if (((unsigned char)*c < 0x20 && *c != '\n') || strncmp(c, "\xEF\xBF\xBF", 3) == 0 ||
            strncmp(c, "\xEF\xBF\xBE", 3) == 0)
            return c;
    while (*s) {
        if (*s == '&') {
            if (strncmp(s, "&amp;", 5) && strncmp(s, "&lt;", 4) && strncmp(s, "&gt;", 4) &&
                strncmp(s, "&quot;", 6))
                return s;
        } else if (*s == '>') {
            return s;
        } else if (*s == '<') {
            const bool closes = s[1] == '/';
            const char *name = s + 1 + closes, *end = strchr(s, '>');
            const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz");
            if (!end || n == 0 || n > 15 || depth == 16)
                return s;
            size_t quotes = 0;
            for (const char *c = s; c < end; c++)
                quotes += *c == '"';
            if (quotes % 2)
                return s;
            if (closes) {
                if (!depth || strlen(open[depth - 1]) != n || memcmp(open[depth - 1], name, n))
                    return s;
                depth--;
            } else if (end[-1] != '/') {
                memcpy(open[depth], name, n);
                open[depth++][n] = 0;
            }
            s = end;
        }
        s++;
    }
    return depth ? "an element is not closed" : NULL;
}

static bool is_utf8(const char *s)
{
    for (size_t n; *s; s += n) {
        uint32_t c;
        n = sn_utf8_char((const unsigned char *)s, strlen(s), &c);
        if (n == 0)
            return false;
    }
    return true;
}

TEST(a_picture_has_points_levels_dates_and_the_change_in_percent)
{
    const sn_trend t = plain(40, 25);
    CHECK_OK(draw(&t, 1));
    const char *fault = fault_of(out.text);
    CHECK_MSG(!fault, "%.80s", fault);
    CHECK_EQ(count("<circle"), 40);
    CHECK_EQ(count("<line class=\"span\""), 40);
    CHECK_EQ(count("<line class=\"level\""), 2);
    CHECK_HAS(out.text, "a model, 1 thread");
    CHECK_HAS(out.text, "a processor");
    CHECK_HAS(out.text, "\xE2\x96\xB2 +5.0 %");
    CHECK_HAS(out.text, ">2026-01-01<");
    CHECK_HAS(out.text, ">2026-02-09<");
    CHECK_HAS(out.text, ">0123456789<");
    CHECK_HAS(out.text, "12.60 ms");
    CHECK_HAS(out.text, "prefers-color-scheme:dark");
    free(out.text);
}

/* Every number behind a name of a coordinate. */
static bool inside(const char *name, double least, double most)
{
    for (const char *at = out.text; (at = strstr(at, name)) != NULL;) {
        at += strlen(name);
        const double v = strtod(at, NULL);
        if (!(v >= least && v <= most)) {
            fprintf(stderr, "%s%.20s\n", name, at);
            return false;
        }
    }
    return true;
}

TEST(outliers_and_odd_values_stay_inside_of_the_picture)
{
    static const double odd[] = {0,   NAN,   INFINITY, -INFINITY, -1,
                                 1e9, 1e300, 1e-300,   5e-324,    1.7e308};
    for (size_t i = 0; i <= sizeof odd / sizeof odd[0]; i++) {
        sn_trend t = plain(60, 30);
        for (size_t k = 0; k < 60; k++) {
            const bool all = i == sizeof odd / sizeof odd[0];
            const double v = all ? odd[k % (sizeof odd / sizeof odd[0])] : odd[i];
            if (!all && k % 20 != 7)
                continue;
            points[k].value = v;
            points[k].low = k % 3 ? v : -v;
            points[k].high = v * 2;
            points[k].ratio = v;
            points[k].change = true;
            points[k].at_unix_ms = k % 2 ? INT64_MAX : INT64_MIN;
            points[k].id = k % 2 ? INT64_MAX : INT64_MIN;
        }
        levels[0].value = i < sizeof odd / sizeof odd[0] ? odd[i] : 12;
        CHECK_OK(draw(&t, 1));
        const char *fault = fault_of(out.text);
        CHECK_MSG(!fault, "%zu: %.80s", i, fault);
        CHECK(inside(" x1=\"", 0, 800) && inside(" x2=\"", 0, 800) && inside(" x=\"", 0, 800));
        CHECK(inside(" y1=\"", 0, 400) && inside(" y2=\"", 0, 400) && inside(" cy=\"", 0, 400));
        CHECK(!strstr(out.text, "nan") && !strstr(out.text, "null=") &&
              !strstr(out.text, "\"null"));
        free(out.text);
    }
    for (size_t n = 1; n <= 3; n++) { /* equal values, few of them */
        sn_trend t = plain(n, 0);
        for (size_t k = 0; k < n; k++)
            points[k].value = points[k].low = points[k].high = 7;
        CHECK_OK(draw(&t, 1));
        CHECK(!fault_of(out.text));
        CHECK_EQ(count("<circle"), (long long)n);
        free(out.text);
    }
}

TEST(hostile_texts_cannot_leave_their_place)
{
    static const char *const texts[] = {"</text><script>alert(1)</script>",
                                        "\"' onload=\"x",
                                        "&amp;&#0;",
                                        "\x01\x1b[31m\n\r\t",
                                        "\xff\xfe\xc0\x80\xed\xa0\x80",
                                        "\xEF\xBF\xBE\xEF\xBF\xBF",
                                        "]]>",
                                        "",
                                        NULL};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sn_trend t = plain(10, 5);
        t.title = t.machine = texts[i];
        for (size_t k = 0; k < 10; k++)
            points[k].commit = points[k].note = texts[i];
        CHECK_OK(draw(&t, 2));
        const char *fault = fault_of(out.text);
        CHECK_MSG(!fault, "%zu: %.80s", i, fault);
        CHECK(is_utf8(out.text));
        CHECK_EQ(count("<script"), 0);
        free(out.text);
    }
    char *longest = malloc(1 << 20);
    memset(longest, 'x', (1 << 20) - 1);
    longest[(1 << 20) - 1] = 0;
    sn_trend t = plain(10, 5);
    t.title = t.machine = longest;
    const sonde_status st = draw(&t, 1);
    free(longest);
    CHECK_OK(st);
    CHECK_MSG(out.n < 20000, "%zu bytes", out.n);
    free(out.text);
}

TEST(many_entries_are_drawn_in_columns_and_trends_below_each_other)
{
    const sn_trend many = plain(MOST, 3000);
    CHECK_OK(draw(&many, 1));
    CHECK(!fault_of(out.text));
    CHECK_EQ(count("<circle"), 0);
    CHECK_EQ(count("<path class=\"span\""), 1);
    CHECK_MSG(out.n < 60000, "%zu bytes", out.n);
    free(out.text);
    const sn_trend few = plain(20, 10);
    CHECK_OK(draw(&few, 3));
    CHECK(!fault_of(out.text));
    CHECK_EQ(count("ink title"), 3);
    free(out.text);
    const sn_trend none = {.title = "nothing", .machine = ""};
    CHECK_OK(draw(&none, 1));
    CHECK_HAS(out.text, "no entry yet");
    free(out.text);
    CHECK_OK(draw(&none, 0));
    CHECK(!fault_of(out.text));
    free(out.text);
}

TEST(points_that_differ_say_which_one_they_are)
{
    sn_trend t = plain(40, 25);
    CHECK_OK(draw(&t, 1));
    const double height = strtod(strstr(out.text, "height=\"") + 8, NULL);
    free(out.text);
    for (size_t i = 0; i < 40; i++)
        points[i].which = i < 25 ? "net-v1" : i == 30 ? "a <one>" : "net-v2";
    t.across = "model";
    CHECK_OK(draw(&t, 2));
    CHECK(!fault_of(out.text));
    CHECK_EQ(count(">net-v1</text>"), 2);
    CHECK_EQ(count(">net-v2</text>"), 4); /* on both sides of the one between */
    CHECK_EQ(count(">a &lt;one&gt;</text>"), 0);
    CHECK_EQ(count(", entry 31, a &lt;one&gt;, "), 2);
    CHECK_EQ(count(", entry 25, net-v1, "), 2);
    CHECK(strtod(strstr(out.text, "height=\"") + 8, NULL) > 2 * (height - 30));
    free(out.text);
    for (size_t i = 0; i < 40; i++) /* each another one: hints alone */
        points[i].which = i % 2 ? "a" : "b";
    CHECK_OK(draw(&t, 1));
    CHECK_EQ(count(">a</text>") + count(">b</text>"), 0);
    CHECK_EQ(count(", entry 1, b, "), 1);
    free(out.text);
}

/* The number behind `name` in the element that begins with `element`; *at moves behind it. */
static double next_number(const char **at, const char *element, const char *name)
{
    const char *found = *at ? strstr(*at, element) : NULL;
    *at = found ? found + 1 : NULL;
    const char *value = found ? strstr(found, name) : NULL;
    return value ? strtod(value + strlen(name), NULL) : NAN;
}

TEST(the_value_of_a_level_stands_beside_its_line)
{
    static const double values[3] = {5, 5.9, 5.4};
    static sn_trend_level three[3];
    for (size_t spread = 0; spread < 3; spread++) {
        sn_trend t = plain(60, 20);
        for (size_t i = 0; i < 60; i++) {
            const double noise = 1 + 0.02 * (double)spread * ((double)test_randf() - 0.5);
            points[i].value = points[i].low = points[i].high = values[i / 20] * noise;
            points[i].change = i && i % 20 == 0;
            points[i].ratio = 1.1;
        }
        points[10].value = points[30].value = points[31].value = 1e3; /* far above all */
        for (size_t k = 0; k < 3; k++)
            three[k] = (sn_trend_level){20 * k, 20 * k + 20, values[k]};
        t.levels = three;
        t.n_levels = 3;
        CHECK_OK(draw(&t, 1));
        const char *line = out.text, *mark = out.text;
        for (size_t k = 0; k < 3; k++) {
            const double y = next_number(&line, "<line class=\"level\"", " y1=\"");
            const double label = next_number(&mark, "<text class=\"ink mark\"", " y=\"") - 4;
            CHECK_MSG(fabs(y - label) < (k == 2 ? 1 : 40), "%zu, level %zu: line %g, value %g",
                      spread, k, y, label);
        }
        free(out.text);
    }
}

TEST(a_full_disk_is_reported)
{
    const sn_trend t = plain(40, 25), *all = &t;
    memory_sink_init(&out);
    out.limit = 300;
    CHECK_EQ(sn_trend_write_svg(&all, 1, &out.sink, &err), SONDE_IO);
    free(out.text);
}

/* The first line of the data of a page that has a profile and trends. */
static void data_of(const sn_trend *t, json *tree)
{
    failing_alloc m;
    const sn_trend *const all[] = {t};
    const sn_export_options options = {.trends = all, .n_trends = 1};
    sn_profile *p = syn_tiny(failing_init(&m));
    CHECK_OK(sn_page_data(p, &options, memory_sink_init(&out), &err));
    char *line = memchr(out.text, '\n', out.n);
    CHECK(line != NULL);
    *line = 0;
    CHECK_MSG(json_parse(out.text, tree), "%.300s", out.text);
    free(out.text);
    sn_profile_free(p);
}

TEST(the_data_of_the_page_have_every_entry)
{
    json tree;
    sn_trend t = plain(40, 25);
    points[3].low = points[3].high = points[3].value;
    points[4].value = NAN;
    points[4].commit = points[4].note = NULL;
    points[4].at_unix_ms = 0;
    points[5].note = "</script>\xff\"\n";
    points[6].which = "net-v2";
    t.across = "model";
    t.db = "a folder/it's.db";
    data_of(&t, &tree);
    const json *trends = json_get(&tree, "trends");
    CHECK_EQ(trends->n, 1);
    const json *one = &trends->children[0], *list = json_get(one, "points");
    CHECK_STR(json_get(one, "title")->text, "a model, 1 thread");
    CHECK_EQ(list->n, 40);
    CHECK(json_get(&list->children[0], "id")->number == 1);
    CHECK(fabs(json_get(&list->children[0], "value_ms")->number - points[0].value) < 1e-6);
    CHECK(fabs(json_get(&list->children[0], "low_ms")->number - points[0].low) < 1e-6);
    CHECK(json_get(&list->children[0], "at_unix_ms")->number == 1767225600000);
    CHECK(!json_get(&list->children[0], "change") && !json_get(&list->children[3], "low_ms"));
    CHECK(json_get(&list->children[25], "change")->number == 1);
    CHECK(json_get(&list->children[25], "ratio")->number == 1.05);
    CHECK_EQ(json_get(&list->children[4], "value_ms")->kind, JSON_NULL);
    CHECK(!json_get(&list->children[4], "commit") && !json_get(&list->children[4], "at_unix_ms"));
    CHECK_STR(json_get(&list->children[5], "note")->text, "</script>\xEF\xBF\xBD\"\n");
    CHECK_STR(json_get(&list->children[6], "which")->text, "net-v2");
    CHECK_STR(json_get(one, "across")->text, "model");
    CHECK_STR(json_get(one, "db")->text, "a folder/it's.db");
    CHECK(!json_get(&list->children[5], "which"));
    const json *level = &json_get(one, "levels")->children[1];
    CHECK(json_get(level, "from")->number == 25 && json_get(level, "to")->number == 40);
    CHECK(json_get(level, "value_ms")->number == 12.6);
    json_free(&tree);
}

TEST(a_page_of_trends_alone_is_a_profile_without_runs)
{
    failing_alloc m;
    sn_allocator *alloc = failing_init(&m);
    const sn_trend t = plain(40, 25), *const all[] = {&t};
    CHECK_OK(sn_trend_write(all, 1, ".page.gz", alloc, memory_sink_init(&out), &err));
    CHECK(out.n > 20 && (unsigned char)out.text[0] == 0x1f && (unsigned char)out.text[1] == 0x8b);
    free(out.text);
    CHECK_EQ(m.live, 0);
    const sonde_status st = sn_trend_write(all, 1, ".html", alloc, memory_sink_init(&out), &err);
    if (st == SONDE_OK)
        CHECK_EQ(count("<script type=\"application/x-sonde-profile\""), 1);
    else
        CHECK_MSG(st == SONDE_UNSUPPORTED, "%s", err.message); /* a build without Node.js */
    free(out.text);
    CHECK_EQ(m.live, 0);
    const long calls = m.calls;
    for (long i = 0; i < calls; i++) {
        alloc = failing_init(&m);
        m.fail_at = i;
        const sonde_status failed =
            sn_trend_write(all, 1, ".page.gz", alloc, memory_sink_init(&out), &err);
        CHECK_MSG(failed == SONDE_OK || failed == SONDE_OUT_OF_MEMORY, "%ld: %s", i, err.message);
        CHECK_MSG(m.live == 0, "allocation %ld: %ld blocks are left", i, m.live);
        free(out.text);
    }
}

TEST_MAIN()
