/* SPDX-License-Identifier: Apache-2.0 */
/* The report page: its data say what the profile says, and nothing in a profile leaves its block.
 */
#include "export/json.h"
#include "export/memory_sink.h"
#include "export/page.h"
#include "export/pressed.h"
#include "test.h"

/* The data of a profile, not compressed. */
static void data_of(const sn_profile *p, const sn_export_options *opt, memory_sink *out, json *tree)
{
    sonde_error err = {0};
    const sn_export_options none = {0};
    CHECK_OK(sn_page_data(p, opt ? opt : &none, memory_sink_init(out), &err));
    char *line = memchr(out->text, '\n', out->n);
    CHECK(line != NULL);
    *line = 0;
    CHECK_MSG(json_parse(out->text, tree), "%.300s", out->text);
    *line = '\n';
}

/* The numbers behind the JSON. */
static uint64_t next_number(const unsigned char **at)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        const unsigned char byte = *(*at)++;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return v;
    }
}

TEST(the_data_of_the_page_say_what_the_profile_says)
{
    failing_alloc m;
    memory_sink out;
    json tree;
    sn_profile *p = syn_tiny(failing_init(&m));
    data_of(p, NULL, &out, &tree);
    const json *summary = json_get(&tree, "summary"), *steps = json_get(&tree, "steps");
    CHECK_STR(json_get(&tree, "schema")->text, "sonde.page/1");
    CHECK(json_get(json_get(summary, "wall"), "mean")->number == 11.0 * MS);
    CHECK(json_get(summary, "iterations")->number == 2);
    CHECK(steps->n == 2);
    CHECK(json_get(&steps->children[0], "origins")->n == 3);
    /* A step's row is the row of its operator. */
    const json *by_op = json_get(json_get(&tree, "rows"), "op");
    const size_t row = (size_t)json_get(&steps->children[1], "rows")->children[0].number;
    CHECK(row < by_op->n);
    CHECK_STR(json_get(&by_op->children[row], "name")->text, "MatMul");
    double sum = 0, shares = 0;
    sn_prof_summary s;
    sonde_error err = {0};
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK(s.rows.n == by_op->n);
    for (size_t i = 0; i < by_op->n; i++) {
        const json *own = &by_op->children[i];
        sum += json_get(own, "mean_ns")->number;
        shares += json_get(own, "usual_share")->number;
        CHECK(fabs(json_get(own, "usual_ns")->number - s.rows.data[i].usual_ns) < 1e-3);
    }
    CHECK_MSG(fabs(sum - 11.0 * MS) < 1, "the rows add up to %f", sum);
    CHECK_MSG(fabs(shares - 1) < 1e-6, "the usual shares add up to %f", shares);
    sn_prof_summary_free(&s);
    json_free(&tree);
    free(out.text);
    sn_profile_free(p);
}

TEST(a_row_of_the_page_says_that_its_operations_are_of_direct_arithmetic)
{
    failing_alloc m;
    memory_sink out;
    json tree;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->steps.data[0].kernel = "sn_f32_winograd_6x16_avx2";
    data_of(p, NULL, &out, &tree);
    const json *by_node = json_get(json_get(&tree, "rows"), "node");
    for (size_t i = 0; i < by_node->n; i++) {
        const json *own = &by_node->children[i];
        const bool winograd = json_get(own, "step")->number == 0;
        CHECK((json_get(own, "direct") != NULL) == winograd);
    }
    json_free(&tree);
    free(out.text);
    sn_profile_free(p);
}

TEST(the_columns_of_the_page_are_the_spans)
{
    failing_alloc m;
    memory_sink out;
    json tree;
    sn_profile *p = syn_tiny(failing_init(&m));
    data_of(p, NULL, &out, &tree);
    const size_t n = (size_t)json_get(json_get(&tree, "counts"), "spans")->number;
    CHECK(n == p->spans.n);
    const unsigned char *at = (const unsigned char *)strchr(out.text, '\n') + 1;
    uint64_t start = 0;
    for (size_t i = 0; i < n; i++) {
        start += next_number(&at);
        CHECK_MSG(start == p->spans.data[i].start_ns, "span %zu", i);
    }
    for (size_t i = 0; i < n; i++)
        CHECK(next_number(&at) == p->spans.data[i].dur_ns);
    for (size_t i = 0; i < n; i++)
        CHECK(next_number(&at) == (uint64_t)p->spans.data[i].cat);
    for (size_t skip = 0; skip < 6 * n; skip++) /* thread … flags */
        next_number(&at);
    for (size_t i = 0; i < n; i++) {
        const json *strings = json_get(&tree, "strings");
        const uint64_t k = next_number(&at);
        CHECK(k < strings->n);
        CHECK_STR(strings->children[k].text, p->spans.data[i].name);
    }
    for (size_t skip = 0; skip < 2 * n; skip++) /* text, label */
        next_number(&at);
    for (size_t i = 0; i < n; i++) {
        const uint64_t back = next_number(&at);
        CHECK(p->spans.data[i].parent ? p->spans.data[i - back].id == p->spans.data[i].parent
                                      : back == 0);
    }
    CHECK((size_t)(at - (const unsigned char *)out.text) + 2 * (1 + sizeof(double)) == out.n);
    json_free(&tree);
    free(out.text);
    sn_profile_free(p);
}

