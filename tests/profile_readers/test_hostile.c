/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are well formed and lie: what reads them refuses or corrects it, and whatever is done
 * with what was read goes well. */
#include <math.h>

#include "export/page.h"
#include "export/reports.h"
#include "profile/compare.h"
#include "profile_readers/round_trip.h"
#include "test.h"

/* Writes p as a .pftrace, frees it and reads the file. */
static sonde_status reread(sn_profile *p, sn_profile **q, sonde_error *err)
{
    memory_sink out;
    sn_allocator *alloc = p->alloc;
    if (sn_exporter_pftrace.write(p, memory_sink_init(&out), err) != SONDE_OK)
        abort();
    sn_profile_free(p);
    const sonde_status st = sn_profile_read_bytes(out.text, out.n, "evil.pftrace", alloc, q, err);
    free(out.text);
    return st;
}

/* Every format, report and comparison; none says "null", which is what no number is written as. */
static void use(const sn_profile *p)
{
    sonde_error err = {0};
    memory_sink out;
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        if (row == &sn_exporter_html && !sn_report_page_bytes)
            continue; /* a build without Node.js */
        CHECK_OK(row->write(p, memory_sink_init(&out), &err));
        if (row == &sn_exporter_summary || row == &sn_exporter_csv || row == &sn_exporter_chrome)
            CHECK(!strstr(out.text, "null"));
        free(out.text);
    }
    const sn_table_options all = {.by_shape = true, .by_node = true, .width = 300};
    CHECK_OK(sn_export_table(p, &all, memory_sink_init(&out), &err));
    CHECK(!strstr(out.text, "null"));
    free(out.text);
    CHECK_OK(sn_report_memory(p, 0, memory_sink_init(&out), &err));
    free(out.text);
    CHECK_OK(sn_report_executions(p, memory_sink_init(&out), &err));
    free(out.text);
    CHECK_OK(sn_report_external_operators(p, memory_sink_init(&out), &err));
    free(out.text);
    sn_comparison c;
    CHECK_OK(sn_profile_compare(p, p, SN_BY_NODE, p->alloc, &c, &err));
    sn_comparison_free(&c);
}

TEST(a_value_that_is_used_last_before_it_is_made_is_refused)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    p->lives.data[0].first = 900000;
    CHECK_EQ(reread(p, &q, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "cannot read 'evil.pftrace' as a Perfetto trace of sonde: value 0 of "
                           "the memory table is produced by step 900000 but last used by step 1");
    CHECK(q == NULL);
    CHECK_EQ(m.live, 0);
}

TEST(values_larger_than_any_machine_are_refused)
{
    for (int k = 0; k < 3; k++) {
        failing_alloc m;
        sonde_error err = {0};
        sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
        const sn_prof_life another = {1, 0, 1, "z", 0, SN_PROF_MAX_COUNT, SN_LIFE_OUTPUT};
        CHECK(sn_vec_push(&p->lives, p->alloc, another));
        p->lives.data[0].bytes = k == 0 ? SN_PROF_MAX_COUNT : k == 1 ? UINT64_MAX : 1;
        p->lives.data[0].offset = k == 2 ? UINT64_MAX : 0;
        CHECK_EQ(reread(p, &q, &err), SONDE_INVALID_ARGUMENT);
        CHECK_HAS(err.message, "which is too large");
        CHECK_EQ(m.live, 0);
    }
}

/* Memory follows the file, not a number in it. */
TEST(a_value_used_by_a_step_far_away_takes_no_memory)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    p->lives.data[0].last = UINT32_MAX - 1;
    CHECK_OK(reread(p, &q, &err));
    m.a.limit_bytes = 4 << 20;
    memory_sink out;
    CHECK_OK(sn_report_memory(q, 0, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "activations peak at step 0");
    free(out.text);
    sn_profile_free(q);
    CHECK_EQ(m.live, 0);
}

