/* SPDX-License-Identifier: Apache-2.0 */
/* Reports by inference, by execution and by memory, on profiles whose figures are known. */
#include "export/reports.h"

#include "export/memory_sink.h"
#include "test.h"

typedef sonde_status report_fn(const sn_profile *p, sn_sink *sink, sonde_error *err);

static sonde_status summary(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return sn_report_summary(p, false, sink, err);
}
static sonde_status by_record(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return sn_report_summary(p, true, sink, err);
}

static sonde_status memory(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    return sn_report_memory(p, 0, sink, err);
}

static report_fn *const all_reports[] = {summary,
                                         by_record,
                                         sn_report_inferences,
                                         sn_report_executions,
                                         sn_report_operators,
                                         sn_report_external_operators,
                                         memory};
enum { REPORTS = sizeof all_reports / sizeof *all_reports };

static void write_report(report_fn *report, const sn_profile *p, memory_sink *out)
{
    sonde_error err = {0};
    CHECK_OK(report(p, memory_sink_init(out), &err));
}

/* Two inferences of 10 and 12 ms inside "outer", the second inside "inner, \"quoted\"" too; two
 * device executions of which one claims to have run longer than it took; three values. */
static sn_profile *sample(sn_allocator *alloc)
{
    sn_profile *p = syn_tiny(alloc);
    syn_span(p, SN_CAT_DEVICE, 0, 61 * MS, 5 * MS, "execution")->run = 2;
    const uint32_t first = p->spans.data[p->spans.n - 1].id;
    syn_span(p, SN_CAT_DEVICE, first, 61 * MS, 3 * MS, "kernel");
    syn_span(p, SN_CAT_DEVICE, 0, 70 * MS, 2 * MS, "execution");
    const uint32_t second = p->spans.data[p->spans.n - 1].id;
    syn_span(p, SN_CAT_DEVICE, second, 70 * MS, 9 * MS, "kernel");
    const sn_prof_life lives[] = {{1, 0, 1, "a", 0, 1000, SN_LIFE_ARENA},
                                  {1, 1, 1, "workspace", 2000, 500, SN_LIFE_WORKSPACE},
                                  {1, 1, 2, "b", 1000, 4000, SN_LIFE_OUTPUT}};
    for (size_t i = 0; i < 3; i++)
        if (!sn_vec_push(&p->lives, alloc, lives[i]))
            abort();
    p->memory.packed = 3 << 20;
    return p;
}

/* Records go before the iterations they are around. */
static void add_records(sn_profile *p)
{
    const sn_prof_span records[] = {{.id = 100,
                                     .cat = SN_CAT_USER,
                                     .start_ns = 19 * MS,
                                     .dur_ns = 40 * MS,
                                     .step = UINT32_MAX,
                                     .name = "outer"},
                                    {.id = 101,
                                     .cat = SN_CAT_USER,
                                     .start_ns = 39 * MS,
                                     .dur_ns = 15 * MS,
                                     .step = UINT32_MAX,
                                     .name = "in\n\"ner\""}};
    for (int k = 0; k < 2; k++) {
        size_t at = 0;
        if (!sn_vec_push(&p->spans, p->alloc, records[k]))
            abort();
        while (p->spans.data[at].start_ns < records[k].start_ns)
            at++;
        memmove(&p->spans.data[at + 1], &p->spans.data[at],
                (p->spans.n - 1 - at) * sizeof records[k]);
        p->spans.data[at] = records[k];
    }
}

TEST(the_summary_is_over_measured_inferences)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = sample(failing_init(&m));
    write_report(summary, p, &out);
    CHECK_HAS(out.text, "  Inference Results Summary\n");
    CHECK_HAS(out.text, "Inference counts                : 2\n");
    CHECK_HAS(out.text, "Min latency (ns)                : 10000000\n");
    CHECK_HAS(out.text, "Max latency (ns)                : 12000000\n");
    CHECK_HAS(out.text, "Mean latency (ns)               : 11000000\n");
    CHECK_HAS(out.text, "Median latency (ns)             : 11000000\n");
    CHECK_HAS(out.text, "90.0 percentile latency (ns)    : 11800000\n");
    CHECK_HAS(out.text, "99.9 percentile latency (ns)    : 11998000\n");
    free(out.text);
    sn_profile_free(p);
}

