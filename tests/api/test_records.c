/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler's face for programs: records with warm-up, scopes, pause, get, clear, dump, and the
 * reports by inference. */
#include <stdio.h>
#include <unistd.h>

#include "api/internal.h"
#include "sonde/experimental/memory.h"
#include "sonde/experimental/profile.h"
#include "sonde/sonde.h"

#include "tiny_session.h"

typedef struct captured {
    char text[1 << 18];
    size_t n;
} captured;

static captured *all;

static void capture(void *user, const char *text, size_t size)
{
    captured *c = user;
    if (c->n + size < sizeof c->text) {
        memcpy(c->text + c->n, text, size);
        c->n += size;
        c->text[c->n] = 0;
    }
}

static const char *report(const sonde_profile *p, sonde_report kind)
{
    sonde_error err;
    if (!all)
        all = calloc(1, sizeof *all);
    all->n = 0;
    all->text[0] = 0;
    if (sonde_profile_report(p, kind, capture, all, &err))
        capture(all, err.message, strlen(err.message));
    return all->text;
}

static void close_all(tiny_session *f)
{
    tiny_close(f);
    free(all);
    all = NULL;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

TEST(records_label_inferences_and_mark_warm_up)
{
    tiny_session f;
    sonde_error err;
    sonde_record *warm = NULL, *trace = NULL, *inner = NULL;
    sonde_profile *p = NULL;
    tiny_open(&f, 1, "records");
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    CHECK_OK(sonde_record_begin(f.context, "warm up", 1, &warm, &err));
    tiny_run(&f, 2);
    sonde_record_end(warm);
    CHECK_OK(sonde_record_begin(f.context, "trace", 0, &trace, &err));
    tiny_run(&f, 3);
    CHECK_OK(sonde_record_begin(f.context, "inner", 0, &inner, &err));
    tiny_run(&f, 1);
    sonde_record_end(inner);
    sonde_record_end(trace);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    const char *text = report(p, SONDE_REPORT_SUMMARY);
    CHECK_HAS(text, "  Inference Results Summary\n");
    CHECK_HAS(text, "Inference counts                : 4\n");
    CHECK_HAS(text, "99.9 percentile latency (ns)    : ");
    text = report(p, SONDE_REPORT_SUMMARY_BY_RECORD);
    CHECK_EQ(count(text, "Inference Results Summary"), 2);
    CHECK_HAS(text, "Summary: trace\n");
    CHECK_HAS(text, "Inference counts                : 4\n");
    CHECK_HAS(text, "Summary: inner\n");
    CHECK_HAS(text, "Inference counts                : 1\n");
    CHECK(!strstr(text, "warm up"));
    CHECK_EQ(count(report(p, SONDE_REPORT_INFERENCES), "\n"), 5);
    CHECK_HAS(all->text, "trace_id");
    text = report(p, SONDE_REPORT_OPERATORS);
    CHECK_HAS(text, "average elapsed(ns)");
    CHECK_HAS(text, "Gemm");
    CHECK_HAS(report(p, SONDE_REPORT_EXTERNAL_OPERATORS), "operator_index");
    CHECK_EQ(count(report(p, SONDE_REPORT_EXECUTIONS), "\n"), 1);
    CHECK_HAS(report(p, SONDE_REPORT_MEMORY), "activations");
    CHECK_EQ(sonde_profile_report(p, (sonde_report)99, capture, all, &err), SONDE_INVALID_ARGUMENT);
    sonde_profile_release(p);
    close_all(&f);
}

TEST(nothing_is_recorded_between_pause_and_resume)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    tiny_open(&f, 1, "records");
    CHECK_EQ(sonde_profiler_pause(f.context, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    tiny_run(&f, 1);
    CHECK_OK(sonde_profiler_pause(f.context, &err));
    CHECK_EQ(sonde_profiler_pause(f.context, &err), SONDE_INVALID_ARGUMENT);
    tiny_run(&f, 5);
    CHECK_OK(sonde_profiler_resume(f.context, &err));
    tiny_run(&f, 2);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    CHECK_HAS(report(p, SONDE_REPORT_SUMMARY), "Inference counts                : 3\n");
    sonde_profile_release(p);
    close_all(&f);
}

TEST(what_was_recorded_can_be_had_again_until_it_is_cleared)
{
    tiny_session f;
    sonde_error err;
    sonde_profile *p = NULL;
    tiny_open(&f, 1, "records");
    CHECK_EQ(sonde_profiler_get(f.context, &p, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    tiny_run(&f, 2);
    CHECK_OK(sonde_profiler_get(f.context, &p, &err)); /* while it runs */
    CHECK_HAS(report(p, SONDE_REPORT_SUMMARY), ": 2\n");
    sonde_profile_release(p);
    tiny_run(&f, 1);
    CHECK_OK(sonde_profiler_stop(f.context, NULL, &err));
    tiny_run(&f, 1); /* not recorded */
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sonde_profiler_get(f.context, &p, &err));
        CHECK_HAS(report(p, SONDE_REPORT_SUMMARY), ": 3\n");
        sonde_profile_release(p);
    }
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/tmp/sonde-test-dump-%ld.json", (long)getpid());
    CHECK_OK(sonde_profiler_dump(f.context, path, &err));
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(text, 1, sizeof text - 1, file) > 20);
    if (file)
        fclose(file);
    remove(path);
    CHECK_OK(sonde_profiler_clear(f.context, &err));
    CHECK_EQ(sonde_profiler_get(f.context, &p, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_profiler_start(f.context, 1, &err));
    tiny_run(&f, 1);
    CHECK_OK(sonde_profiler_clear(f.context, &err)); /* goes on from here */
    tiny_run(&f, 2);
    CHECK_OK(sonde_profiler_stop(f.context, &p, &err));
    CHECK_HAS(report(p, SONDE_REPORT_SUMMARY), ": 2\n");
    sonde_profile_release(p);
    close_all(&f);
}

TEST(the_memory_profiler_knows_its_own_maxima)
{
    tiny_session f;
    sonde_error err;
    sonde_memory_info info = SONDE_INIT(sonde_memory_info);
    sonde_memory_trace *trace = NULL;
    tiny_open(&f, 1, "records");
    CHECK_EQ(sonde_memory_max(f.context, &info, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_memory_stop(f.context, &err), SONDE_INVALID_ARGUMENT);
    CHECK_OK(sonde_memory_start(f.context, &err));
    CHECK_EQ(sonde_memory_start(f.context, &err), SONDE_INVALID_ARGUMENT);
    tiny_run(&f, 2);
    CHECK_OK(sonde_memory_stop(f.context, &err));
    tiny_run(&f, 1); /* not seen */
    CHECK_OK(sonde_memory_trace_get(f.context, &trace, &err));
    const size_t n = sonde_memory_trace_count(trace);
    CHECK(n >= 4 && n % 2 == 0);
    uint64_t used = 0, allocated = 0, allocated_then = 0;
    for (size_t i = 0; i < n; i++) {
        sonde_memory_sample s = SONDE_INIT(sonde_memory_sample);
        CHECK_OK(sonde_memory_trace_sample(trace, i, &s, &err));
        CHECK(s.used > 0 && s.allocated >= s.used && s.tag[0]);
        allocated_then = s.used > used ? s.allocated : allocated_then;
        used = s.used > used ? s.used : used;
        allocated = s.allocated > allocated ? s.allocated : allocated;
    }
    CHECK_OK(sonde_memory_max(f.context, &info, &err));
    CHECK_EQ(info.max_used, used);
    CHECK_EQ(info.max_allocated, allocated);
    CHECK_EQ(info.samples, n);
    CHECK(info.fragmentation == 1.0 - (double)used / (double)allocated_then);
    sonde_memory_trace_release(trace);
    CHECK_OK(sonde_memory_reset(f.context, &err));
    CHECK_EQ(sonde_memory_max(f.context, &info, &err), SONDE_INVALID_ARGUMENT);
    close_all(&f);
}

/* What the records of the run under way say is held; as if the allocator had begun with `more`. */
static void hold_more(sonde_context *c, uint64_t more)
{
    sn_trace_ring *r = sn_trace_ring_get(c->core.trace);
    for (size_t i = 0; r && i < r->n; i++) {
        sn_trace_rec *rec = &r->recs[i];
        if (rec->kind == SN_TRACE_MEMORY ||
            (rec->kind == SN_TRACE_ALLOC && rec->index == SN_TRACE_NONE))
            sn_trace_set_number(rec, sn_trace_number(rec) + more);
    }
}

TEST(memory_is_counted_to_the_byte_however_much_it_is)
{
    static const uint64_t more[] = {1, 63, (uint64_t)1 << 32, ((uint64_t)1 << 38) + 1,
                                    ((uint64_t)1 << 52) + 12345};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        tiny_session f;
        sonde_error err;
        sonde_memory_info before = SONDE_INIT(sonde_memory_info), after = before;
        tiny_open(&f, 1, "records");
        CHECK_OK(sonde_memory_start(f.context, &err));
        tiny_run(&f, 1);
        CHECK_OK(sonde_memory_max(f.context, &before, &err));
        CHECK(before.samples > 0 && before.max_used > 0);
        hold_more(f.context, more[i]);
        CHECK_OK(sonde_memory_max(f.context, &after, &err));
        CHECK_EQ(after.max_allocated, before.max_allocated + more[i]);
        CHECK_EQ(after.max_used, before.max_used); /* the run took no more than before */
        CHECK_OK(sonde_memory_stop(f.context, &err));
        close_all(&f);
    }
}

TEST(max_allocated_is_its_own_maximum_and_not_that_of_the_moment_most_was_used)
{
    tiny_session f;
    sonde_error err;
    const int64_t many[2] = {256, 16}, block[1] = {1 << 20};
    sonde_value *small = NULL, *held = NULL;
    sonde_memory_info first = SONDE_INIT(sonde_memory_info), both = SONDE_INIT(sonde_memory_info);
    tiny_open(&f, 1, "records");
    small = f.in;
    CHECK_OK(sonde_tensor_create(f.context, SONDE_DTYPE_F32, many, 2, NULL, 256 * 64, &f.in, &err));
    CHECK_OK(sonde_memory_start(f.context, &err));
    tiny_run(&f, 1); /* most is used */
    CHECK_OK(sonde_memory_max(f.context, &first, &err));
    CHECK_OK(
        sonde_tensor_create(f.context, SONDE_DTYPE_F32, block, 1, NULL, 4u << 20, &held, &err));
    sonde_value_release(f.in);
    f.in = small;
    tiny_run(&f, 1); /* less is used, more is allocated */
    CHECK_OK(sonde_memory_stop(f.context, &err));
    CHECK_OK(sonde_memory_max(f.context, &both, &err));
    CHECK_EQ(both.max_used, first.max_used);
    CHECK_MSG(both.max_allocated >= (4u << 20) && first.max_allocated < (4u << 20),
              "%llu after %llu", (unsigned long long)both.max_allocated,
              (unsigned long long)first.max_allocated);
    CHECK_EQ(both.samples, 2 * first.samples);
    /* Fragmentation is that of the moment most was used: what comes later does not change it. */
    CHECK(both.fragmentation == first.fragmentation);
    sonde_value_release(held);
    close_all(&f);
}

static void decode(int frame)
{
    SONDE_SCOPE_ARGS("decode", "io", "frame %d", frame);
    SONDE_SCOPE("resize");
}

TEST(scopes_of_the_program_are_spans_with_their_text)
{
    sonde_error err;
    sonde_profile *p = NULL;
    decode(0); /* nothing records: nothing happens */
    CHECK_OK(sonde_profiler_start(NULL, 1, &err));
    decode(7);
    CHECK_OK(sonde_profiler_stop(NULL, &p, &err));
    char path[64];
    snprintf(path, sizeof path, "/tmp/sonde-test-scope-%ld.json", (long)getpid());
    CHECK_OK(sonde_profile_save(p, path, &err));
    sonde_profile_release(p);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    CHECK(file && fread(text, 1, (1 << 16) - 1, file) > 20);
    if (file)
        fclose(file);
    remove(path);
    CHECK_HAS(text, "\"decode\"");
    CHECK_HAS(text, "\"decode\",\"cat\":\"io\"");
    CHECK_HAS(text, "\"args\":\"frame 7\"");
    CHECK_HAS(text, "\"resize\",\"cat\":\"user\"");
    CHECK_HAS(text, "\"resize\"");
    CHECK(!strstr(text, "frame 0"));
    free(text);
}

/* Names and categories may contain anything, also what separates them inside. */
TEST(scopes_take_any_category)
{
    static const char *const categories[][2] = {{"io", "io"},
                                                {NULL, "user"},
                                                {"", "user"},
                                                {"user", "user"},
                                                {"memory", "memory"},
                                                {"a\x1f"
                                                 "b",
                                                 "a b"},
                                                {"\"q\",", "\"q\","}};
    enum { N = sizeof categories / sizeof categories[0] };
    sonde_error err;
    sonde_profile *p = NULL;
    sonde_profile_spans *spans = NULL;
    CHECK_OK(sonde_profiler_start(NULL, 1, &err));
    for (size_t i = 0; i < N; i++) {
        const uint64_t begin = sonde_scope_begin(NULL);
        sonde_scope_end(NULL, begin, "sc\x1fope", categories[i][0], i % 2 ? "text" : NULL);
    }
    sonde_record *record = NULL; /* a label is a label, whatever is in it */
    CHECK_OK(sonde_record_begin(NULL,
                                "la\x1f"
                                "bel",
                                0, &record, &err));
    sonde_record_end(record);
    CHECK_OK(sonde_profiler_stop(NULL, &p, &err));
    CHECK_OK(sonde_profile_spans_get(p, &spans, &err));
    CHECK_EQ(sonde_profile_spans_count(spans), N + 1);
    for (size_t i = 0; i <= N; i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        CHECK_OK(sonde_profile_spans_span(spans, i, &s, &err));
        CHECK_STR(s.category, i < N ? categories[i][1] : "user");
        CHECK_STR(s.text, i < N && i % 2 ? "text" : "");
        if (i == N)
            CHECK_STR(s.name, "la\x1f"
                              "bel");
    }
    sonde_profile_spans_release(spans);
    sonde_profile_release(p);
}

TEST_MAIN()
