/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text: what the format asks of every line, and the figures of a known profile. */
#include "export/memory_sink.h"
#include "export/prom_text.h"
#include "test.h"

static const sn_exporter *prom(void)
{
    return sn_exporter_for_path("x.prom");
}

TEST(a_profile_has_a_histogram_of_its_measured_runs)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = syn_tiny(failing_init(&m)); /* runs of 10 and 12 ms */
    CHECK_OK(prom()->write(p, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "# TYPE sonde_run_duration_seconds histogram\n");
    CHECK_HAS(out.text,
              "sonde_run_duration_seconds_bucket{model=\"tiny\",session=\"0\",le=\"0.0063\"} 0\n");
    CHECK_HAS(out.text,
              "sonde_run_duration_seconds_bucket{model=\"tiny\",session=\"0\",le=\"0.01\"} 1\n");
    CHECK_HAS(out.text,
              "sonde_run_duration_seconds_bucket{model=\"tiny\",session=\"0\",le=\"0.016\"} 2\n");
    CHECK_HAS(out.text,
              "sonde_run_duration_seconds_bucket{model=\"tiny\",session=\"0\",le=\"+Inf\"} 2\n");
    CHECK_HAS(out.text,
              "sonde_run_duration_seconds_sum{model=\"tiny\",session=\"0\"} 0.022000000\n");
    CHECK_HAS(out.text, "sonde_run_duration_seconds_count{model=\"tiny\",session=\"0\"} 2\n");
    CHECK_HAS(out.text, "sonde_operator_seconds{model=\"tiny\",operator=\"Conv\"} 0.007000000\n");
    CHECK_HAS(out.text, "sonde_operator_calls{model=\"tiny\",operator=\"MatMul\"} 1\n");
    CHECK_HAS(out.text, "sonde_profile_warmup_runs{model=\"tiny\"} 1\n");
    CHECK_HAS(out.text, "cpu=\"Test CPU\"");
    CHECK(!strstr(out.text, "# EOF"));
    sn_profile_free(p);
    free(out.text);
}

/* Comments and samples, one a line; a sample is a name, labels in braces whose values end, and a
 * number. */
static bool is_sample(const char *line)
{
    size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");
    if (!n)
        return false;
    if (line[n] == '{') {
        bool quoted = false;
        for (n++; line[n] && (quoted || line[n] != '}'); n++) {
            if (quoted && line[n] == '\\' && line[n + 1])
                n++;
            else if (line[n] == '"')
                quoted = !quoted;
        }
        if (line[n++] != '}')
            return false;
    }
    char *end;
    if (line[n] != ' ')
        return false;
    (void)strtod(line + n + 1, &end);
    return end != line + n + 1 && !*end;
}

TEST(names_of_any_bytes_stay_inside_their_labels)
{
    static const char evil[] = "a\"b\\c\nd{e}=\xff\xfe,\x01\xc3\xa9";
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->model_name = p->cpu_model = evil;
    p->steps.data[0].op_type = evil;
    CHECK_OK(prom()->write(p, memory_sink_init(&out), &err));
    CHECK_HAS(out.text,
              "model=\"a\\\"b\\\\c\\nd{e}=\xef\xbf\xbd\xef\xbf\xbd,\xef\xbf\xbd\xc3\xa9\"");
    size_t samples = 0;
    for (char *line = strtok(out.text, "\n"); line; line = strtok(NULL, "\n")) {
        CHECK_MSG(line[0] == '#' || is_sample(line), "%s", line);
        samples += line[0] != '#';
    }
    CHECK(samples > 50);
    sn_profile_free(p);
    free(out.text);
}

TEST(instances_without_end_are_a_text_with_an_end)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->spans.data[4].instance = UINT32_MAX - 1;
    CHECK_OK(prom()->write(p, memory_sink_init(&out), &err));
    CHECK(out.n < 10 << 20);
    sn_profile_free(p);
    free(out.text);
}

TEST(openmetrics_differs_as_its_standard_says)
{
    memory_sink out;
    sn_prom p;
    const sn_prom_label labels[] = {{"a", "b"}, {NULL, ""}};
    sn_prom_histogram h = {.sum_ns = 1500000000};
    h.buckets[30] = 1; /* up to 1 s */
    h.buckets[31] = 2;
    sn_prom_begin(&p, memory_sink_init(&out), true);
    sn_prom_family(&p, "x_runs", SN_PROM_COUNTER, "", "Help.");
    sn_prom_u64(&p, SN_PROM_COUNTER, labels, 7);
    sn_prom_family(&p, "x_seconds", SN_PROM_HISTOGRAM, "seconds", "Help.");
    sn_prom_buckets(&p, NULL, &h);
    CHECK_EQ(sn_prom_end(&p, NULL), SONDE_OK);
    CHECK_HAS(out.text, "# TYPE x_runs counter\nx_runs_total{a=\"b\"} 7\n");
    CHECK_HAS(out.text, "# UNIT x_seconds seconds\n");
    CHECK_HAS(out.text, "x_seconds_bucket{le=\"1.0\"} 1\n");
    CHECK_HAS(out.text, "x_seconds_bucket{le=\"1.6\"} 3\n");
    CHECK_HAS(out.text, "x_seconds_bucket{le=\"+Inf\"} 3\nx_seconds_sum 1.500000000\n"
                        "x_seconds_count 3\n# EOF\n");
    free(out.text);
    sn_prom_begin(&p, memory_sink_init(&out), false);
    sn_prom_family(&p, "x_runs", SN_PROM_COUNTER, "runs", "Help.");
    sn_prom_u64(&p, SN_PROM_COUNTER, NULL, 7);
    CHECK_EQ(sn_prom_end(&p, NULL), SONDE_OK);
    CHECK_STR(out.text, "# HELP x_runs_total Help.\n# TYPE x_runs_total counter\nx_runs_total 7\n");
    free(out.text);
}

TEST_MAIN()