TEST(records_have_blocks_of_their_own)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = sample(failing_init(&m));
    write_report(by_record, p, &out);
    CHECK_STR(out.text, "no record contains a measured inference\n");
    free(out.text);
    add_records(p);
    write_report(by_record, p, &out);
    CHECK_HAS(out.text, "Summary: outer\n");
    CHECK_HAS(out.text, "Inference counts                : 2\n");
    CHECK_HAS(out.text, "Summary: in\\x0a\"ner\"\n");
    CHECK_HAS(out.text, "Inference counts                : 1\n");
    free(out.text);
    sn_profile_free(p);
}

/* 1 µs for every record; each run writes three. */
TEST(the_summary_leaves_out_what_recording_cost_as_the_table_does)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = sample(failing_init(&m));
    sn_prof_summary s;
    sonde_error err = {0};
    p->record_ns = 1000;
    add_records(p);
    CHECK_OK(sn_profile_summarise(p, SN_BY_OP, &s, &err));
    CHECK_EQ(s.wall_ns.mean, 11 * MS - 3000);
    sn_prof_summary_free(&s);
    for (int k = 0; k < 2; k++) {
        write_report(k ? by_record : summary, p, &out);
        CHECK_HAS(out.text, "Min latency (ns)                : 9997000\n");
        CHECK_HAS(out.text, "Mean latency (ns)               : 10997000\n");
        free(out.text);
    }
    sn_profile_free(p);
}

static void add_span(sn_profile *p, sn_prof_cat cat, uint32_t thread, uint64_t start, uint64_t dur,
                     const char *name)
{
    syn_span(p, cat, 0, start, dur, name)->thread = thread;
}

/* "a" holds runs 1 and 2 though a shorter "a" began after it, and not run 3, which ends later, nor
 * the one of another thread. */
TEST(a_record_holds_the_runs_of_its_thread_that_end_in_it)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = syn_profile(failing_init(&m));
    add_span(p, SN_CAT_USER, 0, 0, 100, "a");
    add_span(p, SN_CAT_ITERATION, 0, 0, 5, "Iteration0");
    add_span(p, SN_CAT_USER, 0, 10, 10, "a");
    add_span(p, SN_CAT_USER, 0, 10, 20, "b");
    add_span(p, SN_CAT_ITERATION, 0, 15, 10, "Iteration1");
    add_span(p, SN_CAT_ITERATION, 1, 16, 7, "Iteration2");
    add_span(p, SN_CAT_ITERATION, 0, 90, 20, "Iteration3");
    add_span(p, SN_CAT_USER, 1, 200, 10, "none");
    write_report(by_record, p, &out);
    const char *b = strstr(out.text, "Summary: b\n");
    CHECK_MSG(b && strstr(out.text, "Summary: a\n") < b, "%s", out.text);
    CHECK_HAS(out.text, "Inference counts                : 2\n");
    CHECK_HAS(out.text, "Mean latency (ns)               : 8\n"); /* of 5 and 10, to even */
    CHECK_HAS(b, "Inference counts                : 1\n");
    CHECK_HAS(b, "Mean latency (ns)               : 10\n");
    CHECK(!strstr(out.text, "none"));
    free(out.text);
    sn_profile_free(p);
}

/* With every run compared to every record, or to every label, this would take many minutes. */
TEST(long_records_and_many_labels_do_not_make_the_report_slow)
{
    enum { RUNS = 200000 };
    static char labels[RUNS][8];
    failing_alloc m;
    memory_sink out;
    sn_profile *p = syn_profile(failing_init(&m));
    add_span(p, SN_CAT_USER, 0, 0, 100ull * RUNS, "all");
    for (unsigned i = 0; i < RUNS; i++) {
        snprintf(labels[i], sizeof labels[i], "l%u", i);
        add_span(p, SN_CAT_USER, 0, 100ull * i + 1, 90, labels[i]);
        add_span(p, SN_CAT_ITERATION, 1, 100ull * i + 2, 80, "Iteration");
    }
    write_report(by_record, p, &out);
    CHECK_STR(out.text, "no record contains a measured inference\n");
    free(out.text);
    sn_profile_free(p);
}