TEST(numbers_beyond_all_bounds_are_cut)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    sn_prof_step *s = &p->steps.data[0];
    s->hw = (sn_prof_hw){5e-324, 1, INFINITY, 2, 3};
    s->flops = s->bytes = s->bind_ns = UINT64_MAX;
    p->steps.data[1].hw = (sn_prof_hw){2, INFINITY, NAN, -1, 1e300};
    p->record_ns = INFINITY;
    p->peak_gops[SN_ARITH_F32] = p->caches[0].gbps = INFINITY;
    p->peak_gops[SN_ARITH_I8] = INFINITY;
    p->peak_gbps = NAN;
    p->pid = -5;
    p->start_wall_ns = p->dropped = UINT64_MAX;
    p->usage = (sn_prof_usage){true, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    p->memory.rss = UINT64_MAX;
    p->counters.data[0].value = INFINITY;
    p->counters.data[0].at_ns = UINT64_MAX;
    p->counters.data[1].step = 77;
    p->spans.data[p->spans.n - 1].start_ns = p->spans.data[p->spans.n - 1].dur_ns = UINT64_MAX;
    ((sn_prof_tensor *)(uintptr_t)s->inputs)[1].zeros = -7;
    CHECK_OK(reread(p, &q, &err));
    CHECK_EQ(q->steps.data[0].hw.calls, 0);
    CHECK(q->steps.data[1].hw.calls == 2 && q->steps.data[1].hw.cycles == 0 &&
          q->steps.data[1].hw.branch_misses == (double)SN_PROF_MAX_COUNT);
    CHECK(q->steps.data[0].flops == SN_PROF_MAX_COUNT &&
          q->steps.data[0].bind_ns == SN_PROF_MAX_NS);
    CHECK(q->steps.data[0].inputs[1].zeros == -1);
    CHECK(q->peak_gops[SN_ARITH_I8] == 0);
    CHECK(q->peak_gops[SN_ARITH_F32] == 0 && q->peak_gbps == 0 && q->pid == 0);
    CHECK(q->counters.data[0].value == 0 && q->counters.data[1].step == UINT32_MAX);
    use(q);
    sn_profile_free(q);
    CHECK_EQ(m.live, 0);
}

/* What a trace that was cut may refer to without having it. */
TEST(what_is_missing_is_left_out_and_the_rest_is_used)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    for (size_t i = 0; i < p->spans.n; i++) {
        p->spans.data[i].step = 70;
        p->spans.data[i].thread = 9;
    }
    p->lives.data[0].table = 12; /* a table without steps */
    CHECK_OK(reread(p, &q, &err));
    for (size_t i = 0; i < q->spans.n; i++)
        CHECK(q->spans.data[i].step == UINT32_MAX && q->spans.data[i].thread == 0);
    use(q);
    sn_profile_free(q);
    CHECK_EQ(m.live, 0);
}

/* It would be written as nothing and read again as another shape. */
TEST(an_empty_text_of_a_tensor_is_none)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    CHECK_OK(sn_exporter_pftrace.write(p, memory_sink_init(&out), &err));
    char *text = out.text; /* a text ends at its first zero byte */
    while ((text = memmem(text, out.n - (size_t)(text - out.text), "seq(f32[?])", 11)) != NULL)
        *text = 0;
    CHECK_OK(sn_profile_read_bytes(out.text, out.n, "x", &m.a, &q, &err));
    const sn_prof_step *loop = &q->steps.data[q->steps.n - 1];
    CHECK_EQ(loop->n_inputs, 2);
    CHECK(loop->inputs[1].rank == -1 && loop->inputs[1].text == NULL);
    sn_profile_free(p);
    sn_profile_free(q);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(two_spans_of_one_number_are_refused)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    p->spans.data[2].id = p->spans.data[1].id;
    CHECK_EQ(reread(p, &q, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "two spans have the id 2");
    CHECK_EQ(m.live, 0);
}

TEST_MAIN()