TEST(names_of_any_kind_stay_texts_of_the_page)
{
    static const char hostile[] = "</script><script>alert(1)</script>\n\"\\\x01\xff\u202e\u2028";
    failing_alloc m;
    memory_sink out;
    json tree;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->model_name = hostile;
    p->steps.data[0].name = hostile;
    p->spans.data[1].name = hostile;
    const sonde_finding found = {SONDE_SLOW, hostile, hostile, hostile, hostile};
    const sonde_scenario_time scenario = {hostile, 1, 2, hostile};
    const sn_export_options opt = {.title = hostile,
                                   .findings = &found,
                                   .n_findings = 1,
                                   .scenarios = &scenario,
                                   .n_scenarios = 1};
    data_of(p, &opt, &out, &tree);
    const json *findings = json_get(&tree, "findings");
    CHECK(findings->n >= 1);
    CHECK_HAS(json_get(&findings->children[findings->n - 1], "topic")->text, "</script>");
    json_free(&tree);
    free(out.text);
    if (sn_report_page_bytes) {
        sonde_error err = {0};
        CHECK_OK(sn_exporter_for_path("x.html")->write_with(p, &opt, memory_sink_init(&out), &err));
        CHECK(strstr(out.text, "alert(1)</script>") == NULL);
        CHECK(strstr(out.text, "<!--profile-->") == NULL);
        /* The title: UTF-8 without control characters, whatever came. */
        CHECK_HAS(out.text, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
        free(out.text);
    }
    sn_profile_free(p);
}

TEST(a_build_without_the_page_says_what_is_missing)
{
    failing_alloc m;
    memory_sink out;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_exporter *html = sn_exporter_for_path("report.html");
    CHECK(html != NULL);
    const sonde_status st = html->write(p, memory_sink_init(&out), &err);
    if (sn_report_page_bytes) {
        CHECK(st == SONDE_OK);
        CHECK_HAS(out.text, "connect-src 'none'");
    } else {
        CHECK(st == SONDE_UNSUPPORTED);
        CHECK_HAS(err.message, "script/setup web");
    }
    free(out.text);
    sn_profile_free(p);
}

TEST(a_page_that_is_served_may_ask_its_server_and_nobody_else)
{
    failing_alloc m;
    memory_sink out;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_export_options live = {.live = true};
    if (sn_report_page_bytes) {
        CHECK_OK(
            sn_exporter_for_path("x.html")->write_with(p, &live, memory_sink_init(&out), &err));
        CHECK_HAS(out.text, "connect-src 'self'");
        CHECK_HAS(out.text, "<html data-live ");
        CHECK(strstr(out.text, "connect-src 'none'") == NULL);
        free(out.text);
    }
    sn_profile_free(p);
}

TEST(two_profiles_are_compared_as_sonde_diff_compares_them)
{
    failing_alloc m;
    memory_sink out;
    json tree;
    sonde_error err = {0};
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_export_options opt = {.before = p, .before_title = "a \"b\"", .title = "c"};
    CHECK_OK(sn_page_comparison(p, p, &opt, memory_sink_init(&out), &err));
    CHECK_MSG(json_parse(out.text, &tree), "%s", out.text);
    CHECK_STR(json_get(&tree, "old")->text, "a \"b\"");
    CHECK(json_get(json_get(&tree, "total"), "ratio")->number == 1);
    CHECK(json_get(json_get(&tree, "rows"), "node")->n > 0);
    json_free(&tree);
    free(out.text);
    sn_profile_free(p);
}

/* At every place where memory is asked for: an error that says so, and everything is given back. */
TEST(a_page_for_which_there_is_no_memory_is_an_error)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_export_options both = {.before = p}, *const options[] = {&(sn_export_options){0},
                                                                      &both};
    const char *const formats[] = {"x.page.gz", sn_report_page_bytes ? "x.html" : "x.page.gz"};
    for (size_t k = 0; k < 2; k++) {
        const sn_exporter *e = sn_exporter_for_path(formats[k]);
        const long live = m.live;
        sonde_status st = SONDE_OUT_OF_MEMORY;
        for (long at = 0; st != SONDE_OK; at++) {
            sonde_error err = {0};
            m.calls = 0;
            m.fail_at = at;
            st = e->write_with(p, options[k], memory_sink_init(&out), &err);
            free(out.text);
            CHECK_MSG(st == SONDE_OK ? m.calls <= at : st == SONDE_OUT_OF_MEMORY,
                      "%s: allocation %ld failed, and the status is %d: %s", formats[k], at, st,
                      err.message);
            CHECK_EQ(m.live, live);
        }
        m.fail_at = -1;
    }
    sn_profile_free(p);
}

TEST(base64_is_that_of_the_standard)
{
    static const char *const cases[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memory_sink out;
        sn_base64 b;
        sn_base64_init(&b, memory_sink_init(&out));
        for (const char *s = cases[i][0]; *s; s++)
            sn_sink_write(&b.sink, s, 1);
        sn_base64_finish(&b);
        CHECK_STR(out.text, cases[i][1]);
        free(out.text);
    }
}

TEST_MAIN()