TEST(waiting_is_never_negative)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = sample(failing_init(&m));
    write_report(sn_report_executions, p, &out);
    CHECK_HAS(out.text, "5000000  3000000  2000000\n");
    CHECK_HAS(out.text, "2000000  2000000        0\n");
    CHECK(!strchr(out.text, '-'));
    free(out.text);
    sn_profile_free(p);
}

TEST(averages_are_over_all_executions_and_not_the_last)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = sample(failing_init(&m));
    write_report(sn_report_operators, p, &out);
    CHECK_HAS(out.text, "\nname\nConv ");           /* as a data frame with a named index */
    CHECK_HAS(out.text, "7000000.000000      2\n"); /* Conv: 6 and 8 ms */
    CHECK_HAS(out.text, "2000000.000000      2\n");
    free(out.text);
    sn_profile_free(p);
}

TEST(the_peak_of_memory_and_its_holders_are_named)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = sample(failing_init(&m));
    write_report(memory, p, &out);
    CHECK_HAS(out.text, "weights, packed  3.00 MiB\n");
    CHECK_HAS(out.text, "peak at step 1, MatMul fc");
    CHECK_HAS(out.text, "3.91 KiB     output   MatMul          b\n");
    CHECK_HAS(out.text, "   500 B  workspace   MatMul  workspace\n");
    CHECK_HAS(out.text, "  1000 B      arena     Conv          a\n");
    free(out.text);
    sn_profile_free(p);
}

TEST(ids_are_stable_and_distinct)
{
    failing_alloc m;
    sn_profile *p = sample(failing_init(&m));
    char a[33], b[33], again[33];
    sn_trace_id_text(p, 1, a);
    sn_trace_id_text(p, 2, b);
    sn_trace_id_text(p, 1, again);
    CHECK_STR(a, again);
    CHECK(strcmp(a, b) != 0 && strlen(a) == 32);
    sn_profile_free(p);
}

TEST(failing_memory_and_full_disks_are_told)
{
    for (int r = 0; r < REPORTS; r++)
        for (long fail = 0; fail < 60; fail++) {
            failing_alloc m;
            memory_sink out;
            sonde_error err = {0};
            sn_profile *p = sample(failing_init(&m));
            add_records(p);
            const long before = m.live;
            m.calls = 0;
            m.fail_at = fail;
            const sonde_status st = all_reports[r](p, memory_sink_init(&out), &err);
            CHECK(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY);
            CHECK_EQ(m.live, before);
            m.fail_at = -1;
            free(out.text);
            memory_sink_init(&out);
            out.limit = 10;
            CHECK_EQ(all_reports[r](p, &out.sink, &err), SONDE_IO);
            free(out.text);
            sn_profile_free(p);
            CHECK_EQ(m.live, 0);
        }
}

/* A stream tells the values of a table when it meets it: tables may alternate. */
TEST(the_peak_of_memory_is_found_where_tables_alternate)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = syn_tiny(failing_init(&m));
    const sn_prof_life lives[] = {{1, 0, 1, "a", 0, 1024, SN_LIFE_ARENA},
                                  {2, 0, 1, "b", 0, 1536, SN_LIFE_ARENA},
                                  {1, 1, 2, "c", 1024, 1024, SN_LIFE_ARENA}};
    for (size_t i = 0; i < 3; i++)
        CHECK(sn_vec_push(&p->lives, p->alloc, lives[i]));
    write_report(memory, p, &out);
    CHECK_HAS(
        out.text,
        "activations peak at step 1, MatMul fc, with 2.00 KiB; the arena is 100.0 % used there");
    CHECK(!strstr(out.text, "  b\n"));
    free(out.text);
    sn_profile_free(p);
    CHECK_EQ(m.live, 0);
}

TEST_MAIN()
