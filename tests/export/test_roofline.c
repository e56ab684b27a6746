/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and keys that are there only when peaks were measured or something was counted. */
#include "test.h"

#include "json.h"
#include "memory_sink.h"

static char *table(const sn_profile *p, int width)
{
    memory_sink m;
    sn_table_options o = {.width = width};
    if (sn_export_table(p, &o, memory_sink_init(&m), NULL))
        abort();
    return m.text;
}

static char *file(const sn_profile *p, const sn_exporter *e)
{
    memory_sink m;
    if (e->write(p, memory_sink_init(&m), NULL))
        abort();
    return m.text;
}

static bool json_valid(const char *text)
{
    json j;
    const bool valid = json_parse(text, &j);
    json_free(&j);
    return valid;
}

static sn_profile *measured(failing_alloc *m)
{
    sn_profile *p = syn_tiny(failing_init(m));
    p->peak_gops[SN_ARITH_F32] = 1;
    p->peak_gbps = 10;
    p->caches[0] = (sn_prof_cache){.bytes = 1e6, .gbps = 100};
    return p;
}

TEST(the_table_has_a_column_for_the_roofline_when_peaks_are_known)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    char *without = table(p, 200);
    CHECK(strstr(without, "% roofline") == NULL && strstr(without, "IPC") == NULL);
    sn_profile_free(p);
    p = measured(&m);
    char *with = table(p, 200), *narrow = table(p, 60);
    CHECK_HAS(with, "GB/s  % roofline  kernel");
    CHECK_HAS(with, "        14.3  f32_conv1x1_avx2"); /* a million operations in 7 ms */
    CHECK_HAS(with, "        50.0  f32_gemm_6x16_avx2");
    CHECK(strstr(narrow, "% roofline") == NULL);
    free(without), free(with), free(narrow);
    sn_profile_free(p);
}

TEST(rates_of_winograd_are_said_to_be_of_direct_arithmetic)
{
    failing_alloc m;
    sn_profile *p = measured(&m);
    char *text = table(p, 200), *page = file(p, &sn_exporter_markdown);
    CHECK(strstr(text, "direct arithmetic") == NULL && strstr(page, "direct arithmetic") == NULL);
    free(text), free(page);
    p->steps.data[0].kernel = "f32_winograd4_avx2";
    text = table(p, 200), page = file(p, &sn_exporter_markdown);
    CHECK_HAS(text, "of Winograd convolutions are of direct arithmetic");
    CHECK_HAS(page, "of Winograd convolutions are of direct arithmetic");
    free(text);
    text = table(p, 60); /* has neither column */
    CHECK(strstr(text, "direct arithmetic") == NULL);
    free(text), free(page);
    sn_profile_free(p);
}

TEST(tables_say_what_was_computed_in_another_type_than_f32)
{
    failing_alloc m;
    sn_profile *p = measured(&m);
    p->peak_gops[SN_ARITH_I8_TILES] = 10;
    p->steps.data[0].arithmetic = SN_ARITH_I8_TILES;
    char *text = table(p, 200), *summary = file(p, &sn_exporter_summary);
    CHECK_HAS(text, "GB/s  % roofline  arithmetic  kernel");
    CHECK_HAS(text, "         1.4    i8_tiles  f32_conv1x1_avx2"); /* a tenth of what f32 attains */
    CHECK_HAS(text, "        50.0         f32  f32_gemm_6x16_avx2");
    CHECK_HAS(summary, "\"peak_gops\":{\"f32\":1,\"i8_tiles\":10}");
    CHECK_HAS(summary, "\"roofline\":0.014286,\"arithmetic\":\"i8_tiles\"");
    CHECK(json_valid(summary));
    free(text), free(summary);
    p->peak_gops[SN_ARITH_I8_TILES] = 0; /* not measured: no share is better than a wrong one */
    text = table(p, 200);
    CHECK_HAS(text, "           -    i8_tiles  f32_conv1x1_avx2");
    free(text);
    sn_profile_free(p);
}

TEST(the_table_has_columns_for_counters_when_there_were_any)
{
    failing_alloc m;
    sn_profile *p = measured(&m);
    p->steps.data[0].hw = (sn_prof_hw){.calls = 2, .cycles = 2e6, .instructions = 5e6};
    char *text = table(p, 200);
    CHECK_HAS(text, "k-instr  k-cycles   IPC");
    CHECK_HAS(text, "2500.0    1000.0  2.50");
    free(text);
    sn_profile_free(p);
}

TEST(what_the_system_counted_closes_the_table_with_the_reason_for_nothing_more)
{
    failing_alloc m;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->usage = (sn_prof_usage){.known = true,
                               .cpu_ns = 21500000,
                               .minor_faults = 7,
                               .major_faults = 1,
                               .voluntary = 2,
                               .involuntary = 3};
    p->counters_note = "no \"counters\" here";
    char *text = table(p, 0), *summary = file(p, &sn_exporter_summary);
    CHECK_HAS(text, "in total: task-clock 21.5 ms, page-faults 8 (major 1), context-switches 5 "
                    "(involuntary 3)\nno \"counters\" here\n");
    CHECK_HAS(summary, "\"counters\":{\"task_clock_ms\":21.500000,\"page_faults\":8,");
    CHECK_HAS(summary, "\"note\":\"no \\\"counters\\\" here\"}");
    CHECK(json_valid(summary));
    free(text), free(summary);
    sn_profile_free(p);
}

TEST(summaries_have_the_share_of_every_row)
{
    failing_alloc m;
    sn_profile *p = measured(&m);
    p->steps.data[0].hw = (sn_prof_hw){.calls = 2, .cycles = 2e6, .instructions = 5e6};
    char *summary = file(p, &sn_exporter_summary), *markdown = file(p, &sn_exporter_markdown);
    CHECK_HAS(summary, "\"roofline\":0.142857");
    CHECK_HAS(summary, "\"instructions\":2500000,\"cycles\":1000000,\"ipc\":2.5");
    CHECK_HAS(summary,
              "\"peak_gflops\":1,\"peak_gbps\":10,\"peak_l2_gbps\":100,\"peak_l3_gbps\":0");
    CHECK(json_valid(summary));
    CHECK_HAS(markdown, "| GFLOP/s | % of roofline | arithmetic | kernel |\n");
    CHECK_HAS(markdown, " | 14.3 | f32 | f32");
    free(summary), free(markdown);
    sn_profile_free(p);
    p = syn_tiny(failing_init(&m));
    summary = file(p, &sn_exporter_summary);
    CHECK(strstr(summary, "roofline") == NULL && strstr(summary, "peak_gflops") == NULL);
    free(summary);
    sn_profile_free(p);
}

TEST_MAIN()
